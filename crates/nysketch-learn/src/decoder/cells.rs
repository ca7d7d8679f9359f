//! The decoder `cells`: k-means, k-medians and Gaussian mixtures from cell moments.
//!
//! A cell is the set of rows nearest to one landmark. Its count n_c, mean μ_c and variance are
//! known exactly, so the risk of centres θ on the cell means,
//!
//! ```text
//! Σ_c n_c min_j ‖μ_c − θ_j‖² ,
//! ```
//!
//! differs from the risk on the rows only by a constant and by the cells that a border between two
//! centres cuts. Weighted k-means on cell means is therefore k-means on the rows up to those cells.
//! No bandwidth enters.
//!
//! `unfolding` replaces cells by points, and `cell_mixture` finds centres and mixtures on cells.

use super::em::Floor;
use super::params::DEFAULT_MIN_VARIANCE;
use nysketch_core::kmeans::WeightedPoints;
use nysketch_core::numeric::fixed::power_of_two;
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::random::normal;
use nysketch_core::plan::sphere::Spheres;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::Sum;

/// The cells that contain rows.
#[derive(Debug, Clone)]
pub struct Cells {
    pub(super) dims: usize,
    pub(super) rows: Vec<f64>,
    /// Means, row-major.
    pub(super) means: Vec<f64>,
    /// Variances within the cell, row-major; empty if all cells have zero variance.
    pub(super) variances: Vec<f64>,
    /// Minimum variance of a component in each column.
    pub(super) floor: Floor,
    /// Resolution of the sums: the smallest variance that they can represent in each column.
    pub(super) unit: Vec<f64>,
    /// The landmark of each cell, if the plan has landmarks.
    pub(super) landmarks: Option<Points>,
    /// Share of the rows in which each column is present, in the layout of `means`; empty if no
    /// value is missing.
    pub(super) known: Vec<f64>,
    /// The categories whose levels are coordinates.
    pub(super) levels: Vec<LevelAxes>,
    /// The unit spheres on which centres lie.
    pub(super) spheres: Spheres,
}

/// The coordinates of the levels of a category.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelAxes {
    /// Index of the first coordinate.
    pub start: usize,
    /// Number of levels.
    pub len: usize,
    /// The coordinate value of a level.
    pub size: f64,
}

impl LevelAxes {
    /// Returns the coordinates of the levels at a point.
    pub fn of<'a>(&self, point: &'a [f64]) -> &'a [f64] {
        &point[self.start..self.start + self.len]
    }
}

/// One cell, in the plan's coordinates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a> {
    pub rows: f64,
    pub mean: &'a [f64],
    /// `None` if all cells have zero variance.
    pub variances: Option<&'a [f64]>,
    /// Share of the rows in which each column is present; `None` if no value is missing.
    pub known: Option<&'a [f64]>,
}

impl Cell<'_> {
    /// Returns the share of the rows in which column `k` is present.
    pub fn known(&self, k: usize) -> f64 {
        self.known.map_or(1.0, |known| known[k])
    }

    /// Returns the variance of column `k` within the cell.
    pub fn variance(&self, k: usize) -> f64 {
        self.variances.map_or(0.0, |v| v[k])
    }

    /// Returns whether all rows of the cell have equal numbers.
    pub fn is_point(&self) -> bool {
        (0..self.mean.len()).all(|k| self.variance(k) == 0.0)
    }

    /// Draws points, row-major, with exactly the mean and variance of the cell. Points come in
    /// antithetic pairs, which preserves the mean, and are scaled, which preserves the variance.
    pub fn drawn(&self, pairs: usize, rng: &mut impl rand::Rng) -> Vec<f64> {
        let d = self.mean.len();
        let draws: Vec<f64> = (0..pairs * d).map(|_| normal(rng)).collect();
        let factors: Vec<f64> = (0..d)
            .map(|k| {
                let square: f64 = draws.iter().skip(k).step_by(d).map(|x| x * x).sum();
                (self.variance(k) / (square / pairs as f64).max(f64::MIN_POSITIVE)).sqrt()
            })
            .collect();
        let mut points = Vec::with_capacity(2 * pairs * d);
        for draw in draws.chunks_exact(d) {
            for sign in [1.0, -1.0] {
                points.extend((0..d).map(|k| self.mean[k] + sign * factors[k] * draw[k]));
            }
        }
        points
    }
}

/// Share of the rows at either end of a column that may be ignored when its variance is computed,
/// and the largest factor by which those rows may increase it.
const OUTERMOST: f64 = 1e-3;
const FAR_OUT: f64 = 100.0;
impl Cells {
    pub(super) fn none(dims: usize) -> Self {
        Cells {
            dims,
            rows: Vec::new(),
            means: Vec::new(),
            variances: Vec::new(),
            floor: Floor::new(vec![f64::MIN_POSITIVE; dims]),
            unit: vec![f64::MIN_POSITIVE; dims],
            landmarks: None,
            known: Vec::new(),
            levels: Vec::new(),
            spheres: Spheres::default(),
        }
    }

