//! Mixtures with every kind of covariance, from sketches with retained rows.

mod common;

use common::*;
use nysketch::predictor::Detail;
use nysketch::{
    Context, CovarianceKind, FitParams, Model, Named, PlanParams, Predictor, SampleRows, Shape,
    Sketch, SketchParams, Table, Task, fit, plan_for,
};
use std::sync::Arc;

const D: usize = 3;

/// Returns rows of three clusters with correlated columns, of different shape, and a rare one.
fn rows(n: usize, seed: u64) -> Vec<f64> {
    let mut s = Stream(seed);
    let mut values = Vec::with_capacity(n * D);
    for i in 0..n {
        let [a, b, c] = [s.normal(), s.normal(), s.normal()];
        values.extend(match i % 100 {
            0 => [40.0 + a, 40.0 + b, c],
            1..=33 => [a, a + 0.2 * b, 3.0 + c],
            34..=66 => [6.0 + a, 2.0 - a + 0.3 * b, c + a],
            _ => [0.3 * a, 7.0 + b, b + 0.1 * c],
        });
    }
    values
}

fn sketch_of(values: &[f64], params: PlanParams) -> Sketch {
    let table = Table::unnamed(D, values.to_vec()).unwrap();
    let plan = Arc::new(plan_for(&table, params).unwrap().plan);
    Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap()
}

fn densities(model: &Model, values: &[f64]) -> Vec<f64> {
    Predictor::new(model).predict(values, Detail::Density).log_density
}

fn likelihood(model: &Model, values: &[f64]) -> f64 {
    densities(model, values).iter().sum::<f64>() / (values.len() / D) as f64
}

fn gmm(k: usize) -> FitParams {
    FitParams::new(Task::Gmm, k).threads(2)
}

/// With 3,000 retained rows of 40,000, the likelihood is about that of EM on all rows: full
/// covariances of 4 components in 3 columns have 39 parameters, each of which costs 1/(2·3000)
/// nats.
#[test]
fn as_good_as_em_on_all_rows() {
    let values = rows(40_000, 1);
    let all =
        sketch_of(&values, PlanParams::default().sample_rows(SampleRows::All).witnesses(40_000));
    let some = sketch_of(&values, PlanParams::default().witnesses(3000));
    for kind in CovarianceKind::choices().map(|c| c.value) {
        let best = likelihood(&fit(&all, &gmm(4).covariance(kind)).unwrap(), &values);
        let model = fit(&some, &gmm(4).covariance(kind)).unwrap();
        let Shape::Mixture { covariance, .. } = &model.shape else { unreachable!("a mixture") };
        let found = likelihood(&model, &values);
        assert!(*covariance == kind && found > best - 0.03, "{kind}: {found} {best}");
        let estimate = model.report.likelihood.unwrap();
        assert!(
            estimate.low < estimate.high && (estimate.mean - found).abs() < 0.1,
            "{kind}: {estimate:?} {found}"
        );
    }
}

/// The model does not depend on threads. If the retained rows were removed from the sketch, only
/// cells are decoded.
#[test]
fn models_depend_on_the_witnesses_alone() {
    let values = rows(8000, 2);
    let sketch = sketch_of(&values, PlanParams::default().witnesses(1000));
    let one = fit(&sketch, &gmm(4).threads(1)).unwrap();
    assert_eq!(one.shape, fit(&sketch, &gmm(4).threads(3)).unwrap().shape);
    let Shape::Mixture { covariance, .. } = &one.shape else { unreachable!("a mixture") };
    assert_eq!(*covariance, CovarianceKind::Full);
    let light = sketch.clone().without_witnesses();
    let model = fit(&light, &gmm(4)).unwrap();
    let Shape::Mixture { covariance, .. } = &model.shape else { unreachable!("a mixture") };
    assert_eq!((*covariance, model.report.likelihood), (CovarianceKind::Diag, None));
    // Full covariances can be requested, with a note.
    let model = fit(&light, &gmm(4).covariance(CovarianceKind::Full)).unwrap();
    assert!(model.report.notes[0].contains("without retained rows"), "{:?}", model.report.notes);
    // Too few rows for this number of parameters.
    let model = fit(&sketch, &gmm(40)).unwrap();
    assert!(model.report.notes[0].contains("diagonal covariances"), "{:?}", model.report.notes);
}

/// The likelihood increases with the number of components, up to the error of its estimate from
/// halves of the retained rows, and the right number is found.
#[test]
fn the_curve_rises_and_the_right_k_has_the_least_bic() {
    let values = rows(30_000, 3);
    let sketch = sketch_of(&values, PlanParams::default().witnesses(4000));
    let curve = Context::new(&sketch).curve(&gmm(1), 1, 7).unwrap();
    assert_eq!((curve.best().k, curve.clear), (4, true));
    for pair in curve.points.windows(2) {
        assert!(pair[1].risk < pair[0].risk + 0.02, "{} {}", pair[0].risk, pair[1].risk);
        assert!(pair[1].icl.unwrap() >= pair[1].bic.unwrap());
    }
}

/// Columns with repeated values: components do not collapse below the minimum variance, and the
/// report counts them.
#[test]
fn repeated_values_do_not_make_densities_infinite() {
    let mut s = Stream(4);
    let mut values = Vec::new();
    for _ in 0..6000 {
        let a = s.normal();
        values.extend([a, (3.0 * a).round(), if s.normal() > 1.0 { 5.0 } else { 0.0 }]);
    }
    let held_out: Vec<f64> = values.split_off(4000 * D);
    let sketch = sketch_of(&values, PlanParams::default());
    let found: Vec<f64> = (0..4)
        .map(|seed| {
            let model = fit(&sketch, &gmm(8).seed(seed)).unwrap();
            assert!(model.report.collapsed > 0, "{:?}", model.report);
            likelihood(&model, &held_out)
        })
        .collect();
    // A hundredth of the deviation in each of two columns adds about 2 ln 100 = 9 nats.
    assert!(found.iter().all(|l| l.is_finite() && (-5.0..15.0).contains(l)), "{found:?}");
    // A high floor allows no narrow components.
    let wide = fit(&sketch, &gmm(8).min_variance(0.5)).unwrap();
    assert!(likelihood(&wide, &held_out) < found[0]);
}

/// One row in a hundred is below the threshold for one in a hundred, up to the error of the
/// estimate from the retained rows.
#[test]
fn thresholds_flag_the_share_asked_for() {
    let values = rows(30_000, 5);
    let sketch = sketch_of(&values, PlanParams::default().witnesses(5000));
    let model = fit(&sketch, &gmm(4)).unwrap();
    let read = Model::from_json(&model.to_json()).unwrap();
    assert_eq!(read, model);
    let known = read.densities.unwrap();
    let densities = densities(&model, &values);
    for share in [0.01, 0.037, 0.2] {
        let threshold = known.threshold(share).unwrap();
        let below = densities.iter().filter(|l| **l < threshold).count() as f64;
        let below = below / densities.len() as f64;
        assert!((below - share).abs() < 1.5 * known.error(share), "{share}: {below}");
    }
}
