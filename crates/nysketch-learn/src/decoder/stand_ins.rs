//! Weighted points that represent the rows of a sketch when a mixture is fitted.
//!
//! `represent` makes them from the retained rows and the sums of the cells, and `stand_in_atoms`
//! fits atoms to them.

use super::em::Levels;
use nysketch_core::kmeans::WeightedPoints;
use nysketch_core::plan::Plan;
use std::collections::HashMap;
use std::ops::Range;

/// Points that represent the rows, cell by cell, in the plan's coordinates.
#[derive(Debug, Clone)]
pub(crate) struct StandIns {
    pub(super) dims: usize,
    pub(super) weights: Vec<f64>,
    pub(super) places: Vec<f64>,
    /// The columns missing from a point, whose coordinates were imputed, by index of the point;
    /// only points with missing values.
    pub(super) missing: HashMap<usize, Vec<usize>>,
    /// `log s_k` of each column, if points have missing values.
    pub(super) log_scales: Vec<f64>,
    /// The level of each point in each category.
    pub(super) codes: Vec<u32>,
    /// Number of levels of each category, and the coordinate value of a level.
    pub(super) categories: Vec<(usize, f64)>,
    pub(super) cells: Vec<CellPoints>,
    /// Number of retained rows among the points.
    pub(super) witnesses: usize,
}

/// The points of one cell.
#[derive(Debug, Clone)]
pub(super) struct CellPoints {
    /// Its retained rows.
    pub(super) retained: Range<usize>,
    /// Whether the retained rows are all the rows of the cell.
    pub(super) whole: bool,
    /// Points derived from the sums of the cell; they follow the retained rows.
    pub(super) made: Range<usize>,
    pub(super) rows: f64,
}

impl StandIns {
    /// Creates one point per cell. The levels of a point are coordinates after its numeric columns.
    pub fn of_points(plan: &Plan, points: &WeightedPoints) -> Self {
        let dims = plan.dims();
        let mut all = StandIns::empty(dims, kinds(plan));
        for (x, weight) in points.iter() {
            let at = all.weights.len();
            let (numbers, mut rest) = x.split_at(dims);
            let mut codes = Vec::new();
            for (len, _) in &all.categories {
                let (shares, others) = rest.split_at(*len);
                let level = shares.iter().position(|x| *x > 0.0);
                codes.push(level.expect("the shares of a category add up to one") as u32);
                rest = others;
            }
            all.push(numbers, &codes, weight);
            let (retained, made) = (at..at, at..at + 1);
            all.cells.push(CellPoints { retained, whole: false, made, rows: weight });
        }
        all
    }

    pub(super) fn empty(dims: usize, categories: Vec<(usize, f64)>) -> Self {
        let (weights, places, codes, cells) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (missing, log_scales) = (HashMap::new(), Vec::new());
        StandIns {
            dims,
            weights,
            places,
            missing,
            log_scales,
            codes,
            categories,
            cells,
            witnesses: 0,
        }
    }

    pub(super) fn push(&mut self, x: &[f64], codes: &[u32], weight: f64) {
        self.places.extend_from_slice(x);
        self.codes.extend_from_slice(codes);
        self.weights.push(weight);
    }

    /// Returns the numeric columns that are present in a point; `None` if all are.
    pub fn known(&self, i: usize) -> Option<Vec<usize>> {
        let missing = self.missing.get(&i)?;
        Some((0..self.dims).filter(|k| !missing.contains(k)).collect())
    }

    /// Returns the sum of log scales of the columns missing from a point: the correction of its log
    /// density in the table's units.
    pub fn unscaled(&self, i: usize) -> f64 {
        let missing = self.missing.get(&i).into_iter().flatten();
        missing.map(|k| self.log_scales[*k]).sum()
    }

    /// Returns the levels of a point.
    pub(super) fn codes_of(&self, i: usize) -> &[u32] {
        &self.codes[i * self.categories.len()..(i + 1) * self.categories.len()]
    }

