//! The parameters of a fit.

use super::known::KnownCovariance;
use super::list::Decoder;
use crate::covariance::{Covariance, CovarianceKind};
use crate::model::task::Task;
use nysketch_core::error::{Error, Result};

/// The parameters of a fit: the task, k, the decoder and its settings.
///
/// ```
/// use nysketch::{Decoder, FitParams, Task};
/// let params = FitParams::new(Task::Kmeans, 10).decoder(Decoder::Clompr).seed(3);
/// assert_eq!(params.k, 10);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FitParams {
    /// The task.
    pub task: Task,
    /// Number of centres, mixture components or principal components.
    pub k: usize,
    /// The decoder.
    pub decoder: Decoder,
    /// The bandwidth σ² to decode, one of the sketch's; `None` chooses one.
    pub bandwidth: Option<f64>,
    /// Known covariance of every component.
    pub known_covariance: Option<KnownCovariance>,
    /// CL-OMPR: minimum distance between atoms, in the plan's coordinates (in standard deviations
    /// if the covariance is known).
    pub separation: Option<f64>,
    /// CL-OMPR: maximum distance of an atom from the plan's centre, in the unit of `separation`.
    pub radius: Option<f64>,
    /// CL-OMPR: number of pursuits, of which the one with the smallest objective is kept; `None`
    /// for five.
    pub replicates: Option<usize>,
    /// Mixtures: kind of covariance; `None` chooses full matrices if there are enough retained rows
    /// to estimate them, otherwise diagonals.
    pub covariance: Option<CovarianceKind>,
    /// Mixtures: minimum variance of a component, as a share of the column's variance.
    pub min_variance: f64,
    /// Mixtures: number of EM starts.
    pub restarts: usize,
    /// Mixtures: maximum number of EM steps.
    pub max_iterations: usize,
    /// Mixtures: EM stops when a step increases the mean log-likelihood by less than this, in nats.
    pub tolerance: f64,
    /// Decoder `cells`: the `k` centres or means to start from, in the table's units. If empty,
    /// starts are drawn at random.
    pub init: Vec<Vec<f64>>,
    /// Mixtures that start from [`init`](Self::init): weights of the components. If empty, the
    /// share of the rows nearest to each mean.
    pub init_weights: Vec<f64>,
    /// Mixtures that start from [`init`](Self::init): covariances of the components, in the table's
    /// units. If empty, the covariances of the rows nearest to each mean.
    pub init_covariances: Vec<Covariance>,
    /// Seed of the random generator.
    pub seed: u64,
    /// Number of threads; the model does not depend on it.
    pub threads: usize,
    /// CL-OMPR: the source of starts and bounds.
    pub(super) starts: StartsFrom,
}

/// The source of the starts and bounds of a pursuit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum StartsFrom {
    /// The rows in the plan, or the moments if it contains none.
    #[default]
    Rows,
    /// The moments, even if the plan contains rows.
    Moments,
}

/// Default of [`FitParams::replicates`].
pub const DEFAULT_REPLICATES: usize = 5;

/// Default of [`FitParams::min_variance`]: a hundredth of the column's standard deviation.
pub const DEFAULT_MIN_VARIANCE: f64 = 1e-4;
/// Default of [`FitParams::restarts`].
pub const DEFAULT_RESTARTS: usize = 36;
/// Default of [`FitParams::max_iterations`].
pub const DEFAULT_MAX_ITERATIONS: usize = 200;
/// Default of [`FitParams::tolerance`].
pub const DEFAULT_TOLERANCE: f64 = 1e-4;

impl FitParams {
    /// Returns the default parameters for a task and a k.
    pub fn new(task: Task, k: usize) -> Self {
        FitParams {
            task,
            k,
            decoder: Decoder::Auto,
            bandwidth: None,
            known_covariance: None,
            separation: None,
            radius: None,
            replicates: None,
            covariance: None,
            min_variance: DEFAULT_MIN_VARIANCE,
            restarts: DEFAULT_RESTARTS,
            max_iterations: DEFAULT_MAX_ITERATIONS,
            tolerance: DEFAULT_TOLERANCE,
            init: Vec::new(),
            init_weights: Vec::new(),
            init_covariances: Vec::new(),
            seed: 0,
            threads: 1,
            starts: StartsFrom::Rows,
        }
    }

