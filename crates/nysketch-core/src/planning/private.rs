//! Private plans, which are computed only from user input and public rows.

use crate::error::{Error, Result};
use crate::numeric::fixed::power_of_two;
use crate::numeric::points::Points;
use crate::numeric::random::unit;
use crate::plan::frame::Frame;
use crate::plan::private::{BOUNDED_BITS, MAX_RADIUS, People, Private};
use crate::plan::{Features, Plan};
use crate::planning::landmarks::dsquared::squared_distances;
use crate::rows::Table;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;

/// Minimum share of public rows beyond the bounds that suggests a different unit.
const MANY_BEYOND: f64 = 0.05;

/// Default share of the public rows that are within the radius of their cell.
const WITHIN_RADIUS: f64 = 0.95;

/// The parameters of a private plan. The rows from which it is computed must be public.
///
/// ```
/// use nysketch_core::{PlanParams, PrivateParams, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let private = PrivateParams::new([("age".into(), 0.0, 120.0), ("height".into(), 30.0, 250.0)]);
/// // Landmarks need no rows: points spread over the bounds are sufficient.
/// let anywhere = private.anywhere(2000, 0)?;
/// let plan = plan_for(&anywhere, PlanParams::default().landmarks(50).private(private))?.plan;
/// assert!(plan.private.is_some() && plan.witnesses.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PrivateParams {
    /// The measured columns with their minimum and maximum values; other values are clipped.
    pub bounds: Vec<(String, f64, f64)>,
    /// Maximum distance from the landmark at which a row counts unchanged in the sums of its cell,
    /// in the coordinates of the plan; by default, 95 % of the public rows are closer.
    pub radius: Option<f64>,
    /// The privacy cost of the public rows, ρ in units of 2⁻⁵⁶, if they come from a release.
    pub spent: u64,
    /// The people to protect; `None` protects single rows.
    pub people: Option<People>,
}

impl PrivateParams {
    /// Sets the bounds of the columns.
    pub fn new(bounds: impl IntoIterator<Item = (String, f64, f64)>) -> Self {
        let bounds = bounds.into_iter().collect();
        PrivateParams { bounds, radius: None, spent: 0, people: None }
    }

    /// Returns the measured columns.
    pub fn columns(&self) -> Vec<String> {
        self.bounds.iter().map(|(name, _, _)| name.clone()).collect()
    }

    /// Returns points spread evenly over the bounds, from which landmarks can be chosen without
    /// public rows.
    pub fn anywhere(&self, rows: usize, seed: u64) -> Result<Table> {
        self.check()?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut values = Vec::with_capacity(rows * self.bounds.len());
        for _ in 0..rows {
            values.extend(self.bounds.iter().map(|(_, low, high)| {
                // `high - low` may overflow.
                let share = unit(&mut rng);
                low * (1.0 - share) + high * share
            }));
        }
        Table::new(self.columns(), values)
    }

    /// Checks the parameters that do not depend on rows.
    pub(super) fn check(&self) -> Result<()> {
        if self.bounds.is_empty() {
            let expected = "given for each column that is to be measured";
            return Err(Error::parameter("`bounds`", expected, "none"));
        }
        let mut seen = HashSet::new();
        for (name, low, high) in &self.bounds {
            if name.is_empty() {
                return Err(Error::parameter("`bounds`", "given for columns with a name", "none"));
            }
            if !(low.is_finite() && high.is_finite() && low < high) {
                let expected = format!("a lower and a higher number for '{name}'");
                return Err(Error::parameter("`bounds`", expected, format!("{low}..{high}")));
            }
            if !seen.insert(name) {
                return Err(Error::parameter("`bounds`", "given once for each column", name));
            }
        }
        match self.radius {
            Some(radius) if !(radius > 0.0 && radius.is_finite()) => {
                Err(Error::parameter("`radius`", "a positive number", radius))
            }
            _ => Ok(()),
        }
    }

    /// Returns a remark if many of the public rows, in the coordinates of the plan, are beyond its
    /// bounds.
    pub(super) fn remark(&self, plan: &Plan, sample: &Points) -> Option<String> {
        let private = plan.private.as_ref()?;
        let beyond = |row: &[f32]| private.is_beyond(&plan.frame.widen(row));
        let share =
            sample.rows().filter(|row| beyond(row)).count() as f64 / sample.len().max(1) as f64;
        (share > MANY_BEYOND).then(|| {
            let percent = 100.0 * share;
            format!(
                "{percent:.0} % of the public rows are beyond the bounds; are both in the same \
                units?"
            )
        })
    }

