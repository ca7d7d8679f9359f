//! How two sketches of one plan differ: the maximum mean discrepancy, a test, and where.
//!
//! ```text
//! MMD = ‖A_m(π_A) − A_m(π_B)‖ = √(δᵀ K_m⁺ δ) ,   δ = k̄_A − k̄_B
//! ```
//!
//! Kernel means alone have no null distribution, so the test looks at the cells. Where both samples
//! come from one distribution, each of the N_j rows of a cell is in A with probability
//! f = n_A/(n_A + n_B). Statistics:
//!
//! * χ² of the counts, cells with less than 5 rows expected in either sample pooled, and its largest term;
//! * for each bandwidth the MMD of the cells, δᵀGδ, where δ_j is the difference of the cell's shares and
//!   G_ij = κ(c_i, c_j) at the cells' means;
//! * Σ_jk z²_jk of the differences of the cells' means, in standard errors of the column in the cell.
//!
//! Their joint null distribution is drawn: counts as Binomial(N_j, f), and the last statistic, which is
//! independent of the counts, as Σ_l λ_l χ²_J, where λ_l are the eigenvalues of the columns' correlation
//! within cells. The least of the statistics' p-values is then ranked among those of the draws: one
//! p-value for all of them.
//!
//! Landmarks are rows of the sample that the plan was made from, so each of its cells has a row for
//! certain. In simulations with ten rows per landmark and more this does not show in the level
//! (`bench/src/drift.rs`), since small cells are pooled; taking those rows out would, where landmarks are
//! the distant rows. Rows must be independent of each other, and no row in both samples.
//!
//! Shares of levels and of missing values have tests of their own (`drift/shares.rs`). Where there are some, the p-value is
//! twice the least of theirs, corrected for their number, and of that of the cells.

mod shares;

pub use shares::{CategoryChange, LevelChange, MissingChange};

use crate::atom::embedding::DECODING_CUTOFF;
use crate::clusters::{Aspect, Facts};
use crate::error::{Error, Result};
use crate::feature_map::nystrom::NystromMap;
use crate::fixed::power_of_two;
use crate::linalg::{Matrix, dot, symmetric_eigen};
use crate::plan::Plan;
use crate::profile::Profile;
use crate::sketch::{Sketch, check_same_plan};
use crate::sums::{Sum, Sums};
use crate::work::Work;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Binomial, ChiSquared, Distribution};
use serde::Serialize;
use shares::{LEAST_EXPECTED, Shares, difference};
use std::sync::Arc;

/// Rows of either sample from which on the mean of a cell is looked at.
const LEAST_ROWS: i128 = 10;

/// Fewer draws cannot show a p-value of 0.05.
const LEAST_DRAWS: usize = 19;
/// More draws take minutes and tell nothing more.
const MOST_DRAWS: usize = 20_000;

/// How to compare.
///
/// ```
/// use nysketch::drift::DriftParams;
/// let params = DriftParams::default().draws(199).seed(1);
/// assert_eq!(params.draws, 199);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DriftParams {
    /// Draws from the null distribution; the least p-value is 1/(draws + 1).
    pub draws: usize,
    /// Seed of the draws.
    pub seed: u64,
    /// p-values up to this are called drift: the share of false alarms.
    pub level: f64,
}

impl Default for DriftParams {
    fn default() -> Self {
        DriftParams { draws: 999, seed: 0, level: 0.05 }
    }
}

impl DriftParams {
    /// Checks every parameter.
    pub fn check(&self) -> Result<()> {
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(Error::parameter("`level`", "between 0 and 1", self.level));
        }
        if !(LEAST_DRAWS..=MOST_DRAWS).contains(&self.draws) {
            let expected = format!("between {LEAST_DRAWS} and {MOST_DRAWS}");
            return Err(Error::parameter("`draws`", expected, self.draws));
        }
        Ok(())
    }
}

impl DriftParams {
    /// With so many draws from the null distribution.
    #[must_use]
    pub fn draws(mut self, draws: usize) -> Self {
        self.draws = draws;
        self
    }

    /// With this level.
    #[must_use]
    pub fn level(mut self, level: f64) -> Self {
        self.level = level;
        self
    }

