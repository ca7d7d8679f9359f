//! Atoms fitted to the points that represent the rows.

use super::em::Levels;
use super::stand_ins::StandIns;
use crate::atom::Atom;
use crate::covariance::{Covariance, SymmetricMatrix};
use nysketch_core::kernel::squared_distance;
use nysketch_core::kmeans::members;
use nysketch_core::numeric::linalg::add_gram;

impl StandIns {
    /// Returns one atom per centre, fitted to the points nearest to it, with full covariances or
    /// diagonals.
    pub fn atoms_around(&self, centres: &[Vec<f64>], matrices: bool) -> Vec<Atom> {
        let (levels, total) = (self.levels(), self.mass());
        let mut atoms = Vec::with_capacity(centres.len());
        for (centre, members) in centres.iter().zip(self.members(centres)) {
            let mass: f64 = members.iter().map(|i| self.weights[*i]).sum();
            let mean = if mass > 0.0 {
                (0..self.dims).map(|k| self.mean_over(&members, mass, |x| x[k])).collect()
            } else {
                centre[..self.dims].to_vec()
            };
            let covariance = if matrices {
                Covariance::Full(self.matrix_over(&members, mass, &mean))
            } else {
                let each = (0..self.dims).zip(&mean);
                let variances =
                    each.map(|(k, m)| self.mean_over(&members, mass, |x| (x[k] - m).powi(2)));
                Covariance::Diagonal(variances.collect())
            };
            let mut atom = Atom::new(mass / total, mean, covariance);
            atom.levels = self.levels_over(&members, &levels);
            atoms.push(atom);
        }
        atoms
    }

    /// Returns the mean of a value over some of the points, of total weight `mass`.
    fn mean_over(&self, points: &[usize], mass: f64, of: impl Fn(&[f64]) -> f64) -> f64 {
        let terms = points.iter().map(|i| self.weights[*i] * of(self.point(*i)));
        terms.sum::<f64>() / mass.max(f64::MIN_POSITIVE)
    }

    /// Returns the covariance of some of the points, of total weight `mass`, around a mean.
    fn matrix_over(&self, points: &[usize], mass: f64, mean: &[f64]) -> SymmetricMatrix {
        let d = self.dims;
        let mut apart = Vec::with_capacity(points.len() * d);
        for i in points {
            let root = (self.weights[*i] / mass).sqrt();
            apart.extend(self.point(*i).iter().zip(mean).map(|(x, m)| root * (x - m)));
        }
        let mut gram = vec![0.0; d * d];
        if !apart.is_empty() {
            add_gram(&mut gram, &apart, d);
        }
        SymmetricMatrix::from_fn(d, |i, j| gram[j * d + i])
    }

    /// Returns the shares of the levels of some of the points; empty without categories.
    fn levels_over(&self, points: &[usize], levels: &Levels) -> Vec<f64> {
        if levels.is_empty() {
            return Vec::new();
        }
        let mut sums = vec![0.0; levels.total()];
        points.iter().for_each(|i| levels.add(&mut sums, *i, self.weights[*i]));
        levels.shares(&sums)
    }

    /// Returns the indices of the points nearest to each centre. The levels of a centre are
    /// coordinates after its numeric columns.
    fn members(&self, centres: &[Vec<f64>]) -> Vec<Vec<usize>> {
        if self.categories.is_empty() {
            return members(self.dims, &self.places, centres);
        }
        // The squared norm of a centre's levels is expanded: only the coordinate of the point's own
        // level differs from zero.
        let levels: Vec<Vec<f64>> =
            centres.iter().map(|centre| centre.get(self.dims..).unwrap_or(&[]).to_vec()).collect();
        let numbers: Vec<&[f64]> = centres.iter().map(|c| &c[..self.dims]).collect();
        let squares: Vec<f64> = levels.iter().map(|l| l.iter().map(|x| x * x).sum()).collect();
        let mut members = vec![Vec::new(); centres.len()];
        for i in 0..self.len() {
            let mut best = (0, f64::INFINITY);
            for c in 0..centres.len() {
                let mut d2 = squared_distance(self.point(i), numbers[c]) + squares[c];
                let mut start = 0;
                for (code, (len, size)) in self.codes_of(i).iter().zip(&self.categories) {
                    let share = levels[c].get(start + *code as usize).copied().unwrap_or(0.0);
                    d2 += size * size - 2.0 * size * share;
                    start += len;
                }
                if d2 < best.1 {
                    best = (c, d2);
                }
            }
            members[best.0].push(i);
        }
        members
    }
}
