//! Mean embeddings of atoms and their vector-Jacobian products.
//!
//! For landmarks, with V = γ + σ² (eq. (30), corrected: the product is over the sums):
//!
//! ```text
//! F(μ, γ; x̃) = Π_k √(σ²/V_k) exp(−½ Σ_k (x̃_k − μ_k)²/V_k)
//! Jᵘᵀy = (X̃ (y ⊙ f) − μ Σ y f) / V                                                (34)
//! Jᵞᵀy = ½ (Σ_j y_j f_j (μ − x̃_j)²/V − Σ y f) / V                                  (37)
//! ```
//!
//! Distances between sketches are Euclidean in the metric `M = K_m⁺` (with an eigenvalue cut-off):
//! ⟨A(P), A(Q)⟩ is f_Pᵀ M f_Q. One product with M gives the norm of a residual and its gradient
//! with respect to every atom.
//!
//! For frequencies ω/σ, the features are cos(ωᵀμ) e and sin(ωᵀμ) e with e = exp(−½ Σ_k ω_k² γ_k),
//! divided by √m′; M is the identity.

use super::Atom;
use crate::covariance::{Covariance, SymmetricMatrix};
use nysketch_core::kernel::nystrom::{DECODING_CUTOFF, NystromMap};
use nysketch_core::kernel::{Kernel, ScaledKernel};
use nysketch_core::numeric::linalg::{Matrix, dot};
use nysketch_core::numeric::points::{PointColumns, Points};
use nysketch_core::numeric::simd::{Instructions, Work};
use nysketch_core::numeric::waves::waves;
use nysketch_core::sketch::Sketch;

/// The mean embedding of the data at one bandwidth, and the points at which it was measured.
#[derive(Debug, Clone)]
pub struct Embedding {
    dims: usize,
    kernel: Kernel,
    /// The bandwidth σ².
    pub sigma2: f64,
    /// Landmarks, row-major, or frequencies divided by σ.
    points: Vec<f64>,
    /// The same points by column.
    columns: PointColumns,
    kind: Kind,
    /// Mean features of the data: k̄, or cosines and sines divided by √m′.
    pub target: Vec<f64>,
}

#[derive(Debug, Clone)]
enum Kind {
    Nystrom {
        /// The metric M.
        metric: Matrix,
        rank: usize,
        dual: Vec<f64>,
    },
    Fourier,
}

/// An inner product of two atoms, with its gradients with respect to the first.
#[derive(Debug, Clone)]
pub struct Inner {
    /// The inner product.
    pub value: f64,
    /// The gradient with respect to the mean.
    pub by_mean: Vec<f64>,
    /// The gradient with respect to the variances.
    pub by_variance: Vec<f64>,
}

impl Embedding {
    /// Creates the embedding at one bandwidth of a sketch that has rows and kernel sums. `map` is
    /// the Nyström map of that bandwidth if the sketch has landmarks.
    pub fn new(sketch: &Sketch, rung: usize, map: Option<&NystromMap>) -> Self {
        let plan = sketch.plan();
        let (kernel, sigma2) = (plan.kernel, plan.bandwidths[rung]);
        let means = sketch.feature_means(rung);
        let points = plan.features.points();
        let (scale, kind, target) = match map {
            Some(map) => {
                let (metric, rank) = map.inverse(DECODING_CUTOFF);
                let dual = metric.times(&means);
                (1.0, Kind::Nystrom { dual, metric, rank }, means)
            }
            None => {
                let norm = 1.0 / (points.len() as f64).sqrt();
                let target = means.iter().map(|x| x * norm).collect();
                (1.0 / sigma2.sqrt(), Kind::Fourier, target)
            }
        };
        let dims = plan.dims();
        let points: Vec<f64> = points.data().iter().map(|x| f64::from(*x) * scale).collect();
        let columns = PointColumns::of_rows(dims, &points);
        Embedding { dims, kernel, sigma2, points, columns, kind, target }
    }

    /// Rotates the landmarks or frequencies; the Gaussian kernel is invariant under rotations.
    pub fn turned(&self, turn: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        let points: Vec<f64> = self.points.chunks_exact(self.dims).flat_map(turn).collect();
        let columns = PointColumns::of_rows(self.dims, &points);
        Embedding { points, columns, ..self.clone() }
    }

