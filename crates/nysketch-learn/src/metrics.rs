//! Risks of a model on rows, computed in one pass, and agreement with labels.

use crate::model::task::Task;
use crate::model::{Model, Shape};
use crate::predictor::{Detail, ModelRows, Predictions, Predictor};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of rows for each pair of label and cluster.
pub type Contingency = BTreeMap<(Arc<str>, usize), u64>;

/// Sums over rows from which the risks of a model are computed. Sums of parts can be merged.
///
/// ```
/// use nysketch::metrics::Risks;
/// use nysketch::{FitParams, Predictor, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let model = fit(&sketch, &FitParams::new(Task::Kmeans, 3))?;
/// let predictor = Predictor::new(&model);
/// let (mut risks, mut rest) = (Risks::default(), Risks::default());
/// risks.add(&predictor, &rows[..800], &[]);
/// rest.add(&predictor, &rows[800..], &[]);
/// risks.merge(rest);
/// let evaluation = risks.evaluation(&model);
/// assert_eq!((evaluation.rows, evaluation.risk(&model).0), (900, "mse"));
/// // Two unit variances.
/// assert!((evaluation.mse - 2.0).abs() < 0.3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Risks {
    /// Number of rows.
    pub rows: u64,
    /// Total weight of the rows.
    weight: f64,
    squared: f64,
    squared_table_units: f64,
    distance: f64,
    log_density: f64,
    table: Contingency,
}

/// Weighted means over the rows; values that do not apply are `None`.
///
/// Distances have the units that the fit minimises: the coordinates of the fit, with columns
/// divided by the model's scale.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Evaluation {
    /// Number of rows.
    pub rows: u64,
    /// Mean squared distance to the nearest centre (or to the projection): the risk of k-means.
    pub mse: f64,
    /// Mean squared distance to the same centre in the table's units; equal to `mse` if columns are
    /// not scaled.
    pub mse_table_units: f64,
    /// Mean distance to the nearest centre: the risk of k-medians.
    pub mean_distance: f64,
    /// Mean negative log-likelihood, in nats: the risk of a mixture.
    pub nll: Option<f64>,
    /// Adjusted Rand index with respect to the labels.
    pub ari: Option<f64>,
    /// Normalised mutual information with the labels (arithmetic mean).
    pub nmi: Option<f64>,
}

impl Risks {
    /// Adds rows that can be used (see [`Model::unusable`]). `labels` is empty or contains one
    /// label per row.
    pub fn add<'r>(
        &mut self,
        predictor: &Predictor<'_>,
        rows: impl Into<ModelRows<'r>>,
        labels: &[&Arc<str>],
    ) {
        self.add_weighted(predictor, rows, &[], labels);
    }

    /// Adds rows with weights. `weights` and `labels` are empty or contain one entry per row; the
    /// agreement with labels ignores weights.
    pub fn add_weighted<'r>(
        &mut self,
        predictor: &Predictor<'_>,
        rows: impl Into<ModelRows<'r>>,
        weights: &[f64],
        labels: &[&Arc<str>],
    ) {
        let (model, rows) = (predictor.model(), rows.into());
        let predictions = predictor.predict(rows, Detail::Density);
        let n = predictions.label.len();
        let squared = weighted_sum(weights, predictions.squared_distance.iter().copied());
        self.rows += n as u64;
        self.weight += weighted_sum(weights, std::iter::repeat_n(1.0, n));
        self.squared += squared;
        self.squared_table_units +=
            if model.scale.iter().all(|s| *s == 1.0) && model.categories().is_empty() {
                squared
            } else {
                weighted_sum(weights, squared_table_units(model, rows.values, &predictions))
            };
        self.distance +=
            weighted_sum(weights, predictions.squared_distance.iter().map(|d2| d2.sqrt()));
        self.log_density += weighted_sum(weights, predictions.log_density.iter().copied());
        if !matches!(model.shape, Shape::Components { .. }) {
            for (label, cluster) in labels.iter().zip(predictions.label) {
                *self.table.entry(((*label).clone(), cluster as usize)).or_default() += 1;
            }
        }
    }

    /// Returns the total weight of the rows.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Adds the sums of another part of the rows.
    pub fn merge(&mut self, other: Risks) {
        self.rows += other.rows;
        self.weight += other.weight;
        self.squared += other.squared;
        self.squared_table_units += other.squared_table_units;
        self.distance += other.distance;
        self.log_density += other.log_density;
        for (pair, rows) in other.table {
            *self.table.entry(pair).or_default() += rows;
        }
    }

    /// Returns the means; requires at least one row of positive weight.
    pub fn evaluation(&self, model: &Model) -> Evaluation {
        let n = self.weight;
        let labelled = !self.table.is_empty();
        Evaluation {
            rows: self.rows,
            mse: self.squared / n,
            mse_table_units: self.squared_table_units / n,
            mean_distance: self.distance / n,
            nll: matches!(model.shape, Shape::Mixture { .. }).then(|| -self.log_density / n),
            ari: labelled.then(|| adjusted_rand(&self.table)),
            nmi: labelled.then(|| normalised_mutual_information(&self.table)),
        }
    }
}

