//! The quantities of section 4 of the paper, estimated from a sketch.
//!
//! With the spectrum of the covariance operator Σ and the effective dimensions N(λ), N_∞(λ) and N_f(λ) of
//! [`spectrum`](crate::spectrum),
//!
//! ```text
//! λ_t     = sup_μ inf {λ : N_A(μ)(λ) ≤ t} ,  μ over the normalised secants of the model set       (13)
//! ```
//!
//! Theorem 4.1 holds for λ ≥ λ_t with 3λt < 1 (19), with C = C_F (1 − 3λt)^(−½), and asks for
//!
//! ```text
//! m ≥ max(67, 5 N_∞(λ)) log(4/(λδ))                       uniform landmarks                (20)
//! m ≥ max(334, 78 z² N(λ)) log(16n/δ)                     leverage scores                  (21a)
//! n ≥ 1655 + 233 log(4/δ) ,   19/n log(4n/δ) ≤ λ ≤ ‖Σ‖                                     (21b, c)
//! ```
//!
//! Proposition 4.1 gives λ and t from a source condition γ_s = sup_μ Σ_ℓ ⟨A(μ), e_ℓ⟩²/σ_ℓ^2s (22), and
//! corollary D.1 the size that follows (64). What is a supremum is taken here over a sample, and so is a
//! lower bound of it. All constants are for a Gaussian kernel, K = 1.

use crate::atom::embedding::Embedding;
use crate::decoder::Context;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg::dot;
use crate::random::{below, draw, normal, unit};
use crate::sketch::Sketch;
use crate::spectrum::Spectrum;
use crate::sums::Sum;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// λ that stands for zero.
const LEAST_LAMBDA: f64 = 1e-12;

/// What to compute.
///
/// ```
/// use nysketch::theory::TheoryParams;
/// // At the second bandwidth of the plan, for k-means with 10 centres.
/// let params = TheoryParams::new(10).rung(1).delta(0.01).secants(100);
/// assert_eq!(params.known_variance, 0.0);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TheoryParams {
    /// Which bandwidth of the plan; the middle one by default.
    pub rung: Option<usize>,
    /// λ of the sizes; by default the one at which theorem 4.1 holds with C = 2 C_F.
    pub lambda: Option<f64>,
    /// Probability of failure.
    pub delta: f64,
    /// Atoms of the mixtures of the model set.
    pub k: usize,
    /// Variance of the atoms in every coordinate: 0 for k-means (example 5), known for mixtures (6).
    pub known_variance: f64,
    /// Secants to sample.
    pub secants: usize,
    /// Seed of the sample; that of the plan by default.
    pub seed: Option<u64>,
}

impl Default for TheoryParams {
    fn default() -> Self {
        TheoryParams {
            rung: None,
            lambda: None,
            delta: 0.1,
            k: 10,
            known_variance: 0.0,
            secants: 300,
            seed: None,
        }
    }
}

impl TheoryParams {
    /// The defaults for mixtures of k atoms.
    pub fn new(k: usize) -> Self {
        TheoryParams { k, ..TheoryParams::default() }
    }

    /// At this bandwidth of the plan.
    #[must_use]
    pub fn rung(mut self, rung: usize) -> Self {
        self.rung = Some(rung);
        self
    }

    /// With sizes for this λ.
    #[must_use]
    pub fn lambda(mut self, lambda: Option<f64>) -> Self {
        self.lambda = lambda;
        self
    }

    /// With this probability of failure.
    #[must_use]
    pub fn delta(mut self, delta: f64) -> Self {
        self.delta = delta;
        self
    }

    /// With atoms of this variance in every coordinate.
    #[must_use]
    pub fn known_variance(mut self, variance: f64) -> Self {
        self.known_variance = variance;
        self
    }

    /// With so many sampled secants.
    #[must_use]
    pub fn secants(mut self, secants: usize) -> Self {
        self.secants = secants;
        self
    }