    /// Returns the same kernel measured at other points, with the given metric and without data.
    pub fn measured_at(&self, points: &Points, metric: Matrix) -> Self {
        let points: Vec<f64> = points.data().iter().map(|x| f64::from(*x)).collect();
        let columns = PointColumns::of_rows(self.dims, &points);
        let target = vec![0.0; points.len() / self.dims];
        let kind = Kind::Nystrom { rank: metric.nrows(), metric, dual: Vec::new() };
        Embedding { points, columns, kind, target, ..*self }
    }

    /// Returns the kernel at this bandwidth.
    pub fn kernel(&self) -> ScaledKernel {
        self.kernel.at(self.sigma2)
    }

    /// Returns the number of dimensions d.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the number of features before whitening.
    pub fn len(&self) -> usize {
        self.target.len()
    }

    /// Returns whether there are no features.
    pub fn is_empty(&self) -> bool {
        self.target.is_empty()
    }

    /// Returns the number of moments that carry information: the rank of K_m, or 2m′.
    pub fn rank(&self) -> usize {
        match &self.kind {
            Kind::Nystrom { rank, .. } => *rank,
            Kind::Fourier => self.len(),
        }
    }

    /// Returns the landmarks, row-major, if there are any.
    pub fn landmarks(&self) -> Option<&[f64]> {
        matches!(self.kind, Kind::Nystrom { .. }).then_some(self.points.as_slice())
    }

    /// Returns the frequencies divided by σ, row-major, if there are any.
    pub fn frequencies(&self) -> Option<&[f64]> {
        matches!(self.kind, Kind::Fourier).then_some(self.points.as_slice())
    }

    /// Returns `β = K_m⁺ k̄` if there are landmarks: `⟨P_m A(π_n), A(P_θ)⟩ = βᵀ f(θ)`.
    pub fn dual(&self) -> Option<&[f64]> {
        match &self.kind {
            Kind::Nystrom { dual, .. } => Some(dual),
            Kind::Fourier => None,
        }
    }

    /// Returns the features of an atom whose covariance may be a matrix: with V = Γ + σ²I,
    /// `√(σ^{2d}/det V) exp(−½ (x̃ − μ)ᵀ V⁻¹ (x̃ − μ))`, or cosines and sines damped by
    /// `exp(−½ ωᵀΓω)`. Returns `None` if V is singular up to rounding.
    pub fn features_of(&self, atom: &Atom) -> Option<Vec<f64>> {
        Some(match (&atom.covariance, &self.kind) {
            (Covariance::Diagonal(variance), _) => self.features(&atom.mean, variance),
            (Covariance::Full(_), _) if self.kernel == Kernel::Laplace => {
                self.features(&atom.mean, &vec![0.0; self.dims])
            }
            (Covariance::Full(gamma), Kind::Nystrom { .. }) => {
                let v = Covariance::Full(SymmetricMatrix::from_fn(self.dims, |i, j| {
                    gamma.get(i, j) + if i == j { self.sigma2 } else { 0.0 }
                }));
                let factor = v.cholesky()?;
                let peak = 0.5 * (self.dims as f64 * self.sigma2.ln() - factor.log_det());
                self.points
                    .chunks_exact(self.dims)
                    .map(|x| (peak - 0.5 * factor.squared_distance(x, &atom.mean)).exp())
                    .collect()
            }
            (Covariance::Full(gamma), Kind::Fourier) => {
                let mut features = self.features(&atom.mean, &vec![0.0; self.dims]);
                let half = features.len() / 2;
                for (j, w) in self.points.chunks_exact(self.dims).enumerate() {
                    let form: f64 = gamma.rows().zip(w).map(|(row, w_i)| w_i * dot(&row, w)).sum();
                    let damp = (-0.5 * form).exp();
                    features[j] *= damp;
                    features[half + j] *= damp;
                }
                features
            }
        })
    }

