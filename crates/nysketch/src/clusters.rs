//! Clusters in words that people use: how many rows each has, and how it differs from the whole.

use crate::model::{Model, Shape};
use crate::profile::Profile;
use crate::recipe::words::{self, cycle, on_circle, percent};
use crate::recipe::{Category, Recipe};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

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

/// What rows can be told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// The mean of a column of numbers.
    Number(usize),
    /// The mean of a time on a circle, by the columns of its sine and its cosine.
    Cycle(usize, usize),
    /// The share of a level, by its category and its code.
    Level(usize, usize),
    /// The share of the rows that lack a number.
    Missing(usize),
}

/// Some rows beside the whole, in one aspect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trait {
    /// Which aspect.
    pub aspect: Aspect,
    /// Its value, in what is measured: see [`Aspect::text`].
    pub value: f64,
    /// The same over all rows.
    pub overall: f64,
    /// How many standard deviations of all rows lie between the two; 0 for a constant column.
    pub deviations: f64,
}

/// Means of columns and shares of rows, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The mean of each column of numbers.
    pub numbers: &'a [f64],
    /// The share of each level of each category, one after the other; empty where it is not known.
    pub levels: &'a [f64],
    /// The share of rows that lack each number, likewise.
    pub missing: &'a [f64],
}

impl Facts<'_> {
    /// The value of an aspect, where it is known.
    pub fn value(&self, aspect: Aspect, recipe: &Recipe) -> Option<f64> {
        let first = match aspect {
            Aspect::Level(c, _) => recipe.categories[..c].iter().map(Category::len).sum(),
            _ => 0,
        };
        self.value_at(aspect, first, recipe)
    }

    /// The value of an aspect, where the levels of its category start at this place.
    fn value_at(&self, aspect: Aspect, first_level: usize, recipe: &Recipe) -> Option<f64> {
        match aspect {
            Aspect::Number(j) => self.numbers.get(j).copied(),
            Aspect::Cycle(sine, cosine) => {
                let step = recipe.numbers[sine].step;
                Some(on_circle(step, *self.numbers.get(sine)?, *self.numbers.get(cosine)?))
            }
            Aspect::Level(_, level) => self.levels.get(first_level + level).copied(),
            Aspect::Missing(j) => self.missing.get(j).copied(),
        }
    }
}

impl Aspect {
    /// Everything that rows of these columns can be told by.
    pub fn all(recipe: &Recipe) -> Vec<Aspect> {
        let numbers = &recipe.numbers;
        // The first column of each circle, and the second one of those that have it.
        let mut first_halves = HashMap::new();
        let mut second_half = vec![None; numbers.len()];
        let mut is_second = vec![false; numbers.len()];
        for (k, number) in numbers.iter().enumerate() {
            let Some((name, _)) = cycle(number.step) else { continue };
            match first_halves.remove(&(&number.input, name)) {
                Some(j) => (second_half[j], is_second[k]) = (Some(k), true),
                None => drop(first_halves.insert((&number.input, name), k)),
            }
        }
        let mut all: Vec<Aspect> = (0..numbers.len())
            .filter(|j| !is_second[*j])
            .map(|j| second_half[j].map_or(Aspect::Number(j), |k| Aspect::Cycle(j, k)))
            .collect();
        for (c, category) in recipe.categories.iter().enumerate() {
            all.extend((0..category.len()).map(|level| Aspect::Level(c, level)));
        }
        // All parts of a time are missing together.
        let mut seen = HashSet::new();
        let is_first = |j: &usize| seen.insert(&numbers[*j].input);
        all.extend((0..numbers.len()).filter(is_first).map(Aspect::Missing));
        all
    }

    /// What people call it: a column, a level as `carrier: UA`, or that a column is missing.
    pub fn name(self, columns: &[String], recipe: &Recipe) -> String {
        match self {
            Aspect::Number(j) => columns[j].clone(),
            Aspect::Cycle(j, _) => {
                let part = cycle(recipe.numbers[j].step).map_or("", |(name, _)| name);
                format!("{} ({part})", recipe.numbers[j].input)
            }
            Aspect::Level(c, level) => {
                let category = &recipe.categories[c];
                format!("{}: {}", category.name, category.level(level))
            }
            Aspect::Missing(j) => format!("{} missing", recipe.numbers[j].input),
        }
    }

    /// A value of it as people write it: in the table's units, as a time, or as a share.
    pub fn text(self, value: f64, recipe: &Recipe) -> String {
        match self {
            Aspect::Number(j) | Aspect::Cycle(j, _) => words::value(recipe.numbers[j].step, value),
            Aspect::Level(..) | Aspect::Missing(_) => percent(value),
        }
    }

    /// Its category, where it is a level.
    pub fn category(self, recipe: &Recipe) -> Option<&Category> {
        match self {
            Aspect::Level(c, _) => recipe.categories.get(c),
            _ => None,
        }
    }
}

