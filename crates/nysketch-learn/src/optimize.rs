//! Optimisers: bounded L-BFGS and non-negative least squares.

use nysketch_core::numeric::linalg::{Cholesky, Matrix, dot};

/// How a minimisation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The projected gradient vanished or the progress became negligible.
    Converged,
    /// The minimisation stopped at the limit of evaluations.
    EvaluationLimit,
    /// No step along the direction lowered the objective: the result is as good as rounding allows.
    NoProgress,
}

/// The result of a minimisation.
#[derive(Debug, Clone)]
pub struct Minimum {
    /// The minimiser.
    pub x: Vec<f64>,
    /// The objective at the minimiser.
    pub value: f64,
    /// Number of evaluations of objective and gradient.
    pub evaluations: usize,
    /// How the minimisation ended.
    pub status: Status,
}

/// A stopping rule.
#[derive(Debug, Clone, Copy)]
pub struct Stop {
    /// Maximum number of evaluations.
    pub evaluations: usize,
    /// The minimisation ends after five steps in a row whose relative change of the objective is
    /// below this.
    pub relative: f64,
}

const MEMORY: usize = 12;

/// Minimises `f` within `low ≤ x ≤ high` by projected L-BFGS with backtracking.
///
/// `f` returns the objective and writes the gradient.
pub fn minimise(
    mut f: impl FnMut(&[f64], &mut [f64]) -> f64,
    start: Vec<f64>,
    low: &[f64],
    high: &[f64],
    stop: Stop,
) -> Minimum {
    let mut gradient = vec![0.0; start.len()];
    let mut descent = Descent::new(start, low, high, stop);
    while let Some(x) = descent.ask() {
        let value = f(x, &mut gradient);
        descent.tell(value, &gradient);
    }
    descent.minimum()
}

/// Like [`minimise`], from several starts at once: `f` gets one point from each unfinished descent
/// and returns objective and gradient of each, so that work can be shared among them.
pub fn minimise_each(
    mut f: impl FnMut(&[&[f64]]) -> Vec<(f64, Vec<f64>)>,
    starts: Vec<Vec<f64>>,
    low: &[f64],
    high: &[f64],
    stop: Stop,
) -> Vec<Minimum> {
    let mut descents: Vec<Descent> =
        starts.into_iter().map(|start| Descent::new(start, low, high, stop)).collect();
    loop {
        let points: Vec<&[f64]> = descents.iter().filter_map(Descent::ask).collect();
        if points.is_empty() {
            return descents.into_iter().map(Descent::minimum).collect();
        }
        let found = f(&points);
        let going_on = descents.iter_mut().filter(|d| d.ask().is_some());
        for (descent, (value, gradient)) in going_on.zip(found) {
            descent.tell(value, &gradient);
        }
    }
}

/// A minimisation that returns control whenever it needs the objective at a point.
///
/// Variables at a bound whose gradient points outwards are fixed; the quasi-Newton direction is
/// computed in the others and projected.
struct Descent<'a> {
    low: &'a [f64],
    high: &'a [f64],
    stop: Stop,
    evaluations: usize,
    /// The current point; before the first evaluation the start, with an infinite value.
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    /// The last steps.
    pairs: Vec<Curvature>,
    /// Number of steps in a row with negligible progress.
    flat: usize,
    direction: Vec<f64>,
    step: f64,
    /// Number of steps tried along the direction.
    tries: usize,
    /// The point at which the value is needed.
    trial: Vec<f64>,
    /// How the minimisation ended, if it has.
    status: Option<Status>,
}

/// Maximum number of steps tried along one direction.
const TRIES: usize = 30;

impl<'a> Descent<'a> {
    fn new(start: Vec<f64>, low: &'a [f64], high: &'a [f64], stop: Stop) -> Self {
        let n = start.len();
        let mut descent = Descent {
            low,
            high,
            stop,
            evaluations: 0,
            x: start,
            value: f64::INFINITY,
            gradient: vec![0.0; n],
            pairs: Vec::new(),
            flat: 0,
            direction: vec![0.0; n],
            step: 0.0,
            tries: 0,
            trial: Vec::new(),
            status: None,
        };
        descent.try_step();
        descent.x.clone_from(&descent.trial);
        descent
    }

    fn minimum(self) -> Minimum {
        let status = self.status.unwrap_or(Status::EvaluationLimit);
        Minimum { x: self.x, value: self.value, evaluations: self.evaluations, status }
    }

    /// Returns the point at which the next value is needed, unless the minimisation has ended.
    fn ask(&self) -> Option<&[f64]> {
        self.status.is_none().then_some(self.trial.as_slice())
    }

