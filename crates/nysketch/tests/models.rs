//! Models of mixtures with every kind of covariance: their files, good and bad, and draws from them.

use nysketch::metrics::{Evaluation, Risks};
use nysketch::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::path::{Path, PathBuf};

const D: usize = 4;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/models/{name}.json"))
}

/// A model of three components in four columns.
fn golden(name: &str) -> Model {
    Model::from_json(&std::fs::read_to_string(path(name)).unwrap()).unwrap()
}

fn evaluate(model: &Model, values: &[f64]) -> Evaluation {
    let mut risks = Risks::default();
    risks.add(&Predictor::new(model), values, &[]);
    risks.evaluation(model)
}

/// Files of every kind of covariance: read, and written as they were. Log densities of a row by SciPy.
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
        let said = model.predict_row(&row, &[]);
        assert_eq!(said.label, 2);
        assert!((said.log_density.unwrap() - log_density).abs() < 1e-12, "{name} {said:?}");
    }
    // Schema 2 has variances and no word for them.
    assert_eq!(golden("schema2"), golden("diag"));
}

#[test]
fn damaged_covariances_are_refused() {
    let broken = |kind: CovarianceKind, change: &dyn Fn(&mut serde_json::Value)| {
        let mut json = serde_json::from_str(&golden(kind.name()).to_json()).unwrap();
        change(&mut json);
        Model::from_json(&json.to_string()).unwrap_err().to_string()
    };
    let full = |change: &dyn Fn(&mut serde_json::Value)| broken(CovarianceKind::Full, change);
    assert!(full(&|j| j["covariances"][1][0][1] = 0.3.into()).contains("not symmetric"));
    assert!(full(&|j| j["covariances"][1][2][2] = 0.0.into()).contains("positive definite"));
    assert!(full(&|j| j["covariances"][0][2][2] = (-1.0).into()).contains("positive definite"));
    assert!(full(&|j| j["covariances"][0][2][2] = 0.05.into()).contains("positive definite"));
    assert!(full(&|j| j["covariances"][0][0][0] = 1e300.into()).contains("beyond 1e200"));
    assert!(full(&|j| j["covariances"][0][0][0] = "x".into()).contains("not valid"));
    assert!(full(&|j| j["covariances"][2] = serde_json::json!([])).contains("4 values"));
    assert!(full(&|j| j["covariances"][2] = serde_json::json!([[1.0]])).contains("4 values"));
    assert!(full(&|j| j["covariances"][2][1] = serde_json::json!([1.0])).contains("as many rows"));
    assert!(full(&|j| j["covariances"] = serde_json::json!([])).contains("for each component"));
    assert!(
        full(&|j| drop(j.as_object_mut().unwrap().remove("covariances")))
            .contains("but no covariances")
    );
    assert!(
        full(&|j| drop(j.as_object_mut().unwrap().remove("covariance")))
            .contains("but no covariance")
    );
    assert!(full(&|j| j["covariance"] = "diag".into()).contains("but no variances"));
    assert!(full(&|j| j["covariance"] = "tied".into()).contains("one covariance"));
    assert!(full(&|j| j["covariance"] = "round".into()).contains("not valid"));
    let spherical = broken(CovarianceKind::Spherical, &|j| j["variances"][1][0] = 9.0.into());
    assert!(spherical.contains("spherical"));
}

/// Draws from a mixture have the covariances of its components; the nll of the draws under it is the least.
#[test]
fn mixtures_of_every_covariance_are_drawn_from() {
    for kind in CovarianceKind::choices() {
        let model = golden(kind.name);
        let rows = model.sample(20_000, &mut ChaCha8Rng::seed_from_u64(3)).unwrap();
        let own = evaluate(&model, &rows).nll.unwrap();
        for other in CovarianceKind::choices().filter(|other| other.value != kind.value) {
            let gap = evaluate(&golden(other.name), &rows).nll.unwrap() - own;
            assert!(gap > 0.05, "{} {}: {gap}", kind.name, other.name);
        }
        let Shape::Mixture { weights, means, covariances, .. } = &model.shape else {
            panic!("a mixture")
        };
        let mean = |j: usize| -> f64 { weights.iter().zip(means).map(|(w, m)| w * m[j]).sum() };
        for (i, j) in [(0, 0), (0, 1), (1, 3)] {
            let drawn = rows.chunks_exact(D).map(|x| (x[i] - mean(i)) * (x[j] - mean(j)));
            let drawn = drawn.sum::<f64>() / 20_000.0;
            let between = |c: usize| (means[c][i] - mean(i)) * (means[c][j] - mean(j));
            let all = |c: usize| weights[c] * (covariances[c].get(i, j) + between(c));
            let expected: f64 = (0..3).map(all).sum();
            // Standard errors near 0.1 with components some three deviations apart.
            assert!((drawn - expected).abs() < 0.8, "{} {drawn} {expected}", kind.name);
        }
    }
}
