//! The survey, the first pass of planning: the number of rows, the statistics of every column, and
//! a sample.
//!
//! Statistics are computed over chunks of 64 rows, cut by position, and combined in a tree over the
//! chunk numbers. The same rows therefore give the same plan, for any split into parts and files,
//! any file format and any number of threads.

use crate::error::{Error, Result};
use crate::planning::statistics::{CHUNK, Moment, Moments, Piece, Tree};
use crate::rows::sample::Reservoir;
use crate::rows::weight::{WeightParams, WeightRange};
use crate::rows::wire::{WireReader, put_number, put_text, put_whole};
use crate::rows::{Block, Invalid, Losses, Lost, MAX_TEXTS, MISSING, Progress, RowSource, pass};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// The result of one pass over a table.
#[derive(Debug, Clone)]
pub struct Survey {
    /// Number of rows read, without skipped rows. Each row counts once, regardless of its weight.
    pub rows: u64,
    /// Rows skipped as invalid.
    pub losses: Losses,
    /// Total weight of the rows: in units if the unit is known, otherwise as in the table.
    pub weight: f64,
    /// Range of the weights, if rows are weighted.
    pub(crate) weights: WeightRange,
    /// Statistics, one entry per column.
    pub columns: Vec<Column>,
    /// Levels, one entry per category.
    pub levels: Vec<Levels>,
    /// A uniform sample of the rows (by weight, if rows are weighted), row-major. Missing values
    /// are NaN.
    pub sample: Vec<f64>,
    /// Codes of the sampled rows' levels, as indices into [`Levels::texts`]. A missing value is
    /// [`MISSING`].
    pub codes: Vec<u32>,
    /// Weight of each sampled row. If the sample holds every row, the row's own weight. Otherwise
    /// about 1, because rows were drawn by weight, and more for a weight so large that the row was
    /// certain to be kept.
    pub sample_weights: Vec<f64>,
    /// Whether the sample holds every row with a positive weight.
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
    /// Share of the rows, by weight, with a value. The statistics describe these rows.
    pub present: f64,
    /// Number of rows without a value.
    pub missing: u64,
}

/// Levels of a category.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// Text and number of rows of each code.
    pub texts: Vec<(Arc<str>, u64)>,
    /// Number of rows without a value.
    pub missing: u64,
    /// The reason why some texts are not in the list, if any are not.
    pub lost: Option<Lost>,
}

impl Levels {
    /// Merges the levels of other rows. Returns the code here of each code in `other`.
    fn merge(&mut self, other: Levels) -> Vec<u32> {
        let known = self.texts.iter().enumerate().map(|(i, (text, _))| (text.clone(), i as u32));
        let mut known: HashMap<Arc<str>, u32> = known.collect();
        self.missing += other.missing;
        self.lost = self.lost.max(other.lost);
        let mut codes = Vec::with_capacity(other.texts.len());
        for (text, rows) in other.texts {
            let code = *known.entry(text.clone()).or_insert_with(|| {
                self.texts.push((text, 0));
                self.texts.len() as u32 - 1
            });
            self.texts[code as usize].1 += rows;
            codes.push(code);
        }
        // The same limit as on one machine.
        if self.texts.iter().filter(|(_, rows)| *rows > 0).count() > MAX_TEXTS {
            self.lost = self.lost.max(Some(Lost::TooMany));
        }
        codes
    }
}

/// Parameters of a survey.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SurveyParams {
    /// Number of rows to sample.
    pub sample_rows: usize,
    /// Seed of the sample.
    pub seed: u64,
    /// Treatment of invalid rows.
    pub invalid: Invalid,
    /// Whether missing values are allowed.
    pub partial: bool,
    /// Number of threads.
    pub threads: usize,
}

