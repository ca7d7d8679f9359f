//! Manual pages and completions.

use clap::Args as ClapArgs;
use std::path::PathBuf;

/// Print a script that completes commands and options in your shell.
///
/// Where the script belongs depends on the shell; the examples show the usual places.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch completions bash > nysketch.bash     # then: source nysketch.bash
  nysketch completions zsh > _nysketch          # in a folder of $fpath
  nysketch completions fish > nysketch.fish     # in ~/.config/fish/completions")]
pub struct Completions {
    /// Shell to complete in
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Print the manual page, or write one page per command.
///
/// Pages are in the format of man(1).
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch man > nysketch.1                     # then: man ./nysketch.1
  nysketch man --dir man1")]
pub struct Man {
    /// Folder to write nysketch.1, nysketch-sketch.1, … to
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
