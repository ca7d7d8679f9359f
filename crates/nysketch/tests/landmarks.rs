//! Every rule returns exactly m distinct landmarks, whatever the rows, and satisfies its
//! definition.

mod common;

use common::*;
use nysketch::{Kernel, Plan, PlanParams, PlanReport, SampleRows, Sampling, Table, plan_for};
use nysketch_core::numeric::linalg::{Cholesky, Columns, Matrix};
use nysketch_core::numeric::points::Points;
use nysketch_core::planning::landmarks::cholesky::{Pivot, pivoted_cholesky};
use nysketch_core::planning::landmarks::leverage;
use nysketch_core::planning::landmarks::leverage::Target;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;

const RULES: [Sampling; 5] = [
    Sampling::Uniform,
    Sampling::Leverage,
    Sampling::Greedy,
    Sampling::Rpcholesky,
    Sampling::Dsquared,
];

fn plan(
    table: &Table,
    landmarks: Option<usize>,
    sampling: Sampling,
    change: impl Fn(&mut PlanParams),
) -> (Plan, PlanReport) {
    let mut params = nystrom(landmarks, sampling);
    change(&mut params);
    plan_for(table, params).unwrap()
}

fn different(points: &Points) -> usize {
    points
        .rows()
        .map(|r| r.iter().map(|x| (x + 0.0).to_bits()).collect::<Vec<_>>())
        .collect::<HashSet<_>>()
        .len()
}

fn gaussian(n: usize, d: usize, seed: u64) -> Table {
    let mut s = Stream(seed);
    Table::unnamed(d, (0..n * d).map(|_| s.normal()).collect()).unwrap()
}

fn points(table: &Table, d: usize) -> Points {
    Points::new(d, table.values().iter().map(|x| *x as f32).collect())
}

#[test]
fn exactly_m_different_landmarks_that_are_rows() {
    let table = gaussian(500, 3, 1);
    for rule in RULES {
        for m in [1, 2, 57, 500] {
            let (plan, _) = plan(&table, Some(m), rule, |_| {});
            let landmarks = plan.landmarks().unwrap();
            assert_eq!((landmarks.len(), different(landmarks)), (m, m), "{rule:?} {m}");
            for z in landmarks.rows() {
                let is_row = table.values().chunks_exact(3).any(|x| {
                    let mut y = Vec::new();
                    plan.frame.narrow(x, &mut y);
                    y == z
                });
                assert!(is_row, "{rule:?}");
            }
        }
    }
}

#[test]
fn duplicated_rows_and_constant_columns_break_nothing() {
    // 30 different rows, each 20 times, with a constant column in the middle.
    let mut s = Stream(5);
    let base: Vec<[f64; 3]> = (0..30).map(|_| [s.normal(), 7.0, s.normal()]).collect();
    let values = (0..600).flat_map(|i| base[i % 30]).collect();
    let table = Table::unnamed(3, values).unwrap();
    for rule in RULES {
        let (plan1, _) = plan(&table, Some(20), rule, |_| {});
        assert_eq!(different(plan1.landmarks().unwrap()), 20, "{rule:?}");
        for wanted in [Some(100), None] {
            let (all, report) = plan(&table, wanted, rule, |_| {});
            assert_eq!(all.landmarks().unwrap().len(), 30, "{rule:?}");
            assert!(
                report.notes.iter().any(|n| n.contains("30 different points")),
                "{:?}",
                report.notes
            );
        }
    }
    // All rows equal, and a single row.
    for values in [vec![2.5; 40], vec![2.5]] {
        let table = Table::unnamed(1, values).unwrap();
        for rule in RULES {
            let (plan, _) = plan(&table, None, rule, |_| {});
            assert_eq!(plan.landmarks().unwrap().len(), 1, "{rule:?}");
        }
    }
}

#[test]
fn more_landmarks_than_rows_is_an_error() {
    let table = gaussian(10, 2, 1);
    for rule in RULES {
        let params = nystrom(Some(11), rule);
        let error = plan_for(&table, params).unwrap_err().to_string();
        assert!(error.contains("11 landmarks") && error.contains("10 rows"), "{error}");
    }
}

