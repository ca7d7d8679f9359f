//! Comparison of two sketches of one plan.

use crate::differences::cells::PairedCells;
use crate::differences::columns::columns;
use crate::differences::found::{Discrepancy, Drift, Effect, LandmarkChange, TestBy};
use crate::differences::params::DriftParams;
use crate::differences::shares::Shares;
use crate::significance::by_folds::ByFolds;
use crate::significance::null::p_value;
use crate::statistics::discovery::q_values;
use crate::statistics::moved::{Moved, Noise};
use crate::statistics::pooled::LEAST_EXPECTED;
use nysketch_core::error::{Error, Result};
use nysketch_core::kernel::nystrom::DECODING_CUTOFF;
use nysketch_core::kernel::nystrom::NystromMap;
use nysketch_core::numeric::linalg::{Matrix, dot};
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::work::Work;
use nysketch_core::plan::Plan;
use nysketch_core::sketch::{Sketch, check_same_plan};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Compares sketches of one plan. Results that depend on the plan alone are computed once.
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
/// let plan = std::sync::Arc::new(plan_for(&monday, PlanParams::default().landmarks(50))?.plan);
/// let monday = Sketch::of(&plan, &monday, SketchParams::default(), &())?;
/// let tuesday = Sketch::of(&plan, &tuesday, SketchParams::default(), &())?;
/// let wednesday = Sketch::of(&plan, &wednesday, SketchParams::default(), &())?;
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
    /// The bandwidths at which kernel sums are compared.
    compared: Vec<usize>,
    /// `W` of each of these bandwidths; empty for Fourier features.
    maps: BTreeMap<usize, NystromMap>,
    /// Kernel matrices of the landmarks, for the test, if they are small.
    grams: Vec<Matrix>,
    /// The landmark nearest to each landmark; empty if there are fewer than two, or too many to
    /// search.
    neighbours: Vec<usize>,
}

/// The reason why weighted rows without folds are not tested.
const NO_FOLDS: &str = "rows have weights, and nothing is known of their noise; sketch both with \
                        the same `folds` to get a p-value";
/// Largest size of kernel matrices kept for all comparisons, in bytes. Larger ones are computed for
/// each comparison.
const KEPT: usize = 1 << 27;
/// Bandwidths at which kernel sums are compared, at most, where all of them would take long.
const MOST_COMPARED: usize = 16;

/// The bandwidths at which kernel sums are compared, the middle one among them.
fn compared(plan: &Plan) -> Vec<usize> {
    let (landmarks, count) = (plan.landmarks().map_or(0, Points::len), plan.bandwidths.len());
    let step = if Work::bandwidths(landmarks, count).is_quick() {
        1
    } else {
        count.div_ceil(MOST_COMPARED)
    };
    (0..count).skip(count / 2 % step).step_by(step).collect()
}

impl Comparison {
    /// A comparison for sketches of this plan.
    pub fn new(plan: &Arc<Plan>) -> Result<Self> {
        let (mut maps, mut grams, mut neighbours) = (BTreeMap::new(), Vec::new(), Vec::new());
        let compared = compared(plan);
        if let Some(landmarks) = plan.landmark_space() {
            let bandwidths = plan.bandwidths.iter().map(|sigma2| plan.kernel.at(*sigma2));
            if plan.collect.kernel {
                Work::eigen(landmarks.len(), compared.len()).check("comparing kernel sums")?;
                for rung in &compared {
                    let kernel = plan.kernel.at(plan.bandwidths[*rung]);
                    maps.insert(*rung, NystromMap::new(&landmarks, kernel, DECODING_CUTOFF)?);
                }
            }
            let bytes = 8 * landmarks.len().pow(2) * plan.bandwidths.len();
            if plan.collect.cells && bytes <= KEPT {
                grams = bandwidths.map(|kernel| kernel.gram(&landmarks)).collect();
            }
            if plan.collect.cells {
                neighbours = nearest_others(&landmarks);
            }
        }
        Ok(Comparison { plan: plan.clone(), compared, maps, grams, neighbours })
    }

