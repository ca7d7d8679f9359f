//! The frame of a plan: the centre and the scale of each column.

use super::choices::Scale;
use super::params::PlanParams;
use super::report::PlanReport;
use super::roles::ONE_POINT;
use crate::error::Result;
use crate::numeric::fixed::power_of_two;
use crate::plan::frame::Frame;
use crate::planning::survey::Survey;
use crate::recipe::Recipe;

/// Makes the frame. The centre is the mean, rounded to about the column's spread, so that integer
/// columns have integer coordinates.
pub fn make_frame(
    columns: &[String],
    recipe: &Recipe,
    found: &Survey,
    params: &PlanParams,
) -> Result<Frame> {
    let mut centre = Vec::new();
    let mut scales = Vec::new();
    for (j, c) in found.columns.iter().enumerate() {
        let unit = if c.deviation > 0.0 { c.deviation.log2().floor().exp2() } else { 0.0 };
        let rounded = (c.mean / unit).round() * unit;
        centre.push(if c.low == c.high {
            c.low
        } else if rounded.is_finite() {
            rounded
        } else {
            c.mean
        });
        // A sine or cosine that is constant up to rounding must not be scaled up.
        let circle = recipe.numbers[j].step.of_circle() && c.high - c.low < ONE_POINT;
        let usable = c.deviation.is_normal() && c.low < c.high && !circle;
        let scale = match params.scale.unwrap_or_default() {
            Scale::Standard if usable => c.deviation,
            Scale::Robust if usable => {
                let (low, high) = quartiles(found, j);
                let width = (high - low) / GAUSSIAN_QUARTILES;
                if width.is_normal() { width } else { c.deviation }
            }
            _ => 1.0,
        };
        let weight = params.weight_of(&recipe.numbers[j].input).unwrap_or(1.0);
        scales.push(scale / weight.sqrt());
    }
    let low: Vec<f64> = found.columns.iter().map(|c| c.low).collect();
    let high: Vec<f64> = found.columns.iter().map(|c| c.high).collect();
    Frame::new(columns, centre, scales, &low, &high)
}

/// Distance between the quartiles of a standard Gaussian.
const GAUSSIAN_QUARTILES: f64 = 1.348_979_500_392_163;

/// Quartiles of a column in the sample.
fn quartiles(found: &Survey, j: usize) -> (f64, f64) {
    let values = found.sample.iter().skip(j).step_by(found.columns.len());
    let mut values: Vec<f64> = values.copied().filter(|x| !x.is_nan()).collect();
    (quantile(&mut values, 0.25), quantile(&mut values, 0.75))
}

/// The value below which this share of the values lies; zero without values.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    match values.len() {
        0 => 0.0,
        n => *values.select_nth_unstable_by(((n - 1) as f64 * share) as usize, f64::total_cmp).1,
    }
}

/// Warns about columns with extreme values. Sums count in steps of about 2⁻²⁸ of the largest value,
/// so a few extremely distant rows make the steps too coarse for all others.
pub fn warn_of_lost_digits(
    columns: &[String],
    found: &Survey,
    frame: &Frame,
    report: &mut PlanReport,
) {
    let d = columns.len();
    for j in 0..d {
        let (low, high) = quartiles(found, j);
        let step = power_of_two(frame.exponent[j]) * frame.scale[j];
        if high > low && step > 1e-2 * (high - low) {
            report.warnings.push(format!(
                "column '{}' reaches from {:.3e} to {:.3e}, but half of its values lie between \
                 {:.3e} and {:.3e}: sums keep them only to steps of {step:.1e}; leave such extreme \
                 rows out, or bring them nearer",
                columns[j], found.columns[j].low, found.columns[j].high, low, high
            ));
        }
    }
}
