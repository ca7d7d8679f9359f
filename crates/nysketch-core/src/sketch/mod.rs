//! The sketch: a plan and exact sums over the rows.
//!
//! Sums are integers. Sketches of parts therefore add up to the sketch of the whole to the last
//! bit, in any order, and the rows of a part can be removed again.

pub mod aspects;
pub mod columns;
pub mod contains;
pub mod folds;
pub mod profile;
pub mod suitability;

use crate::error::{Error, Result};
use crate::numeric::fixed::{centred_sum, coordinate_value, feature_value, power_of_two};
use crate::plan::Plan;
use crate::sketch::folds::{FoldRule, Folds};
use crate::sketch::profile::Profile;
use crate::sums::{BrokenRule, Sum, Sums};
use std::sync::Arc;

/// A plan, its sums over the rows, and the number of rows.
///
/// ```
/// use nysketch_core::{PlanParams, Sketch, SketchParams, Table, plan_for};
/// use std::sync::Arc;
/// # fn main() -> nysketch_core::Result<()> {
/// let monday = Table::unnamed(1, (0..500).map(f64::from).collect())?;
/// let tuesday = Table::unnamed(1, (0..300).map(|i| f64::from(i) * 0.5).collect())?;
/// let plan = Arc::new(plan_for(&monday, PlanParams::default().landmarks(20))?.plan);
/// let first = Sketch::of(&plan, &monday, SketchParams::default(), &())?;
/// let second = Sketch::of(&plan, &tuesday, SketchParams::default(), &())?;
///
/// let mut both = first.clone();
/// both.merge(&second)?;
/// assert_eq!(both.rows(), 800);
/// both.subtract(&first)?;
/// assert_eq!(both.to_bytes(), second.to_bytes());
/// assert!(both.subtract(&first).is_err(), "the rows are no longer included");
///
/// // A sketch is stored as a file, which contains everything.
/// assert_eq!(Sketch::from_bytes(&second.to_bytes())?, second);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sketch {
    plan: Arc<Plan>,
    sums: Sums,
    folds: Option<Folds>,
    /// The privacy guarantee of the release, if the sums were reconstructed from one.
    released: Option<Arc<str>>,
}

impl Sketch {
    /// The sketch of no rows: the neutral element of [`merge`](Self::merge).
    pub fn empty(plan: Arc<Plan>) -> Self {
        let sums = Sums::zero(&plan);
        Sketch::from_parts(plan, sums)
    }

    /// The sketch of no rows, with folds. Fails if the rule does not suit the plan.
    pub fn empty_folds(plan: Arc<Plan>, rule: FoldRule) -> Result<Self> {
        let folds = Folds::zero(rule, &plan)?;
        Ok(Sketch::from_folds(plan, folds))
    }

    /// A sketch from sums computed elsewhere. Fails if the sums are not possible for any rows.
    pub fn from_sums(plan: Arc<Plan>, sums: Sums) -> Result<Self> {
        let other = plan.measured().specs().into_iter().find(|s| sums[s.sum].len() != s.entries());
        if let Some(spec) = other {
            let expected = format!("{} numbers, as the plan asks for", spec.entries());
            return Err(Error::parameter(spec.sum.name(), expected, sums[spec.sum].len()));
        }
        sums.check_room(0)?;
        sums.check(&plan).map_err(|rule| impossible("take these sums", rule))?;
        Ok(Sketch::from_parts(plan, sums))
    }

    /// A sketch from sums that were checked against the plan.
    pub fn from_parts(plan: Arc<Plan>, sums: Sums) -> Self {
        Sketch { plan, sums, folds: None, released: None }
    }

