//! The map: cells of rows in two principal axes, coloured by the cluster of their means.

use super::models::Shown;
use crate::markup::shorten;
use crate::page::Page;
use crate::plot::{self, CLUSTERS, Dot, Map, SIGNS};
use crate::words::describe::beside;
use crate::words::numbers::{count, thousands};
use nysketch::clusters::{Aspect, Facts, Trait, telling};
use nysketch::model::Shape;
use nysketch::predictor::{Detail, ModelRows};
use nysketch::{Model, Predictor, Sketch, Sum, Task};

/// Maximum number of cells that are drawn; the largest are kept.
const MOST_CELLS: usize = 2000;
/// Maximum number of columns in the tooltip of a cell.
const COLUMNS: usize = 5;

/// Adds the map of the clusters.
pub fn section(page: &mut Page, sketch: &Sketch, shown: &Shown<'_>) {
    let Some(scene) = scene(sketch, &shown.models, shown.first) else { return };
    page.heading("Map");
    page.push("<figure>\n");
    page.push(&plot::element(&scene, "picture map"));
    let signs: Vec<String> = SIGNS.iter().map(|s| s.path()).collect();
    page.push(&format!(
        "<div class=\"map-data\" data-signs='{}' data-colours=\"{}\"></div></figure>\n",
        serde_json::json!(signs),
        CLUSTERS.len()
    ));
    page.note(
        "Each mark is a cell: the rows nearest to one landmark, at their mean; its area is \
        their number, its colour and shape the cluster of that mean. Numbers are at the centres of \
        the clusters.",
    );
    if sketch.cells().len() > MOST_CELLS {
        page.note(&format!("The {} largest cells.", thousands(MOST_CELLS as u64)));
    }
}

/// A cell that is drawn.
struct CellOfMap {
    rows: u64,
    mean: Vec<f64>,
    /// Shares of the levels of all categories.
    levels: Vec<f64>,
}

/// Returns the cells of a sketch that are drawn, in the order of the map's marks.
fn cells(sketch: &Sketch) -> Vec<CellOfMap> {
    let levels = sketch.plan().recipe.levels();
    let counts = &sketch.sums()[Sum::CellLevels];
    let cell = |(landmark, rows, mean): (usize, u64, Vec<f64>)| {
        let counts = counts.iter().skip(landmark * levels).take(levels);
        CellOfMap { rows, mean, levels: counts.map(|n| *n as f64 / rows as f64).collect() }
    };
    let mut cells: Vec<CellOfMap> = sketch.cells().into_iter().map(cell).collect();
    cells.sort_by_key(|c| std::cmp::Reverse(c.rows));
    cells.truncate(MOST_CELLS);
    cells
}

/// Returns the cluster of each drawn cell: the one predicted for the cell's mean and most frequent
/// levels.
pub fn labels(sketch: &Sketch, model: &Model) -> Vec<usize> {
    let cells = cells(sketch);
    let values: Vec<f64> = cells.iter().flat_map(|c| c.mean.iter().copied()).collect();
    let mut codes = Vec::new();
    for cell in &cells {
        let mut rest = &cell.levels[..];
        for category in model.categories() {
            let (shares, others) = rest.split_at(category.len());
            let most = (0..shares.len()).max_by(|a, b| shares[*a].total_cmp(&shares[*b]));
            codes.push(most.unwrap_or(0) as u32);
            rest = others;
        }
    }
    let rows = ModelRows { values: &values, codes: &codes };
    let labels = Predictor::new(model).predict(rows, Detail::Label).label;
    labels.into_iter().map(|l| l as usize).collect()
}

/// Draws the map of a sketch with cells, or returns `None`. One of several models is shown.
pub fn scene(sketch: &Sketch, models: &[&Model], shown: usize) -> Option<plot::Scene> {
    let cells = cells(sketch);
    let model = models.get(shown)?;
    if cells.is_empty() || model.task == Task::Pca {
        return None;
    }
    let axes = Axes::new(sketch, &cells);
    let dots: Vec<Dot> = cells
        .iter()
        .zip(labels(sketch, model))
        .map(|(cell, cluster)| Dot {
            place: axes.place(&cell.mean),
            rows: cell.rows as f64,
            cluster,
            title: format!(
                "cluster {cluster}\n{}\n{}",
                count(cell.rows, "row"),
                values(model, cell).join("\n")
            ),
        })
        .collect();
    let place = |model: &&Model| match &model.shape {
        Shape::Centres { centres, .. } | Shape::Mixture { means: centres, .. } => {
            centres.iter().map(|c| axes.place(c)).collect()
        }
        Shape::Components { .. } => Vec::new(),
    };
    let centres: Vec<Vec<(f64, f64)>> = models.iter().map(place).collect();
    Some(plot::map(&Map {
        title: &format!(
            "{} of {}",
            count(cells.len() as u64, "cell"),
            count(sketch.counted(), "row")
        ),
        axes: [&axes.names[0], &axes.names[1]],
        what: "cell",
        dots: &dots,
        centres: &centres,
        shown,
    }))
}

