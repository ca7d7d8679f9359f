//! Making a plan from the rows: survey, frame, bandwidths, landmarks.
//!
//! Deterministic for the same files, order and seed, whatever the number of threads.

use crate::bandwidth;
use crate::error::{Cell, Error, Result};
use crate::feature_map::fourier::draw_frequencies;
use crate::frame::{Frame, FramedRow};
use crate::kernel::ladder::check_bandwidths;
use crate::kernel::tile::{Instructions, MAX_BLOCK, Nearest, Tiles};
use crate::landmarks::Sampling;
use crate::landmarks::cholesky::{Pivot, pivoted_cholesky};
use crate::landmarks::dsquared::{dsquared, squared_distances};
use crate::landmarks::leverage::{self, Target};
use crate::landmarks::uniform::{distinct, uniform};
use crate::plan::{Collect, Features, Plan};
use crate::points::Points;
use crate::rows::{Block, Invalid, Progress, RowSource, pass};
use crate::sample::Reservoir;
use crate::survey::{Survey, SurveyParams, survey};
use crate::weight::Weighting;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Landmarks where the user names no number.
pub const DEFAULT_LANDMARKS: usize = 400;
/// Frequencies where the user names no number: as many features as [`DEFAULT_LANDMARKS`].
pub const DEFAULT_FREQUENCIES: usize = 200;
/// Rows sampled where the user names no number.
pub const DEFAULT_SAMPLE_ROWS: usize = 20_000;
/// Rows on which the accuracy of leverage scores is measured.
const ACCURACY_ROWS: usize = 800;

/// What to measure at.
#[derive(Debug, Clone)]
pub enum FeatureParams {
    /// Landmarks chosen from the rows. `landmarks: None` is [`DEFAULT_LANDMARKS`] or as many as
    /// there are different rows.
    Nystrom {
        /// How many.
        landmarks: Option<usize>,
        /// By which rule.
        sampling: Sampling,
        /// λ of leverage sampling in the paper's way, where the number of landmarks is random.
        leverage_lambda: Option<f64>,
    },
    /// Landmarks given as rows in the table's units.
    Given(GivenLandmarks),
    /// Random Fourier features.
    Fourier {
        /// m′, half the number of features.
        frequencies: usize,
    },
}

/// Landmarks from the user.
#[derive(Debug, Clone)]
pub struct GivenLandmarks {
    /// Where they come from, for messages.
    pub name: String,
    /// Rows in the table's units.
    pub rows: Vec<Vec<f64>>,
}

/// How columns are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// As they are.
    #[default]
    None,
    /// Divided by their standard deviation.
    Standard,
}

/// How many rows landmarks are chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleRows {
    /// A uniform sample of so many; by default [`DEFAULT_SAMPLE_ROWS`], and never fewer than four
    /// times the landmarks.
    Default,
    /// A uniform sample of so many.
    Count(usize),
    /// All of them, in memory.
    All,
}

/// Everything that can be chosen about a plan.
#[derive(Debug, Clone)]
pub struct PlanParams {
    /// What to measure at.
    pub features: FeatureParams,
    /// σ² of each rung, or `None` to choose them from the sample.
    pub bandwidths: Option<Vec<f64>>,
    /// How columns are scaled.
    pub scale: Scale,
    /// Rows that landmarks are chosen from.
    pub sample_rows: SampleRows,
    /// Which sums to keep, or `None` for the default.
    pub collect: Option<Collect>,
    /// The column of row weights.
    pub weighting: Option<Weighting>,
    /// Seed of everything random.
    pub seed: u64,
    /// What to do with invalid rows.
    pub invalid: Invalid,
    /// Threads to use.
    pub threads: usize,
}

impl Default for PlanParams {
    fn default() -> Self {
        PlanParams {
            features: FeatureParams::Nystrom {
                landmarks: None,
                sampling: Sampling::default(),
                leverage_lambda: None,
            },
            bandwidths: None,
            scale: Scale::default(),
            sample_rows: SampleRows::Default,
            collect: None,
            weighting: None,
            seed: 0,
            invalid: Invalid::default(),
            threads: 1,
        }
    }
}

