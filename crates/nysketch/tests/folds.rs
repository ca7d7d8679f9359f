//! Folds are exact sums like the whole: any split, order and number of threads gives the same
//! bytes, and the sum of all folds is the sketch without folds.

mod common;

use common::*;
use nysketch::planning::Missing;
use nysketch::{
    Context, Error, FitParams, FoldRule, Invalid, Mixture, Model, Plan, PlanParams, Sampling,
    Sketch, SketchParams, Table, Task, plan_for,
};
use proptest::prelude::*;
use std::sync::Arc;

const DIMS: usize = 3;

#[derive(Debug, Clone)]
struct Case {
    seed: u64,
    rows: usize,
    parts: usize,
    threads: usize,
    folds: u32,
    by_key: bool,
    /// Weights, categories and missing values at once.
    mixed: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let both = (any::<bool>(), any::<bool>());
    (any::<u64>(), 4usize..400, 1usize..9, 1usize..5, 2u32..20, both).prop_map(
        |(seed, rows, parts, threads, folds, (by_key, mixed))| Case {
            seed,
            rows,
            parts,
            threads,
            folds,
            by_key,
            mixed,
        },
    )
}

struct Row {
    values: [f64; DIMS],
    weight: f64,
    key: Option<String>,
    level: Option<String>,
}

/// Returns row `i` of a case; there are few distinct values, so that some rows are equal.
fn row(case: &Case, i: usize) -> Row {
    let mut s = Stream(case.seed ^ (i as u64).wrapping_mul(0x9e37_79b9));
    let mut values = [0.0; DIMS].map(|_| (s.below(12) as f64) / 4.0 - 1.0);
    if case.mixed && i > 0 && s.below(3) == 0 {
        values[s.below(DIMS)] = f64::NAN;
    }
    let key = s.below(9);
    let level = s.below(4);
    let key = (key > 0).then(|| format!("user {key}"));
    let level = (level > 0).then(|| format!("level {level}"));
    Row { values, weight: 1.0 + s.below(4) as f64, key, level }
}

fn table(case: &Case, picked: &[usize]) -> Table {
    let rows: Vec<_> = picked.iter().map(|i| row(case, *i)).collect();
    let values = rows.iter().flat_map(|r| r.values).collect();
    let mut table = Table::unnamed(DIMS, values).unwrap().with_part_rows(37);
    if case.mixed {
        table = table.with_weights(rows.iter().map(|r| r.weight).collect()).unwrap();
        let levels: Vec<Option<&str>> = rows.iter().map(|r| r.level.as_deref()).collect();
        table = table.with_category("kind", &levels).unwrap();
    }
    table.with_keys(rows.iter().map(|r| r.key.as_deref())).unwrap()
}

fn params(case: &Case) -> PlanParams {
    let params = nystrom(Some((case.rows / 4).clamp(1, 20)), Sampling::Uniform).witnesses(30);
    if case.mixed { params.weights("w", 1.0).missing(Missing::Partial) } else { params }
}

fn rule(case: &Case) -> FoldRule {
    if case.by_key {
        FoldRule::by_key(case.folds, "user").unwrap()
    } else {
        FoldRule::by_content(case.folds).unwrap()
    }
}