    /// The kernel matrix of the landmarks at one bandwidth.
    fn gram(&self, rung: usize) -> Cow<'_, Matrix> {
        match (self.grams.get(rung), self.plan.landmark_space()) {
            (Some(gram), _) => Cow::Borrowed(gram),
            (None, Some(landmarks)) => {
                Cow::Owned(self.plan.kernel.at(self.plan.bandwidths[rung]).gram(&landmarks))
            }
            (None, None) => Cow::Owned(Matrix::from_fn(0, 0, |_, _| 0.0)),
        }
    }

    /// The plan of all sketches.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// `A_m(π)` at the middle bandwidth; empty without kernel sums or without complete rows.
    pub fn embedding(&self, sketch: &Sketch) -> Vec<f64> {
        if !self.plan.collect.kernel || sketch.complete_rows() == 0 {
            return Vec::new();
        }
        let middle = self.plan.bandwidths.len() / 2;
        let means = sketch.feature_means(middle);
        match self.maps.get(&middle) {
            Some(map) => map.whitening.times(&means),
            None => means.iter().map(|f| f / (0.5 * means.len() as f64).sqrt()).collect(),
        }
    }

    /// Compares two sketches.
    pub fn of(&self, a: &Sketch, b: &Sketch, params: &DriftParams) -> Result<Drift> {
        a.check_exact("compare")?;
        b.check_exact("compare")?;
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
            moved: None,
            tolerance: params.tolerance,
            verdict: None,
            p_value: None,
            drift: None,
            q_value: None,
            test_by: TestBy::Rows,
            least_p_value: 1.0 / (params.draws + 1) as f64,
            no_test: None,
            note: None,
            discrepancies: self.discrepancies(a, b),
            columns: columns(a, b, params.level),
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
        let (min_p_value, counts_of_shares) = (shares.min_p_value(), shares.counts);
        (drift.categories, drift.missing) = (shares.categories, shares.missing);
        let by_folds = [a, b].map(|s| s.folds().is_some_and(|f| f.rule().key().is_some()));
        if self.plan.weighting.is_some() {
            // Only folds provide an estimate of the noise of weights.
            drift
                .columns
                .iter_mut()
                .for_each(|c| c.effect = c.effect.map(Effect::without_interval));
        }
        if self.plan.weighting.is_some() || by_folds.contains(&true) {
            if let Some(found) = ByFolds::of([a, b], &cells, |rung| self.gram(rung), params) {
                return Ok(with_folds(drift, &cells, &counts_of_shares, &found, params));
            }
            if self.plan.weighting.is_some() {
                drift.no_test = Some(NO_FOLDS.into());
                return Ok(drift);
            }
            drift.note = Some(other_folds(a, b));
        }
        if cells.totals.iter().any(|n| *n < 2.0 * LEAST_EXPECTED) {
            drift.no_test = Some(format!("a test needs {} rows of each", 2.0 * LEAST_EXPECTED));
            return Ok(drift);
        }
        set_q_values(&mut drift);
        for counts in cells.dealings(&self.neighbours) {
            let of_cells =
                match p_value(&cells, &counts, &self.plan, |rung| self.gram(rung), params) {
                    Ok(p_value) => p_value,
                    // The test is too expensive, but the changes can still be shown.
                    Err(error @ Error::TooMuchWork { .. }) => {
                        drift.no_test = Some(error.to_string());
                        return Ok(drift);
                    }
                    Err(error) => return Err(error),
                };
            let p_value = min_p_value.map_or(of_cells, |p| (2.0 * p.min(of_cells)).min(1.0));
            // The origin of the landmarks is unknown, so only results that hold for every possible
            // origin are reported.
            let moved = Moved::of(&counts, cells.totals, Noise::ROWS, params.level);
            drift.moved = match (drift.moved, moved) {
                (Some(before), Some(moved)) => Some(before.and(moved)),
                (before, moved) => before.or(moved),
            };
            drift.p_value = Some(drift.p_value.map_or(p_value, |p| p.max(p_value)));
        }
        if min_p_value.is_some() {
            drift.least_p_value *= 2.0;
        }
        drift.moved =
            with_shares(drift.moved, &counts_of_shares, &cells, Noise::ROWS, params.level);
        drift.drift = drift.p_value.map(|p| p <= params.level);
        drift.verdict = params.tolerance.and_then(|t| Some(drift.moved?.verdict(t)));
        Ok(drift)
    }

    /// Changes at the middle bandwidth, largest first.
    fn landmarks(&self, a: &Sketch, b: &Sketch) -> Vec<LandmarkChange> {
        if self.maps.is_empty() || a.complete_rows() == 0 || b.complete_rows() == 0 {
            return Vec::new();
        }
        let middle = self.plan.bandwidths.len() / 2;
        let points = self.plan.features.points();
        let means = a.feature_means(middle).into_iter().zip(b.feature_means(middle));
        let changes = means.enumerate().map(|(landmark, (a, b))| LandmarkChange {
            landmark,
            change: b - a,
            place: self.plan.frame.widen(points.row(landmark)),
        });
        let mut changes: Vec<LandmarkChange> = changes.collect();
        changes.sort_by(|p, q| q.change.abs().total_cmp(&p.change.abs()));
        changes
    }

    fn discrepancies(&self, a: &Sketch, b: &Sketch) -> Vec<Discrepancy> {
        if !self.plan.collect.kernel || a.complete_rows() == 0 || b.complete_rows() == 0 {
            return Vec::new();
        }
        self.compared.iter().map(|rung| self.discrepancy(*rung, a, b)).collect()
    }

    /// Returns the discrepancy at one of the compared bandwidths.
    fn discrepancy(&self, rung: usize, a: &Sketch, b: &Sketch) -> Discrepancy {
        let map = self.maps.get(&rung);
        let (ka, kb) = (a.feature_means(rung), b.feature_means(rung));
        let change: Vec<f64> = ka.iter().zip(&kb).map(|(a, b)| b - a).collect();
        // Kernel sums use only complete rows.
        let unit = self.plan.weighting.as_ref().map_or(1.0, |w| w.unit);
        let [na, nb] = [a, b].map(|sketch| sketch.complete_rows() as f64 * unit);
        let both: Vec<f64> =
            ka.iter().zip(&kb).map(|(a, b)| (na * a + nb * b) / (na + nb)).collect();
        let noise2 = (1.0 / na + 1.0 / nb) * (1.0 - squared_norm(map, &both)).max(0.0);
        let mmd = squared_norm(map, &change).sqrt();
        Discrepancy { sigma2: self.plan.bandwidths[rung], mmd, noise: noise2.sqrt() }
    }
}

