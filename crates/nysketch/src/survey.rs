//! The first pass of planning: how many rows, the statistics of every column, and a sample.
//!
//! Statistics are gathered per part and combined in the order of the parts, so that the same files
//! give the same plan whatever the number of threads.

use crate::error::{Error, Result};
use crate::rows::{Block, Invalid, Progress, RowSource, pass};
use crate::sample::{Place, Reservoir};
use crate::weight::Weighting;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// What one pass tells about a table.
#[derive(Debug, Clone)]
pub struct Survey {
    /// Rows read, without the skipped ones, each counted once whatever its weight.
    pub rows: u64,
    /// Rows skipped as invalid.
    pub skipped: u64,
    /// One entry a column.
    pub columns: Vec<Column>,
    /// A uniform sample of the rows (by weight, where rows are weighted), row-major.
    pub sample: Vec<f64>,
}

/// Statistics of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Column {
    /// Smallest value.
    pub low: f64,
    /// Largest value.
    pub high: f64,
    /// Mean.
    pub mean: f64,
    /// Population standard deviation.
    pub deviation: f64,
}

/// How to survey.
#[derive(Debug, Clone, Copy)]
pub struct SurveyParams {
    /// Rows to sample.
    pub sample_rows: usize,
    /// Seed of the sample.
    pub seed: u64,
    /// What to do with invalid rows.
    pub invalid: Invalid,
    /// Threads to use.
    pub threads: usize,
}

/// Reads the source once.
pub fn survey(
    source: &dyn RowSource,
    weighting: Option<&Weighting>,
    params: SurveyParams,
    progress: &dyn Progress,
) -> Result<Survey> {
    let columns = source.columns();
    let d = columns.len();
    let reservoir = Reservoir::new(params.sample_rows, d, params.seed);
    let fold = Mutex::new(OrderedFold {
        total: Moments::new(d),
        next: 0,
        waiting: BTreeMap::new(),
    });
    let finish = |part: Option<(usize, Moments)>| {
        if let Some((number, moments)) = part {
            fold.lock()
                .unwrap_or_else(|e| e.into_inner())
                .add(number, moments);
        }
    };
    let visit = |current: &mut Option<(usize, Moments)>, part: usize, block: &Block| {
        if current.as_ref().is_none_or(|(number, _)| *number != part) {
            finish(current.replace((part, Moments::new(d))));
        }
        let Some((_, moments)) = current else {
            return Ok(());
        };
        let mut kept = Moments::new(d);
        let mut valid = Vec::with_capacity(block.len());
        for (row_number, row, weight) in block.rows() {
            if let Some(j) = row.iter().position(|x| !x.is_finite()) {
                refuse(params.invalid, block, row_number, &columns[j], row[j])?;
                kept.skipped += 1;
                continue;
            }
            let units = match weighting {
                None => 1.0,
                Some(w) if weight.is_finite() => f64::from(w.units(weight, block, row_number)?),
                Some(w) => {
                    refuse(params.invalid, block, row_number, &w.column, weight)?;
                    kept.skipped += 1;
                    continue;
                }
            };
            kept.rows += 1;
            kept.weight += units;
            reservoir.offer(
                Place {
                    file: block.file_index,
                    row: row_number,
                },
                units,
                row,
            );
            valid.push((row, units));
        }
        kept.set_columns(&valid);
        moments.merge(&kept);
        Ok(())
    };
    for last in pass(source, params.threads, progress, || None, visit)? {
        finish(last);
    }
    let total = fold.into_inner().unwrap_or_else(|e| e.into_inner()).total;
    if !(total.weight > 0.0) {
        return Err(Error::NoRows {
            skipped: total.skipped,
        });
    }
    let columns = (0..d)
        .map(|j| Column {
            low: total.low[j],
            high: total.high[j],
            mean: total.mean[j].clamp(total.low[j], total.high[j]),
            deviation: (total.m2[j] / total.weight).max(0.0).sqrt(),
        })
        .collect();
    Ok(Survey {
        rows: total.rows,
        skipped: total.skipped,
        columns,
        sample: reservoir.into_rows(),
    })
}

fn refuse(invalid: Invalid, block: &Block, row: u64, column: &str, value: f64) -> Result<()> {
    match invalid {
        Invalid::Skip => Ok(()),
        Invalid::Refuse => Err(Error::NonFinite {
            at: block.cell(row, column),
            value,
        }),
    }
}