fn folded(plan: &Arc<Plan>, rule: &FoldRule, table: &Table, threads: usize) -> Sketch {
    let params = SketchParams::default().threads(threads);
    Sketch::of_folds(plan, rule, table, params, &()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn folds_add_up_whatever_the_split(case in case()) {
        let all: Vec<usize> = (0..case.rows).collect();
        let whole_table = table(&case, &all);
        let plan = Arc::new(plan_for(&whole_table, params(&case)).unwrap().plan);
        let rule = rule(&case);
        let whole = folded(&plan, &rule, &whole_table, case.threads);
        let bytes = whole.to_bytes();
        prop_assert_eq!(&Sketch::from_bytes(&bytes).unwrap(), &whole);
        prop_assert_eq!(whole.plan().fingerprint(), plan.fingerprint());
        let plain = sketch(&plan, &whole_table);
        prop_assert_eq!(whole.without_folds().to_bytes(), plain.to_bytes());

        // Each fold is a sketch of its rows; their sum in any order has the bytes of the whole
        // sketch.
        let mut s = Stream(case.seed ^ 1);
        let mut order: Vec<usize> = (0..case.folds as usize).collect();
        (0..order.len()).for_each(|i| order.swap(i, s.below(i + 1)));
        let mut total = Sketch::empty(plan.clone());
        for fold in order {
            let mut rest = whole.without_fold(fold);
            rest.merge(&whole.fold(fold)).unwrap();
            prop_assert_eq!(&rest, &plain);
            total.merge(&whole.fold(fold)).unwrap();
        }
        prop_assert_eq!(total.to_bytes(), plain.to_bytes());

        // Rows are assigned to parts at random, and the parts are merged in random order.
        let mut parts: Vec<Vec<usize>> = vec![Vec::new(); case.parts];
        all.iter().rev().for_each(|i| parts[s.below(case.parts)].push(*i));
        let mut sketches: Vec<Sketch> =
            parts.iter().map(|part| folded(&plan, &rule, &table(&case, part), 1)).collect();
        let mut total = Sketch::empty(plan.clone());
        while !sketches.is_empty() {
            let next = sketches.swap_remove(s.below(sketches.len()));
            total.merge(&Sketch::from_bytes(&next.to_bytes()).unwrap()).unwrap();
        }
        prop_assert_eq!(&total.to_bytes(), &bytes);
        let (cut, rest) = all.split_at(case.rows / 2);
        total.subtract(&folded(&plan, &rule, &table(&case, cut), 2)).unwrap();
        let alone = folded(&plan, &rule, &table(&case, rest), 1);
        prop_assert_eq!(total.to_bytes(), alone.to_bytes());
    }

    /// Rows that are equal, or have the same key, are in the same fold.
    #[test]
    fn what_belongs_together_falls_together(case in case()) {
        let all: Vec<usize> = (0..case.rows).collect();
        let plan = Arc::new(plan_for(&table(&case, &all), params(&case)).unwrap().plan);
        // What determines the fold of each row, and its fold.
        let mut found: Vec<(String, usize)> = Vec::new();
        for i in 0..case.rows.min(40) {
            let one = folded(&plan, &rule(&case), &table(&case, &[i]), 1);
            let folds = one.folds().unwrap();
            let Some(fold) = (0..folds.len()).find(|f| folds.rows(*f) > 0) else { continue };
            let Row { values, key, level, .. } = row(&case, i);
            let content = format!("{values:?} {:?}", level.filter(|_| case.mixed));
            found.push((if case.by_key { key.unwrap_or(content) } else { content }, fold));
        }
        for (a, fold) in &found {
            for (b, other) in &found {
                prop_assert!(a != b || fold == other, "{} {} {}", a, fold, other);
            }
        }
    }
}

fn numbers(n: usize) -> Table {
    Table::unnamed(1, (0..n).map(|i| (i as f64 * 0.37).sin()).collect()).unwrap()
}

#[test]
fn sketches_of_different_folds_do_not_mix_and_empty_ones_do() {
    let users = (0..300).map(|i| Some((i % 50).to_string()));
    let table = numbers(300).with_keys(users).unwrap();
    let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(10)).unwrap().plan);
    let rules = [
        FoldRule::by_content(4).unwrap(),
        FoldRule::by_content(5).unwrap(),
        FoldRule::by_key(4, "user").unwrap(),
        FoldRule::by_key(4, "other").unwrap(),
    ];
    let mut all: Vec<Sketch> = rules.iter().map(|rule| folded(&plan, rule, &table, 1)).collect();
    all.push(sketch(&plan, &table));
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate().filter(|(j, _)| *j != i) {
            let mut merged = a.clone();
            let error = merged.merge(b).unwrap_err();
            assert!(matches!(error, Error::FoldMismatch { .. }), "{i} {j}: {error}");
            assert!(merged.clone().subtract(b).is_err());
            assert_eq!(&merged, a, "a refused merge changes nothing");
        }
        // The neutral element has no folds, or those of any other sketch.
        for empty in [
            Sketch::empty(plan.clone()),
            Sketch::empty_folds(plan.clone(), rules[0].clone()).unwrap(),
        ] {
            let (mut left, mut right) = (empty.clone(), a.clone());
            left.merge(a).unwrap();
            right.merge(&empty).unwrap();
            assert_eq!((&left, &right), (a, a));
            right.subtract(&empty).unwrap();
            assert_eq!(&right, a);
        }
    }
    let text = all[0].clone().merge(&all[4]).unwrap_err().to_string();
    assert!(text.contains("with 4 folds by content and one without folds"), "{text}");
    assert!(text.contains("drop_folds"), "{text}");
}

