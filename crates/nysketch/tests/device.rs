//! A GPU computes the integers of the scalar engine, for all kinds of sums and odd shapes.
//!
//! Skipped without a GPU. `cargo xtask gpu` runs these tests on a GPU, or on an emulated one. The
//! variables `CASES` and `WORK` set the number of random cases and the number of operations of
//! each.

mod common;

use common::Stream;
use nysketch::planning::Missing;
use nysketch::predictor::Detail;
use nysketch::*;
use nysketch_cuda::{Device, Element, OwnedRows, Ranking};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns whether there is a GPU, and prints a message if there is none.
fn has_device() -> bool {
    let found = Device::count() > 0;
    assert!(
        found || std::env::var_os("NYSKETCH_GPU").is_none(),
        "no GPU, but NYSKETCH_GPU asks for one"
    );
    if !found {
        eprintln!("skipped: there is no GPU here");
    }
    found
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// A table with its plan, and a description of the case.
struct Case {
    what: String,
    table: Table,
    plan: Arc<Plan>,
    values: Vec<f64>,
    weights: Vec<f64>,
    plain: bool,
}

/// Returns a number from 1 to `most`, uniform in its logarithm.
fn up_to(s: &mut Stream, most: usize) -> usize {
    ((most as f64).powf(s.unit()) as usize).clamp(1, most)
}

fn case(seed: u64, work: u64, element: Element) -> Case {
    let mut s = Stream(seed);
    let d = up_to(&mut s, 1000);
    let m = up_to(&mut s, 5000.min((work as f64 / d as f64).sqrt() as usize).max(1));
    let n = m.max(up_to(&mut s, (work as usize / (m * d)).clamp(1, 200_000)));
    // The largest number in half precision is 65,504.
    let far = if element == Element::F16 { 100.0 } else { 1e6 };
    let offset = [0.0, 0.0, 3.0, far][s.below(4)];
    let spread = [1.0, 1e-3, 30.0][s.below(3)];
    let rounded = |x: f64| match element {
        Element::F64 => x,
        Element::F32 => f64::from(x as f32),
        Element::F16 => half::f16::from_f64(x).to_f64(),
        Element::Bf16 => half::bf16::from_f64(x).to_f64(),
    };
    let scale: Vec<f64> = (0..d).map(|_| spread * (0.2 + s.unit())).collect();
    let value = |s: &mut Stream, j: usize| {
        let far = if s.below(50) == 0 { 40.0 } else { 1.0 };
        rounded(offset + scale[j] * far * s.normal())
    };
    let mut values: Vec<f64> = Vec::with_capacity(n * d);
    for _ in 0..n {
        for j in 0..d {
            let x = value(&mut s, j);
            values.push(x);
        }
    }
    let kind = [
        "all",
        "cells",
        "kernel",
        "moments",
        "laplace",
        "fourier",
        "holes",
        "categories",
        "private",
    ][s.below(9)];
    let weighted = kind != "private" && s.below(3) == 0;
    let moments = d <= 300 && s.below(2) == 0;
    let collect = |kernel, cells, moments| Collect { kernel, cells, moments };
    let mut params = match kind {
        "fourier" => PlanParams::default().fourier(m).collect(collect(true, false, moments)),
        "laplace" => PlanParams::default()
            .landmarks(m)
            .kernel(Kernel::Laplace)
            .collect(collect(true, false, moments)),
        "cells" => PlanParams::default().landmarks(m).collect(collect(false, true, moments)),
        "kernel" => PlanParams::default().landmarks(m).collect(collect(true, false, moments)),
        "moments" => PlanParams::default().landmarks(1).collect(collect(false, false, d <= 1000)),
        _ => PlanParams::default().landmarks(m).collect(collect(true, true, moments)),
    };
    let wide = spread * spread * d as f64;
    let ladders: [&[f64]; 5] = [
        &[1.0],
        &[4.0, 1.0, 0.25],
        &[2.0, 1.0],
        &[9.0, 1.0],
        &[8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01],
    ];
    let ladder = ladders[if s.below(8) == 0 { 4 } else { s.below(4) }];
    params = params
        .bandwidths(ladder.iter().map(|f| f * wide).collect::<Vec<f64>>())
        .seed(seed)
        .witnesses(0);
    if kind != "fourier" {
        params = params.sampling(Sampling::Uniform);
    }
    let mut weights: Vec<f64> = Vec::new();
    if weighted {
        let most = [3usize, (1 << 38) / n.max(1 << 8)][s.below(2)];
        weights = (0..n).map(|_| s.below(most) as f64).collect();
        weights[0] = 1.0;
        params = params.weights("w", 1.0);
    }
    if kind == "holes" {
        params = params.missing(Missing::Partial);
        let share = 1 + s.below(20);
        for x in values.iter_mut().skip(d) {
            if s.below(40) < share {
                *x = f64::NAN;
            }
        }
    }
    if kind == "private" {
        let bounds = |j: usize| (format!("c{j}"), offset - 2.0 * scale[j], offset + 1.5 * scale[j]);
        let mut private = PrivateParams::new((0..d).map(bounds));
        private.radius = Some(spread * (d as f64).sqrt());
        params = params.private(private);
    }
    let part_rows = 1 + s.below(n);
    let categories = if kind == "categories" { 1 + s.below(2) } else { 0 };
    let levels: Vec<Vec<String>> = (0..categories)
        .map(|_| (0..n).map(|_| format!("level {}", s.below(7))).collect())
        .collect();
    let table_of = |values: &[f64]| {
        let mut table = Table::unnamed(d, values.to_vec()).unwrap().with_part_rows(part_rows);
        for (name, texts) in ["first", "second"].into_iter().zip(&levels) {
            let texts: Vec<Option<&str>> =
                texts.iter().map(|t| (t != "level 3").then_some(t.as_str())).collect();
            table = table.with_category(name, &texts).unwrap();
        }
        match weighted {
            true => table.with_weights(weights.clone()).unwrap(),
            false => table,
        }
    };
    let plan = plan_for(&table_of(&values), params);
    // Skipped rows must leave no trace on the GPU.
    let invalid = if s.below(3) == 0 { 1 + s.below(3) } else { 0 };
    for _ in 0..invalid {
        values[s.below(n * d)] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][s.below(3)];
    }
    let table = table_of(&values);
    let what = format!(
        "seed {seed}: {kind}, {n} × {d}, m = {m}, weighted {weighted}, offset {offset}, {invalid} invalid, {} bandwidths",
        ladder.len()
    );
    let plan = plan.unwrap_or_else(|e| panic!("{what}: {e}")).plan;
    let plain = !matches!(kind, "categories");
    Case { what, table, plan: Arc::new(plan), values, weights, plain }
}

