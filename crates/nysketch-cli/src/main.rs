//! The `nysketch` program; see the library of this crate.

fn main() -> std::process::ExitCode {
    nysketch_cli::main()
}
