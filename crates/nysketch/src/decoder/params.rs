//! What to fit and how.

use super::known::KnownCovariance;
use super::list::Decoder;
use crate::covariance::{Covariance, CovarianceKind};
use crate::error::{Error, Result};
use crate::task::Task;

/// What to fit and how.
///
/// ```
/// use nysketch::{Decoder, FitParams, Task};
/// let params = FitParams::new(Task::Kmeans, 10).decoder(Decoder::Clompr).seed(3);
/// assert_eq!(params.k, 10);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FitParams {
    /// What to learn.
    pub task: Task,
    /// Number of centres, components of the mixture, or principal components.
    pub k: usize,
    /// Which decoder.
    pub decoder: Decoder,
    /// Which of the sketch's bandwidths; `None` chooses.
    pub bandwidth: Option<f64>,
    /// Known covariance of every component.
    pub known_covariance: Option<KnownCovariance>,
    /// CL-OMPR: least distance between atoms, in the plan's coordinates (deviations where the
    /// covariance is known).
    pub separation: Option<f64>,
    /// CL-OMPR: largest distance of an atom from the plan's centre, likewise.
    pub radius: Option<f64>,
    /// CL-OMPR: pursuits to run, of which the one with the least objective is kept; `None` for five.
    pub replicates: Option<usize>,
    /// Mixtures: which covariances; `None` for full ones where witness rows carry them, else diagonals.
    pub covariance: Option<CovarianceKind>,
    /// Mixtures: the least variance of a component, as a share of the column's.
    pub min_variance: f64,
    /// Mixtures: starts of EM.
    pub restarts: usize,
    /// Mixtures: most steps of EM.
    pub max_iterations: usize,
    /// Mixtures: EM ends where the mean log-likelihood grows by less than this in a step, in nats.
    pub tolerance: f64,
    /// From cells: the only centres or means to start from, `k` of them in the table's units. Empty for starts that
    /// are drawn.
    pub init: Vec<Vec<f64>>,
    /// Mixtures that start from [`init`](Self::init): weights of the components. Empty for the shares of the rows
    /// that are nearest to the means.
    pub init_weights: Vec<f64>,
    /// Mixtures that start from [`init`](Self::init): covariances of the components, in the table's units. Empty for
    /// those of the rows that are nearest to the means.
    pub init_covariances: Vec<Covariance>,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads to use; the model does not depend on them.
    pub threads: usize,
    /// From cells: go on from the centres at hand, and look for no others, until nothing moves.
    pub(super) standstill: bool,
    /// CL-OMPR: start as if the plan held no rows.
    pub(super) blind: bool,
}

/// [`FitParams::replicates`] unless told otherwise.
pub const DEFAULT_REPLICATES: usize = 5;

/// [`FitParams::min_variance`] unless told otherwise: a hundredth of the column's standard deviation.
pub const DEFAULT_MIN_VARIANCE: f64 = 1e-4;
/// [`FitParams::restarts`] unless told otherwise.
pub const DEFAULT_RESTARTS: usize = 36;
/// [`FitParams::max_iterations`] unless told otherwise.
pub const DEFAULT_MAX_ITERATIONS: usize = 200;
/// [`FitParams::tolerance`] unless told otherwise.
pub const DEFAULT_TOLERANCE: f64 = 1e-4;