    /// With this seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}

/// The discrepancy at one bandwidth.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct Discrepancy {
    /// σ².
    #[serde(rename = "bandwidth")]
    pub sigma2: f64,
    /// `‖A_m(π_A) − A_m(π_B)‖`.
    pub mmd: f64,
    /// An upper bound on its root mean square where both come from one distribution:
    /// `√((1/n_A + 1/n_B)(1 − ‖A_m‖²))`.
    pub noise: f64,
}

/// How a cell changed.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CellChange {
    /// Which landmark.
    pub landmark: usize,
    /// Shares of the rows of A and of B.
    pub shares: [f64; 2],
    /// Share of B less that of A in standard errors.
    pub z: f64,
    /// Mean of its rows in both, in the table's units.
    pub mean: Vec<f64>,
    /// Share of each level of each category among its rows in both, one after the other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<f64>,
}

/// How the mean of a column changed.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ColumnChange {
    /// Its name; of a time on a circle with what is measured of it, as in `when (hour)`.
    pub column: String,
    /// What is compared: a number, or a time on a circle.
    #[serde(skip)]
    pub aspect: Aspect,
    /// Means in A and B, in the table's units; of a time on a circle in hours, days or months.
    pub means: [f64; 2],
    /// Standard deviations in A and B, in what is measured; of a time on a circle none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviations: Option<[f64; 2]>,
    /// Mean of B less that of A in standard errors; of a time on a circle, of its sine and cosine together.
    pub z: f64,
}

/// How the mean kernel value at a landmark changed, at the middle bandwidth.
#[derive(Debug, Clone, Serialize)]
pub struct LandmarkChange {
    /// Which landmark.
    pub landmark: usize,
    /// Mean kernel value of B less that of A.
    pub change: f64,
    /// Where it lies, in the table's units.
    pub place: Vec<f64>,
}

/// What the comparison found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Drift {
    /// Rows of A and B, weights counted.
    pub rows: [u64; 2],
    /// p-values up to this are called drift.
    pub level: f64,
    /// Of the test; none where it cannot be made.
    pub p_value: Option<f64>,
    /// Whether the p-value is at most the level; none without a p-value.
    pub drift: Option<bool>,
    /// Why there is no p-value.
    pub no_test: Option<String>,
    /// One per bandwidth; empty where there are no kernel sums.
    pub discrepancies: Vec<Discrepancy>,
    /// Columns, the most changed first; empty without cells and moments.
    pub columns: Vec<ColumnChange>,
    /// Categories, those with the least p-value first; empty without cells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<CategoryChange>,
    /// Columns that rows lack, the most changed first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingChange>,
    /// Cells, the most changed first; empty without cells.
    pub cells: Vec<CellChange>,
    /// Landmarks, the most changed first; empty without landmarks and kernel sums.
    pub landmarks: Vec<LandmarkChange>,
    /// What the rows of A look like, where they tell: what cells and landmarks are seen beside.
    #[serde(skip)]
    pub whole: Option<Profile>,
}

impl Drift {
    /// The discrepancy at the middle bandwidth.
    pub fn middle(&self) -> Option<&Discrepancy> {
        self.discrepancies.get(self.discrepancies.len() / 2)
    }

    /// Keeps so many cells and landmarks, the most changed ones.
    pub fn keep(&mut self, top: usize) {
        self.cells.truncate(top);
        self.landmarks.truncate(top);
    }
}

/// Compares sketches of one plan; what depends on the plan alone is computed once.
///
/// ```
/// use nysketch::drift::{Comparison, DriftParams};
/// use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let mixture = Mixture::new(2, 3, 3.0, 7)?;
/// let monday = Table::unnamed(2, mixture.rows(0, 2000).values)?;
/// let tuesday = Table::unnamed(2, mixture.rows(1, 2000).values)?;
/// let shifted = mixture.rows(2, 2000).values.iter().map(|x| x + 0.3).collect();
/// let wednesday = Table::unnamed(2, shifted)?;
///
/// let plan = std::sync::Arc::new(plan_for(&monday, PlanParams::default().landmarks(50))?.0);
/// let sketch = |day: &Table| Sketch::of(&plan, day, SketchParams::default(), &());
/// let (monday, tuesday, wednesday) = (sketch(&monday)?, sketch(&tuesday)?, sketch(&wednesday)?);
///
/// let comparison = Comparison::new(&plan)?;
/// let params = DriftParams::default().draws(199);
/// assert!(comparison.of(&monday, &tuesday, &params)?.p_value > Some(0.05));
/// assert!(comparison.of(&monday, &wednesday, &params)?.p_value < Some(0.01));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Comparison {
    plan: Arc<Plan>,
    /// `W` of each bandwidth; empty for Fourier features.
    maps: Vec<NystromMap>,
}

