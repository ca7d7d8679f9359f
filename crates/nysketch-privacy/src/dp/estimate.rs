//! Reconstruction of a release: the sums from which decoders learn.
//!
//! Processing noisy sums costs no privacy. The reconstruction is a sketch that real rows could have
//! produced, so that every decoder can use it. Cells below the noise level are pooled with their
//! neighbours. Means are shrunk towards their landmark by the amount that noise explains, and
//! variances towards their average over all cells. Matrices are replaced by ones that rows could
//! have produced.

use super::mechanism::Mechanism;
use super::release::Release;
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::fixed::{FEATURE_ONE, MAX_WEIGHT, power_of_two};
use nysketch_core::numeric::linalg::{Matrix, symmetric_eigen};
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::random::{draw, normal};
use nysketch_core::plan::Plan;
use nysketch_core::recipe::Step;
use nysketch_core::rows::Table;
use nysketch_core::sketch::Sketch;
use nysketch_core::sums::{Sum, Sums};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Maximum number of bits of noisy products; larger ones are clipped, so that arithmetic on the
/// content of a file cannot overflow.
const MOST_BITS: u32 = 100;

/// Returns the minimum number of standard deviations of the noise at which one of this many cells
/// counts as occupied: approximately the expected maximum of this many draws of noise.
fn seen(cells: usize) -> f64 {
    (2.0 * (cells as f64).ln()).sqrt().max(2.0)
}

/// Minimum ratio of an eigenvalue of a covariance to the largest one.
const LEAST_EIGENVALUE: f64 = 1e-9;

/// A cell of the release, relative to its landmark and in units.
struct Cell {
    rows: f64,
    sum: Vec<f64>,
    square: Vec<f64>,
}

impl Release {
    /// Returns the reconstruction: a sketch that rows could have produced, as close to the noisy
    /// sums as their noise justifies.
    pub fn estimate(&self) -> Result<Sketch> {
        let plan = self.plan().clone();
        let mut sums = Sums::zero(&plan);
        if let Some(rows) = self.terms().person_rows {
            sums[Sum::PersonRows][0] = i128::from(rows);
        }
        match plan.landmarks().filter(|_| plan.collect.cells) {
            Some(landmarks) => self.add_cells(landmarks, &mut sums),
            None => sums[Sum::Rows][0] = i128::from(self.rows()).min(MAX_WEIGHT),
        }
        let rows = sums[Sum::Rows][0];
        if let Some((noisy, _)) = self.of_mechanism(Mechanism::Kernel) {
            let most = rows * i128::from(FEATURE_ONE);
            let least = if plan.landmarks().is_some() { 0 } else { -most };
            sums[Sum::Features] = noisy.iter().map(|x| (*x).clamp(least, most)).collect();
            // The coverage is not released; use its upper bound.
            sums[Sum::Coverage].fill(most);
        }
        if let (Some((totals, _)), Some((products, _))) =
            (self.of_mechanism(Mechanism::Totals), self.of_mechanism(Mechanism::Products))
        {
            let (sum, outer) = possible_moments(totals, products, rows)?;
            (sums[Sum::Sum], sums[Sum::Outer]) = (sum, outer);
        }
        Ok(Sketch::from_sums(plan, sums)?.estimated_from(&self.promise()))
    }

    /// Returns the number of rows divided by the standard deviation of its noise.
    pub fn signal(&self) -> f64 {
        let counts = self.of_mechanism(Mechanism::Counts).or(self.of_mechanism(Mechanism::Rows));
        let Some((counts, noise)) = counts else { return 0.0 };
        self.rows() as f64 / (noise * (counts.len() as f64).sqrt())
    }

