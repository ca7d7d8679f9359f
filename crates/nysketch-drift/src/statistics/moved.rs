//! The size of a change: the share of the rows that would have to move to another cell to turn one
//! sample into the other.
//!
//! ```text
//! TV = ½ Σ_j |δ_j| ,   δ_j = p_j(B) − p_j(A)
//! ```
//!
//! is the total variation over the cells, where cells with fewer than 5 expected rows in either
//! sample are pooled. The observed shares overestimate it, because noise moves rows too: by ½ Σ_j
//! s_j √(2/π) if nothing changed, where s_j² = p_j(1 − p_j)(1/n_A + 1/n_B). Each δ_j/s_j is
//! therefore modelled as a normal variable of variance 1 around an effect. The prior of the effects
//! is a mixture of zero and of normal distributions of several widths, whose weights are fitted by
//! EM (adaptive shrinkage, Stephens 2017). The posterior mean of |effect| replaces |δ_j|.
//!
//! Levels and missing values may change within cells. Each category and each column with missing
//! values is therefore estimated in the same way, and the largest estimate is reported.
//!
//! The interval does not depend on the prior. Noise increases the observed TV by at least zero and
//! at most the amount above. This gives the lower end and one bound for the upper end. The other
//! bound is ½√χ² (by the Cauchy–Schwarz inequality), with an unbiased estimate of χ² = Σ_j
//! δ_j²/p_j. The interval is therefore somewhat conservative.

use crate::statistics::pooled::Pooled;
use crate::statistics::tail::{normal_beyond, normal_quantile};
use nysketch_core::numeric::student;
use serde::Serialize;
use std::f64::consts::{FRAC_2_PI, PI};

/// The share of moved rows, with a confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Moved {
    /// The estimate.
    pub share: f64,
    /// Lower end of the interval with confidence 1 − level.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The sampling noise of shares.
#[derive(Debug, Clone, Copy)]
pub struct Noise {
    /// Variance relative to that of independent rows.
    pub widening: f64,
    /// Degrees of freedom of the variance; `None` if rows are assumed to be independent.
    pub freedom: Option<usize>,
}

impl Noise {
    /// Noise of independent rows.
    pub const ROWS: Noise = Noise { widening: 1.0, freedom: None };

    /// The value that is exceeded with this probability, in standard errors.
    fn quantile(&self, beyond: f64) -> f64 {
        match self.freedom {
            Some(freedom) => student::quantile(1.0 - 2.0 * beyond, freedom),
            None => normal_quantile(beyond),
        }
    }
}

/// The change of the share of a cell.
struct Change {
    /// The share in both samples together.
    share: f64,
    change: f64,
    /// The standard error of the change.
    error: f64,
}

impl Change {
    fn z(&self) -> f64 {
        if self.error > 0.0 { self.change / self.error } else { 0.0 }
    }
}

/// Comparison of a change with a tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// At most the tolerated share moved, as measured by cells.
    Same,
    /// More than the tolerated share moved.
    Changed,
    /// The interval contains the tolerance.
    CannotTell,
}

impl Moved {
    /// Estimates the share from the numbers of rows of A and B in each cell. `None` unless there
    /// are two cells with enough rows.
    pub fn of(counts: &[[f64; 2]], totals: [f64; 2], noise: Noise, level: f64) -> Option<Moved> {
        let (deviate, z) = (noise.quantile(0.5 * level), noise.quantile(0.25 * level));
        let pooled = Pooled::new(counts, totals);
        if pooled.groups.is_empty() || pooled.all().count() < 2 {
            return None;
        }
        let noise = noise.widening * (1.0 / totals[0] + 1.0 / totals[1]);
        let cells = pooled.all().map(|[a, b]| {
            let share = (a + b) / (totals[0] + totals[1]);
            let error = (share * (1.0 - share) * noise).sqrt();
            Change { share, change: b / totals[1] - a / totals[0], error }
        });
        let cells: Vec<Change> = cells.collect();
        let observed = 0.5 * cells.iter().map(|cell| cell.change.abs()).sum::<f64>();
        // TV is the change of a single share: that of all cells that grew.
        let grown: f64 = cells.iter().filter(|c| c.change > 0.0).map(|c| c.share).sum();
        let deviation = (grown * (1.0 - grown) * noise).max(0.0).sqrt();
        let max_bias = 0.5 * FRAC_2_PI.sqrt() * cells.iter().map(|c| c.error).sum::<f64>();
        let low = (observed - max_bias - deviate * deviation).clamp(0.0, 1.0);
        // Either bound of the upper end may fail, so each gets half of the error probability.
        let high = (observed + z * deviation).min(by_chi_squared(&cells, noise, z)).clamp(low, 1.0);
        let effects = effects(&cells.iter().map(Change::z).collect::<Vec<f64>>());
        let share = 0.5 * cells.iter().zip(effects).map(|(c, e)| c.error * e).sum::<f64>();
        Some(Moved { share: share.clamp(low, high), low, high })
    }