/// Rows beside the whole, in every aspect that is known of both, the most unusual first.
pub fn unusual(recipe: &Recipe, place: Facts<'_>, whole: &Profile) -> Vec<Trait> {
    let all = Facts { numbers: &whole.mean, levels: &whole.levels, missing: &whole.missing };
    let far = |j: usize| match whole.deviation[j] > 0.0 {
        true => (place.numbers[j] - whole.mean[j]) / whole.deviation[j],
        false => 0.0,
    };
    let offsets = recipe.level_offsets();
    let beside = |aspect: Aspect| {
        let first = if let Aspect::Level(c, _) = aspect { offsets[c] } else { 0 };
        let value = place.value_at(aspect, first, recipe)?;
        let overall = all.value_at(aspect, first, recipe)?;
        let deviations = match aspect {
            Aspect::Number(j) => far(j),
            Aspect::Cycle(j, k) => far(j).hypot(far(k)) * std::f64::consts::FRAC_1_SQRT_2,
            Aspect::Level(..) | Aspect::Missing(_) => {
                let variance = overall * (1.0 - overall);
                if variance > 0.0 { (value - overall) / variance.sqrt() } else { 0.0 }
            }
        };
        // A file may have any deviations, and a quotient is a number.
        let deviations = deviations.clamp(-f64::MAX, f64::MAX);
        Some(Trait { aspect, value, overall, deviations })
    };
    let mut traits: Vec<Trait> = Aspect::all(recipe).into_iter().filter_map(beside).collect();
    traits.sort_by(|a, b| b.deviations.abs().total_cmp(&a.deviations.abs()));
    traits
}

/// The same in fewer words: of each category only the level that is there more often than elsewhere.
pub fn telling(traits: &[Trait]) -> Vec<Trait> {
    let mut most: HashMap<usize, Trait> = HashMap::new();
    for t in traits {
        let Aspect::Level(category, _) = t.aspect else { continue };
        let known = most.entry(category).or_insert(*t);
        if t.deviations.total_cmp(&known.deviations).is_ge() {
            *known = *t;
        }
    }
    let mut kept = Vec::new();
    for t in traits {
        match t.aspect {
            Aspect::Level(category, _) => kept.extend(most.remove(&category)),
            _ => kept.push(*t),
        }
    }
    kept
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
        deviations.iter().zip(&self.scale).map(square).sum::<f64>().sqrt().min(f64::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Number, Step};

    #[test]
    fn the_most_unusual_aspect_comes_first() {
        let recipe = Recipe::plain(["a", "b", "c"]);
        let whole = Profile::new(vec![1.0, 1.0, 3.0], vec![2.0, 2.0, 0.0], Vec::new());
        let place = Facts { numbers: &[1.0, 5.0, 3.0], ..Facts::default() };
        let traits = unusual(&recipe, place, &whole);
        let most = Trait { aspect: Aspect::Number(1), value: 5.0, overall: 1.0, deviations: 2.0 };
        assert_eq!((traits[0], traits.len()), (most, 3));
        assert_eq!((traits[1].deviations, traits[2].deviations), (0.0, 0.0));
    }

    #[test]
    fn times_levels_and_holes_are_aspects() {
        let number = |step| Number { input: "when".into(), step };
        let mut recipe = Recipe::plain(["x"]);
        recipe.numbers.extend([Step::HourSin, Step::HourCos].map(number));
        let (name, levels) = ("c".to_string(), vec!["u".to_string(), "v".to_string()]);
        recipe.categories.push(Category { name, levels, weight: 1.0 });
        let mut whole = Profile::new(vec![0.0, 0.0, 0.1], vec![1.0, 0.5, 0.5], Vec::new());
        whole.levels = vec![0.2, 0.8, 0.0, 0.0];
        whole.missing = vec![0.1, 0.0, 0.0];
        let place = Facts {
            numbers: &[0.0, 1.0, 0.1],
            levels: &[0.9, 0.1, 0.0, 0.0],
            missing: &[0.4, 0.0, 0.0],
        };
        let traits = telling(&unusual(&recipe, place, &whole));
        let columns = ["x", "when.hour.sin", "when.hour.cos"].map(String::from);
        let words: Vec<String> = traits
            .iter()
            .map(|t| {
                let [value, all] = [t.value, t.overall].map(|x| t.aspect.text(x, &recipe));
                format!("{} {value} ({all})", t.aspect.name(&columns, &recipe))
            })
            .collect();
        let expected = [
            "c: u 90 % (20 %)",
            "when (hour) 05:37 (00:00)",
            "x missing 40 % (10 %)",
            "x 0 (0)",
            "when missing 0 % (0 %)",
        ];
        assert_eq!(words, expected);
    }
}
