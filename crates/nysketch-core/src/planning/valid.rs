//! Checks of planning parameters, and the checked parameters.

use super::choices::{FeatureKind, LandmarkCount, Missing, SampleRows};
use super::params::{
    DEFAULT_FREQUENCIES, DEFAULT_SAMPLE_ROWS, GivenLandmarks, PlanParams, SAMPLE_VALUES,
};
use super::witnesses::default_witnesses;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::kernel::fourier::FrequencyLaw;
use crate::kernel::ladder::check_bandwidths;
use crate::pass::engine::DeviceChoice;
use crate::plan::collect::Collect;
use crate::plan::sampling::Sampling;
use crate::plan::table::MAX_SUMS;
use crate::plan::{MAX_POINTS, NOT_PRIVATE, WITNESSES_NEED_CELLS, check_kernel};
use crate::planning::landmarks::count::default_landmarks;
use crate::planning::survey::SurveyParams;
use crate::recipe::vector_of;
use crate::rows::Invalid;
use crate::rows::weight::WeightParams;

/// The points at which features are measured.
#[derive(Debug, Clone)]
pub(super) enum Measurement {
    /// Landmarks chosen from the rows.
    Chosen { landmarks: Option<LandmarkCount>, sampling: Sampling },
    /// The paper's random number of landmarks for a given λ.
    Leverage(f64),
    /// Landmarks given as rows in the table's units.
    Given(GivenLandmarks),
    /// Random Fourier features.
    Fourier { frequencies: usize, law: FrequencyLaw },
}

/// Checked parameters. Planning accepts only these.
#[derive(Debug, Clone)]
pub struct PlanValid {
    pub(super) params: PlanParams,
    pub(super) measurement: Measurement,
    /// Largest number of retained rows.
    pub(super) witnesses: usize,
}

impl PlanParams {
    /// The weight of a column in squared distances, if it was set.
    pub(super) fn weight_of(&self, column: &str) -> Option<f64> {
        let mut weights = self.column_weights.iter();
        let found = weights.find(|(name, _)| name == column || vector_of(column) == Some(name));
        found.map(|(_, weight)| *weight)
    }

    /// Whether cells are kept, according to the parameters alone.
    fn keeps_cells(&self) -> bool {
        self.features == FeatureKind::Nystrom
            && self.collect.map_or(self.kernel == Kernel::Gaussian, |c| c.cells)
    }

    /// Whether the plan allows missing values, for a table with or without missing values.
    pub(super) fn keeps_missing(&self, missing: bool) -> bool {
        match self.missing {
            Missing::Auto => missing && self.keeps_cells(),
            Missing::Error => false,
            Missing::Partial => true,
        }
    }

    /// The first option that cannot be combined with the chosen feature map, if any, and the
    /// expected use. `given` states whether the user gives the landmarks.
    fn misplaced(&self, given: bool) -> Option<(&'static str, &'static str)> {
        let landmarks = if self.landmarks.is_some() {
            Some("`landmarks`")
        } else if self.sampling.is_some() {
            Some("`sampling`")
        } else {
            self.leverage_lambda.map(|_| "`leverage_lambda`")
        };
        match self.features {
            FeatureKind::Fourier | FeatureKind::AdaptedFourier => {
                let expected =
                    "left out with Fourier features, which have no landmarks; use `frequencies`";
                let misplaced = landmarks.or(given.then_some("`landmarks_from`"));
                misplaced.map(|name| (name, expected))
            }
            FeatureKind::Nystrom if self.frequencies.is_some() => {
                Some(("`frequencies`", "left out, or used with `features=fourier`"))
            }
            FeatureKind::Nystrom if given => {
                landmarks.map(|name| (name, "left out with `landmarks_from`"))
            }
            FeatureKind::Nystrom => None,
        }
    }

    /// Checks every parameter that can be checked without the data.
    pub fn check(mut self) -> Result<PlanValid> {
        let (measurement, witnesses) = self.settle(self.landmarks_from.is_some())?;
        let measurement = match self.landmarks_from.take() {
            Some(given) => Measurement::Given(given),
            None => measurement,
        };
        Ok(PlanValid { params: self, measurement, witnesses })
    }

    /// Checks the parameters before the table and a file of landmarks are opened. `given` states
    /// whether landmarks will be read from such a file. Returns whether rows with missing values
    /// are to be read from the table.
    pub fn reads_missing(&self, given: bool) -> Result<bool> {
        let mut params = self.clone();
        params.settle(given)?;
        Ok(params.surveys_missing())
    }

    /// Whether the survey keeps rows with missing values. Unless `missing` is set, skipping invalid
    /// rows also skips rows with missing values.
    fn surveys_missing(&self) -> bool {
        match self.missing {
            Missing::Auto => self.invalid == Invalid::Refuse && self.keeps_cells(),
            missing => missing == Missing::Partial,
        }
    }

