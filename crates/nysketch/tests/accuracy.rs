//! Compares kernel means with double precision: |error| ≤ 1e-5·mean + 2⁻²⁴ at one bandwidth, and ≤
//! 1e-4·mean + 2⁻²⁴ at every bandwidth of the default ladder.

mod common;

use common::*;
use nysketch::{Plan, PlanParams, Scale, Sum, Table, plan_for};
use nysketch_core::numeric::fixed::coordinate_value;
use std::sync::Arc;

/// 2⁻²⁴: half a unit of the fixed point.
const UNIT: f64 = 1.0 / 16_777_216.0;

/// Returns the largest |error| / (share·mean + 2⁻²⁴) over all landmarks and bandwidths.
fn worst(plan: &Arc<Plan>, table: &Table, share: f64) -> f64 {
    let sketch = sketch(plan, table);
    let d = plan.dims();
    let landmarks: Vec<Vec<f64>> =
        plan.landmarks().unwrap().rows().map(|z| plan.frame.widen(z)).collect();
    let n = table.len() as f64;
    let mut worst = 0.0f64;
    for (rung, sigma2) in plan.bandwidths.iter().enumerate() {
        let got = sketch.feature_means(rung);
        for (z, got) in landmarks.iter().zip(got) {
            let mean = table
                .values()
                .chunks_exact(d)
                .map(|x| {
                    let d2: f64 =
                        (0..d).map(|j| ((x[j] - z[j]) / plan.frame.scale[j]).powi(2)).sum();
                    (-d2 / (2.0 * sigma2)).exp()
                })
                .sum::<f64>()
                / n;
            worst = worst.max((got - mean).abs() / (share * mean + UNIT));
        }
    }
    worst
}

/// Returns rows of a few clusters of width σ whose centres have the range `spread`, moved by
/// `shift`.
fn rows(d: usize, n: usize, sigma: f64, spread: f64, shift: f64, seed: u64) -> Table {
    let mut s = Stream(seed);
    let centres: Vec<f64> = (0..5 * d).map(|_| spread * (s.unit() - 0.5)).collect();
    let mut values = Vec::with_capacity(n * d);
    for _ in 0..n {
        let c = s.below(5);
        // A width of σ/√d in each column keeps kernel values away from zero in any dimension.
        values.extend(
            (0..d).map(|j| shift + centres[c * d + j] + sigma / (d as f64).sqrt() * s.normal()),
        );
    }
    Table::unnamed(d, values).unwrap()
}

fn landmarks_from(table: &Table, d: usize) -> Vec<Vec<f64>> {
    table.values().chunks_exact(d).step_by(61).map(<[f64]>::to_vec).collect()
}

#[test]
fn one_bandwidth_is_accurate_near_far_and_wide() {
    for d in [1, 2, 10, 50, 300] {
        for sigma2 in [0.01, 0.1, 1.0, 10.0] {
            let sigma = f64::sqrt(sigma2);
            for (spread, shift) in [(3.0, 0.0), (3.0, 1e4), (1000.0, 0.0)] {
                let table = rows(d, 2000, sigma, spread * sigma, shift * sigma, d as u64);
                let plan = plan_with(landmarks_from(&table, d), &table, |p| {
                    p.bandwidths = Some(vec![sigma2])
                });
                let worst = worst(&plan, &table, 1e-5);
                assert!(worst <= 1.0, "d {d} σ² {sigma2} spread {spread}σ shift {shift}σ: {worst}");
            }
        }
    }
}

#[test]
fn every_rung_of_the_default_ladder_is_accurate() {
    for d in [1, 2, 10, 50, 300] {
        for (spread, shift) in [(3.0, 0.0), (3.0, 1e4), (1000.0, 0.0)] {
            let table = rows(d, 2000, 1.0, spread, shift, 7 + d as u64);
            let plan = plan_with(landmarks_from(&table, d), &table, |_| {});
            assert_eq!(plan.bandwidths.len(), 3);
            let worst = worst(&plan, &table, 1e-4);
            assert!(worst <= 1.0, "d {d} spread {spread}σ shift {shift}σ: {worst}");
        }
    }
}

