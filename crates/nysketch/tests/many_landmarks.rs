//! Plans with many landmarks: their number, the collected sums, the refusals, and independence of
//! threads.

mod common;

use common::*;
use nysketch::drift::{Comparison, DriftParams};
use nysketch::planning::{DEFAULT_SAMPLE_ROWS, SAMPLE_VALUES, default_landmarks};
use nysketch::{Collect, FitParams, Kernel, Model, Plan, PlanParams, Table, Task, fit, plan_for};
use nysketch_core::numeric::points::Points;
use nysketch_core::planning::landmarks::cholesky::{Pivot, pivoted_cholesky};
use nysketch_core::planning::landmarks::leverage;
use nysketch_core::planning::landmarks::leverage::Target;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

fn normal(n: usize, d: usize, seed: u64) -> Table {
    let mut s = Stream(seed);
    Table::unnamed(d, (0..n * d).map(|_| s.normal()).collect()).unwrap()
}

fn count(plan: &Plan) -> usize {
    plan.landmarks().unwrap().len()
}

#[test]
fn the_number_of_landmarks_follows_the_clusters() {
    let table = normal(3000, 2, 1);
    let (plan, report) = plan_for(&table, PlanParams::default().clusters(60)).unwrap();
    assert_eq!(count(&plan), default_landmarks(Some(60)));
    assert!(report.notes.iter().all(|n| !n.contains("clusters")), "{:?}", report.notes);
    let (plan, report) = plan_for(&table, PlanParams::default().clusters(900)).unwrap();
    assert_eq!(count(&plan), 3000, "every row");
    let note = report.notes.iter().find(|n| n.contains("`clusters=900` asks for")).unwrap();
    assert!(note.contains("there are 3000, since there are only 3000 rows"), "{note}");
    // The number that the columns suggest, but at least that of the rule.
    let auto = PlanParams::default().auto_landmarks().clusters(250);
    assert_eq!(count(&plan_for(&table, auto).unwrap().0), default_landmarks(Some(250)));
}

/// More landmarks than kernel matrices allow: only cells are collected, which support learning,
/// comparison and messages.
#[test]
fn what_is_collected_depends_on_size() {
    let table = normal(4300, 1, 2);
    let many = PlanParams::default().landmarks(4100);
    let (plan, report) = plan_for(&table, many.clone()).unwrap();
    assert_eq!(plan.collect.names(), ["cells", "moments"]);
    let note = report.notes.iter().find(|n| n.contains("kernel sums are left out")).unwrap();
    assert!(note.contains("`collect=cells,kernel,moments`"), "{note}");
    let all = Collect::from_names(["cells", "kernel"]).unwrap();
    assert!(plan_for(&table, many.clone().collect(all)).unwrap().0.collect.kernel);
    let laplace = plan_for(&table, many.kernel(Kernel::Laplace)).unwrap().0;
    assert_eq!(laplace.collect.names(), ["kernel", "moments"]);

    let plan = Arc::new(plan);
    let (a, b) = (sketch(&plan, &table), sketch(&plan, &normal(4000, 1, 3)));
    let comparison = Comparison::new(&plan).unwrap();
    let drift = comparison.of(&a, &b, &DriftParams::default().draws(19)).unwrap();
    assert!(drift.p_value.is_some() && drift.columns.len() == 1);
    // A test beyond the limit of work is omitted, and the changes are still reported.
    let drift = comparison.of(&a, &b, &DriftParams::default().draws(20_000)).unwrap();
    assert!(drift.no_test.unwrap().contains("`max_work=") && drift.columns.len() == 1);

    let wide = plan_for(&normal(30, 70, 4), PlanParams::default()).unwrap().1;
    let note = wide.notes.iter().find(|n| n.contains("Σxxᵀ")).unwrap();
    assert!(note.contains("2485 sums (0.0 MB)"), "{note}");
    assert!(note.contains("`collect=cells,kernel,moments`"), "{note}");
}

