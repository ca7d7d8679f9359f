//! Readable descriptions of clusters: how many rows each has, and how it differs from all rows.

use crate::model::{Model, Shape};
use serde::Serialize;

pub use nysketch_core::sketch::aspects::{Aspect, Facts, Trait, telling, unusual};

/// The description of one cluster or component.
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
///     let (name, value) = (model.name_of(most.aspect), model.text_of(most.aspect, most.value));
///     println!("{} rows, {name} {value} where all have {}", cluster.rows, most.overall);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Cluster {
    /// Label of the cluster.
    pub label: usize,
    /// Share of the rows.
    pub share: f64,
    /// Estimated number of rows.
    pub rows: u64,
    /// Distance of the rows from the centre, in the coordinates of the fit: `√Σ_j (spread_j/s_j)²`;
    /// `None` if the sketch does not contain the required sums.
    pub spread: Option<f64>,
    /// Differences from all rows, the largest first; empty if the sketch does not contain the
    /// required sums.
    pub traits: Vec<Trait>,
}

impl Model {
    /// Returns the descriptions of the clusters or components, by label; empty for principal
    /// components.
    pub fn clusters(&self) -> Vec<Cluster> {
        let (weights, centres) = match &self.shape {
            Shape::Centres { weights, centres } => (weights, centres),
            Shape::Mixture { weights, means, .. } => (weights, means),
            Shape::Components { .. } => return Vec::new(),
        };
        (0..weights.len())
            .map(|label| Cluster {
                label,
                share: weights[label],
                rows: (weights[label] * self.rows as f64).round() as u64,
                spread: self
                    .profile
                    .as_ref()
                    .and_then(|p| p.spread.get(label))
                    .map(|s| self.spread(s)),
                traits: self.traits(self.facts(label, centres)),
            })
            .collect()
    }

    /// Returns the root mean squared distance from their mean of rows with these standard
    /// deviations, in the coordinates of the fit: `√Σ_j (deviation_j/s_j)²`.
    pub fn spread(&self, deviations: &[f64]) -> f64 {
        deviations.iter().zip(&self.scale).map(|(d, scale)| (d / scale).powi(2)).sum::<f64>().sqrt()
    }

    /// Returns the known statistics of the rows of a cluster.
    fn facts<'a>(&'a self, label: usize, centres: &'a [Vec<f64>]) -> Facts<'a> {
        let profile = self.profile.as_ref();
        Facts {
            numbers: &centres[label],
            levels: self.levels.get(label).map_or(&[], Vec::as_slice),
            missing: profile.and_then(|p| p.missing_within.get(label)).map_or(&[], Vec::as_slice),
        }
    }

    /// Compares a group of rows with all rows, the largest difference first.
    pub fn traits(&self, place: Facts<'_>) -> Vec<Trait> {
        let Some(profile) = &self.profile else { return Vec::new() };
        unusual(&self.recipe, place, profile)
    }

    /// Returns the readable name of an aspect: see [`Aspect::name`].
    pub fn name_of(&self, aspect: Aspect) -> String {
        aspect.name(&self.columns, &self.recipe)
    }

    /// Formats a value of an aspect: see [`Aspect::text`].
    pub fn text_of(&self, aspect: Aspect, value: f64) -> String {
        aspect.text(value, &self.recipe)
    }
}
