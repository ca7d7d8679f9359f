//! Differential privacy: noise on exact sums, with a proof that holds for the program as it runs.
//!
//! Rows of a private plan ([`Private`](nysketch_core::plan::private::Private)) move sums by no more
//! than is known beforehand ([`Mechanism`]). A
//! [`Release`] adds discrete Gaussian noise to them, as much as a [`Budget`] asks for, and holds
//! nothing else that depends on
//! the rows. Sums, sensitivities and noise are integers, so nothing is lost to rounding;
//! docs/PRIVACY.md has the proofs.

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