    /// Sets the decoder.
    #[must_use]
    pub fn decoder(mut self, decoder: Decoder) -> Self {
        self.decoder = decoder;
        self
    }

    /// Sets the bandwidth to decode; `None` chooses one.
    #[must_use]
    pub fn bandwidth(mut self, sigma2: Option<f64>) -> Self {
        self.bandwidth = sigma2;
        self
    }

    /// Sets the known covariance of every component.
    #[must_use]
    pub fn known_covariance(mut self, known: Option<KnownCovariance>) -> Self {
        self.known_covariance = known;
        self
    }

    /// Requires atoms to be at least `separation` apart and at most `radius` from the plan's
    /// centre.
    #[must_use]
    pub fn constraints(mut self, separation: Option<f64>, radius: Option<f64>) -> Self {
        (self.separation, self.radius) = (separation, radius);
        self
    }

    /// Sets the number of pursuits to choose from; `None` for the default.
    #[must_use]
    pub fn replicates(mut self, replicates: impl Into<Option<usize>>) -> Self {
        self.replicates = replicates.into();
        self
    }

    /// Makes CL-OMPR derive its starts and bounds from the moments alone, so that a plan that
    /// contains rows has no advantage over one that contains none.
    #[doc(hidden)]
    #[must_use]
    pub fn blind(mut self) -> Self {
        self.starts = StartsFrom::Moments;
        self
    }

    /// Sets the kind of covariance; `None` chooses full matrices if there are enough retained rows
    /// to estimate them.
    #[must_use]
    pub fn covariance(mut self, kind: impl Into<Option<CovarianceKind>>) -> Self {
        self.covariance = kind.into();
        self
    }

    /// Sets the minimum variance of a component as a share of the column's; `None` for the default.
    #[must_use]
    pub fn min_variance(mut self, share: impl Into<Option<f64>>) -> Self {
        self.min_variance = share.into().unwrap_or(DEFAULT_MIN_VARIANCE);
        self
    }

    /// Sets the number of EM starts; `None` for the default.
    #[must_use]
    pub fn restarts(mut self, restarts: impl Into<Option<usize>>) -> Self {
        self.restarts = restarts.into().unwrap_or(DEFAULT_RESTARTS);
        self
    }

    /// Sets the maximum number of EM steps; `None` for the default.
    #[must_use]
    pub fn max_iterations(mut self, steps: impl Into<Option<usize>>) -> Self {
        self.max_iterations = steps.into().unwrap_or(DEFAULT_MAX_ITERATIONS);
        self
    }