/// The survey of a part of the rows. Parts merge into the survey of all rows.
#[derive(Debug)]
pub struct SurveyPart {
    rows: u64,
    losses: Losses,
    weights: WeightRange,
    /// Keyed by the position of the first row, so that the order of merging does not matter.
    moments: BTreeMap<u64, Moments>,
    /// One entry per category. The codes in the sample refer to it.
    levels: Vec<Levels>,
    reservoir: Reservoir,
}

impl SurveyPart {
    /// Merges the survey of other rows.
    pub fn merge(&mut self, other: SurveyPart) {
        self.rows += other.rows;
        self.losses.merge(&other.losses);
        self.weights.merge(other.weights);
        for (position, moments) in other.moments {
            let known = self.moments.remove(&position);
            let both = known.map_or(moments.clone(), |m| m.merged(&moments));
            self.moments.insert(position, both);
        }
        self.levels.resize(self.levels.len().max(other.levels.len()), Levels::default());
        let recode: Vec<Vec<u32>> = self
            .levels
            .iter_mut()
            .zip(other.levels)
            .map(|(mine, theirs)| mine.merge(theirs))
            .collect();
        self.reservoir.merge_with(other.reservoir, |row| {
            // A row holds its numeric values, then its codes, then its weight.
            let end = row.len() - 1;
            let codes = &mut row[end - recode.len()..end];
            for (code, recode) in codes.iter_mut().zip(&recode) {
                if let Some(new) = recode.get(*code as usize) {
                    *code = f64::from(*new);
                }
            }
        });
    }

    /// Computes the survey of all rows.
    pub fn finish(self) -> Result<Survey> {
        let (rows, losses, weights) = (self.rows, self.losses, self.weights);
        let total = self.moments.into_values().reduce(|total, m| total.merged(&m));
        let Some(total) = total.filter(|t| t.weight > 0.0) else {
            return Err(Error::NoRows { skipped: losses.skipped() });
        };
        let d = total.columns.len();
        let columns = (0..d).map(|j| total.column(j)).collect();
        let threshold = self.reservoir.threshold();
        let sampled_all = threshold == f64::INFINITY;
        let mut sample = Vec::with_capacity(d * self.reservoir.len());
        let (mut codes, mut sample_weights) = (Vec::new(), Vec::new());
        let end = d + self.levels.len();
        self.reservoir.each_row(|row| {
            sample.extend_from_slice(&row[..d]);
            codes.extend(row[d..end].iter().map(|code| *code as u32));
            sample_weights.push(if sampled_all { row[end] } else { drawn(row[end], threshold) });
        });
        let (weight, levels) = (total.weight, self.levels);
        Ok(Survey {
            rows,
            losses,
            weight,
            weights,
            columns,
            levels,
            sample,
            codes,
            sample_weights,
            sampled_all,
        })
    }