fn sketch(case: &Case, engine: EngineKind, threads: usize) -> Sketch {
    let params = SketchParams::default().threads(threads).engine(engine).invalid(Invalid::Skip);
    Sketch::of(&case.plan, &case.table, params, &())
        .unwrap_or_else(|e| panic!("{}: {e}", case.what))
}

/// Returns the values in the byte layout of GPU memory.
fn bytes_of(values: &[f64], element: Element) -> Vec<u8> {
    let bytes = |x: &f64| match element {
        Element::F64 => x.to_le_bytes().to_vec(),
        Element::F32 => (*x as f32).to_le_bytes().to_vec(),
        Element::F16 => half::f16::from_f64(*x).to_le_bytes().to_vec(),
        Element::Bf16 => half::bf16::from_f64(*x).to_le_bytes().to_vec(),
    };
    values.iter().flat_map(bytes).collect()
}

/// Sketches rows in GPU memory, stored row by row or column by column.
fn on_device(case: &Case, element: Element, by_column: bool) -> Sketch {
    let d = case.plan.dims();
    let n = case.values.len() / d;
    let values: Vec<f64> = match by_column {
        true => (0..n * d).map(|at| case.values[at % n * d + at / n]).collect(),
        false => case.values.clone(),
    };
    let rows = OwnedRows::copy(&Device::open(0).unwrap(), &bytes_of(&values, element), element, d)
        .unwrap();
    let mut there = rows.get();
    if by_column {
        // SAFETY: the values of a column are contiguous in the copy above.
        there = unsafe { there.with_strides(1, n as i64) };
    }
    let mut sums = Accumulator::new(case.plan.clone(), EngineKind::Cuda(Some(0)));
    sums.push_on_device(&there, &case.weights, 1, Invalid::Skip).unwrap();
    sums.freeze().unwrap()
}

