//! Axes with drawable ranges for any values, and marks at round numbers.

/// Values beyond this cannot be subtracted and squared; they are left out.
pub const LARGEST: f64 = 1e150;

/// Ranges below this count as zero.
const SMALLEST: f64 = 1e-150;

/// Returns whether a value can be drawn.
pub fn drawable(value: f64) -> bool {
    value.is_finite() && value.abs() <= LARGEST
}

/// A range of values, and its marks.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether the axis is logarithmic.
    pub logarithmic: bool,
    /// Positions and labels of the marks.
    pub marks: Vec<(f64, String)>,
    /// Name of the quantity.
    pub name: String,
}

impl Axis {
    /// Makes an axis from the lowest to the highest value, with a margin; never empty.
    pub fn around(values: impl IntoIterator<Item = f64>, name: &str) -> Self {
        let (low, high) = ends(values.into_iter().filter(|v| drawable(*v))).unwrap_or((0.0, 1.0));
        let (range, largest) = (high - low, high.abs().max(low.abs()));
        // Values that are all equal are in the middle of the axis.
        let room = match largest {
            _ if range > 1e-9 * largest && range > SMALLEST => 0.05 * range,
            _ if largest > SMALLEST => 0.05 * largest,
            _ => 0.5,
        };
        Axis::linear(low - room, high + room, name)
    }

    /// Makes an axis exactly from `low` to `high`.
    pub fn linear(low: f64, high: f64, name: &str) -> Self {
        Axis { low, high, logarithmic: false, marks: round_marks(low, high, 6), name: name.into() }
    }

    /// Makes a logarithmic axis between positive numbers.
    pub fn logarithmic(low: f64, high: f64, name: &str) -> Self {
        let low = if drawable(low) { low.max(SMALLEST) } else { SMALLEST };
        let high = if drawable(high) { high.max(low * 1.001) } else { low * 10.0 };
        let marks = log_marks(low, high);
        Axis { low, high, logarithmic: true, marks, name: name.into() }
    }

    /// Uses these marks instead of round numbers.
    pub fn marks(mut self, marks: impl IntoIterator<Item = (f64, String)>) -> Self {
        self.marks = marks.into_iter().collect();
        self
    }

    /// Returns the position of a value between 0 and 1. Values outside the axis are at its ends;
    /// values that cannot be drawn have no position.
    pub fn share(&self, value: f64) -> Option<f64> {
        let by = |x: f64| if self.logarithmic { x.max(f64::MIN_POSITIVE).ln() } else { x };
        let (low, high) = (by(self.low), by(self.high));
        drawable(value).then(|| ((by(value) - low) / (high - low)).clamp(0.0, 1.0))
    }
}

/// Returns the smallest and the largest value, or `None` if there are no values.
pub fn ends(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().fold(None, |ends, v| match ends {
        None => Some((v, v)),
        Some((low, high)) => Some((v.min(low), v.max(high))),
    })
}

/// Returns the smallest of 1, 2, 5, 10, … that is at least `rough`.
fn round_up(rough: f64) -> f64 {
    let unit = 10f64.powi(rough.log10().floor() as i32);
    [1.0, 2.0, 5.0].into_iter().map(|f| f * unit).find(|s| *s >= rough).unwrap_or(10.0 * unit)
}

/// Returns about this many marks, at multiples of a round step.
fn round_marks(low: f64, high: f64, about: usize) -> Vec<(f64, String)> {
    let step = round_up((high - low) / about as f64);
    let first = (low / step).ceil();
    let at = |i: usize| (first + i as f64) * step;
    let marks = (0..=2 * about).map(at).take_while(|v| *v <= high);
    marks.map(|v| (v, number(v, step))).collect()
}

/// Returns marks at 1, 2, 5, 10, …; on a long axis at some powers of ten, and on a short one at
/// even steps.
fn log_marks(low: f64, high: f64) -> Vec<(f64, String)> {
    let decades = (high / low).log10();
    let power = |i: i32| 10f64.powi(i);
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let marks: Vec<f64> = if decades > 2.5 {
        (first..=last).step_by((decades / 6.0).ceil() as usize).map(power).collect()
    } else if decades > 0.5 {
        (first..=last).flat_map(|i| [1.0, 2.0, 5.0].map(|f| f * power(i))).collect()
    } else {
        return round_marks(low, high, 4);
    };
    let inside = marks.into_iter().filter(|v| (low..=high).contains(v));
    inside.map(|v| (v, number(v, v))).collect()
}

/// Formats a multiple of a step, with the digits that the step needs.
fn number(value: f64, step: f64) -> String {
    if value.abs() < 1e-9 * step {
        return "0".into();
    }
    let (large, small) = (value.abs().log10().floor() as i32, step.log10().floor() as i32);
    if large > 5 || small < -4 {
        let digits = (large - small).clamp(0, 15) as usize;
        return format!("{value:.digits$e}");
    }
    let digits = (-small).max(0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_differ() {
        let texts = |axis: &Axis| axis.marks.iter().map(|m| m.1.clone()).collect::<Vec<_>>();
        let tenths = texts(&Axis::linear(0.0, 1.0, ""));
        assert_eq!(tenths, ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(&Axis::linear(158_153.0, 158_153.5, ""))[0], "158153.0");
        assert_eq!(texts(&Axis::linear(0.0, 3e7, ""))[1], "5e6");
        assert_eq!(texts(&Axis::logarithmic(1.0, 60.0, "")), ["1", "2", "5", "10", "20", "50"]);
    }

    #[test]
    fn values_that_cannot_be_drawn_are_nowhere() {
        let axis = Axis::around([1.0, f64::NAN, f64::INFINITY, 1e160, 3.0], "");
        assert!(axis.low > 0.8 && axis.high < 3.2);
        assert_eq!((axis.share(f64::NAN), axis.share(1e160)), (None, None));
        assert_eq!((axis.share(-9.0), axis.share(9.0)), (Some(0.0), Some(1.0)));
    }

    proptest::proptest! {
        /// An axis of any values has a few distinct marks, all within its range.
        #[test]
        fn every_axis_can_be_drawn(values in proptest::collection::vec(proptest::num::f64::ANY, 0..6)) {
            let log = ends(values.iter().map(|v| v.abs())).unwrap_or((1.0, 2.0));
            for axis in [Axis::around(values.clone(), ""), Axis::logarithmic(log.0, log.1, "")] {
                assert!(axis.low < axis.high && axis.low.is_finite() && axis.high.is_finite());
                assert!(axis.marks.len() <= 16, "{:?}", axis.marks);
                assert!(axis.marks.iter().all(|m| (axis.low..=axis.high).contains(&m.0)));
                let texts: std::collections::HashSet<_> = axis.marks.iter().map(|m| &m.1).collect();
                assert_eq!(texts.len(), axis.marks.len(), "{:?}", axis.marks);
                for v in &values {
                    assert!(axis.share(*v).is_none_or(|s| (0.0..=1.0).contains(&s)));
                }
            }
        }
    }
}
