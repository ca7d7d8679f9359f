//! Unfolding: replaces cells by points.
//!
//! Cells that a border between two centres cuts are *unfolded* into points. If a mixture predicts
//! the counts of the cells, points are drawn from the mixture and assigned to the cell of their
//! nearest landmark. Then the points of each cell are shifted and scaled to the known mean and
//! variance of the cell; their shape is that of the mixture within the borders of the cell.
//! Otherwise points are drawn around the mean of the cell.

use super::cells::Cells;
use super::nearest_cells::nearest_landmarks;
use crate::atom::Atom;
use nysketch_core::numeric::random::{below, normal, unit};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Approximate total number of points into which all cells are unfolded, and the maximum number of
/// their values. Each cell gets at least one pair of points even if that exceeds these limits.
const UNFOLDED: usize = 20_000;
const UNFOLDED_VALUES: usize = 4_000_000;
/// Largest share of the rows that a mixture may assign to the wrong cells and still be used to
/// shape them.
const MISPLACED: f64 = 0.15;
/// Minimum number of points drawn in a cell for them to determine its shape.
const MIN_DRAWN: f64 = 6.0;

impl Cells {
    /// Draws points from a mixture, then shifts, scales and weights the points in each cell to its
    /// mean, variance and rows. Returns `None` if the mixture assigns too many rows to the wrong
    /// cells.
    pub(super) fn unfold_by(&self, atoms: &[Atom], rng: &mut impl rand::Rng) -> Option<Cells> {
        let d = self.dims;
        let landmarks = self.landmarks.as_ref().filter(|_| self.have_variance())?;
        // Draw from each component in proportion to its weight, with new draws each time: a mixture
        // that is repeatedly fitted to the same draws fits their noise.
        let all = UNFOLDED.min(UNFOLDED_VALUES / d);
        let mut points = Vec::with_capacity(all * d);
        for atom in atoms {
            let deviation: Vec<f64> = atom.variance().iter().map(|g| g.sqrt()).collect();
            for _ in 0..(atom.weight * all as f64).round() as usize {
                let columns = atom.mean.iter().zip(&deviation);
                points.extend(columns.map(|(mean, deviation)| mean + deviation * normal(rng)));
            }
        }
        let narrow: Vec<f32> = points.iter().map(|x| *x as f32).collect();
        let cell_of = nearest_landmarks(landmarks, &narrow);
        let mut count = vec![0.0; self.rows.len()];
        cell_of.iter().for_each(|cell| count[*cell] += 1.0);
        let (total, all) = (self.rows.iter().sum::<f64>(), cell_of.len() as f64);
        // Sampling noise alone assigns about 0.4 √(cells/draws) of the points to the wrong cells.
        let chance = 0.4 * (self.rows.len() as f64 / all).sqrt();
        let off = self.rows.iter().zip(&count).map(|(rows, n)| (rows / total - n / all).abs());
        if !(0.5 * off.sum::<f64>() <= MISPLACED + chance) {
            return None;
        }
        // Mean and scaling factor of each column of each cell.
        let (mut mean, mut factor) = (vec![0.0; self.means.len()], vec![0.0; self.means.len()]);
        for (x, &cell) in points.chunks_exact(d).zip(&cell_of) {
            let mean = &mut mean[cell * d..(cell + 1) * d];
            mean.iter_mut().zip(x).for_each(|(m, x)| *m += x / count[cell]);
        }
        for (x, &cell) in points.chunks_exact(d).zip(&cell_of) {
            let span = cell * d..(cell + 1) * d;
            let each = factor[span.clone()].iter_mut().zip(x.iter().zip(&mean[span]));
            each.for_each(|(f, (x, m))| *f += (x - m) * (x - m) / count[cell]);
        }
        for (f, v) in factor.iter_mut().zip(&self.variances) {
            *f = (v / f.max(f64::MIN_POSITIVE)).sqrt();
        }
        let mut rows = Vec::with_capacity(cell_of.len());
        for (i, &cell) in cell_of.iter().enumerate().filter(|(_, cell)| count[**cell] >= MIN_DRAWN)
        {
            let (from, to) = (i * d, rows.len() * d);
            for (k, at) in (cell * d..(cell + 1) * d).enumerate() {
                points[to + k] = self.means[at] + factor[at] * (points[from + k] - mean[at]);
            }
            rows.push(self.rows[cell] / count[cell]);
        }
        points.truncate(rows.len() * d);
        // Too few draws do not determine the shape of a cell.
        let undrawn: Vec<usize> =
            (0..count.len()).filter(|&cell| count[cell] < MIN_DRAWN).collect();
        let rest = self.only(&undrawn).unfold(rng);
        rows.extend(rest.rows);
        points.extend(rest.means);
        Some(self.points(rows, points))
    }

    /// Returns the number of antithetic pairs of points per unfolded cell.
    fn pairs(&self) -> usize {
        let points = UNFOLDED.min(UNFOLDED_VALUES / self.dims);
        (points / (2 * self.rows.len().max(1))).clamp(if points == UNFOLDED { 2 } else { 1 }, 200)
    }

