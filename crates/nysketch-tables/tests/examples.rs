//! Runs the example.

#[path = "../examples/file.rs"]
mod file;

#[test]
fn from_a_file_to_predictions() {
    file::main().unwrap();
}