impl Comparison {
    /// For sketches of this plan.
    pub fn new(plan: &Arc<Plan>) -> Result<Self> {
        let mut maps = Vec::new();
        if let (Some(landmarks), true) = (plan.landmark_space(), plan.collect.kernel) {
            Work::eigen(landmarks.len(), plan.bandwidths.len()).check("comparing kernel sums")?;
            for &sigma2 in &plan.bandwidths {
                maps.push(NystromMap::new(&landmarks, plan.kernel.at(sigma2), DECODING_CUTOFF)?);
            }
        }
        Ok(Comparison { plan: plan.clone(), maps })
    }

    /// Compares two sketches.
    pub fn of(&self, a: &Sketch, b: &Sketch, params: &DriftParams) -> Result<Drift> {
        params.check()?;
        for sketch in [a, b] {
            check_same_plan(&self.plan, sketch.plan())?;
            if sketch.rows() == 0 {
                return Err(Error::NoRows { skipped: sketch.skipped() });
            }
        }
        let mut drift = Drift {
            rows: [a.counted(), b.counted()],
            level: params.level,
            p_value: None,
            drift: None,
            no_test: None,
            discrepancies: self.discrepancies(a, b),
            columns: columns(a, b),
            categories: Vec::new(),
            missing: Vec::new(),
            cells: Vec::new(),
            landmarks: self.landmarks(a, b),
            whole: a.whole(),
        };
        if !self.plan.collect.cells {
            drift.no_test = Some(match self.plan.landmarks() {
                Some(_) => "the sketches keep no cells (`collect=cells`)".into(),
                None => "Fourier sketches have no cells".into(),
            });
            return Ok(drift);
        }
        let cells = PairedCells::new(a, b);
        drift.cells = cells.changes(&self.plan);
        let shares = Shares::of(a, b);
        let least = shares.least();
        (drift.categories, drift.missing) = (shares.categories, shares.missing);
        if self.plan.weighting.is_some() {
            drift.no_test = Some("rows have weights, and nothing is known of their noise".into());
        } else if cells.totals.iter().any(|n| *n < 2.0 * LEAST_EXPECTED) {
            drift.no_test = Some(format!("a test needs {} rows of each", 2.0 * LEAST_EXPECTED));
        } else {
            match cells.p_value(&self.plan, params) {
                Ok(of_cells) => {
                    let both = |least: f64| (2.0 * least.min(of_cells)).min(1.0);
                    let p_value = least.map_or(of_cells, both);
                    drift.p_value = Some(p_value);
                    drift.drift = Some(p_value <= params.level);
                }
                // What changed can still be shown.
                Err(error @ Error::TooMuchWork { .. }) => drift.no_test = Some(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok(drift)
    }

    /// Changes at the middle bandwidth, the largest first.
    fn landmarks(&self, a: &Sketch, b: &Sketch) -> Vec<LandmarkChange> {
        if self.maps.is_empty() || a.complete_rows() == 0 || b.complete_rows() == 0 {
            return Vec::new();
        }
        let middle = self.plan.bandwidths.len() / 2;
        let points = self.plan.features.points();
        let each = |(landmark, (a, b)): (usize, (f64, f64))| LandmarkChange {
            landmark,
            change: b - a,
            place: self.plan.frame.widen(points.row(landmark)),
        };
        let means = a.feature_means(middle).into_iter().zip(b.feature_means(middle));
        let mut changes: Vec<LandmarkChange> = means.enumerate().map(each).collect();
        changes.sort_by(|p, q| q.change.abs().total_cmp(&p.change.abs()));
        changes
    }

    fn discrepancies(&self, a: &Sketch, b: &Sketch) -> Vec<Discrepancy> {
        if !self.plan.collect.kernel || a.complete_rows() == 0 || b.complete_rows() == 0 {
            return Vec::new();
        }
        let each = |(rung, &sigma2): (usize, &f64)| {
            let (ka, kb) = (a.feature_means(rung), b.feature_means(rung));
            let change: Vec<f64> = ka.iter().zip(&kb).map(|(a, b)| b - a).collect();
            // Kernel sums are of rows that lack nothing.
            let unit = self.plan.weighting.as_ref().map_or(1.0, |w| w.unit);
            let [na, nb] = [a, b].map(|sketch| sketch.complete_rows() as f64 * unit);
            let both: Vec<f64> =
                ka.iter().zip(&kb).map(|(a, b)| (na * a + nb * b) / (na + nb)).collect();
            let norm2 = |f: &[f64]| match self.maps.get(rung) {
                Some(map) => map.squared_norm(f, DECODING_CUTOFF),
                None => dot(f, f) / (f.len() as f64 / 2.0),
            };
            let noise2 = (1.0 / na + 1.0 / nb) * (1.0 - norm2(&both)).max(0.0);
            Discrepancy { sigma2, mmd: norm2(&change).sqrt(), noise: noise2.sqrt() }
        };
        self.plan.bandwidths.iter().enumerate().map(each).collect()
    }
}

/// Means and standard deviations of every column, the most changed first; those that all rows of either lack are left out.
fn columns(a: &Sketch, b: &Sketch) -> Vec<ColumnChange> {
    let (Some(of_a), Some(of_b)) = (a.column_moments(), b.column_moments()) else {
        return Vec::new();
    };
    let plan = a.plan();
    let present = |sketch: &Sketch| -> Vec<f64> {
        sketch.missing_shares().iter().map(|s| sketch.weight() * (1.0 - s)).collect()
    };
    let (rows_a, rows_b) = (present(a), present(b));
    let z = |k: usize| {
        let ((mean_a, var_a), (mean_b, var_b)) = (of_a[k], of_b[k]);
        let (na, nb) = (rows_a[k], rows_b[k]);
        let variance = (na * var_a + nb * var_b) / (na + nb);
        let error = (variance * (1.0 / na + 1.0 / nb)).sqrt();
        // Means of a constant column may differ by rounding.
        let rounding = 1e-15 * (mean_a.abs() + mean_b.abs());
        let change = mean_b - mean_a;
        if change.abs() <= rounding { 0.0 } else { change / error }
    };
    let [means_a, means_b] = [&of_a, &of_b].map(|of| of.iter().map(|m| m.0).collect::<Vec<f64>>());
    let value = |means: &[f64], aspect| {
        let facts = Facts { numbers: means, ..Facts::default() };
        facts.value(aspect, &plan.recipe).unwrap_or(f64::NAN)
    };
    let change = |aspect: Aspect| {
        let column = aspect.name(&plan.columns, &plan.recipe);
        let means = [value(&means_a, aspect), value(&means_b, aspect)];
        match aspect {
            Aspect::Number(k) => Some(ColumnChange {
                column,
                aspect,
                means: means.map(|x| plan.recipe.numbers[k].step.undo(x)),
                deviations: Some([of_a[k].1.sqrt(), of_b[k].1.sqrt()]),
                z: z(k),
            }),
            Aspect::Cycle(j, k) => {
                let z = z(j).hypot(z(k)) * std::f64::consts::FRAC_1_SQRT_2;
                Some(ColumnChange { column, aspect, means, deviations: None, z })
            }
            Aspect::Level(..) | Aspect::Missing(_) => None,
        }
    };
    let there = |aspect: &Aspect| match *aspect {
        Aspect::Number(k) | Aspect::Cycle(k, _) => rows_a[k] > 0.0 && rows_b[k] > 0.0,
        Aspect::Level(..) | Aspect::Missing(_) => false,
    };
    let aspects = Aspect::all(&plan.recipe).into_iter().filter(there);
    let mut changes: Vec<ColumnChange> = aspects.filter_map(change).collect();
    changes.sort_by(|p, q| q.z.abs().total_cmp(&p.z.abs()));
    changes
}

/// The cells of both samples.
struct PairedCells<'a> {
    a: &'a Sums,
    b: &'a Sums,
    /// Both together.
    both: Sums,
    /// Rows of A and B in each cell.
    counts: Vec<[f64; 2]>,
    totals: [f64; 2],
}

impl<'a> PairedCells<'a> {
    fn new(a: &'a Sketch, b: &'a Sketch) -> Self {
        let (a, b) = (a.sums(), b.sums());
        let mut both = a.clone();
        both.combine(b, i128::wrapping_add);
        let rows = a[Sum::CellRows].iter().zip(&b[Sum::CellRows]);
        let counts: Vec<[f64; 2]> = rows.map(|(a, b)| [*a as f64, *b as f64]).collect();
        let totals = [0, 1].map(|side| counts.iter().map(|c| c[side]).sum());
        PairedCells { a, b, both, counts, totals }
    }

    /// Shares of A and B of each cell, the most changed first.
    fn changes(&self, plan: &Plan) -> Vec<CellChange> {
        let levels = plan.recipe.levels();
        let mut changes: Vec<CellChange> = self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, c)| c[0] + c[1] > 0.0)
            .map(|(landmark, c)| {
                let (shares, z) = difference(*c, self.totals);
                let counts = &self.both[Sum::CellLevels][landmark * levels..][..levels];
                let levels = counts.iter().map(|n| *n as f64 / (c[0] + c[1])).collect();
                let mean = self.both.cell_mean(landmark, &plan.frame.exponent);
                let mean = plan.frame.widen_coordinates(&mean);
                CellChange { landmark, shares, z, mean, levels }
            })
            .collect();
        changes.sort_by(|p, q| q.z.abs().total_cmp(&p.z.abs()));
        changes
    }

