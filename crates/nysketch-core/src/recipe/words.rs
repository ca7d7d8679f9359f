//! Values formatted for display, in the units of the table: the inverses of the steps.

use super::step::Step;
use super::step::{DAY, Date, civil};
use std::f64::consts::TAU;

/// Formats a number with four significant digits.
///
/// ```
/// assert_eq!(nysketch_core::recipe::words::short(0.012_345_6), "0.01235");
/// ```
pub fn short(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        a if (1e-3..1e6).contains(&a) => {
            let digits = (3 - a.log10().floor() as i32).clamp(0, 6) as usize;
            let text = format!("{x:.digits$}");
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_string()
            } else {
                text
            }
        }
        _ => format!("{x:.3e}"),
    }
}

/// Formats a timestamp, in seconds since 1970, to the minute, or as a date alone at midnight.
///
/// ```
/// use nysketch_core::recipe::words::time;
/// assert_eq!(time(19_782.0 * 86_400.0), "2024-02-29");
/// assert_eq!(time(19_782.0 * 86_400.0 + 3_599.0), "2024-02-29 01:00");
/// ```
pub fn time(seconds: f64) -> String {
    if !(seconds.abs() < 1e14) {
        return short(seconds);
    }
    let minutes = (seconds / 60.0).round() as i64;
    let Date { year, month, day } = civil(minutes.div_euclid(1440));
    let date = format!("{year:04}-{month:02}-{day:02}");
    match minutes.rem_euclid(1440) {
        0 => date,
        minute => format!("{date} {}", clock(minute)),
    }
}

fn clock(minute: i64) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The quantity that a step measures on a circle: its name, and the length of a turn in its unit.
pub fn cycle(step: Step) -> Option<(&'static str, f64)> {
    match step {
        Step::HourSin | Step::HourCos => Some(("hour", 24.0)),
        Step::WeekdaySin | Step::WeekdayCos => Some(("weekday", 7.0)),
        Step::MonthSin | Step::MonthCos => Some(("month", 12.0)),
        Step::AsIs | Step::Log | Step::Time => None,
    }
}

/// Direction of a mean sine and cosine on their circle: hours since midnight, days since Monday,
/// months since New Year. NaN if there is no clear direction.
///
/// ```
/// use nysketch_core::Step;
/// use nysketch_core::recipe::words::{on_circle, value};
/// let six = on_circle(Step::HourSin, 1.0, 0.0);
/// assert_eq!((six, value(Step::HourSin, six).as_str()), (6.0, "06:00"));
/// assert_eq!(value(Step::MonthCos, on_circle(Step::MonthCos, 0.0, -0.4)), "Jul");
/// assert_eq!(value(Step::HourSin, on_circle(Step::HourSin, 0.0, 0.0)), "any");
/// ```
pub fn on_circle(step: Step, sine: f64, cosine: f64) -> f64 {
    // A mean this close to the centre comes from times all around the circle.
    match cycle(step) {
        Some((_, whole)) if sine.hypot(cosine) > 0.02 => {
            (sine.atan2(cosine) / TAU).rem_euclid(1.0) * whole
        }
        _ => f64::NAN,
    }
}

/// Formats a transformed value in the units of the table. For a circle, `y` is the result of
/// [`on_circle`].
pub fn value(step: Step, y: f64) -> String {
    match step {
        Step::Time => time(y),
        Step::AsIs | Step::Log => short(step.undo(y)),
        _ if y.is_nan() => "any".into(),
        Step::HourSin | Step::HourCos => clock((60.0 * y).round() as i64 % 1440),
        Step::WeekdaySin | Step::WeekdayCos => name_at(&WEEKDAYS, y),
        Step::MonthSin | Step::MonthCos => name_at(&MONTHS, y),
    }
}

/// The name at a place on a circle.
fn name_at(names: &[&str], place: f64) -> String {
    names[(place as usize).min(names.len() - 1)].to_string()
}

/// Formats a standard deviation of transformed values: as a factor for logarithms, in days or hours
/// for timestamps.
///
/// ```
/// use nysketch_core::Step;
/// use nysketch_core::recipe::words::deviation;
/// assert_eq!(deviation(Step::Time, 172_800.0), "2 days");
/// assert_eq!(deviation(Step::Log, 2f64.ln()), "× 2");
/// ```
pub fn deviation(step: Step, y: f64) -> String {
    match step {
        Step::Log => format!("× {}", short(y.exp().min(f64::MAX))),
        Step::Time if y >= DAY => format!("{} days", short(y / DAY)),
        Step::Time => format!("{} hours", short(y / 3600.0)),
        _ => short(y),
    }
}

/// Formats a share as a percentage.
///
/// ```
/// use nysketch_core::recipe::words::percent;
/// assert_eq!([0.612, 0.0421, 1e-5, 0.0].map(percent).join(", "), "61 %, 4.2 %, under 0.1 %, 0 %");
/// ```
pub fn percent(share: f64) -> String {
    match 100.0 * share {
        100.0 => "100 %".to_string(),
        p if (10.0..99.0).contains(&p) => format!("{p:.0} %"),
        p if p >= 0.1 => format!("{p:.1} %"),
        p if p > 0.0 => "under 0.1 %".to_string(),
        _ => "0 %".to_string(),
    }
}
