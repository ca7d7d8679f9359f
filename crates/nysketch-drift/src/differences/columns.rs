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
    let plan = a.plan();
    let present = |sketch: &Sketch| -> Vec<f64> {
        sketch.missing_shares().iter().map(|s| sketch.weight() * (1.0 - s)).collect()
    };
    let (rows_a, rows_b) = (present(a), present(b));
    let z = |k: usize| {
        let ((mean_a, var_a), (mean_b, var_b)) = (of_a[k], of_b[k]);
        let (na, nb) = (rows_a[k], rows_b[k]);
        let variance = (na * var_a + nb * var_b) / (na + nb);
        let error = (variance * (1.0 / na + 1.0 / nb)).sqrt();
        // Means of a constant column may differ by rounding.
        let rounding = 1e-15 * (mean_a.abs() + mean_b.abs());
        let change = mean_b - mean_a;
        if change.abs() <= rounding { 0.0 } else { change / error }
    };
    let quantile = normal_quantile(0.5 * level);
    let effect = |k: usize| {
        let noise = 1.0 / rows_a[k] + 1.0 / rows_b[k];
        let deviations = z(k) * noise.sqrt();
        // The standard deviation that serves as the unit has an error too.
        let own = deviations * deviations / (2.0 * (rows_a[k] + rows_b[k]));
        let effect = Effect { deviations, low: None, high: None };
        deviations.is_finite().then(|| effect.with_interval(quantile * (noise + own).sqrt()))
    };
    let [means_a, means_b] = [&of_a, &of_b].map(|of| of.iter().map(|m| m.0).collect::<Vec<f64>>());
    let value = |means: &[f64], aspect| {
        let facts = Facts { numbers: means, ..Facts::default() };
        facts.value(aspect, &plan.recipe).unwrap_or(f64::NAN)
    };
    let change = |aspect: Aspect| {
        let column = aspect.name(&plan.columns, &plan.recipe);
        let means = [value(&means_a, aspect), value(&means_b, aspect)];
        match aspect {
            Aspect::Number(k) => Some(ColumnChange {
                column,
                aspect,
                means: means.map(|x| plan.recipe.numbers[k].step.undo(x)),
                deviations: Some([of_a[k].1.sqrt(), of_b[k].1.sqrt()]),
                z: z(k),
                effect: effect(k),
                q_value: None,
                freedom: None,
                error: (1.0 / rows_a[k] + 1.0 / rows_b[k]).sqrt(),
            }),
            Aspect::Cycle(j, k) => {
                let z = z(j).hypot(z(k)) * FRAC_1_SQRT_2;
                Some(ColumnChange {
                    column,
                    aspect,
                    means,
                    deviations: None,
                    z,
                    effect: None,
                    q_value: None,
                    freedom: None,
                    error: 0.0,
                })
            }
            Aspect::Level(..) | Aspect::Missing(_) => None,
        }
    };
    let there = |aspect: &Aspect| match *aspect {
        Aspect::Number(k) | Aspect::Cycle(k, _) => rows_a[k] > 0.0 && rows_b[k] > 0.0,
        Aspect::Level(..) | Aspect::Missing(_) => false,
    };
    let aspects = Aspect::all(&plan.recipe).into_iter().filter(there);
    let mut changes: Vec<ColumnChange> = aspects.filter_map(change).collect();
    changes.sort_by(|p, q| q.z.abs().total_cmp(&p.z.abs()));
    changes
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
                    let error = match z[k] == 0.0 || self.z == 0.0 {
                        true => self.error * widening.sqrt(),
                        false => (effect.deviations / z[k]).abs(),
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