/// Computes the q-values of comparisons of many sketches with one, and decides by them which
/// sketches changed. Among many unchanged sketches, some have small p-values by chance; with
/// q-values, on average a share of at most `level` of the reported changes is wrong.
pub fn set_q_values_of_many(found: &mut [&mut Drift]) {
    let p_values: Vec<f64> = found.iter().filter_map(|d| d.p_value).collect();
    let mut rates = q_values(&p_values).into_iter();
    for drift in found.iter_mut() {
        drift.q_value = drift.p_value.and_then(|_| rates.next());
        drift.drift = drift.q_value.map(|q| q <= drift.level);
    }
}

/// The landmark nearest to each landmark; empty if there are fewer than two, or too many to search.
fn nearest_others(landmarks: &Points) -> Vec<usize> {
    let (m, d) = (landmarks.len(), landmarks.dims());
    let work = Work::default().and(3.0 * (m * m * d) as f64, 0.0);
    if m < 2 || !work.is_small() {
        return Vec::new();
    }
    (0..m).map(|i| nearest_other(landmarks, i)).collect()
}

/// The landmark nearest to landmark `i`.
fn nearest_other(landmarks: &Points, i: usize) -> usize {
    let distances = (0..landmarks.len())
        .map(|j| (j, Points::squared_distance(landmarks.row(i), landmarks.row(j))));
    let others = distances.filter(|(j, _)| *j != i);
    others.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(i, |(j, _)| j)
}

