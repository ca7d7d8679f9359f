//! `cargo run --release -p nysketch-bench --bin floor`: the speed of the sketching pass, compared
//! with the limits of this machine. Prints Markdown tables.
//!
//! The floor of a pair (row, landmark) is d fused multiply-adds at the peak rate on registers, plus
//! one exp2 polynomial on data in the cache: no kernel value can be computed with less. Times are
//! the best of several. Other programs share the machine, so ratios are more reliable than seconds.

use nysketch::{
    Collect, Kernel, Mixture, PlanParams, Sampling, Sketch, SketchParams, Table, plan_for, rows,
};
use nysketch_core::kernel::exp2::{EXP2, ROUND};
use nysketch_core::kernel::ladder::Ladder;
use nysketch_core::kernel::pack::MAX_BLOCK;
use nysketch_core::kernel::tile::{Nearest, Tiles};
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::simd::Instructions;
use pulp::{Arch, Simd, WithSimd};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Number of independent chains of operations, enough to hide their latency.
const CHAINS: usize = 12;

/// Runs fused multiply-adds in registers; returns the number of single-precision operations.
struct FusedMultiplyAdds {
    rounds: usize,
}

impl WithSimd for FusedMultiplyAdds {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let mut sums = [simd.splat_f32s(0.0); CHAINS];
        let (a, b) = (simd.splat_f32s(black_box(0.999)), simd.splat_f32s(black_box(1e-3)));
        for _ in 0..self.rounds {
            for sum in &mut sums {
                *sum = simd.mul_add_f32s(*sum, a, b);
            }
        }
        let total = sums.iter().fold(simd.splat_f32s(0.0), |t, s| simd.add_f32s(t, *s));
        black_box(simd.reduce_sum_f32s(total));
        (self.rounds * CHAINS * S::F32_LANES) as f64
    }
}

/// Evaluates the polynomial of the kernel on numbers in the first-level cache.
struct Exponentials<'a> {
    values: &'a mut [f32],
    rounds: usize,
}

impl WithSimd for Exponentials<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let round = simd.splat_f32s(ROUND);
        let factor = simd.splat_f32s(black_box(-0.7));
        let limit = simd.splat_f32s(black_box(40.0));
        for _ in 0..self.rounds {
            let (vectors, _) = S::as_mut_simd_f32s(self.values);
            for vectors in vectors.as_chunks_mut::<4>().0 {
                for x in vectors {
                    let d2 = simd.min_f32s(*x, limit);
                    let rounded = simd.mul_add_f32s(d2, factor, round);
                    let fraction = simd.mul_add_f32s(d2, factor, simd.sub_f32s(round, rounded));
                    let mut p = simd.splat_f32s(EXP2[4]);
                    for k in [3, 2, 1, 0] {
                        p = simd.mul_add_f32s(p, fraction, simd.splat_f32s(EXP2[k]));
                    }
                    p = simd.mul_add_f32s(p, fraction, simd.splat_f32s(1.0));
                    let bits = simd.transmute_u32s_f32s(rounded);
                    let shifted = simd.wrapping_dyn_shl_u32s(bits, simd.splat_u32s(23));
                    let p = simd.add_u32s(simd.transmute_u32s_f32s(p), shifted);
                    *x = simd.transmute_f32s_u32s(p);
                }
            }
        }
        black_box(&self.values);
        (self.rounds * self.values.len()) as f64
    }
}

