//! Fitting: choosing a decoder, running it, and building a model from its atoms.

use super::by_cells::CellsDecoder;
use super::by_kernel::KernelDecoder;
use super::by_pursuit::Pursuit;
use super::context::Context;
use super::decode::{Decode, Job, Mode, Start};
use super::em::Floor;
use super::known::Axes;
use super::likelihood::PointDensities;
use super::list::Decoder;
use super::params::FitParams;
use super::pca;
use crate::atom::Atom;
use crate::covariance::{Covariance, CovarianceKind};
use crate::model::densities::Densities;
use crate::model::report::Report;
use crate::model::task::Task;
use crate::model::{Model, Shape};
use nysketch_core::error::{Error, Result};
use nysketch_core::kernel::Kernel;
use nysketch_core::plan::Plan;
use nysketch_core::planning::landmarks::count::too_few;
use nysketch_core::sketch::Sketch;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::time::Instant;

/// Minimum number of retained rows per parameter of a mixture for full covariances to be the
/// default.
const ROWS_PER_NUMBER: usize = 4;

/// Learns a model from a sketch.
///
/// ```
/// use nysketch::{FitParams, Mixture, PlanParams, Sketch, SketchParams, Table, Task};
/// use nysketch::{fit, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(2, Mixture::new(2, 3, 3.0, 1)?.rows(0, 900).values)?;
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default())?.0);
/// let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let model = fit(&sketch, &FitParams::new(Task::Kmeans, 3))?;
/// assert_eq!(model.k(), 3);
/// # Ok(())
/// # }
/// ```
pub fn fit(sketch: &Sketch, params: &FitParams) -> Result<Model> {
    Context::new(sketch).fit(params)
}

/// Returns a note on whether the model is private, if the plan is.
fn privacy_note(sketch: &Sketch) -> Option<String> {
    sketch.plan().private.as_ref()?;
    Some(match sketch.released() {
        Some(promise) => format!(
            "learned from a release, whose sums have noise, and so has the estimated risk; \
             {promise}"
        ),
        None => "not private: learned from exact sums".into(),
    })
}