    /// Takes the objective and gradient at the point returned by `ask`.
    fn tell(&mut self, value: f64, gradient: &[f64]) {
        self.evaluations += 1;
        if self.evaluations == 1 {
            self.value = value;
            self.gradient.copy_from_slice(gradient);
            return self.choose_direction();
        }
        let moves = self.trial.iter().zip(&self.x).map(|(to, from)| to - from);
        let decrease: f64 = moves.zip(&self.gradient).map(|(s, g)| g * s).sum();
        if value.is_finite() && value <= self.value + 1e-4 * decrease && decrease < 0.0 {
            return self.accept(value, gradient);
        }
        self.tries += 1;
        if self.tries < TRIES {
            self.step *= if self.step > 1e-3 { 0.5 } else { 0.1 };
            self.try_step();
        } else if self.pairs.is_empty() {
            self.status = Some(Status::NoProgress);
        } else {
            self.pairs.clear();
            self.choose_direction();
        }
    }

    fn accept(&mut self, value: f64, gradient: &[f64]) {
        let s: Vec<f64> = self.trial.iter().zip(&self.x).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = gradient.iter().zip(&self.gradient).map(|(a, b)| a - b).collect();
        let sy = dot(&s, &y);
        if sy > 1e-12 * dot(&y, &y).sqrt() * dot(&s, &s).sqrt() {
            if self.pairs.len() == MEMORY {
                self.pairs.remove(0);
            }
            self.pairs.push(Curvature { step: s, change: y, inverse: 1.0 / sy });
        }
        let progress = self.value - value > self.stop.relative * self.value.abs().max(1e-300);
        self.flat = if progress { 0 } else { self.flat + 1 };
        self.x.clone_from(&self.trial);
        self.gradient.copy_from_slice(gradient);
        self.value = value;
        if self.flat >= 5 {
            self.status = Some(Status::Converged);
        } else {
            self.choose_direction();
        }
    }

    fn choose_direction(&mut self) {
        if self.evaluations >= self.stop.evaluations {
            self.status = Some(Status::EvaluationLimit);
            return;
        }
        let (x, g) = (&self.x, &self.gradient);
        let held: Vec<bool> = (0..x.len())
            .map(|i| (x[i] <= self.low[i] && g[i] > 0.0) || (x[i] >= self.high[i] && g[i] < 0.0))
            .collect();
        let gradient = free(g, &held);
        let norm = dot(&gradient, &gradient).sqrt();
        if norm == 0.0 {
            self.status = Some(Status::Converged);
            return;
        }
        let mut direction = free(&two_loop(&self.pairs, &gradient), &held);
        if !(dot(&direction, &gradient) < -1e-14 * norm * dot(&direction, &direction).sqrt()) {
            self.pairs.clear();
            direction = gradient.iter().map(|v| -v).collect();
        }
        self.direction = direction;
        self.step = if self.pairs.is_empty() { (1.0 / norm).min(1.0) } else { 1.0 };
        self.tries = 0;
        self.try_step();
    }

    /// Sets the trial point one step along the direction, within the bounds.
    fn try_step(&mut self) {
        let moved = self.x.iter().zip(&self.direction).map(|(x, d)| x + self.step * d);
        let bounds = self.low.iter().zip(self.high);
        self.trial = moved.zip(bounds).map(|(x, (low, high))| x.max(*low).min(*high)).collect();
    }
}

/// One step of a descent, with the change of the gradient along it.
struct Curvature {
    /// s.
    step: Vec<f64>,
    /// y.
    change: Vec<f64>,
    /// `1/sᵀy`.
    inverse: f64,
}

/// Returns the vector with the entries of held variables set to zero.
fn free(v: &[f64], held: &[bool]) -> Vec<f64> {
    v.iter().zip(held).map(|(v, held)| if *held { 0.0 } else { *v }).collect()
}

