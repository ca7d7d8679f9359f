//! Commands for noise and masks.

use super::values::column_weight;
use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

/// Add noise to a sketch, so that it may be given away.
///
/// Differential privacy: every outcome is at most e^ε times as likely with any one row as without it, plus δ, and the other way
/// round. The sketch must be made with a plan of 'nysketch plan --private'. Noise is drawn from the operating system's
/// randomness, in integers; there is no seed. What is written holds no exact number that depends on the rows, and can be
/// learned from with 'nysketch fit'. Every release of a sketch reveals more: a ledger of this user, which knows the sketch by its
/// sums and not by the name of its file, adds them up.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch privatize private-s.nys -o release.nys --epsilon 1 --delta 1e-6
  nysketch privatize private-s.nys -o release.nys --epsilon 1 --delta 1e-6 --statement statement.md

JSON fields: file, statement, ledger, epsilon, delta, epsilon_replacing (for replacing a row), rho, total_rho (with earlier rounds), person_rows, rows (noisy), mechanisms [{name, numbers, rho,
  sensitivity_squared, deviation}], releases, all_releases {epsilon, rho}, fingerprint, bytes")]
pub struct Privatize {
    /// Sketch to release
    #[arg(value_name = "SKETCH")]
    pub sketch: PathBuf,
    /// ε: how much more likely any outcome may be with a row than without it, in all rounds together; there is no default
    #[arg(long, value_name = "E")]
    pub epsilon: f64,
    /// δ: what may be added to that, well below one over the number of people; there is no default
    #[arg(long, value_name = "D")]
    pub delta: f64,
    /// How the budget is split, in any unit: counts, sums and squares of cells, kernel, rows, totals, products: those that
    /// the plan collects [default: counts=4,sums=4,squares=2,kernel=9,rows=1,totals=2,products=8]
    #[arg(long, value_name = "NAME=SHARE,…", value_delimiter = ',', value_parser = column_weight)]
    pub spend: Vec<(String, f64)>,
    /// Also write a statement of one page for a data-protection officer, in Markdown: promise, costs, assumptions and limits
    #[arg(long, value_name = "FILE")]
    pub statement: Option<PathBuf>,
    /// File to write
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
}

/// Mask a sketch, so that only the sum over all parties can be read.
///
/// Every sum is covered by random numbers that cancel when the masked sketches of all parties are merged; by itself the file
/// says nothing about the rows but its plan. Each session needs a new id, which all parties agree on ('nysketch keys session').
/// A key masks one sketch per session: which one is recorded in the ledger of the key, which 'nysketch keys new' makes and which is
/// found by the public key, wherever the key's file is. Before the first session all parties compare the fingerprint of the list,
/// by telephone or in person.
///
/// With --epsilon, --delta and --honest each party adds a share of noise, and the sum is a release that nobody has seen without
/// noise, not even who adds up. All parties must ask for the same.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch keys session > session.txt           # one party, who sends it to all others
  nysketch mask a.nys --parties keys.toml --key a.key --session $(cat session.txt) -o masked.nys

JSON fields: file, party, parties, parties_fingerprint, session, fingerprint, bytes, ledger; with noise also epsilon, delta, honest, rho,
  person_rows")]
pub struct Mask {
    /// Sketch to mask
    #[arg(value_name = "SKETCH")]
    pub sketch: PathBuf,
    /// List of all parties and their public keys, the same for all
    #[arg(long, value_name = "FILE")]
    pub parties: PathBuf,
    /// Your secret key
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Declare that the key never masked anything, because it has no ledger here: once, where the key was made elsewhere
    #[arg(long)]
    pub new_key: bool,
    /// Id of the session, the same for all and never used before: 32 to 128 hexadecimal digits
    #[arg(long, value_name = "ID")]
    pub session: String,
    /// ε of the sum over all parties, which share the noise; without it there is none
    #[arg(long, value_name = "E", help_heading = "Noise", requires_all = ["delta", "honest"])]
    pub epsilon: Option<f64>,
    /// δ of the sum over all parties
    #[arg(long, value_name = "D", help_heading = "Noise", requires = "epsilon")]
    pub delta: Option<f64>,
    /// How many parties at least do not tell anybody their noise; the fewer, the more noise each adds
    #[arg(long, value_name = "H", help_heading = "Noise", requires = "epsilon")]
    pub honest: Option<u64>,
    /// How the budget is split, as in 'nysketch privatize'
    #[arg(long, value_name = "NAME=SHARE,…", value_delimiter = ',', value_parser = column_weight, help_heading = "Noise",
        requires = "epsilon")]
    pub spend: Vec<(String, f64)>,
    /// No person has rows at two parties, where the plan protects people; nothing can check it
    #[arg(long, help_heading = "Noise", requires = "epsilon")]
    pub disjoint_people: bool,
    /// File to write
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
}

/// Keys of the parties that add up masked sketches.
///
/// Each party makes a key once ('new') and sends what it prints to all others. Everybody keeps the same list of parties and
/// compares its fingerprint with the others ('show'). One of them makes the id of each session ('session').
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch keys new clinic-c -o clinic-c.key >> list.toml
  nysketch keys show keys.toml
  nysketch keys session

JSON fields: of new, file, id, public, ledger; of show, file, parties [{id, public}], parties_fingerprint; of session, session")]
pub struct Keys {
    #[command(subcommand)]
    pub what: KeysCommand,
}

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make the secret key of a party, and print its lines of the list of parties
    New {
        /// Id of the party: letters and digits of ASCII, '.', '_' and '-'
        id: String,
        /// File of the secret key to write, which must not exist
        #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
        output: PathBuf,
    },
    /// Show a list of parties and the fingerprint to compare
    Show {
        /// List of parties
        #[arg(value_name = "FILE")]
        parties: PathBuf,
    },
    /// Print a new random session id
    Session,
}