/// Combines the estimates of the moved share from cells, categories and missing values. The level
/// is divided among them, because each may be wrong.
fn with_shares(
    moved: Option<Moved>,
    shares: &[Vec<[f64; 2]>],
    cells: &PairedCells<'_>,
    noise: Noise,
    level: f64,
) -> Option<Moved> {
    let level = level / shares.len().max(1) as f64;
    let others = shares.iter().filter_map(|counts| Moved::of(counts, cells.totals, noise, level));
    others.fold(moved, |moved, other| Some(moved.map_or(other, |moved| moved.at_least(other))))
}

/// Fills in the results of the test by folds.
fn with_folds(
    mut drift: Drift,
    cells: &PairedCells<'_>,
    shares: &[Vec<[f64; 2]>],
    found: &ByFolds,
    params: &DriftParams,
) -> Drift {
    drift.test_by = TestBy::Folds;
    drift.least_p_value = found.least_p_value;
    let noise = Noise { widening: found.widening, freedom: Some(found.freedom) };
    let moved = Moved::of(&cells.counts, cells.totals, noise, params.level);
    drift.moved = with_shares(moved, shares, cells, noise, params.level);
    drift.verdict = params.tolerance.and_then(|t| Some(drift.moved?.verdict(t)));
    drift.p_value = Some(found.p_value);
    drift.drift = Some(found.p_value <= params.level);
    // These tests assume independent rows.
    drift.categories.iter_mut().for_each(|c| c.p_value = None);
    drift.missing.iter_mut().for_each(|m| m.p_value = None);
    for column in &mut drift.columns {
        column.by_folds(&found.z, found.widening, found.freedom, params.level);
    }
    let wider = found.widening.sqrt().max(f64::MIN_POSITIVE);
    drift.cells.iter_mut().for_each(|c| c.z /= wider);
    drift.missing.iter_mut().for_each(|m| m.z /= wider);
    drift.categories.iter_mut().flat_map(|c| &mut c.levels).for_each(|l| l.z /= wider);
    if found.least_p_value > params.level {
        drift.note = Some(format!(
            "{} folds show a p-value of {} at least: no drift can be found at {}",
            found.freedom + 1,
            found.least_p_value,
            params.level
        ));
    }
    drift.columns.sort_by(|p, q| q.z.abs().total_cmp(&p.z.abs()));
    set_q_values(&mut drift);
    drift
}

/// The reason why folds cannot be used, if at least one sketch has folds.
fn other_folds(a: &Sketch, b: &Sketch) -> String {
    if a.folds().map(|f| f.rule()) == b.folds().map(|f| f.rule()) {
        return "all rows are in one fold: the test takes them as independent".into();
    }
    let [a, b] = [a, b].map(|s| s.folds().map_or("no folds".into(), |f| f.rule().to_string()));
    format!(
        "A has {a} and B {b}: the test takes rows as independent, which those of one key may not be"
    )
}

/// Computes the q-values of columns, categories and shares of missing values, which are all tested
/// together.
fn set_q_values(drift: &mut Drift) {
    let columns = drift.columns.iter().map(|c| Some(c.p_value()));
    let categories = drift.categories.iter().map(|c| c.p_value);
    let missing = drift.missing.iter().map(|m| m.p_value);
    let p_values: Vec<f64> = columns.chain(categories).chain(missing).flatten().collect();
    let mut q_values = q_values(&p_values).into_iter();
    drift.columns.iter_mut().for_each(|c| c.q_value = q_values.next());
    for category in &mut drift.categories {
        category.q_value = category.p_value.and_then(|_| q_values.next());
    }
    for missing in &mut drift.missing {
        missing.q_value = missing.p_value.and_then(|_| q_values.next());
    }
}

