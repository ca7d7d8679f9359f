//! Mixed tables: categories, and rows with missing values.

mod common;

use common::*;
use nysketch::metrics::Risks;
use nysketch::planning::Missing;
use nysketch::predictor::{Detail, ModelRows};
use nysketch::recipe::View;
use nysketch::rows::read_in_order;
use nysketch::{
    FitParams, Mixture, Model, PlanParams, Predictor, Scale, Sketch, SketchParams, Step, Table,
    Task, decoder, fit, metrics, plan_for,
};
use std::sync::Arc;

const K: usize = 4;
const LEVELS: usize = 5;

/// Rows of a mixture of K Gaussians in two numeric columns times multinomials in two categories,
/// with the component of each row.
struct Rows {
    values: Vec<f64>,
    first: Vec<String>,
    second: Vec<String>,
    made_by: Vec<usize>,
}

/// Returns rows in which clusters 0 and 1, and 2 and 3, have the same numeric distribution: only
/// the categories differ.
fn rows(n: usize, seed: u64) -> Rows {
    let mut s = Stream(seed);
    let (mut values, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
    let mut made_by = Vec::new();
    for _ in 0..n {
        let c = s.below(K);
        made_by.push(c);
        values.extend([8.0 * (c / 2) as f64 + s.normal(), 100.0 + 30.0 * s.normal()]);
        first.push(format!("a{}", level(&mut s, c % 2)));
        second.push(format!("b{}", level(&mut s, c)));
    }
    Rows { values, first, second, made_by }
}

/// Returns the usual level nine times in ten.
fn level(s: &mut Stream, usual: usize) -> usize {
    if s.below(10) < 9 { usual } else { s.below(LEVELS) }
}

fn table(rows: &Rows) -> Table {
    let first: Vec<Option<&str>> = rows.first.iter().map(|t| Some(t.as_str())).collect();
    let second: Vec<Option<&str>> = rows.second.iter().map(|t| Some(t.as_str())).collect();
    let table = Table::new(vec!["x".into(), "y".into()], rows.values.clone()).unwrap();
    table.with_category("first", &first).unwrap().with_category("second", &second).unwrap()
}

/// Returns the table in the form that a model reads.
fn prepared(model: &Model, table: &Table) -> (Vec<f64>, Vec<u32>) {
    let view = View::new(&model.recipe, &model.columns, table).unwrap();
    let (mut values, mut codes) = (Vec::new(), Vec::new());
    read_in_order(&view, &(), |block| {
        values.extend_from_slice(&block.values);
        codes.extend_from_slice(&block.codes);
        Ok(())
    })
    .unwrap();
    (values, codes)
}

fn agreement(labels: &[u32], made_by: &[usize]) -> f64 {
    let mut table = metrics::Contingency::new();
    for (label, c) in labels.iter().zip(made_by) {
        *table.entry((Arc::from(c.to_string()), *label as usize)).or_default() += 1;
    }
    metrics::adjusted_rand(&table)
}

#[test]
fn clusters_that_only_categories_tell_apart_are_found() {
    let rows = rows(6000, 3);
    let table = table(&rows);
    let (plan, report) = plan_for(&table, PlanParams::default()).unwrap();
    assert!(report.notes.iter().any(|n| n.contains("standard deviations")), "{:?}", report.notes);
    assert_eq!(plan.categories().len(), 2);
    assert_eq!(plan.categories()[0].levels.len(), LEVELS);
    let sketch = sketch(&Arc::new(plan), &table);
    for task in [Task::Kmeans, Task::Gmm] {
        let model = fit(&sketch, &FitParams::new(task, K)).unwrap();
        let (values, codes) = prepared(&model, &table);
        let all = ModelRows { values: &values, codes: &codes };
        let predicted = Predictor::new(&model).predict(all, Detail::Density);
        let ari = agreement(&predicted.label, &rows.made_by);
        // Each category is informative in 92 of 100 rows; both together nearly always are.
        assert!(ari > 0.85, "{task} {ari}");
        // The fast predictor agrees with the reference, and the file contains the whole model.
        let again = Model::from_json(&model.to_json()).unwrap();
        assert_eq!(again, model);
        for i in (0..6000).step_by(97) {
            let row = all.some(i..i + 1, 2);
            let slow = again.predict_row(row.values, row.codes);
            assert_eq!(slow.label, predicted.label[i] as usize);
            assert!((slow.squared_distance - predicted.squared_distance[i]).abs() < 1e-12);
        }
        // The risk estimated from the sketch is that of the rows.
        let mut risks = Risks::default();
        risks.add(&Predictor::new(&model), all, &[]);
        let (_, risk) = risks.evaluation(&model).risk(&model);
        let estimate = decoder::estimated_risk(&sketch, &model).unwrap();
        assert!((estimate / risk - 1.0).abs() < 0.05, "{task} {estimate} {risk}");
        let profile = model.profile.as_ref().unwrap();
        let shares = sketch.level_rows()[1][0] as f64 / 6000.0;
        assert!((profile.levels[LEVELS + 2] - shares).abs() < 1e-12);
    }
}

/// Returns the logarithm of the density of row `i` in component `c`.
fn log_density(rows: &Rows, i: usize, c: usize) -> f64 {
    let [x, y] = [rows.values[2 * i], rows.values[2 * i + 1]];
    log_normal(x, 8.0 * (c / 2) as f64, 1.0)
        + log_normal(y, 100.0, 30.0)
        + log_share(&rows.first[i], c % 2)
        + log_share(&rows.second[i], c)
}

fn log_normal(x: f64, mean: f64, deviation: f64) -> f64 {
    let z = (x - mean) / deviation;
    -0.5 * z.powi(2) - (deviation * std::f64::consts::TAU.sqrt()).ln()
}

/// Returns the logarithm of the share of a level, in a component with this usual level.
fn log_share(text: &str, usual: usize) -> f64 {
    let level: usize = text[1..].parse().unwrap();
    (if level == usual { 0.9 } else { 0.0 } + 0.1 / LEVELS as f64).ln()
}

#[test]
fn a_mixture_is_as_likely_as_the_one_that_made_the_rows() {
    let rows = rows(8000, 5);
    let table = table(&rows);
    let plan = Arc::new(plan_for(&table, PlanParams::default()).unwrap().0);
    let model = fit(&sketch(&plan, &table), &FitParams::new(Task::Gmm, K)).unwrap();
    let (values, codes) = prepared(&model, &table);
    let predicted = Predictor::new(&model)
        .predict(ModelRows { values: &values, codes: &codes }, Detail::Density);
    let mean = predicted.log_density.iter().sum::<f64>() / 8000.0;
    let mut truth = 0.0;
    for i in 0..8000 {
        let density: f64 = (0..K).map(|c| log_density(&rows, i, c).exp()).sum();
        truth += (density / K as f64).ln() / 8000.0;
    }
    // Some 50 parameters fitted to 8,000 rows gain 0.003; cells and starts lose less than this
    // tolerance.
    assert!((mean - truth).abs() < 0.02, "{mean} {truth}");
}

#[test]
fn levels_that_the_plan_does_not_know_are_others() {
    let rows = rows(2000, 7);
    let plan = Arc::new(plan_for(&table(&rows), PlanParams::default()).unwrap().0);
    let texts: Vec<Option<&str>> = vec![Some("a0"), Some("unheard of"), None, Some("a1")];
    let new =
        Table::new(vec!["y".into(), "x".into()], vec![100.0, 0.0, 90.0, 8.0, 80.0, 1.0, 70.0, 9.0])
            .unwrap()
            .with_category("second", &[Some("b1"); 4])
            .unwrap()
            .with_category("first", &texts)
            .unwrap();
    let sketch = sketch(&plan, &new);
    let first = &plan.categories()[0];
    let counts = &sketch.level_rows()[0];
    assert_eq!((counts[first.other() as usize], counts[first.missing() as usize]), (1, 1));
    assert_eq!(counts.iter().sum::<u64>(), 4);
    // Columns are matched by name, in any order.
    assert!((sketch.column_moments().unwrap()[0].0 - 4.5).abs() < 1e-6);
}

/// A sketch of a table with default parameters, and a model of five clusters.
struct Learned {
    sketch: Sketch,
    model: Model,
}

fn learn(values: &[f64], d: usize) -> Learned {
    let table = Table::unnamed(d, values.to_vec()).unwrap();
    let plan = Arc::new(plan_for(&table, PlanParams::default()).unwrap().0);
    let sketch = sketch(&plan, &table);
    let model = fit(&sketch, &FitParams::new(Task::Kmeans, 5)).unwrap();
    Learned { sketch, model }
}

fn risk(model: &Model, rows: &[f64]) -> f64 {
    let mut risks = Risks::default();
    risks.add(&Predictor::new(model), rows, &[]);
    risks.evaluation(model).mse
}

/// With values missing at random, the clusters are those of the complete rows, and better than
/// after mean imputation.
#[test]
fn rows_with_missing_values_count_by_their_present_values() {
    let d = 6;
    let complete = Mixture::new(d, 5, 2.0, 9).unwrap().rows(0, 6000).values;
    let mut s = Stream(11);
    let incomplete: Vec<f64> =
        complete.iter().map(|x| if s.below(10) < 3 { f64::NAN } else { *x }).collect();
    let (mut means, mut counts) = (vec![0.0; d], vec![0; d]);
    for (i, x) in incomplete.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
        means[i % d] += x;
        counts[i % d] += 1;
    }
    means.iter_mut().zip(&counts).for_each(|(sum, count)| *sum /= f64::from(*count));
    let imputed = incomplete.iter().enumerate();
    let imputed: Vec<f64> =
        imputed.map(|(i, x)| if x.is_nan() { means[i % d] } else { *x }).collect();
    let best = learn(&complete, d);
    let Learned { sketch, model } = learn(&incomplete, d);
    let partial = risk(&model, &complete);
    let [best, imputed] = [best, learn(&imputed, d)].map(|learned| risk(&learned.model, &complete));
    assert!(partial < 1.1 * best && partial < imputed, "{partial} {best} {imputed}");
    // Sums contain the number of missing values of each column.
    let missing = sketch.missing_shares();
    for (j, share) in missing.iter().enumerate() {
        let missing = f64::from(6000 - counts[j]);
        // Rows with only one of six values, about one in a hundred, are skipped.
        assert!((share - missing / 6000.0).abs() < 0.02, "{j}");
        assert!((sketch.column_moments().unwrap()[j].0 - means[j]).abs() < 0.02);
    }
    assert!(sketch.complete_rows() < sketch.rows());
    // A row with missing values is labelled by its present values.
    let row = [complete[0], f64::NAN, complete[2], complete[3], f64::NAN, complete[5]];
    let predicted = Predictor::new(&model).predict(&row, Detail::All);
    assert_eq!(predicted.label[0] as usize, model.predict_row(&row, &[]).label);
    assert_eq!(model.unusable(&[f64::NAN; 6], &[]), Some(0), "nothing is known of it");
    let mixture = fit(&sketch, &FitParams::new(Task::Gmm, 5)).unwrap();
    let marginal = mixture.predict_row(&row, &[]).log_density.unwrap();
    assert!(marginal.is_finite());
    assert_eq!(Model::from_json(&mixture.to_json()).unwrap(), mixture);
}

