//! The decoders `clompr` and `clomp`, and functions shared by all decoders of kernel sums.
//!
//! The result of a pursuit depends on its random numbers. Several pursuits are run, each with its
//! own random stream, and the one with the smallest objective is kept. If its objective is above
//! the noise floor of the sketch, its atoms are replaced one by one; then it is polished. The
//! result of the first pursuit does not depend on the number of pursuits.

use super::clompr::{Clompr, Pursued, Steps, objective_of};
use super::constraints::Constraints;
use super::context::Context;
use super::decode::{Decode, Job};
use super::params::{DEFAULT_REPLICATES, FitParams, StartsFrom};
use super::region::Region;
use super::starts::Starts;
use crate::atom::{Atom, Family};
use crate::model::task::Task;
use nysketch_core::error::{Error, Result};
use nysketch_core::kernel::Kernel;
use nysketch_core::kmeans::{Effort, Loss};
use nysketch_core::numeric::parallel::in_parallel;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The paper's decoder, with replacement (CL-OMPR) or without (CL-OMP).
pub struct Pursuit {
    /// Whether atoms may be replaced.
    pub replacement: bool,
}

impl Decode for Pursuit {
    fn check(&self, context: &Context<'_>, params: &FitParams) -> Result<()> {
        let kernel = context.plan().kernel;
        if params.task == Task::Gmm && kernel != Kernel::Gaussian {
            let expected = "gaussian for a mixture of Gaussians";
            return Err(Error::parameter("`kernel`", expected, kernel.name()));
        }
        check_kernel_sums(context, params)
    }

    fn centres(&self, job: &mut Job<'_>) -> Result<Vec<Atom>> {
        self.pursue(job, Family::Dirac)
    }

    fn mixture(&self, job: &mut Job<'_>) -> Result<Vec<Atom>> {
        let family = job.known.clone().map_or(Family::Diagonal, Family::Known);
        self.pursue(job, family)
    }
}

impl Pursuit {
    fn pursue(&self, job: &mut Job<'_>, family: Family) -> Result<Vec<Atom>> {
        let (context, params) = (job.context, job.params);
        let rung = chosen_rung(context, params)?;
        job.report.bandwidth = Some(context.plan().bandwidths[rung]);
        let (embedding, space) = (context.embedding(rung)?, context.space());
        let d = embedding.dims();
        let region = match params.starts {
            StartsFrom::Moments => Region::of_moments(context, &mut job.rng),
            StartsFrom::Rows => Region::of_rows(context, &mut job.rng),
        };
        let first_variance = match &family {
            Family::Dirac => vec![0.0; d],
            Family::Known(v) => v.clone(),
            Family::Scaled | Family::Shared | Family::Diagonal => space.first_variance(),
        };
        let starts = Starts::new(embedding, objective_of(embedding), region.starts, first_variance);
        let precision = match &family {
            Family::Known(v) => v.iter().map(|g| 1.0 / g).collect(),
            _ => Vec::new(),
        };
        let clompr = Clompr {
            embedding,
            family,
            k: params.k,
            replacement: self.replacement,
            bounds: &region.bounds,
            variances: &space.variances,
            starts: &starts,
            steps: Steps::LONG,
            constraints: Constraints {
                separation: params.separation,
                radius: params.radius,
                precision,
            },
            rows: context.sketch().rows() as f64,
        };
        let replicates = (0..params.replicates.unwrap_or(DEFAULT_REPLICATES) as u64).collect();
        let found = in_parallel(params.threads, replicates, |replicate| {
            let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
            rng.set_stream(1 + replicate);
            clompr.pursue(&mut rng)
        });
        let report = &mut job.report;
        report.rank = Some(embedding.rank());
        report.replicates = found.iter().map(Pursued::value).collect();
        report.iterations += found.iter().map(|f| f.evaluations).sum::<usize>();
        let best = found.into_iter().min_by(|a, b| a.value().total_cmp(&b.value()));
        let Some(best) = best else { return Ok(Vec::new()) };
        let pursued = best.evaluations;
        let best = clompr.replace(best, &mut job.rng);
        let Pursued { atoms, objective, status, evaluations } = clompr.polish(best);
        (report.objective, report.status) = (objective, status);
        report.iterations += evaluations - pursued;
        if !clompr.constraints.hold(&atoms) {
            return Err(Error::NoRoom {
                k: params.k,
                separation: params.separation.unwrap_or(0.0),
                radius: params.radius,
            });
        }
        Ok(atoms)
    }
}

