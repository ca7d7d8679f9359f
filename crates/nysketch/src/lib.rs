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
//! Data flows one way: [`rows`] → [`planning`] → [`plan`] → [`sketch`] → [`decoder`] → [`model`] →
//! [`metrics`]. A sketch is an exact sum of integers ([`fixed`]): sketches of parts merge, in any
//! order, to the bytes of the sketch of the whole, and rows can be taken out again.
//!
//! ```
//! use nysketch::metrics::Risks;
//! use nysketch::{fit, plan_for, FitParams, Instructions, Mixture, PlanParams, Predictor};
//! use nysketch::{Sketch, SketchParams, Table, Task};
//! use std::sync::Arc;
//!
//! # fn main() -> nysketch::Result<()> {
//! // 3,000 rows from a mixture of 5 Gaussians in 4 dimensions.
//! let rows = Mixture::new(4, 5, 2.0, 7)?.rows(0, 3000).values;
//! let table = Table::unnamed(4, rows.clone())?;
//!
//! // What to measure: 100 landmarks and three bandwidths, chosen from the rows.
//! let params = PlanParams::default().landmarks(100);
//! let (plan, _report) = plan_for(&table, params)?;
//! let plan = Arc::new(plan);
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

pub mod atom;
pub mod bandwidth;
pub mod collect;
pub mod decoder;
pub mod drift;
pub mod engine;
pub mod error;
pub mod feature_map;
pub mod file;
pub mod fixed;
pub mod format;
pub mod frame;
pub mod inspect;
pub mod kernel;
pub mod landmarks;
pub mod linalg;
pub mod measure;
pub mod metrics;
pub mod model;
pub mod names;
pub mod optimize;
pub mod plan;
pub mod planning;
pub mod points;
pub mod predictor;
pub mod random;
pub mod report;
pub mod rows;
pub mod sample;
pub mod simd;
pub mod sketch;
pub mod sketching;
pub mod spectrum;
pub mod sums;
pub mod survey;
pub mod synthetic;
pub mod task;
pub mod theory;
pub mod weight;
mod words;

pub use collect::Collect;
pub use decoder::{Context, Decoder, FitParams, fit};
pub use engine::EngineKind;
pub use error::{Error, FormatError, Result};
pub use inspect::Inspection;
pub use kernel::Kernel;
pub use landmarks::Sampling;
pub use model::Model;
pub use names::{Choice, Named};
pub use plan::{Features, Plan};
pub use planning::{
    FeatureKind, GivenLandmarks, LandmarkCount, PlanParams, PlanReport, SampleRows, Scale,
    make_plan, plan_for,
};
pub use predictor::Predictor;
pub use report::{Report, Status};
pub use rows::{Block, Invalid, Progress, RowPart, RowSet, RowSource, RowStream, Table};
pub use simd::Instructions;
pub use sketch::Sketch;
pub use sketching::{Accumulator, GroupParams, Groups, Run, SketchParams};
pub use sums::{Sum, Sums};
pub use synthetic::Mixture;
pub use task::Task;
pub use weight::Weighting;