impl Context<'_> {
    /// Learns a model from the sketch.
    pub fn fit(&self, params: &FitParams) -> Result<Model> {
        let frame = &self.plan().frame;
        for centre in &params.init {
            if centre.len() != frame.dims() || !centre.iter().all(|x| x.is_finite()) {
                let expected = format!("centres of {} finite numbers", frame.dims());
                return Err(Error::parameter("`init`", expected, format!("{centre:?}")));
            }
        }
        if !params
            .init_covariances
            .iter()
            .all(|c| c.dims() == frame.dims() && c.cholesky().is_some())
        {
            let expected = format!("positive definite, of {} columns", frame.dims());
            return Err(Error::parameter("`init_covariances`", expected, "others"));
        }
        let centres: Vec<Vec<f64>> = params.init.iter().map(|c| frame.coordinates(c)).collect();
        self.fit_from(params, Start { centres: &centres, smaller: &[], mode: Mode::Search })
    }

    /// Learns a model from the sketch, from a given start.
    pub(super) fn fit_from(&self, params: &FitParams, start: Start<'_>) -> Result<Model> {
        self.check(params)?;
        let began = Instant::now();
        let rng = ChaCha8Rng::seed_from_u64(params.seed);
        let (kind, note) = self.covariance(params);
        let notes = note.into_iter().chain(privacy_note(self.sketch()));
        let mut report = Report { notes: notes.collect(), ..Report::default() };
        if params.task == Task::Gmm && params.known_covariance.is_none() {
            report.min_variance = Some(params.min_variance);
        }
        let mut job =
            Job { context: self, params, start, kind, known: None, rng, report, densities: None };
        job.report.warnings.extend(self.few_landmarks(params));
        let frame = &self.plan().frame;
        let (shape, levels) = if params.task == Task::Pca {
            job.report.decoder = "moments".into();
            (pca::components(self.sketch(), params.k)?.into_shape(frame), Vec::new())
        } else {
            let decoder = self.chosen(params);
            job.report.decoder = decoder.name().into();
            let (shape, atoms) = match params.task {
                Task::Gmm => {
                    let (kind, atoms) = mixture(run(decoder), &mut job)?;
                    (Shape::mixture(frame, kind, &atoms), atoms)
                }
                _ => {
                    let mut atoms = run(decoder).centres(&mut job)?;
                    on_spheres(self.plan(), &mut atoms);
                    (Shape::centres(frame, &atoms), atoms)
                }
            };
            let levels = atoms.into_iter().map(|a| a.levels).filter(|l| !l.is_empty());
            (shape, levels.collect())
        };
        let mut report = job.report;
        report.seconds = began.elapsed().as_secs_f64();
        let atoms = shape.atoms(frame).map(|atoms| with_levels(atoms, &levels));
        let densities = job.densities.or_else(|| self.densities(atoms.as_deref()?));
        if let (Some(atoms), Some(share)) = (&atoms, report.min_variance) {
            report.collapsed = self.collapsed(atoms, kind, share);
        }
        let model = Model::new(self.sketch(), params.task, shape, levels, report)?;
        let profile = self.profile(&model);
        Ok(model.with_profile(profile).with_densities(densities))
    }

    /// Returns the quantiles of the log density of the rows under a mixture in the plan's
    /// coordinates, if there are cells.
    fn densities(&self, atoms: &[Atom]) -> Option<Densities> {
        let points = self.stand_ins()?;
        let logs = self.plan().frame.log_scale();
        let mut found = PointDensities::new(&points, atoms).log_density;
        found.iter_mut().for_each(|l| *l -= logs);
        Densities::new(&found, points.weights())
    }

    /// Counts the components of a mixture in the plan's coordinates whose variance in some column
    /// or direction is at most this share of the column's variance. Returns 0 if the sums do not
    /// contain the variance. The count can be positive because not every decoder enforces the
    /// minimum.
    fn collapsed(&self, atoms: &[Atom], kind: CovarianceKind, share: f64) -> usize {
        let floor = if self.plan().collect.cells {
            self.cells().floor_at(share)
        } else if let Some(floor) = self.floor_of_moments(share) {
            floor
        } else {
            return 0;
        };
        let floor = match kind {
            CovarianceKind::Spherical => Floor::new(vec![floor.spherical(); floor.dims()]),
            _ => floor,
        };
        atoms.iter().filter(|a| floor.binds(&a.covariance)).count()
    }

    /// Returns this share of the variance of every column, in the plan's coordinates, if the sketch
    /// contains moments.
    pub(super) fn floor_of_moments(&self, share: f64) -> Option<Floor> {
        let moments = self.sketch().column_moments()?;
        let scaled = moments.iter().zip(&self.plan().frame.scale).map(|(m, s)| m.1 / s / s);
        Some(Floor::new(scaled.map(|v| (share * v).max(f64::MIN_POSITIVE)).collect()))
    }

    /// Returns the kind of covariance of a mixture, and a note on the choice if the user did not
    /// make it.
    pub(super) fn covariance(&self, params: &FitParams) -> (CovarianceKind, Option<String>) {
        if params.task != Task::Gmm || self.chosen(params) != Decoder::Cells {
            return (CovarianceKind::Diag, None);
        }
        if let Some(kind) = params.covariance {
            let unknown = kind.is_matrix() && self.witnessed().is_none();
            let note = "without witness rows, what columns do together inside a cell is not known";
            return (kind, unknown.then(|| note.into()));
        }
        let Some(points) = self.witnessed() else {
            let strange = self.plan().witness_rows().is_some();
            let note = "the witness rows of the plan are not like the rows of this sketch, so that \
                        cells alone tell: diagonal covariances";
            return (CovarianceKind::Diag, strange.then(|| note.into()));
        };
        let (k, d) = (params.k, self.plan().dims());
        let numbers = CovarianceKind::Full.parameters(k, d);
        if numbers.saturating_mul(ROWS_PER_NUMBER) <= points.witnesses() {
            return (CovarianceKind::Full, None);
        }
        let note = format!(
            "diagonal covariances, since full ones of k = {k} components in {d} columns have \
             {numbers} numbers, too many for {} witness rows; ask for them with `covariance=full`",
            points.witnesses()
        );
        (CovarianceKind::Diag, Some(note))
    }

    /// Returns a warning if there are too few landmarks for k clusters.
    fn few_landmarks(&self, params: &FitParams) -> Option<String> {
        if params.task == Task::Pca {
            return None;
        }
        let (k, landmarks) = (params.k, self.plan().landmarks()?.len());
        let max = self.plan().measured().most_points();
        let enough = too_few(landmarks, k, self.sketch().rows(), max)?;
        let by_cells = self.chosen(params) == Decoder::Cells;
        // If all rows of a cell are equal, more cells would not help.
        if by_cells && !(self.plan().collect.cells && self.cells().have_variance()) {
            return None;
        }
        let (what, worse) = if by_cells {
            ("cells", "the model may be some percent worse than one of all rows")
        } else {
            (
                "landmarks",
                "the model may be much worse than one of all rows, and than its estimated risk \
                 says",
            )
        };
        Some(format!(
            "{landmarks} {what} are few for k = {k}: {worse}; plan with `clusters={k}`, which takes \
             {enough} landmarks"
        ))
    }

    /// Returns the decoder to run, with `auto` resolved.
    fn chosen(&self, params: &FitParams) -> Decoder {
        let plan = self.plan();
        // A known covariance or a bandwidth applies to kernel sums only.
        let cells =
            plan.collect.cells && params.known_covariance.is_none() && params.bandwidth.is_none();
        match params.decoder {
            Decoder::Auto if cells || !params.init.is_empty() => Decoder::Cells,
            Decoder::Auto if plan.kernel != Kernel::Gaussian => Decoder::Clompr,
            Decoder::Auto => Decoder::Kernel,
            other => other,
        }
    }

    /// Returns an error if the task cannot be learned from this sketch.
    pub(super) fn check(&self, params: &FitParams) -> Result<()> {
        let (sketch, plan, k) = (self.sketch(), self.plan(), params.k);
        if sketch.rows() == 0 {
            return Err(Error::NoRows { skipped: sketch.skipped() });
        }
        params.check()?;
        if params.task == Task::Pca {
            if let Some((name, got)) = params.of_search().into_iter().next() {
                return Err(Error::parameter(name, "left out for pca", got));
            }
            if let Some(got) = params.bandwidth {
                let expected = "left out for pca, which needs none";
                return Err(Error::parameter("`bandwidth`", expected, got));
            }
            if !plan.collect.moments {
                let task = params.task.name();
                return Err(Error::MissingSums { task, what: "moments".into() });
            }
            if sketch.complete_rows() == 0 {
                let expected =
                    "a task that does not need rows with all their numbers; no row has them";
                return Err(Error::parameter("`task`", expected, params.task.name()));
            }
            if k > plan.dims() {
                return Err(Error::TooManyComponents {
                    k,
                    available: plan.dims(),
                    what: "columns",
                });
            }
            return Ok(());
        }
        if k as u64 > sketch.rows() {
            let available = sketch.rows() as usize;
            return Err(Error::TooManyComponents { k, available, what: "rows" });
        }
        let decoder = self.chosen(params);
        let extras = !plan.categories().is_empty() || plan.is_partial();
        if decoder != Decoder::Cells && extras {
            let expected = "cells where there are categories or missing values";
            return Err(Error::parameter("`decoder`", expected, decoder.name()));
        }
        for (name, got) in params.of_search() {
            let is_used = match (params.task, decoder) {
                (Task::Gmm, Decoder::Cells) => true,
                (Task::Gmm, Decoder::Kernel) => {
                    name == "`min_variance`" && plan.landmarks().is_some()
                }
                _ => false,
            };
            if !is_used {
                let expected = "left out unless a gmm is learned from cells";
                return Err(Error::parameter(name, expected, got));
            }
        }
        let pursuit = matches!(decoder, Decoder::Clompr | Decoder::Clomp);
        if let Some(got) = params.replicates.filter(|_| !pursuit) {
            let expected = "left out unless `decoder=clompr` or `decoder=clomp`";
            return Err(Error::parameter("`replicates`", expected, got));
        }
        if decoder != Decoder::Cells && params.covariance.is_some_and(|c| c != CovarianceKind::Diag)
        {
            let expected = "diag where kernel sums are decoded; use `decoder=cells`";
            let got = params.covariance.map_or("", CovarianceKind::name);
            return Err(Error::parameter("`covariance`", expected, got));
        }
        run(decoder).check(self, params)
    }
}