/// What happened while planning, for people.
#[derive(Debug, Clone, Default)]
pub struct PlanReport {
    /// Rows read.
    pub rows: u64,
    /// Rows skipped as invalid.
    pub skipped: u64,
    /// Rows that landmarks were chosen from.
    pub sample_rows: usize,
    /// λ, the effective dimension N(λ) and the measured accuracy z of leverage sampling.
    pub leverage: Option<LeverageReport>,
    /// Remarks that a user should read.
    pub notes: Vec<String>,
}

/// What leverage sampling did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeverageReport {
    /// λ of eq. (9), over the sample.
    pub lambda: f64,
    /// Estimate of N(λ).
    pub effective_dimension: f64,
    /// z of eq. (10): BLESS at this λ against exact scores, both on `accuracy_rows` rows of the
    /// sample, since exact scores of all of it would cost too much.
    pub accuracy: f64,
    /// Rows it was measured on.
    pub accuracy_rows: usize,
}

/// Checked parameters: only these can run.
#[derive(Debug, Clone)]
pub struct PlanValid(PlanParams);

impl PlanParams {
    /// Checks every parameter that can be checked without the data.
    pub fn check(self) -> Result<PlanValid> {
        if let FeatureParams::Nystrom { landmarks, sampling, leverage_lambda } = &self.features {
            if landmarks == &Some(0) {
                return Err(Error::parameter("`landmarks`", "at least 1", 0));
            }
            if *sampling == Sampling::Given {
                return Err(Error::parameter(
                    "`sampling`",
                    "a rule, or use `landmarks_from`",
                    "given",
                ));
            }
            if let Some(lambda) = leverage_lambda {
                if *sampling != Sampling::Leverage {
                    return Err(Error::parameter(
                        "`leverage_lambda`",
                        "used with `sampling=leverage`",
                        sampling.name(),
                    ));
                }
                if landmarks.is_some() {
                    return Err(Error::parameter(
                        "`landmarks`",
                        "left out with `leverage_lambda`, which makes their number random",
                        "both",
                    ));
                }
                if !(*lambda >= 1e-13 && *lambda < 1.0) {
                    return Err(Error::parameter(
                        "`leverage_lambda`",
                        "between 1e-13 and 1",
                        lambda,
                    ));
                }
            }
            if let (Some(m), SampleRows::Count(n)) = (landmarks, self.sample_rows)
                && n < *m
            {
                return Err(Error::parameter(
                    "`sample_rows`",
                    format!("at least the {m} landmarks, or 'all'"),
                    n,
                ));
            }
        }
        if matches!(&self.features, FeatureParams::Fourier { frequencies: 0 }) {
            return Err(Error::parameter("`frequencies`", "at least 1", 0));
        }
        if self.sample_rows == SampleRows::Count(0) {
            return Err(Error::parameter("`sample_rows`", "at least 1, or 'all'", 0));
        }
        if let Some(collect) = self.collect {
            collect.check(!matches!(self.features, FeatureParams::Fourier { .. }))?;
        }
        if let Some(b) = &self.bandwidths {
            check_bandwidths(b)?;
        }
        if let Some(w) = &self.weighting {
            w.check()?;
        }
        Ok(PlanValid(self))
    }
}