/// Count, mean, sum of squared deviations and range of every column.
#[derive(Debug, Clone)]
struct Moments {
    rows: u64,
    skipped: u64,
    weight: f64,
    mean: Vec<f64>,
    m2: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Moments {
    fn new(d: usize) -> Self {
        Moments {
            rows: 0,
            skipped: 0,
            weight: 0.0,
            mean: vec![0.0; d],
            m2: vec![0.0; d],
            low: vec![f64::INFINITY; d],
            high: vec![f64::NEG_INFINITY; d],
        }
    }

    /// Two passes over rows that are in the cache: the mean, then the deviations from it.
    fn set_columns(&mut self, rows: &[(&[f64], f64)]) {
        for (row, weight) in rows {
            for (j, &x) in row.iter().enumerate() {
                self.mean[j] += weight / self.weight * x;
                self.low[j] = self.low[j].min(x);
                self.high[j] = self.high[j].max(x);
            }
        }
        for (row, weight) in rows {
            for (j, &x) in row.iter().enumerate() {
                self.m2[j] += weight * (x - self.mean[j]).powi(2);
            }
        }
    }

    /// Chan, Golub and LeVeque's combination of two sets.
    fn merge(&mut self, other: &Moments) {
        self.rows += other.rows;
        self.skipped += other.skipped;
        if !(other.weight > 0.0) {
            return;
        }
        let weight = self.weight + other.weight;
        for j in 0..self.mean.len() {
            let delta = other.mean[j] - self.mean[j];
            self.m2[j] += other.m2[j] + delta * delta * (self.weight / weight * other.weight);
            self.mean[j] += delta * (other.weight / weight);
            self.low[j] = self.low[j].min(other.low[j]);
            self.high[j] = self.high[j].max(other.high[j]);
        }
        self.weight = weight;
    }
}

/// Combines parts in their order as soon as all earlier ones are there.
struct OrderedFold {
    total: Moments,
    next: usize,
    waiting: BTreeMap<usize, Moments>,
}

impl OrderedFold {
    fn add(&mut self, number: usize, moments: Moments) {
        self.waiting.insert(number, moments);
        while let Some(moments) = self.waiting.remove(&self.next) {
            self.total.merge(&moments);
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Table;

    const PARAMS: SurveyParams = SurveyParams {
        sample_rows: 10,
        seed: 1,
        invalid: Invalid::Refuse,
        threads: 1,
    };

    #[test]
    fn statistics_are_those_of_the_table_for_any_number_of_threads() {
        let values: Vec<f64> = (0..4000).map(|i| 1e6 + f64::from(i % 17) * 0.25).collect();
        let table = Table::unnamed(2, values.clone())
            .unwrap()
            .with_part_rows(37);
        let one = survey(&table, None, PARAMS, &()).unwrap();
        for threads in 2..6 {
            let many = survey(&table, None, SurveyParams { threads, ..PARAMS }, &()).unwrap();
            assert_eq!(many.columns, one.columns);
            assert_eq!(many.sample, one.sample);
        }
        let first: Vec<f64> = values.iter().step_by(2).copied().collect();
        let mean = first.iter().sum::<f64>() / first.len() as f64;
        let var = first.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / first.len() as f64;
        // The mean of values near 1e6 is exact to 1e-9, the deviation to 1e-9 relative.
        assert!((one.columns[0].mean - mean).abs() < 1e-8);
        assert!((one.columns[0].deviation / var.sqrt() - 1.0).abs() < 1e-9);
        assert_eq!((one.rows, one.sample.len()), (2000, 20));
    }

    #[test]
    fn invalid_rows_are_named_or_counted() {
        let mut values = vec![1.0; 20];
        values[7] = f64::NAN;
        let table = Table::unnamed(2, values).unwrap();
        let error = survey(&table, None, PARAMS, &()).unwrap_err().to_string();
        assert!(error.contains("row 4, column 'c1'"), "{error}");
        let skip = SurveyParams {
            invalid: Invalid::Skip,
            ..PARAMS
        };
        let ok = survey(&table, None, skip, &()).unwrap();
        assert_eq!((ok.rows, ok.skipped), (9, 1));
        let all_bad = Table::unnamed(1, vec![f64::NAN; 3]).unwrap();
        assert!(matches!(
            survey(&all_bad, None, skip, &()),
            Err(Error::NoRows { skipped: 3 })
        ));
    }
}