    /// Returns the cells of a sketch that contains cell sums.
    pub fn new(sketch: &Sketch) -> Self {
        let (d, sums) = (sketch.plan().dims(), sketch.sums());
        let exponent = &sketch.plan().frame.exponent;
        let unit = exponent.iter().map(|e| power_of_two(2 * (e + 2))).collect();
        let mut cells = Cells { unit, spheres: sketch.plan().spheres(), ..Cells::none(d) };
        let mut kept = Vec::new();
        for (j, &count) in sums[Sum::CellRows].iter().enumerate().filter(|(_, n)| **n > 0) {
            let n = count as f64;
            kept.push(j);
            cells.rows.push(n);
            cells.means.extend(sums.cell_mean(j, exponent));
            for k in 0..d {
                let unit = power_of_two(exponent[k]);
                let present = sums.present(j, k);
                let spread = sums.cell_spread(j, k) * unit * unit;
                cells.variances.push((spread / present.max(1) as f64).max(0.0));
                if present == 0 {
                    // The sums contain no value of this column: use the landmark's.
                    let landmark =
                        sketch.plan().landmarks().map_or(0.0, |l| f64::from(l.row(j)[k]));
                    let at = cells.means.len() - d + k;
                    cells.means[at] = landmark;
                }
                if sketch.plan().is_partial() {
                    cells.known.push(present as f64 / n);
                }
            }
        }
        if cells.variances.iter().all(|v| *v == 0.0) {
            cells.variances.clear();
        }
        // Cells of plans with categories or missing values are not defined by the numeric columns
        // alone.
        let plain = sketch.plan().categories().is_empty() && !sketch.plan().is_partial();
        let landmarks = sketch.plan().landmarks().filter(|_| plain);
        cells.landmarks = landmarks.map(|l| l.select(&kept));
        cells.floored(DEFAULT_MIN_VARIANCE)
    }

    /// Returns the cells of a sketch with the shares of levels as additional coordinates. A mixture
    /// of Gaussians does not describe such cells, and neither does it describe cells of rows with
    /// missing values.
    pub fn in_space(sketch: &Sketch) -> Self {
        let (plan, numbers) = (sketch.plan(), Cells::new(sketch));
        let recipe = &plan.recipe;
        if recipe.categories.is_empty() && !plan.is_partial() {
            return numbers;
        }
        let (d, dims) = (plan.dims(), recipe.space_dims(plan.dims()));
        let levels = recipe.levels();
        let (rows, spheres) = (numbers.rows.clone(), numbers.spheres.clone());
        let mut cells = Cells { rows, spheres, ..Cells::none(dims) };
        let sizes = recipe.level_sizes();
        for ((category, start), size) in
            recipe.categories.iter().zip(recipe.level_offsets()).zip(&sizes)
        {
            cells.levels.push(LevelAxes { start: d + start, len: category.len(), size: *size });
        }
        let counts = &sketch.sums()[Sum::CellLevels];
        let filled = sketch.sums()[Sum::CellRows].iter().enumerate().filter(|(_, n)| **n > 0);
        for (c, (cell, rows)) in filled.enumerate() {
            cells.means.extend_from_slice(&numbers.means[c * d..(c + 1) * d]);
            for axes in &cells.levels {
                let counts = &counts[cell * levels + axes.start - d..][..axes.len];
                let shares = counts.iter().map(|n| *n as f64 / *rows as f64);
                cells.means.extend(shares.map(|share| axes.size * share));
            }
            // Levels have no variance of their own.
            let variances = numbers.variances.get(c * d..(c + 1) * d).unwrap_or(&[]);
            cells.variances.extend((0..dims).map(|k| variances.get(k).copied().unwrap_or(0.0)));
            if let Some(known) = numbers.known.get(c * d..(c + 1) * d) {
                cells.known.extend((0..dims).map(|k| known.get(k).map_or(1.0, |share| *share)));
            }
        }
        cells
    }

    /// Sets the minimum variance of components to this share of the column's variance, and at least
    /// to the resolution of the sums.
    #[must_use]
    pub(super) fn floored(mut self, min_variance: f64) -> Self {
        self.floor = self.floor_at(min_variance);
        self
    }

    /// Returns the minimum variances for this share of the column's variance.
    pub(super) fn floor_at(&self, min_variance: f64) -> Floor {
        Floor::new(
            (0..self.dims)
                .map(|k| (min_variance * self.column_variance(k)).max(self.unit[k]))
                .collect(),
        )
    }

    /// Returns the resolution of the sums in column `k`.
    pub(super) fn step(&self, k: usize) -> f64 {
        self.unit[k].sqrt()
    }

    /// Returns the minimum variance of a component.
    pub(super) fn floor(&self) -> &Floor {
        &self.floor
    }