    /// The test of the module's head.
    fn p_value(&self, plan: &Plan, params: &DriftParams) -> Result<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
        let used: Vec<usize> =
            (0..self.counts.len()).filter(|j| self.counts[*j].iter().sum::<f64>() > 0.0).collect();
        let pooled: Vec<f64> = used.iter().map(|&j| self.counts[j].iter().sum()).collect();
        let (m, d, draws) = (used.len() as f64, plan.dims() as f64, params.draws as f64);
        let columns =
            if plan.collect.moments { Work::eigen(plan.dims(), 1) } else { Work::default() };
        let operations = plan.bandwidths.len() as f64 * m * m * (d + 2.0 * draws) + m * d * d;
        columns.and(operations, 8.0 * (m * m + 3.0 * m * draws)).check("the test of drift")?;
        let share = self.totals[0] / (self.totals[0] + self.totals[1]);
        let observed: Vec<f64> = used.iter().map(|&j| self.counts[j][0]).collect();

        // Counts of A in every cell: the sample's, then draws.
        let mut counts = vec![observed];
        let binomial = |n: &f64| Binomial::new(*n as u64, share).map_err(|_| no_null(pooled.len()));
        let cells: Vec<Binomial> = pooled.iter().map(binomial).collect::<Result<_>>()?;
        for _ in 0..params.draws {
            counts.push(cells.iter().map(|cell| cell.sample(&mut rng) as f64).collect());
        }
        let terms: Vec<(f64, f64)> = counts.iter().map(|a| chi_square(a, &pooled, share)).collect();
        let mut statistics: Vec<Vec<f64>> =
            vec![terms.iter().map(|t| t.0).collect(), terms.iter().map(|t| t.1).collect()];
        let differences: Vec<Vec<f64>> = counts
            .iter()
            .map(|a| {
                let na: f64 = a.iter().sum::<f64>().max(1.0);
                let nb = (pooled.iter().sum::<f64>() - na).max(1.0);
                a.iter().zip(&pooled).map(|(a, n)| a / na - (n - a) / nb).collect()
            })
            .collect();
        let mean = |&j: &usize| self.both.cell_mean(j, &plan.frame.exponent);
        let means: Vec<Vec<f64>> = used.iter().map(mean).collect();
        for &sigma2 in &plan.bandwidths {
            let kernel = plan.kernel.at(sigma2);
            let gram = Matrix::from_fn(means.len(), means.len(), |i, j| {
                kernel.value(&means[i], &means[j])
            });
            let products = gram.times_each(&differences);
            statistics.push(differences.iter().zip(&products).map(|(d, p)| dot(d, p)).collect());
        }
        statistics.extend(self.within(plan, params.draws, &mut rng)?);
        Ok(joint_p_value(&statistics))
    }

    /// Σ z² of the differences of the cells' means: the samples', then draws. `None` where no cell has
    /// rows enough.
    fn within(&self, plan: &Plan, draws: usize, rng: &mut ChaCha8Rng) -> Result<Option<Vec<f64>>> {
        let d = plan.dims();
        let (a, b) = (self.a, self.b);
        // Σ z² less its expectation, and the number of terms, of each cell.
        let mut cells: Vec<(f64, f64)> = Vec::new();
        for j in 0..self.counts.len() {
            let (na, nb) = (a[Sum::CellRows][j], b[Sum::CellRows][j]);
            if na < LEAST_ROWS || nb < LEAST_ROWS {
                continue;
            }
            let (mut excess, mut terms) = (0.0, 0.0);
            for k in 0..d {
                let (na, nb) = (a.present(j, k), b.present(j, k));
                if na < LEAST_ROWS || nb < LEAST_ROWS {
                    continue;
                }
                let freedom = (na + nb - 2) as f64;
                let variance = (a.cell_spread(j, k) + b.cell_spread(j, k)) / freedom;
                if variance > 0.0 {
                    let (na, nb, at) = (na as f64, nb as f64, j * d + k);
                    let change = a[Sum::CellSum][at] as f64 / na - b[Sum::CellSum][at] as f64 / nb;
                    let z2 = change * change / (variance * (1.0 / na + 1.0 / nb));
                    // The mean of a squared t of so many degrees of freedom is 1 after this.
                    excess += z2 * (freedom - 2.0) / freedom - 1.0;
                    terms += 1.0;
                }
            }
            if terms > 0.0 {
                cells.push((excess, terms));
            }
        }
        if cells.is_empty() {
            return Ok(None);
        }
        let eigenvalues = self.correlation_within(plan)?;
        let count = cells.len() as f64;
        let terms: f64 = cells.iter().map(|c| c.1).sum();
        // Columns that are constant in a cell count there for nothing.
        let scale = terms / count / eigenvalues.iter().sum::<f64>();
        let eigenvalues: Vec<f64> = eigenvalues.iter().map(|l| l * scale).collect();
        let total: f64 = cells.iter().map(|c| c.0).sum();
        // Sums over a cell of skewed or rare values, as in columns of zeros and ones, vary more than those of
        // normal variables. So they are taken to where they are seen to, beyond chance.
        let variance = |mean: f64| cells.iter().map(|c| (c.0 - mean).powi(2)).sum::<f64>() / count;
        let normal = 2.0 * dot(&eigenvalues, &eigenvalues);
        let freedom = 2.0 * (terms / count).powi(2) / normal;
        let chance = 1.0 + 2.0 * ((2.0 + 12.0 / freedom) / count).sqrt();
        let seen = variance(total / count);
        let wider = if seen > normal * chance { (seen / normal).sqrt() } else { 1.0 };
        let each = ChiSquared::new(count).map_err(|_| no_null(cells.len()))?;
        let mut statistic = vec![total];
        for _ in 0..draws {
            let sum: f64 = eigenvalues.iter().map(|l| l * each.sample(rng)).sum();
            statistic.push(wider * (sum - terms));
        }
        Ok(Some(statistic))
    }

    /// Eigenvalues of the correlation of the columns within cells, those of the identity where moments
    /// are not kept, or are not those of all rows.
    fn correlation_within(&self, plan: &Plan) -> Result<Vec<f64>> {
        let d = plan.dims();
        if !plan.collect.moments || plan.is_partial() {
            return Ok(vec![1.0; d]);
        }
        let value = |k: usize, l: usize| {
            let (k, l) = (k.max(l), k.min(l));
            let at = k * (k + 1) / 2 + l;
            let (ek, el) = (plan.frame.exponent[k], plan.frame.exponent[l]);
            self.both[Sum::Outer][at] as f64 * power_of_two(ek) * power_of_two(el)
        };
        let mut within: Vec<f64> = (0..d * d).map(|i| value(i / d, i % d)).collect();
        for j in 0..self.counts.len() {
            let rows = self.both[Sum::CellRows][j] as f64;
            if rows > 0.0 {
                let mean = self.both.cell_mean(j, &plan.frame.exponent);
                for k in 0..d {
                    for l in 0..d {
                        within[k * d + l] -= rows * mean[k] * mean[l];
                    }
                }
            }
        }
        // The diagonal exactly: differences of large sums would leave rounding where there is nothing.
        let spread = |sums: &Sums, k: usize| -> f64 {
            let cells = (0..self.counts.len()).filter(|j| sums[Sum::CellRows][*j] > 0);
            let total: f64 = cells.map(|j| sums.cell_spread(j, k)).sum();
            total * power_of_two(plan.frame.exponent[k]).powi(2)
        };
        let diagonal: Vec<f64> = (0..d).map(|k| spread(self.a, k) + spread(self.b, k)).collect();
        let varying: Vec<usize> = (0..d).filter(|k| diagonal[*k] > 0.0).collect();
        let correlation = Matrix::from_fn(varying.len(), varying.len(), |i, j| {
            let (k, l) = (varying[i], varying[j]);
            match i == j {
                true => 1.0,
                false => (within[k * d + l] / (diagonal[k] * diagonal[l]).sqrt()).clamp(-1.0, 1.0),
            }
        });
        Ok(symmetric_eigen(&correlation)?.values.into_iter().map(|v| v.max(0.0)).collect())
    }
}

