//! Runs the examples.

#[path = "../examples/drift.rs"]
mod drift;
#[path = "../examples/parts.rs"]
mod parts;
#[path = "../examples/row_source.rs"]
mod row_source;
#[path = "../examples/table.rs"]
mod table;

#[test]
fn table_in_memory() {
    table::main().unwrap();
}

#[test]
fn own_row_source() {
    row_source::main().unwrap();
}

#[test]
fn parts_on_threads() {
    parts::main().unwrap();
}

#[test]
fn days_compared() {
    drift::main().unwrap();
}
