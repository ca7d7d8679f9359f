//! Models of mixtures with every kind of covariance, and models of mixed tables: valid and damaged
//! files, and draws from the models.

use nysketch::metrics::{Evaluation, Risks};
use nysketch::predictor::{Detail, ModelRows};
use nysketch::{CovarianceKind, Model, Named, Predictor, Shape};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const D: usize = 4;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/models/{name}.json"))
}

/// Reads a model of three components in four columns.
fn golden(name: &str) -> Model {
    Model::from_json(&std::fs::read_to_string(path(name)).unwrap()).unwrap()
}

fn evaluate(model: &Model, values: &[f64]) -> Evaluation {
    let mut risks = Risks::default();
    risks.add(&Predictor::new(model), values, &[]);
    risks.evaluation(model)
}

/// Files with every kind of covariance are read and written unchanged. Log densities of a row were
/// computed with SciPy.
#[test]
fn golden_models_are_read_and_written() {
    let row = [0.5, -0.25, 1.0, 3.0];
    for (name, log_density) in [
        ("full", -15.179_560_002_676_519),
        ("tied", -8.500_755_879_558_568),
        ("diag", -9.511_422_132_739_378),
        ("spherical", -12.003_434_578_419_684),
    ] {
        let text = std::fs::read_to_string(path(name)).unwrap();
        let model = Model::from_json(&text).unwrap();
        assert_eq!(model.to_json(), text, "{name}");
        let Shape::Mixture { covariance, covariances, .. } = &model.shape else {
            panic!("a mixture")
        };
        assert_eq!((covariance.name(), covariances.len()), (name, 3));
        let predicted = model.predict_row(&row, &[]);
        assert_eq!(predicted.label, 2);
        let error = (predicted.log_density.unwrap() - log_density).abs();
        assert!(error < 1e-12, "{name} {predicted:?}");
    }
    // Schema 2 has variances without naming the kind of covariance.
    assert_eq!(golden("schema2"), golden("diag"));
}

/// Returns the error of a golden model whose JSON was changed.
fn broken(name: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut json = serde_json::from_str(&std::fs::read_to_string(path(name)).unwrap()).unwrap();
    change(&mut json);
    match Model::from_json(&json.to_string()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{json}"),
    }
}

fn remove(json: &mut Value, key: &str) {
    json.as_object_mut().unwrap().remove(key).unwrap();
}

#[test]
fn damaged_covariances_are_refused() {
    assert!(broken("full", |j| j["covariances"][1][0][1] = 0.3.into()).contains("not symmetric"));
    assert!(
        broken("full", |j| j["covariances"][1][2][2] = 0.0.into()).contains("positive definite")
    );
    assert!(
        broken("full", |j| j["covariances"][0][2][2] = (-1.0).into()).contains("positive definite")
    );
    assert!(
        broken("full", |j| j["covariances"][0][2][2] = 0.05.into()).contains("positive definite")
    );
    assert!(broken("full", |j| j["covariances"][0][0][0] = 1e300.into()).contains("beyond 1e200"));
    assert!(broken("full", |j| j["covariances"][0][0][0] = "x".into()).contains("not valid"));
    assert!(broken("full", |j| j["covariances"][2] = json!([])).contains("4 values"));
    assert!(broken("full", |j| j["covariances"][2] = json!([[1.0]])).contains("4 values"));
    assert!(broken("full", |j| j["covariances"][2][1] = json!([1.0])).contains("as many rows"));
    assert!(broken("full", |j| j["covariances"] = json!([])).contains("for each component"));
    assert!(broken("full", |j| remove(j, "covariances")).contains("but no covariances"));
    assert!(broken("full", |j| remove(j, "covariance")).contains("but no covariance"));
    assert!(broken("full", |j| j["covariance"] = "diag".into()).contains("but no variances"));
    assert!(broken("full", |j| j["covariance"] = "tied".into()).contains("one covariance"));
    assert!(broken("full", |j| j["covariance"] = "round".into()).contains("not valid"));
    let spherical = broken("spherical", |j| j["variances"][1][0] = 9.0.into());
    assert!(spherical.contains("spherical"));
}

/// Files with categories, steps, vectors and missing values are read and written unchanged.
/// Expected values were computed by hand: log densities of components plus log shares of levels,
/// over the present numbers, and squared distances from centres.
#[test]
fn golden_models_of_mixed_tables_are_read_and_written() {
    for (name, row, codes, label, expected) in [
        ("mixed", [0.5, 0.6, 0.8], [1, 0], 0, -5.224_410_757_003_121),
        ("mixed", [f64::NAN, 0.6, f64::NAN], [3, 2], 1, -7.779_488_498_618_615),
        ("mixed_centres", [0.5, 0.6, 0.8], [1, 0], 0, 2.1875),
        ("mixed_centres", [f64::NAN, 0.6, f64::NAN], [3, 2], 0, 1.54),
    ] {
        let text = std::fs::read_to_string(path(name)).unwrap();
        let model = Model::from_json(&text).unwrap();
        assert_eq!(model.to_json(), text, "{name}");
        let predicted = model.predict_row(&row, &codes);
        assert_eq!(predicted.label, label, "{name} {row:?}");
        let found = predicted.log_density.unwrap_or(predicted.squared_distance);
        assert!((found - expected).abs() < 1e-12, "{name} {row:?}: {found}");
        let rows = ModelRows { values: &row, codes: &codes };
        let fast = Predictor::new(&model).predict(rows, Detail::All);
        assert_eq!(fast.label, [label as u32]);
        assert!((fast.squared_distance[0] - predicted.squared_distance).abs() < 1e-12);
    }
}