    /// With this seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Checks every parameter that can be checked without a sketch.
    pub fn check(&self) -> Result<()> {
        if !(self.delta > 0.0 && self.delta < 1.0) {
            return Err(Error::parameter("`delta`", "between 0 and 1", self.delta));
        }
        if let Some(got) = self.lambda.filter(|l| !(*l > 0.0 && *l <= 1.0)) {
            return Err(Error::parameter("`lambda`", "above 0 and at most 1", got));
        }
        if self.k == 0 || self.k > 100_000 {
            return Err(Error::parameter("`k`", "between 1 and 100,000", self.k));
        }
        if self.secants == 0 {
            return Err(Error::parameter("`secants`", "at least 1", 0));
        }
        if !(self.known_variance >= 0.0 && self.known_variance.is_finite()) {
            return Err(Error::parameter("`known_variance`", "0 or more", self.known_variance));
        }
        Ok(())
    }
}

/// A normalised secant μ = (p − q)/‖A(p − q)‖ of the model set.
struct Secant {
    /// `(Uᵀ D^½ k_μ)²`.
    c: Vec<f64>,
    /// ‖A_m(μ)‖: at most 1.
    projected: f64,
}

/// What theorem 4.1 says about a data set.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Theory {
    /// σ².
    #[serde(rename = "bandwidth")]
    pub sigma2: f64,
    /// Probability of failure.
    pub delta: f64,
    /// Atoms of the mixtures of the model set.
    pub k: usize,
    /// Variance of the atoms; 0 for Diracs.
    pub known_variance: f64,
    /// Pairs of mixtures that were sampled.
    pub secants: usize,
    /// Rows n of the sketch.
    pub rows: u64,
    /// Landmarks m of the sketch.
    pub landmarks: usize,
    /// ‖Σ‖.
    pub norm: f64,
    /// λ that all is computed for. By default the largest with 3λt ≤ ¾, that is C ≤ 2 C_F, and so the
    /// smallest sizes; 1/√n where there is none.
    pub lambda: f64,
    /// The least t that λ is λ_t (13) of, over the sampled secants.
    pub t: f64,
    /// 3λt.
    pub condition: f64,
    /// 3λt as λ falls to zero: the share of the secants that Σ does not see, times 3. Where it is 1 or
    /// more, no λ meets (19).
    pub least_condition: f64,
    /// Whether (19) holds at λ.
    pub holds: bool,
    /// C/C_F at λ, where (19) holds.
    pub constant: Option<f64>,
    /// N(λ).
    pub effective_dimension: f64,
    /// N_∞(λ), over the landmarks.
    pub largest_leverage: f64,
    /// m of (20).
    pub uniform: f64,
    /// m of (21a), for exact scores, z = 1.
    pub leverage: f64,
    /// n of (21b).
    pub least_rows: f64,
    /// λ that (21c) allows at least.
    pub least_lambda: f64,
    /// s, γ_s, t, λ and m of proposition 4.1 and (64), for the s with the least m and C' = 2 C_F.
    pub source: Option<Source>,
    /// Largest and median ‖A(μ)‖/‖A_m(μ)‖ over the secants: C_a of (25).
    pub distortion: [f64; 2],
    /// Landmarks that docs/RESULTS.md shows to be enough: twice the numbers of the model, 2k(d + 1).
    pub enough: usize,
}

impl Theory {
    /// Whether rows and λ are such that (21) holds for leverage scores.
    pub fn leverage_holds(&self) -> bool {
        self.rows as f64 >= self.least_rows
            && self.lambda >= self.least_lambda
            && self.lambda <= self.norm
    }
}

/// Proposition 4.1 and corollary D.1.
#[derive(Debug, Clone, Copy, Serialize)]
#[allow(missing_docs, reason = "the paper's letters")]
#[non_exhaustive]
pub struct Source {
    pub s: f64,
    pub gamma: f64,
    pub t: f64,
    pub lambda: f64,
    pub m: f64,
}