    /// Checks the parameters and sets the defaults that depend on others. Returns the choice of the
    /// features and the largest number of retained rows.
    fn settle(&mut self, given: bool) -> Result<(Measurement, usize)> {
        if let Some((name, expected)) = self.misplaced(given) {
            return Err(Error::parameter(name, expected, "a value"));
        }
        self.settle_private()?;
        let witnesses = self.witness_count(given)?;
        let measurement = match self.features {
            FeatureKind::Fourier => self.fourier_features(FrequencyLaw::Normal)?,
            FeatureKind::AdaptedFourier => self.fourier_features(FrequencyLaw::Adapted)?,
            FeatureKind::Nystrom => self.landmark_choice()?,
        };
        self.check_others()?;
        Ok((measurement, witnesses))
    }

    /// Random Fourier features with the chosen number of frequencies.
    fn fourier_features(&self, law: FrequencyLaw) -> Result<Measurement> {
        let frequencies = self.frequencies.unwrap_or(DEFAULT_FREQUENCIES);
        if !(1..=MAX_POINTS).contains(&frequencies) {
            let expected = format!("between 1 and {MAX_POINTS}");
            return Err(Error::parameter("`frequencies`", expected, frequencies));
        }
        Ok(Measurement::Fourier { frequencies, law })
    }

    /// Checks the parameters that do not choose the features, and sorts the bandwidths.
    fn check_others(&mut self) -> Result<()> {
        if self.missing == Missing::Partial && !self.keeps_cells() {
            let expected = "used where cells are kept";
            return Err(Error::parameter("`missing=partial`", expected, "no cells"));
        }
        if let Some((name, weight)) =
            self.column_weights.iter().find(|(_, w)| !(1e-6..=1e6).contains(w))
        {
            let expected = format!("a weight of '{name}' between 1e-6 and 1e6");
            return Err(Error::parameter("`weight_column`", expected, weight));
        }
        if let Some(0) = self.clusters {
            return Err(Error::parameter("`clusters`", "at least 1", 0));
        }
        if self.sample_rows == SampleRows::Count(0) {
            return Err(Error::parameter("`sample_rows`", "at least 1, or 'all'", 0));
        }
        let landmarks = self.features == FeatureKind::Nystrom;
        if let Some(collect) = self.collect {
            collect.check(landmarks)?;
        }
        check_kernel(self.kernel, landmarks, self.collect.is_some_and(|c| c.cells))?;
        if let Some(bandwidths) = &mut self.bandwidths {
            bandwidths.sort_by(|a, b| b.total_cmp(a));
            check_bandwidths(bandwidths)?;
        }
        if let Some(w) = &self.weighting {
            w.check()?;
        }
        Ok(())
    }

    /// Refuses options that a private plan does not support, and sets defaults that suit it.
    fn settle_private(&mut self) -> Result<()> {
        let Some(private) = &self.private else { return Ok(()) };
        private.check()?;
        let refused = [
            ("`witnesses`", self.witnesses.is_some_and(|n| n > 0)),
            ("`weights`", self.weighting.is_some()),
            ("`missing=partial`", self.missing == Missing::Partial),
            ("`categorical`", !self.categorical.is_empty()),
            ("`dates`", !self.dates.is_empty()),
            ("`unit`", !self.unit.is_empty()),
        ];
        if let Some((name, _)) = refused.into_iter().find(|(_, is_set)| *is_set) {
            return Err(Error::parameter(name, NOT_PRIVATE, "it"));
        }
        self.named = private.columns();
        self.leave_out_ids = false;
        self.missing = Missing::Error;
        self.witnesses = Some(0);
        // Every kind of sum uses a part of the budget, so the default keeps only one kind.
        let cells = self.features == FeatureKind::Nystrom && self.kernel == Kernel::Gaussian;
        self.collect.get_or_insert(Collect { kernel: !cells, cells, moments: false });
        Ok(())
    }

    /// Largest number of retained rows.
    fn witness_count(&self, given: bool) -> Result<usize> {
        let none = if given {
            Some(
                "0 or left out with `landmarks_from`, which keeps rows of the data out of the plan",
            )
        } else {
            (!self.keeps_cells()).then_some(WITNESSES_NEED_CELLS)
        };
        match (self.witnesses, none, self.sample_rows) {
            (Some(n), _, _) if n > MAX_POINTS => {
                Err(Error::parameter("`witnesses`", format!("at most {MAX_POINTS}"), n))
            }
            (Some(n), Some(expected), _) if n > 0 => {
                Err(Error::parameter("`witnesses`", expected, n))
            }
            (Some(n), None, SampleRows::Count(rows)) if n > rows => {
                let expected = format!("at least the {n} witnesses, or 'all'");
                Err(Error::parameter("`sample_rows`", expected, rows))
            }
            (_, Some(_), _) => Ok(0),
            (Some(n), None, _) => Ok(n),
            (None, None, SampleRows::Count(rows)) => Ok(rows),
            (None, None, _) => Ok(usize::MAX),
        }
    }

