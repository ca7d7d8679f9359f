//! A plan in the making: everything but the reading of rows.

use super::holes::Donors;
use super::params::{
    DEFAULT_LANDMARKS, GivenLandmarks, LandmarkCount, Measurement, PlanParams, PlanValid, Scale,
    default_landmarks, default_witnesses,
};
use super::placed::Placed;
use super::remarks;
use super::report::{LeverageReport, PlanReport};
use super::roles::{ONE_POINT, Settled, TableColumns, preliminary, settle};
use super::witnesses::draw_places;
use crate::bandwidth;
use crate::collect::Collect;
use crate::columns::ColumnSummary;
use crate::error::{Error, Place, Result};
use crate::feature_map::fourier::draw_frequencies;
use crate::fixed::power_of_two;
use crate::frame::{Frame, FramedRows};
use crate::kernel::search::PanelsOnce;
use crate::kernel::{Kernel, ScaledKernel};
use crate::landmarks::Sampling;
use crate::landmarks::cholesky::{Pivot, pivoted_cholesky};
use crate::landmarks::dsquared::{dsquared, squared_distances};
use crate::landmarks::leverage::{self, Target};
use crate::landmarks::uniform::{distinct, uniform};
use crate::linalg::symmetric_eigen;
use crate::plan::{Features, Plan};
use crate::points::Points;
use crate::recipe::{Number, Recipe};
use crate::sample::Reservoir;
use crate::simd::Instructions;
use crate::survey::Survey;
use crate::weight::Weighting;
use crate::witnesses::Witnesses;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Rows on which the accuracy of leverage scores is measured.
const ACCURACY_ROWS: usize = 800;
/// Rows whose kernel matrix tells how many landmarks span the data, and the share they are to span.
const SPECTRUM_ROWS: usize = 800;
const SPANNED: f64 = 0.95;
/// Numbers of landmarks that are chosen without being asked for.
const AUTO_LANDMARKS: std::ops::RangeInclusive<usize> = 50..=2000;

/// A plan in the making.
pub struct Draft {
    params: PlanParams,
    weighting: Option<Weighting>,
    measurement: Measurement,
    witnesses: usize,
    /// Columns of numbers of the table.
    inputs: Vec<String>,
    columns: Vec<String>,
    recipe: Recipe,
    frame: Frame,
    /// Rows of the sample; what they lack is filled in.
    sample: Placed,
    found: Survey,
    bandwidths: Vec<f64>,
    rng: ChaCha8Rng,
    report: PlanReport,
    chosen: Chosen,
}

/// How far the choice of landmarks has come.
enum Chosen {
    /// Not begun.
    Nothing,
    /// All of them, or frequencies.
    All(Features, Vec<u32>),
    /// Half of `m`, from the sample; the others come from rows far from these.
    Half { first: Placed, m: usize, wanted: Option<usize> },
}

