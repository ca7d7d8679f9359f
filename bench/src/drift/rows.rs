//! Rows of known distributions, and trials on all cores.

use nysketch::{FoldRule, Plan, Sketch, SketchParams, Table};
use nysketch_core::numeric::random::{below, normal, unit};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

pub type Rng = ChaCha8Rng;
pub type Row = fn(&mut Rng) -> Vec<f64>;
pub type Change = fn(&mut Vec<f64>, &mut Rng);

/// p-values up to this level are alarms.
pub const LEVEL: f64 = 0.05;
/// Number of permutations of a test.
pub const DRAWS: usize = 199;

pub fn clusters(rng: &mut Rng) -> Vec<f64> {
    let c = below(5, rng) as f64;
    (0..5).map(|k| (c * (k as f64 + 1.0) * 1.7).sin() * 4.0 + normal(rng)).collect()
}

/// Draws a row from Student's t with two degrees of freedom, which has no variance.
pub fn heavy(rng: &mut Rng) -> Vec<f64> {
    let scale = 1.0 / (-(1.0 - unit(rng)).ln()).sqrt();
    (0..3).map(|_| scale * normal(rng)).collect()
}

/// Draws a row of ten columns that carry nearly the same information.
pub fn correlated(rng: &mut Rng) -> Vec<f64> {
    let shared = normal(rng);
    (0..10).map(|_| shared + 0.2 * normal(rng)).collect()
}

/// Draws a row of counts, a constant and a binary column.
pub fn discrete(rng: &mut Rng) -> Vec<f64> {
    vec![(normal(rng) * 2.0).round(), 7.0, below(2, rng) as f64, (normal(rng).exp()).floor()]
}

pub fn skewed(rng: &mut Rng) -> Vec<f64> {
    (0..20).map(|_| normal(rng).exp()).collect()
}

pub fn sketch(plan: &Arc<Plan>, table: &Table) -> Sketch {
    Sketch::of(plan, table, SketchParams::default(), &()).expect("a sketch")
}

pub fn folded(plan: &Arc<Plan>, rule: &FoldRule, table: &Table) -> Sketch {
    Sketch::of_folds(plan, rule, table, SketchParams::default(), &()).expect("a sketch")
}

/// Returns the results of all trials, in order, computed on all cores.
pub fn trials<T: Send>(count: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    nysketch_core::numeric::parallel::in_parallel(threads, (0..count).collect(), work)
}

/// Returns the share of trials in which an event occurs.
pub fn share(count: u64, work: impl Fn(u64) -> bool + Sync) -> f64 {
    trials(count, work).into_iter().filter(|hit| *hit).count() as f64 / count as f64
}

/// Returns the median of some numbers.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
