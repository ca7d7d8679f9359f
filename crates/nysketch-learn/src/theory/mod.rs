//! The quantities of section 4 of the paper, estimated from a sketch and some rows.
//!
//! With the covariance operator Σ of the data and the effective dimensions N(λ), N_∞(λ) and N_f(λ)
//! of [`spectrum`](crate::decoder::spectrum),
//!
//! ```text
//! λ_t     = sup_μ inf {λ : N_A(μ)(λ) ≤ t} ,  μ over the normalised secants of the model set   (13)
//! ```
//!
//! Theorem 4.1 holds for λ ≥ λ_t with 3λt < 1 (19), with C = C_F (1 − 3λt)^(−½), and requires
//!
//! ```text
//! m ≥ max(67, 5 N_∞(λ)) log(4/(λδ))                       uniform landmarks                (20)
//! m ≥ max(334, 78 z² N(λ)) log(16n/δ)                     leverage scores                  (21a)
//! n ≥ 1655 + 233 log(4/δ) ,   19/n log(4n/δ) ≤ λ ≤ ‖Σ‖                                 (21b, c)
//! ```
//!
//! Proposition 4.1 gives λ and t from a source condition γ_s = sup_μ Σ_ℓ ⟨A(μ), e_ℓ⟩²/σ_ℓ^2s (22),
//! and corollary D.1 the size that follows (64). All constants are for a Gaussian kernel, K = 1.
//!
//! # What can be known
//!
//! Σ is estimated by Σ̂, from rows drawn for this purpose. Since the inverse is operator convex, E
//! (Σ̂ + λ)⁻¹ ⪰ (Σ + λ)⁻¹: if f is independent of the drawn rows, N_f(λ) is overestimated on
//! average. If f is made of the rows themselves, N_f(λ) is underestimated, and so is N(λ). The rows
//! are therefore split, and Σ̂ is estimated from one half. Secants at the other half, maximised by
//! a few ascents, show whether (19) holds; secants at the rows of Σ̂ show whether it fails; if the
//! two disagree, these rows cannot decide. Suprema are over the secants that were tried, with atoms
//! within σ/2 of a row, and are therefore lower bounds.

mod params;
mod places;
mod secants;
mod theorem;

pub use params::TheoryParams;
pub use places::Basis;
pub use theorem::{RiskBound, Source, Theory, theory};
