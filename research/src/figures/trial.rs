//! One trial: rows, their sketch, a model from the sketch, and its risk on the rows.

use super::settings::{Job, Method, REPLICATES, SUBSAMPLE, Source, Study};
use nysketch::decoder::cells::Cells;
use nysketch::metrics::{Contingency, adjusted_rand};
use nysketch::model::Shape;
use nysketch::{
    Collect, Context, CovarianceKind, Decoder, Error, FitParams, LandmarkCount, Mixture,
    PlanParams, Report, Result, RowSource, SampleRows, Sampling, Sketch, SketchParams, Table, Task,
    plan_for,
};
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints, nearest};
use nysketch_core::rows::sample::mix;
use nysketch_learn::atom::Atom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;
use std::sync::Arc;

/// Number of rows in the sample from which landmarks are chosen.
const SAMPLE_ROWS: usize = 10_000;
/// Restarts and iterations of Lloyd and EM on all rows, and on few rows.
const ALL_ROWS: Effort = Effort::new(5, 100);
const FEW_ROWS: Effort = Effort::new(10, 100);

/// Rows with their true classes.
#[derive(Debug, Clone)]
pub struct Data {
    pub table: Table,
    pub labels: Vec<u32>,
    /// Checksum of rows and classes, if they come from files.
    pub checksum: Option<u32>,
}

impl Data {
    /// Makes a data set from rows in row-major order, with one class each.
    pub fn new(dims: usize, values: Vec<f64>, labels: Vec<u32>) -> Result<Self> {
        Ok(Data { table: Table::unnamed(dims, values)?, labels, checksum: None })
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn dims(&self) -> usize {
        self.table.columns().len()
    }

    /// Adds a checksum.
    pub fn summed(mut self) -> Self {
        let mut crc = crc32fast::Hasher::new();
        self.table.values().iter().for_each(|x| crc.update(&x.to_le_bytes()));
        self.labels.iter().for_each(|l| crc.update(&l.to_le_bytes()));
        self.checksum = Some(crc.finalize());
        self
    }

    /// Keeps at most this many rows, spread evenly.
    pub fn thin(self, most: usize) -> Result<Self> {
        if self.len() <= most {
            return Ok(self);
        }
        let d = self.dims();
        let kept = || (0..most).map(|i| i * self.len() / most);
        let row = |i: usize| &self.table.values()[i * d..(i + 1) * d];
        let values = kept().flat_map(|i| row(i).iter().copied()).collect();
        Data::new(d, values, kept().map(|i| self.labels[i]).collect())
    }
}

/// The result of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Number of features of the sketch at one bandwidth, if there is a sketch.
    pub features: Option<usize>,
    /// Mean squared distance, or negative log-likelihood in nats.
    pub risk: f64,
    /// Adjusted Rand index, for k-means on rows with classes.
    pub ari: Option<f64>,
    /// Risk and adjusted Rand index of a single pursuit.
    pub single: Option<(f64, Option<f64>)>,
    /// Report of the search, if the model is from kernel sums.
    pub search: Option<Search>,
}

/// Report of a search in kernel sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The final value of the objective.
    pub objective: f64,
    /// Number of moments above the decoder's cut-off.
    pub rank: usize,
    pub status: String,
}

/// Returns the rows of a trial: from the file, or drawn for this trial.
pub fn rows_of<'a>(
    study: &Study,
    file: Option<&'a Data>,
    trial: u32,
    seed: u64,
    most: usize,
) -> Result<Cow<'a, Data>> {
    match (study.source, file) {
        (Source::Mixture { rows, dims, separation }, _) => {
            let seed = mix(mix(seed) ^ u64::from(trial));
            let mixture = Mixture::new(dims, study.k, separation, seed)?;
            let (mut values, mut labels) = (Vec::new(), Vec::new());
            for chunk in mixture.chunks(rows.min(most) as u64) {
                values.extend(chunk.values);
                labels.extend(chunk.labels);
            }
            Ok(Cow::Owned(Data::new(dims, values, labels)?))
        }
        (_, Some(data)) => Ok(Cow::Borrowed(data)),
        (Source::Files { rows, .. } | Source::Columns { rows, .. }, None) => {
            Err(Error::source(format!("{rows} is missing")))
        }
    }
}

/// Learns a model and measures it.
pub fn run(job: &Job, data: &Data, seed: u64) -> Result<Outcome> {
    let (study, d, values) = (&job.study, data.dims(), data.table.values());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let atoms = match job.method {
        Method::AllRows => from_rows(study, d, values, ALL_ROWS, &mut rng),
        Method::One => {
            let one = Study { k: 1, ..*study };
            from_rows(&one, d, values, Effort::new(1, 2), &mut rng)
        }
        Method::Subsample => {
            let rows = some_rows(data, SUBSAMPLE, &mut rng);
            from_rows(study, d, &rows, FEW_ROWS, &mut rng)
        }
        Method::Landmarks => {
            let rows = some_rows(data, job.size.unwrap_or(study.k), &mut rng);
            from_rows(study, d, &rows, FEW_ROWS, &mut rng)
        }
        _ => return from_sketch(job, data, seed),
    };
    let (risk, ari) = measure(study, data, atoms)?;
    Ok(Outcome { features: None, risk, ari, single: None, search: None })
}

