//! # nysketch
//!
//! Compress a table of any size, in one pass, into one small *sketch*, and learn from the sketch
//! alone. The sketch is the mean of a feature map over the rows, eq. (3) of "Mean Nyström
//! Embeddings for Adaptive Compressive Learning" (Chatalic et al., AISTATS 2022):
//!
//! ```text
//! s̃ = 1/n Σ_i Φ_m(x_i)                                                              (3)
//! π̂ = argmin_{p ∈ 𝔖} ‖A_m(p) − s̃‖₂ ,   A_m(p) = E_{x∼p} Φ_m(x)                       (6)
//! Φ_m(x) = K_m^{-1/2} [κ(x̃_1, x) … κ(x̃_m, x)]ᵀ ,   κ(x, y) = exp(−‖x − y‖²/2σ²)      (8)
//! ```
//!
//! Data flows one way:
//!
//! | | module | what it holds |
//! |---|---|---|
//! | rows | [`rows`] | [`Table`], or your own [`RowSource`] |
//! | → planning | [`planning`] | [`plan_for`] chooses landmarks, bandwidths and scales: [`PlanParams`] |
//! | → plan | [`plan`] | [`Plan`]: what is measured, the same for every part of the data |
//! | → sketching | [`sketching`], [`engine`] | [`Sketch::of`], [`Run`], [`Groups`]: one pass over the rows |
//! | → sketch | [`sketch`], [`sums`] | [`Sketch`]: exact sums; [`format`](mod@format) is its file |
//! | → decoder | [`decoder`] | [`fit`], [`Context`]: from a sketch to a model, without the rows |
//! | → model | [`model`] | [`Model`]: centres, a mixture or components |
//! | → predictor | [`predictor`] | [`Predictor`]: labels, distances and densities of rows |
//! | → metrics | [`metrics`] | risks of a model on rows, agreement with labels |
//!
//! Beside that way, [`drift`] compares two sketches, [`masking`] adds up those of parties that show them to nobody, [`theory`] says what the paper's theorems ask for,
//! [`synthetic`] makes rows, and [`file`](mod@file) writes files whole or not at all. Files of rows are read by the
//! crate `nysketch-tables`.
//!
//! A sketch is an exact sum of integers: sketches of parts merge, in any order, to the bytes of the sketch of
//! the whole, and rows can be taken out again.
//!
//! ```
//! use nysketch::metrics::Risks;
//! use nysketch::{FitParams, Mixture, PlanParams, Predictor, Sketch, SketchParams, Table, Task};
//! use nysketch::{fit, plan_for};
//! use std::sync::Arc;
//!
//! # fn main() -> nysketch::Result<()> {
//! // 3,000 rows from a mixture of 5 Gaussians in 4 dimensions.
//! let rows = Mixture::new(4, 5, 2.0, 7)?.rows(0, 3000).values;
//! let table = Table::unnamed(4, rows.clone())?;
//!
//! // What to measure: 100 landmarks and three bandwidths, chosen from the rows.
//! let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(100))?.0);
//!
//! // The sketch of the whole is the sketches of its parts added up, byte for byte.
//! let whole = Sketch::of(&plan, &table, SketchParams::default(), &())?;
//! let first = Table::unnamed(4, rows[..4000].to_vec())?;
//! let second = Table::unnamed(4, rows[4000..].to_vec())?;
//! let mut sum = Sketch::of(&plan, &second, SketchParams::default(), &())?;
//! sum.merge(&Sketch::of(&plan, &first, SketchParams::default(), &())?)?;
//! assert_eq!(sum.to_bytes(), whole.to_bytes());
//!
//! // Mean kernel values at the landmarks, for the middle bandwidth.
//! let means = whole.feature_means(1);
//! assert_eq!(means.len(), 100);
//! assert!(means.iter().all(|k| (0.0..=1.0).contains(k)));
//!
//! // Five centres from the sketch alone; four unit variances make a mean squared distance near 4.
//! let model = fit(&whole, &FitParams::new(Task::Kmeans, 5))?;
//! let mut risks = Risks::default();
//! risks.add(&Predictor::new(&model), &rows, &[]);
//! assert!((risks.evaluation(&model).mse - 4.0).abs() < 0.4);
//! # Ok(())
//! # }
//! ```
//!
//! Programs to copy from are in `examples/`: `table.rs`, `row_source.rs`, `parts.rs`, `drift.rs`, and `file.rs`
//! of `nysketch-tables`.