#[test]
fn random_cases_have_the_bytes_of_the_scalar_engine() {
    if !has_device() {
        return;
    }
    let (cases, work) = (setting("CASES", 40), setting("WORK", 300_000));
    let first = setting("SEED", 0);
    let next = AtomicU64::new(first);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + cases {
                        break;
                    }
                    let element = [Element::F64, Element::F32, Element::F16, Element::Bf16]
                        [seed as usize % 4];
                    let case = case(seed, work, element);
                    let expected = sketch(&case, EngineKind::Scalar, 1);
                    let got = sketch(&case, EngineKind::Cuda(None), 1 + seed as usize % 3);
                    assert!(got.sums() == expected.sums(), "{}", case.what);
                    assert!(got.to_bytes() == expected.to_bytes(), "{}", case.what);
                    if case.plain {
                        let got = on_device(&case, element, seed.is_multiple_of(3));
                        assert!(
                            got.to_bytes() == expected.to_bytes(),
                            "{}, {element:?} on the device",
                            case.what
                        );
                    }
                }
            });
        }
    });
}

#[test]
fn large_cases_have_the_bytes_of_the_vectors() {
    if !has_device() || setting("LARGE", 0) == 0 {
        eprintln!("skipped: LARGE=1 runs ten large cases");
        return;
    }
    for seed in 0..10 {
        let case = case(1_000_003 * (seed + 1), 100_000_000 << (seed % 7), Element::F32);
        let expected = sketch(&case, EngineKind::Cpu, 16);
        assert!(
            sketch(&case, EngineKind::Cuda(None), 4).to_bytes() == expected.to_bytes(),
            "{}",
            case.what
        );
        if case.plain {
            assert!(
                on_device(&case, Element::F32, false).to_bytes() == expected.to_bytes(),
                "{}",
                case.what
            );
        }
        eprintln!("{}: the same bytes", case.what);
    }
}

/// An invalid row is refused with the same row and column as on the processor, or skipped in the
/// same way.
#[test]
fn invalid_rows_are_refused_alike() {
    if !has_device() {
        return;
    }
    let good: Vec<f64> = (0..3000).map(|i| (f64::from(i) * 0.37).sin()).collect();
    let plan =
        plan_for(&Table::unnamed(3, good.clone()).unwrap(), PlanParams::default().landmarks(9))
            .unwrap()
            .plan;
    let plan = Arc::new(plan);
    for bad in [f64::NAN, f64::INFINITY, 1e30] {
        let mut values = good.clone();
        values[3 * 700 + 1] = bad;
        values[3 * 701] = bad;
        let table = Table::unnamed(3, values.clone()).unwrap();
        let by = |engine, invalid| {
            Sketch::of(&plan, &table, SketchParams::default().engine(engine).invalid(invalid), &())
        };
        let expected = by(EngineKind::Cpu, Invalid::Refuse).unwrap_err().to_string();
        assert!(expected.starts_with("table: row 701, column 'c1'"), "{expected}");
        let got = by(EngineKind::Cuda(None), Invalid::Refuse).unwrap_err().to_string();
        assert_eq!(got, expected);

        let rows = OwnedRows::copy(
            &Device::open(0).unwrap(),
            &bytes_of(&values, Element::F64),
            Element::F64,
            3,
        )
        .unwrap();
        let mut sums = Accumulator::new(plan.clone(), EngineKind::Cuda(Some(0)));
        let error =
            sums.push_on_device(&rows.get(), &[], 1, Invalid::Refuse).unwrap_err().to_string();
        assert_eq!(error.replace("rows in GPU memory", "table"), expected);

        let skipped = by(EngineKind::Cpu, Invalid::Skip).unwrap();
        assert_eq!(
            by(EngineKind::Cuda(None), Invalid::Skip).unwrap().to_bytes(),
            skipped.to_bytes()
        );
        let mut sums = Accumulator::new(plan.clone(), EngineKind::Cuda(Some(0)));
        sums.push_on_device(&rows.get(), &[], 1, Invalid::Skip).unwrap();
        assert_eq!(sums.losses().skipped(), 2);
        let names = ["a", "b", "c"].map(String::from);
        assert_eq!(sums.losses().by_column(&names), [("a", 1), ("b", 1)]);
        assert_eq!(sums.freeze().unwrap().to_bytes(), skipped.to_bytes());
    }
}