    /// Adds the cells whose counts exceed the noise, with the other cells pooled into their
    /// neighbours.
    fn add_cells(&self, landmarks: &Points, sums: &mut Sums) {
        let plan = self.plan();
        let d = plan.dims();
        let anchors = plan.anchors();
        let radius = plan.private.as_ref().map_or(0.0, |p| p.radius as f64);
        let of = |m| self.of_mechanism(m).expect("a release of cells");
        let (counts, count_noise) = of(Mechanism::Counts);
        let (shifts, shift_noise) = of(Mechanism::Sums);
        let (squares, square_noise) = of(Mechanism::Squares);
        let cell = |c: usize| Cell {
            rows: counts[c] as f64,
            sum: shifts[c * d..(c + 1) * d].iter().map(|x| *x as f64).collect(),
            square: squares[c * d..(c + 1) * d].iter().map(|x| *x as f64).collect(),
        };
        let threshold = seen(counts.len()) * count_noise;
        let (seen, hidden): (Vec<usize>, Vec<usize>) =
            (0..counts.len()).partition(|c| counts[*c] as f64 > threshold);
        if seen.is_empty() {
            return;
        }
        let mut cells: Vec<Cell> = seen.iter().map(|c| cell(*c)).collect();
        let mut merged = vec![1.0; cells.len()];
        // Pool each hidden cell with the nearest visible one: together they may exceed the noise.
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); cells.len()];
        for c in hidden {
            let apart =
                |s: &usize| Points::squared_distance(landmarks.row(c), landmarks.row(seen[*s]));
            let nearest = (0..seen.len()).min_by(|a, b| apart(a).total_cmp(&apart(b)));
            groups[nearest.unwrap_or(0)].push(c);
        }
        for (at, group) in groups.iter().enumerate() {
            let rows: f64 = group.iter().map(|c| counts[*c] as f64).sum();
            if rows <= 2.0 * count_noise * (group.len() as f64).sqrt() {
                continue;
            }
            merged[at] += group.len() as f64;
            for &c in group {
                let other = cell(c);
                cells[at].rows += other.rows;
                for k in 0..d {
                    // Relative to the visible landmark: u + a, and (u + a)².
                    let away = anchors[c * d + k] - anchors[seen[at] * d + k];
                    cells[at].sum[k] += other.sum[k] + other.rows * away;
                    cells[at].square[k] +=
                        other.square[k] + 2.0 * away * other.sum[k] + other.rows * away * away;
                }
            }
        }
        let all: f64 = cells.iter().map(|c| c.rows).sum();
        // Average variance of each column within cells.
        let usual: Vec<f64> = (0..d)
            .map(|k| {
                let within = |c: &Cell| c.square[k] - c.sum[k] * c.sum[k] / c.rows.max(1.0);
                (cells.iter().map(within).sum::<f64>() / all).clamp(0.0, radius * radius)
            })
            .collect();
        let ends = ends(plan);
        for ((cell, merged), c) in cells.iter().zip(&merged).zip(&seen) {
            let n = cell.rows.round().clamp(1.0, MAX_WEIGHT as f64);
            let mut mean: Vec<f64> = cell.sum.iter().map(|s| s / n).collect();
            let length: f64 = mean.iter().map(|x| x * x).sum();
            let noise = merged * (shift_noise / n).powi(2);
            // Subtract the length that noise alone explains (James and Stein).
            let mut factor = (1.0 - d as f64 * noise / length.max(f64::MIN_POSITIVE)).max(0.0);
            let most = if *merged > 1.0 { f64::INFINITY } else { radius };
            if factor * length.sqrt() > most {
                factor = most / length.sqrt();
            }
            mean.iter_mut().for_each(|x| *x *= factor);
            let doubt = merged * (square_noise / n).powi(2);
            let variance = |k: usize| {
                let told = cell.square[k] / n - (cell.sum[k] / n).powi(2);
                let trust = usual[k].powi(2) / (usual[k].powi(2) + doubt).max(f64::MIN_POSITIVE);
                (trust * told + (1.0 - trust) * usual[k]).max(0.0)
            };
            let rows = n as i128;
            sums[Sum::CellRows][*c] = rows;
            for k in 0..d {
                let at = (anchors[c * d + k] + mean[k]).clamp(ends[k].0, ends[k].1);
                let sum = (at * n).round() as i128;
                let spread = variance(k).min(4.0 * radius * radius);
                let square = sum / rows * sum + (spread * n).round() as i128;
                sums[Sum::CellSum][c * d + k] = sum;
                sums[Sum::CellSquare][c * d + k] = possible_square(square, sum, rows);
            }
        }
        sums[Sum::Rows][0] = sums[Sum::CellRows].iter().sum();
    }
}

/// Returns the bounds in integer coordinates.
fn ends(plan: &Plan) -> Vec<(f64, f64)> {
    let frame = &plan.frame;
    let unit = power_of_two(-frame.exponent[0]);
    let whole = |x: f64, j: usize| ((x - frame.centre[j]) / frame.scale[j] * unit).round();
    let private = plan.private.as_ref().expect("a release is of a private plan");
    let pairs = private.low.iter().zip(&private.high).enumerate();
    pairs.map(|(j, (low, high))| (whole(*low, j), whole(*high, j))).collect()
}

