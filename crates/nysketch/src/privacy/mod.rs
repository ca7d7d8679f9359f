//! Differential privacy: noise on exact sums, with a proof that holds for the program as it runs.
//!
//! Rows of a private plan ([`Private`](crate::Private)) move sums by no more than is known beforehand ([`Mechanism`]). A
//! [`Release`] adds discrete Gaussian noise to them, as much as a [`Budget`] asks for, and holds nothing else that depends on
//! the rows. Sums, sensitivities and noise are integers, so nothing is lost to rounding; docs/PRIVACY.md has the proofs.

mod budget;
mod estimate;
mod ledger;
mod mechanism;
mod noise;
mod release;
mod terms;

pub use budget::{Budget, Rho};
pub use ledger::Releases;
pub use mechanism::Mechanism;
pub use noise::Variance;
pub use release::{Release, SpendingSummary};
pub use terms::{Shared, Spending, Terms};
