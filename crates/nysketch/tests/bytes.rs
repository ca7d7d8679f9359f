//! A sketch is an exact sum: any split, order, number of threads, block size and instruction set
//! gives the same bytes, and subtraction gives the bytes of a sketch that never included the rows.

mod common;

use common::*;
use nysketch::planning::Missing;
use nysketch::{
    Collect, EngineKind, Error, Invalid, Mixture, Plan, PlanParams, Sampling, Sketch, SketchParams,
    Table, plan_for, rows,
};
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Debug, Clone)]
struct Case {
    seed: u64,
    dims: usize,
    rows: usize,
    parts: usize,
    threads: usize,
    part_rows: usize,
    kind: usize,
}

fn case() -> impl Strategy<Value = Case> {
    (any::<u64>(), 1usize..8, 1usize..700, 1usize..=50, 1usize..=8, 1usize..300, 0usize..7)
        .prop_map(|(seed, dims, rows, parts, threads, part_rows, kind)| Case {
            seed,
            dims,
            rows,
            parts,
            threads,
            part_rows,
            kind,
        })
}

impl Case {
    fn weighted(&self) -> bool {
        matches!(self.kind, 1 | 6)
    }

    fn categories(&self) -> bool {
        matches!(self.kind, 4 | 6)
    }

    fn has_missing(&self) -> bool {
        matches!(self.kind, 5 | 6)
    }
}

/// Rows of numbers, with weights and two categories that a case may use.
struct Rows {
    values: Vec<f64>,
    weights: Vec<f64>,
    levels: [Vec<Option<String>>; 2],
}

fn rows_of(case: &Case) -> Rows {
    let mut s = Stream(case.seed);
    let mut values: Vec<f64> =
        (0..case.rows * case.dims).map(|_| 100.0 + 3.0 * s.normal()).collect();
    let mut weights: Vec<f64> = (0..case.rows).map(|_| s.below(5) as f64).collect();
    weights[0] = 1.0;
    let mut levels = [3, 20].map(|count| {
        let codes = (0..case.rows).map(|_| s.below(count + 1));
        codes.map(|code| (code > 0).then(|| format!("level {code}"))).collect::<Vec<_>>()
    });
    for level in &mut levels {
        level[0].get_or_insert("level 1".into());
    }
    if case.has_missing() {
        // From a few missing values to rows with too few present ones; the first row is complete.
        let share = 1 + s.below(8);
        for x in values.iter_mut().skip(case.dims) {
            if s.below(10) < share {
                // The bits of a missing number have no influence.
                *x = if s.below(2) == 0 { f64::NAN } else { -f64::NAN };
            }
        }
    }
    Rows { values, weights, levels }
}

/// Nyström with all sums, with weights, Fourier, cells without kernel sums, categories, missing
/// values, and everything with weights.
fn params_of(case: &Case) -> PlanParams {
    let params = match case.kind {
        2 => PlanParams::default().fourier(13),
        _ => nystrom(Some((case.rows / 3).clamp(1, 40)), Sampling::Dsquared),
    };
    let mut params = params.seed(case.seed);
    if case.kind == 3 {
        params.collect = Some(Collect { kernel: false, cells: true, moments: false });
    }
    if case.weighted() {
        params = params.weights("w", 1.0);
    }
    if case.has_missing() {
        params = params.missing(Missing::Partial);
    }
    params
}