/// Returns the smallest sum of squares that is at least `square` and possible for rows with this
/// sum.
fn possible_square(square: i128, sum: i128, rows: i128) -> i128 {
    if rows == 1 {
        return sum * sum;
    }
    // ⌈sum²/rows⌉ in parts, because sum² may exceed 128 bits.
    let (a, b) = (sum / rows, sum % rows);
    let least = a * sum + a * b + (b * b + rows - 1) / rows;
    let square = square.max(least);
    square + ((square ^ sum) & 1)
}

/// Returns sums and products that rows could have: the covariance is replaced by the nearest one
/// without negative eigenvalues.
fn possible_moments(
    totals: &[i128],
    products: &[i128],
    rows: i128,
) -> Result<(Vec<i128>, Vec<i128>)> {
    let (d, n) = (totals.len(), rows.max(1) as f64);
    if rows == 0 {
        return Ok((vec![0; d], vec![0; products.len()]));
    }
    let limit = rows << 44;
    let sum: Vec<i128> = totals.iter().map(|s| (*s).clamp(-limit, limit)).collect();
    let most = 1 << MOST_BITS;
    let products: Vec<i128> = products.iter().map(|p| (*p).clamp(-most, most)).collect();
    let mean: Vec<f64> = sum.iter().map(|s| *s as f64 / n).collect();
    let at = |i: usize, j: usize| i.max(j) * (i.max(j) + 1) / 2 + i.min(j);
    let covariance =
        Matrix::from_fn(d, d, |i, j| products[at(i, j)] as f64 / n - mean[i] * mean[j]);
    let eigen = symmetric_eigen(&covariance)?;
    let largest = eigen.values.iter().copied().fold(0.0, f64::max);
    // At least one unit, so that rounding cannot make the determinant of two columns negative.
    let least = (LEAST_EIGENVALUE * largest).max(16.0);
    let mut outer = vec![0; products.len()];
    for i in 0..d {
        for j in 0..=i {
            let part = |k: usize| {
                eigen.values[k].max(least) * eigen.vectors.get(i, k) * eigen.vectors.get(j, k)
            };
            let value: f64 = (0..d).map(part).sum();
            // Σp Σq / n in parts.
            let (a, b) = (sum[i] / rows, sum[i] % rows);
            let whole = a * sum[j] + (b as f64 * mean[j]).round() as i128;
            outer[at(i, j)] = whole + (value * n).round() as i128;
        }
        outer[at(i, i)] = possible_square(outer[at(i, i)], sum[i], rows);
    }
    Ok((sum, outer))
}

impl Release {
    /// Draws rows that resemble the released ones from the cells, at no cost. The landmarks of a
    /// second plan are chosen from them. Each row is the mean of a cell plus Gaussian noise, whose
    /// width includes the noise of the release.
    pub fn like_its_rows(&self, count: usize, seed: u64) -> Result<Table> {
        let (plan, estimate) = (self.plan(), self.estimate()?);
        if !plan.collect.cells || plan.recipe.numbers.iter().any(|n| n.step != Step::AsIs) {
            let expected = "one with cells, of unscaled columns";
            return Err(Error::parameter("`release`", expected, "another"));
        }
        if estimate.rows() == 0 {
            let expected = "one whose rows show above its noise";
            return Err(Error::parameter("`release`", expected, "noise alone"));
        }
        let (sums, exponents, ends) = (estimate.sums(), &plan.frame.exponent, ends(plan));
        let noise = |m| self.of_mechanism(m).map_or(0.0, |(_, noise)| noise);
        let (shift_noise, square_noise) = (noise(Mechanism::Sums), noise(Mechanism::Squares));
        let radius = plan.private.as_ref().map_or(0.0, |p| p.radius as f64);
        let weights: Vec<f64> = sums[Sum::CellRows].iter().map(|n| *n as f64).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut values = Vec::with_capacity(count * plan.dims());
        for _ in 0..count {
            let cell = draw(&weights, &mut rng).unwrap_or(0);
            let n = weights[cell];
            // The position of the rows of a cell is uncertain by the noise of its mean.
            let doubt = (shift_noise / n).powi(2) + square_noise / n;
            let row: Vec<f64> = sums
                .cell_mean(cell, exponents)
                .iter()
                .enumerate()
                .map(|(k, mean)| {
                    let variance = (sums.cell_spread(cell, k) / n).max(0.0) + doubt;
                    let unit = power_of_two(exponents[k]);
                    let away = variance.sqrt().min(radius) * normal(&mut rng);
                    (mean / unit + away).clamp(ends[k].0, ends[k].1) * unit
                })
                .collect();
            values.extend(plan.frame.widen_coordinates(&row));
        }
        Table::new(plan.columns.clone(), values)
    }
}
