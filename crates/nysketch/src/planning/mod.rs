//! Making a plan from the rows: survey, frame, bandwidths, landmarks.
//!
//! Deterministic for the same files, order and seed, whatever the number of threads.
//!
//! Rows are read by [`survey`] and, for D² landmarks, by [`far_rows`]; what is done between and
//! after is a [`Draft`], which sees no rows. Where the rows lie on many machines, each surveys its own, what they found
//! is merged, and the draft goes back to them for the far rows.

mod draft;
mod far;

pub use draft::Draft;
pub use far::far_rows;

use crate::error::{Error, Result};
use crate::kernel::ladder::check_bandwidths;
use crate::landmarks::Sampling;
use crate::plan::{Collect, MAX_POINTS, Plan};
use crate::rows::{Invalid, Progress, RowSource};
use crate::survey::{SurveyParams, survey};
use crate::weight::Weighting;

/// Landmarks where the user names no number.
pub const DEFAULT_LANDMARKS: usize = 400;
/// Frequencies where the user names no number: as many features as [`DEFAULT_LANDMARKS`].
pub const DEFAULT_FREQUENCIES: usize = 200;
/// Rows sampled where the user names no number.
pub const DEFAULT_SAMPLE_ROWS: usize = 20_000;

/// What to measure at.
#[derive(Debug, Clone)]
pub enum FeatureParams {
    /// Landmarks chosen from the rows. `landmarks: None` is [`DEFAULT_LANDMARKS`] or as many as
    /// there are different rows.
    Nystrom {
        /// How many.
        landmarks: Option<usize>,
        /// By which rule.
        sampling: Sampling,
        /// λ of leverage sampling in the paper's way, where the number of landmarks is random.
        leverage_lambda: Option<f64>,
    },
    /// Landmarks given as rows in the table's units.
    Given(GivenLandmarks),
    /// Random Fourier features.
    Fourier {
        /// m′, half the number of features.
        frequencies: usize,
    },
}

/// What a number of landmarks is chosen for.
#[derive(Debug, Clone, Copy, Default)]
pub struct AutoLandmarks {
    /// Clusters that are to be learned, if known.
    pub clusters: Option<usize>,
}

/// Landmarks from the user.
#[derive(Debug, Clone)]
pub struct GivenLandmarks {
    /// Where they come from, for messages.
    pub name: String,
    /// Rows in the table's units.
    pub rows: Vec<Vec<f64>>,
}

/// How columns are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// As they are.
    #[default]
    None,
    /// Divided by their standard deviation.
    Standard,
}

/// How many rows landmarks are chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleRows {
    /// A uniform sample of so many; by default [`DEFAULT_SAMPLE_ROWS`], and never fewer than four
    /// times the landmarks.
    Default,
    /// A uniform sample of so many.
    Count(usize),
    /// All of them, in memory.
    All,
}

/// Everything that can be chosen about a plan.
#[derive(Debug, Clone)]
pub struct PlanParams {
    /// What to measure at.
    pub features: FeatureParams,
    /// σ² of each rung, or `None` to choose them from the sample.
    pub bandwidths: Option<Vec<f64>>,
    /// How columns are scaled.
    pub scale: Scale,
    /// Rows that landmarks are chosen from.
    pub sample_rows: SampleRows,
    /// Choose the number of landmarks from the data where none is given.
    pub auto_landmarks: Option<AutoLandmarks>,
    /// Which sums to keep, or `None` for the default.
    pub collect: Option<Collect>,
    /// The column of row weights.
    pub weighting: Option<Weighting>,
    /// Seed of everything random.
    pub seed: u64,
    /// What to do with invalid rows.
    pub invalid: Invalid,
    /// Threads to use.
    pub threads: usize,
}

impl Default for PlanParams {
    fn default() -> Self {
        PlanParams {
            features: FeatureParams::Nystrom {
                landmarks: None,
                sampling: Sampling::default(),
                leverage_lambda: None,
            },
            bandwidths: None,
            scale: Scale::default(),
            sample_rows: SampleRows::Default,
            auto_landmarks: None,
            collect: None,
            weighting: None,
            seed: 0,
            invalid: Invalid::default(),
            threads: 1,
        }
    }
}

/// What happened while planning, for people.
#[derive(Debug, Clone, Default)]
pub struct PlanReport {
    /// Rows read.
    pub rows: u64,
    /// Rows skipped as invalid.
    pub skipped: u64,
    /// Rows that landmarks were chosen from.
    pub sample_rows: usize,
    /// λ, the effective dimension N(λ) and the measured accuracy z of leverage sampling.
    pub leverage: Option<LeverageReport>,
    /// Remarks that a user should read.
    pub notes: Vec<String>,
    /// What makes results worse than they look.
    pub warnings: Vec<String>,
}

