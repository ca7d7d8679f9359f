//! Planning: makes a plan from rows, in the steps survey, frame, bandwidths and landmarks.
//!
//! The plan is deterministic for the same files, order and seed, for any number of threads.
//!
//! [`survey`](crate::planning::survey::survey) reads the rows, and [`distant_rows`] reads them
//! again for D²
//! landmarks. The steps between and after these readings are a [`Draft`], which reads no rows. If
//! the rows are on several machines, each machine surveys its own rows, the surveys are merged, and
//! the draft requests distant rows from all machines.

pub mod bandwidth;
mod choices;
mod choose;
mod distant;
mod draft;
mod framing;
mod holes;
pub mod landmarks;
mod make;
mod params;
mod placed;
mod private;
mod remarks;
mod report;
mod roles;
mod statistics;
pub mod survey;
mod valid;
mod witnesses;

pub use crate::planning::landmarks::count::{DEFAULT_LANDMARKS, default_landmarks};
pub use choices::{DatePart, FeatureKind, LandmarkCount, Missing, SampleRows, Scale};
#[doc(hidden)]
pub use distant::distant_rows;
#[doc(hidden)]
pub use draft::Draft;
#[doc(hidden)]
pub use make::survey_rows;
pub use make::{make_plan, plan_for};
pub use params::{
    CATEGORY_WEIGHT, DEFAULT_FREQUENCIES, DEFAULT_SAMPLE_ROWS, GivenLandmarks, PlanParams,
    SAMPLE_VALUES,
};
pub use private::PrivateParams;
pub use report::{LeverageReport, PlanReport, Planned};
#[doc(hidden)]
pub use roles::TableColumns;
pub use valid::PlanValid;
pub use witnesses::{DEFAULT_WITNESSES, default_witnesses};