    /// Returns `f(μ, γ)`, the features of an atom before whitening.
    pub fn features(&self, mean: &[f64], variance: &[f64]) -> Vec<f64> {
        match &self.kind {
            Kind::Nystrom { .. } => self.landmark_features(mean, variance),
            Kind::Fourier => self.fourier_features(mean, variance),
        }
    }

    fn landmark_features(&self, mean: &[f64], variance: &[f64]) -> Vec<f64> {
        let columns = &self.columns;
        if self.kernel == Kernel::Laplace {
            // For this kernel all atoms are Diracs.
            let mut features = vec![0.0; self.len()];
            columns.add_absolutes(mean, -1.0 / self.sigma2.sqrt(), &mut features);
            features.iter_mut().for_each(|x| *x = x.exp());
            return features;
        }
        let log_factor: f64 = variance.iter().map(|g| -0.5 * (g / self.sigma2).ln_1p()).sum();
        let mut features = vec![log_factor; self.len()];
        let factors: Vec<f64> = variance.iter().map(|g| -0.5 / (g + self.sigma2)).collect();
        columns.add_squares(mean, &factors, &mut features);
        features.iter_mut().for_each(|x| *x = x.exp());
        features
    }

    fn fourier_features(&self, mean: &[f64], variance: &[f64]) -> Vec<f64> {
        let half = self.len() / 2;
        let mut phases = vec![0.0; half];
        self.columns.add_products(mean, &mut phases);
        // The features of a Dirac are not damped.
        let wide = variance.iter().any(|g| *g != 0.0);
        let mut damping = vec![0.0; if wide { half } else { 0 }];
        if wide {
            self.columns.add_squares(&vec![0.0; self.dims], variance, &mut damping);
        }
        let mut out = vec![0.0; 2 * half];
        let (cos, sin) = out.split_at_mut(half);
        waves(&phases, &damping, 1.0 / (half as f64).sqrt(), cos, sin);
        out
    }

    /// Adds `scale · Jᵀy` to the gradients, given the features of the atom.
    pub fn add_vjp(
        &self,
        atom: (&[f64], &[f64]),
        features: &[f64],
        y: &[f64],
        scale: f64,
        mean: &mut [f64],
        variance: &mut [f64],
    ) {
        let d = self.dims;
        let (mu, gamma) = atom;
        match &self.kind {
            Kind::Nystrom { .. } => {
                let columns = &self.columns;
                let pull: Vec<f64> = features.iter().zip(y).map(|(f, y)| f * y).collect();
                if self.kernel == Kernel::Laplace {
                    let slope = scale / self.sigma2.sqrt();
                    for ((column, mu), mean) in columns.columns().zip(mu).zip(mean) {
                        *mean += slope
                            * column
                                .iter()
                                .zip(&pull)
                                .map(|(x, p)| if x == mu { 0.0 } else { p * (x - mu).signum() })
                                .sum::<f64>();
                    }
                    return;
                }
                let mut moments = vec![[0.0; 2]; d];
                Instructions::best().run(Moments {
                    columns,
                    mean: mu,
                    pull: &pull,
                    out: &mut moments,
                });
                let total: f64 = pull.iter().sum();
                for (k, [first, second]) in moments.into_iter().enumerate() {
                    let v = gamma[k] + self.sigma2;
                    mean[k] += scale * first / v;
                    variance[k] += scale * 0.5 * (second / v - total) / v;
                }
            }
            Kind::Fourier => {
                let half = features.len() / 2;
                let ((cos, sin), (by_cos, by_sin)) = (features.split_at(half), y.split_at(half));
                let turns: Vec<f64> =
                    (0..half).map(|j| by_sin[j] * cos[j] - by_cos[j] * sin[j]).collect();
                let sizes: Vec<f64> =
                    (0..half).map(|j| by_cos[j] * cos[j] + by_sin[j] * sin[j]).collect();
                let mut moments = vec![[0.0; 2]; d];
                let columns = &self.columns;
                let turned = Turned { columns, turns: &turns, sizes: &sizes, out: &mut moments };
                Instructions::best().run(turned);
                for (k, [turn, size]) in moments.into_iter().enumerate() {
                    mean[k] += scale * turn;
                    variance[k] -= 0.5 * scale * size;
                }
            }
        }
    }