/// Projects centres of unit vectors onto the unit sphere, which decoders of kernel sums do not
/// enforce.
fn on_spheres(plan: &Plan, atoms: &mut [Atom]) {
    let spheres = plan.spheres();
    for atom in atoms {
        let before = atom.mean.clone();
        spheres.project(&mut atom.mean, &before);
    }
}

/// Returns the atoms with the given shares of levels.
pub(super) fn with_levels(mut atoms: Vec<Atom>, levels: &[Vec<f64>]) -> Vec<Atom> {
    atoms.iter_mut().zip(levels).for_each(|(atom, levels)| atom.levels.clone_from(levels));
    atoms
}

/// Returns the mixture in the plan's coordinates. If its covariance is a known matrix, the sketch
/// is decoded along the axes of that matrix.
fn mixture(decoder: &dyn Decode, job: &mut Job<'_>) -> Result<(CovarianceKind, Vec<Atom>)> {
    let known = job.params.known_covariance.as_ref();
    let known = known.map(|known| known.in_plan(&job.context.plan().frame)).transpose()?;
    let Some(Covariance::Full(matrix)) = known else {
        job.known = known.map(|diagonal| diagonal.variances().into_owned());
        return Ok((job.kind, decoder.mixture(job)?));
    };
    let axes = Axes::of(&matrix)?;
    let turned = Context::turned(job.context, axes.clone());
    let mut along = Job {
        context: &turned,
        params: job.params,
        start: Start::default(),
        kind: job.kind,
        densities: None,
        known: Some(axes.variances.clone()),
        rng: job.rng.clone(),
        report: job.report.clone(),
    };
    let mut atoms = decoder.mixture(&mut along)?;
    job.report = along.report;
    for atom in &mut atoms {
        atom.mean = axes.back(&atom.mean);
        atom.covariance = Covariance::Full(matrix.clone());
    }
    Ok((CovarianceKind::Tied, atoms))
}

/// Returns the implementation of a decoder.
fn run(decoder: Decoder) -> &'static dyn Decode {
    match decoder {
        Decoder::Auto | Decoder::Kernel => &KernelDecoder,
        Decoder::Cells => &CellsDecoder,
        Decoder::Clompr => &Pursuit { replacement: true },
        Decoder::Clomp => &Pursuit { replacement: false },
    }
}