pub mod clusters;
pub mod columns;
pub mod decoder;
pub mod drift;
pub mod engine;
pub mod error;
pub mod file;
pub mod format;
pub mod inspect;
pub mod ledger;
pub mod masking;
pub mod metrics;
pub mod model;
pub mod plan;
pub mod planning;
pub mod predictor;
pub mod privacy;
pub mod recipe;
pub mod rows;
pub mod sketch;
pub mod sketching;
pub mod spectrum;
pub mod subtractions;
pub mod sums;
pub mod synthetic;
pub mod theory;
pub mod work;

mod bandwidth;
mod collect;
mod contains;
mod covariance;
mod densities;
mod devices;
mod digest;
mod folds;
mod gpus;
mod intervals;
mod names;
mod private;
mod profile;
mod report;
mod sphere;
mod student;
mod suitability;
mod task;
mod waves;
mod weight;
mod wire;
mod witnesses;

// Open to the command, the Python package and the benchmarks of this repository; not part of the
// stable interface.
#[doc(hidden)]
pub mod atom;
#[doc(hidden)]
pub mod feature_map;
#[doc(hidden)]
pub mod fixed;
#[doc(hidden)]
pub mod frame;
#[doc(hidden)]
pub mod kernel;
#[doc(hidden)]
pub mod kmeans;
#[doc(hidden)]
pub mod landmarks;
#[doc(hidden)]
pub mod linalg;
#[doc(hidden)]
pub mod optimize;
#[doc(hidden)]
pub mod parallel;
#[doc(hidden)]
pub mod points;
#[doc(hidden)]
pub mod random;
#[doc(hidden)]
pub mod sample;
#[doc(hidden)]
pub mod simd;
#[doc(hidden)]
pub mod survey;

pub use collect::Collect;
pub use contains::Contained;
pub use covariance::{Covariance, CovarianceKind, Factor, SymmetricMatrix};
pub use decoder::{
    Context, CrossValidation, Decoder, FitParams, HeldOutRisk, KnownCovariance, fit,
};
pub use densities::Densities;
pub use engine::{DeviceChoice, Engine, EngineKind};
pub use error::{Error, FormatError, Place, Result};
pub use feature_map::fourier::FrequencyLaw;
pub use folds::{FoldBy, FoldRule, Folds};
pub use frame::Frame;
pub use inspect::Inspection;
pub use intervals::{Interval, Intervals};
pub use kernel::Kernel;
pub use landmarks::Sampling;
pub use model::{Model, Shape};
pub use names::{Choice, Named};
pub use nysketch_cuda as cuda;
pub use plan::{Features, Plan};
pub use planning::{
    DatePart, FeatureKind, GivenLandmarks, LandmarkCount, Missing, PlanParams, PlanReport,
    PrivateParams, SampleRows, Scale, make_plan, plan_for,
};
pub use points::Points;
pub use predictor::Predictor;
pub use private::{People, Private};
pub use profile::Profile;
pub use recipe::{Category, Recipe, Step};
pub use report::{Likelihood, Report, Status};
pub use rows::{
    Block, CategoryColumn, Invalid, Progress, RowPart, RowSet, RowSource, RowStream, Table,
    Vocabulary,
};
#[doc(hidden)]
pub use simd::Instructions;
pub use sketch::Sketch;
pub use sketching::{Accumulator, GroupParams, Groups, Run, SketchParams};
pub use suitability::{ScaleGap, Suitability};
pub use sums::{Sum, Sums};
pub use synthetic::Mixture;
pub use task::Task;
pub use weight::{Rounding, WeightParams, Weighting};
pub use witnesses::Witnesses;
