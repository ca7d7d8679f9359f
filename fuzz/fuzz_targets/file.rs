//! Properties of readers of plans, sketches and models, for the fuzzer and for tests.

use nysketch::Model;
use nysketch::format::{File, decode};
use nysketch::predictor::{Detail, ModelRows};

/// Any bytes give an error or a file that encodes to the same bytes, never a panic or a hang. The
/// checksum is corrected first, so that the checks after it are tested, too.
pub fn plan_or_sketch(data: &[u8]) {
    let mut bytes = data.to_vec();
    if let Some(body) = bytes.len().checked_sub(4) {
        let checksum = crc32fast::hash(&bytes[..body]).to_le_bytes();
        bytes[body..].copy_from_slice(&checksum);
    }
    match decode(&bytes) {
        Ok(File::Plan(plan)) => assert_eq!(plan.to_bytes(), bytes),
        Ok(File::Sketch(sketch)) => assert_eq!(sketch.to_bytes(), bytes),
        Ok(File::Release(release)) => {
            assert_eq!(release.to_bytes(), bytes);
            // A release with extreme values may have no reconstruction.
            let _ = release.estimate();
        }
        Ok(File::Masked(masked)) => assert_eq!(masked.to_bytes(), bytes),
        Err(_) => {}
    }
}

/// Any text gives an error or a model whose predictions are numbers.
pub fn model(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(model) = Model::from_json(text) else { return };
    assert_eq!(Model::from_json(&model.to_json()).unwrap(), model);
    // Skips models that would take long to apply.
    if model.columns.len() * model.k() < 10_000 {
        let rows = [vec![0.0; model.columns.len()], vec![1e100; model.columns.len()]].concat();
        // Code of the last level of every category, which means a missing value.
        let missing: Vec<u32> = model.categories().iter().map(|c| c.missing()).collect();
        let rows = ModelRows { values: &rows, codes: &missing.repeat(2) };
        let said = nysketch::Predictor::new(&model).predict(rows, Detail::All);
        assert!(said.squared_distance.iter().all(|x| x.is_finite()));
        assert!(!said.transformed.iter().any(|x| x.is_nan()));
    }
}
