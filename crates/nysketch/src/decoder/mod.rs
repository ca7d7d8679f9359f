//! Decoders: from a sketch to a model, without the rows.
//!
//! | decoder | from | what it does |
//! |---|---|---|
//! | `cells` | cell moments | weighted k-means, k-medians or EM on the cells |
//! | `kernel` | kernel sums | atoms of a learned width match the sketch, or k-means and EM on calibrated landmarks |
//! | `clompr`, `clomp` | kernel sums | the paper's: matching pursuit with Diracs or diagonal Gaussians |
//! | `auto` | both | cells where the sketch has them, else kernel |
//!
//! Nothing here can reach the rows: a decoder sees a [`Sketch`](crate::Sketch) and a seed. What several
//! fits of one sketch share (eigendecompositions, cells, calibrated landmarks) is computed once, in a
//! [`Context`]. A decoder is a type that implements `Decode` and a variant of [`Decoder`].

mod by_cells;
mod by_kernel;
mod by_pursuit;
mod calibrate;
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
mod likelihood;
mod list;
mod params;
mod profile;
mod refits;
mod region;
mod search;
mod stand_ins;
mod witness_points;

// Open to the command, the benchmarks and the tests; not part of the stable interface.
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