#[test]
fn standard_scaling_measures_in_standard_deviations() {
    let mut s = Stream(4);
    let values: Vec<f64> =
        (0..3000).flat_map(|_| [1e6 + 1e4 * s.normal(), 1e-3 * s.normal()]).collect();
    let table = Table::unnamed(2, values).unwrap();
    let plan = plan_with(landmarks_from(&table, 2), &table, |p| p.scale = Some(Scale::Standard));
    assert!(plan.frame.scale[0] / plan.frame.scale[1] > 1e6);
    let worst = worst(&plan, &table, 1e-4);
    assert!(worst <= 1.0, "{worst}");
}

/// Cosines and sines have the rounding error of a phase: about 2⁻²⁴ of it, which is below 100
/// radians here.
#[test]
fn fourier_means_are_accurate() {
    let table = rows(10, 2000, 1.0, 10.0, 1e4, 3);
    let params = PlanParams::default().fourier(50);
    let plan = Arc::new(plan_for(&table, params).unwrap().0);
    let sketch = sketch(&plan, &table);
    let n = table.len() as f64;
    for (rung, sigma2) in plan.bandwidths.iter().enumerate() {
        let got = sketch.feature_means(rung);
        let mut exact = vec![0.0; 100];
        for row in table.values().chunks_exact(10) {
            let y: Vec<f64> = row.iter().zip(&plan.frame.centre).map(|(x, c)| x - c).collect();
            let f = nysketch_core::kernel::fourier::features(plan.features.points(), *sigma2, &y);
            for (e, f) in exact.iter_mut().zip(f) {
                *e += f * f64::sqrt(50.0) / n;
            }
        }
        for (g, e) in got.iter().zip(&exact) {
            assert!((g - e).abs() < 2e-6, "{g} {e}");
        }
    }
}

/// Coordinates are rounded to 2⁻²⁸ of the column's range, so sums of 3,000 agree to 1e-6.
fn assert_close(got: f64, want: f64, scale: f64) {
    assert!((got - want).abs() < 1e-6 * scale, "{got} {want}")
}

#[test]
fn cells_and_moments_are_those_of_the_rows() {
    let d = 3;
    let table = rows(d, 3000, 1.0, 20.0, 1e4, 9);
    let plan = plan_with(landmarks_from(&table, d), &table, |_| {});
    let sketch = sketch(&plan, &table);
    let landmarks = plan.landmarks().unwrap();
    let m = landmarks.len();
    let (mut count, mut sum, mut square) = (vec![0i128; m], vec![0.0; m * d], vec![0.0; m * d]);
    let mut outer = vec![0.0; d * (d + 1) / 2];
    let mut covered = vec![0.0; plan.bandwidths.len()];
    for row in table.values().chunks_exact(d) {
        let mut z = Vec::new();
        plan.frame.narrow(row, &mut z);
        let (cell, d2) =
            nysketch_core::kernel::scalar::nearest(plan.kernel, (&z).into(), landmarks, None);
        let cell = cell as usize;
        count[cell] += 1;
        let y: Vec<f64> = row.iter().zip(&plan.frame.centre).map(|(x, c)| x - c).collect();
        for j in 0..d {
            sum[cell * d + j] += y[j];
            square[cell * d + j] += y[j] * y[j];
        }
        let mut at = 0;
        for i in 0..d {
            for j in 0..=i {
                outer[at] += y[i] * y[j];
                at += 1;
            }
        }
        for (c, s) in covered.iter_mut().zip(&plan.bandwidths) {
            *c += (-f64::from(d2) / s).exp();
        }
    }
    let sums = sketch.sums();
    assert_eq!(sums[Sum::CellRows], count);
    let e = &plan.frame.exponent;
    for i in 0..m * d {
        assert_close(coordinate_value(sums[Sum::CellSum][i], e[i % d]), sum[i], 1e2);
        assert_close(coordinate_value(sums[Sum::CellSquare][i], 2 * e[i % d]), square[i], 1e4);
    }
    let mut at = 0;
    for i in 0..d {
        for j in 0..=i {
            assert_close(coordinate_value(sums[Sum::Outer][at], e[i] + e[j]), outer[at], 1e5);
            at += 1;
        }
    }
    for (missed, covered) in sketch.missed().iter().zip(&covered) {
        assert!((1.0 - missed - covered / 3000.0).abs() < 1e-6);
    }
    let means = sketch.coordinate_means().unwrap();
    for j in 0..d {
        let mean: f64 = sum.iter().skip(j).step_by(d).sum::<f64>() / 3000.0;
        assert_close(means[j], mean, 1.0);
    }
}