/// The fold changes with every block, and so do groups.
#[test]
fn folds_have_the_same_bytes() {
    if !has_device() {
        return;
    }
    let values: Vec<f64> = (0..4000).map(|i| (f64::from(i) * 0.37).sin()).collect();
    let table = Table::unnamed(2, values).unwrap().with_part_rows(300);
    let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(20)).unwrap().plan);
    let rule = FoldRule::by_content(5).unwrap();
    let by = |engine| {
        let params = SketchParams::default().threads(2).engine(engine);
        Sketch::of_folds(&plan, &rule, &table, params, &()).unwrap().to_bytes()
    };
    assert_eq!(by(EngineKind::Cuda(None)), by(EngineKind::Cpu));
}

/// Returns a k-means model with the given centres.
fn model_of(centres: Vec<Vec<f64>>, scale: &[f64]) -> Model {
    let table = Table::unnamed(1, vec![0.0, 1.0, 2.0]).unwrap();
    let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(2)).unwrap().plan);
    let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
    let mut model = fit(&sketch, &FitParams::new(Task::Kmeans, 1)).unwrap();
    model.columns = (0..scale.len()).map(|j| format!("c{j}")).collect();
    model.recipe = Recipe::plain(model.columns.clone());
    model.scale = scale.to_vec();
    let weights = vec![1.0 / centres.len() as f64; centres.len()];
    model.shape = Shape::Centres { weights, centres };
    model
}

/// Returns centres, every fifth a copy of an earlier one, and their scale, far from zero or not.
fn centres_of(s: &mut Stream, k: usize, d: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let scaled = s.below(2) == 0;
    let scale: Vec<f64> =
        (0..d).map(|_| if scaled { (2.0 * s.normal()).exp() } else { 1.0 }).collect();
    let offset = [0.0, 0.0, 1e8, 1e15][s.below(4)];
    let spread = [1e-30, 1.0, 1e5, 1e60][s.below(4)];
    let grid = s.below(3) == 0;
    let mut centres: Vec<Vec<f64>> = Vec::new();
    for c in 0..k {
        let value = |s: &mut Stream, j: usize| match grid {
            true => s.below(4) as f64,
            false => offset + spread * scale[j] * s.normal(),
        };
        let fresh = (0..d).map(|j| value(s, j)).collect();
        centres.push(if c % 5 == 4 { centres[s.below(c)].clone() } else { fresh });
    }
    (centres, scale)
}

/// Returns rows at centres, at (nearly) equal distance to two centres, near centres, and far away.
fn rows_about(s: &mut Stream, n: usize, centres: &[Vec<f64>], scale: &[f64]) -> Vec<f64> {
    let mut rows = Vec::with_capacity(n * scale.len());
    for i in 0..n {
        let (a, b) = (&centres[s.below(centres.len())], &centres[s.below(centres.len())]);
        let close = [0.0, 1e-16, 1e-12, 1e-8, 3e-8, 1e-7, 1e-6, 1e-3][s.below(8)];
        let share = 0.5 + close * s.normal();
        let far = [1e3, 1e12, 1e45, 1e90][s.below(4)];
        rows.extend((0..a.len()).map(|j| match i % 5 {
            0 => a[j],
            1 | 2 => a[j] + share * (b[j] - a[j]),
            3 => a[j] + 0.1 * scale[j] * s.normal(),
            _ => a[j] + far * s.normal(),
        }));
    }
    rows
}

