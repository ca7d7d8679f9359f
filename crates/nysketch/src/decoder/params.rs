//! What to fit and how.

use super::known::KnownCovariance;
use super::list::Decoder;
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
    /// k-means and k-medians from cells: the only centres to start from, `k` of them in the table's units.
    /// Empty for starts that are drawn.
    pub init: Vec<Vec<f64>>,
    /// Seed of everything random.
    pub seed: u64,
}

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
            init: Vec::new(),
            seed: 0,
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

    /// Starting from these centres alone, in the table's units.
    #[must_use]
    pub fn init(mut self, centres: Vec<Vec<f64>>) -> Self {
        self.init = centres;
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
        if !self.init.is_empty() {
            let centres = matches!(self.task, Task::Kmeans | Task::Kmedians);
            let cells = matches!(self.decoder, Decoder::Auto | Decoder::Cells);
            if !(centres && cells) {
                let expected = "used for kmeans and kmedians with `decoder=cells`";
                return Err(Error::parameter("`init`", expected, self.decoder.name()));
            }
            if self.init.len() != self.k {
                let expected = format!("{} centres, as `k` says", self.k);
                return Err(Error::parameter("`init`", expected, self.init.len()));
            }
        }
        if self.known_covariance.is_some() && self.task != Task::Gmm {
            let expected = "used with the task gmm";
            return Err(Error::parameter("`known_covariance`", expected, self.task));
        }
        Ok(())
    }
}