    /// Serialises the part for another machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let d = self.moments.values().next().map_or(0, |m| m.columns.len());
        let (skipped, lost) = self.losses.counts();
        for word in [self.rows, skipped, lost.len() as u64].iter().chain(lost) {
            put_whole(&mut out, *word);
        }
        for word in [d as u64, self.moments.len() as u64] {
            put_whole(&mut out, word);
        }
        put_number(&mut out, self.weights.largest);
        put_whole(&mut out, u64::from(self.weights.whole));
        for (position, moments) in &self.moments {
            put_whole(&mut out, *position);
            put_number(&mut out, moments.weight);
            for Moment { weight, missing, mean, m2, low, high } in &moments.columns {
                [weight, mean, m2, low, high].into_iter().for_each(|x| put_number(&mut out, *x));
                put_whole(&mut out, *missing);
            }
        }
        put_whole(&mut out, self.levels.len() as u64);
        for levels in &self.levels {
            put_whole(&mut out, levels.missing);
            put_whole(&mut out, levels.lost.map_or(0, |lost| 1 + lost as u64));
            put_whole(&mut out, levels.texts.len() as u64);
            for (text, rows) in &levels.texts {
                put_whole(&mut out, *rows);
                put_text(&mut out, text);
            }
        }
        out.extend(self.reservoir.to_bytes());
        out
    }

    /// Restores a part from another machine.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut words = WireReader::new(bytes);
        let (rows, skipped) = (words.whole()?, words.whole()?);
        let lost = (0..words.columns()?).map(|_| words.whole()).collect::<Result<_>>()?;
        let losses = Losses::from_counts(skipped, lost);
        let d = words.columns()?;
        let parts = words.count(6 * d + 2)?;
        let weights = WeightRange { largest: words.number()?, whole: words.whole()? == 1 };
        let mut moments = BTreeMap::new();
        for _ in 0..parts {
            let (position, weight) = (words.whole()?, words.number()?);
            let mut columns = Vec::with_capacity(d);
            for _ in 0..d {
                let (weight, mean, m2) = (words.number()?, words.number()?, words.number()?);
                let (low, high, missing) = (words.number()?, words.number()?, words.whole()?);
                columns.push(Moment { weight, missing, mean, m2, low, high });
            }
            moments.insert(position, Moments { weight, columns });
        }
        let mut levels = Vec::new();
        for _ in 0..words.columns()? {
            let missing = words.whole()?;
            let lost = match words.whole()? {
                0 => None,
                1 => Some(Lost::TooMany),
                _ => Some(Lost::TooLong),
            };
            let mut texts = Vec::new();
            for _ in 0..words.count(2)? {
                let rows = words.whole()?;
                texts.push((Arc::from(words.text()?), rows));
            }
            levels.push(Levels { texts, missing, lost });
        }
        let reservoir = Reservoir::read(&mut words)?;
        Ok(SurveyPart { rows, losses, weights, moments, levels, reservoir })
    }
}

/// The weight of a sampled row. A row of weight w is kept with probability 1 − exp(−w t). It
/// represents w divided by that probability, in units of 1/t, which is about 1 unless the weight is
/// large.
fn drawn(w: f64, t: f64) -> f64 {
    w * t / -(-w * t).exp_m1()
}

/// Surveys a source in one reading.
pub fn survey(
    source: &dyn RowSource,
    weighting: Option<&WeightParams>,
    params: SurveyParams,
    progress: &dyn Progress,
) -> Result<Survey> {
    survey_part(source, weighting, params, progress)?.finish()
}

/// Surveys a source that holds a part of the rows, in one reading.
pub fn survey_part(
    source: &dyn RowSource,
    weighting: Option<&WeightParams>,
    params: SurveyParams,
    progress: &dyn Progress,
) -> Result<SurveyPart> {
    let columns = source.columns();
    let (d, categories) = (columns.len(), source.categories());
    // Each row is followed by its codes and its weight.
    let reservoir = Reservoir::new(params.sample_rows, d + categories.len() + 1, params.seed);
    let tree = Mutex::new(Tree::new(d));
    let counts = vec![Counts::default(); categories.len()];
    let survey = RowSurvey { params, weighting, columns, reservoir: &reservoir };
    let threads = pass(
        source,
        params.threads,
        progress,
        || (counts.clone(), Vec::new()),
        |(counts, row), block| {
            let piece = survey.piece(block, counts, row)?;
            tree.lock().unwrap_or_else(|e| e.into_inner()).add(piece);
            Ok(())
        },
    )?;
    let mut found = tree.into_inner().unwrap_or_else(|e| e.into_inner());
    let losses = std::mem::take(&mut found.losses);
    let Tree { first, rows, weights, .. } = found;
    let moments = (rows > 0).then(|| (first, found.total())).into_iter().collect();
    let mut levels = Vec::new();
    for (c, column) in categories.iter().enumerate() {
        let mut all = Counts::default();
        threads.iter().for_each(|(counts, _)| all.merge(&counts[c]));
        let texts = column.vocabulary.texts().into_iter().enumerate();
        let texts = texts.map(|(i, text)| (text, all.rows.get(i).copied().unwrap_or(0))).collect();
        levels.push(Levels { texts, missing: all.missing, lost: column.vocabulary.lost() });
    }
    Ok(SurveyPart { rows, losses, weights, moments, levels, reservoir })
}

