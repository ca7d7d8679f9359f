//! Some rows compared with all rows, aspect by aspect: means, times of day, levels, missing shares.

use crate::sketch::profile::Profile;

use crate::recipe::words::{self, cycle, on_circle, percent};
use crate::recipe::{Category, Recipe};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// A property in which groups of rows can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// The mean of a numeric column.
    Number(usize),
    /// The mean of a time on a circle, by the columns of its sine and its cosine.
    Cycle(usize, usize),
    /// The share of a level, by its category and its code.
    Level(usize, usize),
    /// The share of missing values of a numeric column.
    Missing(usize),
}

/// A group of rows compared with all rows, in one aspect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trait {
    /// The aspect.
    pub aspect: Aspect,
    /// Value for the group, in measured units: see [`Aspect::text`].
    pub value: f64,
    /// Value for all rows.
    pub overall: f64,
    /// Difference in standard deviations of all rows; 0 for a constant column.
    pub deviations: f64,
}

/// Known means of columns and shares of rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The mean of each numeric column.
    pub numbers: &'a [f64],
    /// The share of each level of each category, concatenated; empty if not known.
    pub levels: &'a [f64],
    /// The share of missing values of each numeric column; empty if not known.
    pub missing: &'a [f64],
}

impl Facts<'_> {
    /// Returns the value of an aspect, if known.
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
    /// Returns all aspects of rows with these columns.
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

    /// Returns the readable name: a column, a level such as `carrier: UA`, or a column followed by
    /// "missing".
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

    /// Formats a value of the aspect: in the table's units, as a time, or as a share.
    pub fn text(self, value: f64, recipe: &Recipe) -> String {
        match self {
            Aspect::Number(j) | Aspect::Cycle(j, _) => words::value(recipe.numbers[j].step, value),
            Aspect::Level(..) | Aspect::Missing(_) => percent(value),
        }
    }

    /// Returns the category if the aspect is a level.
    pub fn category(self, recipe: &Recipe) -> Option<&Category> {
        match self {
            Aspect::Level(c, _) => recipe.categories.get(c),
            _ => None,
        }
    }
}

/// Compares a group of rows with all rows, in every aspect that is known for both, the largest
/// difference first.
pub fn unusual(recipe: &Recipe, place: Facts<'_>, whole: &Profile) -> Vec<Trait> {
    let all = Facts { numbers: &whole.mean, levels: &whole.levels, missing: &whole.missing };
    let far = |j: usize| {
        if whole.deviation[j] > 0.0 {
            (place.numbers[j] - whole.mean[j]) / whole.deviation[j]
        } else {
            0.0
        }
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

/// Shortens a list of traits: keeps one level per category, the one that is most over-represented.
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
