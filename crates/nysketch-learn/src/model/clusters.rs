//! Clusters in words that people use: how many rows each has, and how it differs from the whole.

use crate::model::{Model, Shape};
pub use nysketch_core::sketch::aspects::unusual;
use serde::Serialize;

pub use nysketch_core::sketch::aspects::{Aspect, Facts, Trait, telling};

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
///     let (name, value) = (model.name_of(most.aspect), model.text_of(most.aspect, most.value));
///     println!("{} rows, {name} {value} where all have {}", cluster.rows, most.overall);
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
    /// What it is told by, where it differs most from the whole first; empty where the sketch did not tell what the
    /// whole looks like.
    pub traits: Vec<Trait>,
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
            traits: self.traits(self.facts(label, centres)),
        };
        (0..weights.len()).map(cluster).collect()
    }

    /// How far rows with these standard deviations are from their mean, in the coordinates of the fit:
    /// `√Σ_j (deviation_j/s_j)²`.
    pub fn spread(&self, deviations: &[f64]) -> f64 {
        let square = |(d, scale): (&f64, &f64)| (d / scale).powi(2);
        deviations.iter().zip(&self.scale).map(square).sum::<f64>().sqrt()
    }

    /// What is known of the rows of a cluster.
    fn facts<'a>(&'a self, label: usize, centres: &'a [Vec<f64>]) -> Facts<'a> {
        let profile = self.profile.as_ref();
        Facts {
            numbers: &centres[label],
            levels: self.levels.get(label).map_or(&[], Vec::as_slice),
            missing: profile.and_then(|p| p.missing_within.get(label)).map_or(&[], Vec::as_slice),
        }
    }

    /// A place beside the whole, the most unusual aspects first.
    pub fn traits(&self, place: Facts<'_>) -> Vec<Trait> {
        let Some(profile) = &self.profile else { return Vec::new() };
        unusual(&self.recipe, place, profile)
    }

    /// What people call an aspect: see [`Aspect::name`].
    pub fn name_of(&self, aspect: Aspect) -> String {
        aspect.name(&self.columns, &self.recipe)
    }

    /// A value of an aspect as people write it: see [`Aspect::text`].
    pub fn text_of(&self, aspect: Aspect, value: f64) -> String {
        aspect.text(value, &self.recipe)
    }
}
