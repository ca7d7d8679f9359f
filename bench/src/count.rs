//! `count CASE BLOCKS`: a fixed amount of work for the instruction counter of `cargo xtask count`.
//!
//! Two runs that differ only in the number of blocks give the instructions per block, independent
//! of the cost of starting the program. The data is fixed, and every case is deterministic.

use nysketch::{
    Accumulator, Block, EngineKind, FitParams, Invalid, Kernel, Mixture, PlanParams, Predictor,
    Sampling, Shape, Sketch, SketchParams, Table, Task, fit, plan_for, predictor,
};
use nysketch_core::kernel::fourier::{FourierPass, FrequencyLaw, draw_frequencies};
use nysketch_core::kernel::pack::MAX_BLOCK;
use nysketch_core::kernel::tile::{Nearest, Tiles};
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::simd::Instructions;
use rand::SeedableRng;
use std::hint::black_box;
use std::sync::Arc;

const DIMS: usize = 20;
const LANDMARKS: usize = 200;

fn points(count: usize, seed: u64) -> Points {
    draw_frequencies(
        FrequencyLaw::Normal,
        DIMS,
        count,
        &mut rand_chacha::ChaCha8Rng::seed_from_u64(seed),
    )
}

/// Runs the pass over blocks in memory: kernel sums at these bandwidths, and nearest landmarks.
fn pass(bandwidths: &[f64], nearest: bool, blocks: usize) {
    let ladder = (!bandwidths.is_empty()).then(|| Kernel::Gaussian.ladder(bandwidths));
    let mut tiles =
        Tiles::new(&points(LANDMARKS, 1), Kernel::Gaussian, ladder.as_ref(), Instructions::best());
    let rows = points(MAX_BLOCK, 2);
    let mut found = Nearest::default();
    for _ in 0..blocks {
        tiles.block(rows.data(), nearest.then_some(&mut found), |_, _, units| {
            black_box(units);
        });
    }
}

fn widened(points: &Points) -> Vec<f64> {
    points.data().iter().map(|x| f64::from(*x)).collect()
}

/// Predicts labels and distances of rows in memory, with as many centres as the other cases have
/// landmarks.
fn predict(blocks: usize) {
    let table = Table::unnamed(DIMS, widened(&points(LANDMARKS, 1))).expect("a table");
    let plan = Arc::new(plan_for(&table, PlanParams::default()).expect("a plan").0);
    let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).expect("a sketch");
    // Use the rows as centres: a real fit would include the variable work of several threads.
    let mut model = fit(&sketch, &FitParams::new(Task::Kmeans, 1)).expect("a model");
    model.shape = Shape::Centres {
        weights: vec![1.0 / LANDMARKS as f64; LANDMARKS],
        centres: table.values().chunks(DIMS).map(<[f64]>::to_vec).collect(),
    };
    let predictor = Predictor::new(&model);
    let rows = widened(&points(MAX_BLOCK, 2));
    for _ in 0..blocks {
        black_box(predictor.predict(&rows, predictor::Detail::Label));
    }
}

fn fourier(blocks: usize) {
    let mut pass = FourierPass::new(&points(LANDMARKS, 1), &[20.0], Instructions::best());
    let rows = points(MAX_BLOCK, 2);
    for _ in 0..blocks {
        pass.block(rows.data(), |_, units| {
            black_box(units);
        });
    }
}

/// Sketches rows: the complete pass from doubles to exact sums.
fn sketch(blocks: usize) {
    let rows = Mixture::new(DIMS, 10, 2.0, 0).expect("a mixture").rows(0, 5000);
    let table = Table::unnamed(DIMS, rows.values).expect("a table");
    let params = PlanParams::default()
        .landmarks(LANDMARKS)
        .sampling(Sampling::Uniform)
        .bandwidths(vec![80.0, 20.0, 5.0]);
    let plan = Arc::new(plan_for(&table, params).expect("a plan").0);
    let block = Block {
        values: table.values()[..MAX_BLOCK * DIMS].to_vec(),
        columns: DIMS,
        ..Block::default()
    };
    let mut accumulator = Accumulator::new(plan, EngineKind::Cpu);
    for _ in 0..blocks {
        accumulator.push(&block, Invalid::Refuse).expect("valid rows");
    }
    black_box(accumulator.freeze().expect("few rows").to_bytes());
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [case, blocks] = &arguments[..] else { panic!("usage: count CASE BLOCKS") };
    let blocks = blocks.parse().expect("a number of blocks");
    match case.as_str() {
        "kernel" => pass(&[20.0], false, blocks),
        "ladder" => pass(&[80.0, 20.0, 5.0], true, blocks),
        "nearest" => pass(&[], true, blocks),
        "fourier" => fourier(blocks),
        "predict" => predict(blocks),
        "sketch" => sketch(blocks),
        other => panic!("no case '{other}'"),
    }
}