fn predictors(model: &Model, ordinal: Option<usize>) -> (Predictor<'_>, Predictor<'_>) {
    let here = Predictor::new(model);
    let device = DeviceChoice::Cuda(ordinal);
    let (there, why_not) = Predictor::new(model).on_device(device, None, 1).unwrap();
    assert_eq!(why_not, None);
    (here, there)
}

/// Returns the index and squared distance of the nearest point and the squared distance of the
/// second, one row at a time.
fn ranked(z: &[f32], points: &[f32]) -> (u32, f32, f32) {
    let mut best = (0, f32::INFINITY, f32::INFINITY);
    for (j, point) in points.chunks_exact(z.len()).enumerate() {
        let squared = z.iter().zip(point).fold(0.0f32, |s, (z, p)| (z - p).mul_add(z - p, s));
        if squared < best.1 {
            best = (j as u32, squared, best.1);
        } else {
            best.2 = best.2.min(squared);
        }
    }
    best
}

#[test]
fn ranks_are_those_of_the_definition() {
    if !has_device() {
        return;
    }
    let device = Device::open(0).unwrap();
    for seed in 0..setting("CASES", 40) {
        let mut s = Stream(seed + 77);
        let (k, d) = (up_to(&mut s, 3000), up_to(&mut s, 300));
        let n = up_to(&mut s, (3_000_000 / (k * d)).clamp(3, 2000));
        // A grid has many ties. Squares of the largest numbers overflow, and those of the smallest
        // underflow.
        let [grid, size] = [s.below(3) == 0, s.below(2) == 0];
        let size = if size { 1.0 } else { [1e-22, 1e18, 5e37][s.below(3)] };
        let mut value = |_| match grid {
            true => s.below(4) as f32,
            false => size * s.normal() as f32,
        };
        let points: Vec<f32> = (0..k * d).map(&mut value).collect();
        let z: Vec<f32> = (0..n * d).map(value).collect();
        let mut found = Vec::new();
        let ranking = Ranking::new(device.clone(), &points, d).unwrap();
        ranking.nearest(&z, |row| found.push((row.index, row.distance, row.second))).unwrap();
        assert_eq!(found.len(), n);
        for (row, found) in z.chunks_exact(d).zip(found) {
            assert_eq!(found, ranked(row, &points), "seed {seed}: {n} × {d}, k = {k}");
        }
    }
}

#[test]
fn labels_and_distances_are_those_of_the_processors() {
    if !has_device() {
        return;
    }
    for seed in 0..setting("CASES", 40) {
        let mut s = Stream(seed);
        let (k, d) = (up_to(&mut s, 3000), up_to(&mut s, 300));
        let n = up_to(&mut s, (5_000_000 / (k * d)).clamp(5, 3000));
        let (centres, scale) = centres_of(&mut s, k, d);
        let rows = rows_about(&mut s, n, &centres, &scale);
        let model = model_of(centres, &scale);
        let (here, there) = predictors(&model, [None, Some(0)][seed as usize % 2]);
        assert!(
            there.predict(&rows, Detail::Label) == here.predict(&rows, Detail::Label),
            "seed {seed}: {n} × {d}, k = {k}"
        );
        assert_eq!(there.device_remark(), None);
    }
}

/// Several threads, and more rows than are copied at once.
#[test]
fn threads_share_the_centres() {
    if !has_device() {
        return;
    }
    let mut s = Stream(5);
    let (centres, scale) = centres_of(&mut s, 9, 250);
    let rows = rows_about(&mut s, 36_000, &centres, &scale);
    let model = model_of(centres, &scale);
    let (here, there) = predictors(&model, None);
    let expected = here.predict(&rows, Detail::Label);
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let rows_of = match next.fetch_add(1, Ordering::Relaxed) {
                        0 => 0..36_000,
                        part @ 1..8 => part as usize * 700..part as usize * 1300,
                        _ => break,
                    };
                    let got =
                        there.predict(&rows[rows_of.start * 250..rows_of.end * 250], Detail::Label);
                    assert!(got.label == expected.label[rows_of.clone()]);
                    assert!(got.squared_distance == expected.squared_distance[rows_of]);
                }
            });
        }
    });
    assert_eq!(there.device_remark(), None);
}

