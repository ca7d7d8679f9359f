//! Risks of a model on rows, streamed, and agreement with labels.

use crate::model::{Model, Shape};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of each pair of label and cluster.
pub type Contingency = BTreeMap<(Arc<str>, usize), u64>;

/// Sums over rows.
#[derive(Debug, Clone, Default)]
pub struct Risks {
    /// Rows counted.
    pub rows: u64,
    squared: f64,
    scaled_squared: f64,
    distance: f64,
    log_density: f64,
    table: Contingency,
}

/// Means over the rows; those that do not apply are `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Rows.
    pub rows: u64,
    /// Mean squared distance to the nearest centre (or reconstruction), in the table's units.
    pub mse: f64,
    /// The same in the plan's coordinates.
    pub scaled_mse: f64,
    /// Mean distance to the nearest centre, in the table's units.
    pub mean_distance: f64,
    /// Mean negative log-likelihood, in nats.
    pub nll: Option<f64>,
    /// Adjusted Rand index with the labels.
    pub ari: Option<f64>,
    /// Normalised mutual information with the labels (arithmetic mean).
    pub nmi: Option<f64>,
}

impl Risks {
    /// Adds a finite row with its label, if there are labels.
    pub fn add(&mut self, model: &Model, row: &[f64], label: Option<&Arc<str>>) {
        let p = model.predict(row);
        self.rows += 1;
        let (plain, scaled) = match &model.shape {
            Shape::Components { mean, components, .. } => {
                unexplained(model, mean, components, row, &p.scores)
            }
            _ => (p.squared_distance, p.scaled_squared_distance),
        };
        self.squared += plain;
        self.scaled_squared += scaled;
        self.distance += plain.sqrt();
        self.log_density += p.log_density.unwrap_or(0.0);
        if let Some(label) = label
            && !matches!(model.shape, Shape::Components { .. })
        {
            *self.table.entry((label.clone(), p.label)).or_default() += 1;
        }
    }

    /// Adds the rows of another part.
    pub fn merge(&mut self, other: Risks) {
        self.rows += other.rows;
        self.squared += other.squared;
        self.scaled_squared += other.scaled_squared;
        self.distance += other.distance;
        self.log_density += other.log_density;
        for (pair, rows) in other.table {
            *self.table.entry(pair).or_default() += rows;
        }
    }

    /// The means; needs at least one row.
    pub fn evaluation(&self, model: &Model) -> Evaluation {
        let n = self.rows as f64;
        let labelled = !self.table.is_empty();
        Evaluation {
            rows: self.rows,
            mse: self.squared / n,
            scaled_mse: self.scaled_squared / n,
            mean_distance: self.distance / n,
            nll: matches!(model.shape, Shape::Mixture { .. }).then(|| -self.log_density / n),
            ari: labelled.then(|| adjusted_rand(&self.table)),
            nmi: labelled.then(|| normalised_mutual_information(&self.table)),
        }
    }
}

/// Squared length of what principal components leave of a row, in the table's and in scaled units.
fn unexplained(
    model: &Model,
    mean: &[f64],
    components: &[Vec<f64>],
    row: &[f64],
    scores: &[f64],
) -> (f64, f64) {
    let (mut plain, mut scaled) = (0.0, 0.0);
    for j in 0..row.len() {
        let explained: f64 = components.iter().zip(scores).map(|(c, s)| c[j] * s).sum();
        let left = (row[j] - mean[j]) / model.scale[j] - explained;
        scaled += left * left;
        plain += (left * model.scale[j]).powi(2);
    }
    (plain, scaled)
}

/// Sums of a contingency table by label and by cluster.
fn margins(table: &Contingency) -> (BTreeMap<&str, f64>, BTreeMap<usize, f64>, f64) {
    let (mut labels, mut clusters, mut total) = (BTreeMap::new(), BTreeMap::new(), 0.0);
    for ((l, c), n) in table {
        *labels.entry(&**l).or_insert(0.0) += *n as f64;
        *clusters.entry(*c).or_insert(0.0) += *n as f64;
        total += *n as f64;
    }
    (labels, clusters, total)
}

/// Adjusted Rand index: 1 for equal partitions, 0 on average for random ones.
pub fn adjusted_rand(table: &Contingency) -> f64 {
    let (labels, clusters, total) = margins(table);
    let pairs = |n: f64| n * (n - 1.0) / 2.0;
    let together: f64 = table.values().map(|n| pairs(*n as f64)).sum();
    let by_label: f64 = labels.values().map(|n| pairs(*n)).sum();
    let by_cluster: f64 = clusters.values().map(|n| pairs(*n)).sum();
    let expected = by_label * by_cluster / pairs(total).max(1.0);
    let most = (by_label + by_cluster) / 2.0;
    if most == expected { 1.0 } else { (together - expected) / (most - expected) }
}

/// Mutual information over the mean of the two entropies; 1 where both are zero.
pub fn normalised_mutual_information(table: &Contingency) -> f64 {
    let (labels, clusters, total) = margins(table);
    let entropy = |n: &f64| -n / total * (n / total).ln();
    let (h_labels, h_clusters): (f64, f64) =
        (labels.values().map(entropy).sum(), clusters.values().map(entropy).sum());
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
        let table = |pairs: &[(&str, usize, u64)]| -> Contingency {
            pairs.iter().map(|(label, cluster, n)| ((Arc::from(*label), *cluster), *n)).collect()
        };
        let equal = table(&[("e", 1, 3), ("i", 0, 4)]);
        let one = table(&[("e", 1, 3)]);
        let table = table(&[("a", 0, 2), ("b", 1, 1), ("b", 2, 1), ("c", 2, 2)]);
        assert!((adjusted_rand(&table) - 0.444_444_4).abs() < 1e-6, "{}", adjusted_rand(&table));
        assert!(
            (normalised_mutual_information(&table) - 0.739_667_4).abs() < 1e-6,
            "{}",
            normalised_mutual_information(&table)
        );
        assert_eq!(adjusted_rand(&equal), 1.0);
        // Logarithms round.
        assert!((normalised_mutual_information(&equal) - 1.0).abs() < 1e-12);
        assert_eq!((adjusted_rand(&one), normalised_mutual_information(&one)), (1.0, 1.0));
    }
}