/// Makes a plan. Reads the source once, and once more for D² landmarks on data larger than the
/// sample.
pub fn make_plan(
    source: &dyn RowSource,
    params: &PlanValid,
    progress: &dyn Progress,
) -> Result<(Plan, PlanReport)> {
    let params = &params.0;
    let capacity = match params.sample_rows {
        SampleRows::All => usize::MAX,
        SampleRows::Count(n) => n,
        SampleRows::Default => {
            let landmarks = match &params.features {
                FeatureParams::Nystrom { landmarks, .. } => landmarks.unwrap_or(0),
                _ => 0,
            };
            DEFAULT_SAMPLE_ROWS.max(landmarks.saturating_mul(4))
        }
    };
    let found = survey(
        source,
        params.weighting.as_ref(),
        SurveyParams {
            sample_rows: capacity,
            seed: params.seed,
            invalid: params.invalid,
            threads: params.threads,
        },
        progress,
    )?;
    let columns = source.columns().to_vec();
    let frame = make_frame(&columns, &found, params.scale)?;
    let mut sample = Vec::new();
    for row in found.sample.chunks_exact(columns.len()) {
        frame.narrow(row, &mut sample);
    }
    let sample = Points::new(columns.len(), sample);
    let mut report = PlanReport {
        rows: found.rows,
        skipped: found.skipped,
        sample_rows: sample.len(),
        ..PlanReport::default()
    };
    if params.scale == Scale::None {
        note_uneven_columns(&columns, &found, &mut report);
    }

    let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
    let bandwidths = match &params.bandwidths {
        Some(given) => given.clone(),
        None => bandwidth::ladder(bandwidth::middle(&sample, &mut rng)),
    };
    let mut choice = Choice {
        source,
        params,
        frame: &frame,
        sample: &sample,
        found: &found,
        sigma2: bandwidths[bandwidths.len() / 2],
        progress,
        rng,
        report: &mut report,
    };
    let features = choice.features()?;
    let landmarks = matches!(features, Features::Nystrom(..));
    let collect = params.collect.unwrap_or(Collect::default_for(columns.len(), landmarks));
    if params.collect.is_none() && !collect.moments {
        report.notes.push(format!(
            "{} columns: Σxxᵀ, which PCA needs, is left out; ask for it with `collect=kernel,cells,moments`",
            columns.len()
        ));
    }
    let plan = Plan {
        columns,
        weighting: params.weighting.clone(),
        frame,
        features,
        bandwidths,
        collect,
        seed: params.seed,
    };
    plan.check()?;
    Ok((plan, report))
}

/// The centre is the mean, rounded to about the column's spread so that integers stay integers.
fn make_frame(columns: &[String], found: &Survey, scale: Scale) -> Result<Frame> {
    let mut centre = Vec::new();
    let mut scales = Vec::new();
    for c in &found.columns {
        let unit = if c.deviation > 0.0 { c.deviation.log2().floor().exp2() } else { 0.0 };
        let rounded = (c.mean / unit).round() * unit;
        centre.push(if c.low == c.high {
            c.low
        } else if rounded.is_finite() {
            rounded
        } else {
            c.mean
        });
        let usable = c.deviation.is_normal() && c.low < c.high;
        scales.push(if scale == Scale::Standard && usable { c.deviation } else { 1.0 });
    }
    let low: Vec<f64> = found.columns.iter().map(|c| c.low).collect();
    let high: Vec<f64> = found.columns.iter().map(|c| c.high).collect();
    Frame::new(columns, centre, scales, &low, &high)
}

fn note_uneven_columns(columns: &[String], found: &Survey, report: &mut PlanReport) {
    let varying = || found.columns.iter().enumerate().filter(|(_, c)| c.deviation > 0.0);
    let by_deviation = |a: &(usize, &crate::survey::Column),
                        b: &(usize, &crate::survey::Column)| {
        a.1.deviation.total_cmp(&b.1.deviation)
    };
    if let (Some((i, small)), Some((j, large))) =
        (varying().min_by(by_deviation), varying().max_by(by_deviation))
        && large.deviation > 100.0 * small.deviation
    {
        report.notes.push(format!(
            "column '{}' varies {:.0} times as much as '{}' and will dominate the distances; consider `scale=standard`",
            columns[j],
            large.deviation / small.deviation,
            columns[i]
        ));
    }
}

/// Chooses landmarks or frequencies.
struct Choice<'a> {
    source: &'a dyn RowSource,
    params: &'a PlanParams,
    frame: &'a Frame,
    sample: &'a Points,
    found: &'a Survey,
    sigma2: f64,
    progress: &'a dyn Progress,
    rng: ChaCha8Rng,
    report: &'a mut PlanReport,
}