/// If a GPU is lost, the processors take over, and the error is kept. Only an emulated GPU can be
/// lost on demand.
#[test]
fn a_lost_gpu_changes_no_label() {
    const LOST_AFTER: &str = "EMULATED_LOST_AFTER";
    if !has_device() || !Device::open(0).unwrap().name().contains("mulated") {
        return;
    }
    if std::env::var_os(LOST_AFTER).is_none() {
        let this = std::env::current_exe().unwrap();
        let mut again = std::process::Command::new(this);
        again.args(["--exact", "a_lost_gpu_changes_no_label"]).env(LOST_AFTER, "6");
        assert!(again.status().unwrap().success());
        return;
    }
    let mut s = Stream(6);
    let (centres, scale) = centres_of(&mut s, 30, 7);
    let rows = rows_about(&mut s, 500, &centres, &scale);
    let model = model_of(centres, &scale);
    let (here, there) = predictors(&model, None);
    // A kernel of distances and one of ranks: once for the initial check, then for each block.
    for lost in [false, false, true, true] {
        assert!(there.predict(&rows, Detail::Label) == here.predict(&rows, Detail::Label));
        assert_eq!(there.device_remark().is_some(), lost);
    }
    let remark = there.device_remark().unwrap();
    assert!(remark.contains("processors of this machine have finished"), "{remark}");
}

/// Models without nearest centres state why they stay on the processors, and automatic choices take
/// small work into account.
#[test]
fn what_stays_on_the_processors() {
    let table = Table::unnamed(2, (0..900).map(|i| f64::from(i).sin()).collect()).unwrap();
    let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(30)).unwrap().plan);
    let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
    let mixture = fit(&sketch, &FitParams::new(Task::Gmm, 2)).unwrap();
    let asked = |model, device, rows| Predictor::new(model).on_device(device, rows, 1).unwrap().1;
    if Device::count() > 0 {
        let why_not = asked(&mixture, DeviceChoice::Cuda(None), None).unwrap();
        assert!(why_not.contains("k-means and k-medians"), "{why_not}");
    }
    // A GPU that does not exist is an error, even if it would have nothing to do.
    assert!(Predictor::new(&mixture).on_device(DeviceChoice::Cuda(Some(99)), None, 1).is_err());
    assert_eq!(asked(&mixture, DeviceChoice::Auto, Some(1 << 40)), None);
    let centres = fit(&sketch, &FitParams::new(Task::Kmeans, 2)).unwrap();
    assert_eq!(asked(&centres, DeviceChoice::Auto, Some(100)), None);
    assert_eq!(asked(&centres, DeviceChoice::Cpu, None), None);
}

/// The second reading of D² sampling draws the same rows.
#[test]
fn plans_are_the_same() {
    if !has_device() {
        return;
    }
    for (d, m, weighted) in [(3, 40, false), (20, 200, true), (1, 7, false)] {
        let mut s = Stream(d as u64);
        let mut table = Table::unnamed(d, (0..6000 * d).map(|_| s.normal()).collect()).unwrap();
        let mut params = PlanParams::default()
            .landmarks(m)
            .sampling(Sampling::Dsquared)
            .sample_rows(SampleRows::Count(1000))
            .witnesses(0);
        if weighted {
            table = table.with_weights((0..6000).map(|_| s.below(9) as f64).collect()).unwrap();
            params = params.weights("w", 1.0);
        }
        let by = |device| plan_for(&table, params.clone().threads(2).device(device)).unwrap().plan;
        assert!(by(DeviceChoice::Cuda(None)).to_bytes() == by(DeviceChoice::Cpu).to_bytes());
    }
}