/// The survey of the rows of one block.
struct RowSurvey<'a> {
    params: SurveyParams,
    weighting: Option<&'a WeightParams>,
    columns: &'a [String],
    reservoir: &'a Reservoir,
}

impl RowSurvey<'_> {
    /// Statistics of a block. Its rows are offered to the sample, and their levels are added to
    /// `counts`. `kept` is scratch memory.
    fn piece(&self, block: &Block, counts: &mut [Counts], kept: &mut Vec<f64>) -> Result<Piece> {
        let (d, categories) = (self.columns.len(), counts.len());
        let mut piece = Piece::new(block.position, d);
        for (i, (number, row, weight)) in block.rows().enumerate() {
            let position = block.position + i as u64;
            let codes = &block.codes[i * categories..(i + 1) * categories];
            match self.valid_units(block, number, row, weight)? {
                Some(units) => {
                    kept.clear();
                    kept.extend_from_slice(row);
                    kept.extend(codes.iter().map(|code| f64::from(*code)));
                    self.reservoir.offer(position, units, kept, units);
                    piece.push(row, units);
                    counts.iter_mut().zip(codes).for_each(|(counts, code)| counts.add(*code));
                }
                None => {
                    let invalid = (0..d).filter(|j| !self.is_usable(row[*j]));
                    let weight = row.iter().all(|x| self.is_usable(*x)).then_some(d);
                    piece.losses.skip(invalid.chain(weight));
                }
            }
            if (position + 1).is_multiple_of(CHUNK) {
                piece.end_chunk(position + 1);
            }
        }
        piece.end_chunk(block.position + block.len() as u64);
        Ok(piece)
    }

    /// Whether a value is finite, or missing where missing values are allowed.
    #[inline]
    fn is_usable(&self, x: f64) -> bool {
        x.is_finite() || self.params.partial && x.is_nan()
    }

    /// The weight of a row, or `None` if the row is invalid and may be skipped.
    #[inline]
    fn valid_units(
        &self,
        block: &Block,
        number: u64,
        row: &[f64],
        weight: f64,
    ) -> Result<Option<f64>> {
        if let Some(j) = row.iter().position(|x| !self.is_usable(*x)) {
            return match self.params.invalid {
                Invalid::Skip => Ok(None),
                Invalid::Refuse => {
                    let at = block.place(number, &self.columns[j]);
                    Err(Error::NonFinite { at, value: row[j] })
                }
            };
        }
        match self.weighting {
            None => Ok(Some(1.0)),
            Some(weighting) => weighting.count(weight, self.params.invalid, block, number),
        }
    }
}

/// Number of rows with each code of a category.
#[derive(Debug, Clone, Default)]
struct Counts {
    rows: Vec<u64>,
    missing: u64,
}

impl Counts {
    fn add(&mut self, code: u32) {
        match code {
            MISSING => self.missing += 1,
            code if code as usize >= MAX_TEXTS => {}
            code => {
                let code = code as usize;
                if code >= self.rows.len() {
                    self.rows.resize(code + 1, 0);
                }
                self.rows[code] += 1;
            }
        }
    }

