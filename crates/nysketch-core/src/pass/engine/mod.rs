//! Engines: add rows to sums.
//!
//! An [`Engine`] takes rows in the table's units and adds them to the exact sums of its plan. Every
//! engine gives the same integers as [`EngineKind::Scalar`], which processes one row at a time as
//! defined in FORMAT.md. [`EngineKind::Cpu`] is the vectorised pass; its block sizes and
//! instruction sets do not affect the result. [`EngineKind::Cuda`] runs on GPUs.
//!
//! To add an engine, implement the trait, add a variant to [`EngineKind`], and run the contract
//! test below with it. The contract test of GPUs is in `tests/device.rs`, because it needs a GPU.

mod cell_moments;
mod choice;
mod cpu;
mod cuda;
mod gram;
mod kind;
mod scalar;

pub use choice::DeviceChoice;
pub(crate) use cpu::Cpu;
pub(crate) use cuda::Cuda;
pub use kind::EngineKind;
pub(crate) use scalar::Scalar;

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::rows::Invalid;
use crate::sums::Sums;
use nysketch_cuda::{DeviceRows, Outcome};

/// Adds rows to sums.
///
/// ```
/// use nysketch_core::{Engine, EngineKind, PlanParams, Sum, Sums, Table, plan_for};
/// use std::sync::Arc;
/// # fn main() -> nysketch_core::Result<()> {
/// let rows: Vec<f64> = (0..300).map(f64::from).collect();
/// let plan = Arc::new(plan_for(&Table::unnamed(3, rows.clone())?, PlanParams::default())?.plan);
/// let mut sums = Sums::zero(&plan);
/// let mut engine: Box<dyn Engine> = EngineKind::Scalar.start(&plan);
/// let added = engine.add(&rows, &[], &[], &mut sums)?;
/// engine.finish(&mut sums)?;
/// assert_eq!(added, 100);
/// // The caller counts the rows. The engine computes all other sums.
/// assert_eq!(sums[Sum::CellRows].iter().sum::<i128>(), 100);
/// # Ok(())
/// # }
/// ```
pub trait Engine: Send + std::fmt::Debug {
    /// Adds rows up to the first invalid one, and returns the number of rows added. `values` holds
    /// the numeric columns, row-major in the table's units, and `codes` the levels of the
    /// categories, which must be levels of the plan. If the plan allows missing values, NaN is a
    /// missing value, and a row with too few values is invalid. `weights` holds the weight of each
    /// row in whole units, or is empty if every row counts once. Rows may wait in the engine until
    /// [`finish`](Self::finish). The caller ensures that the weight of all rows in the sums stays
    /// within [`MAX_WEIGHT`](crate::numeric::fixed::MAX_WEIGHT).
    fn add(
        &mut self,
        values: &[f64],
        codes: &[u32],
        weights: &[u32],
        sums: &mut Sums,
    ) -> Result<usize>;

    /// Adds all waiting rows to the sums. This completes all sums except for the numbers of rows
    /// and of skipped rows, which the caller counts. Afterwards, rows can be added to other sums.
    fn finish(&mut self, sums: &mut Sums) -> Result<()>;

    /// Adds rows in the memory of the engine's GPU, as [`add`](Self::add) does, and returns the
    /// numbers of rows added and skipped.
    fn add_on_device(
        &mut self,
        rows: &DeviceRows,
        weights: &[u32],
        invalid: Invalid,
    ) -> Result<Outcome> {
        let _ = (weights, invalid);
        Err(not_on_device(rows))
    }

    /// Returns one of the given rows, in the table's units.
    fn row_on_device(&mut self, rows: &DeviceRows, row: u64) -> Result<Vec<f64>> {
        let _ = row;
        Err(not_on_device(rows))
    }
}

/// The error for rows in GPU memory given to an engine that does not run there.
fn not_on_device(rows: &DeviceRows) -> Error {
    let got = format!("{} rows in GPU memory", rows.len());
    Error::parameter("rows", "in the memory of this machine, or `device=cuda`", got)
}