/// Rows of the host and of GPU memory give the bytes of the vector engine; invalid rows are
/// skipped.
fn have_the_same_bytes(plan: &Arc<Plan>, values: Vec<f64>, by_column: bool) {
    let d = plan.dims();
    let what = format!("{} × {d}", values.len() / d);
    let table = Table::unnamed(d, values.clone()).unwrap();
    let case = Case { what, table, plan: plan.clone(), values, weights: vec![], plain: true };
    let expected = sketch(&case, EngineKind::Cpu, 1).to_bytes();
    assert!(sketch(&case, EngineKind::Cuda(None), 1).to_bytes() == expected, "{}", case.what);
    let got = on_device(&case, Element::F64, by_column);
    assert!(got.to_bytes() == expected, "{} on the device", case.what);
}

/// Moments of numbers near the largest and smallest of four 8-bit digits: alone, among larger ones
/// and among invalid ones. Columns fill a tile of the matrix or more, and there are enough rows for
/// a sum of digits to be folded on the way.
#[test]
fn numbers_of_any_size_have_the_same_moments() {
    if !has_device() {
        return;
    }
    const FEW: [f64; 6] =
        [2139062143.0, -2155905152.0, 2139062142.5, -2155905152.5, 0.0, -8421505.0];
    const MORE: [f64; 6] =
        [2139062144.0, -2155905153.0, 2139062143.5, -1e12, 17592186044416.0, -17592186044416.0];
    const INVALID: [f64; 4] = [f64::NAN, f64::INFINITY, 17592186044417.0, -1e30];
    // A processor of the emulated GPU folds after 512,000 rows.
    for (d, n) in [(1, 1_100_000), (1, 5000), (7, 3000), (23, 3000), (24, 3000), (41, 2000)] {
        let mut s = Stream(d as u64);
        let table = Table::unnamed(d, (0..300 * d).map(|_| s.normal()).collect()).unwrap();
        let collect = Collect { kernel: false, cells: false, moments: true };
        let params = PlanParams::default().landmarks(1).witnesses(0).collect(collect);
        let plan = Arc::new(plan_for(&table, params).unwrap().plan);
        let frame = &plan.frame;
        let value = |s: &mut Stream, i: usize, j: usize| {
            let units = match i % 1000 {
                _ if n > 1_000_000 => FEW[1],
                500..700 if s.below(20) == 0 => MORE[s.below(6)],
                900..1000 if s.below(2000) == 0 => INVALID[s.below(4)],
                _ => FEW[s.below(6)],
            };
            frame.centre[j] + frame.scale[j] * units * 2f64.powi(frame.exponent[j])
        };
        let values: Vec<f64> = (0..n * d).map(|at| value(&mut s, at / d, at % d)).collect();
        have_the_same_bytes(&plan, values, d == 7);
    }
}

/// Cells of numbers near the largest and smallest that are squared many at a time: alone, among
/// larger ones and among invalid ones. There are few or many rows, so that cells end anywhere.
#[test]
fn numbers_of_any_size_have_the_same_cells() {
    if !has_device() {
        return;
    }
    const FEW: [f64; 6] = [268435455.0, -268435456.0, 268435454.5, -268435456.5, 0.0, 1.0];
    // Numbers up to half a unit beyond the limit are rounded to it, and valid.
    const MORE: [f64; 6] =
        [268435456.0, -268435457.0, 268435455.5, 1e12, 17592186044416.25, -17592186044416.25];
    const INVALID: [f64; 3] = [f64::NAN, 17592186044417.0, -17592186044416.75];
    for (d, n, m) in [(1, 9000, 1), (3, 4000, 5), (20, 3000, 2), (300, 700, 3)] {
        let mut s = Stream((d + n) as u64);
        let table = Table::unnamed(d, (0..300 * d).map(|_| s.normal()).collect()).unwrap();
        let collect = Collect { kernel: d == 3, cells: true, moments: false };
        let params = PlanParams::default().landmarks(m).witnesses(0).collect(collect);
        let plan = Arc::new(plan_for(&table, params).unwrap().plan);
        let frame = &plan.frame;
        let value = |s: &mut Stream, i: usize, j: usize| {
            let units = match i % 600 {
                300..400 if s.below(20) == 0 => MORE[s.below(6)],
                500..503 if j == 0 => INVALID[i % 3],
                _ => FEW[s.below(6)],
            };
            frame.centre[j] + frame.scale[j] * units * 2f64.powi(frame.exponent[j])
        };
        let values: Vec<f64> = (0..n * d).map(|at| value(&mut s, at / d, at % d)).collect();
        have_the_same_bytes(&plan, values, d == 3);
    }
}