/// Computes all of it; see [`Context::theory`].
pub fn theory(sketch: &Sketch, params: &TheoryParams) -> Result<Theory> {
    Context::new(sketch).theory(params)
}

impl Context<'_> {
    /// What theorem 4.1 says about the data.
    pub fn theory(&self, params: &TheoryParams) -> Result<Theory> {
        params.check()?;
        let (sketch, plan) = (self.sketch(), self.plan());
        if sketch.rows() == 0 {
            return Err(Error::NoRows { skipped: sketch.skipped() });
        }
        if !plan.collect.kernel {
            return Err(Error::MissingSums { task: "the theory", what: "kernel".into() });
        }
        if !plan.categories().is_empty() || plan.is_partial() {
            let expected = "used where all columns are numbers, and none is missing";
            return Err(Error::parameter("`theory`", expected, "others"));
        }
        if plan.kernel != Kernel::Gaussian {
            let got = plan.kernel.name();
            return Err(Error::parameter("`kernel`", "gaussian for the theory", got));
        }
        let rung = params.rung.unwrap_or(plan.bandwidths.len() / 2);
        let spectrum = self.spectrum(rung)?;
        let embedding = self.embedding(rung)?;
        Ok(theorem(sketch, spectrum, embedding, params))
    }
}

/// Theorem 4.1 in numbers.
fn theorem(
    sketch: &Sketch,
    spectrum: &Spectrum,
    embedding: &Embedding,
    params: &TheoryParams,
) -> Theory {
    let secants = secants(sketch, embedding, spectrum, params);
    // At λ the least t with N_A(μ)(λ) ≤ t for every secant serves best, and λ is its λ_t.
    let least_t =
        |lambda: f64| secants.iter().map(|s| spectrum.leverage(&s.c, lambda)).fold(0.0, f64::max);
    let condition = |lambda: f64| 3.0 * lambda * least_t(lambda);
    let n = sketch.weight();
    let lambda = params.lambda.unwrap_or_else(|| best_lambda(condition).unwrap_or(1.0 / n.sqrt()));
    let slack = 1.0 - condition(lambda);
    let largest_leverage = spectrum.largest_leverage(lambda);
    let effective_dimension = spectrum.effective_dimension(lambda);
    let mut distortions: Vec<f64> = secants.iter().map(|s| 1.0 / s.projected.max(1e-12)).collect();
    distortions.sort_by(f64::total_cmp);
    Theory {
        sigma2: embedding.sigma2,
        delta: params.delta,
        k: params.k,
        known_variance: params.known_variance,
        secants: params.secants,
        rows: sketch.rows(),
        landmarks: embedding.len(),
        norm: spectrum.eigenvalues[0],
        lambda,
        t: least_t(lambda),
        condition: condition(lambda),
        least_condition: condition(LEAST_LAMBDA),
        holds: slack > 0.0,
        constant: (slack > 0.0).then(|| slack.powf(-0.5)),
        effective_dimension,
        largest_leverage,
        uniform: f64::max(67.0, 5.0 * largest_leverage) * (4.0 / (lambda * params.delta)).ln(),
        leverage: f64::max(334.0, 78.0 * effective_dimension) * (16.0 * n / params.delta).ln(),
        least_rows: 1655.0 + 233.0 * (4.0 / params.delta).ln(),
        least_lambda: 19.0 / n * (4.0 * n / params.delta).ln(),
        source: source(spectrum, &secants, params.delta),
        distortion: [distortions[distortions.len() - 1], distortions[distortions.len() / 2]],
        enough: params.k.saturating_mul(2 * (sketch.plan().dims() + 1)),
    }
}

/// The largest λ with 3λt ≤ ¾: the product grows with λ, so by bisection of the logarithm.
fn best_lambda(condition: impl Fn(f64) -> f64) -> Option<f64> {
    let (mut low, mut high) = (LEAST_LAMBDA, 1.0);
    if condition(low) > 0.75 {
        return None;
    }
    for _ in 0..60 {
        let middle = f64::sqrt(low * high);
        if condition(middle) <= 0.75 { low = middle } else { high = middle }
    }
    Some(low)
}