/// Returns some of the rows, in this order.
fn table(case: &Case, rows: &Rows, picked: &[usize]) -> Table {
    let d = case.dims;
    let values = picked.iter().flat_map(|i| &rows.values[i * d..(i + 1) * d]).copied().collect();
    let mut table = Table::unnamed(d, values).unwrap().with_part_rows(case.part_rows);
    if case.weighted() {
        table = table.with_weights(picked.iter().map(|i| rows.weights[*i]).collect()).unwrap();
    }
    if case.categories() {
        for (name, texts) in ["first", "second"].into_iter().zip(&rows.levels) {
            let texts: Vec<Option<&str>> = picked.iter().map(|i| texts[*i].as_deref()).collect();
            table = table.with_category(name, &texts).unwrap();
        }
    }
    table
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(168))]

    #[test]
    fn merged_parts_have_the_bytes_of_the_whole(case in case()) {
        let rows = rows_of(&case);
        let all: Vec<usize> = (0..case.rows).collect();
        let whole_table = table(&case, &rows, &all);
        let plan = Arc::new(plan_for(&whole_table, params_of(&case)).unwrap().0);
        prop_assert_eq!(plan.is_partial(), case.has_missing());
        prop_assert_eq!(!plan.categories().is_empty(), case.categories());
        let whole = sketch(&plan, &whole_table);
        let bytes = whole.to_bytes();

        // Every engine, on several threads.
        for engine in [EngineKind::Cpu, EngineKind::Scalar] {
            let params = SketchParams::default().threads(case.threads).engine(engine);
            let again = Sketch::of(&plan, &whole_table, params, &()).unwrap();
            prop_assert_eq!(&again.to_bytes(), &bytes);
        }

        // Rows assigned to parts at random, parts merged in random order.
        let mut s = Stream(case.seed ^ 1);
        let mut parts: Vec<Vec<usize>> = vec![Vec::new(); case.parts];
        for i in all.iter().rev() {
            parts[s.below(case.parts)].push(*i);
        }
        let mut sketches: Vec<Sketch> =
            parts.iter().map(|part| sketch(&plan, &table(&case, &rows, part))).collect();
        let mut total = Sketch::empty(plan.clone());
        while !sketches.is_empty() {
            let next = sketches.swap_remove(s.below(sketches.len()));
            total.merge(&Sketch::from_bytes(&next.to_bytes()).unwrap()).unwrap();
        }
        prop_assert_eq!(&total.to_bytes(), &bytes);

        // Subtracting parts leaves the bytes of the rest.
        let (cut, rest) = all.split_at(case.rows / 2);
        total.subtract(&sketch(&plan, &table(&case, &rows, cut))).unwrap();
        prop_assert_eq!(total.to_bytes(), sketch(&plan, &table(&case, &rows, rest)).to_bytes());
    }
}

#[test]
fn a_row_of_weight_three_is_the_row_three_times() {
    let values = vec![1.0, 2.0, 5.0, 1.0, -3.0, 4.0];
    let weighted = Table::unnamed(2, values).unwrap().with_weights(vec![3.0, 1.0, 0.0]).unwrap();
    let params = PlanParams::default().weights("w", 1.0);
    let plan = Arc::new(plan_for(&weighted, params).unwrap().0);
    let values = vec![1.0, 2.0, 1.0, 2.0, 5.0, 1.0, 1.0, 2.0];
    let repeated = Table::unnamed(2, values).unwrap().with_weights(vec![1.0; 4]).unwrap();
    assert_eq!(sketch(&plan, &weighted).to_bytes(), sketch(&plan, &repeated).to_bytes());
    assert_eq!(sketch(&plan, &weighted).rows(), 4);
}

#[test]
fn fractional_weights_are_rounded_alike_and_bad_ones_are_named() {
    let rows = Table::unnamed(1, vec![1.0, 2.0, 3.0]).unwrap();
    let weighted = rows.clone().with_weights(vec![0.1, 0.25, 0.35]).unwrap();
    // Weights are rounded to the nearest multiple of the unit, ties to even, independently of each
    // other: 0.124 and 0.126 in units of 0.25 are 0 and 1.
    let params = PlanParams::default().weights("w", 0.25);
    let plan = Arc::new(plan_for(&weighted, params).unwrap().0);
    let whole = rows.clone().with_weights(vec![0.124, 0.126, 0.625]).unwrap();
    let mut parts = Sketch::empty(plan.clone());
    for (x, w) in [(3.0, 0.5), (1.0, 0.0), (2.0, 0.25)] {
        let row = Table::unnamed(1, vec![x]).unwrap().with_weights(vec![w]).unwrap();
        parts.merge(&sketch(&plan, &row)).unwrap();
    }
    assert_eq!(sketch(&plan, &whole).to_bytes(), parts.to_bytes());
    for (bad, unit) in [
        (-1.0, Some(1.0)),
        (f64::NAN, Some(1.0)),
        (1e10, Some(1.0)),
        (-1.0, None),
        (f64::NAN, None),
    ] {
        let table = rows.clone().with_weights(vec![1.0, bad, 1.0]).unwrap();
        let params = PlanParams::default().weights("w", unit);
        let error = plan_for(&table, params).unwrap_err().to_string();
        assert!(error.contains("row 2, column 'w'"), "{error}");
    }
}

