//! Quantiles of the log density of the rows under a mixture: thresholds below which a row is
//! unusual.

use serde::{Deserialize, Serialize};

/// Shares of the rows whose quantiles are stored.
const SHARES: [f64; 19] = [
    1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
    0.5, 0.75, 0.9,
];

/// Quantiles of the log density of the rows under a mixture, in the table's units; saved with a
/// model.
///
/// ```
/// use nysketch::{FitParams, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let densities = fit(&sketch, &FitParams::new(Task::Gmm, 3))?.densities.unwrap();
/// let threshold = densities.threshold(0.05).unwrap();
/// let error = densities.error(0.05);
/// println!("one row in twenty has a log density below {threshold:.2}, give or take {error:.3}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Densities {
    /// Shares of the rows, increasing.
    pub share: Vec<f64>,
    /// The log density below which each share of the rows lies.
    pub log_density: Vec<f64>,
    /// Error of each share compared with that of the rows: two standard errors; empty if estimated
    /// from cells only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub error: Vec<f64>,
    /// Number of retained rows from which the quantiles were estimated; 0 if estimated from cells
    /// only.
    pub witnesses: u64,
}

impl Densities {
    /// Computes the quantiles from points with these weights; `None` if there are no points or a
    /// log density is not finite.
    pub(crate) fn new(log_density: &[f64], weights: &[f64]) -> Option<Self> {
        let mut points: Vec<(f64, f64)> =
            log_density.iter().copied().zip(weights.iter().copied()).collect();
        if points.is_empty() || !log_density.iter().all(|l| l.is_finite()) {
            return None;
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = weights.iter().sum();
        let (mut below, mut at) = (0.0, 0);
        let mut quantiles = Vec::with_capacity(SHARES.len());
        for share in SHARES {
            // Half of the weight of a point counts as below it.
            while at + 1 < points.len() && below + 0.5 * points[at].1 < share * total {
                below += points[at].1;
                at += 1;
            }
            quantiles.push(points[at].0);
        }
        let (share, log_density) = (SHARES.to_vec(), quantiles);
        Some(Densities { share, log_density, error: Vec::new(), witnesses: 0 })
    }

    /// Sets the errors of the shares, from the standard error of the share below a log density.
    pub(crate) fn estimated_by(&mut self, witnesses: usize, error: impl Fn(f64) -> f64) {
        self.error = self.log_density.iter().map(|threshold| 2.0 * error(*threshold)).collect();
        self.witnesses = witnesses as u64;
    }

    /// Returns the log density below which this share of the rows lies, interpolated between the
    /// stored shares; `None` for a share outside their range.
    pub fn threshold(&self, share: f64) -> Option<f64> {
        let above = self.share.iter().position(|s| *s >= share)?;
        if self.share[above] == share {
            return Some(self.log_density[above]);
        }
        let below = above.checked_sub(1)?;
        let (low, high) = (self.share[below].ln(), self.share[above].ln());
        let part = (share.ln() - low) / (high - low);
        Some(self.log_density[below] + part * (self.log_density[above] - self.log_density[below]))
    }

    /// Moves the quantiles towards others of the same shares by this part of the difference.
    pub(crate) fn move_towards(&mut self, other: &Densities, part: f64) {
        for (log, other) in self.log_density.iter_mut().zip(&other.log_density) {
            *log += part * (other - *log);
        }
    }

    /// Returns the smallest and largest share that has a threshold.
    pub fn range(&self) -> (f64, f64) {
        (self.share[0], self.share[self.share.len() - 1])
    }

    /// Returns the error of the share of rows below a threshold: two standard errors, estimated
    /// from the retained rows. Infinite if there were none, or for a share above the stored ones.
    pub fn error(&self, share: f64) -> f64 {
        let above = self.share.iter().position(|s| *s >= share);
        above.and_then(|at| self.error.get(at)).copied().unwrap_or(f64::INFINITY)
    }

    /// Returns whether all numbers are valid.
    pub(crate) fn is_valid(&self) -> bool {
        self.share.len() == self.log_density.len()
            && self.share.len() > 1
            && self.share.iter().all(|s| *s > 0.0 && *s < 1.0)
            && self.share.windows(2).all(|w| w[0] < w[1])
            && self.log_density.windows(2).all(|w| w[0] <= w[1])
            && self.log_density.iter().all(|x| x.is_finite())
            && (self.error.is_empty() || self.error.len() == self.share.len())
            && self.error.iter().all(|e| e.is_finite() && *e >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_points() {
        // A thousand points, of which the first hundred have twice the weight.
        let logs: Vec<f64> = (0..1000).map(f64::from).collect();
        let weights: Vec<f64> = (0..1000).map(|i| if i < 100 { 2.0 } else { 1.0 }).collect();
        let mut found = Densities::new(&logs, &weights).unwrap();
        assert!(found.is_valid());
        // A weight of 110 out of 1,100 is below the 55th point.
        assert!((found.threshold(0.1).unwrap() - 55.0).abs() <= 1.0);
        assert!((found.threshold(0.5).unwrap() - 450.0).abs() <= 1.0);
        let between = found.threshold(0.012).unwrap();
        assert!(
            between >= found.threshold(0.01).unwrap() && between <= found.threshold(0.015).unwrap()
        );
        assert_eq!((found.threshold(1e-6), found.threshold(0.99)), (None, None));
        assert_eq!(found.error(0.01), f64::INFINITY);
        found.estimated_by(1000, |threshold| 1e-3 * threshold);
        assert!(found.is_valid() && (found.error(0.1) - 2e-3 * 55.0).abs() < 3e-3);
        assert!(Densities::new(&[f64::NEG_INFINITY], &[1.0]).is_none());
    }
}
