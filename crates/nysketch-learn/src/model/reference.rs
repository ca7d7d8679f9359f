//! The prediction of one row: the slow reference that defines the results of
//! [`Predictor`](crate::Predictor) for many rows.

use super::{Model, Shape};
use crate::covariance::Factor;

/// Minimum share of a level when densities are computed.
const LEAST_SHARE: f64 = 1e-9;

/// The result of [`Model::predict_row`] for one row.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The nearest centre or the most likely component, the first in case of ties; 0 for principal
    /// components.
    pub label: usize,
    /// Squared distance to the centre or mean of the label, or to the projection onto the principal
    /// components, in the coordinates of the fit.
    pub squared_distance: f64,
    /// Log density of the row under a mixture.
    pub log_density: Option<f64>,
    /// Probability of each component, or coordinates along the principal components.
    pub transformed: Vec<f64>,
}

impl Model {
    /// Predicts one usable row: the slow reference that defines the results of
    /// [`Predictor`](crate::Predictor) for many rows. `codes` are the levels of its categories.
    #[doc(hidden)]
    pub fn predict_row(&self, row: &[f64], codes: &[u32]) -> Prediction {
        let nothing = Prediction {
            label: 0,
            squared_distance: 0.0,
            log_density: None,
            transformed: Vec::new(),
        };
        match &self.shape {
            Shape::Centres { centres, .. } => {
                let (label, squared_distance) = self.nearest(row, codes, centres);
                Prediction { label, squared_distance, ..nothing }
            }
            Shape::Mixture { means, .. } => {
                let logs = self.log_densities(row, codes);
                let label = (1..logs.len()).fold(0, |b, c| if logs[c] > logs[b] { c } else { b });
                let max = logs[label];
                // The row is so far out that every density is zero: use the nearest mean.
                let everywhere_zero = max == f64::NEG_INFINITY;
                let label = if everywhere_zero { self.nearest(row, codes, means).0 } else { label };
                let mut shares: Vec<f64> = logs.iter().map(|log| (log - max).exp()).collect();
                if everywhere_zero {
                    shares.fill(0.0);
                    shares[label] = 1.0;
                }
                let total: f64 = shares.iter().sum();
                let terms = self.level_terms(false);
                Prediction {
                    label,
                    squared_distance: self.squared_distance(
                        row,
                        codes,
                        &means[label],
                        terms.get(label),
                    ),
                    log_density: Some(max + total.ln()),
                    transformed: shares.iter().map(|share| share / total).collect(),
                }
            }
            Shape::Components { mean, components, .. } => {
                let y: Vec<f64> =
                    (0..row.len()).map(|j| (row[j] - mean[j]) / self.scale[j]).collect();
                let transformed: Vec<f64> =
                    components.iter().map(|c| c.iter().zip(&y).map(|(a, b)| a * b).sum()).collect();
                let (squared_distance, _) = self.unexplained(row, &transformed);
                Prediction { squared_distance, transformed, ..nothing }
            }
        }
    }

    /// Returns the log density of each component of a mixture at a row, over its present values,
    /// with the weight of the component; none for other models.
    fn log_densities(&self, row: &[f64], codes: &[u32]) -> Vec<f64> {
        let Shape::Mixture { weights, means, covariances, .. } = &self.shape else {
            return Vec::new();
        };
        let present: Vec<usize> = (0..row.len()).filter(|j| !row[*j].is_nan()).collect();
        let values = select(row, &present);
        let terms = self.level_terms(true);
        let mut logs = Vec::with_capacity(weights.len());
        for (c, weight) in weights.iter().enumerate() {
            let levels = terms.get(c).map_or(0.0, |t| self.of_levels(t, codes));
            if present.is_empty() {
                logs.push(weight.max(f64::MIN_POSITIVE).ln() + levels);
                continue;
            }
            let covariance = covariances[c].select(&present);
            let factor = covariance.cholesky().expect("a positive definite covariance");
            let square = factor.squared_distance(&values, &select(&means[c], &present));
            let numbers = log_peak(*weight, &factor) - 0.5 * square;
            logs.push(if codes.is_empty() { numbers } else { numbers + levels });
        }
        logs
    }