impl Evaluation {
    /// Returns the name and the value of the risk that a fit of this model minimises.
    pub fn risk(&self, model: &Model) -> (&'static str, f64) {
        match self.nll {
            Some(nll) => ("nll", nll),
            None if model.task == Task::Kmedians => ("mean_distance", self.mean_distance),
            None => ("mse", self.mse),
        }
    }
}

/// Returns the sum of values times weights; the weights are one if none are given.
fn weighted_sum(weights: &[f64], values: impl IntoIterator<Item = f64>) -> f64 {
    let weight = weights.iter().copied().chain(std::iter::repeat(1.0));
    values.into_iter().zip(weight).map(|(x, weight)| weight * x).sum()
}

/// Returns the squared distance of a row from a point, over its present values.
fn squared_distance(row: &[f64], point: &[f64]) -> f64 {
    let present = row.iter().zip(point).filter(|(x, _)| !x.is_nan());
    present.map(|(x, c)| (x - c) * (x - c)).sum()
}

/// Returns the squared distance of each row from its centre, mean or projection, in the table's
/// units.
fn squared_table_units(model: &Model, rows: &[f64], predictions: &Predictions) -> Vec<f64> {
    let (d, k) = (model.columns.len(), model.k());
    let rows = rows.chunks_exact(d).zip(&predictions.label);
    match &model.shape {
        Shape::Centres { centres: places, .. } | Shape::Mixture { means: places, .. } => {
            rows.map(|(row, label)| squared_distance(row, &places[*label as usize])).collect()
        }
        Shape::Components { .. } => rows
            .zip(predictions.transformed.chunks_exact(k))
            .map(|((row, _), coordinates)| model.unexplained(row, coordinates).1)
            .collect(),
    }
}

/// The sums of a contingency table.
#[derive(Default)]
struct Margins<'a> {
    labels: BTreeMap<&'a str, f64>,
    clusters: BTreeMap<usize, f64>,
    total: f64,
}

impl<'a> Margins<'a> {
    fn new(table: &'a Contingency) -> Self {
        let mut margins = Margins::default();
        for ((label, cluster), n) in table {
            *margins.labels.entry(label).or_insert(0.0) += *n as f64;
            *margins.clusters.entry(*cluster).or_insert(0.0) += *n as f64;
            margins.total += *n as f64;
        }
        margins
    }
}

/// Returns the number of pairs of n items.
fn pairs(n: f64) -> f64 {
    n * (n - 1.0) / 2.0
}

/// Returns the entropy of a partition, given the sizes of its parts.
fn entropy<'a>(parts: impl Iterator<Item = &'a f64>, total: f64) -> f64 {
    parts.map(|n| -n / total * (n / total).ln()).sum()
}

/// Returns the adjusted Rand index: 1 for equal partitions, 0 on average for random ones.
///
/// ```
/// use nysketch::metrics::{Contingency, adjusted_rand};
/// let table: Contingency = [(("cat".into(), 0), 10), (("dog".into(), 1), 7)].into();
/// assert_eq!(adjusted_rand(&table), 1.0);
/// ```
pub fn adjusted_rand(table: &Contingency) -> f64 {
    let Margins { labels, clusters, total } = Margins::new(table);
    let together: f64 = table.values().map(|n| pairs(*n as f64)).sum();
    let by_label: f64 = labels.values().map(|n| pairs(*n)).sum();
    let by_cluster: f64 = clusters.values().map(|n| pairs(*n)).sum();
    let expected = by_label * by_cluster / pairs(total).max(1.0);
    let max = (by_label + by_cluster) / 2.0;
    if max == expected { 1.0 } else { (together - expected) / (max - expected) }
}

/// Returns the mutual information divided by the mean of the two entropies; 1 if both are zero.
pub fn normalised_mutual_information(table: &Contingency) -> f64 {
    let Margins { labels, clusters, total } = Margins::new(table);
    let h_labels = entropy(labels.values(), total);
    let h_clusters = entropy(clusters.values(), total);
    let shared: f64 = table
        .iter()
        .map(|((l, c), n)| {
            let n = *n as f64;
            n / total * (n * total / (labels[&**l] * clusters[c])).ln()
        })
        .sum();
    let mean = (h_labels + h_clusters) / 2.0;
    if mean > 0.0 { (shared / mean).clamp(0.0, 1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of scikit-learn 1.5 for labels 0 0 1 1 2 2 and clusters 0 0 1 2 2 2.
    #[test]
    fn agreement_with_labels() {
        let equal: Contingency = [(("e".into(), 1), 3), (("i".into(), 0), 4)].into();
        let one: Contingency = [(("e".into(), 1), 3)].into();
        let table: Contingency = [
            (("a".into(), 0), 2),
            (("b".into(), 1), 1),
            (("b".into(), 2), 1),
            (("c".into(), 2), 2),
        ]
        .into();
        assert!((adjusted_rand(&table) - 0.444_444_4).abs() < 1e-6, "{}", adjusted_rand(&table));
        assert!(
            (normalised_mutual_information(&table) - 0.739_667_4).abs() < 1e-6,
            "{}",
            normalised_mutual_information(&table)
        );
        assert_eq!(adjusted_rand(&equal), 1.0);
        // Logarithms have rounding errors.
        assert!((normalised_mutual_information(&equal) - 1.0).abs() < 1e-12);
        assert_eq!((adjusted_rand(&one), normalised_mutual_information(&one)), (1.0, 1.0));
    }
}
