//! Parses the values of options.

use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use nysketch::{DeviceChoice, LandmarkCount, Named, SampleRows};
use std::path::PathBuf;

pub fn device(name: &str) -> Result<DeviceChoice, String> {
    DeviceChoice::from_name(name).map_err(|_| "auto, cpu, cuda or cuda:N, N counting from 0".into())
}

/// COLUMN=WEIGHT.
pub fn column_weight(text: &str) -> Result<(String, f64), String> {
    let both =
        text.rsplit_once('=').and_then(|(name, w)| Some((name.to_string(), w.parse().ok()?)));
    both.ok_or_else(|| "expected COLUMN=WEIGHT".to_string())
}

/// COLUMN=K.
pub fn rows_per(text: &str) -> Result<(String, u64), String> {
    let both =
        text.rsplit_once('=').and_then(|(name, k)| Some((name.into(), k.trim().parse().ok()?)));
    both.ok_or_else(|| "expected COLUMN=K, as in user_id=10".to_string())
}

/// COLUMN=LOW..HIGH.
pub fn bounds(text: &str) -> Result<(String, f64, f64), String> {
    let parts = text.rsplit_once('=').and_then(|(name, range)| {
        let (low, high) = range.split_once("..")?;
        Some((name.to_string(), low.trim().parse().ok()?, high.trim().parse().ok()?))
    });
    parts.ok_or_else(|| "expected COLUMN=LOW..HIGH".to_string())
}

/// A number above 0.
pub fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|x: &f64| *x > 0.0 && x.is_finite());
    factor.ok_or_else(|| "expected a number above 0".to_string())
}

/// A number from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|x| (0.0..=1.0).contains(x));
    share.ok_or_else(|| "expected a number from 0 to 1".to_string())
}

/// A single ASCII character, or `\t`.
pub fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [c] if c.is_ascii() && !b"\"\n\r".contains(c) => Ok(*c),
        _ => Err("expected one ASCII character, or \\t".into()),
    }
}

/// A positive number of seconds.
pub fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse().ok().filter(|s: &f64| *s > 0.0);
    seconds
        .and_then(|s| std::time::Duration::try_from_secs_f64(s).ok())
        .ok_or_else(|| "expected a number of seconds above 0".into())
}

/// Choices of the library, by name.
pub fn choices<T: Named>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::choices().map(|c| PossibleValue::new(c.name).help(c.about)))
        .try_map(|name| T::from_name(&name))
}

pub fn picture() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(nysketch_report::plot::path)
}

pub fn landmark_count(text: &str) -> Result<LandmarkCount, String> {
    text.parse().map_err(|_| "expected a number or 'auto'".to_string())
}

pub fn sample_rows(text: &str) -> Result<SampleRows, String> {
    text.parse().map_err(|_| "expected a number or 'all'".to_string())
}
