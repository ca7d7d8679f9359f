//! `cargo run --release -p nysketch-bench --bin gpu`: the speed of the sketching pass over rows in
//! the memory of a GPU, compared with the limits of this GPU, and of labelling rows of the host
//! with many centres. Prints Markdown tables. `-- quick` uses a hundredth of the rows.
//!
//! The floor is the number of operations that these sums require, divided by the rate at which the
//! GPU starts them: 128 per multiprocessor and cycle. An operation on doubles and a 64-bit product
//! count as 2, a conversion to or from 64 bits as 8, since the GPU has half and an eighth as many
//! units for them (compute capability 9.0). Reading every row once has its own floor: bytes divided
//! by the memory bandwidth.

use nysketch::model::Shape;
use nysketch::predictor::Detail;
use nysketch::{
    Accumulator, Collect, DeviceChoice, EngineKind, FitParams, Invalid, Plan, PlanParams,
    Predictor, Result, Sketch, SketchParams, Table, Task, fit, plan_for,
};
use nysketch_cuda::{Device, Element, OwnedRows};
use std::sync::Arc;
use std::time::Instant;

/// One measured case.
struct Setting {
    rows: u64,
    dims: usize,
    landmarks: usize,
    rungs: usize,
    collect: Collect,
}

/// Numbers of operations of the floor.
const SUBTRACT_AND_MULTIPLY: f64 = 2.0;
/// Minimum, two multiply-adds around a rounding, five for the polynomial, two on bits; then two for
/// fixed point.
const FIRST_VALUE: f64 = 13.0;
/// Two squarings, a maximum, two for fixed point.
const NEXT_VALUE: f64 = 5.0;
/// A comparison and two selections.
const NEAREST: f64 = 3.0;
/// Conversion to doubles, a subtraction and a multiplication, and conversion back.
const FRAME: f64 = 8.0 + 4.0 + 8.0;
/// A comparison of values that are already doubles. Digits are compared anyway.
const VALID: f64 = 2.0;
/// Conversion to doubles, a subtraction, a multiplication and a sum; a comparison, a sum, and a
/// square that is added in 64 bits.
const CELL: f64 = 8.0 + 6.0 + 1.0 + 1.0 + 2.0;
/// Sixteen products of 8-bit digits on the matrix units, which do 32 while the other units start
/// one operation.
const PRODUCT: f64 = 0.5;
/// Conversion to doubles, a subtraction, a multiplication and a sum, a comparison, and digits of
/// four numbers in twelve operations.
const DIGITS: f64 = 8.0 + 6.0 + 1.0 + 3.0;

/// Factor of the number of rows in the second measurement of the processors.
const LONGER: usize = 8;

impl Setting {
    fn operations(&self) -> f64 {
        let (n, d, m) = (self.rows as f64, self.dims as f64, self.landmarks as f64);
        let (mut pair, mut value, mut row) = (0.0, 0.0, 0.0);
        if self.collect.kernel || self.collect.cells {
            pair += SUBTRACT_AND_MULTIPLY * d + NEAREST;
            value += FRAME + VALID;
        }
        if self.collect.kernel {
            pair += FIRST_VALUE + NEXT_VALUE * (self.rungs as f64 - 1.0);
        }
        if self.collect.cells {
            value += CELL;
        }
        if self.collect.moments {
            value += DIGITS;
            row += PRODUCT * (d + 1.0) * (d + 2.0) / 2.0;
        }
        n * (m * pair + d * value + row)
    }

    fn name(&self) -> String {
        let mut sums: Vec<String> = Vec::new();
        if self.collect.kernel {
            sums.push(format!("{} bandwidth{}", self.rungs, if self.rungs > 1 { "s" } else { "" }));
        }
        let kept = [("cells", self.collect.cells), ("moments", self.collect.moments)];
        sums.extend(kept.iter().filter(|(_, kept)| *kept).map(|(name, _)| name.to_string()));
        format!(
            "{:.0e} × {} | {} | {}",
            self.rows as f64,
            self.dims,
            self.landmarks,
            sums.join(", ")
        )
    }
}