/// Describes the most unusual values of a cell, or its first values if the model has no profile of
/// all rows.
fn values(model: &Model, cell: &CellOfMap) -> Vec<String> {
    let place = Facts { numbers: &cell.mean, levels: &cell.levels, missing: &[] };
    let name = |aspect: Aspect| shorten(&model.name_of(aspect), 40);
    let traits = telling(&model.traits(place));
    if traits.is_empty() {
        let first = Aspect::all(&model.recipe).into_iter().take(COLUMNS);
        let known = |a: Aspect| Some((a, place.value(a, &model.recipe)?));
        let text = |(a, x): (Aspect, f64)| format!("{} {}", name(a), model.text_of(a, x));
        return first.filter_map(known).map(text).collect();
    }
    let one = |t: &Trait| {
        let [value, all] = beside(t, &model.recipe);
        let z = plot::signed(t.deviations);
        format!("{} {value} (all rows {all}, {z} sd)", name(t.aspect))
    };
    traits.iter().take(COLUMNS).map(one).collect()
}

/// Two axes to draw in: the principal axes of the cells, in the coordinates of the fit.
struct Axes {
    names: [String; 2],
    centre: Vec<f64>,
    /// Weights of the columns on each axis.
    along: [Vec<f64>; 2],
}

/// Steps of the power method. It may mix axes of nearly equal variance, which are equally
/// informative.
const STEPS: usize = 100;

impl Axes {
    fn new(sketch: &Sketch, cells: &[CellOfMap]) -> Self {
        let plan = sketch.plan();
        let (d, scale) = (plan.dims(), &plan.frame.scale);
        let total: f64 = cells.iter().map(|c| c.rows as f64).sum();
        let mean = |k: usize| cells.iter().map(|c| c.rows as f64 * c.mean[k]).sum::<f64>() / total;
        let centre: Vec<f64> = (0..d).map(mean).collect();
        if d == 1 {
            let names = [shorten(&plan.columns[0], 60), String::new()];
            return Axes { names, centre: vec![0.0], along: [vec![1.0], vec![0.0]] };
        }
        let scaled = |x: &Vec<f64>| (0..d).map(|k| (x[k] - centre[k]) / scale[k]).collect();
        let rows: Vec<(f64, Vec<f64>)> =
            cells.iter().map(|c| (c.rows as f64 / total, scaled(&c.mean))).collect();
        let all: f64 = rows.iter().map(|(w, x)| w * dot(x, x)).sum();
        let first = principal(&rows, None);
        let second = principal(&rows, Some(&first));
        let name = |which: &str, axis: &[f64]| {
            let variance: f64 = rows.iter().map(|(w, x)| w * dot(x, axis).powi(2)).sum();
            let share = 100.0 * variance / all.max(f64::MIN_POSITIVE);
            format!("{which} principal axis ({share:.0} % of the variance between cells)")
        };
        let names = [name("first", &first), name("second", &second)];
        let unscaled = |axis: Vec<f64>| axis.iter().zip(scale).map(|(a, s)| a / s).collect();
        Axes { names, centre, along: [unscaled(first), unscaled(second)] }
    }

    fn place(&self, row: &[f64]) -> (f64, f64) {
        let from: Vec<f64> = row.iter().zip(&self.centre).map(|(x, c)| x - c).collect();
        (dot(&from, &self.along[0]), dot(&from, &self.along[1]))
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the direction of largest variance of centred, weighted rows, orthogonal to another
/// direction.
fn principal(rows: &[(f64, Vec<f64>)], other: Option<&[f64]>) -> Vec<f64> {
    let less = |mut v: Vec<f64>| {
        if let Some(other) = other {
            let part = dot(&v, other);
            v.iter_mut().zip(other).for_each(|(v, o)| *v -= part * o);
        }
        let length = dot(&v, &v).sqrt();
        if length > 0.0 {
            v.iter_mut().for_each(|v| *v /= length);
        }
        v
    };
    let weight = |(w, x): &(f64, Vec<f64>)| w * dot(x, x);
    // The power method needs a start that is not orthogonal to the result.
    let start = rows.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)));
    let mut axis = less(start.map_or(Vec::new(), |r| r.1.clone()));
    for _ in 0..STEPS {
        let mut next = vec![0.0; axis.len()];
        for (w, x) in rows {
            let along = w * dot(x, &axis);
            next.iter_mut().zip(x).for_each(|(n, x)| *n += along * x);
        }
        axis = less(next);
    }
    axis
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows on an ellipse with axes along (3, 4)/5 and (4, −3)/5.
    #[test]
    fn axes_are_those_of_largest_variance() {
        let row = |i: i32| {
            let (a, b) = (f64::from(i) / 7.0).sin_cos();
            (1.0 / 44.0, vec![3.0 * a * 0.6 + b * 0.8, 3.0 * a * 0.8 - b * 0.6])
        };
        let rows: Vec<_> = (0..44).map(row).collect();
        let first = principal(&rows, None);
        let second = principal(&rows, Some(&first));
        assert!(dot(&first, &[0.6, 0.8]).abs() > 0.999 && dot(&second, &[0.8, -0.6]).abs() > 0.999);
        // Identical rows have no direction.
        assert_eq!(principal(&[(1.0, vec![0.0, 0.0])], None), [0.0, 0.0]);
    }
}