/// What leverage sampling did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeverageReport {
    /// λ of eq. (9), over the sample.
    pub lambda: f64,
    /// Estimate of N(λ).
    pub effective_dimension: f64,
    /// z of eq. (10): BLESS at this λ against exact scores, both on `accuracy_rows` rows of the
    /// sample, since exact scores of all of it would cost too much.
    pub accuracy: f64,
    /// Rows it was measured on.
    pub accuracy_rows: usize,
}

/// Checked parameters: only these can run.
#[derive(Debug, Clone)]
pub struct PlanValid(PlanParams);

impl PlanParams {
    /// Checks every parameter that can be checked without the data.
    pub fn check(self) -> Result<PlanValid> {
        if let FeatureParams::Nystrom { landmarks, sampling, leverage_lambda } = &self.features {
            if landmarks == &Some(0) {
                return Err(Error::parameter("`landmarks`", "at least 1", 0));
            }
            if *sampling == Sampling::Given {
                return Err(Error::parameter(
                    "`sampling`",
                    "a rule, or use `landmarks_from`",
                    "given",
                ));
            }
            if let Some(lambda) = leverage_lambda {
                if *sampling != Sampling::Leverage {
                    return Err(Error::parameter(
                        "`leverage_lambda`",
                        "used with `sampling=leverage`",
                        sampling.name(),
                    ));
                }
                if landmarks.is_some() {
                    return Err(Error::parameter(
                        "`landmarks`",
                        "left out with `leverage_lambda`, which makes their number random",
                        "both",
                    ));
                }
                if !(*lambda >= 1e-13 && *lambda < 1.0) {
                    return Err(Error::parameter(
                        "`leverage_lambda`",
                        "between 1e-13 and 1",
                        lambda,
                    ));
                }
            }
            if let (Some(m), SampleRows::Count(n)) = (landmarks, self.sample_rows)
                && n < *m
            {
                return Err(Error::parameter(
                    "`sample_rows`",
                    format!("at least the {m} landmarks, or 'all'"),
                    n,
                ));
            }
        }
        if let FeatureParams::Fourier { frequencies } = self.features
            && !(1..=MAX_POINTS).contains(&frequencies)
        {
            let expected = format!("between 1 and {MAX_POINTS}");
            return Err(Error::parameter("`frequencies`", expected, frequencies));
        }
        if self.sample_rows == SampleRows::Count(0) {
            return Err(Error::parameter("`sample_rows`", "at least 1, or 'all'", 0));
        }
        if let Some(collect) = self.collect {
            collect.check(!matches!(self.features, FeatureParams::Fourier { .. }))?;
        }
        if let Some(b) = &self.bandwidths {
            check_bandwidths(b)?;
        }
        if let Some(w) = &self.weighting {
            w.check()?;
        }
        Ok(PlanValid(self))
    }
}

impl PlanValid {
    /// How to survey the rows.
    pub fn survey(&self) -> SurveyParams {
        let params = &self.0;
        let sample_rows = match params.sample_rows {
            SampleRows::All => usize::MAX,
            SampleRows::Count(n) => n,
            SampleRows::Default => {
                let landmarks = match &params.features {
                    FeatureParams::Nystrom { landmarks, .. } => landmarks.unwrap_or(0),
                    _ => 0,
                };
                DEFAULT_SAMPLE_ROWS.max(landmarks.saturating_mul(4))
            }
        };
        SurveyParams {
            sample_rows,
            seed: params.seed,
            invalid: params.invalid,
            threads: params.threads,
        }
    }

    /// The column of row weights.
    pub fn weighting(&self) -> Option<&Weighting> {
        self.0.weighting.as_ref()
    }
}

/// Makes a plan. Reads the source once, and once more for D² landmarks on data larger than the
/// sample.
pub fn make_plan(
    source: &dyn RowSource,
    params: &PlanValid,
    progress: &dyn Progress,
) -> Result<(Plan, PlanReport)> {
    let found = survey(source, params.weighting(), params.survey(), progress)?;
    let draft = Draft::new(source.columns(), found, params)?;
    let far = match draft.wants_far_rows() {
        Some((first, count)) => Some(far_rows(&first, count, source, params.0.threads, progress)?),
        None => None,
    };
    draft.finish(far)
}
