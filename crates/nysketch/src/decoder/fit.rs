//! Choosing a decoder, and making a model of what comes out.

use super::by_cells::CellsDecoder;
use super::by_kernel::KernelDecoder;
use super::by_pursuit::Pursuit;
use super::context::Context;
use super::decode::{Decode, Job};
use super::known::Axes;
use super::list::Decoder;
use super::params::FitParams;
use super::pca;
use crate::atom::Atom;
use crate::covariance::{Covariance, CovarianceKind};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::model::{Model, Shape};
use crate::report::Report;
use crate::sketch::Sketch;
use crate::task::Task;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::time::Instant;

/// Learns a model from a sketch.
///
/// ```
/// use nysketch::{FitParams, Mixture, PlanParams, Sketch, SketchParams, Table, Task, fit, plan_for};
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

impl Context<'_> {
    /// Learns a model from the sketch.
    pub fn fit(&self, params: &FitParams) -> Result<Model> {
        let frame = &self.plan().frame;
        let fits = |c: &Vec<f64>| c.len() == frame.dims() && c.iter().all(|x| x.is_finite());
        if let Some(other) = params.init.iter().find(|c| !fits(c)) {
            let expected = format!("centres of {} finite numbers", frame.dims());
            return Err(Error::parameter("`init`", expected, format!("{other:?}")));
        }
        let warm: Vec<Vec<f64>> = params.init.iter().map(|c| frame.coordinates(c)).collect();
        self.fit_from(params, &warm)
    }

    /// The same, with centres to start from.
    pub(super) fn fit_from(&self, params: &FitParams, warm: &[Vec<f64>]) -> Result<Model> {
        self.check(params)?;
        let start = Instant::now();
        let rng = ChaCha8Rng::seed_from_u64(params.seed);
        let report = Report::default();
        let mut job = Job { context: self, params, warm, known: None, rng, report };
        let frame = &self.plan().frame;
        let shape = if params.task == Task::Pca {
            job.report.decoder = "moments".into();
            pca::components(self.sketch(), params.k)?.into_shape(frame)
        } else {
            let decoder = self.chosen(params);
            job.report.decoder = decoder.name().into();
            match params.task {
                Task::Gmm => {
                    let (kind, atoms) = mixture(run(decoder), &mut job)?;
                    Shape::mixture(frame, kind, atoms)
                }
                _ => Shape::centres(frame, run(decoder).centres(&mut job)?),
            }
        };
        let mut report = job.report;
        report.seconds = start.elapsed().as_secs_f64();
        let model = Model::new(self.sketch(), params.task, shape, report)?;
        let profile = self.profile(&model);
        Ok(model.with_profile(profile))
    }

    /// Which decoder really runs.
    fn chosen(&self, params: &FitParams) -> Decoder {
        let plan = self.plan();
        // A known covariance or a bandwidth is for kernel sums.
        let cells =
            plan.collect.cells && params.known_covariance.is_none() && params.bandwidth.is_none();
        match params.decoder {
            Decoder::Auto if cells || !params.init.is_empty() => Decoder::Cells,
            Decoder::Auto if plan.kernel != Kernel::Gaussian => Decoder::Clompr,
            Decoder::Auto => Decoder::Kernel,
            other => other,
        }
    }

    /// Refuses what cannot be learned from this sketch.
    pub(super) fn check(&self, params: &FitParams) -> Result<()> {
        let (sketch, plan, k) = (self.sketch(), self.plan(), params.k);
        if sketch.rows() == 0 {
            return Err(Error::NoRows { skipped: sketch.skipped() });
        }
        params.check()?;
        if params.task == Task::Pca {
            if let Some(got) = params.bandwidth {
                let expected = "left out for pca, which needs none";
                return Err(Error::parameter("`bandwidth`", expected, got));
            }
            if !plan.collect.moments {
                let task = params.task.name();
                return Err(Error::MissingSums { task, what: "moments".into() });
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
        run(self.chosen(params)).check(self, params)
    }
}

/// A mixture in the plan's coordinates. Where its covariance is a known matrix, it is decoded along the axes of
/// that matrix.
fn mixture(decoder: &dyn Decode, job: &mut Job<'_>) -> Result<(CovarianceKind, Vec<Atom>)> {
    let known = job.params.known_covariance.as_ref();
    let known = known.map(|known| known.in_plan(&job.context.plan().frame)).transpose()?;
    let Some(Covariance::Full(matrix)) = known else {
        job.known = known.map(|diagonal| diagonal.variances().into_owned());
        return Ok((CovarianceKind::Diag, decoder.mixture(job)?));
    };
    let axes = Axes::of(&matrix)?;
    let turned = Context::turned(job.context, axes.clone());
    let mut along = Job {
        context: &turned,
        params: job.params,
        warm: &[],
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

/// The code of a decoder.
fn run(decoder: Decoder) -> &'static dyn Decode {
    match decoder {
        Decoder::Auto | Decoder::Kernel => &KernelDecoder,
        Decoder::Cells => &CellsDecoder,
        Decoder::Clompr => &Pursuit { replacement: true },
        Decoder::Clomp => &Pursuit { replacement: false },
    }
}