#[test]
fn plans_do_not_depend_on_the_number_of_threads() {
    let table = gaussian(3000, 4, 2).with_part_rows(71);
    for rule in RULES {
        let [one, two, five] = [1, 2, 5].map(|threads| {
            plan(&table, Some(60), rule, |p| {
                p.threads = threads;
                p.sample_rows = SampleRows::Count(500);
            })
            .0
            .to_bytes()
        });
        assert!(one == two && one == five, "{rule:?}");
    }
}

/// The slow reference of the greedy rule: finds the largest Schur complement by a new solve each
/// time.
#[test]
fn greedy_takes_the_largest_schur_complement() {
    let table = gaussian(60, 2, 3);
    let points = points(&table, 2);
    let sigma2 = 0.7;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let chosen =
        pivoted_cholesky(&points, Kernel::Gaussian.at(sigma2), 15, Pivot::Largest, &mut rng)
            .unwrap();
    let kernel = Matrix::from_fn(60, 60, |i, j| {
        (-Points::squared_distance(points.row(i), points.row(j)) / (2.0 * sigma2)).exp()
    });
    for t in 1..chosen.len() {
        let basis = &chosen[..t];
        let k = Matrix::from_fn(t, t, |i, j| kernel.get(basis[i], basis[j]));
        let mut columns = Columns::with_capacity(t, 60);
        (0..60).for_each(|j| columns.push(basis.iter().map(|&i| kernel.get(i, j))));
        let explained = Cholesky::new(&k).unwrap().inverse_quadratic_forms(columns);
        let best = explained.iter().map(|e| 1.0 - e).fold(0.0, f64::max);
        assert!(1.0 - explained[chosen[t]] > best - 1e-9, "step {t}");
    }
}

/// The second pivot is drawn with probability proportional to 1 − κ(x, x̃₁)². Compares the mean
/// residual of the drawn rows with its expectation over 4,000 draws (standard error below 0.006).
#[test]
fn rpcholesky_draws_in_proportion_to_the_residual() {
    let points = points(&gaussian(50, 1, 4), 1);
    let sigma2 = 0.5;
    let (mut got, mut expected) = (0.0, 0.0);
    for seed in 0..4000 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let chosen =
            pivoted_cholesky(&points, Kernel::Gaussian.at(sigma2), 2, Pivot::Random, &mut rng)
                .unwrap();
        let residual: Vec<f64> = points
            .rows()
            .map(|x| 1.0 - (-Points::squared_distance(x, points.row(chosen[0])) / sigma2).exp())
            .collect();
        got += residual[chosen[1]];
        expected += residual.iter().map(|r| r * r).sum::<f64>() / residual.iter().sum::<f64>();
    }
    assert!((got - expected).abs() / 4000.0 < 0.03, "{got} {expected}");
}

#[test]
fn bless_approximates_exact_leverage_scores() {
    for (d, sigma2, lambda) in [(2, 0.5, 1e-2), (2, 0.5, 1e-3), (5, 4.0, 1e-3), (10, 10.0, 1e-3)] {
        let points = points(&gaussian(600, d, 6), d);
        let exact = leverage::exact(&points, Kernel::Gaussian.at(sigma2), lambda).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let scores =
            leverage::bless(&points, Kernel::Gaussian.at(sigma2), Target::Lambda(lambda), &mut rng)
                .unwrap();
        let z = leverage::accuracy(&scores.scores, &exact);
        println!("d {d} σ² {sigma2} λ {lambda}: N(λ) {:.1}, z {z:.2}", exact.iter().sum::<f64>());
        // Eq. (10) holds with a small constant; oversampling three times gives z near 2.
        assert!(z < 3.0, "d {d} λ {lambda}: z {z}");
        let total: f64 = exact.iter().sum();
        assert!(
            (scores.effective_dimension() / total - 1.0).abs() < 0.35,
            "{} {total}",
            scores.effective_dimension()
        );
        // Eq. (9) has Σ ℓ = N(λ) and 0 < ℓ ≤ 1.
        assert!(exact.iter().all(|l| *l > 0.0 && *l <= 1.0));
    }
}