    /// Sets the increase of the mean log-likelihood per step below which EM stops, in nats; `None`
    /// for the default.
    #[must_use]
    pub fn tolerance(mut self, nats: impl Into<Option<f64>>) -> Self {
        self.tolerance = nats.into().unwrap_or(DEFAULT_TOLERANCE);
        self
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the centres or means to start from, in the table's units.
    #[must_use]
    pub fn init(mut self, centres: Vec<Vec<f64>>) -> Self {
        self.init = centres;
        self
    }

    /// Sets the component weights to start from, in addition to the means.
    #[must_use]
    pub fn init_weights(mut self, weights: Vec<f64>) -> Self {
        self.init_weights = weights;
        self
    }

    /// Sets the covariances to start from, in the table's units, in addition to the means.
    #[must_use]
    pub fn init_covariances(mut self, covariances: Vec<Covariance>) -> Self {
        self.init_covariances = covariances;
        self
    }

    /// Sets k.
    #[must_use]
    pub fn k(mut self, k: usize) -> Self {
        self.k = k;
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Checks every parameter that can be checked without a sketch.
    pub(crate) fn check(&self) -> Result<()> {
        if self.k == 0 {
            return Err(Error::parameter("`k`", "at least 1", self.k));
        }
        let known_variance = match self.known_covariance {
            Some(KnownCovariance::Variance(variance)) => Some(variance),
            _ => None,
        };
        for (name, value) in [
            ("`known_covariance`", known_variance),
            ("`separation`", self.separation),
            ("`radius`", self.radius),
        ] {
            if let Some(got) = value.filter(|v| !(*v > 0.0 && v.is_finite())) {
                return Err(Error::parameter(name, "a positive number", got));
            }
        }
        let pursuit = matches!(self.decoder, Decoder::Clompr | Decoder::Clomp);
        for (name, value) in [("`separation`", self.separation), ("`radius`", self.radius)] {
            if value.is_some() && !pursuit {
                let expected = "used with `decoder=clompr` or `decoder=clomp`";
                return Err(Error::parameter(name, expected, self.decoder.name()));
            }
        }
        if let Some(got) = self.replicates.filter(|n| !(1..=10_000).contains(n)) {
            return Err(Error::parameter("`replicates`", "between 1 and 10000", got));
        }
        if !self.init.is_empty() {
            let cells = matches!(self.decoder, Decoder::Auto | Decoder::Cells);
            if self.task == Task::Pca || !cells {
                let expected = "used for kmeans, kmedians and gmm with `decoder=cells`";
                return Err(Error::parameter("`init`", expected, self.decoder.name()));
            }
            if self.init.len() != self.k {
                let expected = format!("{} centres, as `k` says", self.k);
                return Err(Error::parameter("`init`", expected, self.init.len()));
            }
        }
        let mixture = self.task == Task::Gmm;
        for (name, is_set) in [
            ("`known_covariance`", self.known_covariance.is_some()),
            ("`covariance`", self.covariance.is_some()),
            ("`init_weights`", !self.init_weights.is_empty()),
            ("`init_covariances`", !self.init_covariances.is_empty()),
        ] {
            if is_set && !mixture {
                return Err(Error::parameter(name, "used with the task gmm", self.task));
            }
        }
        self.check_init_of_mixture()?;
        if self.known_covariance.is_some() && self.covariance.is_some() {
            let expected = "left out with `known_covariance`";
            return Err(Error::parameter("`covariance`", expected, "both"));
        }
        if !(self.min_variance > 0.0 && self.min_variance < 1.0) {
            let expected = "a share of the column's variance, above 0 and below 1";
            return Err(Error::parameter("`min_variance`", expected, self.min_variance));
        }
        if !(self.tolerance >= 0.0) {
            return Err(Error::parameter("`tolerance`", "0 or more", self.tolerance));
        }
        for (name, count) in
            [("`restarts`", self.restarts), ("`max_iterations`", self.max_iterations)]
        {
            if !(1..=1_000_000).contains(&count) {
                return Err(Error::parameter(name, "between 1 and 1000000", count));
            }
        }
        Ok(())
    }

    /// Checks the weights and covariances from which a mixture starts.
    fn check_init_of_mixture(&self) -> Result<()> {
        for (name, count) in [
            ("`init_weights`", self.init_weights.len()),
            ("`init_covariances`", self.init_covariances.len()),
        ] {
            if count > 0 && self.init.is_empty() {
                return Err(Error::parameter(name, "used with `init`, the means", "no means"));
            }
            if count > 0 && count != self.k {
                let expected = format!("one for each of {} components", self.k);
                return Err(Error::parameter(name, expected, count));
            }
        }
        if let Some(got) = self.init_weights.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
            return Err(Error::parameter("`init_weights`", "positive numbers", got));
        }
        Ok(())
    }

    /// Returns the parameters that only the EM search on points uses and that differ from their
    /// defaults.
    pub(super) fn of_search(&self) -> Vec<(&'static str, String)> {
        let mut changed = Vec::new();
        if self.min_variance != DEFAULT_MIN_VARIANCE {
            changed.push(("`min_variance`", self.min_variance.to_string()));
        }
        if self.restarts != DEFAULT_RESTARTS {
            changed.push(("`restarts`", self.restarts.to_string()));
        }
        if self.max_iterations != DEFAULT_MAX_ITERATIONS {
            changed.push(("`max_iterations`", self.max_iterations.to_string()));
        }
        if self.tolerance != DEFAULT_TOLERANCE {
            changed.push(("`tolerance`", self.tolerance.to_string()));
        }
        changed
    }
}