#[test]
fn different_plans_do_not_mix() {
    let table = Table::unnamed(1, (0..50).map(f64::from).collect()).unwrap();
    let [a, b] = [1, 2].map(|seed| {
        Arc::new(plan_for(&table, nystrom(Some(5), Sampling::Uniform).seed(seed)).unwrap().0)
    });
    let mut first = sketch(&a, &table);
    for error in [
        first.merge(&sketch(&b, &table)).unwrap_err(),
        first.subtract(&sketch(&b, &table)).unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.contains(&a.fingerprint()) && text.contains(&b.fingerprint()), "{text}");
    }
    // The same plan read from a file is the same plan.
    let again = Arc::new(Plan::from_bytes(&a.to_bytes()).unwrap());
    first.merge(&sketch(&again, &table)).unwrap();
    assert_eq!(first.rows(), 100);
}

#[test]
fn taking_out_rows_that_are_not_there_is_refused() {
    let all = Table::unnamed(1, (0..50).map(f64::from).collect()).unwrap();
    let plan = Arc::new(plan_for(&all, PlanParams::default()).unwrap().0);
    let few = Table::unnamed(1, vec![3.0, 4.0]).unwrap();
    let mut sketch_few = sketch(&plan, &few);
    let before = sketch_few.clone();
    // More rows than the sketch contains.
    assert!(matches!(sketch_few.subtract(&sketch(&plan, &all)), Err(Error::Impossible { .. })));
    // The same number of rows, but different ones.
    let others = Table::unnamed(1, vec![40.0, 41.0]).unwrap();
    let error = sketch_few.subtract(&sketch(&plan, &others)).unwrap_err().to_string();
    assert!(error.contains("cannot subtract"), "{error}");
    assert_eq!(sketch_few, before, "a refused subtraction changes nothing");
    // Subtracting everything leaves the neutral element.
    sketch_few.subtract(&before).unwrap();
    assert_eq!(sketch_few, Sketch::empty(plan));
}