    /// Returns `fᵀMf`, the squared norm of a sketch in its own metric.
    pub fn squared_norm(&self, features: &[f64]) -> f64 {
        match &self.kind {
            Kind::Nystrom { metric, .. } => dot(features, &metric.times(features)),
            Kind::Fourier => dot(features, features),
        }
    }

    /// Returns `M f` for each vector f.
    pub fn metric_times(&self, features: &[Vec<f64>]) -> Vec<Vec<f64>> {
        match &self.kind {
            Kind::Nystrom { metric, .. } => metric.times_each(features),
            Kind::Fourier => features.to_vec(),
        }
    }

    /// Returns `G = ⟨A(P_1), A(P_2)⟩` in the full feature space and its gradients with respect to
    /// the first atom: `Π √(σ²/V) exp(−½ Σ (μ_1 − μ_2)²/V)` with V = γ_1 + γ_2 + σ².
    pub fn inner(&self, a: (&[f64], &[f64]), b: (&[f64], &[f64])) -> Inner {
        if self.kernel == Kernel::Laplace {
            let kernel = self.kernel();
            return Inner {
                value: kernel.value(a.0, b.0),
                by_mean: kernel.gradient(a.0, b.0),
                by_variance: vec![0.0; self.dims],
            };
        }
        let mut exponent = 0.0;
        let (mut mean, mut variance) = (vec![0.0; self.dims], vec![0.0; self.dims]);
        for k in 0..self.dims {
            let gamma = a.1[k] + b.1[k];
            let v = gamma + self.sigma2;
            let t = a.0[k] - b.0[k];
            exponent -= 0.5 * ((gamma / self.sigma2).ln_1p() + t * t / v);
            mean[k] = -t / v;
            variance[k] = 0.5 * (t * t / v - 1.0) / v;
        }
        let value = exponent.exp();
        mean.iter_mut().chain(&mut variance).for_each(|g| *g *= value);
        Inner { value, by_mean: mean, by_variance: variance }
    }
}

/// Computes `Σ_j p_j (x̃_jk − μ_k)` and `Σ_j p_j (x̃_jk − μ_k)²` for each k, with eight partial
/// sums.
struct Moments<'a> {
    columns: &'a PointColumns,
    mean: &'a [f64],
    pull: &'a [f64],
    out: &'a mut [[f64; 2]],
}

impl Work for Moments<'_> {
    #[inline(always)]
    fn work(self) {
        let (pull, pull_rest) = self.pull.as_chunks::<8>();
        for ((column, mean), out) in self.columns.columns().zip(self.mean).zip(self.out) {
            let (column, rest) = column.as_chunks::<8>();
            let (mut first, mut second) = ([0.0; 8], [0.0; 8]);
            for (x, p) in column.iter().zip(pull) {
                for l in 0..8 {
                    let t = x[l] - mean;
                    first[l] += p[l] * t;
                    second[l] += p[l] * t * t;
                }
            }
            *out = [first.iter().sum(), second.iter().sum()];
            for (x, p) in rest.iter().zip(pull_rest) {
                let t = x - mean;
                out[0] += p * t;
                out[1] += p * t * t;
            }
        }
    }
}

/// Computes `Σ_j t_j ω_jk` and `Σ_j s_j ω_jk²` for each k, with eight partial sums.
struct Turned<'a> {
    columns: &'a PointColumns,
    turns: &'a [f64],
    sizes: &'a [f64],
    out: &'a mut [[f64; 2]],
}