    /// Returns the variance of column `k`, limited to a hundred times the variance without the
    /// cells of the lowest and highest thousandth of the rows. Without the limit, a few extreme
    /// rows would determine the minimum variance of all components.
    fn column_variance(&self, k: usize) -> f64 {
        let (d, total) = (self.dims, self.rows.iter().sum::<f64>());
        let mut cells: Vec<usize> = (0..self.rows.len()).collect();
        cells.sort_by(|a, b| self.means[a * d + k].total_cmp(&self.means[b * d + k]));
        let mut below = 0.0;
        let inner = cells.iter().copied().filter(|c| {
            let from = below;
            below += self.rows[*c];
            below > OUTERMOST * total && from < (1.0 - OUTERMOST) * total
        });
        let inner: Vec<usize> = inner.collect();
        let (inner, all) = (self.variance_over(&inner, k), self.variance_over(&cells, k));
        if inner > 0.0 { all.min(FAR_OUT * inner) } else { all }
    }

    /// Returns the variance of column `k` over the rows of some of the cells.
    fn variance_over(&self, cells: &[usize], k: usize) -> f64 {
        let d = self.dims;
        let rows: f64 = cells.iter().map(|c| self.rows[*c]).sum();
        let sum: f64 = cells.iter().map(|c| self.rows[*c] * self.means[c * d + k]).sum();
        let centre = sum / rows;
        let mut squares = 0.0;
        for c in cells {
            let within = self.variances.get(c * d + k).copied().unwrap_or(0.0);
            squares += self.rows[*c] * ((self.means[c * d + k] - centre).powi(2) + within);
        }
        squares / rows
    }

    /// Iterates over the cells.
    pub(super) fn iter(&self) -> impl Iterator<Item = Cell<'_>> {
        let d = self.dims;
        self.rows.iter().zip(self.means.chunks_exact(d)).enumerate().map(
            move |(c, (rows, mean))| Cell {
                rows: *rows,
                mean,
                variances: self.variances.get(c * d..(c + 1) * d),
                known: self.known.get(c * d..(c + 1) * d),
            },
        )
    }

    /// Turns every row into a cell. EM on these cells is EM on the rows.
    pub fn of_rows(dims: usize, values: &[f64]) -> Self {
        Self::of_points(&WeightedPoints::of_rows(dims, values))
    }

    /// Turns every weighted point into a cell of zero variance.
    pub fn of_points(points: &WeightedPoints) -> Self {
        let dims = points.dims();
        let cells = Cells {
            rows: points.iter().map(|(_, w)| w).collect(),
            means: points.iter().flat_map(|(x, _)| x.into_owned()).collect(),
            ..Cells::none(dims)
        };
        cells.floored(1e-9)
    }

    /// Returns points with these weights and positions, and the same minimum variances.
    pub(super) fn points(&self, rows: Vec<f64>, means: Vec<f64>) -> Self {
        let (floor, unit) = (self.floor.clone(), self.unit.clone());
        Cells { rows, means, floor, unit, ..Cells::none(self.dims) }
    }

    /// Returns whether some cell has a positive variance.
    pub(super) fn have_variance(&self) -> bool {
        !self.variances.is_empty()
    }

    /// Returns whether a mixture can be used to shape the cells.
    pub(super) fn can_be_described(&self) -> bool {
        self.have_variance() && self.landmarks.is_some()
    }

    /// Returns the number of coordinates.
    pub(super) fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the means, row-major.
    pub(super) fn means(&self) -> &[f64] {
        &self.means
    }

    /// Returns the cell means weighted by the rows of the cells.
    pub fn weighted_means(&self) -> WeightedPoints {
        let Cells { dims, means, rows, known, .. } = self;
        WeightedPoints::known_in_part(*dims, means, rows, known, true)
    }

    /// Returns the weighted cell means with the constraint that centres lie on the spheres of the
    /// plan.
    pub(super) fn centred_means(&self) -> WeightedPoints {
        self.weighted_means().on(self.spheres.clone())
    }

    /// Returns the given cells.
    pub(super) fn only(&self, cells: &[usize]) -> Cells {
        let d = self.dims;
        Cells {
            dims: d,
            rows: cells.iter().map(|c| self.rows[*c]).collect(),
            means: select(&self.means, cells, d),
            variances: select(&self.variances, cells, d),
            floor: self.floor.clone(),
            unit: self.unit.clone(),
            landmarks: None,
            known: select(&self.known, cells, d),
            levels: self.levels.clone(),
            spheres: self.spheres.clone(),
        }
    }
}

/// Returns the rows of length `d` with these indices; nothing if there are no rows.
fn select(rows: &[f64], indices: &[usize], d: usize) -> Vec<f64> {
    indices.iter().flat_map(|i| rows.get(i * d..(i + 1) * d).unwrap_or(&[])).copied().collect()
}