/// Returns rows around ten centres.
fn rows(count: usize, dims: usize) -> Vec<f32> {
    let mut stream = Stream(1);
    let centres: Vec<f32> = (0..10 * dims).map(|_| 10.0 * stream.next()).collect();
    let mut values = Vec::with_capacity(count * dims);
    for at in 0..count * dims {
        let noise = 2.0 * stream.next() + 2.0 * stream.next();
        values.push(centres[at / dims % 10 * dims + at % dims] + noise + 1000.0);
    }
    values
}

/// Random numbers, uniform between −½ and ½.
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> f32 {
        self.0 = nysketch_core::rows::sample::mix(self.0);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    }
}

fn measure(device: &Arc<Device>, setting: &Setting) -> Result<()> {
    let d = setting.dims;
    let block = (10_000_000 / d).min(setting.rows as usize);
    let values = rows(block, d);
    let sample: Vec<f64> = values.iter().take(20_000 * d).map(|x| f64::from(*x)).collect();
    let bandwidths: Vec<f64> =
        (0..setting.rungs).map(|i| d as f64 * 4.0 / 4f64.powi(i as i32)).collect();
    let params = PlanParams::default()
        .landmarks(setting.landmarks)
        .collect(setting.collect)
        .bandwidths(bandwidths)
        .witnesses(0);
    let plan = Arc::new(plan_for(&Table::unnamed(d, sample)?, params)?.0);
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let copies = setting.rows.div_ceil(block as u64) as usize;
    let there = OwnedRows::repeated(device, &bytes, Element::F32, d, copies)?;
    let mut best = f64::INFINITY;
    let mut first = 0.0;
    let mut sketch = None;
    for round in 0..4 {
        let mut sums = Accumulator::new(plan.clone(), EngineKind::Cuda(Some(device.ordinal())));
        let start = Instant::now();
        sums.push_on_device(&there.get(), &[], 1, Invalid::Refuse)?;
        let seconds = start.elapsed().as_secs_f64();
        if round == 0 {
            first = seconds
        } else {
            best = f64::min(best, seconds)
        }
        sketch = Some(sums.freeze()?);
    }
    // Sketch the same rows with the vector engine once, and count the sums as often as the rows
    // were copied.
    let values: Vec<f64> = values.iter().map(|x| f64::from(*x)).collect();
    let (part, once) = by_vectors(&plan, values.clone())?;
    let (_, longer) = by_vectors(&plan, values.repeat(LONGER))?;
    // The fixed cost of the processors is not multiplied.
    let cpu = once + (longer - once) / (LONGER - 1) as f64 * (copies - 1) as f64;
    let mut sketch = sketch.unwrap_or_else(|| Sketch::empty(plan.clone()));
    let same = (1..=copies).try_for_each(|_| sketch.subtract(&part)).is_ok()
        && sketch.to_bytes() == Sketch::empty(plan).to_bytes();
    let floor = setting.operations() / device.operations_per_second();
    let reading = setting.rows as f64 * (4 * d) as f64 / device.bytes_per_second();
    println!(
        "| {} | {best:.3} | {floor:.3} | {:.0} % | {reading:.3} | {first:.1} | {cpu:.1} | {} |",
        setting.name(),
        100.0 * floor / best,
        if same { "yes" } else { "NO" }
    );
    Ok(())
}

/// Sketches rows with the vector engine on all cores; returns the seconds.
fn by_vectors(plan: &Arc<Plan>, values: Vec<f64>) -> Result<(Sketch, f64)> {
    let table = Table::unnamed(plan.dims(), values)?;
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let start = Instant::now();
    let sketch = Sketch::of(plan, &table, SketchParams::default().threads(threads), &())?;
    Ok((sketch, start.elapsed().as_secs_f64()))
}

fn widened(values: Vec<f32>) -> Vec<f64> {
    values.into_iter().map(f64::from).collect()
}