/// Returns `−H g` by the two-loop recursion.
fn two_loop(pairs: &[Curvature], gradient: &[f64]) -> Vec<f64> {
    let mut q = gradient.to_vec();
    let mut a = vec![0.0; pairs.len()];
    for (i, pair) in pairs.iter().enumerate().rev() {
        a[i] = pair.inverse * dot(&pair.step, &q);
        q.iter_mut().zip(&pair.change).for_each(|(q, y)| *q -= a[i] * y);
    }
    if let Some(Curvature { step, change, .. }) = pairs.last() {
        let scale = dot(step, change) / dot(change, change);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for (i, pair) in pairs.iter().enumerate() {
        let b = pair.inverse * dot(&pair.change, &q);
        q.iter_mut().zip(&pair.step).for_each(|(q, s)| *q += (a[i] - b) * s);
    }
    q.iter_mut().for_each(|q| *q = -*q);
    q
}

/// Minimises `xᵀAx − 2bᵀx` over `x ≥ 0` for a positive semi-definite `A` (row-major, n × n) by
/// cyclic coordinate descent: non-negative least squares from its normal equations.
pub fn nonnegative_quadratic(a: &[f64], b: &[f64], sweeps: usize) -> Vec<f64> {
    let n = b.len();
    let mut x = vec![0.0; n];
    let mut ax = vec![0.0; n];
    for _ in 0..sweeps {
        let mut largest = 0.0f64;
        for i in 0..n {
            let curvature = a[i * n + i];
            if !(curvature > 0.0) {
                continue;
            }
            let next = (x[i] + (b[i] - ax[i]) / curvature).max(0.0);
            let change = next - x[i];
            if change != 0.0 {
                x[i] = next;
                for (s, row) in ax.iter_mut().zip(&a[i * n..(i + 1) * n]) {
                    *s += change * row;
                }
                largest = largest.max(change.abs());
            }
        }
        if largest <= 1e-12 * x.iter().fold(0.0, |m: f64, v| m.max(*v)) {
            break;
        }
    }
    x
}

/// Number of sweeps for the initial guess of the zero variables, and for the fallback if exchanges
/// do not end.
const GUESS: usize = 50;
const FALLBACK: usize = 2000;
/// Maximum number of exchanges between the two sets: together they take about as long as an
/// eigendecomposition.
const EXCHANGES: usize = 40;
/// Number of exchanges of all variables at once that may fail to improve before single exchanges
/// are made.
const PATIENCE: usize = 3;
/// Ridge added to the diagonal per variable, as a share of its largest entry: more than the
/// rounding error of a singular matrix.
const RIDGE: f64 = 10.0 * f64::EPSILON;
/// Tolerance for zero, as a share of the largest variable or entry of `b`.
const ZERO: f64 = 1e-10;

/// Minimises `xᵀAx − 2bᵀx` over `x ≥ 0` to high accuracy also if `A` is large and nearly singular,
/// by block principal pivoting (Portugal, Júdice and Vicente 1994). With the variables of one set
/// free and the others zero, free variables with a negative value and zeros with a negative
/// gradient change sets, until there are none. Falls back to sweeps if that does not end.
pub fn nonnegative_exact(a: &[f64], b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let ridge = RIDGE * n as f64 * (0..n).map(|i| a[i * n + i]).fold(0.0, f64::max);
    let guess = nonnegative_quadratic(a, b, GUESS);
    let mut free: Vec<bool> = guess.iter().map(|x| *x > 0.0).collect();
    let (mut fewest, mut patience) = (usize::MAX, PATIENCE);
    for _ in 0..EXCHANGES {
        let set: Vec<usize> = (0..n).filter(|i| free[*i]).collect();
        let mut x = vec![0.0; n];
        if !set.is_empty() {
            let Ok(factor) = Cholesky::new(&Matrix::from_fn(set.len(), set.len(), |i, j| {
                a[set[i] * n + set[j]] + if i == j { ridge } else { 0.0 }
            })) else {
                break;
            };
            let right: Vec<f64> = set.iter().map(|i| b[*i]).collect();
            set.iter().zip(factor.solve(&right)).for_each(|(i, value)| x[*i] = value);
        }
        let (negative, downhill) = (-ZERO * max_magnitude(&x), -ZERO * max_magnitude(b));
        let wrong: Vec<usize> = (0..n)
            .filter(|i| {
                if free[*i] {
                    x[*i] < negative
                } else {
                    dot(&a[i * n..(i + 1) * n], &x) - b[*i] < downhill
                }
            })
            .collect();
        let Some(last) = wrong.last() else {
            return x.into_iter().map(|x| x.max(0.0)).collect();
        };
        if wrong.len() < fewest {
            (fewest, patience) = (wrong.len(), PATIENCE);
        } else {
            patience = patience.saturating_sub(1);
        }
        match patience {
            0 => free[*last] = !free[*last],
            _ => wrong.iter().for_each(|i| free[*i] = !free[*i]),
        }
    }
    nonnegative_quadratic(a, b, FALLBACK)
}

/// Returns the largest magnitude of the values.
fn max_magnitude(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |max: f64, x| max.max(x.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rosenbrock(x: &[f64], g: &mut [f64]) -> f64 {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        g[0] = -2.0 * a - 400.0 * x[0] * b;
        g[1] = 200.0 * b;
        a * a + 100.0 * b * b
    }

    fn rosenbrock_at(x: &[f64]) -> (f64, Vec<f64>) {
        let mut g = vec![0.0; 2];
        (rosenbrock(x, &mut g), g)
    }

    /// Returns point `i` of pairs of equal points on a line.
    fn on_line(i: usize) -> f64 {
        (i / 2) as f64 * 0.1
    }

    fn gaussian(x: f64, y: f64) -> f64 {
        (-0.5 * (x - y) * (x - y)).exp()
    }

    /// Returns `xᵀAx − 2bᵀx`.
    fn quadratic(a: &[f64], b: &[f64], x: &[f64]) -> f64 {
        let n = x.len();
        (0..n).map(|i| x[i] * (dot(&a[i * n..(i + 1) * n], x) - 2.0 * b[i])).sum()
    }

    #[test]
    fn rosenbrock_with_and_without_bounds() {
        let wide = [f64::INFINITY; 2];
        let stop = Stop { evaluations: 2000, relative: 1e-15 };
        let free = minimise(rosenbrock, vec![-1.2, 1.0], &[f64::NEG_INFINITY; 2], &wide, stop);
        assert!((free.x[0] - 1.0).abs() < 1e-5 && (free.x[1] - 1.0).abs() < 1e-5, "{free:?}");
        // With x₀ ≤ 0.5 the minimum is at (0.5, 0.25).
        let bounded = minimise(rosenbrock, vec![-1.2, 1.0], &[-2.0; 2], &[0.5, 2.0], stop);
        assert!(
            (bounded.x[0] - 0.5).abs() < 1e-9 && (bounded.x[1] - 0.25).abs() < 1e-5,
            "{bounded:?}"
        );
        // Simultaneous descents take the same steps as single ones.
        let starts = vec![vec![-1.2, 1.0], vec![0.4, 1.5]];
        let each = minimise_each(
            |points| points.iter().map(|x| rosenbrock_at(x)).collect(),
            starts,
            &[-2.0; 2],
            &[0.5, 2.0],
            stop,
        );
        assert_eq!((&each[0].x, each[0].evaluations), (&bounded.x, bounded.evaluations));
        let second = minimise(rosenbrock, vec![0.4, 1.5], &[-2.0; 2], &[0.5, 2.0], stop);
        assert_eq!((&each[1].x, each[1].evaluations), (&second.x, second.evaluations));
    }

    proptest! {
        /// The conditions of optimality: x ≥ 0, gradient ≥ 0, and one or the other is zero in every
        /// coordinate.
        #[test]
        fn nonnegative_quadratic_meets_the_optimality_conditions(
            entries in prop::collection::vec(-1.0..1.0f64, 48),
            target in prop::collection::vec(-1.0..1.0f64, 8),
        ) {
            let n = 6;

            let a: Vec<f64> = (0..n * n).map(|i| {
                let ridge = if i / n == i % n { 0.05 } else { 0.0 };
                let product = |r: usize| entries[r * n + i / n] * entries[r * n + i % n];
                (0..8).map(product).sum::<f64>() + ridge
            }).collect();
            let b: Vec<f64> =
                (0..n).map(|c| (0..8).map(|r| entries[r * n + c] * target[r]).sum()).collect();
            let x = nonnegative_quadratic(&a, &b, 20_000);
            for i in 0..n {
                let gradient: f64 = (0..n).map(|j| a[i * n + j] * x[j]).sum::<f64>() - b[i];
                prop_assert!(x[i] >= 0.0 && gradient > -1e-7, "{x:?} {gradient}");
                prop_assert!((x[i] * gradient).abs() < 1e-7);
            }
            // The solution is unique, since A is positive definite; the tolerance for zero moves it
            // by about 1e-10 / 0.05.
            let exact = nonnegative_exact(&a, &b);
            for i in 0..n {
                prop_assert!((x[i] - exact[i]).abs() < 1e-6, "{x:?} {exact:?}");
            }
        }
    }

    /// Points on a line under a kernel much wider than their distances, each point twice: a nearly
    /// singular system. The objective is at most that after a hundred thousand sweeps.
    #[test]
    fn nearly_singular_systems_are_solved() {
        let n = 60;

        let a: Vec<f64> = (0..n * n).map(|i| gaussian(on_line(i / n), on_line(i % n))).collect();
        let b: Vec<f64> = (0..n)
            .map(|i| 0.3 * gaussian(on_line(i), 0.42) + 0.7 * gaussian(on_line(i), 2.33))
            .collect();

        let (exact, swept) = (nonnegative_exact(&a, &b), nonnegative_quadratic(&a, &b, 100_000));
        assert!(exact.iter().all(|x| *x >= 0.0));
        let [found, reference] = [&exact, &swept].map(|x| quadratic(&a, &b, x));
        assert!(found <= reference + 1e-9, "{found} {reference}");
        assert!((exact.iter().sum::<f64>() - 1.0).abs() < 0.01);
        assert_eq!(nonnegative_exact(&a, &vec![-1.0; n]), vec![0.0; n]);
        assert!(nonnegative_exact(&[], &[]).is_empty());
    }
}