    /// Replaces every cell by points drawn around its mean with its variance.
    pub fn unfold(&self, rng: &mut impl rand::Rng) -> Cells {
        if !self.have_variance() {
            let known = self.known.clone();
            return Cells { known, ..self.points(self.rows.clone(), self.means.clone()) };
        }
        let pairs = self.pairs();
        let (mut rows, mut means, mut known) = (Vec::new(), Vec::new(), Vec::new());
        for (c, cell) in self.iter().enumerate() {
            let mut drawn = cell.drawn(pairs, rng);
            for axes in &self.levels {
                let (shares, end) = (axes.of(cell.mean), axes.start + axes.len);
                let points = drawn.chunks_exact_mut(self.dims);
                draw_levels(shares, axes.size, points.map(|x| &mut x[axes.start..end]), rng);
            }
            let shares = self.known.get(c * self.dims..(c + 1) * self.dims).unwrap_or(&[]);
            (0..2 * pairs).for_each(|_| known.extend_from_slice(shares));
            rows.extend(std::iter::repeat_n(cell.rows / (2 * pairs) as f64, 2 * pairs));
            means.extend(drawn);
        }
        Cells { known, ..self.points(rows, means) }
    }

    /// Unfolds the cells without a mixture and with a fixed seed, so that models can be compared on
    /// the same points.
    pub(crate) fn unfold_with_fixed_seed(&self) -> Cells {
        self.unfold(&mut ChaCha8Rng::seed_from_u64(0))
    }
}

/// Assigns one level to each point, in random order, with counts as close as possible to the
/// shares. A level and the sum of all shares both have the value `size`.
fn draw_levels<'a>(
    shares: &[f64],
    size: f64,
    points: impl ExactSizeIterator<Item = &'a mut [f64]>,
    rng: &mut impl rand::Rng,
) {
    let n = points.len();
    let offset = unit(rng);
    let (mut level, mut up_to) = (0, shares[0] / size);
    let mut levels: Vec<usize> = Vec::with_capacity(n);
    for i in 0..n {
        while (i as f64 + offset) / n as f64 >= up_to && level + 1 < shares.len() {
            level += 1;
            up_to += shares[level] / size;
        }
        levels.push(level);
    }
    for i in (1..n).rev() {
        levels.swap(i, below(i + 1, rng));
    }
    for (point, level) in points.zip(levels) {
        point.fill(0.0);
        point[level] = size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::em::Floor;
    use crate::model::report::Report;
    use nysketch_core::kmeans::{Effort, Loss};
    use nysketch_core::numeric::points::Points;
    use nysketch_core::plan::sphere::Spheres;

    /// A mixture that barely overlaps a cell draws at most a few points in it. Such a cell is
    /// unfolded without the mixture, and every cell keeps its rows, mean and variance.
    #[test]
    fn unfolding_keeps_moments() {
        let cells = Cells {
            dims: 1,
            rows: vec![1000.0, 300.0, 5.0],
            means: vec![0.5, -20.0, 80.0],
            variances: vec![90.0, 5.0, 9.0],
            floor: Floor::new(vec![1e-3]),
            unit: vec![1e-9],
            landmarks: Some(Points::new(1, vec![0.0, -21.0, 78.0])),
            known: Vec::new(),
            levels: Vec::new(),
            spheres: Spheres::default(),
        };
        let atoms = [
            Atom::diagonal(0.77, vec![0.0], vec![100.0]),
            Atom::diagonal(0.23, vec![-20.0], vec![4.0]),
        ];
        for seed in 0..10 {
            let rng = &mut ChaCha8Rng::seed_from_u64(seed);
            let unfolded = cells.unfold_by(&atoms, rng).expect("it describes the cells");
            let points = unfolded.weighted_means();
            assert!(unfolded.means.iter().chain(&unfolded.rows).all(|x| x.is_finite()));
            assert!((points.mass() - 1305.0).abs() < 1e-6);
            let mean = points.iter().map(|(x, w)| w * x[0]).sum::<f64>();
            let square = points.iter().map(|(x, w)| w * x[0] * x[0]).sum::<f64>();
            let (mut exact, mut exact_square) = (0.0, 0.0);
            for cell in cells.iter() {
                exact += cell.rows * cell.mean[0];
                exact_square += cell.rows * (cell.mean[0].powi(2) + cell.variance(0));
            }
            assert!((mean - exact).abs() < 1e-6, "{mean} {exact}");
            let off = (square - exact_square).abs();
            assert!(off < 1e-6 * exact_square, "{square} {exact_square}");
        }
    }

    /// Points are cells of zero variance, so they are not unfolded.
    #[test]
    fn points_stay_points() {
        let cells = Cells::of_rows(2, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        assert_eq!(cells.unfold(rng).means, cells.means);
        // The same holds if all rows of a cell are equal.
        let equal = Cells { landmarks: Some(Points::new(2, vec![0.0; 6])), ..cells.clone() };
        let atom = Atom::diagonal(1.0, vec![2.0, 3.0], vec![2.0, 2.0]);
        assert_eq!(
            equal.own_likelihood(std::slice::from_ref(&atom)),
            cells.likelihood(std::slice::from_ref(&atom))
        );
        let effort = Effort::new(2, 10);
        let report = &mut Report::default();
        let centres = cells.cluster(3, Loss::Squared, effort, &[], rng, report);
        assert!(cells.weighted_means().risk(&centres, Loss::Squared) < 1e-12);
    }
}
