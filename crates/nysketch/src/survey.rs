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
    /// What each row of the sample counts: its weight where the sample holds every row, else 1,
    /// since the weight has steered the sampling.
    pub sample_weights: Vec<f64>,
    /// Whether the sample holds every row that counts.
    pub sampled_all: bool,
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
    // Each row is followed by its weight.
    let reservoir = Reservoir::new(params.sample_rows, d + 1, params.seed);
    let fold =
        Mutex::new(OrderedFold { total: Moments::new(d), next: 0, waiting: BTreeMap::new() });
    let finish = |part: Option<(usize, Moments)>| {
        if let Some((number, moments)) = part {
            fold.lock().unwrap_or_else(|e| e.into_inner()).add(number, moments);
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
                Some(w) => match w.units(weight, params.invalid, block, row_number)? {
                    Some(units) => f64::from(units),
                    None => {
                        kept.skipped += 1;
                        continue;
                    }
                },
            };
            kept.rows += 1;
            kept.weight += units;
            let place = Place { file: block.file_index, row: row_number };
            reservoir.offer(place, units, row, units);
            valid.push((row, units));
        }
        kept.set_columns(&valid);
        moments.merge(&kept);
        Ok(())
    };
    for last in pass(source, params.threads, progress, || None, visit)? {
        finish(last);
    }
    let total = fold.into_inner().unwrap_or_else(|e| e.into_inner()).finish();
    if !(total.weight > 0.0) {
        return Err(Error::NoRows { skipped: total.skipped });
    }
    let columns = (0..d).map(|j| total.column(j)).collect();
    let sampled_all = reservoir.threshold() == f64::INFINITY;
    let (mut sample, mut sample_weights) = (Vec::new(), Vec::new());
    for row in reservoir.into_rows().chunks_exact(d + 1) {
        sample.extend_from_slice(&row[..d]);
        sample_weights.push(if sampled_all { row[d] } else { 1.0 });
    }
    Ok(Survey {
        rows: total.rows,
        skipped: total.skipped,
        columns,
        sample,
        sample_weights,
        sampled_all,
    })
}

fn refuse(invalid: Invalid, block: &Block, row: u64, column: &str, value: f64) -> Result<()> {
    match invalid {
        Invalid::Skip => Ok(()),
        Invalid::Refuse => Err(Error::NonFinite { at: block.cell(row, column), value }),
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

    /// The statistics of one column. Values beyond 1e150, whose squares overflow, are told by
    /// their range instead.
    fn column(&self, j: usize) -> Column {
        let (low, high) = (self.low[j], self.high[j]);
        let deviation = (self.m2[j] / self.weight).max(0.0).sqrt();
        let (mean, half) = (self.mean[j], high / 2.0 - low / 2.0);
        Column {
            low,
            high,
            mean: if mean.is_finite() { mean.clamp(low, high) } else { low / 2.0 + high / 2.0 },
            deviation: if self.m2[j].is_finite() { deviation } else { half },
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
        for j in 0..self.mean.len() {
            self.low[j] = self.low[j].min(other.low[j]);
            self.high[j] = self.high[j].max(other.high[j]);
        }
        if !(other.weight > 0.0) {
            return;
        }
        if !(self.weight > 0.0) {
            self.weight = other.weight;
            self.mean.clone_from(&other.mean);
            self.m2.clone_from(&other.m2);
            return;
        }
        let weight = self.weight + other.weight;
        for j in 0..self.mean.len() {
            let delta = other.mean[j] - self.mean[j];
            self.m2[j] += other.m2[j] + delta * delta * (self.weight / weight * other.weight);
            self.mean[j] += delta * (other.weight / weight);
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

    /// Everything; a part without blocks never came, so later ones may still be waiting.
    fn finish(mut self) -> Moments {
        for moments in self.waiting.values() {
            self.total.merge(moments);
        }
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Table;

    const PARAMS: SurveyParams =
        SurveyParams { sample_rows: 10, seed: 1, invalid: Invalid::Refuse, threads: 1 };

    #[test]
    fn statistics_are_those_of_the_table_for_any_number_of_threads() {
        let values: Vec<f64> = (0..4000).map(|i| 1e6 + f64::from(i % 17) * 0.25).collect();
        let table = Table::unnamed(2, values.clone()).unwrap().with_part_rows(37);
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

    /// Parts without blocks, as an empty row group gives, must not hold up those after them.
    #[test]
    fn empty_parts_lose_nothing() {
        use crate::rows::{RowPart, RowStream};
        struct Holes(Table);
        struct HolesStream<'a>(Box<dyn RowStream<'a> + 'a>, bool);
        struct Hole;
        impl RowPart for Hole {
            fn for_each_block(
                self: Box<Self>,
                _: &mut dyn FnMut(&Block) -> Result<()>,
            ) -> Result<()> {
                Ok(())
            }
        }
        impl RowSource for Holes {
            fn columns(&self) -> &[String] {
                self.0.columns()
            }
            fn open(&self) -> Result<Box<dyn RowStream<'_> + '_>> {
                Ok(Box::new(HolesStream(self.0.open()?, false)))
            }
        }
        impl<'a> RowStream<'a> for HolesStream<'a> {
            fn next_part(&mut self) -> Result<Option<Box<dyn RowPart + 'a>>> {
                self.1 = !self.1;
                if self.1 { Ok(Some(Box::new(Hole))) } else { self.0.next_part() }
            }
        }
        let table = Table::unnamed(1, (0..100).map(f64::from).collect()).unwrap().with_part_rows(7);
        let whole = survey(&table, None, PARAMS, &()).unwrap();
        let holes = survey(&Holes(table), None, PARAMS, &()).unwrap();
        assert_eq!((holes.rows, holes.columns), (100, whole.columns));
    }

    #[test]
    fn huge_values_have_a_deviation() {
        for size in [1e155, 1e300] {
            let table = Table::unnamed(1, vec![size, 2.0 * size, 3.0 * size]).unwrap();
            let column = survey(&table, None, PARAMS, &()).unwrap().columns[0];
            assert!((0.5 * size..1.01 * size).contains(&column.deviation), "{column:?}");
            assert!((column.mean / size - 2.0).abs() < 1e-9);
        }
    }

    #[test]
    fn invalid_rows_are_named_or_counted() {
        let mut values = vec![1.0; 20];
        values[7] = f64::NAN;
        let table = Table::unnamed(2, values).unwrap();
        let error = survey(&table, None, PARAMS, &()).unwrap_err().to_string();
        assert!(error.contains("row 4, column 'c1'"), "{error}");
        let skip = SurveyParams { invalid: Invalid::Skip, ..PARAMS };
        let ok = survey(&table, None, skip, &()).unwrap();
        assert_eq!((ok.rows, ok.skipped), (9, 1));
        let all_bad = Table::unnamed(1, vec![f64::NAN; 3]).unwrap();
        assert!(matches!(survey(&all_bad, None, skip, &()), Err(Error::NoRows { skipped: 3 })));
    }
}
