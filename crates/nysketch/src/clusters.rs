//! Clusters in words that people use: how many rows each has, and how it differs from the whole.

use crate::model::{Model, Shape};
use serde::Serialize;

/// What a model says of one cluster or component.
///
/// ```
/// use nysketch::{FitParams, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let model = fit(&sketch, &FitParams::new(Task::Kmeans, 3))?;
/// for cluster in model.clusters() {
///     let most = &cluster.traits[0];
///     println!("{} rows, {} {} where all have {}", cluster.rows, model.columns[most.column], most.value, most.overall);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Cluster {
    /// Its label.
    pub label: usize,
    /// Its share of the rows.
    pub share: f64,
    /// Its rows, as far as the sketch tells.
    pub rows: u64,
    /// How far its rows are from its centre, in the coordinates of the fit: `√Σ_j (spread_j/s_j)²`; `None`
    /// where the sketch did not tell.
    pub spread: Option<f64>,
    /// The columns, those in which it differs most from the whole first; empty where the sketch did not tell
    /// what the whole looks like.
    pub traits: Vec<Trait>,
}

/// One column of a cluster beside the whole.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trait {
    /// Which column.
    pub column: usize,
    /// Its value at the centre of the cluster.
    pub value: f64,
    /// Its mean over all rows.
    pub overall: f64,
    /// How many standard deviations of all rows lie between the two; 0 for a constant column.
    pub deviations: f64,
}

impl Model {
    /// Its clusters or components, by label; none for principal components.
    pub fn clusters(&self) -> Vec<Cluster> {
        let (weights, centres) = match &self.shape {
            Shape::Centres { weights, centres } => (weights, centres),
            Shape::Mixture { weights, means, .. } => (weights, means),
            Shape::Components { .. } => return Vec::new(),
        };
        let cluster = |label: usize| Cluster {
            label,
            share: weights[label],
            rows: (weights[label] * self.rows as f64).round() as u64,
            spread: self.profile.as_ref().and_then(|p| p.spread.get(label)).map(|s| self.spread(s)),
            traits: self.traits(&centres[label]),
        };
        (0..weights.len()).map(cluster).collect()
    }

    /// How far rows with these standard deviations are from their mean, in the coordinates of the fit:
    /// `√Σ_j (deviation_j/s_j)²`.
    pub fn spread(&self, deviations: &[f64]) -> f64 {
        let square = |(d, scale): (&f64, &f64)| (d / scale).powi(2);
        deviations.iter().zip(&self.scale).map(square).sum::<f64>().sqrt()
    }

    /// A place beside the whole, the most unusual columns first.
    pub fn traits(&self, place: &[f64]) -> Vec<Trait> {
        let Some(profile) = &self.profile else { return Vec::new() };
        unusual(place, &profile.mean, &profile.deviation)
    }
}

/// A place beside rows of this mean and deviation, the most unusual columns first.
pub fn unusual(place: &[f64], mean: &[f64], deviation: &[f64]) -> Vec<Trait> {
    let beside = |column: usize| {
        let (value, overall) = (place[column], mean[column]);
        let deviations = match deviation[column] > 0.0 {
            true => (value - overall) / deviation[column],
            false => 0.0,
        };
        Trait { column, value, overall, deviations }
    };
    let mut traits: Vec<Trait> = (0..place.len()).map(beside).collect();
    traits.sort_by(|a, b| b.deviations.abs().total_cmp(&a.deviations.abs()));
    traits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_unusual_column_comes_first() {
        let traits = unusual(&[1.0, 5.0, 3.0], &[1.0, 1.0, 3.0], &[2.0, 2.0, 0.0]);
        assert_eq!(traits[0], Trait { column: 1, value: 5.0, overall: 1.0, deviations: 2.0 });
        assert_eq!((traits[1].deviations, traits[2].deviations), (0.0, 0.0));
    }
}