/// Returns the risk of a model on the rows and, for k-means on rows with classes, the adjusted Rand
/// index.
fn measure(study: &Study, data: &Data, atoms: Vec<Atom>) -> Result<(f64, Option<f64>)> {
    let (d, values) = (data.dims(), data.table.values());
    let found = match study.task {
        Task::Gmm => (-Cells::of_rows(d, values).likelihood(&atoms), None),
        _ => {
            let centres: Vec<Vec<f64>> = atoms.into_iter().map(|a| a.mean).collect();
            let classes = data.labels.iter().max().map_or(0, |l| *l as usize + 1);
            let (mut total, mut table) = (0.0, vec![0u64; classes * centres.len()]);
            for (x, label) in values.chunks_exact(d).zip(&data.labels) {
                let (c, d2) = nearest(x, &centres);
                total += d2;
                table[*label as usize * centres.len() + c] += 1;
            }
            let pairs = table.iter().enumerate().filter(|(_, n)| **n > 0).map(|(i, n)| {
                let label = (i / centres.len()).to_string();
                ((Arc::from(label), i % centres.len()), *n)
            });
            let table: Contingency = pairs.collect();
            (total / data.len() as f64, (classes > 1).then(|| adjusted_rand(&table)))
        }
    };
    if found.0.is_finite() {
        Ok(found)
    } else {
        Err(Error::source("the risk on the rows is not finite"))
    }
}

/// Plans, sketches and fits.
fn from_sketch(job: &Job, data: &Data, seed: u64) -> Result<Outcome> {
    let study = &job.study;
    let nystrom = |sampling| {
        let mut params = PlanParams::default().sampling(sampling);
        params.landmarks = job.size.map(LandmarkCount::Number);
        params.leverage_lambda = job.lambda;
        params
    };
    let params = match job.method {
        Method::Fourier => PlanParams::default().fourier(job.size.unwrap_or(2) / 2),
        Method::Uniform => nystrom(Sampling::Uniform),
        Method::Bless => nystrom(Sampling::Leverage),
        Method::Greedy => nystrom(Sampling::Greedy),
        _ => nystrom(Sampling::Dsquared),
    };
    let decoder = match job.method {
        Method::Kernel => Decoder::Kernel,
        Method::Cells => Decoder::Cells,
        _ => Decoder::Clompr,
    };
    let collect = Collect {
        kernel: decoder != Decoder::Cells,
        cells: decoder == Decoder::Cells,
        moments: true,
    };
    let sample_rows = SampleRows::Count(SAMPLE_ROWS.min(data.len()));
    let mut params = params.sample_rows(sample_rows).collect(collect).seed(seed);
    params.bandwidths = job.sigma2.map(|s| vec![s]);
    let plan = Arc::new(plan_for(&data.table, params)?.plan);
    let sketch = Sketch::of(&plan, &data.table, SketchParams::default(), &())?;
    let context = Context::new(&sketch);
    let mut params = FitParams::new(study.task, study.k).decoder(decoder).seed(seed);
    if study.task == Task::Gmm {
        // Diagonal covariances, as in the paper and in EM on all rows.
        params = params.covariance(CovarianceKind::Diag);
    }
    // Landmarks are rows, and Fourier features have none. For a fair comparison, starts and bounds
    // come from the moments for both.
    let pursuit = |n: usize| params.clone().blind().replicates(n);
    let (model, single) = if job.method.of_paper() {
        let one = context.fit(&pursuit(1))?;
        (context.fit(&pursuit(REPLICATES))?, Some(measure(study, data, atoms_of(one.shape))?))
    } else {
        (context.fit(&params)?, None)
    };
    let report = &model.report;
    let search = report.rank.map(|rank| Search {
        objective: report.objective.last().copied().unwrap_or(f64::NAN),
        rank,
        status: format!("{:?}", report.status),
    });
    let (risk, ari) = measure(study, data, atoms_of(model.shape))?;
    let features = Some(plan.features_per_bandwidth());
    Ok(Outcome { features, risk, ari, single, search })
}

fn atoms_of(shape: Shape) -> Vec<Atom> {
    match shape {
        Shape::Centres { weights, centres } => weights
            .into_iter()
            .zip(centres)
            .map(|(weight, mean)| Atom::dirac(weight, mean))
            .collect(),
        Shape::Mixture { weights, means, covariances, .. } => weights
            .into_iter()
            .zip(means.into_iter().zip(covariances))
            .map(|(weight, (mean, covariance))| Atom::new(weight, mean, covariance))
            .collect(),
        Shape::Components { .. } => Vec::new(),
    }
}

/// Runs Lloyd or EM on rows.
fn from_rows(
    study: &Study,
    d: usize,
    rows: &[f64],
    effort: Effort,
    rng: &mut ChaCha8Rng,
) -> Vec<Atom> {
    if study.task == Task::Gmm {
        return Cells::of_rows(d, rows).mixture(study.k, effort, rng, &mut Report::default());
    }
    let points = WeightedPoints::of_rows(d, rows);
    let centres = points.cluster(study.k, Loss::Squared, effort, rng);
    centres.into_iter().map(|mean| Atom::dirac(1.0, mean)).collect()
}

/// Returns `count` distinct rows.
fn some_rows(data: &Data, count: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut order: Vec<usize> = (0..data.len()).collect();
    let count = count.min(order.len());
    for i in 0..count {
        let j = i + nysketch_core::numeric::random::below(order.len() - i, rng);
        order.swap(i, j);
    }
    let d = data.dims();
    let row = |i: &usize| &data.table.values()[i * d..(i + 1) * d];
    order[..count].iter().flat_map(|i| row(i).iter().copied()).collect()
}