/// A plan without missing values refuses them; a plan with missing values keeps rows in which some
/// are missing.
#[test]
fn missing_values_are_allowed_or_not() {
    let clean = Table::unnamed(2, (0..200).map(|i| f64::from(i * 7 % 31)).collect()).unwrap();
    let values = vec![1.0, f64::NAN, f64::NAN, f64::NAN, 3.0, 4.0];
    let incomplete = Table::unnamed(2, values).unwrap();
    let [refused, sketch] = [Missing::Auto, Missing::Partial].map(|missing| {
        let plan = plan_for(&clean, PlanParams::default().missing(missing)).unwrap().0;
        Sketch::of(&Arc::new(plan), &incomplete, SketchParams::default(), &())
    });
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("row 1, column 'c1'"), "{error}");
    let sketch = sketch.unwrap();
    assert_eq!((sketch.rows(), sketch.skipped(), sketch.complete_rows()), (2, 1, 1));
    assert_eq!(Sketch::from_bytes(&sketch.to_bytes()).unwrap(), sketch);
}

#[test]
fn logs_weights_and_scales_are_undone_where_values_are_read() {
    let mut s = Stream(4);
    let values: Vec<f64> = (0..3000).flat_map(|_| [s.normal().exp() * 1e4, s.normal()]).collect();
    let table = Table::new(vec!["amount".into(), "x".into()], values.clone()).unwrap();
    let params = PlanParams::default().log(["amount"]).scale(Scale::Robust).column_weight("x", 4.0);
    let plan = Arc::new(plan_for(&table, params).unwrap().0);
    assert_eq!(plan.recipe.numbers[0].step, Step::Log);
    // The quartiles of a Gaussian are 1.35 deviations apart; a weight of 4 halves the scale.
    assert!((plan.frame.scale[0] - 1.0).abs() < 0.1 && (plan.frame.scale[1] - 0.5).abs() < 0.05);
    let sketch = sketch(&plan, &table);
    let expected = values.iter().step_by(2).map(|x| x.ln_1p()).sum::<f64>() / 3000.0;
    assert!((sketch.column_moments().unwrap()[0].0 - expected).abs() < 1e-6);
}