/// For a given number of landmarks, however small, the rows are scored with a coarser subset. The
/// scores are still within the factor for which the paper states its bounds.
#[test]
fn scores_for_a_number_of_landmarks_are_near_the_exact_ones() {
    let points = points(&gaussian(600, 3, 6), 3);
    for m in [3, 6, 30, 120] {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let scores =
            leverage::bless(&points, Kernel::Gaussian.at(1.0), Target::landmarks(m), &mut rng)
                .unwrap();
        let exact = leverage::exact(&points, Kernel::Gaussian.at(1.0), scores.lambda).unwrap();
        let z = leverage::accuracy(&scores.scores, &exact);
        assert!(z < 4.0, "{m} landmarks: {z}");
        let dimension: f64 = exact.iter().sum();
        let off = scores.effective_dimension() / dimension;
        assert!((0.7..1.4).contains(&off), "{m} landmarks: {off}");
    }
}

#[test]
fn leverage_chooses_lambda_for_the_number_of_landmarks_and_reports_it() {
    let table = gaussian(2000, 3, 8);
    let (_, report) =
        plan(&table, Some(80), Sampling::Leverage, |p| p.bandwidths = Some(vec![0.5]));
    let leverage = report.leverage.unwrap();
    // At this λ BLESS keeps three rows for each of N(λ) dimensions.
    assert!((20.0..40.0).contains(&leverage.effective_dimension), "{leverage:?}");
    assert!(leverage.accuracy >= 1.0 && leverage.accuracy < 4.0, "{leverage:?}");
    // As in the paper: λ is given, and the number of landmarks is random.
    let sizes: HashSet<usize> = (0..4)
        .map(|seed| {
            let params = PlanParams::default().seed(seed).bandwidths([0.5]).leverage_lambda(1e-2);
            plan_for(&table, params).unwrap().0.landmarks().unwrap().len()
        })
        .collect();
    assert!(sizes.len() > 1, "{sizes:?}");
}

/// 3 rows in 30,000 are far away: a uniform sample of 1,000 misses them nine times in ten; D²
/// rounds over the stream always find them.
#[test]
fn dsquared_rounds_reach_rare_clusters() {
    let mut s = Stream(9);
    let mut values: Vec<f64> = (0..60_000).map(|_| s.normal()).collect();
    for (row, at) in [(17, [300.0, 0.0]), (12_345, [0.0, 300.0]), (29_999, [-300.0, -300.0])] {
        values[2 * row..2 * row + 2].copy_from_slice(&at);
    }
    let table = Table::unnamed(2, values).unwrap();
    for seed in 0..5 {
        let (plan, _) = plan(&table, Some(20), Sampling::Dsquared, |p| {
            p.sample_rows = SampleRows::Count(1000);
            p.seed = seed;
        });
        let far =
            plan.landmarks().unwrap().rows().filter(|z| z.iter().any(|x| x.abs() > 100.0)).count();
        assert_eq!(far, 3, "seed {seed}");
    }
}

#[test]
fn given_landmarks_are_taken_as_they_are() {
    let table = gaussian(100, 2, 1);
    let plan = plan_with(vec![vec![0.0, 1.0], vec![2.0, 2.0], vec![0.0, 1.0]], &table, |_| {});
    let landmarks = plan.landmarks().unwrap();
    assert_eq!(landmarks.len(), 2, "each once");
    let back = plan.frame.widen(landmarks.row(0));
    assert!((back[0] - 0.0).abs() < 1e-7 && (back[1] - 1.0).abs() < 1e-7);
    let bad = PlanParams::default().landmarks_from("l", vec![vec![1.0]]);
    assert!(plan_for(&table, bad).is_err());
}