    /// Combines results under two assumptions, one of which is true: the smaller share, with an
    /// interval that covers both.
    pub fn and(self, other: Moved) -> Moved {
        Moved {
            share: self.share.min(other.share),
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Combines two lower bounds on the change: rows that change without leaving their cell have
    /// moved too.
    pub fn at_least(self, other: Moved) -> Moved {
        Moved {
            share: self.share.max(other.share),
            low: self.low.max(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Compares the share of moved rows with a tolerance.
    pub fn verdict(&self, tolerance: f64) -> Verdict {
        if self.high <= tolerance {
            Verdict::Same
        } else if self.low > tolerance {
            Verdict::Changed
        } else {
            Verdict::CannotTell
        }
    }
}

/// TV between the rows of two samples in cells, minus its expectation under noise alone, so it can
/// be negative. 1 if either sample is empty.
pub fn beyond_noise(a: &[f64], b: &[f64]) -> f64 {
    let (na, nb): (f64, f64) = (a.iter().sum(), b.iter().sum());
    if !(na > 0.0 && nb > 0.0) {
        return 1.0;
    }
    let noise = FRAC_2_PI * (1.0 / na + 1.0 / nb);
    let changes = a.iter().zip(b).map(|(a, b)| {
        let share = (a + b) / (na + nb);
        (a / na - b / nb).abs() - (share * (1.0 - share) * noise).max(0.0).sqrt()
    });
    0.5 * changes.sum::<f64>()
}

/// An upper bound on TV: ½√u, where u solves `u = χ² + z √(2h²m + 4hu)`, and the root is the
/// standard deviation of the estimate of χ².
fn by_chi_squared(cells: &[Change], h: f64, z: f64) -> f64 {
    let estimate: f64 = cells
        .iter()
        .map(|Change { share, change, error }| (change * change - error * error) / share)
        .sum();
    let spread: f64 = cells.iter().map(|c| (h * (1.0 - c.share)).powi(2)).sum();
    let half = estimate + 2.0 * z * z * h;
    let rest = estimate * estimate - 2.0 * z * z * spread;
    let root = (half * half - rest).max(0.0).sqrt();
    0.5 * (half + root).max(0.0).sqrt()
}

/// Posterior mean of each |effect|, for z = effect + a standard normal variable.
fn effects(z: &[f64]) -> Vec<f64> {
    let largest = z.iter().fold(1.0, |m: f64, z| m.max(z.abs())).min(1e6);
    let mut widths = vec![0.0, 0.5];
    while widths[widths.len() - 1] < largest {
        widths.push(2.0 * widths[widths.len() - 1]);
    }
    let likelihoods: Vec<Vec<f64>> = z.iter().map(|z| likelihoods(*z, &widths)).collect();
    let mut weights = vec![1.0 / widths.len() as f64; widths.len()];
    for _ in 0..STEPS {
        let mut next = vec![0.0; widths.len()];
        for likelihood in &likelihoods {
            let posterior = posterior(&weights, likelihood);
            next.iter_mut().zip(posterior).for_each(|(n, p)| *n += p / z.len() as f64);
        }
        weights = next;
    }
    let means = z.iter().zip(&likelihoods).map(|(z, likelihood)| {
        let each = posterior(&weights, likelihood).into_iter().zip(&widths);
        each.map(|(p, w)| p * magnitude(z * w * w / (1.0 + w * w), w * w / (1.0 + w * w))).sum()
    });
    means.collect()
}

/// The likelihood of each width, up to a factor that depends on z.
fn likelihoods(z: f64, widths: &[f64]) -> Vec<f64> {
    let logs = widths.iter().map(|w| -0.5 * (z * z / (1.0 + w * w) + (1.0 + w * w).ln()));
    let logs: Vec<f64> = logs.collect();
    let max = logs.iter().fold(f64::NEG_INFINITY, |m, l| m.max(*l));
    logs.iter().map(|l| (l - max).exp()).collect()
}

/// The posterior probability of each width.
fn posterior(weights: &[f64], likelihoods: &[f64]) -> Vec<f64> {
    let joint: Vec<f64> = weights.iter().zip(likelihoods).map(|(w, l)| w * l).collect();
    let total: f64 = joint.iter().sum();
    joint.iter().map(|j| j / total).collect()
}

/// Number of EM steps for the weights of the widths. Later steps change them by less than 1 %.
const STEPS: usize = 40;

/// Mean of the absolute value of a normal variable.
fn magnitude(mean: f64, variance: f64) -> f64 {
    if variance == 0.0 {
        return mean.abs();
    }
    let deviation = variance.sqrt();
    let density = (-0.5 * mean * mean / variance).exp() / (2.0 * PI).sqrt();
    2.0 * deviation * density + mean * (1.0 - 2.0 * normal_beyond(mean / deviation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nysketch_core::numeric::random::{draw_many, normal};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn magnitudes_are_those_of_draws() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for (mean, variance) in [(0.0, 1.0), (0.7, 0.5), (-3.0, 0.9)] {
            let draws: f64 =
                (0..100_000).map(|_| (mean + f64::sqrt(variance) * normal(&mut rng)).abs()).sum();
            // The standard error of this number of draws is 0.003.
            assert!((draws / 1e5 - magnitude(mean, variance)).abs() < 0.012);
        }
    }

    fn sample(shares: &[f64], rows: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let mut counts = vec![0.0; shares.len()];
        draw_many(shares, rows, rng).into_iter().for_each(|j| counts[j] += 1.0);
        counts
    }

    /// Shares of 100 cells between 0.3 % and 1.7 %. The first `cells` grow by `moved` in total, at
    /// the cost of the others.
    fn shares(cells: usize, moved: f64) -> Vec<f64> {
        let mut shares: Vec<f64> =
            (0..100).map(|j| (1.0 + 0.7 * f64::from(j).sin()) / 100.0).collect();
        let total: f64 = shares.iter().sum();
        let grown: f64 = shares[..cells].iter().sum::<f64>() / total;
        for (j, share) in shares.iter_mut().enumerate() {
            let factor = if j < cells { 1.0 + moved / grown } else { 1.0 - moved / (1.0 - grown) };
            *share = *share / total * factor;
        }
        shares
    }

    /// Changes in few and in many cells, with 200 samples each: the interval contains the truth in
    /// at least 95 % of the samples (at least 190 expected, standard deviation 3), and the estimate
    /// is closer to the truth than the observed change.
    #[test]
    fn the_share_that_moved_is_found() {
        for (cells, moved) in [(0, 0.0), (3, 0.02), (50, 0.02), (20, 0.1), (50, 0.3)] {
            let (before, after) = (shares(0, 0.0), shares(cells, moved));
            let (mut held, mut error, mut observed) = (0, 0.0, 0.0);
            for seed in 0..200 {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let (a, b) = (sample(&before, 20_000, &mut rng), sample(&after, 10_000, &mut rng));
                let counts: Vec<[f64; 2]> = a.into_iter().zip(b).map(|(a, b)| [a, b]).collect();
                let found = Moved::of(&counts, [20_000.0, 10_000.0], Noise::ROWS, 0.05).unwrap();
                held += usize::from(found.low <= moved && moved <= found.high);
                error += found.share - moved;
                observed +=
                    counts.iter().map(|[a, b]| (b / 1e4 - a / 2e4).abs() / 2.0).sum::<f64>()
                        - moved;
            }
            assert!(held >= 180, "{cells} {moved}: {held} of 200");
            // Effects of the size of the noise are estimated to within a sixth.
            let error = error / 200.0;
            assert!(error.abs() < 0.012 + moved / 6.0, "{cells} {moved}: {error}");
            assert!(moved > 0.05 || error.abs() < observed / 200.0, "{cells} {moved}: {error}");
        }
    }

    /// With two cells, the change is that of one share. At least 95 % of 400 intervals contain the
    /// truth (380, standard deviation 4).
    #[test]
    fn few_cells_have_intervals_too() {
        let mut held = 0;
        for seed in 0..400 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (a, b) = (sample(&[0.5, 0.5], 2000, &mut rng), sample(&[0.6, 0.4], 1000, &mut rng));
            let counts: Vec<[f64; 2]> = a.into_iter().zip(b).map(|(a, b)| [a, b]).collect();
            let found = Moved::of(&counts, [2000.0, 1000.0], Noise::ROWS, 0.05).unwrap();
            held += usize::from(found.low <= 0.1 && 0.1 <= found.high);
        }
        assert!(held >= 372, "{held} of 400");
    }

    #[test]
    fn verdicts_go_by_the_interval() {
        let moved = Moved { share: 0.03, low: 0.02, high: 0.05 };
        assert_eq!(moved.verdict(0.05), Verdict::Same);
        assert_eq!(moved.verdict(0.03), Verdict::CannotTell);
        assert_eq!(moved.verdict(0.01), Verdict::Changed);
        assert!(Moved::of(&[[3.0, 2.0], [2.0, 4.0]], [5.0, 6.0], Noise::ROWS, 0.05).is_none());
    }
}
