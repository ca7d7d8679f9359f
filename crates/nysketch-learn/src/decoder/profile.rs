//! The profile of a model: means, deviations and missing values of the rows in each cluster, from
//! the sums of the sketch.

use super::context::Context;
use crate::model::{Model, Shape};
use nysketch_core::sketch::profile::Profile;

impl Context<'_> {
    /// Returns the means and deviations of the columns over all rows and within each cluster;
    /// `None` for a sketch without cells and moments.
    ///
    /// A cell belongs to the cluster of its mean. With n_c rows, mean μ_c and variance v_c in each
    /// cell, the variance of a cluster is `Σ n_c (v_c + μ_c²)/Σ n_c − (Σ n_c μ_c/Σ n_c)²`, computed
    /// around its centre. The variance of a mixture component is its own.
    pub(super) fn profile(&self, model: &Model) -> Option<Profile> {
        let mut profile = self.sketch().whole()?;

        profile.spread = match &model.shape {
            Shape::Centres { centres, .. } if self.plan().collect.cells => {
                self.variances(model, centres).iter().map(|v| roots(v)).collect()
            }
            Shape::Mixture { covariances, .. } => {
                covariances.iter().map(|c| roots(&c.variances())).collect()
            }
            _ => Vec::new(),
        };
        if self.plan().is_partial() {
            profile.missing_within = self.missing_within(model);
        }
        Some(profile)
    }

    /// Returns the cluster of each cell.
    fn labels(&self, model: &Model) -> Vec<usize> {
        let Some(centres) = self.centres_of(model) else { return Vec::new() };
        self.clustered().weighted_means().assign(&centres)
    }

    /// Returns the share of missing values of each column in each cluster; empty for mixtures.
    fn missing_within(&self, model: &Model) -> Vec<Vec<f64>> {
        let Shape::Centres { centres, .. } = &model.shape else { return Vec::new() };
        let d = model.columns.len();
        let mut sums = vec![(0.0, vec![0.0; d]); centres.len()];
        for (cell, label) in self.cells().iter().zip(self.labels(model)) {
            let (rows, missing) = &mut sums[label];
            *rows += cell.rows;
            for (k, n) in missing.iter_mut().enumerate() {
                *n += cell.rows * (1.0 - cell.known(k));
            }
        }
        sums.into_iter()
            .map(|(rows, missing)| {
                missing.iter().map(|n| (n / rows.max(1.0)).clamp(0.0, 1.0)).collect()
            })
            .collect()
    }

    /// Returns the variance of each column within each cluster, over the rows in which it is
    /// present, in the table's units.
    fn variances(&self, model: &Model, centres: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (d, frame) = (model.columns.len(), &self.plan().frame);
        let mut sums = vec![vec![ColumnSums::default(); d]; centres.len()];
        for (cell, label) in self.cells().iter().zip(self.labels(model)) {
            let mean = frame.widen_coordinates(cell.mean);
            for (k, sums) in sums[label].iter_mut().enumerate() {
                let n = cell.rows * cell.known(k);
                let from_centre = mean[k] - centres[label][k];
                let variance = cell.variance(k) * frame.scale[k].powi(2);
                sums.rows += n;
                sums.sum += n * from_centre;
                sums.square += n * (variance + from_centre * from_centre);
            }
        }
        sums.iter().map(|columns| columns.iter().map(ColumnSums::variance).collect()).collect()
    }
}

/// The sums of a column over the rows of a cluster in which it is present.
#[derive(Clone, Default)]
struct ColumnSums {
    rows: f64,
    /// Sum of the differences from the centre.
    sum: f64,
    /// Sum of their squares.
    square: f64,
}

impl ColumnSums {
    /// Returns the variance; 0 without rows.
    fn variance(&self) -> f64 {
        if self.rows > 0.0 {
            (self.square / self.rows - (self.sum / self.rows).powi(2)).max(0.0)
        } else {
            0.0
        }
    }
}

/// Returns the square roots of variances.
fn roots(variances: &[f64]) -> Vec<f64> {
    variances.iter().map(|v| v.max(0.0).sqrt()).collect()
}

#[cfg(test)]
mod tests {
    use crate::decoder::{FitParams, fit};
    use crate::model::task::Task;
    use nysketch_core::pass::SketchParams;
    use nysketch_core::planning::{PlanParams, Scale, plan_for};
    use nysketch_core::rows::Table;
    use nysketch_core::rows::synthetic::Mixture;
    use nysketch_core::sketch::Sketch;
    use std::sync::Arc;

    fn deviation(values: Vec<f64>) -> f64 {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
    }

    /// Well-separated clusters are unions of whole cells, so their statistics from cells equal
    /// those from rows.
    #[test]
    fn spreads_are_those_of_the_rows() {
        let mut rows = Mixture::new(2, 3, 8.0, 3).unwrap().rows(0, 3000).values;
        rows.iter_mut().skip(1).step_by(2).for_each(|x| *x = 100.0 * *x + 7.0);
        let table = Table::unnamed(2, rows.clone()).unwrap();
        let params = PlanParams::default().landmarks(60).scale(Scale::Standard);
        let plan = Arc::new(plan_for(&table, params).unwrap().0);
        let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
        let model = fit(&sketch, &FitParams::new(Task::Kmeans, 3)).unwrap();
        let profile = model.profile.as_ref().unwrap();
        let labels: Vec<usize> = rows.chunks(2).map(|r| model.predict_row(r, &[]).label).collect();
        for k in 0..2 {
            // Rows are narrowed to single precision and rounded to the units of the sums.
            let all = rows.chunks(2).map(|r| r[k]).collect();
            assert!((profile.deviation[k] / deviation(all) - 1.0).abs() < 1e-5);
            for c in 0..3 {
                let within = rows.chunks(2).zip(&labels).filter(|(_, l)| **l == c);
                let within = within.map(|(r, _)| r[k]).collect();
                assert!((profile.spread[c][k] / deviation(within) - 1.0).abs() < 1e-5);
            }
        }
    }
}
