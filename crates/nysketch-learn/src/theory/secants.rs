//! Normalised secants μ = (p − q)/‖A(p − q)‖ of the model set, sampled and improved by descent.
//!
//! The value of a quadratic form at a secant, ‖A_m(μ)‖² or ⟨A(μ), (Σ̂ + λ)⁻¹ Σ̂ A(μ)⟩, is a ratio
//! of two quadratic forms of kernel values. Its gradient with respect to the positions of the atoms
//! is known, so secants with small values are found by descent.

use super::params::TheoryParams;
use crate::atom::embedding::Embedding;
use crate::optimize::{Stop, minimise};
use nysketch_core::numeric::linalg::dot;
use nysketch_core::numeric::random::{below, normal, unit};
use rand_chacha::ChaCha8Rng;

/// Secants shorter than this before normalisation are rounding errors.
const SHORTEST: f64 = 1e-7;
/// Maximum distance that an atom moves, divided by σ.
const REACH: f64 = 0.5;
/// Stopping rule of a descent.
pub(super) const STOP: Stop = Stop { evaluations: 150, relative: 1e-5 };

/// A mixture: weights and positions.
pub(super) type Mixture = Vec<(f64, Vec<f64>)>;

/// Two mixtures p and q of the model set.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    p: Mixture,
    q: Mixture,
}

impl Pair {
    /// Returns p − q as signed atoms, without atoms that p and q share.
    pub fn signed(&self) -> Mixture {
        let differ: Vec<usize> = (0..self.p.len()).filter(|i| self.p[*i] != self.q[*i]).collect();
        let of_q = differ.iter().map(|i| (-self.q[*i].0, self.q[*i].1.clone()));
        differ.iter().map(|i| self.p[*i].clone()).chain(of_q).collect()
    }

    /// Returns a lower bound of ‖p − q‖_L (16) for k-means: the cost of the atoms of one with the
    /// other as centres.
    pub fn difference_of_risks(&self) -> f64 {
        f64::max(risk(&self.p, &self.q), risk(&self.q, &self.p))
    }
}

/// Returns the k-means cost of the atoms of a mixture with the atoms of another as centres.
fn risk(of: &Mixture, centres: &Mixture) -> f64 {
    of.iter().map(|(w, x)| w * squared_distance_to_nearest(x, centres)).sum()
}

fn squared_distance_to_nearest(x: &[f64], centres: &Mixture) -> f64 {
    let squares =
        centres.iter().map(|(_, c)| x.iter().zip(c).map(|(a, b)| (a - b).powi(2)).sum::<f64>());
    squares.fold(f64::INFINITY, f64::min)
}

/// Draws a mixture of k atoms at some of the places.
fn drawn(places: &[Vec<f64>], k: usize, rng: &mut ChaCha8Rng) -> Mixture {
    let mut atoms = Vec::with_capacity(k);
    for _ in 0..k {
        let weight = -(1.0 - unit(rng)).ln();
        atoms.push((weight, places[below(places.len(), rng)].clone()));
    }
    let total: f64 = atoms.iter().map(|a| a.0).sum();
    atoms.iter_mut().for_each(|a| a.0 /= total);
    atoms
}

/// Samples pairs of mixtures of k atoms at some of the points: one third are independent, one third
/// differ in one atom, and in one third one atom has moved by between a hundredth of σ and σ.
pub(super) fn sampled(
    places: &[Vec<f64>],
    sigma2: f64,
    params: &TheoryParams,
    rng: &mut ChaCha8Rng,
) -> Vec<Pair> {
    let mut pairs = Vec::with_capacity(params.secants);
    for i in 0..params.secants {
        let p = drawn(places, params.k, rng);
        let mut q = p.clone();
        let changed = below(params.k, rng);
        match i % 3 {
            0 => q = drawn(places, params.k, rng),
            1 => q[changed].1 = places[below(places.len(), rng)].clone(),
            _ => {
                let far = sigma2.sqrt() * 10.0f64.powf(-2.0 * unit(rng));
                let mut step: Vec<f64> = q[changed].1.iter().map(|_| normal(rng)).collect();
                let length = dot(&step, &step).sqrt();
                step.iter_mut().for_each(|s| *s *= far / length);
                q[changed].1.iter_mut().zip(step).for_each(|(x, s)| *x += s);
            }
        }
        pairs.push(Pair { p, q });
    }
    pairs
}

/// Returns Σ w f of signed atoms, before whitening.
pub(super) fn features(embedding: &Embedding, signed: &Mixture, variance: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; embedding.len()];
    for (w, x) in signed {
        let f = embedding.features(x, variance);
        sum.iter_mut().zip(f).for_each(|(s, f)| *s += w * f);
    }
    sum
}

/// Returns ‖A(p − q)‖² if it exceeds the rounding error.
pub(super) fn squared_length(
    embedding: &Embedding,
    signed: &Mixture,
    variance: &[f64],
) -> Option<f64> {
    let mut length = 0.0;
    for (v, x) in signed {
        for (w, y) in signed {
            length += v * w * embedding.inner((x, variance), (y, variance)).value;
        }
    }
    let size: f64 = signed.iter().map(|(w, _)| w * w).sum();
    (length > SHORTEST * size).then_some(length)
}

