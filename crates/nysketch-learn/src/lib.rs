//! Learning from sketches: decoders, models, predictions and their quality.
//!
//! | folder | contents |
//! |---|---|
//! | [`atom`] | mean embeddings of the components of a mixture, with derivatives |
//! | [`covariance`] | full, tied, diagonal and spherical covariances |
//! | [`optimize`] | bounded quasi-Newton and Levenberg-Marquardt steps |
//! | [`decoder`] | from a sketch to a model: by cells, by kernel sums, by pursuit |
//! | [`model`] | what was learned, its report, its intervals and its file |
//! | [`predictor`] | labels, distances and log densities of blocks of rows |
//! | [`metrics`] | risks of a model on rows, agreement with labels |
//! | [`theory`] | the quantities of the paper's section 4 |
//!
//! A decoder imports no rows: what it learns, it learns from the sketch alone. Users depend on the
//! crate `nysketch`, which re-exports what is stable here.

pub mod atom;
pub mod covariance;
pub mod decoder;
pub mod metrics;
pub mod model;
pub mod optimize;
pub mod predictor;
pub mod theory;

pub use covariance::{Covariance, CovarianceKind, Factor, SymmetricMatrix};
pub use decoder::{
    Context, CrossValidation, Decoder, FitParams, HeldOutRisk, KnownCovariance, fit,
};
pub use model::densities::Densities;
pub use model::intervals::{Interval, Intervals};
pub use model::report::{Likelihood, Report, Status};
pub use model::task::Task;
pub use model::{Model, Shape};
pub use predictor::Predictor;