/// Proposition 4.1 for the s with the least m, at C' = 2 C_F: there 3λt = ¾.
fn source(spectrum: &Spectrum, secants: &[Secant], delta: f64) -> Option<Source> {
    let each = |i: i32| {
        let s = 0.02 * f64::from(i);
        let of = |secant: &Secant| -> f64 {
            let pairs = secant.c.iter().zip(&spectrum.eigenvalues);
            pairs.map(|(c, sigma)| c / sigma.powf(1.0 + 2.0 * s)).sum()
        };
        let gamma = secants.iter().map(of).fold(0.0, f64::max);
        // 3 γ^(1/(1−2s)) t^(−2s/(1−2s)) = ¾, solved for t.
        let t = (4.0 * gamma.powf(1.0 / (1.0 - 2.0 * s))).powf((1.0 - 2.0 * s) / (2.0 * s));
        let lambda = (gamma / t).powf(1.0 / (1.0 - 2.0 * s));
        let m = f64::max(67.0, 5.0 / lambda) * (4.0 / (lambda * delta)).ln();
        Source { s, gamma, t, lambda, m }
    };
    // (22a) asks that Σ sees all of every secant; where it does not, the proposition says nothing.
    let seen = |s: &Source| {
        let most = secants.iter().map(|f| spectrum.leverage(&f.c, s.lambda)).fold(0.0, f64::max);
        3.0 * s.lambda * most <= 0.75 * (1.0 + 1e-6)
    };
    let all = (1..25).map(each).filter(|s| s.m.is_finite() && s.lambda > 0.0).filter(seen);
    all.min_by(|a, b| a.m.total_cmp(&b.m))
}

