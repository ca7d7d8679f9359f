//! Mixed tables: categories, and rows with missing values.

mod common;

use common::*;
use nysketch::metrics::Risks;
use nysketch::planning::Missing;
use nysketch::predictor::{Detail, ModelRows};
use nysketch::recipe::View;
use nysketch::rows::read_in_order;
use nysketch::*;
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
        let level =
            |s: &mut Stream, usual: usize| if s.below(10) < 9 { usual } else { s.below(LEVELS) };
        first.push(format!("a{}", level(&mut s, c % 2)));
        second.push(format!("b{}", level(&mut s, c)));
    }
    Rows { values, first, second, made_by }
}

fn table(rows: &Rows) -> Table {
    let first: Vec<Option<&str>> = rows.first.iter().map(|t| Some(t.as_str())).collect();
    let second: Vec<Option<&str>> = rows.second.iter().map(|t| Some(t.as_str())).collect();
    let table = Table::new(vec!["x".into(), "y".into()], rows.values.clone()).unwrap();
    table.with_category("first", &first).unwrap().with_category("second", &second).unwrap()
}

/// Returns the table in the form that a model reads.
fn seen(model: &Model, table: &Table) -> (Vec<f64>, Vec<u32>) {
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
    let Planned { plan, report } = plan_for(&table, PlanParams::default()).unwrap();
    assert!(report.notes.iter().any(|n| n.contains("standard deviations")), "{:?}", report.notes);
    assert_eq!(plan.categories().len(), 2);
    assert_eq!(plan.categories()[0].levels.len(), LEVELS);
    let sketch = sketch(&Arc::new(plan), &table);
    for task in [Task::Kmeans, Task::Gmm] {
        let model = fit(&sketch, &FitParams::new(task, K)).unwrap();
        let (values, codes) = seen(&model, &table);
        let all = ModelRows { values: &values, codes: &codes };
        let said = Predictor::new(&model).predict(all, Detail::Density);
        let ari = agreement(&said.label, &rows.made_by);
        // Each category is informative in 92 of 100 rows; both together nearly always are.
        assert!(ari > 0.85, "{task} {ari}");
        // The fast predictor agrees with the reference, and the file contains the whole model.
        let again = Model::from_json(&model.to_json()).unwrap();
        assert_eq!(again, model);
        for i in (0..6000).step_by(97) {
            let row = all.some(i..i + 1, 2);
            let slow = again.predict_row(row.values, row.codes);
            assert_eq!(slow.label, said.label[i] as usize);
            assert!((slow.squared_distance - said.squared_distance[i]).abs() < 1e-12);
        }
        // The risk estimated from the sketch is that of the rows.
        let mut risks = Risks::default();
        risks.add(&Predictor::new(&model), all, &[]);
        let (_, risk) = risks.evaluation(&model).risk(&model);
        let told = decoder::estimated_risk(&sketch, &model).unwrap();
        assert!((told / risk - 1.0).abs() < 0.05, "{task} {told} {risk}");
        let profile = model.profile.as_ref().unwrap();
        let shares = sketch.level_rows()[1][0] as f64 / 6000.0;
        assert!((profile.levels[LEVELS + 2] - shares).abs() < 1e-12);
    }
}

#[test]
fn a_mixture_is_as_likely_as_the_one_that_made_the_rows() {
    let rows = rows(8000, 5);
    let table = table(&rows);
    let plan = Arc::new(plan_for(&table, PlanParams::default()).unwrap().plan);
    let model = fit(&sketch(&plan, &table), &FitParams::new(Task::Gmm, K)).unwrap();
    let (values, codes) = seen(&model, &table);
    let said = Predictor::new(&model)
        .predict(ModelRows { values: &values, codes: &codes }, Detail::Density);
    let mean = said.log_density.iter().sum::<f64>() / 8000.0;
    let normal = |x: f64, m: f64, s: f64| {
        -0.5 * ((x - m) / s).powi(2) - (s * std::f64::consts::TAU.sqrt()).ln()
    };
    let level = |text: &str, usual: usize| {
        let l: usize = text[1..].parse().unwrap();
        (if l == usual { 0.9 } else { 0.0 } + 0.1 / LEVELS as f64).ln()
    };
    let truth: f64 = (0..8000)
        .map(|i| {
            let [x, y] = [rows.values[2 * i], rows.values[2 * i + 1]];
            let density = |c: usize| {
                (normal(x, 8.0 * (c / 2) as f64, 1.0)
                    + normal(y, 100.0, 30.0)
                    + level(&rows.first[i], c % 2)
                    + level(&rows.second[i], c))
                .exp()
            };
            ((0..K).map(density).sum::<f64>() / K as f64).ln()
        })
        .sum::<f64>()
        / 8000.0;
    // Some 50 parameters fitted to 8,000 rows gain 0.003; cells and starts lose less than this
    // tolerance.
    assert!((mean - truth).abs() < 0.02, "{mean} {truth}");
}