impl Draft {
    /// Chooses the frame, the bandwidths, and the landmarks as far as the sample goes.
    pub fn new(table: &TableColumns, found: Survey, params: &PlanValid) -> Result<Self> {
        let PlanValid { mut params, measurement, witnesses } = params.clone();
        let (columns, recipe) = preliminary(table, &params)?;
        let (rows, losses) = (found.rows, found.losses.clone());
        let landmarks =
            matches!(measurement, Measurement::Chosen { .. } | Measurement::Leverage(_));
        let Settled { columns, recipe, found, mut notes, table: summaries } =
            settle(columns, recipe, found, &params, landmarks)?;
        let times = recipe.numbers.iter().any(|n| n.step.of_time());
        if params.scale.is_none() && (times || !recipe.categories.is_empty()) {
            params.scale = Some(Scale::Standard);
            let why = if times { "points in time" } else { "categories" };
            notes.push(format!("columns are scaled by their standard deviations, since there are {why}; `scale=none` leaves them as they are"));
        }
        let scale = params.scale.unwrap_or_default();
        if found.sample.is_empty() {
            return Err(Error::NoRows { skipped: rows });
        }
        let frame = make_frame(&columns, &recipe, &found, &params)?;
        let weighting = params
            .weighting
            .as_ref()
            .map(|weights| weights.weighting(found.rows, found.weight, found.weights));
        let sample = placed(&frame, &recipe, &found.sample, &found.codes, None);
        let mut report =
            PlanReport { rows, losses, sample_rows: sample.len(), ..PlanReport::default() };
        report.losses = found.losses.clone();
        report.notes = notes;
        report.columns = summaries;
        report.notes.extend(remarks::of_columns(&columns, &found, scale));
        warn_of_lost_digits(&columns, &found, &frame, &mut report);
        let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
        let bandwidths = match &params.bandwidths {
            Some(given) => given.clone(),
            None => {
                let middle = bandwidth::middle(sample.space(), &mut rng);
                bandwidth::ladder(params.kernel.as_wide_as_gaussian(middle, columns.len()))
            }
        };
        let chosen = Chosen::Nothing;
        let mut draft = Draft {
            params,
            weighting,
            measurement,
            witnesses,
            inputs: table.numbers.iter().map(|(name, _)| name.clone()).collect(),
            columns,
            recipe,
            frame,
            sample,
            found,
            bandwidths,
            rng,
            report,
            chosen,
        };
        draft.chosen = draft.choose()?;
        Ok(draft)
    }

    /// Where more landmarks must come from rows far from those chosen so far: a plan with these, and
    /// how many such rows to draw.
    pub fn wants_distant_rows(&self) -> Option<(Plan, usize)> {
        let Chosen::Half { first, .. } = &self.chosen else { return None };
        let features = Features::Nystrom(first.points.clone(), Sampling::Dsquared);
        let collect = Collect { kernel: false, cells: true, moments: false };
        // D² is the squared distance, whatever the kernel.
        let levels = first.codes.clone();
        let plan = Plan { kernel: Kernel::Gaussian, ..self.plan(features, levels, collect) };
        Some((plan, self.sample.len()))
    }

    /// The plan; `distant` holds the rows that were asked for.
    pub fn finish(mut self, distant: Option<Reservoir>) -> Result<(Plan, PlanReport)> {
        let (features, levels) =
            match (std::mem::replace(&mut self.chosen, Chosen::Nothing), distant) {
                (Chosen::All(features, levels), _) => (features, levels),
                (Chosen::Half { first, m, wanted }, Some(distant)) => {
                    let Placed { points, codes, .. } = self.other_half(&first, m, wanted, distant);
                    (Features::Nystrom(points, Sampling::Dsquared), codes)
                }
                _ => {
                    return Err(Error::parameter(
                        "distant rows",
                        "drawn before a plan is finished",
                        "none",
                    ));
                }
            };
        let landmarks = matches!(features, Features::Nystrom(..));
        let d = self.columns.len();
        let mut default = Collect::default_for(d, landmarks);
        default.cells &= self.params.kernel == Kernel::Gaussian;
        let collect = self.params.collect.unwrap_or(default);
        if self.params.collect.is_none() && !collect.moments {
            let all = Collect { moments: true, ..collect }.names().join(",");
            self.report.notes.push(format!(
                "{d} columns: Σxxᵀ, which PCA needs, is left out; ask for it with `collect={all}`"
            ));
        }
        let plan = Plan { witnesses: self.witnesses(), ..self.plan(features, levels, collect) };
        plan.check()?;
        for measured in ColumnSummary::of_plan(&plan) {
            if let Some(c) = self.report.columns.iter_mut().find(|c| c.column == measured.column) {
                (c.numbers, c.transformation) = (measured.numbers, measured.transformation);
            }
        }
        Ok((plan, self.report))
    }

    fn plan(&self, features: Features, landmark_levels: Vec<u32>, collect: Collect) -> Plan {
        Plan {
            columns: self.columns.clone(),
            recipe: self.recipe.clone(),
            landmark_levels,
            weighting: self.weighting.clone(),
            frame: self.frame.clone(),
            features,
            kernel: self.params.kernel,
            bandwidths: self.bandwidths.clone(),
            collect,
            seed: self.params.seed,
            witnesses: None,
            panels: PanelsOnce::default(),
        }
    }

