//! Sketches that obey every rule of the format, whether or not any rows could produce such sums.
//! Every command on them ends in time, with a result or an error message.
//!
//! `NYSKETCH_COMMANDS=5000 cargo test --release -p nysketch-cli --test random_sketches` runs more
//! of them.

mod common;

use common::Folder;
use nysketch::{Plan, PlanParams, Scale, Sketch, Sum, Sums, Table, plan_for};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::Duration;

/// Much longer than any of these commands takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Number of commands in a normal run.
const COMMANDS: usize = 120;

/// Makes a plan from random rows: near zero, far away, of all magnitudes, or all equal.
fn plan(rng: &mut ChaCha8Rng) -> Arc<Plan> {
    let (d, n) = (rng.random_range(1..6), rng.random_range(2..60));
    let magnitude = 10f64.powi(rng.random_range(-9..12));
    let offset = [0.0, 1.0, 1e6][rng.random_range(0..3)] * magnitude;
    let values = (0..n * d).map(|_| offset + magnitude * rng.random_range(-1.0..1.0)).collect();
    let table = Table::unnamed(d, values).unwrap();
    let scale = if rng.random_bool(0.5) { Scale::Standard } else { Scale::None };
    let params = PlanParams::default().landmarks(rng.random_range(1..=n)).scale(scale);
    Arc::new(plan_for(&table, params).unwrap().0)
}

/// Makes random sums that are consistent with each other.
fn sketch(plan: &Arc<Plan>, rng: &mut ChaCha8Rng) -> Sketch {
    let (d, m) = (plan.dims(), plan.features.points().len());
    let mut sums = Sums::zero(plan);
    let bits = rng.random_range(0..30);
    let (mut total, mut squares) = (vec![0; d], vec![0; d]);
    for cell in 0..m {
        let rows = if rng.random_bool(0.3) { 0 } else { rng.random_range(0..=1i128 << bits) };
        sums[Sum::CellRows][cell] = rows;
        sums[Sum::Rows][0] += rows;
        for k in (0..d).filter(|_| rows > 0) {
            // Equal rows, sometimes with one distant row.
            let q = rng.random_range(-(1i128 << 44)..=1 << 44) >> rng.random_range(0..44);
            let far = if rows > 1 && rng.random_bool(0.5) {
                rng.random_range(-(1i128 << 44)..=1 << 44)
            } else {
                q
            };
            let (sum, square) = (q * (rows - 1) + far, q * q * (rows - 1) + far * far);
            sums[Sum::CellSum][cell * d + k] = sum;
            sums[Sum::CellSquare][cell * d + k] = square;
            total[k] += sum;
            squares[k] += square;
        }
    }
    let n = sums[Sum::Rows][0];
    for k in 0..d {
        sums[Sum::Sum][k] = total[k];
        for l in 0..k {
            // Columns are uncorrelated, up to rounding.
            sums[Sum::Outer][k * (k + 1) / 2 + l] =
                total[k].checked_mul(total[l]).map_or(0, |p| p / n.max(1));
        }
        sums[Sum::Outer][k * (k + 3) / 2] = squares[k];
    }
    let one = 1i128 << 23;
    for sum in [Sum::Features, Sum::Coverage] {
        sums[sum]
            .iter_mut()
            .for_each(|x| *x = if n > 0 { rng.random_range(0..=n * one) } else { 0 });
    }
    match Sketch::from_sums(plan.clone(), sums) {
        Ok(sketch) => sketch,
        // If the products are too large, the sketch is empty.
        Err(_) => Sketch::empty(plan.clone()),
    }
}

#[test]
fn every_command_ends_in_time() {
    let wanted =
        std::env::var("NYSKETCH_COMMANDS").ok().and_then(|n| n.parse().ok()).unwrap_or(COMMANDS);
    let f = Folder::new();
    let (mut run, mut seed, mut done) = (0, 0, [0; 2]);
    while run < wanted {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        seed += 1;
        let plan = plan(&mut rng);
        f.write("a.nys", sketch(&plan, &mut rng).to_bytes());
        f.write("b.nys", sketch(&plan, &mut rng).to_bytes());
        let k = rng.random_range(1..4);
        let picture = ["svg", "png"][rng.random_range(0..2)];
        for line in [
            "inspect a.nys".to_string(),
            format!("fit kmeans a.nys -k {k} -o m.json"),
            format!("fit gmm a.nys -k {k} -o g.json --plot g.{picture}"),
            "fit pca a.nys -k 1 -o p.json".to_string(),
            format!("fit kmeans a.nys -k 1..{k} -o c.json --plot c.{picture}"),
            format!("fit kmedians a.nys -k {k} -o d.json --decoder kernel"),
            format!("diff a.nys b.nys --draws 19 --plot d.{picture}"),
            "report a.nys --most-clusters 3 -o r.html".to_string(),
            "merge a.nys b.nys -o ab.nys".to_string(),
            "subtract a.nys b.nys -o rest.nys".to_string(),
        ] {
            let output = f.command(&line).arg("--force").timeout(LIMIT).output().unwrap();
            let code = output.status.code();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(code, Some(0..=2)), "seed {seed}: {line}: {code:?}\n{said}");
            assert!(!said.contains("panicked"), "seed {seed}: {line}\n{said}");
            done[usize::from(code == Some(0))] += 1;
            run += 1;
        }
    }
    // More than half of the commands must succeed.
    assert!(done[1] > done[0], "{done:?}");
}