impl Work for Turned<'_> {
    #[inline(always)]
    fn work(self) {
        let (turns, turns_rest) = self.turns.as_chunks::<8>();
        let (sizes, sizes_rest) = self.sizes.as_chunks::<8>();
        for (column, out) in self.columns.columns().zip(self.out) {
            let (column, rest) = column.as_chunks::<8>();
            let (mut first, mut second) = ([0.0; 8], [0.0; 8]);
            for ((w, t), s) in column.iter().zip(turns).zip(sizes) {
                for l in 0..8 {
                    first[l] += t[l] * w[l];
                    second[l] += s[l] * w[l] * w[l];
                }
            }
            *out = [first.iter().sum(), second.iter().sum()];
            for ((w, t), s) in rest.iter().zip(turns_rest).zip(sizes_rest) {
                out[0] += t * w;
                out[1] += s * w * w;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::Context;
    use nysketch_core::pass::SketchParams;
    use nysketch_core::plan::sampling::Sampling;
    use nysketch_core::planning::{PlanParams, plan_for};
    use nysketch_core::rows::Table;
    use nysketch_core::rows::synthetic::Mixture;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn embedding(fourier: bool, seed: u64) -> Embedding {
        let rows = Mixture::new(3, 3, 1.0, seed).unwrap().rows(0, 200).values;
        let table = Table::unnamed(3, rows).unwrap();
        let params = if fourier {
            PlanParams::default().fourier(12)
        } else {
            PlanParams::default().landmarks(15).sampling(Sampling::Uniform)
        };
        let params = params.bandwidths([3.0]).seed(seed);
        let plan = Arc::new(plan_for(&table, params).unwrap().0);
        {
            let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
            Context::new(&sketch).embedding(0).unwrap().clone()
        }
    }

    /// Step of central differences.
    const H: f64 = 1e-5;

    /// Returns the derivative of a function of x by coordinate `k`, by central differences.
    fn slope(x: &[f64], k: usize, of: impl Fn(&[f64]) -> f64) -> f64 {
        let (mut above, mut below) = (x.to_vec(), x.to_vec());
        above[k] += H;
        below[k] -= H;
        (of(&above) - of(&below)) / (2.0 * H)
    }

    /// Returns `yᵀf` for the features f of an atom.
    fn pull(embedding: &Embedding, mean: &[f64], variance: &[f64], y: &[f64]) -> f64 {
        embedding.features(mean, variance).iter().zip(y).map(|(f, y)| f * y).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Central differences with h = 1e-5 have an error of about 1e-10 in these ranges.
        #[test]
        fn derivatives_match_finite_differences(
            fourier in any::<bool>(),
            seed in 0u64..20,
            mean in prop::collection::vec(-2.0..2.0f64, 3),
            variance in prop::collection::vec(0.05..2.0f64, 3),
            other in prop::collection::vec(-2.0..2.0f64, 3),
        ) {
            let e = embedding(fourier, seed);
            let y: Vec<f64> = (0..e.len()).map(|j| ((j * 7 + 3) % 5) as f64 - 2.0).collect();

            let other_variance = [0.3, 0.6, 0.9];

            let (mut gm, mut gv) = (vec![0.0; 3], vec![0.0; 3]);
            e.add_vjp((&mean, &variance), &e.features(&mean, &variance), &y, 1.0, &mut gm, &mut gv);
            let inner = e.inner((&mean, &variance), (&other, &other_variance));
            let (im, iv) = (inner.by_mean, inner.by_variance);
            for k in 0..3 {

                let dm = slope(&mean, k, |m| pull(&e, m, &variance, &y));
                let dv = slope(&variance, k, |v| pull(&e, &mean, v, &y));
                prop_assert!((gm[k] - dm).abs() < 1e-7, "{gm:?} {dm}");
                prop_assert!((gv[k] - dv).abs() < 1e-7, "{gv:?} {dv}");
                let against = (&other[..], &other_variance[..]);
                let dm = slope(&mean, k, |m| e.inner((m, &variance), against).value);
                let dv = slope(&variance, k, |v| e.inner((&mean, v), against).value);
                prop_assert!((im[k] - dm).abs() < 1e-8 && (iv[k] - dv).abs() < 1e-8);
            }
        }

        /// The features of a Gaussian are the mean features of Diracs drawn from it. Compares them
        /// with a quadrature along one axis (γ zero in the others), with 61 nodes over ±6 standard
        /// deviations.
        #[test]
        fn gaussians_are_averages_of_diracs(
            fourier in any::<bool>(),
            seed in 0u64..10,
            variance in 0.1..2.0f64,
        ) {
            let e = embedding(fourier, seed);
            let mean = [0.3, -0.2, 0.5];
            let exact = e.features(&mean, &[0.0, variance, 0.0]);
            let mut sum = vec![0.0; exact.len()];
            let mut mass = 0.0;
            for i in -30..=30 {
                let t = f64::from(i) * 0.2;
                let w = (-0.5 * t * t).exp();
                mass += w;
                let f = e.features(&[mean[0], mean[1] + t * variance.sqrt(), mean[2]], &[0.0; 3]);
                sum.iter_mut().zip(f).for_each(|(s, f)| *s += w * f);
            }
            for (s, x) in sum.iter().zip(&exact) {
                prop_assert!((s / mass - x).abs() < 1e-6, "{} {x}", s / mass);
            }
        }

        /// The features of a Gaussian with a full covariance are the mean features of Diracs drawn
        /// along its eigenvectors. Uses 61 nodes over ±6 standard deviations along each of two
        /// rotated axes.
        #[test]
        fn matrices_are_averages_of_diracs(
            fourier in any::<bool>(),
            seed in 0u64..10,
            angle in 0.0..3.0f64,
            one in 0.1..2.0f64,
            other in 0.1..2.0f64,
        ) {
            let e = embedding(fourier, seed);
            let (sin, cos) = angle.sin_cos();
            let axes = [[cos, sin, 0.0], [-sin, cos, 0.0]];
            let gamma = SymmetricMatrix::from_fn(3, |i, j| {
                one * axes[0][i] * axes[0][j] + other * axes[1][i] * axes[1][j]
                    + if i == 2 && j == 2 { 1e-12 } else { 0.0 }
            });
            let mean = vec![0.3, -0.2, 0.5];
            let atom = Atom::new(1.0, mean.clone(), Covariance::Full(gamma));
            let exact = e.features_of(&atom).unwrap();
            let mut sum = vec![0.0; exact.len()];
            let mut mass = 0.0;
            for i in 0..61 * 61 {
                let [a, b] = [i / 61, i % 61].map(|at| f64::from(at - 30) * 0.2);
                let w = (-0.5 * (a * a + b * b)).exp();
                mass += w;
                let (one, other) = (a * one.sqrt(), b * other.sqrt());
                let [x, y] = [0, 1].map(|j| mean[j] + one * axes[0][j] + other * axes[1][j]);
                let f = e.features(&[x, y, mean[2]], &[0.0; 3]);
                sum.iter_mut().zip(f).for_each(|(s, f)| *s += w * f);
            }
            for (s, x) in sum.iter().zip(&exact) {
                prop_assert!((s / mass - x).abs() < 1e-6, "{} {x}", s / mass);
            }
        }

        /// Diracs under the Laplace kernel, away from the kinks at the coordinates of the
        /// landmarks.
        #[test]
        fn derivatives_under_the_laplace_kernel(
            seed in 0u64..20,
            mean in prop::collection::vec(-2.0..2.0f64, 3),
            y in prop::collection::vec(-1.0..1.0f64, 15),
        ) {
            let mixture = Mixture::new(3, 3, 1.0, seed).unwrap();
            let rows = mixture.rows(0, 200).values;
            let table = Table::unnamed(3, rows).unwrap();
            let params = PlanParams::default().landmarks(15).kernel(Kernel::Laplace);
            let params = params.bandwidths([3.0]);
            let plan = Arc::new(plan_for(&table, params).unwrap().0);
            let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
            let e = Context::new(&sketch).embedding(0).unwrap().clone();
            let landmarks = e.landmarks().unwrap();
            prop_assume!(
                landmarks.iter().enumerate().all(|(i, x)| (x - mean[i % 3]).abs() > 2.0 * H)
            );
            let zero = [0.0; 3];
            let expected = e.kernel().against(&mean, plan.landmarks().unwrap());
            for (f, x) in e.features(&mean, &zero).iter().zip(expected) {
                prop_assert!((f - x).abs() < 1e-12);
            }

            let (mut gm, mut gv) = (vec![0.0; 3], vec![0.0; 3]);
            e.add_vjp((&mean, &zero), &e.features(&mean, &zero), &y, 1.0, &mut gm, &mut gv);
            for k in 0..3 {
                let numeric = slope(&mean, k, |m| pull(&e, m, &zero, &y));
                prop_assert!((gm[k] - numeric).abs() < 1e-7, "{gm:?} {numeric}");
            }
        }
    }
}