/// Labels rows on some threads, each with its share of the rows; returns the seconds.
fn labelled(
    predictor: &Predictor<'_>,
    values: &[f64],
    dims: usize,
    threads: usize,
) -> (Vec<u32>, f64) {
    let share = (values.len() / dims).div_ceil(threads) * dims;
    let start = Instant::now();
    let labels: Vec<u32> = std::thread::scope(|scope| {
        let started: Vec<_> = values
            .chunks(share)
            .map(|rows| scope.spawn(move || predictor.predict(rows, Detail::Label).label))
            .collect();
        started.into_iter().flat_map(|thread| thread.join().expect("does not panic")).collect()
    });
    (labels, start.elapsed().as_secs_f64())
}

/// Labels rows of the host, on the GPU and on the processors; the latter process a tenth of the
/// rows.
fn assign(device: &Arc<Device>, count: usize, dims: usize, k: usize) -> Result<()> {
    let values = widened(rows(count, dims));
    let centres = widened(rows(k, dims)).chunks(dims).map(<[f64]>::to_vec).collect();
    let table = Table::unnamed(dims, values[..2 * dims].to_vec())?;
    let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(1))?.0);
    let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
    let mut model = fit(&sketch, &FitParams::new(Task::Kmeans, 1))?;
    model.shape = Shape::Centres { weights: vec![1.0 / k as f64; k], centres };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let choice = DeviceChoice::Cuda(Some(device.ordinal()));
    let (gpu, _) = Predictor::new(&model).on_device(choice, None, threads)?;
    let first = labelled(&gpu, &values, dims, threads).1;
    let (labels, seconds) = labelled(&gpu, &values, dims, threads);
    let part = &values[..(count / 10).max(1) * dims];
    let (expected, cpu) = labelled(&Predictor::new(&model), part, dims, threads);
    let cpu = cpu * values.len() as f64 / part.len() as f64;
    // If the GPU fails, the processors take over, and the time would be theirs.
    let same = labels.starts_with(&expected) && gpu.device_remark().is_none();
    let pairs = count as f64 * k as f64;
    let operations = pairs * (SUBTRACT_AND_MULTIPLY * dims as f64 + NEAREST);
    let floor = operations / device.operations_per_second();
    println!(
        "| {count} × {dims} | {k} | {seconds:.3} | {floor:.3} | {:.0} % | {first:.1} | {cpu:.1} \
         | {} |",
        100.0 * floor / seconds,
        if same { "yes" } else { "NO" }
    );
    Ok(())
}

fn main() -> Result<()> {
    let quick = std::env::args().any(|a| a == "quick");
    let device = Device::open(0)?;
    println!(
        "{}, {:.1e} operations per second at most\n",
        device.name(),
        device.operations_per_second()
    );
    println!(
        "| rows | landmarks | sums | seconds | floor | floor / seconds | reading once | first time \
         | this machine's processors | same integers |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let settings = [
        (1_000_000_000, 20, 100, 1, &["kernel"][..]),
        (1_000_000_000, 20, 100, 3, &["kernel"]),
        (1_000_000_000, 20, 100, 3, &["kernel", "cells"]),
        (1_000_000_000, 20, 100, 3, &["kernel", "cells", "moments"]),
        (1_000_000_000, 20, 100, 1, &["moments"]),
        (1_000_000_000, 20, 100, 1, &["cells"]),
        (100_000_000, 20, 400, 3, &["kernel", "cells", "moments"]),
        (10_000_000, 768, 1000, 1, &["cells"]),
    ];
    for (rows, dims, landmarks, rungs, sums) in settings {
        let collect = Collect::from_names(sums.iter().copied())?;
        let rows = if quick { rows / 100 } else { rows };
        measure(&device, &Setting { rows, dims, landmarks, rungs, collect })?;
    }
    println!(
        "\n| rows of the host | centres | seconds | floor | floor / seconds | first time \
         | this machine's processors | same labels |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (rows, dims, k) in [(10_000_000, 20, 1000), (500_000, 768, 10_000)] {
        assign(&device, if quick { rows / 100 } else { rows }, dims, k)?;
    }
    Ok(())
}