    /// Returns the plan with these bounds; `sample` contains public rows in its coordinates.
    pub(super) fn apply(&self, plan: Plan, sample: &Points, threads: usize) -> Result<Plan> {
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for number in &plan.recipe.numbers {
            let Some((_, least, most)) = self.bounds.iter().find(|(n, ..)| *n == number.input)
            else {
                let expected = format!("given for '{}', which is measured", number.input);
                return Err(Error::parameter("`bounds`", expected, "none"));
            };
            // All steps except those for times preserve the order.
            low.push(number.step.apply(*least));
            high.push(number.step.apply(*most));
        }
        let frame = one_unit(&plan.frame, &low, &high);
        let features = match plan.features {
            Features::Nystrom(points, sampling) => {
                Features::Nystrom(inside(&points, &frame, &low, &high), sampling)
            }
            fourier => fourier,
        };
        let radius = match (plan.collect.cells, self.radius) {
            (false, _) => 0.0,
            (true, Some(radius)) => radius,
            (true, None) => {
                let sample = inside(sample, &frame, &low, &high);
                usual_radius(&sample, features.points(), threads)
            }
        };
        let radius = (radius * power_of_two(-frame.exponent[0])).ceil();
        // The negated comparison also fails for NaN.
        if !(radius <= MAX_RADIUS as f64) {
            let most = MAX_RADIUS as f64 * power_of_two(frame.exponent[0]);
            return Err(Error::parameter("`radius`", format!("at most {most}"), "more"));
        }
        let people = self.people.clone();
        let private = Private { low, high, radius: radius as u64, spent: self.spent, people };
        Ok(Plan { frame, features, private: Some(private), ..plan })
    }
}

/// Returns the frame with one unit for all columns, in which the bounds are at most 2²⁸ units away.
fn one_unit(frame: &Frame, low: &[f64], high: &[f64]) -> Frame {
    let away = |x: f64, j: usize| ((x - frame.centre[j]) / frame.scale[j]).abs();
    let farthest = (0..frame.dims()).map(|j| away(low[j], j).max(away(high[j], j)));
    let farthest = farthest.fold(f64::MIN_POSITIVE, f64::max);
    let exponent = (farthest.log2().ceil() as i32 - BOUNDED_BITS).clamp(-244, 10);
    let exponents = vec![exponent; frame.dims()];
    Frame::from_parts(frame.centre.clone(), frame.scale.clone(), exponents)
}

/// Returns the points clipped to the bounds.
fn inside(points: &Points, frame: &Frame, low: &[f64], high: &[f64]) -> Points {
    let d = frame.dims();
    let end = |x: f64, j: usize| ((x - frame.centre[j]) * (1.0 / frame.scale[j])) as f32;
    let inside =
        |(at, z): (usize, &f32)| z.clamp(end(low[at % d], at % d), end(high[at % d], at % d));
    Points::new(d, points.data().iter().enumerate().map(inside).collect())
}

/// Returns the radius within which the default share of rows that are not landmarks lie. If all
/// rows are landmarks, returns the largest distance from a landmark to its nearest neighbour.
fn usual_radius(sample: &Points, landmarks: &Points, threads: usize) -> f64 {
    let mut squares = squared_distances(sample, landmarks, threads);
    squares.retain(|s| *s > 0.0);
    if squares.is_empty() {
        let apart = |i: usize| {
            let others = (0..landmarks.len()).filter(|j| *j != i);
            let square = |j: usize| -> f64 {
                let pairs = landmarks.row(i).iter().zip(landmarks.row(j));
                pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum()
            };
            others.map(square).filter(|s| *s > 0.0).fold(f64::INFINITY, f64::min)
        };
        let nearest = (0..landmarks.len()).map(apart).filter(|s| s.is_finite());
        return nearest.fold(0.0, f64::max).sqrt().max(f64::MIN_POSITIVE);
    }
    let at = ((squares.len() - 1) as f64 * WITHIN_RADIUS) as usize;
    squares.select_nth_unstable_by(at, f64::total_cmp).1.sqrt()
}
