//! Unit vectors: centres are unit vectors too, and agree with those of spherical k-means on all
//! rows.

mod common;

use common::*;
use nysketch::metrics::Risks;
use nysketch::model::Shape;
use nysketch::{
    Decoder, FitParams, Mixture, Model, PlanParams, Predictor, Scale, Sketch, Table, Task, decoder,
    fit, plan_for,
};
use std::sync::Arc;

const D: usize = 8;
const K: usize = 6;
const ROWS: usize = 20_000;

/// Returns rows around K directions, of any length.
fn vectors() -> Vec<f64> {
    let mut rows = Mixture::new(D, K, 2.0, 11).unwrap().rows(0, ROWS).values;
    for (i, row) in rows.chunks_exact_mut(D).enumerate() {
        let stretch = 0.5 + (i % 7) as f64;
        row.iter_mut().for_each(|x| *x *= stretch);
    }
    rows
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn to_length_one(row: &[f64]) -> Vec<f64> {
    let length = dot(row, row).sqrt();
    row.iter().map(|x| x / length).collect()
}

/// Runs spherical k-means as defined: each row is assigned to the centre of largest cosine, and
/// each centre is the normalised mean of its rows. Returns the mean squared distance, which is 2 −
/// 2 cos.
fn spherical(rows: &[f64], seed: u64) -> f64 {
    let rows: Vec<Vec<f64>> = rows.chunks_exact(D).map(to_length_one).collect();
    let mut centres: Vec<Vec<f64>> =
        (0..K).map(|c| rows[(seed as usize * 7919 + c * 2741) % rows.len()].clone()).collect();
    let mut cosines = 0.0;
    for _ in 0..100 {
        let mut sums = vec![vec![0.0; D]; K];
        cosines = 0.0;
        for row in &rows {
            let all = centres.iter().map(|centre| dot(row, centre)).enumerate();
            let (nearest, cosine) = all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            cosines += cosine;
            sums[nearest].iter_mut().zip(row).for_each(|(s, x)| *s += x);
        }
        centres = sums.iter().map(|sum| to_length_one(sum)).collect();
    }
    2.0 - 2.0 * cosines / rows.len() as f64
}

fn params() -> PlanParams {
    PlanParams::default().landmarks(120).unit(["*"])
}

fn sketch_of(rows: &[f64], params: PlanParams) -> Sketch {
    let table = Table::unnamed(D, rows.to_vec()).unwrap();
    let plan = Arc::new(plan_for(&table, params).unwrap().0);
    sketch(&plan, &table)
}

fn centres(model: &Model) -> &[Vec<f64>] {
    let Shape::Centres { centres, .. } = &model.shape else { unreachable!("centres") };
    centres
}

#[test]
fn centres_are_those_of_spherical_kmeans() {
    let rows = vectors();
    let best = (0..10).map(|seed| spherical(&rows, seed)).fold(f64::INFINITY, f64::min);
    let directions: Vec<f64> = rows.chunks_exact(D).flat_map(to_length_one).collect();
    // A sketch without retained rows refines centres on unfolded cells, one of kernel sums on
    // landmarks.
    for (params, decoder, limit) in [
        (params(), Decoder::Cells, 1.005),
        (params().witnesses(0), Decoder::Cells, 1.01),
        (params().witnesses(0), Decoder::Kernel, 1.03),
    ] {
        let sketch = sketch_of(&rows, params);
        let model = fit(&sketch, &FitParams::new(Task::Kmeans, K).decoder(decoder)).unwrap();
        for centre in centres(&model) {
            // The centre of the frame is subtracted and added again.
            assert!((dot(centre, centre) - 1.0).abs() < 1e-12, "{centre:?}");
        }
        let mut risks = Risks::default();
        risks.add(&Predictor::new(&model), &directions, &[]);
        let risk = risks.evaluation(&model).mse;
        assert!(risk < limit * best, "{decoder:?}: {risk} over {best}");
    }
}

/// Medians lie on the sphere, too, for a range of k.
#[test]
fn medians_and_curves() {
    let sketch = sketch_of(&vectors(), params());
    let medians = fit(&sketch, &FitParams::new(Task::Kmedians, K)).unwrap();
    let curve = decoder::fit_curve(&sketch, &FitParams::new(Task::Kmeans, 1), 1, 4).unwrap();
    for model in curve.points.iter().map(|p| &p.model).chain([&medians]) {
        for centre in centres(model) {
            assert!((dot(centre, centre) - 1.0).abs() < 1e-12, "{centre:?}");
        }
    }
}

/// If the columns of a vector are scaled separately, lengths have no meaning, and centres are
/// means.
#[test]
fn columns_scaled_apart_keep_their_means() {
    let sketch = sketch_of(&vectors(), params().scale(Scale::Standard));
    let model = fit(&sketch, &FitParams::new(Task::Kmeans, K)).unwrap();
    assert!(centres(&model).iter().all(|c| dot(c, c) < 0.99));
}
