//! The construction of a plan, except for reading rows.

use super::framing::{make_frame, warn_of_lost_digits};
use super::params::{GivenLandmarks, LandmarkCount, Measurement, PlanParams, PlanValid, Scale};
use super::placed::Placed;
use super::remarks;
use super::report::{LeverageReport, PlanReport, Planned};
use super::roles::{Settled, TableColumns, preliminary, settle};
use super::witnesses::draw_places;
use crate::error::{Error, Place, Result};
use crate::kernel::fourier::draw_frequencies;
use crate::kernel::search::PanelsOnce;
use crate::kernel::{Kernel, ScaledKernel};
use crate::numeric::linalg::symmetric_eigen;
use crate::numeric::points::Points;
use crate::numeric::simd::Instructions;
use crate::plan::collect::Collect;
use crate::plan::devices::OnDevices;
use crate::plan::frame::{Frame, FramedRows};
use crate::plan::sampling::Sampling;
use crate::plan::table::Measured;
use crate::plan::witnesses::Witnesses;
use crate::plan::{Features, Plan};
use crate::planning::bandwidth;
use crate::planning::landmarks::cholesky::{Pivot, pivoted_cholesky};
use crate::planning::landmarks::count::{
    DEFAULT_LANDMARKS, LANDMARKS_PER_CLUSTER, default_landmarks, possible_landmarks,
};
use crate::planning::landmarks::dsquared::{dsquared, squared_distances};
use crate::planning::landmarks::leverage;
use crate::planning::landmarks::leverage::Target;
use crate::planning::landmarks::uniform::{distinct, uniform};
use crate::planning::survey::Survey;
use crate::recipe::{Number, Recipe};
use crate::rows::sample::Reservoir;
use crate::rows::weight::Weighting;
use crate::sketch::columns::ColumnSummary;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Number of rows on which the accuracy of leverage scores is measured.
const ACCURACY_ROWS: usize = 800;
/// Number of rows whose kernel matrix determines how many landmarks span the data, and the share of
/// its trace that they must span.
const SPECTRUM_ROWS: usize = 800;
const SPANNED: f64 = 0.95;
/// Range of the automatic number of landmarks. Clusters may require more.
const AUTO_LANDMARKS: std::ops::RangeInclusive<usize> = 50..=2000;

/// A plan under construction.
pub struct Draft {
    params: PlanParams,
    weighting: Option<Weighting>,
    measurement: Measurement,
    witnesses: usize,
    /// Names of the numeric columns of the table.
    inputs: Vec<String>,
    columns: Vec<String>,
    recipe: Recipe,
    frame: Frame,
    /// Rows of the sample, with missing values filled in.
    sample: Placed,
    /// Rows of the sample with their missing values, if there are any.
    holed: Option<Points>,
    found: Survey,
    bandwidths: Vec<f64>,
    rng: ChaCha8Rng,
    report: PlanReport,
    chosen: Chosen,
}

/// Progress of the choice of landmarks.
enum Chosen {
    /// Not started.
    Nothing,
    /// All landmarks, or frequencies.
    All(Features, Vec<u32>),
    /// Half of `m`, from the sample. The other half comes from rows far from these.
    Half { first: Placed, m: usize, wanted: Option<usize> },
}

