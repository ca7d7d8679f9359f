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
        let roots = |v: &[f64]| v.iter().map(|v| v.max(0.0).sqrt()).collect::<Vec<f64>>();
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
            let (rows, lacking) = &mut sums[label];
            *rows += cell.rows;
            lacking
                .iter_mut()
                .enumerate()
                .for_each(|(k, n)| *n += cell.rows * (1.0 - cell.known(k)));
        }
        let share = |(rows, lacking): (f64, Vec<f64>)| {
            lacking.iter().map(|n| (n / rows.max(1.0)).clamp(0.0, 1.0)).collect()
        };
        sums.into_iter().map(share).collect()
    }

    /// Returns the variance of each column within each cluster, over the rows in which it is
    /// present, in the table's units.
    fn variances(&self, model: &Model, centres: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (d, frame) = (model.columns.len(), &self.plan().frame);
        let mut sums = vec![(vec![0.0; d], vec![0.0; d], vec![0.0; d]); centres.len()];
        for (cell, label) in self.cells().iter().zip(self.labels(model)) {
            let (rows, sum, square) = &mut sums[label];
            let mean = frame.widen_coordinates(cell.mean);
            for k in 0..d {
                let n = cell.rows * cell.known(k);
                let from_centre = mean[k] - centres[label][k];
                let variance = cell.width(k) * frame.scale[k].powi(2);
                rows[k] += n;
                sum[k] += n * from_centre;
                square[k] += n * (variance + from_centre * from_centre);
            }
        }
        let variance = |(rows, sum, square): (Vec<f64>, Vec<f64>, Vec<f64>)| {
            let one = |k: usize| match rows[k] > 0.0 {
                true => (square[k] / rows[k] - (sum[k] / rows[k]).powi(2)).max(0.0),
                false => 0.0,
            };
            (0..d).map(one).collect()
        };
        sums.into_iter().map(variance).collect()
    }
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

    /// Well-separated clusters are unions of whole cells, so their statistics from cells equal
    /// those from rows.
    #[test]
    fn spreads_are_those_of_the_rows() {
        let mut rows = Mixture::new(2, 3, 8.0, 3).unwrap().rows(0, 3000).values;
        rows.iter_mut().skip(1).step_by(2).for_each(|x| *x = 100.0 * *x + 7.0);
        let table = Table::unnamed(2, rows.clone()).unwrap();
        let params = PlanParams::default().landmarks(60).scale(Scale::Standard);
        let plan = Arc::new(plan_for(&table, params).unwrap().plan);
        let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
        let model = fit(&sketch, &FitParams::new(Task::Kmeans, 3)).unwrap();
        let profile = model.profile.as_ref().unwrap();
        let labels: Vec<usize> = rows.chunks(2).map(|r| model.predict_row(r, &[]).label).collect();
        let deviation = |k: usize, of: &dyn Fn(usize) -> bool| {
            let some: Vec<f64> =
                rows.chunks(2).zip(&labels).filter(|(_, l)| of(**l)).map(|(r, _)| r[k]).collect();
            let (n, mean) = (some.len() as f64, some.iter().sum::<f64>() / some.len() as f64);
            (some.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
        };
        for k in 0..2 {
            // Rows are narrowed to single precision and rounded to the units of the sums.
            assert!((profile.deviation[k] / deviation(k, &|_| true) - 1.0).abs() < 1e-5);
            for c in 0..3 {
                assert!((profile.spread[c][k] / deviation(k, &|l| l == c) - 1.0).abs() < 1e-5);
            }
        }
    }
}