    fn merge(&mut self, other: &Counts) {
        self.missing += other.missing;
        self.rows.resize(self.rows.len().max(other.rows.len()), 0);
        self.rows.iter_mut().zip(&other.rows).for_each(|(a, b)| *a += b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{RowSet, RowStream, Table};

    const PARAMS: SurveyParams = SurveyParams {
        sample_rows: 10,
        seed: 1,
        invalid: Invalid::Refuse,
        partial: false,
        threads: 1,
    };

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
        // The mean of values near 1e6 is exact to 1e-9, and the deviation to a relative 1e-9.
        assert!((one.columns[0].mean - mean).abs() < 1e-8);
        assert!((one.columns[0].deviation / var.sqrt() - 1.0).abs() < 1e-9);
        assert_eq!((one.rows, one.sample.len()), (2000, 20));
    }

    /// Any split of the rows into parts gives the same bits.
    #[test]
    fn parts_do_not_show() {
        let values: Vec<f64> = (0..3000).map(|i| (f64::from(i) * 0.7).sin() * 1e3).collect();
        let table = Table::unnamed(3, values).unwrap();
        let weights: Vec<f64> = (0..1000).map(|i| f64::from(i % 4)).collect();
        let table = table.with_weights(weights).unwrap();
        let known = WeightParams { column: "w".into(), unit: Some(1.0) };
        let chosen = WeightParams { unit: None, ..known.clone() };
        for weighting in [None, Some(&known), Some(&chosen)] {
            let whole = survey(&table, weighting, PARAMS, &()).unwrap();
            for rows in [1, 2, 63, 64, 65, 100, 128, 999] {
                let params = SurveyParams { threads: 1 + rows % 3, ..PARAMS };
                let table = table.clone().with_part_rows(rows);
                let cut = survey(&table, weighting, params, &()).unwrap();
                assert_eq!((cut.rows, cut.sample), (1000, whole.sample.clone()));
                assert_eq!(cut.columns, whole.columns, "{rows}");
            }
        }
    }

    /// Some rows of a table, at their original positions.
    struct Slice(Table, std::ops::Range<u64>);

    impl RowSource for Slice {
        fn columns(&self) -> &[String] {
            self.0.columns()
        }
        fn open(&self, _done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
            self.0.open(&RowSet::new([0..self.1.start, self.1.end..self.0.len() as u64]))
        }
    }

    /// The survey of parts that are merged in this order.
    fn merged(parts: &[Vec<u8>; 4], order: [usize; 4]) -> Survey {
        let [first, rest @ ..] = order.map(|i| SurveyPart::from_bytes(&parts[i]).unwrap());
        let mut all = first;
        rest.into_iter().for_each(|part| all.merge(part));
        all.finish().unwrap()
    }

    /// The parts of several machines, sent as bytes, merge in any order to the survey of all rows.
    #[test]
    fn parts_of_several_machines_merge() {
        let values: Vec<f64> = (0..3000).map(|i| (f64::from(i) * 0.7).sin() * 1e3).collect();
        let table = Table::unnamed(3, values).unwrap().with_part_rows(10);
        let params = SurveyParams { sample_rows: 100, ..PARAMS };
        let whole = survey(&table, None, params, &()).unwrap();
        let parts = [0..300, 300..300, 300..310, 310..1000].map(|rows| {
            let part = survey_part(&Slice(table.clone(), rows), None, params, &()).unwrap();
            part.to_bytes()
        });
        let one = merged(&parts, [0, 1, 2, 3]);
        for order in [[3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
            assert_eq!(merged(&parts, order).columns, one.columns);
        }
        assert_eq!((one.rows, &one.sample), (1000, &whole.sample));
        for (a, b) in one.columns.iter().zip(&whole.columns) {
            assert_eq!((a.low, a.high), (b.low, b.high));
            // Sums of a thousand values near 1e3, in different orders.
            assert!((a.mean - b.mean).abs() < 1e-9 && (a.deviation - b.deviation).abs() < 1e-9);
        }
        for cut in 0..parts[3].len() {
            assert!(SurveyPart::from_bytes(&parts[3][..cut]).is_err());
        }
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
        assert_eq!((ok.rows, ok.losses.skipped()), (9, 1));
        let all_bad = Table::unnamed(1, vec![f64::NAN; 3]).unwrap();
        assert!(matches!(survey(&all_bad, None, skip, &()), Err(Error::NoRows { skipped: 3 })));
    }
}
