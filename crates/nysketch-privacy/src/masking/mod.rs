//! Secure aggregation: computes the sum of the sketches of many parties and reveals only that sum.
//!
//! Sums are integers modulo 2¹²⁸, so masks that cancel make them uniform and leave the total exact.
//! Every pair of parties shares a key, which generates a stream of words m_ij. The party with the
//! smaller id adds the stream to its sums, and the other subtracts it (Bonawitz et al. 2017,
//! without the recovery of parties that drop out):
//!
//! ```text
//! y_i = x_i + Σ_{j > i} m_ij − Σ_{j < i} m_ji  mod 2¹²⁸          Σ_i y_i = Σ_i x_i
//! ```
//!
//! FORMAT.md, *Masked sketches*, defines every byte.
//!
//! ```
//! use nysketch::ledger::Ledgers;
//! use nysketch::masking::{Parties, SecretKey, Session, Unmasking, mask};
//! use nysketch::{PlanParams, PrivateParams, Sketch, SketchParams, Table, plan_for};
//! use std::sync::Arc;
//! # fn main() -> nysketch::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let ledgers = Ledgers::at(folder.path().join("ledgers"));
//! let table = |shift: f64| Table::unnamed(1, (0..100).map(|i| f64::from(i) + shift).collect());
//! // The plan is not masked, so it is private: computed without rows.
//! let private = PrivateParams::new([("c0".into(), 0.0, 200.0)]);
//! let params = PlanParams::default().landmarks(9).private(private.clone());
//! let plan = Arc::new(plan_for(&private.anywhere(500, 0)?, params)?.plan);
//! let sketch = |shift| Sketch::of(&plan, &table(shift)?, SketchParams::default(), &());
//!
//! // Once: every clinic creates a key, and all have the same list of public keys.
//! let keys = [SecretKey::random("clinic-a")?, SecretKey::random("clinic-b")?];
//! for key in &keys {
//!     key.write_new(&folder.path().join(key.id()), &ledgers)?;
//! }
//! let parties = Parties::new(keys.iter().map(SecretKey::party).collect())?;
//!
//! // Each time: a new session, in which each clinic masks its own sketch.
//! let session = Session::random()?;
//! let mut all = Unmasking::default();
//! for (key, shift) in keys.iter().zip([1.0, 2.0]) {
//!     let masked = mask(&sketch(shift)?, key, &parties, &session, &ledgers)?;
//!     all.add(masked)?;
//! }
//! let mut plain = sketch(1.0)?;
//! plain.merge(&sketch(2.0)?)?;
//! assert_eq!(all.finish()?.to_bytes(), plain.to_bytes());
//! # Ok(())
//! # }
//! ```

mod check;
mod file;
mod keys;
pub(crate) mod layout;
mod ledger;
pub(crate) mod masked;
pub(crate) mod parties;
pub(crate) mod session;
mod stream;
#[cfg(test)]
mod tests;
mod unmask;

pub use keys::SecretKey;
pub use ledger::{new_session_ledger, session_ledger};
pub use masked::{Label, Masked, NoiseParams, mask, mask_noisy};
pub use nysketch_core::error::masking::MaskingError;
pub use parties::{Parties, Party, PublicKey};
pub use session::Session;
pub use unmask::{Unmasked, Unmasking};
