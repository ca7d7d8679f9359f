//! Changes of the columns' means.

use crate::differences::found::{ColumnChange, Effect};
use crate::statistics::tail::{normal_beyond, normal_quantile};
use nysketch_core::numeric::student;
use nysketch_core::sketch::Sketch;
use nysketch_core::sketch::aspects::{Aspect, Facts};
use std::f64::consts::FRAC_1_SQRT_2;

/// Means and standard deviations of every column, largest change first. Columns without values in A
/// or in B are omitted.
pub fn columns(a: &Sketch, b: &Sketch, level: f64) -> Vec<ColumnChange> {
    let (Some(of_a), Some(of_b)) = (a.column_moments(), b.column_moments()) else {
        return Vec::new();
    };
    let moments = Moments { of_a, of_b, rows_a: present_rows(a), rows_b: present_rows(b) };
    let plan = a.plan();
    let quantile = normal_quantile(0.5 * level);
    let [means_a, means_b] =
        [&moments.of_a, &moments.of_b].map(|of| of.iter().map(|m| m.0).collect::<Vec<f64>>());
    let mut changes = Vec::new();
    for aspect in Aspect::all(&plan.recipe) {
        let (Aspect::Number(k) | Aspect::Cycle(k, _)) = aspect else { continue };
        if !(moments.rows_a[k] > 0.0 && moments.rows_b[k] > 0.0) {
            continue;
        }
        let means = [&means_a, &means_b].map(|numbers| {
            let facts = Facts { numbers, ..Facts::default() };
            facts.value(aspect, &plan.recipe).unwrap_or(f64::NAN)
        });
        let mut change = ColumnChange {
            column: aspect.name(&plan.columns, &plan.recipe),
            aspect,
            means,
            deviations: None,
            z: moments.z(k),
            effect: None,
            q_value: None,
            freedom: None,
            error: 0.0,
        };
        if let Aspect::Cycle(_, l) = aspect {
            change.z = change.z.hypot(moments.z(l)) * FRAC_1_SQRT_2;
        } else {
            change.means = means.map(|x| plan.recipe.numbers[k].step.undo(x));
            change.deviations = Some([moments.of_a[k].1.sqrt(), moments.of_b[k].1.sqrt()]);
            change.effect = moments.effect(k, quantile);
            change.error = moments.noise(k).sqrt();
        }
        changes.push(change);
    }
    changes.sort_by(|p, q| q.z.abs().total_cmp(&p.z.abs()));
    changes
}

/// The number of rows with a value, by weight, of each column.
fn present_rows(sketch: &Sketch) -> Vec<f64> {
    sketch.missing_shares().iter().map(|s| sketch.weight() * (1.0 - s)).collect()
}

/// Mean and variance of each column in A and B, and the numbers of rows with a value.
struct Moments {
    of_a: Vec<(f64, f64)>,
    of_b: Vec<(f64, f64)>,
    rows_a: Vec<f64>,
    rows_b: Vec<f64>,
}

impl Moments {
    /// The variance of the difference of the means of a column with variance 1.
    fn noise(&self, k: usize) -> f64 {
        1.0 / self.rows_a[k] + 1.0 / self.rows_b[k]
    }

    /// The difference of the means in standard errors.
    fn z(&self, k: usize) -> f64 {
        let ((mean_a, var_a), (mean_b, var_b)) = (self.of_a[k], self.of_b[k]);
        let (na, nb) = (self.rows_a[k], self.rows_b[k]);
        let variance = (na * var_a + nb * var_b) / (na + nb);
        let error = (variance * self.noise(k)).sqrt();
        // Means of a constant column may differ by rounding.
        let rounding = 1e-15 * (mean_a.abs() + mean_b.abs());
        let change = mean_b - mean_a;
        if change.abs() <= rounding { 0.0 } else { change / error }
    }

    /// The difference of the means in standard deviations, with an interval.
    fn effect(&self, k: usize, quantile: f64) -> Option<Effect> {
        let deviations = self.z(k) * self.noise(k).sqrt();
        // The standard deviation that serves as the unit has an error too.
        let of_unit = deviations * deviations / (2.0 * (self.rows_a[k] + self.rows_b[k]));
        let half = quantile * (self.noise(k) + of_unit).sqrt();
        let effect = Effect { deviations, low: None, high: None };
        deviations.is_finite().then(|| effect.with_interval(half))
    }
}

impl ColumnChange {
    /// The p-value of the hypothesis that the mean did not change.
    pub fn p_value(&self) -> f64 {
        match (self.aspect, self.freedom) {
            // Sine and cosine: χ² with two degrees of freedom, or Hotelling's T².
            (Aspect::Cycle(..), None) => (-self.z * self.z).exp(),
            (Aspect::Cycle(..), Some(freedom)) => {
                let freedom = freedom as f64;
                (1.0 + 2.0 * self.z * self.z / freedom).powf(-0.5 * freedom)
            }
            (_, Some(freedom)) => (1.0 - student::within(self.z.abs(), freedom)).max(0.0),
            (_, None) => 2.0 * normal_beyond(self.z.abs()),
        }
    }

    /// Replaces the noise by its estimate from folds: z of each numeric column, with Student's t
    /// distribution.
    pub fn by_folds(&mut self, z: &[f64], widening: f64, freedom: usize, level: f64) {
        match self.aspect {
            Aspect::Number(k) => {
                let t = student::quantile(1.0 - level, freedom);
                self.effect = self.effect.map(|effect| {
                    // If the mean did not change, the error follows from the noise of the cells.
                    let error = if z[k] == 0.0 || self.z == 0.0 {
                        self.error * widening.sqrt()
                    } else {
                        (effect.deviations / z[k]).abs()
                    };
                    effect.with_interval(t * error)
                });
                self.z = z[k];
            }
            Aspect::Cycle(j, k) => self.z = z[j].hypot(z[k]) * FRAC_1_SQRT_2,
            Aspect::Level(..) | Aspect::Missing(_) => {}
        }
        self.freedom = Some(freedom);
    }
}