/// Returns the squared norm of mean features.
fn squared_norm(map: Option<&NystromMap>, features: &[f64]) -> f64 {
    match map {
        Some(map) => map.squared_norm(features, DECODING_CUTOFF),
        None => dot(features, features) / (features.len() as f64 / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nysketch_core::numeric::random::{below, normal};
    use nysketch_core::pass::SketchParams;
    use nysketch_core::plan::sampling::Sampling;
    use nysketch_core::planning::{PlanParams, plan_for};
    use nysketch_core::rows::Table;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn rows(n: usize, shift: f64, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut values = Vec::new();
        for _ in 0..n {
            let c = below(3, &mut rng) as f64 * 4.0;
            values.extend([c + normal(&mut rng) + shift, normal(&mut rng) - c]);
        }
        values
    }

    fn plan(values: &[f64]) -> Arc<Plan> {
        let params = PlanParams::default().landmarks(30).sampling(Sampling::Dsquared);
        Arc::new(plan_for(&Table::unnamed(2, values.to_vec()).unwrap(), params).unwrap().plan)
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

    /// 300 trials on equal distributions: at level 5 %, the number of false alarms has mean 15 and
    /// standard deviation 3.8. `bench/src/drift` has a longer version.
    #[test]
    fn false_alarms_are_as_rare_as_they_should_be() {
        let mut alarms = 0;
        for s in 0..300 {
            let p = drift(&rows(600, 0.0, 2 * s), &rows(400, 0.0, 2 * s + 1)).p_value.unwrap();
            alarms += usize::from(p <= 0.05);
        }
        assert!((4..=27).contains(&alarms), "{alarms} of 300");
    }

    #[test]
    fn changes_are_found_and_located() {
        let found = drift(&rows(2000, 0.0, 1), &rows(2000, 0.4, 2));
        assert!(found.p_value.unwrap() <= 0.01, "{:?}", found.p_value);
        assert_eq!(found.columns[0].column, "c0");
        assert!((found.columns[0].means[1] - found.columns[0].means[0] - 0.4).abs() < 0.35);
        assert!(found.discrepancies.iter().any(|d| d.mmd > 2.0 * d.noise), "{found:?}");
        // Disjoint supports.
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

    fn mean_features(plan: &Plan, map: &NystromMap, values: &[f64]) -> Vec<f64> {
        let n = values.len() as f64 / 2.0;
        let mut sum = vec![0.0; map.rank()];
        for row in values.chunks(2) {
            let features = map.features(&plan.frame.coordinates(row));
            sum.iter_mut().zip(features).for_each(|(s, f)| *s += f / n);
        }
        sum
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        /// The discrepancy equals the distance between mean embeddings computed row by row: all
        /// features of all rows, averaged. Sums are exact to 2⁻²³, amplified by 1/√cut-off.
        #[test]
        fn mmd_is_the_distance_of_the_mean_features(seed in 0u64..1000, shift in 0.0..2.0f64) {
            let (a, b) = (rows(80, 0.0, seed), rows(60, shift, seed + 5000));
            let plan = plan(&a);
            let params = DriftParams::default().draws(19).seed(seed);
            let found = Comparison::new(&plan).unwrap()
                .of(&sketch(&plan, &a), &sketch(&plan, &b), &params)
                .unwrap();
            for (rung, d) in found.discrepancies.iter().enumerate() {
                let landmarks = plan.landmarks().unwrap();
                let kernel = plan.kernel.at(plan.bandwidths[rung]);
                let map = NystromMap::new(landmarks, kernel, DECODING_CUTOFF).unwrap();
                let [ma, mb] = [&a, &b].map(|values| mean_features(&plan, &map, values));
                let expected = ma.iter().zip(&mb).map(|(p, q)| (p - q).powi(2)).sum::<f64>().sqrt();
                prop_assert!((d.mmd - expected).abs() < 5e-3, "{} {expected}", d.mmd);
            }
        }
    }
}
