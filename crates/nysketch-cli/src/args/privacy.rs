//! Commands for noise and masks.

use super::values::column_weight;
use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

/// Make a release: add noise to a sketch, so that it can be published.
///
/// Differential privacy: any outcome is at most e^ε times as likely with any one row as without it,
/// plus δ, and vice versa. The sketch needs a plan of 'nysketch plan --private'. The noise is drawn
/// in integers from the operating system's random source; there is no seed. A release contains no
/// exact number that depends on the rows, and 'nysketch fit' learns from it. Every release of a
/// sketch reveals more. A ledger of this user adds the releases up; it identifies the sketch by its
/// sums, not by the name of its file.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch privatize private-s.nys -o release.nys --epsilon 1 --delta 1e-6
  nysketch privatize private-s.nys -o release.nys --epsilon 1 --delta 1e-6 --statement statement.md

JSON fields: file, statement, ledger, epsilon, delta, epsilon_replacing (for replacing a row),
  rho, total_rho (with earlier rounds), person_rows, rows (noisy), mechanisms [{name, numbers, rho,
  sensitivity_squared, deviation}], releases, all_releases {epsilon, rho}, fingerprint, bytes")]
pub struct Privatize {
    /// Sketch to release
    #[arg(value_name = "SKETCH")]
    pub sketch: PathBuf,
    /// ε: any outcome is at most e^ε times as likely with a row as without it, in all rounds
    /// together; there is no default
    #[arg(long, value_name = "E")]
    pub epsilon: f64,
    /// δ: added to that bound; well below one over the number of people; there is no default
    #[arg(long, value_name = "D")]
    pub delta: f64,
    /// Shares of the budget, in any unit, of the collected sums: counts, sums and squares of cells,
    /// kernel, rows, totals, products [default:
    /// counts=4,sums=4,squares=2,kernel=9,rows=1,totals=2,products=8]
    #[arg(hide_short_help = true, long, value_name = "NAME=SHARE,…", value_delimiter = ',',
        value_parser = column_weight)]
    pub spend: Vec<(String, f64)>,
    /// Also write a statement of one page for a data-protection officer (Markdown): promise, costs,
    /// assumptions and limits
    #[arg(long, value_name = "FILE")]
    pub statement: Option<PathBuf>,
    /// File to write
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
}

/// Mask a sketch, so that only the sum over all parties can be read.
///
/// Secure aggregation: every sum gets a random number, and these numbers cancel when the masked
/// sketches of all parties are merged. A masked file alone reveals only its plan. Each session
/// needs
/// a new id, on which all parties agree ('nysketch keys session'). A key masks one sketch per
/// session. The ledger of the key records it: 'nysketch keys new' makes the ledger, and the public
/// key finds it, wherever the key file is. Before the first session, all parties compare the
/// fingerprint of the list by telephone or in person.
///
/// With --epsilon, --delta and --honest each party adds a share of noise. The sum is then a release
/// that no one has seen without noise, not even the party that merges. All parties must use the
/// same values.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch keys session > session.txt           # one party, who sends it to all others
  nysketch mask a.nys --parties keys.toml --key a.key --session $(cat session.txt) -o masked.nys

JSON fields: file, party, parties, parties_fingerprint, session, fingerprint, bytes, ledger; with
  noise also epsilon, delta, honest, rho,
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
    /// Declare that the key never masked anything, once, if it was made elsewhere and has no ledger
    /// here
    #[arg(hide_short_help = true, long)]
    pub new_key: bool,
    /// Id of the session, the same for all and never used before: 32 to 128 hexadecimal digits
    #[arg(long, value_name = "ID")]
    pub session: String,
    /// ε of the sum over all parties, which share the noise [default: no noise]
    #[arg(long, value_name = "E", help_heading = "Noise", requires_all = ["delta", "honest"])]
    pub epsilon: Option<f64>,
    /// δ of the sum over all parties
    #[arg(long, value_name = "D", help_heading = "Noise", requires = "epsilon")]
    pub delta: Option<f64>,
    /// Smallest number of parties that keep their noise secret; the fewer, the more noise each adds
    #[arg(long, value_name = "H", help_heading = "Noise", requires = "epsilon")]
    pub honest: Option<u64>,
    /// Shares of the budget, as in 'nysketch privatize'
    #[arg(hide_short_help = true, long, value_name = "NAME=SHARE,…", value_delimiter = ',',
        value_parser = column_weight, help_heading = "Noise",
        requires = "epsilon")]
    pub spend: Vec<(String, f64)>,
    /// Assert that no person has rows at two parties, if the plan protects people; this cannot be
    /// checked
    #[arg(hide_short_help = true, long, help_heading = "Noise", requires = "epsilon")]
    pub disjoint_people: bool,
    /// File to write
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
}

/// Manage the keys of secure aggregation.
///
/// Each party makes a key once ('new') and sends the printed lines to all others. Every party keeps
/// the same list and compares its fingerprint with the others ('show'). One party makes the id of
/// each session ('session').
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch keys new clinic-c -o clinic-c.key >> list.toml
  nysketch keys show keys.toml
  nysketch keys session

JSON fields: of new, file, id, public, ledger; of show, file, parties [{id, public}],
  parties_fingerprint; of session, session")]
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
