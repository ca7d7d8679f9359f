//! Tests of EM steps against a direct implementation.

use super::steps::Layout;
use super::*;
use crate::atom::Atom;
use crate::covariance::{Covariance, CovarianceKind, SymmetricMatrix};
use nysketch_core::error::names::Named;
use nysketch_core::numeric::random::{normal, unit};
use nysketch_core::numeric::simd::Instructions;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Computes a step of EM directly from its definition, in double precision.
fn plain_step(w: &[f64], x: &[f64], v: &[f64], atoms: &[Atom], full: bool) -> (Vec<Atom>, f64) {
    let d = atoms[0].mean.len();
    let mut likelihood = 0.0;
    let shares: Vec<Vec<f64>> = (0..w.len())
        .map(|i| {
            let logs: Vec<f64> = atoms
                .iter()
                .map(|a| {
                    let factor = a.covariance.cholesky().unwrap();
                    a.weight.ln() + factor.log_density(&x[i * d..(i + 1) * d], &a.mean)
                        - 0.5
                            * (0..d)
                                .map(|k| v.get(i * d + k).unwrap_or(&0.0) / a.covariance.get(k, k))
                                .sum::<f64>()
                })
                .collect();
            let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = logs.iter().map(|l| (l - max).exp()).sum();
            likelihood += w[i] * (max + sum.ln());
            logs.iter().map(|l| w[i] * (l - max).exp() / sum).collect()
        })
        .collect();
    let total: f64 = w.iter().sum();
    let mut next = Vec::new();
    for c in 0..atoms.len() {
        let mass: f64 = shares.iter().map(|s| s[c]).sum();
        let mut mean = vec![0.0; d];
        for (x, share) in x.chunks_exact(d).zip(&shares) {
            mean.iter_mut().zip(x).for_each(|(m, x)| *m += share[c] * x / mass);
        }
        let matrix = SymmetricMatrix::from_fn(d, |k, l| {
            let mut sum = 0.0;
            for (i, share) in shares.iter().enumerate() {
                let variance = if k == l { v.get(i * d + k).copied().unwrap_or(0.0) } else { 0.0 };
                let product = (x[i * d + k] - mean[k]) * (x[i * d + l] - mean[l]);
                sum += share[c] * (product + variance);
            }
            sum / mass
        });
        let covariance =
            if full { Covariance::Full(matrix) } else { Covariance::Diagonal(matrix.diagonal()) };
        next.push(Atom::new(mass / total, mean, covariance));
    }
    (next, likelihood / total)
}

