//! Tests whether a plan suits the rows that were sketched with it, from the sums alone.
//!
//! A plan is made before the pass: from the first rows of a stream, or from another day. Later rows
//! may vary more than the scales of the plan, or lie in regions without landmarks. The sums show
//! both. The first test compares the deviation of each column with the plan's scale. The second
//! compares the variance within a cell with the squared distance from its landmark to the next
//! landmark. If the rows are like those from which the landmarks were chosen, these two have the
//! same magnitude in any number of dimensions; if many distant rows have joined a cell, its
//! variance is much larger.

use crate::kernel::Kernel;
use crate::kernel::pack::MAX_BLOCK;
use crate::kernel::tile::{Nearest, Tiles};
use crate::numeric::fixed::power_of_two;
use crate::numeric::points::Points;
use crate::numeric::simd::Instructions;
use crate::sketch::Sketch;
use crate::sums::Sum;

/// Ratio of deviation and scale, in either direction, above which a column is reported.
const OTHER_SCALE: f64 = 2.0;
/// Ratio of the variance of a cell and the squared distance to the next landmark above which the
/// cell is wide. Plans made from the same rows have almost no such cells.
const WIDE: f64 = 4.0;
/// Share of the variance that may lie in wide cells.
const UNRESOLVED: f64 = 0.03;
/// Maximum number of columns that a note names.
const NAMED: usize = 3;
/// Maximum number of cells whose distances to other landmarks are computed: those with the largest
/// spread.
const MAX_COMPARED: usize = 4000;

/// How well a plan suits the rows of a sketch.
///
/// ```
/// use nysketch_core::{Mixture, PlanParams, Scale, Sketch, SketchParams, Table, plan_for};
/// use nysketch_core::Suitability;
/// # fn main() -> nysketch_core::Result<()> {
/// let rows = Mixture::new(2, 3, 3.0, 1)?.rows(0, 900).values;
/// let first = Table::unnamed(2, rows.clone())?;
/// let later = Table::unnamed(2, rows.iter().map(|x| x * 10.0).collect())?;
/// let params = PlanParams::default().landmarks(50).scale(Scale::Standard);
/// let plan = std::sync::Arc::new(plan_for(&first, params)?.plan);
/// let first = Sketch::of(&plan, &first, SketchParams::default(), &())?;
/// assert!(Suitability::of(&first).notes(false).is_empty());
/// let later = Sketch::of(&plan, &later, SketchParams::default(), &())?;
/// let found = Suitability::of(&later);
/// assert_eq!(found.scales.len(), 2);
/// assert!(found.notes(false)[0].starts_with("the plan divides the column 'c0' by"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Suitability {
    /// Columns whose standard deviation is more than twice, or less than half, the divisor of the
    /// plan. Empty if the plan does not scale, or if the sketch has no cells and no moments.
    pub scales: Vec<ScaleGap>,
    /// Share of the variance within cells much wider than the distance between landmarks; `None` if
    /// it is small.
    pub unresolved: Option<f64>,
}

/// A column whose deviation differs from the plan's scale.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleGap {
    /// Name of the column.
    pub column: String,
    /// Divisor of the column in the plan.
    pub scale: f64,
    /// Standard deviation of the column.
    pub deviation: f64,
}

impl Suitability {
    /// Computes how well the plan of this sketch suits its rows.
    pub fn of(sketch: &Sketch) -> Self {
        match sketch.rows() {
            0 => Suitability::default(),
            _ => Suitability { scales: scale_gaps(sketch), unresolved: unresolved(sketch) },
        }
    }

    /// Returns remarks for users. If the sketch is a `part` of the rows that the plan is for, a
    /// column may well vary less than in all rows, so only larger deviations are reported.
    pub fn notes(&self, part: bool) -> Vec<String> {
        const REMEDY: &str =
            "make a plan from a sample of all rows, and use it for every part (`plan`)";
        let mut notes = Vec::new();
        let reported = self.scales.iter().filter(|gap| !part || gap.deviation > gap.scale);
        let gaps: Vec<String> = reported.map(ScaleGap::text).collect();
        if !gaps.is_empty() {
            let named = gaps[..gaps.len().min(NAMED)].join(", ");
            let more = if gaps.len() > NAMED {
                format!(", and {} more columns in the same way", gaps.len() - NAMED)
            } else {
                String::new()
            };
            notes.push(format!(
                "the plan divides the column {named}{more}: distances are not those of scaled \
                 columns; {REMEDY}"
            ));
        }
        if let Some(share) = self.unresolved {
            notes.push(format!(
                "many rows lie where the plan has no landmarks: {:.0} % of the variance is within \
                 cells much wider than the distance between landmarks; {REMEDY}",
                100.0 * share
            ));
        }
        notes
    }
}

