//! Some rows compared with all rows, aspect by aspect: means, times of day, levels, missing shares.

use crate::recipe::words::{self, cycle, on_circle, percent};
use crate::recipe::{Category, Number, Recipe};
use crate::sketch::profile::Profile;
use serde::Serialize;

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
        match aspect {
            Aspect::Number(j) => self.numbers.get(j).copied(),
            Aspect::Cycle(sine, cosine) => {
                let step = recipe.numbers[sine].step;
                Some(on_circle(step, *self.numbers.get(sine)?, *self.numbers.get(cosine)?))
            }
            Aspect::Level(c, level) => self.levels.get(recipe.level_offsets()[c] + level).copied(),
            Aspect::Missing(j) => self.missing.get(j).copied(),
        }
    }
}

impl Aspect {
    /// Returns all aspects of rows with these columns.
    pub fn all(recipe: &Recipe) -> Vec<Aspect> {
        let numbers = &recipe.numbers;
        let mut all = Vec::new();
        let mut on_circles = vec![false; numbers.len()];
        for (j, number) in numbers.iter().enumerate() {
            if on_circles[j] {
                continue;
            }
            let partner = (j + 1..numbers.len()).find(|k| same_circle(number, &numbers[*k]));
            if let Some(k) = partner {
                on_circles[k] = true;
                all.push(Aspect::Cycle(j, k));
            } else {
                all.push(Aspect::Number(j));
            }
        }
        for (c, category) in recipe.categories.iter().enumerate() {
            all.extend((0..category.len()).map(|level| Aspect::Level(c, level)));
        }
        for (j, number) in numbers.iter().enumerate() {
            // All parts of a time are missing together.
            if numbers[..j].iter().all(|n| n.input != number.input) {
                all.push(Aspect::Missing(j));
            }
        }
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

/// Whether two numbers are the sine and the cosine of the same part of a time.
fn same_circle(a: &Number, b: &Number) -> bool {
    a.input == b.input && cycle(a.step).is_some() && cycle(b.step) == cycle(a.step)
}

/// Returns the difference of the mean of a column from that of all rows, in standard deviations of
/// all rows; 0 for a constant column.
fn standardised(group: Facts<'_>, whole: &Profile, j: usize) -> f64 {
    if whole.deviation[j] > 0.0 {
        (group.numbers[j] - whole.mean[j]) / whole.deviation[j]
    } else {
        0.0
    }
}

/// Compares a group of rows with all rows, in every aspect that is known for both, the largest
/// difference first.
pub fn unusual(recipe: &Recipe, group: Facts<'_>, whole: &Profile) -> Vec<Trait> {
    let all = Facts { numbers: &whole.mean, levels: &whole.levels, missing: &whole.missing };
    let mut traits = Vec::new();
    for aspect in Aspect::all(recipe) {
        let values = (group.value(aspect, recipe), all.value(aspect, recipe));
        let (Some(value), Some(overall)) = values else { continue };
        let deviations = match aspect {
            Aspect::Number(j) => standardised(group, whole, j),
            Aspect::Cycle(j, k) => {
                let (sine, cosine) = (standardised(group, whole, j), standardised(group, whole, k));
                sine.hypot(cosine) * std::f64::consts::FRAC_1_SQRT_2
            }
            Aspect::Level(..) | Aspect::Missing(_) => {
                let variance = overall * (1.0 - overall);
                if variance > 0.0 { (value - overall) / variance.sqrt() } else { 0.0 }
            }
        };
        traits.push(Trait { aspect, value, overall, deviations });
    }
    traits.sort_by(|a, b| b.deviations.abs().total_cmp(&a.deviations.abs()));
    traits
}

/// Shortens a list of traits: keeps one level per category, the one that is most over-represented.
pub fn telling(traits: &[Trait]) -> Vec<Trait> {
    let mut categories: Vec<usize> = Vec::new();
    let mut kept = Vec::new();
    for t in traits {
        let Aspect::Level(category, _) = t.aspect else {
            kept.push(*t);
            continue;
        };
        if !categories.contains(&category) {
            categories.push(category);
            let levels =
                traits.iter().filter(|t| matches!(t.aspect, Aspect::Level(c, _) if c == category));
            kept.extend(levels.max_by(|a, b| a.deviations.total_cmp(&b.deviations)));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Step;

    #[test]
    fn the_most_unusual_aspect_comes_first() {
        let recipe = Recipe::plain(["a", "b", "c"]);
        let whole = Profile::new(vec![1.0, 1.0, 3.0], vec![2.0, 2.0, 0.0], Vec::new());
        let place = Facts { numbers: &[1.0, 5.0, 3.0], ..Facts::default() };
        let traits = unusual(&recipe, place, &whole);
        let largest =
            Trait { aspect: Aspect::Number(1), value: 5.0, overall: 1.0, deviations: 2.0 };
        assert_eq!((traits[0], traits.len()), (largest, 3));
        assert_eq!((traits[1].deviations, traits[2].deviations), (0.0, 0.0));
    }

    #[test]
    fn times_levels_and_missing_values_are_aspects() {
        let mut recipe = Recipe::plain(["x"]);
        for step in [Step::HourSin, Step::HourCos] {
            recipe.numbers.push(Number { input: "when".into(), step });
        }
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