    /// Returns the sum of the contributions of the levels of a row.
    fn of_levels(&self, terms: &[f64], codes: &[u32]) -> f64 {
        let starts = self.recipe.level_offsets();
        codes.iter().zip(starts).map(|(code, start)| terms[start + *code as usize]).sum()
    }

    /// Returns the squared distance of a row from a centre or mean, over its present values, in the
    /// coordinates of the fit.
    pub(crate) fn squared_distance(
        &self,
        row: &[f64],
        codes: &[u32],
        centre: &[f64],
        terms: Option<&Vec<f64>>,
    ) -> f64 {
        let numbers: f64 = (0..row.len())
            .filter(|j| !row[*j].is_nan())
            .map(|j| ((row[j] - centre[j]) * (1.0 / self.scale[j])).powi(2))
            .sum();
        terms.map_or(numbers, |terms| numbers + self.of_levels(terms, codes))
    }

    /// Returns the index and the squared distance of the nearest of all centres or means, the first
    /// in case of ties.
    pub(crate) fn nearest(&self, row: &[f64], codes: &[u32], centres: &[Vec<f64>]) -> (usize, f64) {
        let terms = self.level_terms(false);
        let mut best = (0, f64::INFINITY);
        for (c, centre) in centres.iter().enumerate() {
            let d2 = self.squared_distance(row, codes, centre, terms.get(c));
            if d2 < best.1 {
                best = (c, d2);
            }
        }
        best
    }

    /// Returns the squared norm of the residual of a row with these coordinates along the principal
    /// components, in the coordinates of the fit and in the table's units; 0 for other models.
    pub(crate) fn unexplained(&self, row: &[f64], coordinates: &[f64]) -> (f64, f64) {
        let Shape::Components { mean, components, .. } = &self.shape else { return (0.0, 0.0) };
        let (mut scaled, mut plain) = (0.0, 0.0);
        for j in 0..row.len() {
            let explained: f64 = components.iter().zip(coordinates).map(|(c, s)| c[j] * s).sum();
            let left = (row[j] - mean[j]) / self.scale[j] - explained;
            scaled += left * left;
            plain += (left * self.scale[j]).powi(2);
        }
        (scaled, plain)
    }

    /// Returns the contribution of each level to the squared distance from a centre, or to the log
    /// density of a component, as `[cluster][level]` for the levels of all categories. A level is a
    /// point at distance √w from every other level, and a centre with shares p is their mean: a row
    /// with level v is at the squared distance
    ///
    /// ```text
    /// w/2 (1 − 2 p_v + Σ_u p_u²)
    /// ```
    pub(crate) fn level_terms(&self, density: bool) -> Vec<Vec<f64>> {
        self.levels.iter().map(|shares| self.terms_of(shares, density)).collect()
    }

    /// Returns the contributions of the levels to one centre or component with these shares.
    fn terms_of(&self, shares: &[f64], density: bool) -> Vec<f64> {
        let mut terms = Vec::with_capacity(shares.len());
        let mut rest = shares;
        for category in &self.recipe.categories {
            let (shares, others) = rest.split_at(category.len());
            let squares: f64 = shares.iter().map(|p| p * p).sum();
            terms.extend(shares.iter().map(|p| {
                if density {
                    p.max(LEAST_SHARE).ln()
                } else {
                    (0.5 * category.weight * (1.0 - 2.0 * p + squares)).max(0.0)
                }
            }));
            rest = others;
        }
        terms
    }
}

/// Returns `log α N(μ; μ, Γ)`.
pub(crate) fn log_peak(weight: f64, factor: &Factor) -> f64 {
    weight.max(f64::MIN_POSITIVE).ln() + factor.log_peak()
}

/// Returns the values at some of the indices.
fn select(values: &[f64], indices: &[usize]) -> Vec<f64> {
    indices.iter().map(|j| values[*j]).collect()
}