/// Compares steps with few and many points, with and without variance, with diagonals and matrices,
/// and with atoms so far apart that one has no influence at the points of another.
#[test]
fn a_step_is_the_one_written_down() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let cases = [
        (1, 1, 1, true, 1.0, false),
        (31, 3, 2, false, 1.0, false),
        (65, 20, 4, true, 1.0, false),
        (200, 9, 7, false, 1.0, false),
        (300, 5, 6, false, 30.0, false),
        (300, 5, 6, true, 30.0, false),
        (40, 1, 2, false, 1.0, true),
        (700, 6, 3, false, 1.0, true),
        (300, 5, 4, false, 30.0, true),
    ];
    for (n, d, k, wide, apart, full) in cases {
        // Some of the points have weight zero.
        let w: Vec<f64> =
            (0..n).map(|i| if i % 7 == 3 { 0.0 } else { 0.1 + unit(&mut rng) }).collect();
        let mut atoms: Vec<Atom> = (0..k)
            .map(|_| {
                let mean = (0..d).map(|_| apart * normal(&mut rng)).collect();
                let variance: Vec<f64> = (0..d).map(|_| 0.5 + unit(&mut rng)).collect();
                let covariance = if full {
                    Covariance::Full(SymmetricMatrix::from_fn(d, |i, j| {
                        if i == j { variance[i] } else { 0.3 / (1 + i + j) as f64 }
                    }))
                } else {
                    Covariance::Diagonal(variance)
                };
                Atom::new(1.0 / k as f64, mean, covariance)
            })
            .collect();
        let x: Vec<f64> =
            (0..n * d).map(|at| atoms[at / d % k].mean[at % d] + normal(&mut rng)).collect();
        let v: Vec<f64> = (0..if wide { n * d } else { 0 }).map(|_| unit(&mut rng)).collect();
        let (expected, likelihood) = plain_step(&w, &x, &v, &atoms, full);
        let floor = Floor::new(vec![1e-12; d]);
        let kind = if full { CovarianceKind::Full } else { CovarianceKind::Diag };
        let points = Em::new(&w, &x, &v, Shaped { kind, floor: &floor, shrinkage: 0.0 });
        let start = atoms.clone();
        let found = points.step(&mut atoms);
        if let Layout::Diagonal(points) = &points.points {
            let best = format!(
                "{:?}",
                points.pass(&start, &Levels::default(), None, Instructions::best())
            );
            for other in Instructions::all() {
                assert_eq!(
                    format!("{:?}", points.pass(&start, &Levels::default(), None, other)),
                    best,
                    "{}",
                    other.name()
                );
            }
        }
        // Exponentials for diagonals have an error of 2e-7 relative to the largest; points are
        // within 5 of the mean to which they contribute.
        assert!((found - likelihood).abs() < 1e-6, "{found} {likelihood}");
        for (a, b) in atoms.iter().zip(&expected) {
            assert!((a.weight - b.weight).abs() < 1e-6);
            for i in 0..d {
                assert!((a.mean[i] - b.mean[i]).abs() < 5e-6, "{a:?} {b:?}");
                for j in 0..=i {
                    let off = a.covariance.get(i, j) - b.covariance.get(i, j);
                    assert!(off.abs() < 1e-5, "{a:?} {b:?}");
                }
            }
        }
    }
}

/// With one component, each kind is derived from the covariance of all points: the matrix, its
/// diagonal, or the mean of the diagonal. Tied covariances are pooled by weight.
#[test]
fn every_kind_is_what_it_says() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let x: Vec<f64> = (0..500)
        .flat_map(|_| {
            let (a, b) = (normal(&mut rng), normal(&mut rng));
            [a, a + 0.5 * b]
        })
        .collect();
    let (w, floor) = (vec![1.0; 500], Floor::new(vec![1e-9; 2]));
    let start = Atom::diagonal(1.0, vec![0.0; 2], vec![1.0; 2]);
    let (full, _) = plain_step(&w, &x, &[], std::slice::from_ref(&start), true);
    let full = &full[0].covariance;
    for kind in CovarianceKind::choices().map(|c| c.value) {
        let mut start = start.clone();
        if kind.is_matrix() {
            start.covariance =
                Covariance::Full(SymmetricMatrix::from_fn(2, |i, j| (i == j) as u8 as f64));
        }
        let em = Em::new(&w, &x, &[], Shaped { kind, floor: &floor, shrinkage: 0.0 });
        let mut one = vec![start.clone()];
        em.step(&mut one);

        let found = &one[0].covariance;
        for i in 0..2 {
            let expected = match kind {
                CovarianceKind::Spherical => 0.5 * (full.get(0, 0) + full.get(1, 1)),
                _ => full.get(i, i),
            };
            assert!((found.get(i, i) - expected).abs() < 1e-5, "{kind}: {found:?} {expected}");
        }
        let expected = if kind.is_matrix() { full.get(0, 1) } else { 0.0 };
        assert!((found.get(0, 1) - expected).abs() < 1e-5, "{kind}: {found:?} {expected}");
        // Two components.
        let mut two = vec![start.clone(), start];
        (two[0].weight, two[1].weight) = (0.5, 0.5);
        (two[0].mean[0], two[1].mean[0]) = (-1.0, 1.0);
        let ended = em.run(&mut two, Until { steps: 100, tolerance: 1e-6 });
        assert!(ended.likelihood.is_finite(), "{kind}");
        // Exponentials for diagonals have an error of 2e-7.
        assert!((two[0].weight + two[1].weight - 1.0).abs() < 1e-6, "{kind}: {two:?}");
        if kind == CovarianceKind::Tied {
            assert_eq!(two[0].covariance, two[1].covariance);
        }
    }
}

