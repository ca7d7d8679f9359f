//! Differential privacy: noise on exact sums, with a proof that applies to the program as executed.
//!
//! Rows of a private plan ([`Private`](nysketch_core::plan::private::Private)) move the sums by at
//! most a known amount ([`Mechanism`]). A [`Release`] adds the discrete Gaussian noise that a
//! [`Budget`] requires, and contains no other data that depends on the rows. Sums, sensitivities
//! and noise are integers, so no rounding errors occur; docs/PRIVACY.md contains the proofs.

pub mod account;
mod bound;
mod budget;
mod dyadic;
mod estimate;
mod expected;
mod file;
#[cfg(test)]
mod forged;
mod kernel;
mod ledger;
mod mechanism;
mod noise;
mod params;
mod release;
mod sensitivity;
mod terms;

pub use budget::{Budget, Rho};
pub use expected::{ColumnNoise, ExpectedNoise, MechanismNoise, ROWS_OF_MEAN};
pub use ledger::Releases;
pub use mechanism::Mechanism;
pub use noise::Variance;
pub use params::{after, made_up};
pub use release::{Release, SpendingSummary};
pub use terms::{Shared, Spending, Terms};