#[test]
fn rules_that_a_plan_does_not_go_with_are_refused() {
    let table = numbers(100).with_keys((0..100).map(|i| Some(i.to_string()))).unwrap();
    let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(10)).unwrap().plan);
    for count in [0, 1, 65, 1000] {
        let error = FoldRule::by_content(count).unwrap_err().to_string();
        assert!(error.contains("between 2 and 64"), "{error}");
    }
    let measured = FoldRule::by_key(4, "c0").unwrap();
    let error = Sketch::empty_folds(plan.clone(), measured).unwrap_err().to_string();
    assert!(error.contains("does not measure"), "{error}");
    let bare = Arc::new(plan.without_witness_rows());
    let rule = FoldRule::by_key(4, "user").unwrap();
    let error = Sketch::empty_folds(bare.clone(), rule.clone()).unwrap_err().to_string();
    assert!(error.contains("retained rows are not available"), "{error}");
    assert!(Sketch::empty_folds(bare, FoldRule::by_content(4).unwrap()).is_ok());
    // A source without keys cannot be split by key.
    let params = SketchParams::default();
    let error = Sketch::of_folds(&plan, &rule, &numbers(100), params, &()).unwrap_err();
    assert!(error.to_string().contains("one key for each"), "{error}");
}

#[test]
fn the_error_is_that_of_the_first_bad_row_also_with_folds() {
    let mut values: Vec<f64> = (0..2000).map(f64::from).collect();
    let good = Table::unnamed(1, values.clone()).unwrap();
    let plan = Arc::new(plan_for(&good, PlanParams::default().landmarks(5)).unwrap().plan);
    values.iter_mut().skip(777).for_each(|x| *x = f64::INFINITY);
    let bad = Table::unnamed(1, values).unwrap().with_part_rows(500);
    let rule = FoldRule::by_content(7).unwrap();
    for threads in [1, 3] {
        let params = SketchParams::default().threads(threads);
        let error = Sketch::of_folds(&plan, &rule, &bad, params, &()).unwrap_err().to_string();
        assert!(error.contains("row 778,"), "{threads} threads: {error}");
        let skip = params.invalid(Invalid::Skip);
        let skipped = Sketch::of_folds(&plan, &rule, &bad, skip, &()).unwrap();
        assert_eq!((skipped.rows(), skipped.skipped()), (777, 1223));
    }
}

fn two_clusters() -> Sketch {
    let rows = Mixture::new(2, 2, 6.0, 3).unwrap().rows(0, 1200).values;
    let table = Table::unnamed(2, rows).unwrap();
    let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(30)).unwrap().plan);
    folded(&plan, &FoldRule::by_content(8).unwrap(), &table, 1)
}

#[test]
fn intervals_do_not_depend_on_threads_and_are_kept_in_the_file() {
    let sketch = two_clusters();
    let context = Context::new(&sketch);
    for (task, k) in [(Task::Kmeans, 2), (Task::Kmedians, 2), (Task::Gmm, 2), (Task::Pca, 2)] {
        let params = FitParams::new(task, k);
        let model = context.fit(&params).unwrap();
        let [one, three] = [1, 3].map(|threads| {
            let params = params.clone().threads(threads);
            context.with_intervals(model.clone(), &params, 0.9).unwrap().intervals
        });
        assert_eq!(one, three, "{task}");
        let sure = context.with_intervals(model.clone(), &params, 0.9).unwrap();
        assert_eq!(Model::from_json(&sure.to_json()).unwrap(), sure);
        // With another number of folds, an invalid confidence level, or intervals of other
        // clusters.
        for (from, to) in [
            ("\"folds\": 8", "\"folds\": 1"),
            ("\"confidence\": 0.9", "\"confidence\": 1.0"),
            ("\"stability\": [", "\"stability\": [2.0,"),
            (
                "\"explained_variance_ratio\": [\n      [",
                "\"explained_variance_ratio\": [\n      [7,",
            ),
        ] {
            let json = sure.to_json().replacen(from, to, 2);
            if json != sure.to_json() {
                assert!(Model::from_json(&json).is_err(), "{task}: {to}");
            }
        }
    }
}

/// Two well-separated clusters have the same held-out and in-sample risk, and one more component
/// does not help.
#[test]
fn cross_validation_finds_two_components() {
    let sketch = two_clusters();
    let params = FitParams::new(Task::Gmm, 1).restarts(4);
    let found = Context::new(&sketch).cross_validate(&params, 1, 4).unwrap();
    assert_eq!(found.points[found.within_error].k, 2);
    let error = Context::new(&sketch.without_folds()).cross_validate(&params, 1, 4).unwrap_err();
    assert!(matches!(error, Error::NoFolds { .. }), "{error}");
}