/// Returns points in 70 clusters, most of which are out of range of one another, with starts near
/// them.
fn many(kind: CovarianceKind, d: usize) -> (Vec<f64>, Vec<f64>, Vec<Atom>) {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let k = 70;
    let places: Vec<Vec<f64>> =
        (0..k).map(|_| (0..d).map(|_| 10.0 * normal(&mut rng)).collect()).collect();
    let n = 3001;
    let w: Vec<f64> = (0..n).map(|_| 0.1 + unit(&mut rng)).collect();
    let x = (0..n * d).map(|at| places[at / d % k][at % d] + normal(&mut rng)).collect();
    let identity = Covariance::Diagonal(vec![2.0; d]);
    (
        w,
        x,
        places
            .iter()
            .map(|place| {
                let mean = place.iter().map(|x| x + 0.3 * normal(&mut rng)).collect();
                let matrix = if kind.is_matrix() { identity.to_matrix() } else { identity.clone() };
                Atom::new(1.0 / k as f64, mean, matrix)
            })
            .collect(),
    )
}

/// Compares a run that evaluates only the components within range with steps that evaluate all of
/// them.
#[test]
fn what_is_out_of_reach_does_not_matter() {
    for kind in CovarianceKind::choices().map(|c| c.value) {
        let (w, x, start) = many(kind, 3);
        let floor = Floor::new(vec![1e-9; 3]);
        let codes: Vec<u32> = (0..w.len()).map(|i| (i % 70 / 40) as u32).collect();
        for levels in [Levels::default(), Levels::new(&[2], &codes, &w)] {
            let mut start = start.clone();
            if !levels.is_empty() {
                start.iter_mut().for_each(|a| a.levels = vec![0.5; 2]);
            }
            let em = Em::new(&w, &x, &[], Shaped { kind, floor: &floor, shrinkage: 0.0 });
            let em = em.with_levels(levels);
            let (mut all, mut near) = (start.clone(), start);
            let mut likelihood = 0.0;
            for _ in 0..25 {
                likelihood = em.step(&mut all);
            }
            let never = Until { steps: 25, tolerance: f64::NEG_INFINITY };
            let ended = em.run(&mut near, never);
            // Components that come within range before the lists are renewed enter some steps late,
            // with an effect of 1e-5 nats here.
            let off = (ended.likelihood - likelihood).abs();
            assert!(off < 5e-6 * likelihood.abs(), "{kind}: {ended:?} {likelihood}");
            // 70 components of e⁻²⁰ are 1.5e-7 of a point, and exponentials have an error of 2e-7.
            let (mut same, mut other) = (near.clone(), near.clone());
            let one = Until { steps: 2, tolerance: f64::NEG_INFINITY };
            let twice = [em.step(&mut same), em.step(&mut same)][1];
            assert!((em.run(&mut other, one).likelihood - twice).abs() < 1e-6 * twice.abs());
            for (a, b) in same.iter().zip(&other) {
                assert!((a.weight - b.weight).abs() < 1e-6, "{kind}: {a:?} {b:?}");
                for i in 0..3 {
                    assert!((a.mean[i] - b.mean[i]).abs() < 1e-5, "{kind}: {a:?} {b:?}");
                    let [v, u] = [a, b].map(|a| a.covariance.get(i, i));
                    assert!((v - u).abs() < 1e-4 * u, "{kind}: {a:?} {b:?}");
                }
            }
            // The last step evaluates all components.
            let until = Until { steps: 500, tolerance: 1e-5 };
            let ended = em.run(&mut near, until);
            assert!(ended.converged, "{kind}: {ended:?}");
        }
    }
}