#[test]
fn levels_that_the_plan_does_not_know_are_others() {
    let rows = rows(2000, 7);
    let plan = Arc::new(plan_for(&table(&rows), PlanParams::default()).unwrap().plan);
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

/// With values missing at random, the clusters are those of the complete rows, and better than
/// after mean imputation.
#[test]
fn rows_with_holes_count_by_what_they_have() {
    let d = 6;
    let complete = Mixture::new(d, 5, 2.0, 9).unwrap().rows(0, 6000).values;
    let mut s = Stream(11);
    let holed: Vec<f64> =
        complete.iter().map(|x| if s.below(10) < 3 { f64::NAN } else { *x }).collect();
    let names: Vec<String> = (0..d).map(|j| format!("c{j}")).collect();
    let table = |values: &[f64]| Table::new(names.clone(), values.to_vec()).unwrap();
    let risk = |values: &[f64]| {
        let plan = Arc::new(plan_for(&table(values), PlanParams::default()).unwrap().plan);
        let sketch = sketch(&plan, &table(values));
        let model = fit(&sketch, &FitParams::new(Task::Kmeans, 5)).unwrap();
        let mut risks = Risks::default();
        risks.add(&Predictor::new(&model), &complete, &[]);
        (risks.evaluation(&model).mse, sketch, model)
    };
    let (best, ..) = risk(&complete);
    let (partial, sketch, model) = risk(&holed);
    let column = |j: usize| holed.iter().skip(j).step_by(d).filter(|x| !x.is_nan());
    let means: Vec<f64> =
        (0..d).map(|j| column(j).sum::<f64>() / column(j).count() as f64).collect();
    let imputed: Vec<f64> =
        holed.iter().enumerate().map(|(i, x)| if x.is_nan() { means[i % d] } else { *x }).collect();
    let (imputed, ..) = risk(&imputed);
    assert!(partial < 1.1 * best && partial < imputed, "{partial} {best} {imputed}");
    // Sums contain the number of missing values of each column.
    let missing = sketch.missing_shares();
    for (j, share) in missing.iter().enumerate() {
        let lacking = 6000 - column(j).count();
        // Rows with only one of six values, about one in a hundred, are skipped.
        assert!((share - lacking as f64 / 6000.0).abs() < 0.02, "{j}");
        assert!((sketch.column_moments().unwrap()[j].0 - means[j]).abs() < 0.02);
    }
    assert!(sketch.complete_rows() < sketch.rows());
    // A row with missing values is labelled by its present values.
    let row = [complete[0], f64::NAN, complete[2], complete[3], f64::NAN, complete[5]];
    let said = Predictor::new(&model).predict(&row, Detail::All);
    assert_eq!(said.label[0] as usize, model.predict_row(&row, &[]).label);
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
    let holed = Table::unnamed(2, vec![1.0, f64::NAN, f64::NAN, f64::NAN, 3.0, 4.0]).unwrap();
    let plan =
        |missing| Arc::new(plan_for(&clean, PlanParams::default().missing(missing)).unwrap().plan);
    let of = |plan: &Arc<Plan>| Sketch::of(plan, &holed, SketchParams::default(), &());
    let error = of(&plan(Missing::Auto)).unwrap_err().to_string();
    assert!(error.contains("row 1, column 'c1'"), "{error}");
    let sketch = of(&plan(Missing::Partial)).unwrap();
    assert_eq!((sketch.rows(), sketch.skipped(), sketch.complete_rows()), (2, 1, 1));
    assert_eq!(Sketch::from_bytes(&sketch.to_bytes()).unwrap(), sketch);
}

#[test]
fn logs_weights_and_scales_are_undone_where_values_are_read() {
    let mut s = Stream(4);
    let values: Vec<f64> = (0..3000).flat_map(|_| [s.normal().exp() * 1e4, s.normal()]).collect();
    let table = Table::new(vec!["amount".into(), "x".into()], values.clone()).unwrap();
    let params = PlanParams::default().log(["amount"]).scale(Scale::Robust).column_weight("x", 4.0);
    let plan = Arc::new(plan_for(&table, params).unwrap().plan);
    assert_eq!(plan.recipe.numbers[0].step, Step::Log);
    // The quartiles of a Gaussian are 1.35 deviations apart; a weight of 4 halves the scale.
    assert!((plan.frame.scale[0] - 1.0).abs() < 0.1 && (plan.frame.scale[1] - 0.5).abs() < 0.05);
    let sketch = sketch(&plan, &table);
    let expected = values.iter().step_by(2).map(|x| x.ln_1p()).sum::<f64>() / 3000.0;
    assert!((sketch.column_moments().unwrap()[0].0 - expected).abs() < 1e-6);
}