/// Whether a row has as many values as the plan requires.
pub(crate) fn has_enough(plan: &Plan, row: &[f64], codes: &[u32]) -> bool {
    let numbers = row.iter().filter(|x| !x.is_nan()).count();
    let levels = codes.iter().zip(plan.categories()).filter(|(code, c)| **code != c.missing());
    numbers + levels.count() >= plan.recipe.least_present.unwrap_or(0)
}

/// Checks that there are either no weights or one weight per row.
fn check_weights(rows: usize, weights: &[u32]) -> Result<()> {
    if weights.is_empty() || weights.len() == rows {
        return Ok(());
    }
    let expected = format!("one weight for each of the {rows} rows, or none");
    Err(Error::parameter("weights", expected, weights.len()))
}

#[cfg(test)]
mod contract {
    use super::*;
    use crate::kernel::Kernel;
    use crate::numeric::random::Hashes;
    use crate::numeric::simd::Instructions;
    use crate::plan::Plan;
    use crate::plan::collect::Collect;
    use crate::planning::{Missing, PlanParams, PrivateParams};
    use crate::rows::Table;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// Rows, some invalid, and weights.
    #[derive(Debug, Clone)]
    struct Case {
        dims: usize,
        rows: Vec<f64>,
        weights: Vec<u32>,
        features: u8,
        collect: Collect,
        bandwidths: Vec<f64>,
        offset: f64,
        /// Whether the first half of the rows has no weights.
        mixed: bool,
        /// Levels of the categories, and of each row.
        levels: Vec<usize>,
        codes: Vec<u32>,
        /// Number of missing values in every 16 values.
        missing: u64,
        /// Whether rows are clipped to bounds.
        private: bool,
    }

    fn cases() -> impl Strategy<Value = Case> {
        let shape = (1usize..24, 1usize..700);
        let choices = (0u8..3, any::<[bool; 3]>(), any::<u64>(), 0u8..4, 0u8..3);
        let extras = (prop::collection::vec(1usize..6, 0..4), 0u64..8, any::<bool>());
        let all = (shape, choices, extras);
        all.prop_map(|(shape, choices, (levels, missing, private))| {
            let ((dims, n), (features, flags, seed, weighting, offset)) = (shape, choices);
            let mut hashes = Hashes(seed);
            let offset = [0.0, 1e8, -3.0][offset as usize];
            let mut rows = Vec::with_capacity(n * dims);
            for _ in 0..n * dims {
                let bits = hashes.draw();
                rows.push(offset + ((bits >> 40) as f64 / (1 << 22) as f64 - 2.0));
            }
            let mut weights = Vec::new();
            for _ in 0..if weighting < 2 { 0 } else { n } {
                let (bits, shift) = (hashes.draw(), hashes.draw() % 60);
                weights.push(if weighting == 2 { bits % 4 } else { bits >> shift } as u32);
            }
            let [cells, moments, mixed] = flags;
            let landmarks = features < 2;
            let cells = cells && features == 0;
            let collect = Collect { kernel: !cells || moments, cells: landmarks && cells, moments };
            let bandwidths = if moments { vec![4.0, 1.0, 0.25] } else { vec![2.0] };
            let levels = if features == 0 && !private { levels } else { Vec::new() };
            let mut codes = Vec::new();
            for _ in 0..n {
                codes.extend(levels.iter().map(|l| (hashes.draw() % (*l as u64 + 2)) as u32));
            }
            let missing = if cells && !private { missing } else { 0 };
            Case {
                dims,
                rows,
                weights,
                features,
                collect,
                bandwidths,
                offset,
                mixed,
                levels,
                codes,
                missing,
                private,
            }
        })
    }