impl Draft {
    /// Chooses the frame, the bandwidths, and the landmarks that depend on the sample alone.
    pub fn new(table: &TableColumns, found: Survey, params: &PlanValid) -> Result<Self> {
        let valid = params;
        let PlanValid { mut params, measurement, .. } = valid.clone();
        let (columns, recipe) = preliminary(table, &params)?;
        let rows = found.rows;
        let landmarks =
            matches!(measurement, Measurement::Chosen { .. } | Measurement::Leverage(_));
        let Settled { columns, recipe, mut found, mut notes, table: summaries } =
            settle(columns, recipe, found, &params, landmarks)?;
        let times = recipe.numbers.iter().any(|n| n.step.of_time());
        if params.scale.is_none() && (times || !recipe.categories.is_empty()) {
            params.scale = Some(Scale::Standard);
            let why = if times { "points in time" } else { "categories" };
            notes.push(format!("columns are scaled by their standard deviations, because there are {why}; `scale=none` keeps them unscaled"));
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
        let witnesses = valid.witnesses_of(frame.dims());
        let losses = found.losses.clone();
        let mut report = PlanReport { rows, losses, ..PlanReport::default() };
        report.notes = notes;
        report.columns = summaries;
        report.notes.extend(remarks::of_columns(&columns, &found, scale));
        warn_of_lost_digits(&columns, &found, &frame, &mut report);
        // Single precision suffices from here on.
        let mut data = Vec::with_capacity(found.sample.len());
        let rows = std::mem::take(&mut found.sample);
        rows.chunks_exact(frame.dims()).for_each(|row| frame.narrow(row, &mut data));
        drop(rows);
        let data = Points::new(frame.dims(), data);
        let holed = data.data().iter().any(|x| x.is_nan()).then(|| data.clone());
        let sample =
            Placed::filled(&recipe, data, found.codes.clone(), (holed.as_ref(), &found.codes));
        report.sample_rows = sample.len();
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
            holed,
            found,
            bandwidths,
            rng,
            report,
            chosen,
        };
        draft.chosen = draft.choose()?;
        Ok(draft)
    }

    /// If the remaining landmarks must come from rows far from the first ones, returns a plan with
    /// the first landmarks and the number of rows to draw.
    pub fn wants_distant_rows(&self) -> Option<(Plan, usize)> {
        let Chosen::Half { first, .. } = &self.chosen else { return None };
        let features = Features::Nystrom(first.points.clone(), Sampling::Dsquared);
        let collect = Collect { kernel: false, cells: true, moments: false };
        // D² is the squared Euclidean distance for every kernel.
        let levels = first.codes.clone();
        let plan = Plan { kernel: Kernel::Gaussian, ..self.plan(features, levels, collect) };
        Some((plan, self.sample.len()))
    }

    /// Completes the plan. `distant` holds the rows requested by
    /// [`wants_distant_rows`](Self::wants_distant_rows).
    pub fn finish(mut self, distant: Option<Reservoir>) -> Result<Planned> {
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
        let landmarks = match &features {
            Features::Nystrom(points, _) => Some(points.len()),
            Features::Fourier(..) => None,
        };
        let collect = self.collect_for(landmarks);
        self.note_left_out(collect, landmarks);
        let plan = self.plan(features, levels, collect);
        let plan = match &self.params.private {
            Some(private) => {
                let plan = private.apply(plan, &self.sample.points, self.params.threads)?;
                self.report.warnings.extend(private.remark(&plan, &self.sample.points));
                plan
            }
            None => Plan { witnesses: self.witnesses(), ..plan },
        };
        plan.check()?;
        for measured in ColumnSummary::of_plan(&plan) {
            if let Some(c) = self.report.columns.iter_mut().find(|c| c.column == measured.column) {
                (c.numbers, c.transformation) = (measured.numbers, measured.transformation);
            }
        }
        Ok(Planned { plan, report: self.report })
    }

    /// The sums to keep for this number of landmarks. `None` means Fourier features.
    fn collect_for(&self, landmarks: Option<usize>) -> Collect {
        let default = Collect::default_for(self.columns.len(), landmarks);
        self.params.collect.unwrap_or(match self.params.kernel {
            Kernel::Gaussian => default,
            Kernel::Laplace => Collect { kernel: true, cells: false, ..default },
        })
    }