/// There are draws for all counts that occur.
fn no_null(size: usize) -> Error {
    Error::NoConvergence { what: "the null distribution", size }
}

/// χ² of the counts of A among pooled counts, small cells taken together, and its largest term.
fn chi_square(a: &[f64], pooled: &[f64], share: f64) -> (f64, f64) {
    // Pooling goes by the expected share, terms by the share of these counts, whose total varies.
    let own = a.iter().sum::<f64>() / pooled.iter().sum::<f64>();
    let own = if own > 0.0 && own < 1.0 { own } else { share };
    let term = |a: f64, n: f64| (a - n * own).powi(2) / (n * own * (1.0 - own));
    let (mut total, mut largest, mut rest) = (0.0, 0.0, (0.0, 0.0));
    let mut add = |term: f64| {
        total += term;
        largest = f64::max(largest, term);
    };
    for (&a, &n) in a.iter().zip(pooled) {
        if n * share.min(1.0 - share) < LEAST_EXPECTED {
            rest = (rest.0 + a, rest.1 + n);
        } else {
            add(term(a, n));
        }
    }
    if rest.1 > 0.0 {
        add(term(rest.0, rest.1));
    }
    (total, largest)
}

/// The least p-value of several statistics, ranked among those of the draws; of equal ones, the one with
/// the largest statistic in standard deviations is the more extreme. The first value of each statistic is
/// the one observed.
fn joint_p_value(statistics: &[Vec<f64>]) -> f64 {
    let count = statistics[0].len();
    let mut extreme = vec![(usize::MAX, f64::NEG_INFINITY); count];
    for values in statistics {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let n = count as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        for ((rank, size), value) in extreme.iter_mut().zip(values) {
            // How many are at least as large, itself counted.
            *rank = (*rank).min(count - sorted.partition_point(|v| v < value));
            *size = size.max((value - mean) / variance.sqrt().max(f64::MIN_POSITIVE));
        }
    }
    let (rank, size) = extreme[0];
    let as_extreme = |e: &&(usize, f64)| e.0 < rank || (e.0 == rank && e.1 >= size);
    extreme.iter().filter(as_extreme).count() as f64 / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{below, normal};
    use crate::{PlanParams, Sampling, SketchParams, Table, plan_for};
    use proptest::prelude::*;

    fn rows(n: usize, shift: f64, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let row = |rng: &mut ChaCha8Rng| {
            let c = below(3, rng) as f64 * 4.0;
            [c + normal(rng) + shift, normal(rng) - c]
        };
        (0..n).flat_map(|_| row(&mut rng)).collect()
    }

    fn plan(values: &[f64]) -> Arc<Plan> {
        let chosen = PlanParams::default().landmarks(30).sampling(Sampling::Dsquared);
        let params = chosen;
        Arc::new(plan_for(&Table::unnamed(2, values.to_vec()).unwrap(), params).unwrap().0)
    }

    fn sketch(plan: &Arc<Plan>, values: &[f64]) -> Sketch {
        let table = Table::unnamed(2, values.to_vec()).unwrap();
        Sketch::of(plan, &table, SketchParams::default(), &()).unwrap()
    }

    fn drift(a: &[f64], b: &[f64]) -> Drift {
        let plan = plan(a);
        let params = DriftParams { draws: 199, seed: 1, ..DriftParams::default() };
        Comparison::new(&plan).unwrap().of(&sketch(&plan, a), &sketch(&plan, b), &params).unwrap()
    }

    /// 300 trials on equal distributions: at 5 % the number of false alarms has mean 15 and standard
    /// deviation 3.8. `bench/src/drift.rs` does it at length.
    #[test]
    fn false_alarms_are_as_rare_as_they_should_be() {
        let alarm = |s: u64| {
            let p = drift(&rows(600, 0.0, 2 * s), &rows(400, 0.0, 2 * s + 1)).p_value.unwrap();
            usize::from(p <= 0.05)
        };
        let alarms: usize = (0..300).map(alarm).sum();
        assert!((4..=27).contains(&alarms), "{alarms} of 300");
    }

    #[test]
    fn changes_are_found_and_located() {
        let found = drift(&rows(2000, 0.0, 1), &rows(2000, 0.4, 2));
        assert!(found.p_value.unwrap() <= 0.01, "{:?}", found.p_value);
        assert_eq!(found.columns[0].column, "c0");
        assert!((found.columns[0].means[1] - found.columns[0].means[0] - 0.4).abs() < 0.35);
        assert!(found.discrepancies.iter().any(|d| d.mmd > 2.0 * d.noise), "{found:?}");
        // Supports that have nothing in common.
        let apart = drift(&rows(500, 0.0, 1), &rows(500, 300.0, 2));
        assert!(apart.p_value.unwrap() <= 0.01);
        assert!(apart.cells[0].z.abs() > 10.0);
    }

    #[test]
    fn missing_tests_are_explained() {
        let a = rows(500, 0.0, 1);
        let plan = plan(&a);
        let whole = sketch(&plan, &a);
        let comparison = Comparison::new(&plan).unwrap();
        let one = comparison.of(&whole, &sketch(&plan, &a[..2]), &DriftParams::default()).unwrap();
        assert!(one.p_value.is_none() && one.no_test.is_some());
        let none = comparison.of(&whole, &Sketch::empty(plan.clone()), &DriftParams::default());
        assert!(matches!(none, Err(Error::NoRows { .. })));
        let same = comparison.of(&whole, &whole, &DriftParams::default()).unwrap();
        assert!(same.discrepancies.iter().all(|d| d.mmd == 0.0) && same.p_value.unwrap() > 0.9);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        /// The discrepancy is the distance of the mean embeddings, row by row: all features of all rows,
        /// averaged. Sums are kept to 2⁻²³ and amplified by 1/√cut-off.
        #[test]
        fn mmd_is_the_distance_of_the_mean_features(seed in 0u64..1000, shift in 0.0..2.0f64) {
            let (a, b) = (rows(80, 0.0, seed), rows(60, shift, seed + 5000));
            let plan = plan(&a);
            let found = Comparison::new(&plan).unwrap()
                .of(&sketch(&plan, &a), &sketch(&plan, &b), &DriftParams { draws: 19, seed, ..DriftParams::default() })
                .unwrap();
            for (rung, d) in found.discrepancies.iter().enumerate() {
                let landmarks = plan.landmarks().unwrap();
                let map = NystromMap::new(landmarks, plan.kernel.at(plan.bandwidths[rung]), DECODING_CUTOFF).unwrap();
                let mean = |values: &[f64]| -> Vec<f64> {
                    let n = values.len() as f64 / 2.0;
                    let mut sum = vec![0.0; map.rank()];
                    for row in values.chunks(2) {
                        let features = map.features(&plan.frame.coordinates(row));
                        sum.iter_mut().zip(features).for_each(|(s, f)| *s += f / n);
                    }
                    sum
                };
                let (ma, mb) = (mean(&a), mean(&b));
                let expected = ma.iter().zip(&mb).map(|(p, q)| (p - q).powi(2)).sum::<f64>().sqrt();
                prop_assert!((d.mmd - expected).abs() < 5e-3, "{} {expected}", d.mmd);
            }
        }
    }
}
