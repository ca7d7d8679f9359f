//! From rows to sketches: everything that needs neither a decoder nor noise.
//!
//! Data flows one way, and a folder imports only folders above it (`xtask/folders.toml`):
//!
//! | folder | contents |
//! |---|---|
//! | [`error`] | every refusal as a value, and closed sets of choices by name |
//! | [`numeric`] | fixed point, points, hashes, random numbers, linear algebra |
//! | [`rows`] | blocks and sources of rows, weights, priorities of a sample |
//! | [`recipe`] | preprocessing: from the columns of a table to coordinates |
//! | [`kernel`] | kernels, and the vectorised distances of the pass |
//! | [`plan`] | what is measured: landmarks, frame, bandwidths, bounds |
//! | [`kmeans`] | k-means and k-medians on weighted points |
//! | [`sums`] | the exact sums of a sketch |
//! | [`sketch`] | a plan and its sums: merging, subtracting, folds |
//! | [`pass`] | one pass over the rows, on processors or a GPU |
//! | [`mod@format`] | plans and sketches as files |
//! | [`planning`] | choosing a plan from a sample of the rows |
//!
//! Users depend on the crate `nysketch`, which re-exports what is stable here. Without the feature
//! `planning` this crate sketches with a given plan, merges, subtracts and reads and writes files,
//! and has no linear algebra.

#![cfg_attr(not(feature = "planning"), allow(dead_code, reason = "planning uses the rest"))]

pub mod error;
pub mod format;
pub mod kernel;
pub mod kmeans;
pub mod numeric;
pub mod pass;
pub mod plan;
#[cfg(feature = "planning")]
pub mod planning;
pub mod recipe;
pub mod rows;
pub mod sketch;
pub mod sums;

pub use error::names::{Choice, Named};
pub use error::{Error, FormatError, Place, Result};
pub use kernel::Kernel;
pub use kernel::fourier::FrequencyLaw;
pub use numeric::points::Points;
pub use pass::engine::{DeviceChoice, Engine, EngineKind};
pub use pass::{Accumulator, GroupParams, Groups, Run, SketchParams};
pub use plan::collect::Collect;
pub use plan::frame::Frame;
pub use plan::private::{People, Private};
pub use plan::sampling::Sampling;
pub use plan::witnesses::Witnesses;
pub use plan::{Features, Plan};
#[cfg(feature = "planning")]
pub use planning::{
    DatePart, FeatureKind, GivenLandmarks, LandmarkCount, Missing, PlanParams, PlanReport, Planned,
    PrivateParams, SampleRows, Scale, make_plan, plan_for,
};
pub use recipe::{Category, Recipe, Step};
pub use rows::synthetic::Mixture;
pub use rows::weight::{Rounding, WeightParams, Weighting};
pub use rows::{
    Block, CategoryColumn, Invalid, Progress, RowPart, RowSet, RowSource, RowStream, Table,
    Vocabulary,
};
pub use sketch::Sketch;
pub use sketch::contains::Contained;
pub use sketch::folds::{FoldBy, FoldRule, Folds};
pub use sketch::profile::Profile;
pub use sketch::suitability::{ScaleGap, Suitability};
pub use sums::{Sum, Sums};