/// Returns an error if the sketch has no kernel sums, or fewer kernel sums than atoms.
pub fn check_kernel_sums(context: &Context<'_>, params: &FitParams) -> Result<()> {
    let plan = context.plan();
    if !plan.collect.kernel {
        return Err(Error::MissingSums { task: params.task.name(), what: "kernel".into() });
    }
    let available = plan.features_per_bandwidth();
    if params.k > available {
        let what = "kernel sums";
        return Err(Error::TooManyComponents { k: params.k, available, what });
    }
    Ok(())
}

/// Returns the index of the requested bandwidth, or of the best one.
pub fn chosen_rung(context: &Context<'_>, params: &FitParams) -> Result<usize> {
    match params.bandwidth {
        Some(sigma2) => context.plan().rung_of(sigma2),
        None => best_rung(context, params),
    }
}

/// Returns the index of the bandwidth nearest, in ratio, to twice the risk on calibrated landmarks.
/// Returns the middle one if there are no landmarks or the kernel is not Gaussian.
fn best_rung(context: &Context<'_>, params: &FitParams) -> Result<usize> {
    let bandwidths = &context.plan().bandwidths;
    let middle = bandwidths.len() / 2;
    if bandwidths.len() == 1 || context.plan().kernel != Kernel::Gaussian {
        return Ok(middle);
    }
    let Some(calibrated) = context.calibrated()? else {
        return Ok(middle);
    };
    let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
    let effort = Effort::new(2, 30);
    let centres = calibrated.cluster(params.k, Loss::Squared, effort, &mut rng);
    let wanted = 2.0 * calibrated.risk(&centres, Loss::Squared);
    if !(wanted > 0.0) {
        return Ok(middle);
    }
    let distances: Vec<f64> = bandwidths.iter().map(|s| (s / wanted).ln().abs()).collect();
    let nearest = (0..distances.len()).min_by(|&a, &b| distances[a].total_cmp(&distances[b]));
    Ok(nearest.unwrap_or(middle))
}

#[cfg(test)]
mod tests {
    use crate::decoder::noise_floor;
    use crate::decoder::{Context, Decoder, FitParams, fit};
    use crate::model::Shape;
    use crate::model::report::Status;
    use crate::model::task::Task;
    use nysketch_core::pass::SketchParams;
    use nysketch_core::plan::collect::Collect;
    use nysketch_core::plan::sampling::Sampling;
    use nysketch_core::planning::{PlanParams, plan_for};
    use nysketch_core::rows::Table;
    use nysketch_core::rows::synthetic::Mixture;
    use nysketch_core::sketch::Sketch;
    use std::sync::Arc;

    /// Returns five clusters in five columns, and a sketch with as many numbers as the model has
    /// parameters: a problem hard enough that pursuits differ.
    fn sketch(fourier: bool) -> (Table, Sketch) {
        sketch_of(5, 50, fourier)
    }

    /// Returns as many clusters as columns, and a sketch of m numbers.
    fn sketch_of(k: usize, m: usize, fourier: bool) -> (Table, Sketch) {
        let rows = Mixture::new(k, k, 2.0, 3).unwrap().rows(0, 4000).values;
        let table = Table::unnamed(k, rows).unwrap();
        let params = if fourier {
            PlanParams::default().fourier(m / 2)
        } else {
            PlanParams::default().landmarks(m).sampling(Sampling::Uniform)
        };
        let collect = Collect { kernel: true, cells: false, moments: true };
        let sigma2 = 2.4 * k as f64;
        let plan = plan_for(&table, params.collect(collect).bandwidths([sigma2])).unwrap().0;
        let sketch = Sketch::of(&Arc::new(plan), &table, SketchParams::default(), &()).unwrap();
        (table, sketch)
    }