/// Secants of mixtures of k atoms at rows of the data: a third of independent mixtures, a third of mixtures
/// that differ in one atom, and a third of those where it has moved by a hundredth of σ up to one.
fn secants(
    sketch: &Sketch,
    embedding: &Embedding,
    spectrum: &Spectrum,
    params: &TheoryParams,
) -> Vec<Secant> {
    let d = embedding.dims();
    let landmarks = embedding.landmarks().unwrap_or(&[]);
    let shares: Vec<f64> = match &sketch.sums()[Sum::CellRows][..] {
        [] => vec![1.0; embedding.len()],
        rows => rows.iter().map(|n| *n as f64).collect(),
    };
    let mut rng = ChaCha8Rng::seed_from_u64(params.seed.unwrap_or(sketch.plan().seed));
    let rng = &mut rng;
    let variance = vec![params.known_variance; d];
    let mixture = |rng: &mut ChaCha8Rng| -> Vec<(f64, Vec<f64>)> {
        let atom = |rng: &mut ChaCha8Rng| {
            let j = draw(&shares, rng).unwrap_or(0);
            (-(1.0 - unit(rng)).ln(), landmarks[j * d..(j + 1) * d].to_vec())
        };
        let mut atoms: Vec<_> = (0..params.k).map(|_| atom(rng)).collect();
        let total: f64 = atoms.iter().map(|a| a.0).sum();
        atoms.iter_mut().for_each(|a| a.0 /= total);
        atoms
    };
    let mut found = Vec::new();
    for i in 0..params.secants {
        let p = mixture(rng);
        let mut q = if i % 3 == 0 { mixture(rng) } else { p.clone() };
        if i % 3 == 1 {
            q[below(params.k, rng)].1 = mixture(rng).swap_remove(0).1;
        }
        if i % 3 == 2 {
            let far = embedding.sigma2.sqrt() * 10.0f64.powf(-2.0 * unit(rng));
            let mut step: Vec<f64> = (0..d).map(|_| normal(rng)).collect();
            let length = dot(&step, &step).sqrt();
            step.iter_mut().for_each(|s| *s *= far / length);
            let atom = &mut q[below(params.k, rng)].1;
            atom.iter_mut().zip(step).for_each(|(x, s)| *x += s);
        }
        // p − q as signed atoms.
        let signed: Vec<(f64, Vec<f64>)> =
            p.into_iter().chain(q.into_iter().map(|(w, x)| (-w, x))).collect();
        let mut norm2 = 0.0;
        for (v, x) in &signed {
            for (w, y) in &signed {
                norm2 += v * w * embedding.inner((x, &variance), (y, &variance)).0;
            }
        }
        if !(norm2 > 1e-14) {
            continue;
        }
        let mut kernel = vec![0.0; embedding.len()];
        for (w, x) in &signed {
            let features = embedding.features(x, &variance);
            kernel.iter_mut().zip(features).for_each(|(k, f)| *k += w * f / norm2.sqrt());
        }
        let c = spectrum.rotation.times(&kernel).into_iter().map(|x| x * x).collect();
        let projected = embedding.squared_norm(&kernel).max(0.0).sqrt();
        found.push(Secant { c, projected });
    }
    if found.is_empty() {
        // All atoms at one place: no two distributions of the model set differ.
        found.push(Secant { c: vec![0.0; spectrum.eigenvalues.len()], projected: 1.0 });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mixture, PlanParams, Sampling, SketchParams, Table, plan_for};
    use std::sync::Arc;

    fn sketch(m: usize) -> Sketch {
        let rows = Mixture::new(2, 3, 2.0, 4).unwrap().rows(0, 1000).values;
        let table = Table::unnamed(2, rows).unwrap();
        let chosen = PlanParams::default().landmarks(m).sampling(Sampling::Uniform);
        let params = chosen.bandwidths([4.0]);
        let plan = Arc::new(plan_for(&table, params).unwrap().0);
        Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap()
    }

    fn params() -> TheoryParams {
        TheoryParams { k: 3, secants: 60, seed: Some(1), ..TheoryParams::default() }
    }

    /// λ_t ≤ 1/t, N ≤ t from λ_t on, projections do not lengthen, and the sizes are those of the formulas.
    #[test]
    fn theorem_in_numbers() {
        let sketch = sketch(80);
        let found = theory(&sketch, &params()).unwrap();
        assert!(found.lambda <= 1.0 / found.t * (1.0 + 1e-9), "λ_t ≤ 1/t");
        assert!(found.least_condition <= found.condition * (1.0 + 1e-9));
        assert!(found.distortion[0] >= found.distortion[1] && found.distortion[1] >= 1.0 - 1e-6);
        let expected =
            f64::max(67.0, 5.0 * found.largest_leverage) * (4.0 / (found.lambda * 0.1)).ln();
        assert!((found.uniform - expected).abs() < 1e-9 * expected);
        if let Some(constant) = found.constant {
            assert!(found.holds && constant >= 1.0);
        }
        if let Some(s) = found.source {
            // t above (3^(1−2s) γ)^(1/2s), and 3λt = ¾.
            assert!(s.t > (3f64.powf(1.0 - 2.0 * s.s) * s.gamma).powf(0.5 / s.s));
            assert!((3.0 * s.lambda * s.t - 0.75).abs() < 1e-6);
        }
        if found.holds {
            assert!((found.condition - 0.75).abs() < 1e-6, "C = 2 C_F by default: {found:?}");
            assert!((found.constant.unwrap() - 2.0).abs() < 1e-5);
        }
        // A larger λ needs fewer landmarks and meets the condition less.
        let coarse = TheoryParams { lambda: Some(2.0 * found.lambda), ..params() };
        let coarse = theory(&sketch, &coarse).unwrap();
        assert!(coarse.uniform <= found.uniform && coarse.condition >= found.condition);
    }

    /// More landmarks keep more of every secant.
    #[test]
    fn distortion_falls_with_landmarks() {
        let few = theory(&sketch(8), &params()).unwrap();
        let many = theory(&sketch(150), &params()).unwrap();
        assert!(many.distortion[0] < few.distortion[0], "{many:?} {few:?}");
    }
}