    /// Returns the levels of all points, for EM.
    pub fn levels(&self) -> Levels {
        let lens: Vec<usize> = self.categories.iter().map(|(len, _)| *len).collect();
        if lens.is_empty() {
            Levels::default()
        } else {
            Levels::new(&lens, &self.codes, &self.weights)
        }
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Returns the number of retained rows among the points.
    pub fn witnesses(&self) -> usize {
        self.witnesses
    }

    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns the coordinates of the points, row-major.
    pub fn places(&self) -> &[f64] {
        &self.places
    }

    pub fn mass(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Returns the coordinates of point `i`.
    pub fn point(&self, i: usize) -> &[f64] {
        &self.places[i * self.dims..(i + 1) * self.dims]
    }

    /// Selects some of the retained rows of each cell and scales their weights so that the weight
    /// of the cell does not change.
    fn select(&self, of: impl Fn(Range<usize>) -> Vec<usize>) -> StandIns {
        let mut some = StandIns::empty(self.dims, self.categories.clone());
        some.log_scales.clone_from(&self.log_scales);
        for cell in &self.cells {
            let start = some.weights.len();
            for &i in &of(cell.retained.clone()) {
                if let Some(missing) = self.missing.get(&i) {
                    some.missing.insert(some.len(), missing.clone());
                }
                some.push(self.point(i), self.codes_of(i), self.weights[i]);
            }
            let end = some.weights.len();
            for i in cell.made.clone() {
                some.push(self.point(i), self.codes_of(i), self.weights[i]);
            }
            let made: f64 = some.weights[end..].iter().sum();
            let retained: f64 = some.weights[start..end].iter().sum();
            let factor = (cell.rows - made) / retained;
            some.weights[start..end].iter_mut().for_each(|w| *w *= factor);
            some.witnesses += end - start;
            let made = end..some.weights.len();
            let retained = start..end;
            some.cells.push(CellPoints { retained, whole: false, made, rows: cell.rows });
        }
        some
    }

    /// Keeps about `max` retained rows, at least one in each cell, and all other points.
    pub fn thinned(&self, max: usize) -> StandIns {
        let step = self.witnesses.div_ceil(max.max(1)).max(1);
        self.select(|retained| retained.step_by(step).collect())
    }

    /// Splits the retained rows into two halves. The only retained row of a cell, and all other
    /// points, belong to both halves.
    pub fn halves(&self) -> [StandIns; 2] {
        [0, 1].map(|half| {
            self.select(|retained| match retained.len() {
                1 => retained.collect(),
                _ => retained.skip(half).step_by(2).collect(),
            })
        })
    }

    /// Returns whether every row is retained, so that no value is estimated.
    pub fn are_all_rows(&self) -> bool {
        self.cells.iter().all(|c| c.whole)
    }

    /// Returns the weighted mean of a value over the points, and the standard error of this mean as
    /// an estimate of the mean over the rows. The retained rows of a cell are a sample of its rows,
    /// so the squared standard error is
    ///
    /// ```text
    /// Σ_c (n_c/n)² v_c/s_c ,
    /// ```
    ///
    /// where v_c is the variance of the value within the cell. Cells whose rows are all retained
    /// contribute nothing. The points derived from the sums of a cell count as a single retained
    /// row, drawn at random from among them.
    pub fn mean(&self, values: &[f64]) -> (f64, f64) {
        let mass = self.mass();
        let mean = self.weights.iter().zip(values).map(|(w, v)| w * v).sum::<f64>() / mass;
        let mut variance = 0.0;
        for cell in &self.cells {
            let s = cell.retained.len() as f64;
            if s > 1.0 && !cell.whole {
                let spread = sum_of_squares(&values[cell.retained.clone()]);
                variance += (cell.rows / mass).powi(2) * spread / (s - 1.0) / s;
            }
            if cell.made.len() > 1 {
                let weight: f64 = self.weights[cell.made.clone()].iter().sum();
                let spread = sum_of_squares(&values[cell.made.clone()]);
                variance += (weight / mass).powi(2) * spread / cell.made.len() as f64;
            }
        }
        (mean, variance.sqrt())
    }
}

/// Returns the sum of the squared differences of some values from their mean.
fn sum_of_squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|v| (v - mean).powi(2)).sum()
}

