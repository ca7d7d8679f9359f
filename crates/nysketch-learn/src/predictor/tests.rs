//! Tests of the fast predictor against the slow reference.

use super::*;
use crate::covariance::{Covariance, CovarianceKind, SymmetricMatrix};
use crate::model::SCHEMA;
use crate::model::report::Report;
use crate::model::task::Task;
use nysketch_core::error::names::Named;
use nysketch_core::recipe::Recipe;
use proptest::prelude::*;

fn model(task: Task, scale: Vec<f64>, shape: Shape) -> Model {
    let columns: Vec<String> = (0..scale.len()).map(|j| format!("c{j}")).collect();
    Model {
        schema: SCHEMA,
        task,
        recipe: Recipe::plain(columns.clone()),
        columns,
        levels: Vec::new(),
        scale,
        rows: 1,
        plan: String::new(),
        shape,
        profile: None,
        densities: None,
        intervals: None,
        report: Report::default(),
    }
}

/// Returns whether a model can use a row.
fn usable(row: &[f64]) -> bool {
    row.iter().all(|x| x.abs() <= 1e100)
}

/// Generates numbers from a seed.
struct Draw(u64);

impl Draw {
    /// Returns a number between -1 and 1.
    fn one(&mut self) -> f64 {
        self.0 = nysketch_core::rows::sample::mix(self.0);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn below(&mut self, n: usize) -> usize {
        ((self.one() + 1.0) / 2.0 * n as f64) as usize % n
    }

    fn point(&mut self, offset: f64, spread: f64, scale: &[f64]) -> Vec<f64> {
        scale.iter().map(|s| offset + spread * s * self.one()).collect()
    }

    /// Returns points, every fifth a copy of an earlier one.
    fn points(&mut self, k: usize, offset: f64, spread: f64, scale: &[f64]) -> Vec<Vec<f64>> {
        let mut points: Vec<Vec<f64>> = Vec::new();
        for c in 0..k {
            let point = match c % 5 {
                4 => points[self.below(c)].clone(),
                _ => self.point(offset, spread, scale),
            };
            points.push(point);
        }
        points
    }

    /// Returns rows among the centres: near the border between two of them, at a centre, and far
    /// away.
    fn rows(&mut self, n: usize, centres: &[Vec<f64>], spread: f64, scale: &[f64]) -> Vec<f64> {
        let mut rows = Vec::new();
        for i in 0..n {
            let (a, b) = (&centres[self.below(centres.len())], &centres[self.below(centres.len())]);
            // A point at this offset from equal distance to two centres.
            let close = [0.0, 1e-16, 1e-12, 1e-8, 3e-8, 1e-7, 1e-6, 1e-3][self.below(8)];
            let share = 0.5 + close * self.one();
            let far = [1e3, 1e6, 1e12, 1e45, 1e140][self.below(5)];
            for j in 0..a.len() {
                let jitter = spread * scale[j] * self.one();
                rows.push(match i % 6 {
                    0 => a[j],
                    1 | 2 => a[j] + share * (b[j] - a[j]),
                    3 => a[j] + 0.5 * jitter,
                    4 => a[j] + far * jitter,
                    _ => a[j] + jitter,
                });
            }
        }
        rows
    }
}

fn settings() -> impl Strategy<Value = (usize, usize, u64, f64, f64, bool)> {
    let offset = prop::sample::select(vec![0.0, 1e8, -1e8, 1e15]);
    let spread = prop::sample::select(vec![1e-30, 1e-3, 1.0, 1e5, 1e60]);
    (1usize..24, 1usize..80, any::<u64>(), offset, spread, any::<bool>())
}

fn kinds() -> impl Strategy<Value = CovarianceKind> {
    prop::sample::select(CovarianceKind::choices().map(|c| c.value).collect::<Vec<_>>())
}

fn scales(draw: &mut Draw, d: usize, scaled: bool) -> Vec<f64> {
    (0..d).map(|_| if scaled { (6.0 * draw.one()).exp() } else { 1.0 }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Labels and distances have the bits of the slow reference with every instruction set: with
    /// scaled columns, far from zero, with equal centres, between two centres, and beyond the range
    /// of single precision.
    #[test]
    fn centres_are_those_of_the_slow_version(
        (d, k, seed, offset, spread, scaled) in settings(),
    ) {
        let mut draw = Draw(seed);
        let scale = scales(&mut draw, d, scaled);
        let centres = draw.points(k, offset, spread, &scale);
        let rows = draw.rows(300, &centres, spread, &scale);
        let rows: Vec<f64> = rows.chunks(d).filter(|r| usable(r)).flatten().copied().collect();
        let weights = vec![1.0 / k as f64; k];
        let model = model(Task::Kmeans, scale, Shape::Centres { weights, centres });
        let slow: Vec<_> = rows.chunks_exact(d).map(|row| model.predict_row(row, &[])).collect();
        for set in Instructions::all() {
            for detail in [Detail::Label, Detail::All] {
                let fast = Predictor::with(&model, set).predict(&rows, detail);
                for (i, slow) in slow.iter().enumerate() {
                    prop_assert_eq!(fast.label[i] as usize, slow.label, "row {} {:?}", i, set);
                    prop_assert_eq!(fast.squared_distance[i], slow.squared_distance);
                }
            }
        }
    }

    /// Labels equal those of the slow reference, also with identical components, for every kind of
    /// covariance. Log densities and probabilities agree up to negligible terms.
    #[test]
    fn components_are_those_of_the_slow_version(
        (d, k, seed, offset, spread, scaled) in settings(),
        covariance in kinds(),
    ) {
        let mut draw = Draw(seed);
        let scale = scales(&mut draw, d, scaled);
        let means = draw.points(k, offset, spread, &scale);
        let rows = draw.rows(100, &means, spread, &scale);
        let rows: Vec<f64> = rows.chunks(d).filter(|r| usable(r)).flatten().copied().collect();
        let same = draw.below(2) == 0;

        let different = if covariance == CovarianceKind::Tied { 1 } else { k };
        let covariances: Vec<Covariance> = (0..different)
            .map(|_| {
                let spherical = draw.one();
                let mut variances = Vec::new();
                for s in &scale {
                    let is_spherical = covariance == CovarianceKind::Spherical;
                    let x = if is_spherical { spherical } else { draw.one() };
                    let variance = if same { 0.1 } else { (2.0 * x).exp() };
                    variances.push(variance * (spread * s).powi(2));
                }
                // Correlations that decrease with the distance between columns.
                if covariance.is_matrix() {
                    Covariance::Full(SymmetricMatrix::from_fn(d, |i, j| {
                        (variances[i] * variances[j]).sqrt() * 0.7f64.powi((i - j) as i32)
                    }))
                } else {
                    Covariance::Diagonal(variances)
                }
            })
            .collect();
        let covariances = (0..k).map(|c| covariances[c % covariances.len()].clone()).collect();
        let weights = vec![1.0 / k as f64; k];
        let shape = Shape::Mixture { weights, means, covariance, covariances };
        let model = model(Task::Gmm, scale, shape);
        let slow: Vec<_> = rows.chunks_exact(d).map(|row| model.predict_row(row, &[])).collect();
        for set in Instructions::all() {
            let fast = Predictor::with(&model, set).predict(&rows, Detail::All);
            for (i, slow) in slow.iter().enumerate() {
                prop_assert_eq!(fast.label[i] as usize, slow.label, "row {} {:?}", i, set);
                prop_assert_eq!(fast.squared_distance[i], slow.squared_distance);
                let log = slow.log_density.unwrap();
                if log == f64::NEG_INFINITY {
                    prop_assert_eq!(fast.log_density[i], log);
                } else {
                    // Skipped terms and rounding are below 2⁻⁵² of the largest term; k such terms
                    // are added.
                    let near = 1e-14 * (100.0 + k as f64 + log.abs());
                    let found = fast.log_density[i];
                    prop_assert!((found - log).abs() <= near, "{found} {log}");
                    let found = &fast.transformed[i * k..(i + 1) * k];
                    for (a, b) in found.iter().zip(&slow.transformed) {
                        let is_near = (a - b).abs() <= 4.0 * near * b.max(1e-3);
                        prop_assert!(is_near || log < -1e6, "{a} {b}");
                    }
                }
            }
        }
    }
}

/// Single precision proves nearly every row of overlapping clusters, so the slow path is rare.
#[test]
fn few_rows_are_left_in_doubt() {
    let mixture = nysketch_core::rows::synthetic::Mixture::new(20, 10, 2.0, 3).unwrap();
    let rows = mixture.rows(0, 20_000).values;
    let centres: Vec<Vec<f64>> =
        mixture.rows(20_000, 300).values.chunks_exact(20).map(Vec::from).collect();
    let nearest = NearestCentre::new(&centres, &[1.0; 20], Instructions::best()).unwrap();
    let mut open = 0;
    nearest.find(&rows, |_, found| open += usize::from(found.is_none()));
    // A gap below 2·10⁻⁶ of the distance, with the second centre some 10 % farther away: 2 of
    // 100,000 rows.
    assert!(open < 5, "{open}");
}

/// Principal coordinates and the residual.
#[test]
fn principal_components_as_one_row_at_a_time() {
    let (d, k) = (5, 2);
    let scale = vec![1.0, 3.0, 0.1, 20.0, 1.0];
    let mut draw = Draw(4);
    let rows = draw.points(100, 5.0, 2.0, &scale).concat();
    let mut components = vec![vec![0.0; d]; k];
    (components[0][1], components[0][3], components[1][2]) = (0.6, 0.8, 1.0);
    let variance = vec![1.0; k];
    let model = model(
        Task::Pca,
        scale,
        Shape::Components {
            mean: vec![5.0; d],
            components,
            explained_variance: variance.clone(),
            explained_variance_ratio: variance,
        },
    );
    for set in Instructions::all() {
        let fast = Predictor::with(&model, set).predict(&rows, Detail::Label);
        for (i, row) in rows.chunks_exact(d).enumerate() {
            let slow = model.predict_row(row, &[]);
            let mut pairs = fast.transformed[i * k..].iter().zip(&slow.transformed);
            assert!(pairs.all(|(a, b)| (a - b).abs() <= 1e-13));
            assert!((fast.squared_distance[i] - slow.squared_distance).abs() <= 1e-13);
        }
    }
}

/// Unusable rows keep their position.
#[test]
fn columns_mark_rows_that_cannot_be_used() {
    let centres = vec![vec![0.0, 0.0], vec![3.0, 4.0]];
    let shape = Shape::Centres { weights: vec![0.5; 2], centres };
    let model = model(Task::Kmeans, vec![1.0, 2.0], shape);
    let predictor = Predictor::new(&model);
    let columns = Column::of(&model);
    let names: Vec<String> = columns.iter().map(|c| c.name()).collect();
    assert_eq!(names, ["label", "distance"]);
    assert_eq!(Column::probabilities(&model), None);
    let rows = [0.0, 4.0, f64::NAN, 1.0, 3.0, 6.0];
    let values = predictor.columns(&rows, &columns);
    assert_eq!(values[0], Values::Labels(vec![0, -1, 1]));
    let Values::Numbers(distance) = &values[1] else { panic!("distances are numbers") };
    // In the coordinates of the fit, the second column has half the weight.
    assert_eq!((distance[0], distance[1].is_nan(), distance[2]), (2.0, true, 1.0));
}
