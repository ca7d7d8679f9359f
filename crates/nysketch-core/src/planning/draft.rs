//! The construction of a plan, except for reading rows.

use super::choices::Scale;
use super::framing::{make_frame, warn_of_lost_digits};
use super::params::PlanParams;
use super::placed::Placed;
use super::remarks;
use super::report::{PlanReport, Planned};
use super::roles::{Settled, TableColumns, preliminary, settle};
use super::valid::{Measurement, PlanValid};
use super::witnesses::draw_places;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::kernel::search::PanelsOnce;
use crate::numeric::points::Points;
use crate::plan::collect::Collect;
use crate::plan::devices::OnDevices;
use crate::plan::frame::Frame;
use crate::plan::sampling::Sampling;
use crate::plan::witnesses::Witnesses;
use crate::plan::{Features, Plan};
use crate::planning::bandwidth;
use crate::planning::survey::Survey;
use crate::recipe::Recipe;
use crate::rows::sample::Reservoir;
use crate::rows::weight::Weighting;
use crate::sketch::columns::ColumnSummary;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A plan under construction.
pub struct Draft {
    pub(super) params: PlanParams,
    pub(super) weighting: Option<Weighting>,
    pub(super) measurement: Measurement,
    pub(super) witnesses: usize,
    /// Names of the numeric columns of the table.
    pub(super) inputs: Vec<String>,
    pub(super) columns: Vec<String>,
    pub(super) recipe: Recipe,
    pub(super) frame: Frame,
    /// Rows of the sample, with missing values filled in.
    pub(super) sample: Placed,
    /// Rows of the sample with their missing values, if there are any.
    pub(super) incomplete: Option<Points>,
    pub(super) found: Survey,
    pub(super) bandwidths: Vec<f64>,
    pub(super) rng: ChaCha8Rng,
    pub(super) report: PlanReport,
    pub(super) chosen: Chosen,
}

/// Progress of the choice of landmarks.
pub(super) enum Chosen {
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
            notes.push(format!(
                "columns are scaled by their standard deviations, because there are {why}; \
                 `scale=none` keeps them unscaled"
            ));
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
        let incomplete = data.data().iter().any(|x| x.is_nan()).then(|| data.clone());
        let sample =
            Placed::filled(&recipe, data, found.codes.clone(), (incomplete.as_ref(), &found.codes));
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
            incomplete,
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
    pub(super) fn collect_for(&self, landmarks: Option<usize>) -> Collect {
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
                "{} landmarks: kernel sums are left out, since decoding so many is beyond the \
                 limit of work; cells, which the default decoder learns from, are kept; ask for \
                 both with `collect={all}`",
                landmarks.unwrap_or(0)
            ));
        }
        if !collect.moments {
            let all = Collect { moments: true, ..collect }.names().join(",");
            let sums = d * (d + 1) / 2;
            self.report.notes.push(format!(
                "{d} columns: Σxxᵀ, which PCA needs, is left out: it has {sums} sums ({:.1} MB), \
                 and each row adds to all of them; ask for it with `collect={all}`",
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
        let mut shares = Vec::new();
        if all && !same {
            let max = weights.iter().copied().fold(0.0, f64::max);
            let weights = places.iter().map(|p| weights[*p]);
            shares.extend(weights.map(|w| ((w / max) as f32).max(f32::MIN_POSITIVE)));
        }
        (!places.is_empty()).then(|| {
            // Retained rows keep their missing values.
            let chosen = self.sample.select(&places);
            let rows = match &self.incomplete {
                Some(incomplete) => {
                    let mut rows = incomplete.select(&places).data().to_vec();
                    rows.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = f32::NAN);
                    Points::new(incomplete.dims(), rows)
                }
                None => chosen.points,
            };
            Witnesses::new(rows, chosen.codes, shares)
        })
    }
}