impl ScaleGap {
    /// The part of a note about this column.
    fn text(&self) -> String {
        let (scale, deviation) = (short(self.scale), short(self.deviation));
        format!("'{}' by {scale}, but its deviation is {deviation}", self.column)
    }
}

/// Formats a number with at most four significant digits.
fn short(x: f64) -> String {
    match x.abs() {
        a if (1e-3..1e5).contains(&a) => {
            let digits = (3 - a.log10().floor() as i32).max(0) as usize;
            format!("{x:.digits$}")
        }
        0.0 => "0".into(),
        _ => format!("{x:.3e}"),
    }
}

fn scale_gaps(sketch: &Sketch) -> Vec<ScaleGap> {
    let plan = sketch.plan();
    if plan.frame.scale.iter().all(|s| *s == 1.0) {
        return Vec::new();
    }
    let Some(moments) = sketch.column_moments() else { return Vec::new() };
    let columns = plan.columns.iter().zip(&plan.frame.scale).zip(moments);
    columns
        .map(|((column, &scale), (_, variance))| ScaleGap {
            column: column.clone(),
            scale,
            deviation: variance.sqrt(),
        })
        .filter(|ScaleGap { scale, deviation, .. }| {
            // A column that was constant has the scale 1, which is suitable as long as it stays
            // constant.
            let constant = *deviation == 0.0 && *scale == 1.0;
            !constant && !(scale / OTHER_SCALE..=scale * OTHER_SCALE).contains(deviation)
        })
        .collect()
}

fn unresolved(sketch: &Sketch) -> Option<f64> {
    let plan = sketch.plan();
    let landmarks = plan.landmarks().filter(|l| plan.collect.cells && l.len() > 1)?;
    let within: Vec<f64> = (0..landmarks.len()).map(|cell| squares_within(sketch, cell)).collect();
    let scale = &plan.frame.scale;
    let missing = sketch.missing_shares();
    let columns = sketch.column_moments()?.into_iter().zip(scale).zip(&missing);
    let variance: f64 = columns.map(|(((_, v), s), missing)| (1.0 - missing) * v / (s * s)).sum();
    let total = variance * sketch.rows() as f64;
    let space = plan.landmark_space()?;
    let limit = UNRESOLVED * total;
    // Compute distances between landmarks only if they can matter.
    if !(within.iter().sum::<f64>() > limit) {
        return None;
    }
    let mut cells: Vec<usize> = (0..landmarks.len()).filter(|cell| within[*cell] > 0.0).collect();
    cells.sort_by(|a, b| within[*b].total_cmp(&within[*a]));
    cells.truncate(MAX_COMPARED);
    let rows = &sketch.sums()[Sum::CellRows];
    let mut wide = 0.0;
    for (cell, next) in cells.iter().zip(next_landmarks(&space, &cells)) {
        if within[*cell] > WIDE * rows[*cell] as f64 * next {
            wide += within[*cell];
        }
    }
    (wide > limit).then(|| wide / total)
}

/// Returns the sum of squared distances of the rows of a cell from their mean, in the plan's
/// coordinates.
fn squares_within(sketch: &Sketch, cell: usize) -> f64 {
    let (plan, sums) = (sketch.plan(), sketch.sums());
    if sums[Sum::CellRows][cell] < 2 {
        return 0.0;
    }
    let columns = (0..plan.dims())
        .map(|k| sums.cell_spread(cell, k).max(0.0) * power_of_two(2 * plan.frame.exponent[k]));
    columns.sum()
}