/// Returns the seconds of the fastest of several runs.
fn best(times: usize, mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

/// Returns the nanoseconds per number of a multiply-add and of an exp2, on one core.
fn machine(arch: Arch) -> (f64, f64) {
    let mut count = 0.0;
    let seconds = best(15, || count = arch.dispatch(FusedMultiplyAdds { rounds: 2_000_000 }));
    let fma = seconds / count * 1e9;
    let mut values = vec![1.0f32; 2048];
    let seconds = best(15, || {
        count = arch.dispatch(Exponentials { values: &mut values, rounds: 4000 });
    });
    (fma, seconds / count * 1e9)
}

fn points(n: usize, d: usize, seed: u64) -> Points {
    let mut state = seed;
    let mut data = Vec::with_capacity(n * d);
    for _ in 0..n * d {
        state = nysketch_core::rows::sample::mix(state);
        data.push((state >> 40) as f32 / (1 << 24) as f32);
    }
    Points::new(d, data)
}

/// Returns the nanoseconds per pair of the pass over blocks in memory: with one bandwidth, with the
/// nearest landmark, and with a ladder of three bandwidths.
fn pass_times(d: usize, m: usize, instructions: Instructions) -> [f64; 4] {
    let landmarks = points(m, d, 1);
    let rows = points((2_000_000 / (d * m / 10)).clamp(1, 64) * MAX_BLOCK, d, 2);
    let pairs = (rows.len() * m) as f64;
    let sigma2 = d as f64 / 4.0;
    let one = Kernel::Gaussian.ladder(&[sigma2]);
    let three = Kernel::Gaussian.ladder(&[4.0 * sigma2, sigma2, sigma2 / 4.0]);
    let cases = [(Some(&one), false), (Some(&one), true), (Some(&three), true), (None, true)];
    cases.map(|(ladder, track): (Option<&Ladder>, bool)| {
        let mut tiles = Tiles::new(&landmarks, Kernel::Gaussian, ladder, instructions);
        let mut nearest = Nearest::default();
        let mut total = 0u64;
        let seconds = best(12, || {
            for block in rows.data().chunks(MAX_BLOCK * d) {
                let nearest = track.then_some(&mut nearest);
                tiles.block(block, nearest, |_, _, units| {
                    total = total.wrapping_add(u64::from(units))
                });
            }
        });
        black_box(total);
        seconds / pairs * 1e9
    })
}

/// Returns the nanoseconds per row of `Sketch::of` on rows in memory.
fn sketch_time(d: usize, m: usize, collect: &[&str], bandwidths: usize, threads: usize) -> f64 {
    let n = (40_000_000 / (d * m / 10).max(1)).clamp(60_000, 1_000_000);
    let mixture = Mixture::new(d, 10, 2.0, 0).expect("a mixture");
    let source = mixture.source(n as u64);
    let params = PlanParams::default()
        .landmarks(m)
        .sampling(Sampling::Uniform)
        .bandwidths(
            [4.0, 1.0, 0.25][..bandwidths].iter().map(|f| f * d as f64).collect::<Vec<f64>>(),
        )
        .collect(Collect::from_names(collect.iter().copied()).expect("known sums"));
    let small = mixture.source(20_000);
    let plan = Arc::new(plan_for(&small, params).expect("a plan").0);
    let mut values = Vec::new();
    rows::read_in_order(&source, &(), |block| {
        values.extend_from_slice(&block.values);
        Ok(())
    })
    .expect("generated rows");
    let table = Table::unnamed(d, values).expect("a table");
    let params = SketchParams::default().threads(threads);
    let seconds = best(5, || drop(Sketch::of(&plan, &table, params, &()).expect("a sketch")));
    1e9 * seconds / n as f64
}

fn main() {
    let instructions = Instructions::best();
    let (fma, exp) = machine(Arch::new());
    println!(
        "{}. One core: {:.1} GFLOP/s in fused multiply-adds, {exp:.3} ns per exp2.\n",
        instructions.name(),
        2.0 / fma
    );
    println!("Nanoseconds per pair (row, landmark), rows in memory, one core:\n");
    println!(
        "| d | m | floor | one bandwidth | of floor | + nearest | cost | three bandwidths | cost \
         | nearest alone |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for d in [10, 20, 50, 784] {
        for m in [100, 1000] {
            let floor = d as f64 * fma + exp;
            let [one, tracked, three, alone] = pass_times(d, m, instructions);
            println!(
                "| {d} | {m} | {floor:.3} | {one:.3} | {:.0} % | {tracked:.3} | ×{:.2} \
                 | {three:.3} | ×{:.2} | {alone:.3} |",
                100.0 * floor / one,
                tracked / one,
                three / one,
            );
        }
    }
    println!("\nNanoseconds per row of `Sketch::of`, from doubles in memory to exact sums:\n");
    println!(
        "| d | m | floor | kernel | of floor | + cells | cost | + moments | ladder of 3, all \
         | cost | 2 threads, kernel |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for d in [10, 20, 50, 784] {
        for m in [100, 1000] {
            let floor = m as f64 * (d as f64 * fma + exp);
            let kernel = sketch_time(d, m, &["kernel"], 1, 1);
            let cells = sketch_time(d, m, &["kernel", "cells"], 1, 1);
            let (moments, all) = if d > 64 {
                (f64::NAN, sketch_time(d, m, &["kernel", "cells"], 3, 1))
            } else {
                let all = ["kernel", "cells", "moments"];
                (sketch_time(d, m, &all, 1, 1), sketch_time(d, m, &all, 3, 1))
            };
            let two = sketch_time(d, m, &["kernel"], 1, 2);
            println!(
                "| {d} | {m} | {floor:.0} | {kernel:.0} | {:.0} % | {cells:.0} | ×{:.2} \
                 | {moments:.0} | {all:.0} | ×{:.2} | ×{:.2} faster |",
                100.0 * floor / kernel,
                cells / kernel,
                all / kernel,
                kernel / two,
            );
        }
    }
}