    #[test]
    fn the_replicate_of_least_objective_is_kept_on_any_number_of_threads() {
        for (fourier, task) in [true, false].into_iter().zip([Task::Gmm, Task::Kmeans]) {
            let (_, sketch) = sketch(fourier);
            let context = Context::new(&sketch);
            let params = FitParams::new(task, 5).decoder(Decoder::Clompr).seed(1);
            let [one, six, again] = [(1, 1), (6, 1), (6, 3)].map(|(n, threads)| {
                context.fit(&params.clone().replicates(n).threads(threads)).unwrap()
            });
            assert_eq!(six.shape, again.shape);
            assert_eq!(six.report.replicates, again.report.replicates);
            assert_eq!(one.report.replicates[0], six.report.replicates[0], "a prefix");
            let min = six.report.replicates.iter().copied().fold(f64::INFINITY, f64::min);
            let kept = six.report.objective[2 * 5];
            assert_eq!(kept, min);
            let polished = six.report.objective.last().copied().unwrap();
            assert!(polished <= kept * (1.0 + 1e-9), "{polished} {kept}");
            assert!(six.report.iterations > one.report.iterations);
            assert!(six.report.rank.is_some_and(|r| r <= 50));
            let all = context.fit(&params).unwrap().report.replicates.len();
            assert_eq!(all, 5, "the default");
        }
    }

    /// With starts from the moments alone, plans with and without rows differ only in their
    /// features.
    #[test]
    fn a_pursuit_without_rows_finds_the_clusters() {
        for fourier in [true, false] {
            let (table, sketch) = sketch(fourier);
            let params = FitParams::new(Task::Gmm, 5).decoder(Decoder::Clompr).blind();
            let model = fit(&sketch, &params).unwrap();
            assert_ne!(model.report.status, Status::EvaluationLimit);
            let Shape::Mixture { means, .. } = &model.shape else { unreachable!() };
            let labels = Mixture::new(5, 5, 2.0, 3).unwrap().rows(0, 4000).labels;
            for label in 0..5 {
                let (mut mean, mut count) = ([0.0; 5], 0.0);
                let rows = table.values().chunks_exact(5).zip(&labels);
                for (row, _) in rows.filter(|(_, l)| **l == label) {
                    mean.iter_mut().zip(row).for_each(|(m, x)| *m += x);
                    count += 1.0;
                }
                let nearest = means
                    .iter()
                    .map(|found| (0..5).map(|k| (found[k] - mean[k] / count).powi(2)).sum::<f64>())
                    .fold(f64::INFINITY, f64::min);
                // The variance of a column within a cluster is one. With fifty moments the squared
                // error is about a tenth of it; a missed cluster gives 8 or more.
                assert!(nearest < 0.5, "fourier {fourier}, cluster {label}: {nearest}");
            }
        }
    }

    /// A pursuit that missed a cluster is above the noise floor and is repaired. A pursuit at the
    /// noise floor is not changed, and neither are Diracs.
    #[test]
    fn atoms_are_replaced_where_the_sketch_is_not_matched() {
        let (_, sketch) = sketch_of(10, 200, true);
        let context = Context::new(&sketch);
        let embedding = context.embedding(0).unwrap();
        let rows = sketch.complete_rows();
        let noise = noise_floor(embedding.squared_norm(&embedding.target), rows).powi(2);
        let rounds = 2 * 10 + 1;
        let mut mended = 0;
        for seed in 0..12 {
            let [report, diracs] = [Task::Gmm, Task::Kmeans].map(|task| {
                let params = FitParams::new(task, 10).decoder(Decoder::Clompr).blind();
                context.fit(&params.replicates(1).seed(seed)).unwrap().report
            });
            let replaced = report.objective.len() - 1 - rounds;
            if report.replicates[0] <= noise {
                assert_eq!(replaced, 0, "seed {seed}");
            } else if replaced > 0 {
                let before_polish = report.objective[rounds - 1 + replaced];
                assert!(before_polish < 0.9 * report.replicates[0], "seed {seed}");
                mended += usize::from(before_polish <= noise);
            }
            assert_eq!(diracs.objective.len(), rounds + 1, "seed {seed}");
        }
        assert!(mended >= 2, "{mended}");
    }

    #[test]
    fn replicates_are_for_pursuits_and_at_least_one() {
        let (_, sketch) = sketch(false);
        let params = FitParams::new(Task::Kmeans, 5);
        let other = fit(&sketch, &params.clone().replicates(2)).unwrap_err().to_string();
        assert!(other.contains("`replicates`") && other.contains("clompr"), "{other}");
        let none = params.decoder(Decoder::Clomp).replicates(0);
        assert!(fit(&sketch, &none).unwrap_err().to_string().contains("between 1 and 10000"));
    }
}
