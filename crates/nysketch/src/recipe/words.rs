//! Values of the table as people write them: what steps have made of them is undone.

use super::step::Step;
use super::step::{DAY, civil};
use std::f64::consts::TAU;

/// A number with four significant digits.
///
/// ```
/// assert_eq!(nysketch::recipe::words::short(0.012_345_6), "0.01235");
/// ```
pub fn short(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        a if (1e-3..1e6).contains(&a) => {
            let digits = (3 - a.log10().floor() as i32).clamp(0, 6) as usize;
            let text = format!("{x:.digits$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                false => text,
            }
        }
        _ => format!("{x:.3e}"),
    }
}

/// A point in time, in seconds since 1970, to the minute; a date alone where it is midnight.
///
/// ```
/// use nysketch::recipe::words::time;
/// assert_eq!(time(19_782.0 * 86_400.0), "2024-02-29");
/// assert_eq!(time(19_782.0 * 86_400.0 + 3_599.0), "2024-02-29 01:00");
/// ```
pub fn time(seconds: f64) -> String {
    if !(seconds.abs() < 1e14) {
        return short(seconds);
    }
    let minutes = (seconds / 60.0).round() as i64;
    let (year, month, day) = civil(minutes.div_euclid(1440));
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

/// Where on the circle of a step's cycle a mean of sines and cosines points to, in the words of that cycle: a clock
/// time, a day of the week, a month. `None` where it points nowhere, or the step has no cycle.
///
/// ```
/// use nysketch::Step;
/// use nysketch::recipe::words::on_circle;
/// assert_eq!(on_circle(Step::HourSin, 1.0, 0.0).unwrap(), "06:00");
/// assert_eq!(on_circle(Step::MonthCos, 0.0, -0.4).unwrap(), "Jul");
/// assert_eq!(on_circle(Step::HourSin, 0.0, 0.0), None);
/// ```
pub fn on_circle(step: Step, sine: f64, cosine: f64) -> Option<String> {
    // Means this near to the centre come from times all around it.
    if !(sine.hypot(cosine) > 0.02) {
        return None;
    }
    let turn = (sine.atan2(cosine) / TAU).rem_euclid(1.0);
    let part = |n: usize| ((turn * n as f64) as usize).min(n - 1);
    match step {
        Step::HourSin | Step::HourCos => Some(clock((turn * DAY / 60.0).round() as i64 % 1440)),
        Step::WeekdaySin | Step::WeekdayCos => Some(WEEKDAYS[part(7)].to_string()),
        Step::MonthSin | Step::MonthCos => Some(MONTHS[part(12)].to_string()),
        Step::AsIs | Step::Log | Step::Time => None,
    }
}

/// A value that a step has made, as the table has it.
pub fn value(step: Step, y: f64) -> String {
    match step {
        Step::Time => time(y),
        step => short(step.undo(y)),
    }
}