    /// Adds a note about sums that are not kept because of their size.
    fn note_left_out(&mut self, collect: Collect, landmarks: Option<usize>) {
        if self.params.collect.is_some() {
            return;
        }
        let d = self.columns.len();
        if !collect.kernel {
            let all = Collect { kernel: true, ..collect }.names().join(",");
            self.report.notes.push(format!(
                "{} landmarks: kernel sums are left out, since decoding so many is beyond the limit of work; cells, which \
                 the default decoder learns from, are kept; ask for both with `collect={all}`",
                landmarks.unwrap_or(0)
            ));
        }
        if !collect.moments {
            let all = Collect { moments: true, ..collect }.names().join(",");
            let sums = d * (d + 1) / 2;
            self.report.notes.push(format!(
                "{d} columns: Σxxᵀ, which PCA needs, is left out: it has {sums} sums ({:.1} MB), and each row adds to \
                 all of them; ask for it with `collect={all}`",
                16e-6 * sums as f64
            ));
        }
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
            private: None,
            panels: PanelsOnce::default(),
            on_devices: OnDevices::default(),
        }
    }

    /// Draws the retained rows from the sample.
    fn witnesses(&self) -> Option<Witnesses> {
        let weights = &self.found.sample_weights;
        let places = draw_places(weights, self.witnesses, self.params.seed);
        // If every row is kept, rows were not drawn by weight, so their weights must be stored.
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
            // Retained rows keep their missing values.
            let chosen = self.sample.select(&places);
            let rows = match &self.holed {
                Some(holed) => {
                    let mut rows = holed.select(&places).data().to_vec();
                    rows.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = f32::NAN);
                    Points::new(holed.dims(), rows)
                }
                None => chosen.points,
            };
            Witnesses::new(rows, chosen.codes, kept)
        })
    }

    /// The bandwidth of leverage scores and Cholesky factors.
    fn sigma2(&self) -> f64 {
        self.bandwidths[self.bandwidths.len() / 2]
    }

    /// The kernel at this bandwidth.
    fn kernel(&self) -> ScaledKernel {
        self.params.kernel.at(self.sigma2())
    }

    fn choose(&mut self) -> Result<Chosen> {
        let (placed, sampling) = match self.measurement.clone() {
            Measurement::Fourier { frequencies, law } => {
                let drawn = draw_frequencies(law, self.frame.dims(), frequencies, &mut self.rng);
                return Ok(Chosen::All(Features::Fourier(drawn, law), Vec::new()));
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

    /// Landmarks from the user, without duplicates.
    fn given(&mut self, given: &GivenLandmarks) -> Result<Placed> {
        if !self.recipe.categories.is_empty() {
            let expected = "left out where the table has categories";
            return Err(Error::parameter("`landmarks_from`", expected, &given.name));
        }
        if !self.recipe.units.is_empty() {
            let expected = "left out where vectors are scaled to length one";
            return Err(Error::parameter("`landmarks_from`", expected, &given.name));
        }
        // The given rows have all numeric columns of the table; only the measured ones are used.
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

    /// Largest number of landmarks whose sums fit in a sketch, if `wanted` are requested.
    fn most_landmarks(&self, wanted: usize) -> usize {
        let most = |landmarks: usize| {
            let of_plan = Measured {
                dims: self.frame.dims(),
                levels: self.recipe.levels(),
                partial: self.recipe.least_present.is_some(),
                points: 0,
                landmarks: true,
                bandwidths: self.bandwidths.len(),
                collect: self.collect_for(Some(landmarks)),
                people: false,
            };
            of_plan.most_points()
        };
        // With fewer landmarks than wanted, more sums per landmark may be collected.
        most(most(wanted).min(wanted))
    }

    /// The number of landmarks.
    fn count(&mut self, wanted: Option<usize>) -> Result<usize> {
        let rows = self.found.rows;
        let Some(m) = wanted else { return Ok(self.default_count()) };
        let most = self.most_landmarks(m);
        if m as u64 > rows {
            return Err(Error::TooFewRows { landmarks: m, rows: rows as usize });
        }
        if m > most {
            let d = self.columns.len();
            let expected = format!("at most {most} for {d} columns, whose sums are 2²⁶ in all");
            return Err(Error::parameter("`landmarks`", expected, m));
        }
        Ok(m)
    }

    /// The default number of landmarks. Adds a note if the rows or the sums allow fewer than the
    /// clusters need.
    fn default_count(&mut self) -> usize {
        let enough = default_landmarks(self.params.clusters);
        let (rows, most) = (self.found.rows, self.most_landmarks(enough));
        let m = possible_landmarks(self.params.clusters, rows, most);
        if let Some(k) = self.params.clusters.filter(|_| m < enough) {
            let why = match m == most {
                true => format!("a sketch of {} columns has sums for no more", self.columns.len()),
                false => format!("there are only {rows} rows"),
            };
            self.report.notes.push(format!(
                "`clusters={k}` asks for {enough} landmarks; there are {}, since {why}",
                m.min(rows as usize)
            ));
        }
        m
    }

    /// Chooses the number of landmarks from the clusters, the columns and the spectrum of the
    /// kernel, and adds a note with the reason.
    ///
    /// A model of k clusters has k(d + 1) parameters, and twice as many moments determine them
    /// well. A cell that is cut by a border serves two clusters, so there are at least
    /// [`LANDMARKS_PER_CLUSTER`]. The eigenvalues of the kernel matrix of a small sample show how
    /// many landmarks span the rows, if that number is small.
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
                k.saturating_mul(2 * (d + 1)).max(k.saturating_mul(LANDMARKS_PER_CLUSTER)),
                match 2 * (d + 1) < LANDMARKS_PER_CLUSTER {
                    true => format!("{LANDMARKS_PER_CLUSTER} for each of {k} clusters"),
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
        let enough = self.params.clusters.map_or(0, |k| default_landmarks(Some(k)));
        let m = wanted.clamp(*AUTO_LANDMARKS.start(), enough.max(*AUTO_LANDMARKS.end()));
        let m = m.min(self.found.rows as usize).min(self.most_landmarks(m));
        self.report.notes.push(format!("{m} landmarks: {why} ({for_model}); {spectrum}"));
        Ok(m)
    }

    /// Chooses exactly `wanted` landmarks, or all different rows if there are fewer.
    fn counted(&mut self, wanted: Option<usize>, sampling: Sampling) -> Result<Placed> {
        let m = self.count(wanted)?;
        let (sample, kernel) = (self.sample.space(), self.kernel());
        let chosen = match sampling {
            Sampling::Dsquared => {
                let (weights, threads) = (&self.found.sample_weights, self.params.threads);
                dsquared(sample, Some(weights), None, m, threads, &mut self.rng)
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

    /// Adds uniformly drawn landmarks until there are `m`, with a note if any were added or if some
    /// are still missing.
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
        self.note_fewer(chosen.len(), m, wanted);
        self.sample.select(&chosen)
    }

    fn note_fewer(&mut self, got: usize, m: usize, wanted: Option<usize>) {
        // Without a requested number, using all rows of a small table is no surprise.
        let expected = wanted.is_none() && got as u64 == self.found.rows;
        if got < m && !expected {
            self.report.notes.push(format!(
                "the rows looked at hold only {got} different points, so there are {got} landmarks instead of {m}"
            ));
        }
    }

    /// Leverage sampling: BLESS scores, then `m` draws, or the paper's random number of draws if
    /// `m` is not given.
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

    /// D² sampling over all rows, first step: chooses half of the landmarks from the sample. The
    /// other half comes from rows drawn with probability proportional to their D² from the first
    /// half.
    fn first_half(&mut self, wanted: Option<usize>) -> Result<Chosen> {
        let m = self.count(wanted)?;
        let (space, threads) = (self.sample.space(), self.params.threads);
        let first = dsquared(space, None, None, m.div_ceil(2), threads, &mut self.rng);
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
        let (mut rows, mut codes) = (Vec::with_capacity(d * distant.len()), Vec::new());
        let (mut d2, mut weights) = (Vec::new(), Vec::new());
        distant.each_row(|row| {
            self.frame.narrow(&row[..d], &mut rows);
            codes.extend(row[d..d + c].iter().map(|code| *code as u32));
            d2.push(row[d + c]);
            weights.push(row[d + c + 1]);
        });
        let holed = rows.iter().any(|x| x.is_nan());
        let donors = self.holed.as_ref().unwrap_or(&self.sample.points);
        let donors = (Some(donors), &self.found.codes[..]);
        let distant = Placed::filled(&self.recipe, Points::new(d, rows), codes, donors);
        let threads = self.params.threads;
        if holed {
            // The distances of the draw use only the values that are present.
            d2 = squared_distances(distant.space(), first.space(), threads);
        }
        // A row drawn with probability p represents 1/p rows.
        let stand_for = |(w, d2): (&f64, &f64)| w / -(-w * d2 * threshold).exp_m1();
        let stand_for: Vec<f64> = weights
            .iter()
            .zip(&d2)
            .map(stand_for)
            .map(|s| if s.is_finite() { s } else { 0.0 })
            .collect();
        let (space, rest) = (distant.space(), m - first.len());
        let second = dsquared(space, Some(&stand_for), Some(d2), rest, threads, &mut self.rng);
        let all = first.and(&distant.select(&second));
        self.note_fewer(all.len(), m, wanted);
        all
    }
}