#[test]
fn fit_says_where_cells_are_few() {
    let table = normal(2000, 2, 5);
    let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(60)).unwrap().0);
    let few = sketch(&plan, &table);
    let [fifty, three] = [50, 3].map(|k| fit(&few, &FitParams::new(Task::Kmeans, k)).unwrap());
    let enough = default_landmarks(Some(50));
    let expected = format!("`clusters=50`, which takes {enough} landmarks");
    let doubts = fifty.report.doubts(50);
    assert!(matches!(&doubts[..], [doubt] if doubt.contains(&expected)), "{doubts:?}");
    assert!(three.report.doubts(3).is_empty());
    let read = Model::from_json(&fifty.to_json()).unwrap();
    assert_eq!(read.report.warnings, doubts);
    // Every row is a landmark: there can be no more.
    let small = normal(100, 2, 6);
    let plan = Arc::new(plan_for(&small, PlanParams::default()).unwrap().0);
    let model = fit(&sketch(&plan, &small), &FitParams::new(Task::Kmeans, 50)).unwrap();
    assert!(model.report.doubts(50).is_empty());
}

#[test]
fn rules_that_take_the_square_of_the_landmarks_refuse_too_many() {
    let points = Points::new(1, (0..30_000).map(|i| i as f32).collect());
    let (kernel, mut rng) = (Kernel::Gaussian.at(1.0), ChaCha8Rng::seed_from_u64(1));
    for pivot in [Pivot::Largest, Pivot::Random] {
        let error = pivoted_cholesky(&points, kernel, 10_000, pivot, &mut rng).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("`sampling=dsquared`") && error.contains("`max_work=2`"), "{error}");
    }
    let error = leverage::bless(&points, kernel, Target::landmarks(10_000), &mut rng).unwrap_err();
    assert!(error.to_string().contains("leverage scores"), "{error}");
}

#[test]
fn the_sample_is_bounded() {
    let default = PlanParams::default();
    for (params, columns, expected) in [
        (default.clone(), 768, DEFAULT_SAMPLE_ROWS),
        // Four for each landmark.
        (default.clone().landmarks(20_000), 20, 80_000),
        (default.clone().landmarks(10_000), 768, SAMPLE_VALUES / 768),
        // Two for each landmark.
        (default.clone().landmarks(20_000), 768, 40_000),
        (default.clone(), 5000, SAMPLE_VALUES / 5000),
        (default.clone().witnesses(9000), 5000, 9000),
        // Cut or refused later.
        (default.clone().landmarks(usize::MAX), 5000, 2 * ((1 << 26) / 5000)),
    ] {
        let rows = params.check().unwrap().survey(columns).sample_rows;
        assert_eq!(rows, expected, "{columns} columns");
    }
}

/// Landmarks drawn in batches, from the sample and from distant rows: the result does not depend on
/// threads or parts, with or without missing values.
#[test]
fn batches_do_not_depend_on_threads() {
    let (n, d) = (24_000, 20);
    let complete: Vec<f64> = normal(n, d, 7).values().to_vec();
    let mut incomplete = complete.clone();
    incomplete.iter_mut().step_by(4001).for_each(|x| *x = f64::NAN);
    for values in [complete, incomplete] {
        let [one, three] = [(1, 5000), (3, 777)].map(|(threads, part_rows)| {
            let table = Table::unnamed(d, values.clone()).unwrap().with_part_rows(part_rows);
            let params = PlanParams::default().landmarks(2600).witnesses(100).threads(threads);
            plan_for(&table, params).unwrap().0
        });
        let unique: std::collections::HashSet<Vec<u32>> = one
            .landmarks()
            .unwrap()
            .rows()
            .map(|z| z.iter().map(|x| x.to_bits()).collect())
            .collect();
        assert_eq!(unique.len(), 2600);
        assert_eq!(one.fingerprint(), three.fingerprint());
    }
}
