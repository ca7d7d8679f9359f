//! The choice of the landmarks of a plan under construction.

use super::choices::LandmarkCount;
use super::draft::{Chosen, Draft};
use super::params::GivenLandmarks;
use super::placed::Placed;
use super::report::LeverageReport;
use super::valid::Measurement;
use crate::error::{Error, Place, Result};
use crate::kernel::ScaledKernel;
use crate::kernel::fourier::draw_frequencies;
use crate::numeric::linalg::symmetric_eigen;
use crate::numeric::points::Points;
use crate::numeric::simd::Instructions;
use crate::plan::Features;
use crate::plan::collect::Collect;
use crate::plan::frame::FramedRows;
use crate::plan::sampling::Sampling;
use crate::plan::table::Measured;
use crate::planning::landmarks::cholesky::{Pivot, pivoted_cholesky};
use crate::planning::landmarks::count::{
    DEFAULT_LANDMARKS, LANDMARKS_PER_CLUSTER, default_landmarks, possible_landmarks,
};
use crate::planning::landmarks::dsquared::{dsquared, squared_distances};
use crate::planning::landmarks::leverage;
use crate::planning::landmarks::leverage::Target;
use crate::planning::landmarks::uniform::{distinct, uniform};
use crate::rows::sample::Reservoir;

/// Number of rows on which the accuracy of leverage scores is measured.
const ACCURACY_ROWS: usize = 800;
/// Number of rows whose kernel matrix determines how many landmarks span the data, and the share of
/// its trace that they must span.
const SPECTRUM_ROWS: usize = 800;
const SPANNED: f64 = 0.95;
/// Range of the automatic number of landmarks. Clusters may require more.
const AUTO_LANDMARKS: std::ops::RangeInclusive<usize> = 50..=2000;

impl Draft {
    /// The bandwidth of leverage scores and Cholesky factors.
    fn sigma2(&self) -> f64 {
        self.bandwidths[self.bandwidths.len() / 2]
    }

    /// The kernel at this bandwidth.
    fn kernel(&self) -> ScaledKernel {
        self.params.kernel.at(self.sigma2())
    }

    pub(super) fn choose(&mut self) -> Result<Chosen> {
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
        let numbers = self.recipe.numbers.iter();
        let places: Vec<usize> = numbers
            .filter_map(|number| self.inputs.iter().position(|name| *name == number.input))
            .collect();
        let d = self.inputs.len();
        let mut framed = FramedRows::default();
        for (i, row) in given.rows.iter().enumerate() {
            if row.len() != d {
                let expected = format!("rows of {d} values");
                return Err(Error::parameter("`landmarks_from`", expected, row.len()));
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
            let expected = "a file with at least one row";
            return Err(Error::parameter("`landmarks_from`", expected, "none"));
        }
        if kept.len() < all.len() {
            self.report
                .notes
                .push(format!("{} repeated landmarks were dropped", all.len() - kept.len()));
        }
        Ok(Placed::new(&self.recipe, all.select(&kept), Vec::new()))
    }

    /// Largest number of landmarks whose sums fit in a sketch, if `wanted` are requested.
    fn max_landmarks(&self, wanted: usize) -> usize {
        // With fewer landmarks than wanted, more sums per landmark may be collected.
        let fewer = self.max_landmarks_with(self.collect_for(Some(wanted))).min(wanted);
        self.max_landmarks_with(self.collect_for(Some(fewer)))
    }

    /// Largest number of landmarks whose sums fit in a sketch, if these sums are kept.
    fn max_landmarks_with(&self, collect: Collect) -> usize {
        let measured = Measured {
            dims: self.frame.dims(),
            levels: self.recipe.levels(),
            partial: self.recipe.least_present.is_some(),
            points: 0,
            landmarks: true,
            bandwidths: self.bandwidths.len(),
            collect,
            people: false,
        };
        measured.most_points()
    }

    /// The number of landmarks.
    fn count(&mut self, wanted: Option<usize>) -> Result<usize> {
        let rows = self.found.rows;
        let Some(m) = wanted else { return Ok(self.default_count()) };
        let max = self.max_landmarks(m);
        if m as u64 > rows {
            return Err(Error::TooFewRows { landmarks: m, rows: rows as usize });
        }
        if m > max {
            let d = self.columns.len();
            let expected = format!("at most {max} for {d} columns, whose sums are 2²⁶ in all");
            return Err(Error::parameter("`landmarks`", expected, m));
        }
        Ok(m)
    }

    /// The default number of landmarks. Adds a note if the rows or the sums allow fewer than the
    /// clusters need.
    fn default_count(&mut self) -> usize {
        let enough = default_landmarks(self.params.clusters);
        let (rows, max) = (self.found.rows, self.max_landmarks(enough));
        let m = possible_landmarks(self.params.clusters, rows, max);
        if let Some(k) = self.params.clusters.filter(|_| m < enough) {
            let why = if m == max {
                format!("a sketch of {} columns has sums for no more", self.columns.len())
            } else {
                format!("there are only {rows} rows")
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
            Some(k) if 2 * (d + 1) < LANDMARKS_PER_CLUSTER => (
                k.saturating_mul(LANDMARKS_PER_CLUSTER),
                format!("{LANDMARKS_PER_CLUSTER} for each of {k} clusters"),
            ),
            Some(k) => (
                k.saturating_mul(2 * (d + 1)),
                format!("2k(d + 1) for k = {k} clusters in d = {d} columns"),
            ),
            None => (DEFAULT_LANDMARKS / 4, "the number of clusters is not known".to_string()),
        };
        let flat = spanning > few.len() / 2;
        let spectrum = if flat {
            format!("no small number of landmarks spans the rows at σ² = {:.4}", self.sigma2())
        } else {
            format!(
                "{spanning} span {:.0} % of a sample at σ² = {:.4}",
                100.0 * SPANNED,
                self.sigma2()
            )
        };
        let wanted = if flat { for_model.max(DEFAULT_LANDMARKS) } else { for_model.max(spanning) };
        let enough = self.params.clusters.map_or(0, |k| default_landmarks(Some(k)));
        let m = wanted.clamp(*AUTO_LANDMARKS.start(), enough.max(*AUTO_LANDMARKS.end()));
        let m = m.min(self.found.rows as usize).min(self.max_landmarks(m));
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
                    "{found} landmarks span the sample at σ² = {:.4}; the other {} were drawn \
                     uniformly",
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
                "the rows looked at hold only {got} different points, so there are {got} landmarks \
                 instead of {m}"
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

    /// D² sampling over all rows, second step: chooses the other half of the landmarks.
    pub(super) fn other_half(
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
        let incomplete = rows.iter().any(|x| x.is_nan());
        let donors = self.incomplete.as_ref().unwrap_or(&self.sample.points);
        let donors = (Some(donors), &self.found.codes[..]);
        let distant = Placed::filled(&self.recipe, Points::new(d, rows), codes, donors);
        let threads = self.params.threads;
        if incomplete {
            // The distances of the draw use only the values that are present.
            d2 = squared_distances(distant.space(), first.space(), threads);
        }
        // A row drawn with probability p represents 1/p rows.
        let represented: Vec<f64> = weights
            .iter()
            .zip(&d2)
            .map(|(w, d2)| w / -(-w * d2 * threshold).exp_m1())
            .map(|rows| if rows.is_finite() { rows } else { 0.0 })
            .collect();
        let (space, rest) = (distant.space(), m - first.len());
        let second = dsquared(space, Some(&represented), Some(d2), rest, threads, &mut self.rng);
        let all = first.and(&distant.select(&second));
        self.note_fewer(all.len(), m, wanted);
        all
    }
}
