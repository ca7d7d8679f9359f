//! Notes on common problems of real tables: ids, constants and columns of very different scales.

use super::choices::Scale;
use crate::planning::survey::{Column, Survey};

/// Smallest number of sampled rows for which distinct whole numbers suggest an id.
const MIN_ROWS: usize = 100;
/// Largest range of an id, relative to the number of rows.
const SPARSE: f64 = 20.0;
/// Ratio of standard deviations above which one column hides another.
const UNEVEN: f64 = 100.0;
/// Largest number of columns named in a note.
const NAMED: usize = 5;

/// Notes on properties of the columns that affect distances.
pub fn of_columns(columns: &[String], found: &Survey, scale: Scale) -> Vec<String> {
    let d = columns.len();
    let ids: Vec<usize> = (0..d).filter(|j| looks_like_id(found, *j)).collect();
    let constant: Vec<usize> = (0..d)
        .filter(|j| found.columns[*j].low == found.columns[*j].high && found.rows > 1)
        .collect();
    let mut remarks = Vec::new();
    for j in ids.iter().take(NAMED) {
        remarks
            .push(format!("column '{}' looks like an id: `exclude={}`", columns[*j], columns[*j]));
    }
    if !constant.is_empty() {
        let (noun, verb) =
            if constant.len() == 1 { ("column", "has") } else { ("columns", "have") };
        let names = quoted(columns, &constant);
        remarks.push(format!("{noun} {names} {verb} the same value in every row"));
    }
    if scale == Scale::None {
        remarks.extend(uneven(columns, found, &ids));
    }
    remarks
}

/// The names of some columns, in quotes. Only the first [`NAMED`] are listed.
fn quoted(columns: &[String], which: &[usize]) -> String {
    let names: Vec<String> =
        which.iter().take(NAMED).map(|j| format!("'{}'", columns[*j])).collect();
    let more = if which.len() > NAMED { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}

/// Whether a column looks like an id, and chance can be excluded: of as many numbers drawn at
/// random from its range, two would be equal except with probability e⁻²⁰.
pub fn is_surely_id(found: &Survey, j: usize) -> bool {
    let Column { low, high, .. } = found.columns[j];
    let values = (found.sample.len() / found.columns.len()) as f64;
    values * values > 40.0 * (high - low + 1.0) && looks_like_id(found, j)
}

/// Whether all sampled values of a column are distinct whole numbers in a narrow range.
fn looks_like_id(found: &Survey, j: usize) -> bool {
    let Column { low, high, .. } = found.columns[j];
    let d = found.columns.len();
    let values = found.sample.iter().skip(j).step_by(d).copied().filter(|x| !x.is_nan());
    if high - low > SPARSE * found.rows as f64 || values.clone().any(|x| x.fract() != 0.0) {
        return false;
    }
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.len() >= MIN_ROWS && values.windows(2).all(|w| w[0] < w[1])
}

/// A note if the columns that vary most would dominate distances.
fn uneven(columns: &[String], found: &Survey, ids: &[usize]) -> Option<String> {
    let varying = found.columns.iter().zip(columns).enumerate();
    let varying = varying
        .filter(|(j, (c, _))| c.deviation > 0.0 && c.low < c.high && !ids.contains(j))
        .map(|(_, (c, name))| (c.deviation, name));
    let (small, steady) = varying.clone().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let (large, name) = varying.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (large > UNEVEN * small).then(|| {
        format!(
            "column '{name}' varies {:.0} times as much as '{steady}' and will dominate the \
             distances; consider `scale=standard`",
            large / small
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::planning::{PlanParams, plan_for};
    use crate::rows::Table;

    fn notes(row: impl Fn(usize) -> [f64; 3]) -> String {
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let table = Table::new(names, (0..400).flat_map(row).collect()).unwrap();
        plan_for(&table, PlanParams::default().landmarks(10)).unwrap().report.notes.join("; ")
    }

    fn noise(i: usize) -> f64 {
        (i as f64 * 0.7).sin()
    }

    #[test]
    fn ids_and_constants_are_mentioned() {
        let found = notes(|i| [(i * 7919 % 400) as f64 + 1e6, noise(i), 5.0]);
        assert!(found.contains("column 'a' looks like an id: `exclude=a`"), "{found}");
        assert!(found.contains("column 'c' has the same value"), "{found}");
        assert!(!found.contains("dominate"), "{found}");
        // Repeated or widely spread whole numbers are data.
        let found = notes(|i| [(i % 90) as f64, (i * i) as f64, noise(i)]);
        assert!(!found.contains("looks like an id"), "{found}");
        assert!(found.contains("'b' varies"), "{found}");
    }
}