/// Rows of several windows in one call, and calls with fewer and with more rows one after another.
#[test]
fn windows_of_rows_have_the_same_bytes() {
    if !has_device() {
        return;
    }
    let (d, n) = (700, 15_000);
    let mut s = Stream(7);
    let values: Vec<f64> = (0..n * d).map(|_| s.normal()).collect();
    let table = Table::unnamed(d, values.clone()).unwrap();
    let collect = Collect { kernel: false, cells: true, moments: false };
    let params = PlanParams::default().landmarks(3).witnesses(0).collect(collect);
    let plan = Arc::new(plan_for(&table, params).unwrap().plan);
    let expected = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap().to_bytes();
    let device = Device::open(0).unwrap();
    let mut sums = Accumulator::new(plan, EngineKind::Cuda(Some(0)));
    let mut rest = &values[..];
    for rows in [5000, 100, 9000, 900] {
        let (some, others) = rest.split_at(rows * d);
        let bytes = bytes_of(some, Element::F64);
        let there = OwnedRows::copy(&device, &bytes, Element::F64, d).unwrap();
        sums.push_on_device(&there.get(), &[], 1, Invalid::Refuse).unwrap();
        rest = others;
    }
    assert_eq!(sums.freeze().unwrap().to_bytes(), expected);
}

/// The same row again and again, and a single row with a stride beyond the range of kernels.
#[test]
fn rows_may_lie_at_any_distance() {
    if !has_device() {
        return;
    }
    let values = [1.0, -2.0, 0.5];
    let table = Table::unnamed(3, values.repeat(500)).unwrap();
    let mut other = values.repeat(500);
    other[0] = 4.0;
    let plan = plan_for(&Table::unnamed(3, other).unwrap(), PlanParams::default().landmarks(2));
    let plan = Arc::new(plan.unwrap().plan);
    let device = Device::open(0).unwrap();
    let copies = |times| {
        let bytes = bytes_of(&values.repeat(times), Element::F64);
        OwnedRows::copy(&device, &bytes, Element::F64, 3).unwrap()
    };
    let expected = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap().to_bytes();
    for (rows, stride) in [(500, 3), (500, 0), (1, 1 << 40)] {
        let there = copies(rows);
        let mut sums = Accumulator::new(plan.clone(), EngineKind::Cuda(Some(0)));
        for _ in 0..500 / rows {
            // SAFETY: a single row has no next one, and all others are within the copied values.
            let rows = unsafe { there.get().with_strides(stride, 1) };
            sums.push_on_device(&rows, &[], 1, Invalid::Refuse).unwrap();
        }
        assert!(sums.freeze().unwrap().to_bytes() == expected, "{rows} rows, {stride} apart");
    }
}

/// More cells than can be counted in shared memory.
#[test]
fn many_cells_have_the_same_bytes() {
    if !has_device() {
        return;
    }
    let values: Vec<f64> = (0..9000).map(|i| (f64::from(i) * 0.37).sin() * f64::from(i)).collect();
    let table = Table::unnamed(1, values).unwrap();
    let collect = Collect { kernel: false, cells: true, moments: true };
    let params = PlanParams::default().landmarks(8300).sampling(Sampling::Uniform);
    let plan = Arc::new(plan_for(&table, params.collect(collect)).unwrap().plan);
    let by = |engine| {
        let params = SketchParams::default().engine(engine);
        Sketch::of(&plan, &table, params, &()).unwrap().to_bytes()
    };
    assert_eq!(by(EngineKind::Cuda(None)), by(EngineKind::Cpu));
}
