//! Tests on real data from the folder in the environment variable NYSKETCH_DATA. If it is not set,
//! they are skipped with a message, which `cargo test --test real_data -- --nocapture` shows.

mod common;

use common::*;
use nysketch::{PlanParams, Table, plan_for};
use std::path::Path;
use std::sync::Arc;

fn data(name: &str) -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os("NYSKETCH_DATA") else {
        println!("skipped: NYSKETCH_DATA is not set");
        return None;
    };
    let path = Path::new(&folder).join(name);
    let bytes = std::fs::read(&path);
    if let Err(error) = &bytes {
        println!("skipped: {}: {error}", path.display());
    }
    bytes.ok()
}

/// Spectral features of MNIST, at two bandwidths and the size of the paper: sketches of two parts
/// merge to the sketch of the whole, which agrees with the rows.
#[test]
fn mnist_spectral() {
    let Some(bytes) = data("mnist_spectral.npy") else {
        return;
    };
    // float32, C order, 70000 × 10 after a header of 128 bytes.
    let values: Vec<f64> =
        bytes[128..].as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect();
    let d = 10;
    let table = Table::unnamed(d, values.clone()).unwrap();
    assert_eq!(table.len(), 70_000);
    let params = PlanParams::default().bandwidths([0.3, 0.075]);
    let plan = Arc::new(plan_for(&table, params).unwrap().0);
    assert_eq!(plan.landmarks().unwrap().len(), 400);
    let whole = sketch(&plan, &table);
    let (left, right) = values.split_at(31_000 * d);
    let mut sum = sketch(&plan, &Table::unnamed(d, right.to_vec()).unwrap());
    sum.merge(&sketch(&plan, &Table::unnamed(d, left.to_vec()).unwrap())).unwrap();
    assert_eq!(sum.to_bytes(), whole.to_bytes());
    let landmarks = plan.landmarks().unwrap();
    for (rung, sigma2) in plan.bandwidths.iter().enumerate() {
        let means = whole.feature_means(rung);
        for j in (0..400).step_by(40) {
            let z = plan.frame.widen(landmarks.row(j));
            let exact =
                values.chunks_exact(d).map(|x| plan.kernel.at(*sigma2).value(x, &z)).sum::<f64>()
                    / 70_000.0;
            assert!((means[j] - exact).abs() < 1e-5 * exact + 6e-8, "{} {exact}", means[j]);
        }
    }
}