/// Returns the number of levels of each category of a plan, and the coordinate value of a level.
pub(super) fn kinds(plan: &Plan) -> Vec<(usize, f64)> {
    let sizes = plan.recipe.level_sizes();
    plan.categories().iter().zip(sizes).map(|(c, size)| (c.len(), size)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::cells::Cells;
    use super::super::nearest_cells::nearest_cells;
    use super::*;
    use nysketch_core::numeric::random::{normal, unit};
    use nysketch_core::pass::SketchParams;
    use nysketch_core::planning::{PlanParams, Scale, plan_for};
    use nysketch_core::rows::Table;
    use nysketch_core::sketch::Sketch;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use std::sync::Arc;

    fn sketch(values: Vec<f64>, dims: usize, params: PlanParams) -> Sketch {
        let table = Table::unnamed(dims, values).unwrap();
        let plan = Arc::new(plan_for(&table, params).unwrap().0);
        Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap()
    }

    fn of_witnesses(sketch: &Sketch) -> Option<StandIns> {
        let plan = sketch.plan();
        let rows = plan.witness_rows()?;
        let landmark_of = nearest_cells(plan, rows.data(), &[]);
        StandIns::of_witnesses(sketch, &Cells::new(sketch), &landmark_of)
    }

    fn stand_ins(sketch: &Sketch) -> StandIns {
        of_witnesses(sketch).unwrap()
    }

    /// Returns Σ w, Σ w x and Σ w x² of one column.
    fn moments(points: &StandIns, k: usize) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for i in 0..points.len() {
            let (w, x) = (points.weights()[i], points.point(i)[k]);
            sums = [sums[0] + w, sums[1] + w * x, sums[2] + w * x * x];
        }
        sums
    }

    #[test]
    fn all_rows_stand_for_themselves() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        // One column is constant.
        let mut rows: Vec<f64> = (0..900).map(|_| normal(rng)).collect();
        rows.iter_mut().skip(2).step_by(3).for_each(|x| *x = 1e3 / 7.0);
        for (landmarks, scale) in [(20, Scale::None), (20, Scale::Standard), (300, Scale::Standard)]
        {
            let params = PlanParams::default().landmarks(landmarks).scale(scale);
            let all = stand_ins(&sketch(rows.clone(), 3, params));
            assert!(all.are_all_rows() && all.witnesses() == 300 && all.len() == 300);
            assert!(all.weights().iter().all(|w| (*w - 1.0).abs() < 1e-12));
        }
        // Half of the rows are not all rows.
        let params = PlanParams::default().landmarks(20).witnesses(150);
        assert!(!stand_ins(&sketch(rows, 3, params)).are_all_rows());
    }

    /// A plan made from other rows: if cells have too few retained rows, or rows from another
    /// distribution, there is no result.
    #[test]
    fn witnesses_of_other_rows_are_not_believed() {
        let rng = &mut ChaCha8Rng::seed_from_u64(6);
        let rows: Vec<f64> = (0..10_000).map(|_| normal(rng)).collect();
        let other: Vec<f64> = (0..10_000).map(|_| 2.5 + 0.7 * normal(rng)).collect();
        let table = Table::unnamed(2, rows).unwrap();
        let plan = Arc::new(plan_for(&table, PlanParams::default()).unwrap().0);
        let other = Table::unnamed(2, other).unwrap();
        let sketch = Sketch::of(&plan, &other, SketchParams::default(), &()).unwrap();
        assert!(of_witnesses(&sketch).is_none());
        // A few rows of the same distribution are not all of its rows.
        let day = Table::unnamed(2, (0..800).map(|_| normal(rng)).collect()).unwrap();
        let sketch = Sketch::of(&plan, &day, SketchParams::default(), &()).unwrap();
        assert!(!stand_ins(&sketch).are_all_rows());
    }

    /// A column in which one row in a thousand is an outlier: without it, the retained rows would
    /// have no variance.
    #[test]
    fn rows_without_a_witness_are_made_up_for() {
        let rng = &mut ChaCha8Rng::seed_from_u64(2);
        let mut rows = Vec::new();
        for i in 0..20_000 {
            rows.extend([normal(rng), if i % 1000 == 7 { 1.0 } else { 0.0 }]);
        }
        let params = PlanParams::default().landmarks(8).witnesses(400);
        for seed in 0..5 {
            let sketch = sketch(rows.clone(), 2, params.clone().seed(seed));
            let points = stand_ins(&sketch);
            let [mass, first, second] = moments(&points, 1);
            assert!((mass - 20_000.0).abs() < 1e-6);
            let shown = (0..points.witnesses()).filter(|i| points.point(*i)[1] > 0.5).count();
            let exact = &sketch.column_moments().unwrap()[1];
            let variance = second / mass - (first / mass).powi(2);
            // A retained row that happens to be an outlier represents more or fewer outliers than
            // there are.
            if shown == 0 {
                assert!((variance / exact.1 - 1.0).abs() < 0.1, "{variance} {exact:?}");
            }
            assert!(variance > 0.3 * exact.1, "{variance} {exact:?}");
        }
    }

    /// Cells without retained rows are drawn with their exact moments, and subsets of the points
    /// have the total weight of all points.
    #[test]
    fn cells_keep_their_rows() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let rows: Vec<f64> =
            (0..4000).map(|i| normal(rng) + if i % 400 < 2 { 30.0 } else { 0.0 }).collect();
        let params = PlanParams::default().landmarks(30).witnesses(40);
        let sketch = sketch(rows, 2, params);
        let points = stand_ins(&sketch);
        assert!(points.cells.iter().any(|c| c.retained.is_empty()), "some cells have no witness");
        for (cell, known) in points.cells.iter().zip(Cells::new(&sketch).iter()) {
            let span = cell.retained.start..cell.made.end;
            let weight: f64 = points.weights[span.clone()].iter().sum();
            assert!((weight - known.rows).abs() < 1e-9 * known.rows);
            if cell.retained.is_empty() {
                let mean =
                    span.map(|i| points.weights[i] * points.point(i)[0]).sum::<f64>() / weight;
                assert!((mean - known.mean[0]).abs() < 1e-9);
            }
        }
        let [half, other] = points.halves();
        for part in [&half, &other, &points.thinned(10)] {
            assert_eq!(part.cells.len(), points.cells.len());
            assert!((part.mass() - points.mass()).abs() < 1e-6);
            assert!(part.witnesses() < points.witnesses());
        }
        let alone = points.cells.iter().filter(|c| c.retained.len() == 1).count();
        assert_eq!(half.witnesses() + other.witnesses(), points.witnesses() + alone);
    }

    /// Rows with larger weights contribute more, also if all rows are retained.
    #[test]
    fn witnesses_count_as_their_rows() {
        let rng = &mut ChaCha8Rng::seed_from_u64(4);
        let rows: Vec<f64> = (0..2000).map(|_| normal(rng)).collect();
        let weights: Vec<f64> = rows.iter().map(|x| if *x > 0.0 { 9.0 } else { 1.0 }).collect();
        let table = Table::unnamed(1, rows.clone()).unwrap().with_weights(weights.clone()).unwrap();
        let params = PlanParams::default().landmarks(3).weights("weight", None);
        let plan = Arc::new(plan_for(&table, params).unwrap().0);
        let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
        let [mass, first, _] = moments(&stand_ins(&sketch), 0);
        let exact = rows.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>()
            / weights.iter().sum::<f64>();
        let found = plan.frame.widen_coordinates(&[first / mass])[0];
        assert!((found - exact).abs() < 1e-3, "{found} {exact}");
    }

    /// The standard error of a mean agrees with the spread over repeated draws.
    #[test]
    fn errors_are_those_of_drawing_again() {
        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        let rows: Vec<f64> = (0..8000).map(|_| unit(rng) * 10.0).collect();
        let exact = rows.iter().map(|x| x * x).sum::<f64>() / 8000.0;
        let (mut inside, mut errors) = (0, Vec::new());
        for seed in 0..100 {
            let params = PlanParams::default().landmarks(12).witnesses(300).seed(seed);
            let sketch = sketch(rows.clone(), 1, params);
            let points = stand_ins(&sketch);
            let frame = &sketch.plan().frame;
            let values: Vec<f64> = (0..points.len())
                .map(|i| frame.widen_coordinates(points.point(i))[0].powi(2))
                .collect();
            let (mean, error) = points.mean(&values);
            inside += usize::from((mean - exact).abs() < 2.0 * error);
            errors.push((mean - exact).abs());
        }
        // Expected: 95, with a standard deviation of 2.2.
        assert!(inside >= 85, "{inside} {errors:?}");
    }
}
