//! A GPU gives the integers of the scalar engine, for all kinds of sum and odd shapes.
//!
//! Skipped where there is no GPU. `cargo xtask gpu` runs these tests on one, or on an emulated one. `CASES` and `WORK` make
//! them longer: so many random cases of so many operations each.

mod common;

use common::Stream;
use nysketch::cuda::{Device, Element, OwnedRows};
use nysketch::planning::Missing;
use nysketch::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether there is a GPU; says so where there is none.
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

/// A table with its plan, and how it was made.
struct Case {
    what: String,
    table: Table,
    plan: Arc<Plan>,
    values: Vec<f64>,
    weights: Vec<f64>,
    plain: bool,
}

/// A number from 1 to `most`, small ones as often as large ones.
fn up_to(s: &mut Stream, most: usize) -> usize {
    ((most as f64).powf(s.unit()) as usize).clamp(1, most)
}

fn case(seed: u64, work: u64, element: Element) -> Case {
    let mut s = Stream(seed);
    let d = up_to(&mut s, 1000);
    let m = up_to(&mut s, 5000.min((work as f64 / d as f64).sqrt() as usize).max(1));
    let n = m.max(up_to(&mut s, (work as usize / (m * d)).clamp(1, 200_000)));
    // Half precision ends at 65,504.
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
    let mut table = Table::unnamed(d, values.clone()).unwrap().with_part_rows(1 + s.below(n));
    if kind == "categories" {
        for name in ["first", "second"].into_iter().take(1 + s.below(2)) {
            let texts: Vec<String> = (0..n).map(|_| format!("level {}", s.below(7))).collect();
            let texts: Vec<Option<&str>> =
                texts.iter().map(|t| (t != "level 3").then_some(t.as_str())).collect();
            table = table.with_category(name, &texts).unwrap();
        }
    }
    if weighted {
        table = table.with_weights(weights.clone()).unwrap();
    }
    let what = format!(
        "seed {seed}: {kind}, {n} × {d}, m = {m}, weighted {weighted}, offset {offset}, {} bandwidths",
        ladder.len()
    );
    let plan = plan_for(&table, params).unwrap_or_else(|e| panic!("{what}: {e}")).0;
    let plain = !matches!(kind, "categories");
    Case { what, table, plan: Arc::new(plan), values, weights, plain }
}

fn sketch(case: &Case, engine: EngineKind, threads: usize) -> Sketch {
    let params = SketchParams::default().threads(threads).engine(engine).invalid(Invalid::Skip);
    Sketch::of(&case.plan, &case.table, params, &())
        .unwrap_or_else(|e| panic!("{}: {e}", case.what))
}

/// The values as they are in the memory of a GPU.
fn bytes_of(values: &[f64], element: Element) -> Vec<u8> {
    let bytes = |x: &f64| match element {
        Element::F64 => x.to_le_bytes().to_vec(),
        Element::F32 => (*x as f32).to_le_bytes().to_vec(),
        Element::F16 => half::f16::from_f64(*x).to_le_bytes().to_vec(),
        Element::Bf16 => half::bf16::from_f64(*x).to_le_bytes().to_vec(),
    };
    values.iter().flat_map(bytes).collect()
}

/// Rows of the memory of the GPU, row after row or column after column.
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
        // SAFETY: the copy above has the values of a column side by side.
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
                        let got = on_device(&case, element, seed % 3 == 0);
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

/// An invalid row is refused with the same row and column, and skipped alike.
#[test]
fn invalid_rows_are_refused_alike() {
    if !has_device() {
        return;
    }
    let good: Vec<f64> = (0..3000).map(|i| (f64::from(i) * 0.37).sin()).collect();
    let plan =
        plan_for(&Table::unnamed(3, good.clone()).unwrap(), PlanParams::default().landmarks(9))
            .unwrap()
            .0;
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

/// Folds change hands with every block, and groups too.
#[test]
fn folds_have_the_same_bytes() {
    if !has_device() {
        return;
    }
    let values: Vec<f64> = (0..4000).map(|i| (f64::from(i) * 0.37).sin()).collect();
    let table = Table::unnamed(2, values).unwrap().with_part_rows(300);
    let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(20)).unwrap().0);
    let rule = FoldRule::by_content(5).unwrap();
    let by = |engine| {
        let params = SketchParams::default().threads(2).engine(engine);
        Sketch::of_folds(&plan, &rule, &table, params, &()).unwrap().to_bytes()
    };
    assert_eq!(by(EngineKind::Cuda(None)), by(EngineKind::Cpu));
}