#[test]
fn skipped_rows_are_counted_and_leave_no_other_trace() {
    let clean = Table::unnamed(2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let dirty =
        Table::unnamed(2, vec![1.0, 2.0, f64::NAN, 0.0, 3.0, 4.0, 1e300, 1.0, 5.0, 6.0]).unwrap();
    let plan = Arc::new(plan_for(&clean, PlanParams::default()).unwrap().0);
    let params = SketchParams::default().invalid(Invalid::Skip);
    let skipped = Sketch::of(&plan, &dirty, params, &()).unwrap();
    assert_eq!((skipped.rows(), skipped.skipped()), (3, 2));
    let mut expected = sketch(&plan, &clean);
    assert_ne!(expected.to_bytes(), skipped.to_bytes(), "the count is in the file");
    let only_bad = Table::unnamed(2, vec![f64::NAN; 4]).unwrap();
    expected.merge(&Sketch::of(&plan, &only_bad, params, &()).unwrap()).unwrap();
    assert_eq!(expected.to_bytes(), skipped.to_bytes());
    let error = Sketch::of(&plan, &dirty, SketchParams::default(), &()).unwrap_err().to_string();
    assert!(error.contains("row 2, column 'c0'"), "{error}");
}

#[test]
fn the_error_is_that_of_the_first_bad_row_for_any_number_of_threads() {
    let mut values: Vec<f64> = (0..20_000).map(f64::from).collect();
    let good = Table::unnamed(1, values.clone()).unwrap();
    let plan = Arc::new(plan_for(&good, nystrom(Some(3), Sampling::Uniform)).unwrap().0);
    for i in (7_777..20_000).step_by(100) {
        values[i] = f64::INFINITY;
    }
    let bad = Table::unnamed(1, values).unwrap().with_part_rows(50);
    for threads in 1..=8 {
        let params = SketchParams::default().threads(threads);
        let error = Sketch::of(&plan, &bad, params, &()).unwrap_err().to_string();
        assert!(error.contains("row 7778,"), "{threads} threads: {error}");
    }
}

/// Returns rows of the largest weight.
fn heavy(rows: usize) -> Table {
    let values = (0..rows).map(|i| (i % 3) as f64 * 1e3).collect();
    Table::unnamed(1, values).unwrap().with_weights(vec![f64::from(u32::MAX); rows]).unwrap()
}

#[test]
fn heavy_weights_are_exact_up_to_the_limit_and_refused_beyond() {
    let params = PlanParams::default().weights("w", 1.0);
    let plan = Arc::new(plan_for(&heavy(3), params).unwrap().0);
    let full = sketch(&plan, &heavy(64));
    assert_eq!(full.rows(), 64 * u64::from(u32::MAX));
    assert_eq!(Sketch::from_bytes(&full.to_bytes()).unwrap(), full);
    let too_many = Sketch::of(&plan, &heavy(65), SketchParams::default(), &());
    assert!(matches!(too_many, Err(Error::TooManyRows { .. })));
    let mut sum = full.clone();
    assert!(matches!(sum.merge(&full), Err(Error::TooManyRows { .. })));
    assert_eq!(sum, full, "a refused merge changes nothing");
}

fn sketch_of(plan: &Arc<Plan>, rows: &[f64]) -> Sketch {
    sketch(plan, &Table::unnamed(3, rows.to_vec()).unwrap())
}

/// Subtracting rows that were never added is refused if the squares of a cell become too small for
/// its sums. A few rows among many may go unnoticed, so the promise is that rows that were added
/// are removed exactly.
#[test]
fn subtracting_rows_that_were_never_there() {
    let mixture = Mixture::new(3, 4, 2.0, 1).unwrap();
    let mut refused = [0; 3];
    for seed in 0..20 {
        let rows = mixture.rows(seed, 3000).values;
        let params = PlanParams::default().landmarks(50);
        let plan = plan_for(&Table::unnamed(3, rows.clone()).unwrap(), params).unwrap().0;
        let plan = Arc::new(plan);
        let mut rest = sketch_of(&plan, &rows);
        rest.subtract(&sketch_of(&plan, &rows[..300 * 3])).unwrap();
        let before = rest.to_bytes();
        assert_eq!(before, sketch_of(&plan, &rows[300 * 3..]).to_bytes());
        for (i, strangers) in [30, 300, 1000].into_iter().enumerate() {
            let strangers = sketch_of(&plan, &mixture.rows(seed + 1000, strangers).values);
            if rest.clone().subtract(&strangers).is_err() {
                refused[i] += 1;
            }
        }
        assert_eq!(rest.to_bytes(), before);
    }
    assert!(refused[0] <= refused[1] && refused[1] <= refused[2], "{refused:?}");
    assert!(refused[2] == 20, "{refused:?}");
}

fn table_of_texts(texts: &[String]) -> Table {
    let numbers = (0..texts.len()).map(|i| (i % 7) as f64).collect();
    let texts: Vec<Option<&str>> = texts.iter().map(|t| Some(t.as_str())).collect();
    Table::unnamed(1, numbers).unwrap().with_category("name", &texts).unwrap()
}

/// A column with more distinct texts than are kept has lost some of them. A plan that needs a lost
/// text is refused, since rows split into parts would have kept it.
#[test]
fn levels_that_a_table_has_lost_are_refused() {
    let rows = rows::MAX_TEXTS + 10;
    let texts: Vec<String> = (0..rows).map(|i| format!("text {i}")).collect();
    let [first, last] = [&texts[..9], &texts[rows - 9..]].map(|texts| {
        let params = nystrom(Some(5), Sampling::Uniform);
        Arc::new(plan_for(&table_of_texts(texts), params).unwrap().0)
    });
    let table = table_of_texts(&texts);
    assert_eq!((first.categories()[0].levels.len(), last.categories()[0].levels.len()), (9, 9));
    let known = sketch(&first, &table).level_rows()[0].clone();
    assert_eq!((known[0], known[9]), (1, rows as u64 - 9));
    let lost = Sketch::of(&last, &table, SketchParams::default(), &()).unwrap_err();
    assert!(lost.to_string().contains("at most 65536 different texts in 'name'"), "{lost}");
}