/// Compares densities and entropies of points with direct sums of exponentials, and the shared
/// matrix with the pooled one.
#[test]
fn densities_are_those_written_down() {
    for kind in CovarianceKind::choices().map(|c| c.value) {
        let (w, x, mut atoms) = many(kind, 3);
        let floor = Floor::new(vec![1e-9; 3]);
        let em = Em::new(&w, &x, &[], Shaped { kind, floor: &floor, shrinkage: 0.0 });
        let (expected, _) = plain_step(&w, &x, &[], &atoms, true);
        em.step(&mut atoms);
        if kind == CovarianceKind::Tied {
            for (i, j) in [(0, 0), (1, 0), (2, 2)] {
                let pooled: f64 = expected.iter().map(|a| a.weight * a.covariance.get(i, j)).sum();
                assert!((atoms[7].covariance.get(i, j) - pooled).abs() < 1e-5);
            }
        }
        let found = densities(&x, &Levels::default(), &atoms);
        assert_eq!((found.log_density.len(), found.entropy.len()), (w.len(), w.len()));
        for i in (0..w.len()).step_by(97) {
            let point = &x[i * 3..(i + 1) * 3];
            let mut terms = Vec::new();
            for a in &atoms {
                let factor = a.covariance.cholesky().unwrap();
                terms.push((a.weight.ln() + factor.log_density(point, &a.mean)).exp());
            }
            let density: f64 = terms.iter().sum();
            let entropy: f64 = terms
                .iter()
                .map(|term| term / density)
                .filter(|r| *r > 0.0)
                .map(|r| -r * r.ln())
                .sum();
            // Exponentials have an error of 2e-7 relative to the largest; components out of range
            // add up to 1.5e-7, at 20 nats each.
            assert!((found.log_density[i] - density.ln()).abs() < 1e-6, "{kind}");
            assert!((found.entropy[i] - entropy).abs() < 1e-5, "{kind}");
        }
    }
}

/// Shrinkage keeps variances and pools correlations.
#[test]
fn shrinkage_pools_correlations() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let mut x = Vec::new();
    for i in 0..400 {
        let (a, b) = (normal(&mut rng), normal(&mut rng));
        let (slope, place) = if i % 2 == 0 { (0.9, 0.0) } else { (-0.9, 50.0) };
        x.extend([place + a, slope * a + 0.44 * b]);
    }
    let (w, floor) = (vec![1.0; 400], Floor::new(vec![1e-9; 2]));
    let identity = Covariance::Full(SymmetricMatrix::from_fn(2, |i, j| (i == j) as u8 as f64));
    let start = [0.0, 50.0].map(|x| Atom::new(0.5, vec![x, 0.0], identity.clone()));
    let [free, held] = [0.0, 1e9].map(|shrinkage| {
        let shaped = Shaped { kind: CovarianceKind::Full, floor: &floor, shrinkage };
        let mut atoms = start.to_vec();
        Em::new(&w, &x, &[], shaped).run(&mut atoms, Until { steps: 50, tolerance: 1e-9 });
        atoms
    });
    assert!(free[0].covariance.get(0, 1) > 0.7 && free[1].covariance.get(0, 1) < -0.7);
    for (free, held) in free.iter().zip(&held) {
        assert!((free.covariance.get(0, 0) - held.covariance.get(0, 0)).abs() < 1e-6);
        assert!(held.covariance.get(0, 1).abs() < 0.2, "{held:?}");
    }
}

/// An atom without points keeps its mean, and a variance does not fall below the floor.
#[test]
fn atoms_without_points_and_points_without_spread() {
    let floor = Floor::new(vec![0.25]);
    for kind in [CovarianceKind::Diag, CovarianceKind::Full] {
        let shaped = Shaped { kind, floor: &floor, shrinkage: 0.0 };
        let points = Em::new(&[1.0; 40], &[2.0; 40], &[], shaped);
        let [start, end] = [1.0, 0.25].map(|v| match kind {
            CovarianceKind::Full => Covariance::Full(SymmetricMatrix::from_fn(1, |_, _| v)),
            _ => Covariance::Diagonal(vec![v]),
        });
        let mut atoms = [2.5, 1e4].map(|mean| Atom::new(0.5, vec![mean], start.clone())).to_vec();
        let ended = points.run(&mut atoms, Until { steps: 50, tolerance: TOLERANCE });
        assert_eq!(atoms[0], Atom::new(1.0, vec![2.0], end));
        assert_eq!((atoms[1].weight < 1e-12, &atoms[1].mean), (true, &vec![1e4]));
        // The density of N(2, ¼) at its mean.
        let peak = (2.0 / std::f64::consts::TAU.sqrt()).ln();
        assert!((ended.likelihood - peak).abs() < 1e-6);
    }
}
