//! Making a plan from the rows: survey, frame, bandwidths, landmarks.
//!
//! Deterministic for the same files, order and seed, whatever the number of threads.
//!
//! Rows are read by [`survey`](crate::planning::survey::survey) and, for D² landmarks, by [`distant_rows`]; what is done between and
//! after is a [`Draft`], which sees no rows. Where the rows lie on many machines, each surveys its own, what they found
//! is merged, and the draft goes back to them for the distant rows.

pub mod bandwidth;
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
pub mod survey;
mod witnesses;

pub use crate::planning::landmarks::count::{DEFAULT_LANDMARKS, default_landmarks};
#[doc(hidden)]
pub use distant::distant_rows;
#[doc(hidden)]
pub use draft::Draft;
#[doc(hidden)]
pub use make::survey_rows;
pub use make::{make_plan, plan_for};
pub use params::{
    CATEGORY_WEIGHT, DEFAULT_FREQUENCIES, DEFAULT_SAMPLE_ROWS, DEFAULT_WITNESSES, DatePart,
    FeatureKind, GivenLandmarks, LandmarkCount, Missing, PlanParams, PlanValid, SAMPLE_VALUES,
    SampleRows, Scale, default_witnesses,
};
pub use private::PrivateParams;
pub use report::{LeverageReport, PlanReport};
#[doc(hidden)]
pub use roles::TableColumns;
