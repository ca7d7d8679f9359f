//! Reading of NumPy files.

use std::path::Path;

/// Reads a little-endian, row-major NumPy file of float32 or float64; returns the number of columns
/// and the values.
pub fn read(path: &Path) -> Option<(usize, Vec<f64>)> {
    let bytes = std::fs::read(path).ok()?;
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8_lossy(&bytes[10..10 + length]);
    let columns =
        header.split("'shape': (").nth(1)?.split([',', ')']).nth(1)?.trim().parse().ok()?;
    let data = &bytes[10 + length..];
    let values = if header.contains("<f4") {
        data.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect()
    } else {
        data.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
    };
    Some((columns, values))
}