    /// The choice of landmarks from the rows.
    fn landmark_choice(&self) -> Result<Measurement> {
        let sampling = match (self.sampling, self.leverage_lambda) {
            (Some(rule), _) => rule,
            (None, Some(_)) => Sampling::Leverage,
            (None, None) => Sampling::default(),
        };
        if self.landmarks == Some(LandmarkCount::Number(0)) {
            return Err(Error::parameter("`landmarks`", "at least 1", 0));
        }
        if sampling == Sampling::Given {
            return Err(Error::parameter("`sampling`", "a rule, or use `landmarks_from`", "given"));
        }
        if let Some(lambda) = self.leverage_lambda {
            if sampling != Sampling::Leverage {
                let expected = "used with `sampling=leverage`";
                return Err(Error::parameter("`leverage_lambda`", expected, sampling.name()));
            }
            if self.landmarks.is_some() {
                let expected = "left out with `leverage_lambda`, which makes their number random";
                return Err(Error::parameter("`landmarks`", expected, "both"));
            }
            if !(1e-13..1.0).contains(&lambda) {
                return Err(Error::parameter("`leverage_lambda`", "between 1e-13 and 1", lambda));
            }
            return Ok(Measurement::Leverage(lambda));
        }
        if let (Some(LandmarkCount::Number(m)), SampleRows::Count(n)) =
            (self.landmarks, self.sample_rows)
            && n < m
        {
            let expected = format!("at least the {m} landmarks, or 'all'");
            return Err(Error::parameter("`sample_rows`", expected, n));
        }
        Ok(Measurement::Chosen { landmarks: self.landmarks, sampling })
    }
}

impl PlanValid {
    /// Parameters of the survey of a table with `columns` columns, including categories.
    #[doc(hidden)]
    pub fn survey(&self, columns: usize) -> SurveyParams {
        let params = &self.params;
        let sample_rows = match params.sample_rows {
            SampleRows::All => usize::MAX,
            SampleRows::Count(n) => n,
            SampleRows::Default => self.default_sample(columns),
        };
        SurveyParams {
            sample_rows,
            seed: params.seed,
            invalid: params.invalid,
            partial: params.surveys_missing(),
            threads: params.threads,
        }
    }

    /// Default number of sampled rows.
    fn default_sample(&self, columns: usize) -> usize {
        let params = &self.params;
        let landmarks = match params.landmarks {
            Some(LandmarkCount::Number(m)) => m,
            _ => default_landmarks(params.clusters),
        };
        // Larger numbers are refused or reduced later, once the measured columns are known.
        let landmarks = landmarks.min(MAX_SUMS as usize / columns.max(1));
        let needed = landmarks.saturating_mul(2).max(self.witnesses_of(columns));
        let wanted = DEFAULT_SAMPLE_ROWS.max(landmarks.saturating_mul(4)).max(needed);
        wanted.min(needed.max(SAMPLE_VALUES / columns.max(1)))
    }

    /// Number of retained rows for this number of columns.
    pub(super) fn witnesses_of(&self, columns: usize) -> usize {
        match self.params.witnesses {
            Some(_) => self.witnesses,
            None => {
                self.witnesses.min(default_witnesses(columns, self.params.clusters)).min(MAX_POINTS)
            }
        }
    }

    /// The column of row weights.
    #[doc(hidden)]
    pub fn weighting(&self) -> Option<&WeightParams> {
        self.params.weighting.as_ref()
    }

    /// Number of threads.
    #[doc(hidden)]
    pub fn threads(&self) -> usize {
        self.params.threads
    }

    /// The device that compares rows with landmarks.
    pub(super) fn device(&self) -> DeviceChoice {
        self.params.device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_missing_values_are_read_as_in_the_survey() {
        let plain = PlanParams::default();
        let options = [
            (plain.clone(), true),
            (plain.clone().invalid(Invalid::Skip), false),
            (plain.clone().missing(Missing::Error), false),
            (plain.clone().missing(Missing::Partial).invalid(Invalid::Skip), true),
            (plain.clone().fourier(5), false),
            (plain.clone().kernel(Kernel::Laplace), false),
        ];
        for (params, expected) in options {
            assert_eq!(params.reads_missing(false).unwrap(), expected);
            assert_eq!(params.check().unwrap().survey(1).partial, expected);
        }
    }

    /// The rows of given landmarks are not needed to refuse options.
    #[test]
    fn options_are_checked_before_given_landmarks_are_read() {
        let uniform = PlanParams::default().sampling(Sampling::Uniform);
        let fourier = PlanParams::default().fourier(5);
        for params in [uniform, fourier] {
            assert!(params.reads_missing(false).is_ok());
            let error = params.reads_missing(true).unwrap_err().to_string();
            let given = params.landmarks_from("rows", vec![vec![1.0]]);
            assert_eq!(error, given.check().unwrap_err().to_string());
        }
    }
}
