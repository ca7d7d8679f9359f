//! Retained rows: how they are drawn, their effects, and how sketches contain them.

mod common;

use common::*;
use nysketch::{Collect, Kernel, Plan, PlanParams, Points, SampleRows, Table, plan_for};
use std::sync::Arc;

fn numbers(n: usize) -> Table {
    let mut s = Stream(5);
    Table::unnamed(2, (0..2 * n).map(|_| s.normal()).collect()).unwrap()
}

fn plan(table: &Table, params: PlanParams) -> Arc<Plan> {
    Arc::new(plan_for(table, params).unwrap().0)
}

fn count(plan: &Plan) -> usize {
    plan.witness_rows().map_or(0, Points::len)
}

#[test]
fn their_number_changes_nothing_else_of_a_plan() {
    let table = numbers(30_000);
    let params = PlanParams::default().landmarks(30).seed(4);
    let without = plan(&table, params.clone().witnesses(0));
    assert_eq!((count(&without), &without.witnesses), (0, &None));
    for (params, n) in [(params.clone(), 20_000), (params.clone().witnesses(7), 7)] {
        let with = plan(&table, params);
        assert_eq!(count(&with), n);
        let mut others = Plan::clone(&with);
        others.witnesses = None;
        assert_eq!(others, *without);
    }
    // Version 1, as for plans that never had retained rows.
    assert!(String::from_utf8_lossy(&without.to_bytes()).contains("\\\"format\\\":1"));
}

#[test]
fn they_are_rows_of_the_table_in_its_order() {
    let table = Table::unnamed(1, (0..3000).map(f64::from).collect()).unwrap();
    let params = PlanParams::default().landmarks(5).sample_rows(SampleRows::Count(500));
    let plan = plan(&table, params.clone().witnesses(200));
    let rows: Vec<f64> =
        plan.witness_rows().unwrap().rows().map(|z| plan.frame.widen(z)[0]).collect();
    assert!(rows.len() == 200 && rows.is_sorted_by(|a, b| a < b));
    assert!(rows.iter().all(|x| x.fract() == 0.0 && (0.0..3000.0).contains(x)));
    // Uniform: the mean of 200 rows is 1500 ± 61; five standard errors.
    let mean = rows.iter().sum::<f64>() / 200.0;
    assert!((mean - 1500.0).abs() < 305.0, "{mean}");
    for threads in [2, 5] {
        let table = table.clone().with_part_rows(71);
        let again = plan_for(&table, params.clone().witnesses(200).threads(threads)).unwrap().0;
        assert_eq!(again.to_bytes(), plan.to_bytes());
    }
}

#[test]
fn a_small_table_is_kept_whole_and_rows_without_weight_are_left_out() {
    let table = numbers(300);
    assert_eq!(count(&plan(&table, PlanParams::default().landmarks(10))), 300);
    let weights = (0..300).map(|i| f64::from(i % 3)).collect();
    let table = table.with_weights(weights).unwrap();
    let params = PlanParams::default().landmarks(10).weights("w", 1.0);
    assert_eq!(count(&plan(&table, params)), 200);
    let equal = Table::unnamed(1, vec![7.0; 40]).unwrap();
    assert_eq!(count(&plan(&equal, PlanParams::default().witnesses(9))), 9);
}

#[test]
fn where_there_are_none_by_default_asking_for_some_is_refused() {
    let table = numbers(100);
    let kernel = Collect { kernel: true, cells: false, moments: false };
    for (params, why) in [
        (PlanParams::default().fourier(5), "where cells are not kept"),
        (PlanParams::default().collect(kernel), "where cells are not kept"),
        (PlanParams::default().kernel(Kernel::Laplace), "where cells are not kept"),
        (PlanParams::default().landmarks_from("l", vec![vec![0.0; 2]]), "`landmarks_from`"),
    ] {
        assert_eq!(count(&plan(&table, params.clone())), 0);
        assert_eq!(count(&plan(&table, params.clone().witnesses(0))), 0);
        let error = params.witnesses(1).check().unwrap_err().to_string();
        assert!(error.contains("`witnesses`") && error.contains(why), "{error}");
    }
    let few = PlanParams::default().landmarks(5).sample_rows(SampleRows::Count(50));
    assert_eq!(count(&plan(&table, few.clone())), 50);
    let error = few.witnesses(51).check().unwrap_err().to_string();
    assert!(error.contains("`sample_rows` must be at least the 51 witnesses"), "{error}");
}

#[test]
fn merging_keeps_the_rows_that_either_has() {
    let table = numbers(200);
    let plan = plan(&table, PlanParams::default().landmarks(5).witnesses(20));
    let whole = sketch(&plan, &table);
    let light = whole.clone().without_witnesses();
    assert!(light.plan().lacks_witnesses() && !whole.plan().lacks_witnesses());
    let mut both = whole.clone();
    both.merge(&light).unwrap();
    let mut other = light.clone();
    other.merge(&whole).unwrap();
    assert_eq!(both.to_bytes(), other.to_bytes());
    assert_eq!(count(both.plan()), 20);
    other.subtract(&light).unwrap();
    assert_eq!(other.to_bytes(), whole.to_bytes());
    let mut without = light.clone();
    without.merge(&light).unwrap();
    assert!(without.plan().lacks_witnesses());
    assert_eq!(without, both);
}

#[test]
fn rows_of_another_plan_are_refused() {
    let table = numbers(200);
    let params = PlanParams::default().landmarks(5).witnesses(20);
    let (one, two) = (plan(&table, params.clone()), plan(&table, params.witnesses(21)));
    let light = sketch(&one, &table).without_witnesses();
    let error = light.with_witnesses_of(&two).unwrap_err().to_string();
    assert!(error.contains("another plan") && error.contains(&two.fingerprint()), "{error}");
}
