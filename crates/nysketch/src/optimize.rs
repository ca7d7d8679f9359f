//! Optimisers: bounded L-BFGS and non-negative least squares.

use crate::linalg::dot;

/// How a minimisation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The projected gradient or the progress became negligible.
    Converged,
    /// The limit of evaluations was reached.
    EvaluationLimit,
    /// No step along the direction lowered the objective: as good as rounding allows.
    NoProgress,
}

/// A minimiser and how it was found.
#[derive(Debug, Clone)]
pub struct Minimum {
    /// The point.
    pub x: Vec<f64>,
    /// The objective there.
    pub value: f64,
    /// Evaluations of objective and gradient.
    pub evaluations: usize,
    /// How it ended.
    pub status: Status,
}

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub struct Stop {
    /// Most evaluations.
    pub evaluations: usize,
    /// Relative change of the objective below which five steps in a row end it.
    pub relative: f64,
}

const MEMORY: usize = 12;

/// Minimises `f` within `low ≤ x ≤ high` by projected L-BFGS with backtracking.
///
/// `f` returns the objective and writes the gradient. Variables at a bound whose gradient points
/// outwards are held; the quasi-Newton direction is taken in the others and projected.
pub fn minimise(
    mut f: impl FnMut(&[f64], &mut [f64]) -> f64,
    start: Vec<f64>,
    low: &[f64],
    high: &[f64],
    stop: Stop,
) -> Minimum {
    let n = start.len();
    let project = |x: &mut [f64]| {
        for i in 0..n {
            x[i] = x[i].max(low[i]).min(high[i]);
        }
    };
    let mut x = start;
    project(&mut x);
    let mut g = vec![0.0; n];
    let mut value = f(&x, &mut g);
    let mut evaluations = 1;
    let mut pairs: Vec<(Vec<f64>, Vec<f64>, f64)> = Vec::new();
    let (mut flat, mut status) = (0, Status::EvaluationLimit);
    let mut next_g = vec![0.0; n];
    while evaluations < stop.evaluations {
        let held: Vec<bool> = (0..n)
            .map(|i| (x[i] <= low[i] && g[i] > 0.0) || (x[i] >= high[i] && g[i] < 0.0))
            .collect();
        let free =
            |v: &[f64]| -> Vec<f64> { (0..n).map(|i| if held[i] { 0.0 } else { v[i] }).collect() };
        let gradient = free(&g);
        let norm = dot(&gradient, &gradient).sqrt();
        if norm == 0.0 {
            status = Status::Converged;
            break;
        }
        let mut direction = free(&two_loop(&pairs, &gradient));
        if !(dot(&direction, &gradient) < -1e-14 * norm * dot(&direction, &direction).sqrt()) {
            pairs.clear();
            direction = gradient.iter().map(|v| -v).collect();
        }
        let mut step = if pairs.is_empty() { (1.0 / norm).min(1.0) } else { 1.0 };
        let mut accepted = None;
        for _ in 0..30 {
            let mut next: Vec<f64> = (0..n).map(|i| x[i] + step * direction[i]).collect();
            project(&mut next);
            let next_value = f(&next, &mut next_g);
            evaluations += 1;
            let decrease: f64 = (0..n).map(|i| g[i] * (next[i] - x[i])).sum();
            if next_value.is_finite() && next_value <= value + 1e-4 * decrease && decrease < 0.0 {
                accepted = Some((next, next_value));
                break;
            }
            step *= if step > 1e-3 { 0.5 } else { 0.1 };
        }
        let Some((next, next_value)) = accepted else {
            if pairs.is_empty() {
                status = Status::NoProgress;
                break;
            }
            pairs.clear();
            continue;
        };
        let s: Vec<f64> = next.iter().zip(&x).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = next_g.iter().zip(&g).map(|(a, b)| a - b).collect();
        let sy = dot(&s, &y);
        if sy > 1e-12 * dot(&y, &y).sqrt() * dot(&s, &s).sqrt() {
            if pairs.len() == MEMORY {
                pairs.remove(0);
            }
            pairs.push((s, y, 1.0 / sy));
        }
        flat = if value - next_value <= stop.relative * value.abs().max(1e-300) {
            flat + 1
        } else {
            0
        };
        x = next;
        g.copy_from_slice(&next_g);
        value = next_value;
        if flat >= 5 {
            status = Status::Converged;
            break;
        }
    }
    Minimum { x, value, evaluations, status }
}

/// `−H g` by the two-loop recursion.
fn two_loop(pairs: &[(Vec<f64>, Vec<f64>, f64)], gradient: &[f64]) -> Vec<f64> {
    let mut q = gradient.to_vec();
    let mut a = vec![0.0; pairs.len()];
    for (i, (s, y, rho)) in pairs.iter().enumerate().rev() {
        a[i] = rho * dot(s, &q);
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= a[i] * y);
    }
    if let Some((s, y, _)) = pairs.last() {
        let scale = dot(s, y) / dot(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for (i, (s, y, rho)) in pairs.iter().enumerate() {
        let b = rho * dot(y, &q);
        q.iter_mut().zip(s).for_each(|(q, s)| *q += (a[i] - b) * s);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rosenbrock_with_and_without_bounds() {
        let rosenbrock = |x: &[f64], g: &mut [f64]| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            g[0] = -2.0 * a - 400.0 * x[0] * b;
            g[1] = 200.0 * b;
            a * a + 100.0 * b * b
        };
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
    }

    proptest! {
        /// The conditions of optimality: x ≥ 0, gradient ≥ 0, and one of them zero everywhere.
        #[test]
        fn nonnegative_quadratic_meets_the_optimality_conditions(
            entries in prop::collection::vec(-1.0..1.0f64, 48),
            target in prop::collection::vec(-1.0..1.0f64, 8),
        ) {
            let n = 6;
            let m = |r: usize, c: usize| entries[r * n + c];
            let a: Vec<f64> = (0..n * n).map(|i| {
                (0..8).map(|r| m(r, i / n) * m(r, i % n)).sum::<f64>() + if i / n == i % n { 0.05 } else { 0.0 }
            }).collect();
            let b: Vec<f64> = (0..n).map(|c| (0..8).map(|r| m(r, c) * target[r]).sum()).collect();
            let x = nonnegative_quadratic(&a, &b, 20_000);
            for i in 0..n {
                let gradient: f64 = (0..n).map(|j| a[i * n + j] * x[j]).sum::<f64>() - b[i];
                prop_assert!(x[i] >= 0.0 && gradient > -1e-7, "{x:?} {gradient}");
                prop_assert!((x[i] * gradient).abs() < 1e-7);
            }
        }
    }
}
