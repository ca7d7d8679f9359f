//! Decoders: algorithms that compute a model from a sketch, without the rows.
//!
//! | decoder | reads | method |
//! |---|---|---|
//! | `cells` | cell moments | weighted k-means, k-medians or EM on the cells |
//! | `kernel` | kernel sums | atoms of a learned width, or k-means and EM on calibrated landmarks |
//! | `clompr`, `clomp` | kernel sums | the paper's matching pursuit, with Diracs or Gaussians |
//! | `auto` | either | `cells` if the sketch contains cells, otherwise `kernel` |
//!
//! A decoder has no access to the rows: its only inputs are a [`Sketch`](nysketch_core::Sketch) and
//! a seed.
//! A [`Context`] computes once the intermediate results that several fits of one sketch share
//! (eigendecompositions, cells, calibrated landmarks). To add a decoder, implement `Decode` for a
//! type and add a variant to [`Decoder`].

mod by_cells;
mod by_kernel;
mod by_pursuit;
mod calibrate;
mod cell_mixture;
mod context;
mod cost;
mod cross_validation;
mod curve;
mod decode;
mod em;
mod explain;
mod fit;
mod given;
mod jackknife;
mod kernel;
mod known;
mod labels;
mod level_draws;
mod likelihood;
mod list;
mod nearest_cells;
mod params;
mod profile;
mod refits;
mod region;
mod represent;
mod retained;
mod search;
mod stand_in_atoms;
mod stand_ins;
mod unfolding;
mod witness_points;

// Public for the command, the benchmarks and the tests; not part of the stable interface.
#[doc(hidden)]
pub mod cells;
#[doc(hidden)]
pub mod clompr;
#[doc(hidden)]
pub mod constraints;
#[doc(hidden)]
pub mod matching;
#[doc(hidden)]
pub mod pca;
#[doc(hidden)]
pub mod space;
pub mod spectrum;
#[doc(hidden)]
pub mod starts;

pub use context::Context;
pub use cost::Cost;
pub use cross_validation::{CrossValidation, HeldOutRisk};
pub use curve::{Curve, CurvePoint, estimated_risk, fit_curve};
pub use explain::{Explanation, Residual, Verdict, explain, noise_floor};
pub use fit::fit;
pub use known::KnownCovariance;
pub use list::Decoder;
pub use params::FitParams;
