//! # nysketch
//!
//! Compresses a table of any size, in one pass, into one small *sketch*, and learns from the sketch
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
//! | | module | contents |
//! |---|---|---|
//! | rows | [`rows`] | [`Table`], or your own [`RowSource`] |
//! | → planning | [`planning`] | [`plan_for`] chooses landmarks and bandwidths: [`PlanParams`] |
//! | → plan | [`plan`] | [`Plan`]: what to measure, the same for every part of the data |
//! | → sketching | [`sketching`], [`engine`] | [`Sketch::of`], [`Run`], [`Groups`]: one pass |
//! | → sketch | [`sketch`], [`sums`] | [`Sketch`]: exact sums; [`format`](mod@format) is its file |
//! | → decoder | [`decoder`] | [`fit`], [`Context`]: from a sketch to a model, without the rows |
//! | → model | [`model`] | [`Model`]: centres, a mixture or components |
//! | → predictor | [`predictor`] | [`Predictor`]: labels, distances and densities of rows |
//! | → metrics | [`metrics`] | risks of a model on rows, agreement with labels |
//!
//! Outside this path, [`drift`] compares two sketches, [`masking`] adds up sketches that each party
//! keeps secret (secure aggregation), [`theory`] evaluates the requirements of the paper's
//! theorems, [`synthetic`] generates rows, and [`file`](mod@file) writes files atomically. The
//! crate `nysketch-tables` reads files of rows.
//!
//! A sketch is an exact sum of integers: sketches of parts merge, in any order, to the bytes of the
//! sketch of the whole, and rows can be removed again.
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
//! // Merging the sketches of the parts gives the sketch of the whole, byte for byte.
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
//! // Five centres from the sketch alone. Four unit variances give a mean squared distance near 4.
//! let model = fit(&whole, &FitParams::new(Task::Kmeans, 5))?;
//! let mut risks = Risks::default();
//! risks.add(&Predictor::new(&model), &rows, &[]);
//! assert!((risks.evaluation(&model).mse - 4.0).abs() < 0.4);
//! # Ok(())
//! # }
//! ```
//!
//! The programs in `examples/` are meant to be copied: `table.rs`, `row_source.rs`, `parts.rs`,
//! `drift.rs`, and `file.rs` of `nysketch-tables`.

pub mod format;
pub mod inspect;

pub use nysketch_core::format::file;
pub use nysketch_core::numeric::work;
pub use nysketch_core::pass as sketching;
pub use nysketch_core::pass::engine;
pub use nysketch_core::rows::synthetic;
pub use nysketch_core::sketch::{aspects, columns};
pub use nysketch_core::{error, plan, planning, recipe, rows, sketch, sums};
pub use nysketch_drift as drift;
pub use nysketch_learn::decoder::spectrum;
pub use nysketch_learn::model::clusters;
pub use nysketch_learn::{decoder, metrics, model, predictor, theory};
pub use nysketch_privacy::{dp as privacy, masking};

pub use inspect::Inspection;
pub use nysketch_core::{
    Accumulator, Block, Category, CategoryColumn, Choice, Collect, Contained, DatePart,
    DeviceChoice, Engine, EngineKind, Error, FeatureKind, Features, FoldBy, FoldRule, Folds,
    FormatError, Frame, FrequencyLaw, GivenLandmarks, GroupParams, Groups, Invalid, Kernel,
    LandmarkCount, Missing, Mixture, Named, People, Place, Plan, PlanParams, PlanReport, Points,
    Private, PrivateParams, Profile, Progress, Recipe, Result, Rounding, RowPart, RowSet,
    RowSource, RowStream, Run, SampleRows, Sampling, Scale, ScaleGap, Sketch, SketchParams, Step,
    Suitability, Sum, Sums, Table, Vocabulary, WeightParams, Weighting, Witnesses, make_plan,
    plan_for,
};
pub use nysketch_learn::{
    Context, Covariance, CovarianceKind, CrossValidation, Decoder, Densities, Factor, FitParams,
    HeldOutRisk, Interval, Intervals, KnownCovariance, Likelihood, Model, Predictor, Report, Shape,
    Status, SymmetricMatrix, Task, fit,
};
