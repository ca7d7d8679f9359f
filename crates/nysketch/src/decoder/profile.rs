//! What the rows of a model look like, told by the sums of the sketch.

use super::context::Context;
use crate::model::{Model, Shape};
use crate::predictor::{Detail, Predictor};
use crate::profile::Profile;

impl Context<'_> {
    /// Means and deviations of the columns over all rows and within each cluster; `None` where the sketch
    /// keeps neither cells nor moments.
    ///
    /// A cell belongs to the cluster of its mean. With n_c rows, mean μ_c and variance v_c in a cell, a cluster
    /// has the variance `Σ n_c (v_c + μ_c²)/Σ n_c − (Σ n_c μ_c/Σ n_c)²`, taken around its centre; that of a
    /// component is its own.
    pub(super) fn profile(&self, model: &Model) -> Option<Profile> {
        let (mean, variance): (Vec<f64>, Vec<f64>) =
            self.sketch().column_moments()?.into_iter().unzip();
        let roots = |v: &[f64]| v.iter().map(|v| v.max(0.0).sqrt()).collect::<Vec<f64>>();
        let spread = match &model.shape {
            Shape::Centres { centres, .. } if self.plan().collect.cells => {
                self.variances(model, centres).iter().map(|v| roots(v)).collect()
            }
            Shape::Mixture { covariances, .. } => {
                covariances.iter().map(|c| roots(&c.variances())).collect()
            }
            _ => Vec::new(),
        };
        Some(Profile::new(mean, roots(&variance), spread))
    }

    /// The variance of each column within each cluster, in the table's units.
    fn variances(&self, model: &Model, centres: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (d, frame) = (model.columns.len(), &self.plan().frame);
        let cells = self.cells();
        let means: Vec<f64> =
            cells.iter().flat_map(|cell| frame.widen_coordinates(cell.mean)).collect();
        let labels = Predictor::new(model).predict(&means, Detail::Label).label;
        let mut sums = vec![(0.0, vec![0.0; d], vec![0.0; d]); centres.len()];
        for ((cell, mean), label) in cells.iter().zip(means.chunks_exact(d)).zip(labels) {
            let (rows, sum, square) = &mut sums[label as usize];
            *rows += cell.rows;
            for k in 0..d {
                let from_centre = mean[k] - centres[label as usize][k];
                let variance = cell.width(k) * frame.scale[k].powi(2);
                sum[k] += cell.rows * from_centre;
                square[k] += cell.rows * (variance + from_centre * from_centre);
            }
        }
        let variance = |(rows, sum, square): (f64, Vec<f64>, Vec<f64>)| {
            let one = |(s, q): (f64, f64)| match rows > 0.0 {
                true => (q / rows - (s / rows).powi(2)).max(0.0),
                false => 0.0,
            };
            sum.into_iter().zip(square).map(one).collect()
        };
        sums.into_iter().map(variance).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        FitParams, Mixture, PlanParams, Scale, Sketch, SketchParams, Table, Task, fit, plan_for,
    };
    use std::sync::Arc;

    /// Clusters far apart are unions of whole cells, so what cells tell of them is what their rows do.
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
        let labels: Vec<usize> = rows.chunks(2).map(|r| model.predict_row(r).label).collect();
        let deviation = |k: usize, of: &dyn Fn(usize) -> bool| {
            let some: Vec<f64> =
                rows.chunks(2).zip(&labels).filter(|(_, l)| of(**l)).map(|(r, _)| r[k]).collect();
            let (n, mean) = (some.len() as f64, some.iter().sum::<f64>() / some.len() as f64);
            (some.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
        };
        for k in 0..2 {
            // Rows are narrowed to singles and rounded to the units of the sums.
            assert!((profile.deviation[k] / deviation(k, &|_| true) - 1.0).abs() < 1e-5);
            for c in 0..3 {
                assert!((profile.spread[c][k] / deviation(k, &|l| l == c) - 1.0).abs() < 1e-5);
            }
        }
    }
}
