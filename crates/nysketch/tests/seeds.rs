//! The fuzz targets of plans, sketches and models on the stable toolchain: golden files and models,
//! each damaged in many ways. `COPIES=1000000 cargo test -p nysketch --test seeds` tries more.

#[path = "../../../fuzz/fuzz_targets/damage.rs"]
mod damage;
#[path = "../../../fuzz/fuzz_targets/file.rs"]
mod file;

use nysketch::{FitParams, Mixture, PlanParams, Sketch, SketchParams, Table, Task, fit, plan_for};
use std::sync::Arc;

/// Number of damaged copies of every file, unless the environment sets another number.
const COPIES: u64 = 2000;

fn replay(seeds: &[Vec<u8>], target: fn(&[u8])) {
    let copies = std::env::var("COPIES").map_or(COPIES, |n| n.parse().unwrap());
    for (i, seed) in seeds.iter().enumerate() {
        target(seed);
        (0..copies).for_each(|copy| target(&damage::damaged(seed, copy + ((i as u64) << 32))));
    }
}

#[test]
fn plans_and_sketches() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut seeds = Vec::new();
    for version in ["v1", "v2", "v3"] {
        for entry in std::fs::read_dir(golden.join(version)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "nys") {
                seeds.push(std::fs::read(path).unwrap());
            }
        }
    }
    assert!(seeds.len() >= 16);
    replay(&seeds, file::plan_or_sketch);
}

#[test]
fn models() {
    let rows = Mixture::new(2, 3, 3.0, 1).unwrap().rows(0, 500).values;
    let table = Table::unnamed(2, rows).unwrap();
    let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(20)).unwrap().0);
    let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
    let mut seeds = Vec::from([Task::Kmeans, Task::Gmm, Task::Pca].map(|task| {
        let model = fit(&sketch, &FitParams::new(task, 2)).unwrap();
        model.to_json().into_bytes()
    }));
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models");
    for entry in std::fs::read_dir(golden).unwrap() {
        seeds.push(std::fs::read(entry.unwrap().path()).unwrap());
    }
    assert!(seeds.len() >= 10);
    replay(&seeds, file::model);
}