/// Returns the squared distance from the landmark of each cell to its nearest neighbour.
fn next_landmarks(landmarks: &Points, cells: &[usize]) -> Vec<f64> {
    let mut tiles = Tiles::new(landmarks, Kernel::Gaussian, None, Instructions::best());
    let (mut nearest, mut next) = (Nearest::default(), Vec::with_capacity(cells.len()));
    for block in cells.chunks(MAX_BLOCK) {
        // The nearest landmark of a landmark is itself.
        nearest.clear();
        tiles.nearest_two(landmarks.select(block).data(), &mut nearest);
        next.extend(nearest.second.iter().map(|d2| f64::from(*d2)));
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::normal;
    use crate::pass::SketchParams;
    use crate::planning::{PlanParams, Scale, plan_for};
    use crate::rows::Table;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use std::sync::Arc;

    /// Returns rows of unit variance around a centre.
    fn blob(centre: &[f64], rows: usize, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut values = Vec::with_capacity(rows * centre.len());
        for _ in 0..rows {
            values.extend(centre.iter().map(|c| c + normal(&mut rng)));
        }
        values
    }

    fn found(plan_rows: &[f64], rows: &[f64], d: usize, scale: Scale) -> Suitability {
        let [plan_rows, rows] =
            [plan_rows, rows].map(|values| Table::unnamed(d, values.to_vec()).unwrap());
        let params = PlanParams::default().landmarks(100).scale(scale);
        let plan = Arc::new(plan_for(&plan_rows, params).unwrap().plan);
        let sketch = Sketch::of(&plan, &rows, SketchParams::default(), &()).unwrap();
        Suitability::of(&sketch)
    }

    /// In any number of dimensions a plan suits the rows from which it was made, and a part of
    /// these rows.
    #[test]
    fn a_plan_suits_its_own_rows() {
        for d in [1, 2, 5, 20, 60] {
            let mut rows = blob(&vec![0.0; d], 2000, 1);
            rows.extend(blob(&vec![9.0; d], 2000, 2));
            for scale in [Scale::None, Scale::Standard] {
                assert_eq!(found(&rows, &rows, d, scale), Suitability::default(), "{d}");
                let half = &rows[..rows.len() / 2];
                assert_eq!(found(&rows, half, d, scale).notes(true), [""; 0], "{d}");
            }
        }
    }

    #[test]
    fn rows_that_leave_the_landmarks_are_noticed() {
        let first = blob(&[0.0; 4], 1000, 1);
        let mut all = first.clone();
        for (i, centre) in
            [[20.0, 0.0, 0.0, 0.0], [25.0, 3.0, 0.0, 0.0], [30.0, 0.0, 9.0, 0.0]].iter().enumerate()
        {
            all.extend(blob(centre, 1000, 2 + i as u64));
        }
        let found = found(&first, &all, 4, Scale::None);
        assert!(found.unresolved.is_some_and(|share| share > UNRESOLVED), "{found:?}");
        assert!(found.notes(true)[0].contains("no landmarks"), "{found:?}");
    }

    #[test]
    fn other_deviations_are_noticed() {
        // The second column varies 50 times as much later; the third is constant at first.
        let early: Vec<f64> = blob(&[0.0; 3], 1000, 1);
        let early: Vec<f64> = early.chunks(3).flat_map(|r| [r[0], r[1], 7.0]).collect();
        let late = blob(&[0.0; 3], 9000, 2);
        let late = late.chunks(3).flat_map(|r| [r[0], 50.0 * r[1], 7.0 + 5.0 * r[2]]);
        let all: Vec<f64> = early.iter().copied().chain(late).collect();
        let more = found(&early, &all, 3, Scale::Standard);
        let names: Vec<&str> = more.scales.iter().map(|gap| gap.column.as_str()).collect();
        assert_eq!(names, ["c1", "c2"]);
        assert!(more.notes(true)[0].contains("the column 'c1' by 1.0"), "{:?}", more.notes(true));
        // A part of the rows may well have less variance.
        let less = found(&all, &early, 3, Scale::Standard);
        assert_eq!((less.scales.len(), less.notes(true).len(), less.notes(false).len()), (2, 0, 1));
        assert!(found(&early, &all, 3, Scale::None).scales.is_empty());
    }
}