    /// Rows of the sample for the plan to keep.
    fn witnesses(&self) -> Option<Witnesses> {
        let weights = &self.found.sample_weights;
        let count = match self.params.witnesses {
            Some(_) => self.witnesses,
            None => self.witnesses.min(default_witnesses(self.frame.dims())),
        };
        let places = draw_places(weights, count, self.params.seed);
        // Where every row is kept, none has been drawn by its weight.
        let all = places.len() == weights.iter().filter(|w| **w > 0.0).count();
        let same = weights.iter().all(|w| *w == weights[0]);
        let kept = match all && !same {
            true => {
                let most = weights.iter().copied().fold(0.0, f64::max);
                let share = |p: &usize| ((weights[*p] / most) as f32).max(f32::MIN_POSITIVE);
                places.iter().map(share).collect()
            }
            false => Vec::new(),
        };
        (!places.is_empty()).then(|| {
            // Witnesses lack what the rows lack.
            let (d, mut rows) = (self.frame.dims(), Vec::new());
            for place in &places {
                self.frame.narrow(&self.found.sample[place * d..(place + 1) * d], &mut rows);
            }
            rows.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = f32::NAN);
            let codes = self.sample.select(&places).codes;
            Witnesses::new(Points::new(d, rows), codes, kept)
        })
    }

    /// The bandwidth at which leverage scores and Cholesky factors are taken.
    fn sigma2(&self) -> f64 {
        self.bandwidths[self.bandwidths.len() / 2]
    }

    /// The kernel at that bandwidth.
    fn kernel(&self) -> ScaledKernel {
        self.params.kernel.at(self.sigma2())
    }

    fn choose(&mut self) -> Result<Chosen> {
        let (placed, sampling) = match self.measurement.clone() {
            Measurement::Fourier { frequencies } => {
                let drawn = draw_frequencies(self.frame.dims(), frequencies, &mut self.rng);
                return Ok(Chosen::All(Features::Fourier(drawn), Vec::new()));
            }
            Measurement::Given(rows) => (self.given(&rows)?, Sampling::Given),
            Measurement::Leverage(lambda) => {
                (self.leverage(Target::Lambda(lambda), None)?, Sampling::Leverage)
            }
            Measurement::Chosen { landmarks, sampling } => {
                let landmarks = match landmarks {
                    Some(LandmarkCount::Auto) => Some(self.auto_count()?),
                    Some(LandmarkCount::Number(m)) => Some(m),
                    None => None,
                };
                if sampling == Sampling::Dsquared && !self.found.sampled_all {
                    return self.first_half(landmarks);
                }
                (self.counted(landmarks, sampling)?, sampling)
            }
        };
        Ok(Chosen::All(Features::Nystrom(placed.points, sampling), placed.codes))
    }

    /// Landmarks from the user, each once.
    fn given(&mut self, given: &GivenLandmarks) -> Result<Placed> {
        if !self.recipe.categories.is_empty() {
            let expected = "left out where the table has categories";
            return Err(Error::parameter("`landmarks_from`", expected, &given.name));
        }
        if !self.recipe.units.is_empty() {
            let expected = "left out where vectors are scaled to length one";
            return Err(Error::parameter("`landmarks_from`", expected, &given.name));
        }
        // Columns of the table that are not measured are not in the landmarks, either.
        let place = |number: &Number| self.inputs.iter().position(|name| *name == number.input);
        let places: Vec<usize> = self.recipe.numbers.iter().filter_map(place).collect();
        let d = self.inputs.len();
        let mut framed = FramedRows::default();
        for (i, row) in given.rows.iter().enumerate() {
            if row.len() != d {
                return Err(Error::parameter(
                    "`landmarks_from`",
                    format!("rows of {d} values"),
                    row.len(),
                ));
            }
            let steps = places.iter().zip(&self.recipe.numbers);
            let row: Vec<f64> = steps.map(|(from, n)| n.step.apply(row[*from])).collect();
            if let Err(j) = self.frame.push(Instructions::best(), &row, &mut framed) {
                let column = self.columns[j].clone();
                let at = Place { file: given.name.clone(), row: i as u64 + 1, column };
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
        Ok(Placed::new(&self.recipe, all.select(&kept), Vec::new()))
    }

    /// How many landmarks there are to be.
    fn count(&self, wanted: Option<usize>) -> Result<usize> {
        match wanted {
            Some(m) if m as u64 > self.found.rows => {
                Err(Error::TooFewRows { landmarks: m, rows: self.found.rows as usize })
            }
            Some(m) => Ok(m),
            None => Ok(default_landmarks(self.params.clusters)),
        }
    }

    /// A number of landmarks from the clusters to learn, the columns and the spectrum of the kernel, and
    /// why.
    ///
    /// A model of k clusters has k(d + 1) numbers, and twice as many moments determine them well; a cell
    /// cut by a border serves two clusters, so there are at least ten per cluster. Eigenvalues of the kernel
    /// matrix of a small sample tell how many landmarks span the rows, where that is few.
    fn auto_count(&mut self) -> Result<usize> {
        let d = self.frame.dims();
        let space = self.sample.space();
        let few = uniform(space, &[], SPECTRUM_ROWS, &mut self.rng);
        let few = space.select(&few);
        let values = symmetric_eigen(&self.kernel().gram(&few))?.values;
        let total: f64 = values.iter().sum();
        let mut sum = 0.0;
        let spanning = 1 + values
            .iter()
            .take_while(|v| {
                sum += **v;
                sum < SPANNED * total
            })
            .count();
        let (for_model, why) = match self.params.clusters {
            Some(k) => (
                k.saturating_mul(2 * (d + 1)).max(k.saturating_mul(10)),
                match d < 4 {
                    true => format!("10 for each of {k} clusters"),
                    false => format!("2k(d + 1) for k = {k} clusters in d = {d} columns"),
                },
            ),
            None => (DEFAULT_LANDMARKS / 4, "the number of clusters is not known".to_string()),
        };
        let flat = spanning > few.len() / 2;
        let spectrum = match flat {
            true => {
                format!("no small number of landmarks spans the rows at σ² = {:.4}", self.sigma2())
            }
            false => format!(
                "{spanning} span {:.0} % of a sample at σ² = {:.4}",
                100.0 * SPANNED,
                self.sigma2()
            ),
        };
        let wanted = if flat { for_model.max(DEFAULT_LANDMARKS) } else { for_model.max(spanning) };
        let m = wanted.clamp(*AUTO_LANDMARKS.start(), *AUTO_LANDMARKS.end());
        let m = m.min(self.found.rows as usize);
        self.report.notes.push(format!("{m} landmarks: {why} ({for_model}); {spectrum}"));
        Ok(m)
    }

    /// Exactly `wanted` landmarks, or all different rows where there are fewer.
    fn counted(&mut self, wanted: Option<usize>, sampling: Sampling) -> Result<Placed> {
        let m = self.count(wanted)?;
        let (sample, kernel) = (self.sample.space(), self.kernel());
        let chosen = match sampling {
            Sampling::Dsquared => {
                dsquared(sample, Some(&self.found.sample_weights), None, m, &mut self.rng)
            }
            Sampling::Leverage => {
                return self.leverage(Target::landmarks(m), Some((m, wanted)));
            }
            Sampling::Greedy => pivoted_cholesky(sample, kernel, m, Pivot::Largest, &mut self.rng)?,
            Sampling::Rpcholesky => {
                pivoted_cholesky(sample, kernel, m, Pivot::Random, &mut self.rng)?
            }
            Sampling::Uniform | Sampling::Given => uniform(sample, &[], m, &mut self.rng),
        };
        Ok(self.fill(chosen, m, wanted))
    }

    /// Brings landmarks from the sample to `m` with uniform ones, and says what happened.
    fn fill(&mut self, mut chosen: Vec<usize>, m: usize, wanted: Option<usize>) -> Placed {
        if chosen.len() < m {
            let found = chosen.len();
            chosen.extend(uniform(self.sample.space(), &chosen, m - found, &mut self.rng));
            if chosen.len() > found && found > 0 {
                self.report.notes.push(format!(
                    "{found} landmarks span the sample at σ² = {:.4}; the other {} were drawn uniformly",
                    self.sigma2(),
                    chosen.len() - found
                ));
            }
        }
        self.note_fewer(chosen.len(), wanted);
        self.sample.select(&chosen)
    }

    fn note_fewer(&mut self, got: usize, wanted: Option<usize>) {
        let m = wanted.unwrap_or(default_landmarks(self.params.clusters));
        // Without a number asked for, all rows of a small table are what the user expects.
        let expected = wanted.is_none() && got as u64 == self.found.rows;
        if got < m && !expected {
            self.report.notes.push(format!(
                "the rows looked at hold only {got} different points, so there are {got} landmarks instead of {m}"
            ));
        }
    }

    /// BLESS, then `m` draws, or the paper's random number where `m` is not given.
    fn leverage(&mut self, target: Target, m: Option<(usize, Option<usize>)>) -> Result<Placed> {
        let (kernel, space) = (self.kernel(), self.sample.space());
        let scores = leverage::bless(space, kernel, target, &mut self.rng)?;
        let few = space.len().min(ACCURACY_ROWS);
        let part = space.select(&uniform(space, &[], few, &mut self.rng));
        let again =
            leverage::bless(&part, kernel, Target::Lambda(scores.lambda.min(0.5)), &mut self.rng)?;
        let exact = leverage::exact(&part, kernel, again.lambda)?;
        self.report.leverage = Some(LeverageReport {
            lambda: scores.lambda,
            effective_dimension: scores.effective_dimension(),
            accuracy: leverage::accuracy(&again.scores, &exact),
            accuracy_rows: part.len(),
        });
        Ok(match m {
            Some((m, wanted)) => {
                let chosen = scores.sample(self.sample.space(), m, &mut self.rng);
                self.fill(chosen, m, wanted)
            }
            None => {
                let subset = self.sample.select(&scores.draw_some(&mut self.rng));
                subset.select(&distinct(subset.space()))
            }
        })
    }

    /// D² over all rows: half the landmarks from the sample, the other half from rows drawn in
    /// proportion to D² to the first half.
    fn first_half(&mut self, wanted: Option<usize>) -> Result<Chosen> {
        let m = self.count(wanted)?;
        let first = dsquared(self.sample.space(), None, None, m.div_ceil(2), &mut self.rng);
        Ok(Chosen::Half { first: self.sample.select(&first), m, wanted })
    }

    fn other_half(
        &mut self,
        first: &Placed,
        m: usize,
        wanted: Option<usize>,
        distant: Reservoir,
    ) -> Placed {
        let (d, c) = (self.frame.dims(), self.recipe.categories.len());
        let threshold = distant.threshold();
        let (mut rows, mut codes, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for row in distant.into_rows().chunks_exact(d + c + 1) {
            rows.extend_from_slice(&row[..d]);
            codes.extend(row[d..d + c].iter().map(|code| *code as u32));
            weights.push(row[d + c]);
        }
        let donors = (self.found.sample.as_slice(), self.found.codes.as_slice());
        let distant = placed(&self.frame, &self.recipe, &rows, &codes, Some(donors));
        let d2 = squared_distances(distant.space(), first.space());
        // A row that is kept with probability p stands for 1/p rows like it.
        let stand_for = |(w, d2): (&f64, &f64)| w / -(-w * d2 * threshold).exp_m1();
        let stand_for: Vec<f64> = weights
            .iter()
            .zip(&d2)
            .map(stand_for)
            .map(|s| if s.is_finite() { s } else { 0.0 })
            .collect();
        let rest = m - first.len();
        let (space, existing) = (distant.space(), Some(first.space()));
        let second = dsquared(space, Some(&stand_for), existing, rest, &mut self.rng);
        let all = first.and(&distant.select(&second));
        self.note_fewer(all.len(), wanted);
        all
    }
}

/// Rows in the coordinates of a frame; what they lack comes from rows like them, of `donors` or of these.
fn placed(
    frame: &Frame,
    recipe: &Recipe,
    rows: &[f64],
    codes: &[u32],
    donors: Option<(&[f64], &[u32])>,
) -> Placed {
    let narrow = |rows: &[f64]| {
        let mut out = Vec::with_capacity(rows.len());
        rows.chunks_exact(frame.dims()).for_each(|row| frame.narrow(row, &mut out));
        out
    };
    let (d, c) = (frame.dims(), recipe.categories.len());
    let mut data = narrow(rows);
    if data.iter().any(|x| x.is_nan()) {
        let (others, levels) =
            donors.map_or((data.clone(), codes), |(r, codes)| (narrow(r), codes));
        let donors = Donors::new(d, &others, levels, &recipe.categories);
        for (i, row) in data.chunks_exact_mut(d).enumerate() {
            donors.fill(row, &codes[i * c..(i + 1) * c]);
        }
    }
    Placed::new(recipe, Points::new(d, data), codes.to_vec())
}

/// The centre is the mean, rounded to about the column's spread so that integers stay integers.
fn make_frame(
    columns: &[String],
    recipe: &Recipe,
    found: &Survey,
    params: &PlanParams,
) -> Result<Frame> {
    let mut centre = Vec::new();
    let mut scales = Vec::new();
    for (j, c) in found.columns.iter().enumerate() {
        let unit = if c.deviation > 0.0 { c.deviation.log2().floor().exp2() } else { 0.0 };
        let rounded = (c.mean / unit).round() * unit;
        centre.push(if c.low == c.high {
            c.low
        } else if rounded.is_finite() {
            rounded
        } else {
            c.mean
        });
        // A sine or a cosine that is constant up to rounding is not stretched.
        let circle = recipe.numbers[j].step.of_circle() && c.high - c.low < ONE_POINT;
        let usable = c.deviation.is_normal() && c.low < c.high && !circle;
        let scale = match params.scale.unwrap_or_default() {
            Scale::Standard if usable => c.deviation,
            Scale::Robust if usable => {
                let (low, high) = quartiles(found, j);
                let width = (high - low) / GAUSSIAN_QUARTILES;
                if width.is_normal() { width } else { c.deviation }
            }
            _ => 1.0,
        };
        let weight = params.weight_of(&recipe.numbers[j].input).unwrap_or(1.0);
        scales.push(scale / weight.sqrt());
    }
    let low: Vec<f64> = found.columns.iter().map(|c| c.low).collect();
    let high: Vec<f64> = found.columns.iter().map(|c| c.high).collect();
    Frame::new(columns, centre, scales, &low, &high)
}

/// How many standard deviations the quartiles of a Gaussian are apart.
const GAUSSIAN_QUARTILES: f64 = 1.348_979_500_392_163;

/// Quartiles of a column in the sample.
fn quartiles(found: &Survey, j: usize) -> (f64, f64) {
    let values = found.sample.iter().skip(j).step_by(found.columns.len());
    let mut values: Vec<f64> = values.copied().filter(|x| !x.is_nan()).collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| match values.len() {
        0 => 0.0,
        n => values[((n - 1) as f64 * share) as usize],
    };
    (at(0.25), at(0.75))
}

/// Sums count steps of about 2⁻²⁸ of the largest value: a few rows that are immensely far away make the
/// steps too wide for all others.
fn warn_of_lost_digits(columns: &[String], found: &Survey, frame: &Frame, report: &mut PlanReport) {
    let d = columns.len();
    for j in 0..d {
        let (low, high) = quartiles(found, j);
        let step = power_of_two(frame.exponent[j]) * frame.scale[j];
        if high > low && step > 1e-2 * (high - low) {
            report.warnings.push(format!(
                "column '{}' reaches from {:.3e} to {:.3e}, but half of its values lie between {:.3e} and {:.3e}: \
                 sums keep them only to steps of {step:.1e}; leave such extreme rows out, or bring them nearer",
                columns[j], found.columns[j].low, found.columns[j].high, low, high
            ));
        }
    }
}