    fn plan(case: &Case) -> Arc<Plan> {
        // Enough landmarks for several panels if only the nearest is needed.
        let rows = if case.collect.kernel { 60 } else { 200 };
        let sample: Vec<f64> = case.rows.iter().take(rows * case.dims).copied().collect();
        let rows = sample.len() / case.dims;
        let mut table = Table::unnamed(case.dims, sample).unwrap();
        for (c, levels) in case.levels.iter().enumerate() {
            let texts: Vec<String> = (0..*levels).map(|l| format!("level {l}")).collect();
            let codes = case.codes.iter().skip(c).step_by(case.levels.len()).take(rows);
            let texts: Vec<Option<&str>> =
                codes.map(|code| Some(texts[*code as usize % levels].as_str())).collect();
            table = table.with_category(&format!("category {c}"), &texts).unwrap();
        }
        let params = match case.features {
            2 => PlanParams::default().fourier(17),
            1 => PlanParams::default().kernel(Kernel::Laplace),
            _ => PlanParams::default(),
        };
        let missing = if case.missing > 0 { Missing::Partial } else { Missing::Error };
        let params =
            params.collect(case.collect).bandwidths(case.bandwidths.clone()).missing(missing);
        let params = if case.private {
            let (low, high) = (case.offset - 1.5, case.offset + 1.2);
            let bounds = (0..case.dims).map(|j| (format!("c{j}"), low, high));
            let mut private = PrivateParams::new(bounds);
            private.radius = Some(0.6 * (case.dims as f64).sqrt());
            params.private(private)
        } else {
            params
        };
        Arc::new(crate::planning::plan_for(&table, params).unwrap().plan)
    }

    /// Adds all rows through an engine, in pieces and without invalid rows. Each half has its own
    /// sums.
    fn run(engine: &mut dyn Engine, plan: &Plan, case: &Case, rows: &[f64], piece: usize) -> Sums {
        let d = case.dims;
        let n = rows.len() / d;
        // Unknown levels become one of the plan's levels.
        let categories = plan.categories().iter().cycle();
        let codes: Vec<u32> =
            case.codes.iter().zip(categories).map(|(code, c)| (*code).min(c.missing())).collect();
        let mut halves = [Sums::zero(plan), Sums::zero(plan)];
        for (sums, half) in halves.iter_mut().zip([0..n / 2, n / 2..n]) {
            let without = case.weights.is_empty() || (case.mixed && half.start == 0);
            let mut at = half.start;
            while at < half.end {
                let end = half.end.min(at + piece);
                let weights = if without { &[][..] } else { &case.weights[at..end] };
                let c = case.levels.len();
                let codes = &codes[at * c..end * c];
                at += engine.add(&rows[at * d..end * d], codes, weights, sums).unwrap();
                // Skips the invalid row that stopped the engine.
                at += usize::from(at < end);
            }
            if !case.mixed {
                engine.finish(sums).unwrap();
            }
        }
        let [mut first, mut second] = halves;
        engine.finish(&mut second).unwrap();
        first.combine(&second, i128::wrapping_add);
        first
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        /// Every engine gives the integers of the oracle for every kind of sum, with and without
        /// weights, for any split into pieces, and stops at the same invalid rows.
        #[test]
        fn every_engine_gives_the_integers_of_the_oracle(
            case in cases(),
            piece in prop::sample::select(vec![1usize, 7, 251, 253, 10_000]),
            bad in prop::collection::vec((0usize..20_000, 0u8..3), 0..4),
        ) {
            let plan = plan(&case);
            let mut rows = case.rows.clone();
            for (i, x) in rows.iter_mut().enumerate() {
                if crate::rows::sample::mix(i as u64 + 5) % 16 < case.missing {
                    *x = f64::NAN;
                }
            }
            for (at, kind) in bad {
                let at = at % rows.len();
                rows[at] = [f64::NAN, f64::NEG_INFINITY, case.offset + 1e12][kind as usize];
            }
            let expected = run(&mut Scalar::new(plan.clone()), &plan, &case, &rows, 100);
            for set in Instructions::all() {
                let mut cpu = Cpu::with(plan.clone(), set);
                // A small limit, so that weighted rows fill the queue too.
                cpu.weighted_rows = 300;
                let sums = run(&mut cpu, &plan, &case, &rows, piece);
                prop_assert_eq!(&sums, &expected, "{}", set.name());
                cpu.search_as_of_many();
                let sums = run(&mut cpu, &plan, &case, &rows, piece);
                prop_assert_eq!(&sums, &expected, "{} in panels", set.name());
            }
        }
    }
}