impl Choice<'_> {
    fn features(&mut self) -> Result<Features> {
        match &self.params.features {
            FeatureParams::Fourier { frequencies } => {
                let drawn = draw_frequencies(self.sample.dims(), *frequencies, &mut self.rng);
                Ok(Features::Fourier(drawn))
            }
            FeatureParams::Given(rows) => Ok(Features::Nystrom(self.given(rows)?, Sampling::Given)),
            FeatureParams::Nystrom { landmarks, sampling, leverage_lambda } => {
                let points = match leverage_lambda {
                    Some(lambda) => self.leverage(Target::Lambda(*lambda), None)?,
                    None => self.counted(*landmarks, *sampling)?,
                };
                Ok(Features::Nystrom(points, *sampling))
            }
        }
    }

    /// Landmarks from the user, each once.
    fn given(&mut self, given: &GivenLandmarks) -> Result<Points> {
        let d = self.frame.dims();
        let mut framed = FramedRow::default();
        for (i, row) in given.rows.iter().enumerate() {
            if row.len() != d {
                return Err(Error::parameter(
                    "`landmarks_from`",
                    format!("rows of {d} values"),
                    row.len(),
                ));
            }
            if let Err(j) = self.frame.push(Instructions::best(), row, &mut framed) {
                let column = self.source.columns()[j].clone();
                let at = Cell { file: given.name.clone(), row: i as u64 + 1, column };
                return Err(self.frame.invalid(at, j, row[j]));
            }
        }
        let data = framed.z;
        let all = Points::new(self.frame.dims(), data);
        let kept = distinct(&all);
        if kept.is_empty() {
            return Err(Error::parameter(
                "`landmarks_from`",
                "a file with at least one row",
                "none",
            ));
        }
        if kept.len() < all.len() {
            self.report
                .notes
                .push(format!("{} repeated landmarks were dropped", all.len() - kept.len()));
        }
        Ok(all.select(&kept))
    }

    /// Exactly `wanted` landmarks, or all different rows where there are fewer.
    fn counted(&mut self, wanted: Option<usize>, sampling: Sampling) -> Result<Points> {
        let m = match wanted {
            Some(m) if m as u64 > self.found.rows => {
                return Err(Error::TooFewRows { landmarks: m, rows: self.found.rows as usize });
            }
            Some(m) => m,
            None => DEFAULT_LANDMARKS,
        };
        let sample = self.sample;
        let chosen = match sampling {
            Sampling::Dsquared if !self.found.sampled_all => {
                return self.dsquared_stream(m, wanted);
            }
            Sampling::Dsquared => {
                dsquared(sample, Some(&self.found.sample_weights), None, m, &mut self.rng)
            }
            Sampling::Leverage => {
                return self.leverage(Target::EffectiveDimension(m as f64), Some((m, wanted)));
            }
            Sampling::Greedy => {
                pivoted_cholesky(sample, self.sigma2, m, Pivot::Largest, &mut self.rng)
            }
            Sampling::Rpcholesky => {
                pivoted_cholesky(sample, self.sigma2, m, Pivot::Random, &mut self.rng)
            }
            Sampling::Uniform | Sampling::Given => uniform(sample, &[], m, &mut self.rng),
        };
        Ok(self.fill(chosen, m, wanted))
    }

    /// Brings landmarks from the sample to `m` with uniform ones, and says what happened.
    fn fill(&mut self, mut chosen: Vec<usize>, m: usize, wanted: Option<usize>) -> Points {
        if chosen.len() < m {
            let found = chosen.len();
            chosen.extend(uniform(self.sample, &chosen, m - found, &mut self.rng));
            if chosen.len() > found && found > 0 {
                self.report.notes.push(format!(
                    "{found} landmarks span the sample at σ² = {:.4}; the other {} were drawn uniformly",
                    self.sigma2,
                    chosen.len() - found
                ));
            }
        }
        self.note_fewer(chosen.len(), wanted);
        self.sample.select(&chosen)
    }

    fn note_fewer(&mut self, got: usize, wanted: Option<usize>) {
        let m = wanted.unwrap_or(DEFAULT_LANDMARKS);
        // Without a number asked for, all rows of a small table are what the user expects.
        let expected = wanted.is_none() && got as u64 == self.found.rows;
        if got < m && !expected {
            self.report.notes.push(format!(
                "the rows looked at hold only {got} different points, so there are {got} landmarks instead of {m}"
            ));
        }
    }

    /// BLESS, then `m` draws, or the paper's random number where `m` is not given.
    fn leverage(&mut self, target: Target, m: Option<(usize, Option<usize>)>) -> Result<Points> {
        let scores = leverage::bless(self.sample, self.sigma2, target, &mut self.rng)?;
        let few = self.sample.len().min(ACCURACY_ROWS);
        let part = self.sample.select(&uniform(self.sample, &[], few, &mut self.rng));
        let again = leverage::bless(
            &part,
            self.sigma2,
            Target::Lambda(scores.lambda.min(0.5)),
            &mut self.rng,
        )?;
        let exact = leverage::exact(&part, self.sigma2, again.lambda)?;
        self.report.leverage = Some(LeverageReport {
            lambda: scores.lambda,
            effective_dimension: scores.effective_dimension(),
            accuracy: leverage::accuracy(&again.scores, &exact),
            accuracy_rows: part.len(),
        });
        Ok(match m {
            Some((m, wanted)) => {
                let chosen = scores.sample(self.sample, m, &mut self.rng);
                self.fill(chosen, m, wanted)
            }
            None => {
                let subset = self.sample.select(&scores.subset);
                subset.select(&distinct(&subset))
            }
        })
    }

    /// D² over all rows: half the landmarks from the sample, a pass, the other half from a
    /// reservoir of rows drawn in proportion to D² to the first half.
    fn dsquared_stream(&mut self, m: usize, wanted: Option<usize>) -> Result<Points> {
        let first = dsquared(self.sample, None, None, m.div_ceil(2), &mut self.rng);
        let first = self.sample.select(&first);
        let far = self.far_rows(&first)?;
        let rest = m - first.len();
        let second = dsquared(&far.points, Some(&far.stand_for), Some(&first), rest, &mut self.rng);
        let mut data = first.data().to_vec();
        data.extend_from_slice(far.points.select(&second).data());
        let all = Points::new(self.sample.dims(), data);
        self.note_fewer(all.len(), wanted);
        Ok(all)
    }

    /// Rows drawn in proportion to weight · D², as many as the sample has.
    fn far_rows(&self, landmarks: &Points) -> Result<FarRows> {
        let d = self.frame.dims();
        let seed = crate::sample::mix(self.params.seed ^ 0xd2);
        // Each row is followed by its weight.
        let reservoir = Reservoir::new(self.sample.len(), d + 1, seed);
        let init = || FarPass {
            tiles: Tiles::new(landmarks, None, Instructions::best()),
            nearest: Nearest::default(),
            z: Vec::new(),
        };
        pass(self.source, self.params.threads, self.progress, init, |state, block| {
            self.offer_far_rows(state, block, &reservoir);
            Ok(())
        })?;
        let threshold = reservoir.threshold();
        let (mut data, mut weights) = (Vec::new(), Vec::new());
        for row in reservoir.into_rows().chunks_exact(d + 1) {
            self.frame.narrow(&row[..d], &mut data);
            weights.push(row[d]);
        }
        let points = Points::new(d, data);
        let d2 = squared_distances(&points, landmarks);
        // A row that is kept with probability p stands for 1/p rows like it.
        let stand_for = |(w, d2): (&f64, &f64)| w / -(-w * d2 * threshold).exp_m1();
        let stand_for =
            weights.iter().zip(&d2).map(stand_for).map(|s| if s.is_finite() { s } else { 0.0 });
        Ok(FarRows { stand_for: stand_for.collect(), points })
    }

    fn offer_far_rows(&self, state: &mut FarPass, block: &Block, reservoir: &Reservoir) {
        let d = self.frame.dims();
        for (chunk, rows) in block.values.chunks(MAX_BLOCK * d).enumerate() {
            state.z.clear();
            for row in rows.chunks_exact(d) {
                self.frame.narrow(row, &mut state.z);
            }
            state.tiles.block(&state.z, &[], Some(&mut state.nearest), |_, _, _| {});
            for (i, row) in rows.chunks_exact(d).enumerate() {
                let at = chunk * MAX_BLOCK + i;
                let weight = match self.params.weighting {
                    Some(_) => block.weights.get(at).copied().unwrap_or(f64::NAN),
                    None => 1.0,
                };
                let steer = weight * f64::from(state.nearest.d2[i]);
                // The survey has refused or counted invalid rows; here they are passed over.
                if steer > 0.0 && steer.is_finite() && row.iter().all(|x| x.is_finite()) {
                    reservoir.offer(block.position + at as u64, steer, row, weight);
                }
            }
        }
    }
}

/// Rows far from the first landmarks, and how many rows each stands for.
struct FarRows {
    points: Points,
    stand_for: Vec<f64>,
}

/// Scratch memory of one thread.
struct FarPass {
    tiles: Tiles,
    nearest: Nearest,
    z: Vec<f32>,
}