/// Moves the atoms of a secant within a limited distance to where the value of a quadratic form is
/// smallest; `form` contains the points and the metric of the form. The limit is needed because
/// every form vanishes far from all rows, where models have no atoms.
pub(super) fn descend(form: &Embedding, signed: &Mixture, variance: &[f64]) -> Mixture {
    let (d, unit) = (variance.len(), form.sigma2.sqrt());
    let size: f64 = signed.iter().map(|(w, _)| w * w).sum();
    let ratio = Ratio { form, signed, variance, shortest: 10.0 * SHORTEST * size };
    let start: Vec<f64> = signed.iter().flat_map(|(_, x)| x.iter().map(|x| x / unit)).collect();
    let reach = REACH / (d as f64).sqrt();
    let low: Vec<f64> = start.iter().map(|x| x - reach).collect();
    let high: Vec<f64> = start.iter().map(|x| x + reach).collect();
    let minimum = minimise(|x, gradient| ratio.at(x, gradient), start, &low, &high, STOP);
    ratio.atoms(&minimum.x)
}

/// The value of a quadratic form at a secant, as a function of the positions of the atoms divided
/// by σ.
struct Ratio<'a> {
    form: &'a Embedding,
    /// The secant from which a descent starts.
    signed: &'a Mixture,
    variance: &'a [f64],
    /// The regularisation. It makes the ratio 1 for a secant that shrinks to a point, so that none
    /// does.
    shortest: f64,
}

impl Ratio<'_> {
    /// Returns the signed atoms at these positions.
    fn atoms(&self, x: &[f64]) -> Mixture {
        let (d, unit) = (self.variance.len(), self.form.sigma2.sqrt());
        let places = x.chunks_exact(d).map(|x| x.iter().map(|x| x * unit).collect());
        self.signed.iter().map(|(w, _)| *w).zip(places).collect()
    }

    /// Returns the ratio and writes its gradient.
    fn at(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let Ratio { form, variance, shortest, .. } = *self;
        let (d, unit) = (variance.len(), form.sigma2.sqrt());
        let atoms = self.atoms(x);
        let each: Vec<Vec<f64>> = atoms.iter().map(|(_, x)| form.features(x, variance)).collect();
        let mut sum = vec![0.0; form.len()];
        for ((w, _), f) in atoms.iter().zip(&each) {
            sum.iter_mut().zip(f).for_each(|(s, f)| *s += w * f);
        }
        let product = &form.metric_times(std::slice::from_ref(&sum))[0];
        let (form_value, mut length) = (dot(&sum, product), shortest);
        let (mut by_seen, mut by_length) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        for (i, (v, a)) in atoms.iter().enumerate() {
            let span = i * d..(i + 1) * d;
            let mut unused = vec![0.0; d];
            let place = (a.as_slice(), variance);
            form.add_vjp(
                place,
                &each[i],
                product,
                2.0 * v,
                &mut by_seen[span.clone()],
                &mut unused,
            );
            for (w, b) in &atoms {
                let inner = form.inner(place, (b, variance));
                length += v * w * inner.value;
                for (g, m) in by_length[span.clone()].iter_mut().zip(inner.by_mean) {
                    *g += 2.0 * v * w * m;
                }
            }
        }
        let value = (form_value + shortest) / length;
        for (g, (s, l)) in gradient.iter_mut().zip(by_seen.iter().zip(by_length)) {
            *g = (s - value * l) / length * unit;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::Context;
    use nysketch_core::pass::SketchParams;
    use nysketch_core::planning::{PlanParams, plan_for};
    use nysketch_core::rows::Table;
    use nysketch_core::rows::synthetic::Mixture as Source;
    use nysketch_core::sketch::Sketch;
    use rand::SeedableRng;
    use std::sync::Arc;

    /// Returns ‖A_m(μ)‖² of a normalised secant of Diracs in two columns.
    fn form_at(embedding: &Embedding, atoms: &Mixture) -> Option<f64> {
        let f = features(embedding, atoms, &[0.0; 2]);
        Some(embedding.squared_norm(&f) / squared_length(embedding, atoms, &[0.0; 2])?)
    }

    /// For each kind of pair, a descent ends near its start, where the form has a smaller value; a
    /// form without loss has the value 1 there. Pairs that share atoms have two signed ones.
    #[test]
    fn descents_find_secants_that_are_seen_less() {
        let rows = Source::new(2, 3, 2.0, 4).unwrap().rows(0, 500).values;
        let table = Table::unnamed(2, rows.clone()).unwrap();
        let params = PlanParams::default().landmarks(15).bandwidths([4.0]);
        let plan = Arc::new(plan_for(&table, params).unwrap().0);
        let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
        let context = Context::new(&sketch);
        let embedding = context.embedding(0).unwrap();
        let places: Vec<Vec<f64>> = rows.chunks(2).map(|row| plan.frame.coordinates(row)).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let params = TheoryParams::new(3).secants(6);
        let variance = [0.0; 2];
        let mut less = 0;
        for (i, pair) in sampled(&places, 4.0, &params, &mut rng).iter().enumerate() {
            let signed = pair.signed();
            assert_eq!(signed.len(), if i.is_multiple_of(3) { 6 } else { 2 });
            let Some(before) = form_at(embedding, &signed) else { continue };
            let found = descend(embedding, &signed, &variance);
            for ((_, from), (_, to)) in signed.iter().zip(&found) {
                let far = from.iter().zip(to).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                assert!(far <= 0.5 * 2.0 * (1.0 + 1e-9), "half of σ = 2: {far}");
            }
            let after = form_at(embedding, &found).unwrap();
            assert!(before <= 1.0 + 1e-6 && after <= before * (1.0 + 1e-4), "{before} {after}");
            less += usize::from(after < 0.9 * before);
            assert!(pair.difference_of_risks() > 0.0);
        }
        assert!(less > 0, "some secant loses a tenth of its form");
    }
}