#[test]
fn damaged_recipes_and_levels_are_refused() {
    for (at, value, expected) in [
        ("/level_shares/0/0", json!(0.4), "do not add up to one"),
        ("/level_shares/0/0", json!(-0.5), "do not add up to one"),
        ("/level_shares/0/0", json!(1e300), "do not add up to one"),
        ("/level_shares/0/0", json!("half"), "not valid"),
        ("/level_shares/0/0", json!(null), "not valid"),
        ("/level_shares/1", json!([0.5, 0.25, 0.25]), "a share for each level"),
        ("/level_shares/1", json!([1, 0, 0, 0, 1, 0, 0, 0]), "more shares than levels"),
        ("/level_shares", json!([[1, 0, 0, 0, 1, 0, 0]]), "for each cluster"),
        ("/level_shares", json!([]), "for each cluster"),
        ("/categories", json!([]), "for each cluster"),
        ("/categories/0/levels/1", json!("Rome"), "all different"),
        ("/categories/0/levels", json!(["Rome"]), "do not add up to one"),
        ("/categories/0/name", json!("amount"), "all different"),
        ("/categories/0/name", json!("kind"), "different names"),
        ("/categories/0/weight", json!(0), "between 1e-6 and 1e6"),
        ("/categories/0/size", json!(1), "unknown field"),
        ("/steps/0/step", json!("square"), "square"),
        ("/steps", json!([]), "one step for each column"),
        ("/units", json!([[1, 4]]), "follow one another"),
        ("/units", json!([[2, 1]]), "follow one another"),
        ("/units", json!([[1, 3], [0, 2]]), "follow one another"),
        ("/units", json!([[1]]), "not valid"),
        ("/least_present", json!(0), "between 1 and all"),
        ("/least_present", json!(6), "between 1 and all"),
        ("/least_present", json!(-1), "not valid"),
        ("/schema", json!(3), "for each cluster"),
        ("/schema", json!(5), "schema 5"),
        ("/profile/levels", json!([0.5]), "profile"),
        ("/profile/levels/0", json!(1.5), "profile"),
        ("/profile/missing", json!([0.5]), "profile"),
        ("/profile/missing/0", json!(-0.5), "profile"),
        ("/profile/missing_within", json!([[0, 0, 0]]), "profile"),
        ("/profile/missing_within/0", json!([0.5]), "profile"),
    ] {
        let found = broken("mixed", |j| match j.pointer_mut(at) {
            Some(place) => *place = value.clone(),
            None => {
                drop(j["categories"][0].as_object_mut().unwrap().insert("size".into(), json!(1)))
            }
        });
        assert!(found.contains(expected), "{at} {value}: {found}");
    }
    for key in ["categories", "steps", "units"] {
        assert!(broken("mixed", |j| remove(j, key)).contains(&format!("but no {key}")));
    }
    assert!(broken("mixed", |j| remove(j, "level_shares")).contains("for each cluster"));
    // Models of unchanged columns have the preceding schema version.
    let mut plain: Value = serde_json::from_str(&golden("diag").to_json()).unwrap();
    let steps: Vec<Value> = ["width", "height", "depth", "mass"]
        .map(|input| json!({"input": input, "step": "none"}))
        .into();
    let recipe = json!({"schema": 4, "categories": [], "steps": steps, "units": []});
    plain.as_object_mut().unwrap().extend(recipe.as_object().unwrap().clone());
    let error = Model::from_json(&plain.to_string()).unwrap_err().to_string();
    assert!(error.contains("schema 4"), "{error}");
}

/// Draws from a mixture have the covariances of its components, and their negative log-likelihood
/// is smallest under it.
#[test]
fn mixtures_of_every_covariance_are_drawn_from() {
    for kind in CovarianceKind::choices() {
        let model = golden(kind.name);
        let rows = model.sample(20_000, &mut ChaCha8Rng::seed_from_u64(3)).unwrap();
        let nll = evaluate(&model, &rows).nll.unwrap();
        for other in CovarianceKind::choices().filter(|other| other.value != kind.value) {
            let gap = evaluate(&golden(other.name), &rows).nll.unwrap() - nll;
            assert!(gap > 0.05, "{} {}: {gap}", kind.name, other.name);
        }
        let Shape::Mixture { weights, means, covariances, .. } = &model.shape else {
            panic!("a mixture")
        };
        let mut mean = [0.0; D];
        for (weight, of_component) in weights.iter().zip(means) {
            mean.iter_mut().zip(of_component).for_each(|(sum, m)| *sum += weight * m);
        }
        for (i, j) in [(0, 0), (0, 1), (1, 3)] {
            let drawn = rows.chunks_exact(D).map(|x| (x[i] - mean[i]) * (x[j] - mean[j]));
            let drawn = drawn.sum::<f64>() / 20_000.0;
            let mut expected = 0.0;
            for c in 0..3 {
                let between = (means[c][i] - mean[i]) * (means[c][j] - mean[j]);
                expected += weights[c] * (covariances[c].get(i, j) + between);
            }
            // Standard errors are near 0.1; components are some three deviations apart.
            assert!((drawn - expected).abs() < 0.8, "{} {drawn} {expected}", kind.name);
        }
    }
}