impl FitParams {
    /// The defaults for a task and a k.
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
            standstill: false,
            blind: false,
        }
    }

    /// With this decoder.
    #[must_use]
    pub fn decoder(mut self, decoder: Decoder) -> Self {
        self.decoder = decoder;
        self
    }

    /// From this bandwidth of the sketch.
    #[must_use]
    pub fn bandwidth(mut self, sigma2: Option<f64>) -> Self {
        self.bandwidth = sigma2;
        self
    }

    /// With this covariance of every component.
    #[must_use]
    pub fn known_covariance(mut self, known: Option<KnownCovariance>) -> Self {
        self.known_covariance = known;
        self
    }

    /// With atoms at least `separation` apart and at most `radius` from the plan's centre.
    #[must_use]
    pub fn constraints(mut self, separation: Option<f64>, radius: Option<f64>) -> Self {
        (self.separation, self.radius) = (separation, radius);
        self
    }

    /// With so many pursuits to choose from; `None` for the default.
    #[must_use]
    pub fn replicates(mut self, replicates: impl Into<Option<usize>>) -> Self {
        self.replicates = replicates.into();
        self
    }

    /// With starts and bounds of CL-OMPR from the moments alone, so that a plan that holds rows is not ahead of one that
    /// holds none.
    #[doc(hidden)]
    #[must_use]
    pub fn blind(mut self) -> Self {
        self.blind = true;
        self
    }

    /// With covariances of this kind; `None` for full ones where witness rows carry them.
    #[must_use]
    pub fn covariance(mut self, kind: impl Into<Option<CovarianceKind>>) -> Self {
        self.covariance = kind.into();
        self
    }

    /// With variances of at least this share of the column's; `None` for the default.
    #[must_use]
    pub fn min_variance(mut self, share: impl Into<Option<f64>>) -> Self {
        self.min_variance = share.into().unwrap_or(DEFAULT_MIN_VARIANCE);
        self
    }

    /// With so many starts of EM; `None` for the default.
    #[must_use]
    pub fn restarts(mut self, restarts: impl Into<Option<usize>>) -> Self {
        self.restarts = restarts.into().unwrap_or(DEFAULT_RESTARTS);
        self
    }

    /// With at most so many steps of EM; `None` for the default.
    #[must_use]
    pub fn max_iterations(mut self, steps: impl Into<Option<usize>>) -> Self {
        self.max_iterations = steps.into().unwrap_or(DEFAULT_MAX_ITERATIONS);
        self
    }

    /// With EM until the mean log-likelihood grows by less than this in a step; `None` for the default.
    #[must_use]
    pub fn tolerance(mut self, nats: impl Into<Option<f64>>) -> Self {
        self.tolerance = nats.into().unwrap_or(DEFAULT_TOLERANCE);
        self
    }

    /// On so many threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Starting from these centres or means alone, in the table's units.
    #[must_use]
    pub fn init(mut self, centres: Vec<Vec<f64>>) -> Self {
        self.init = centres;
        self
    }

    /// Starting from these weights of the components as well.
    #[must_use]
    pub fn init_weights(mut self, weights: Vec<f64>) -> Self {
        self.init_weights = weights;
        self
    }

    /// Starting from these covariances as well, in the table's units.
    #[must_use]
    pub fn init_covariances(mut self, covariances: Vec<Covariance>) -> Self {
        self.init_covariances = covariances;
        self
    }

    /// With another k.
    #[must_use]
    pub fn k(mut self, k: usize) -> Self {
        self.k = k;
        self
    }

    /// With this seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Going on from the centres at hand until nothing moves.
    #[must_use]
    pub(super) fn until_standstill(mut self) -> Self {
        self.standstill = true;
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
        for (name, said) in [
            ("`known_covariance`", self.known_covariance.is_some()),
            ("`covariance`", self.covariance.is_some()),
            ("`init_weights`", !self.init_weights.is_empty()),
            ("`init_covariances`", !self.init_covariances.is_empty()),
        ] {
            if said && !mixture {
                return Err(Error::parameter(name, "used with the task gmm", self.task));
            }
        }
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
        if self.known_covariance.is_some() && self.covariance.is_some() {
            let expected = "left out with `known_covariance`";
            return Err(Error::parameter("`covariance`", expected, "both"));
        }
        if !(self.min_variance > 0.0 && self.min_variance < 1.0) {
            let expected = "a share of the column's variance, above 0 and below 1";
            return Err(Error::parameter("`min_variance`", expected, self.min_variance));
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let expected = "a finite number, 0 or more";
            return Err(Error::parameter("`tolerance`", expected, self.tolerance));
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

    /// The parameters that only the search for a mixture on points reads, where they are not the defaults.
    pub(super) fn of_search(&self) -> impl Iterator<Item = (&'static str, String)> {
        let all = [
            ("`min_variance`", self.min_variance, DEFAULT_MIN_VARIANCE),
            ("`restarts`", self.restarts as f64, DEFAULT_RESTARTS as f64),
            ("`max_iterations`", self.max_iterations as f64, DEFAULT_MAX_ITERATIONS as f64),
            ("`tolerance`", self.tolerance, DEFAULT_TOLERANCE),
        ];
        let changed = all.into_iter().filter(|(_, value, default)| value != default);
        changed.map(|(name, value, _)| (name, value.to_string()))
    }
}