    /// A sketch from the sums of its folds, which were checked against the plan.
    pub(crate) fn from_folds(plan: Arc<Plan>, folds: Folds) -> Self {
        Sketch { plan, sums: folds.total(), folds: Some(folds), released: None }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The exact sums.
    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// The privacy guarantee of the release, if this sketch is the
    /// reconstruction of one. Models can be learned from a
    /// reconstruction, but it cannot be merged, subtracted, compared or released.
    pub fn released(&self) -> Option<&str> {
        self.released.as_deref()
    }

    /// Marks the sums as the reconstruction of a release.
    pub fn estimated_from(mut self, promise: &str) -> Self {
        self.released = Some(promise.into());
        self
    }

    /// Refuses the reconstruction of a release.
    pub fn check_exact(&self, action: &'static str) -> Result<()> {
        match self.released {
            None => Ok(()),
            Some(_) => Err(Error::Released { action }),
        }
    }

    /// The sums of each fold, if the sketch has folds.
    pub fn folds(&self) -> Option<&Folds> {
        self.folds.as_ref()
    }

    /// The sketch of the rows of one fold.
    ///
    /// # Panics
    /// If there is no such fold.
    pub fn fold(&self, fold: usize) -> Sketch {
        Sketch::from_parts(self.plan.clone(), self.sums_of(fold).clone())
    }

    /// The sketch of all rows outside one fold.
    ///
    /// # Panics
    /// If there is no such fold.
    pub fn without_fold(&self, fold: usize) -> Sketch {
        let mut sums = self.sums.clone();
        sums.combine(self.sums_of(fold), i128::wrapping_sub);
        Sketch::from_parts(self.plan.clone(), sums)
    }

    fn sums_of(&self, fold: usize) -> &Sums {
        &self.folds.as_ref().expect("a sketch with folds").sums()[fold]
    }

    /// The sketch of the same rows without folds.
    #[must_use]
    pub fn without_folds(&self) -> Sketch {
        Sketch::from_parts(self.plan.clone(), self.sums.clone())
    }

    /// Whether no rows were added, not even invalid ones.
    fn is_empty(&self) -> bool {
        self.rows() == 0 && self.skipped() == 0
    }

    /// Number of rows, with weights counted in the plan's unit.
    pub fn rows(&self) -> u64 {
        self.sums[Sum::Rows][0] as u64
    }

    /// Total weight of the rows, or their number if rows are not weighted.
    pub fn weight(&self) -> f64 {
        self.rows() as f64 * self.plan.weighting.as_ref().map_or(1.0, |w| w.unit)
    }

    /// Number of rows, or their total weight rounded to a whole number, for display and for
    /// statistics.
    pub fn counted(&self) -> u64 {
        self.weight().round() as u64
    }

    /// Number of rows skipped as invalid.
    pub fn skipped(&self) -> u64 {
        self.sums[Sum::Skipped][0] as u64
    }

    /// The sketch without the plan's retained rows: an equal sketch in a smaller file.
    #[must_use]
    pub fn without_witnesses(mut self) -> Self {
        if self.plan.witness_rows().is_some() {
            self.plan = Arc::new(self.plan.without_witness_rows());
        }
        self
    }

    /// The sketch with the retained rows of `plan`, which must be the plan it was made with.
    pub fn with_witnesses_of(mut self, plan: &Arc<Plan>) -> Result<Self> {
        if !same_plan(&self.plan, plan) {
            let (sketch, plan) = (self.plan.fingerprint(), plan.fingerprint());
            return Err(Error::AnotherPlan { sketch, plan });
        }
        if self.plan.lacks_witnesses() {
            self.plan = plan.clone();
        }
        Ok(self)
    }

    /// Adds the rows of another sketch of the same plan, fold by fold. The result has the retained
    /// rows if either sketch has them.
    ///
    /// If the plan protects people, both sketches may contain rows of the same person. The largest
    /// numbers of rows per person therefore add up (see
    /// [`merge_other_people`](Self::merge_other_people)).
    pub fn merge(&mut self, other: &Sketch) -> Result<()> {
        self.combine(other, i128::wrapping_add, "merge")
    }

    /// Adds the rows of people who have no rows in this sketch. The caller must guarantee this; it
    /// cannot be checked.
    pub fn merge_other_people(&mut self, other: &Sketch) -> Result<()> {
        let max_rows = self.person_rows().max(other.person_rows());
        self.merge(other)?;
        if let Some(rows) = max_rows {
            self.count_people(rows);
        }
        Ok(())
    }

    /// Removes the rows of another sketch of the same plan. Fails if the plan protects people: a
    /// sketch limits the rows per person, and removing rows would not bring back the rows that the
    /// limit dropped.
    pub fn subtract(&mut self, other: &Sketch) -> Result<()> {
        if let Some(people) = self.plan.people() {
            return Err(Error::PeopleSubtracted { column: people.column.clone() });
        }
        self.combine(other, i128::wrapping_sub, "subtract")
    }

    /// Largest number of rows of one person in the sketch, if the plan protects people.
    pub fn person_rows(&self) -> Option<u64> {
        self.sums[Sum::PersonRows].first().map(|n| *n as u64)
    }

    /// Sets the largest number of rows of one person.
    pub(crate) fn count_people(&mut self, rows: u64) {
        self.sums[Sum::PersonRows] = vec![i128::from(rows)];
    }

    /// Applies `op` to all sums. Changes nothing unless the result is a possible sketch.
    fn combine(
        &mut self,
        other: &Sketch,
        op: impl Fn(i128, i128) -> i128 + Copy,
        action: &'static str,
    ) -> Result<()> {
        self.check_exact(action)?;
        other.check_exact(action)?;
        check_same_plan(&self.plan, &other.plan)?;
        let mut sums = self.sums.clone();
        sums.combine(&other.sums, op);
        sums.check_room(0)?;
        sums.check(&self.plan).map_err(|rule| impossible(action, rule))?;
        let folds = self.combined_folds(other, op, action)?;
        (self.sums, self.folds) = (sums, folds);
        if self.plan.lacks_witnesses() {
            self.plan = other.plan.clone();
        }
        Ok(())
    }

    /// The combined folds. A sketch without rows takes the folds of the other.
    fn combined_folds(
        &self,
        other: &Sketch,
        op: impl Fn(i128, i128) -> i128,
        action: &'static str,
    ) -> Result<Option<Folds>> {
        let same = self.folds.as_ref().map(Folds::rule) == other.folds.as_ref().map(Folds::rule);
        let mut folds = match &self.folds {
            _ if !same && self.is_empty() => return Ok(other.folds.clone()),
            folds if !same && other.is_empty() => return Ok(folds.clone()),
            _ if !same => {
                let (left, right) = (self.fold_rule_text(), other.fold_rule_text());
                return Err(Error::FoldMismatch { action, left, right });
            }
            None => return Ok(None),
            Some(folds) => folds.clone(),
        };
        folds.combine(other.folds.as_ref().expect("the same rule"), op);
        folds.check(&self.plan).map_err(|rule| impossible(action, rule))?;
        Ok(Some(folds))
    }

    /// The rule of the folds in words, if the sketch has folds.
    fn fold_rule_text(&self) -> Option<String> {
        self.folds.as_ref().map(|folds| folds.rule().to_string())
    }

    /// Mean features of one bandwidth, `1/n Σ_i κ(x̃_j, x_i)` (or cosines, then sines). NaN for a
    /// sketch without rows; empty if kernel sums are not kept.
    pub fn feature_means(&self, rung: usize) -> Vec<f64> {
        let count = self.plan.features_per_bandwidth();
        let n = self.sums.complete() as f64;
        let sums = self.sums[Sum::Features].get(rung * count..(rung + 1) * count).unwrap_or(&[]);
        sums.iter().map(|s| feature_value(*s) / n).collect()
    }

    /// `1 − 1/n Σ_i κ(x_i, nearest landmark)²` for each bandwidth: an upper bound on the mean of
    /// ‖Φ(x) − P_m Φ(x)‖², the share of the data that the landmarks miss.
    pub fn missed(&self) -> Vec<f64> {
        let n = self.sums.complete() as f64;
        self.sums[Sum::Coverage].iter().map(|s| 1.0 - feature_value(*s) / n).collect()
    }

    /// Landmark, number of rows and mean, in the table's units, of every cell with rows; empty if
    /// cells are not kept.
    pub fn cells(&self) -> Vec<(usize, u64, Vec<f64>)> {
        let rows = self.sums[Sum::CellRows].iter().enumerate().filter(|(_, n)| **n > 0);
        rows.map(|(cell, &n)| {
            let mean = self.sums.cell_mean(cell, &self.plan.frame.exponent);
            (cell, n as u64, self.plan.frame.widen_coordinates(&mean))
        })
        .collect()
    }

    /// Number of complete rows. Only these contribute to kernel sums and moments.
    pub fn complete_rows(&self) -> u64 {
        self.sums.complete() as u64
    }

    /// Number of rows with a value in each column.
    fn present(&self) -> Vec<i128> {
        let (d, rows) = (self.plan.dims(), self.sums[Sum::Rows][0]);
        (0..d).map(|k| rows - self.sums.column_total(Sum::CellAbsent, d, k)).collect()
    }

    /// Share of rows with a missing value in each column.
    pub fn missing_shares(&self) -> Vec<f64> {
        let rows = self.sums[Sum::Rows][0];
        self.present().iter().map(|n| (rows - n) as f64 / (rows as f64).max(1.0)).collect()
    }

    /// Number of rows with each level of each category; empty if cells are not kept.
    pub fn level_rows(&self) -> Vec<Vec<u64>> {
        let levels = self.plan.recipe.levels();
        let mut totals = vec![0u64; levels];
        if !self.plan.collect.cells || levels == 0 {
            return Vec::new();
        }
        for counts in self.sums[Sum::CellLevels].chunks_exact(levels) {
            totals.iter_mut().zip(counts).for_each(|(total, n)| *total += *n as u64);
        }
        let categories = self.plan.categories().iter().zip(self.plan.recipe.level_offsets());
        categories.map(|(c, start)| totals[start..start + c.len()].to_vec()).collect()
    }

    /// Σ and Σ² of every column, if moments or cells are kept.
    fn column_sums(&self) -> Option<(Vec<i128>, Vec<i128>)> {
        let (d, sums) = (self.plan.dims(), &self.sums);
        // Moments sum only complete rows; cells sum all rows.
        if self.plan.collect.moments && !self.plan.is_partial() {
            // The diagonal of the packed lower triangle.
            let squares = (0..d).map(|k| sums[Sum::Outer][k * (k + 3) / 2]).collect();
            return Some((sums[Sum::Sum].clone(), squares));
        }
        if !self.plan.collect.cells {
            return None;
        }
        let totals = (0..d).map(|k| sums.column_total(Sum::CellSum, d, k));
        let squares = (0..d).map(|k| sums.column_total(Sum::CellSquare, d, k));
        Some((totals.collect(), squares.collect()))
    }

    /// Mean of every column in the plan's coordinates, if moments or cells are kept.
    pub fn coordinate_means(&self) -> Option<Vec<f64>> {
        let totals = self.column_sums()?.0;
        let exponents = &self.plan.frame.exponent;
        let present = self.present();
        let all = totals.iter().zip(exponents).zip(&present);
        Some(all.map(|((s, e), n)| coordinate_value(*s, *e) / (*n).max(1) as f64).collect())
    }

    /// Summary of all rows: means and standard deviations of the columns, shares of levels and of
    /// missing values. `None` if the sketch has no moments and no cells.
    pub fn whole(&self) -> Option<Profile> {
        let (mean, variance): (Vec<f64>, Vec<f64>) = self.column_moments()?.into_iter().unzip();
        let deviation = variance.iter().map(|v| v.max(0.0).sqrt()).collect();
        let mut profile = Profile::new(mean, deviation, Vec::new());
        let rows = (self.rows() as f64).max(1.0);
        let levels = self.level_rows();
        profile.levels = levels.iter().flatten().map(|n| *n as f64 / rows).collect();
        if self.plan.is_partial() {
            profile.missing = self.missing_shares();
        }
        Some(profile)
    }

    /// Mean and variance of every column in the table's units, if moments or cells are kept.
    pub fn column_moments(&self) -> Option<Vec<(f64, f64)>> {
        let means = self.plan.frame.widen_coordinates(&self.coordinate_means()?);
        let (sums, squares) = self.column_sums()?;
        let (frame, present) = (&self.plan.frame, self.present());
        let mut moments = Vec::with_capacity(means.len());
        for (k, mean) in means.into_iter().enumerate() {
            // A column without any values gets its centre as the mean, and variance 0.
            let n = present[k].max(1);
            let unit = power_of_two(frame.exponent[k]) * frame.scale[k];
            let variance = (centred_sum(squares[k], sums[k], sums[k], n) / n as f64).max(0.0);
            moments.push((mean, variance * unit * unit));
        }
        Some(moments)
    }
}

fn impossible(action: &'static str, rule: BrokenRule) -> Error {
    Error::Impossible { action, what: rule.sum, how: rule.how }
}

/// Whether two plans are the same, regardless of their retained rows being available.
fn same_plan(left: &Arc<Plan>, right: &Arc<Plan>) -> bool {
    Arc::ptr_eq(left, right) || left.identity() == right.identity()
}

/// Refuses sketches of different plans.
pub fn check_same_plan(left: &Arc<Plan>, right: &Arc<Plan>) -> Result<()> {
    if same_plan(left, right) {
        return Ok(());
    }
    Err(Error::PlanMismatch { left: left.fingerprint(), right: right.fingerprint() })
}
