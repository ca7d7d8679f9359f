//! The transformations of values before they are measured, and their inverses for display.

use crate::error::names::{Choice, Named, name_of};
use std::f64::consts::TAU;

/// The transformation of a value of the table. It gives the same bits on every machine.
///
/// ```
/// use nysketch_core::Step;
/// assert_eq!(Step::Log.apply(-1.0), -(2.0f64.ln()));
/// // Noon on the first day of 1970.
/// assert!((Step::HourCos.apply(43_200.0) + 1.0).abs() < 1e-15);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The value itself.
    AsIs,
    /// `sign(x)·ln(1 + |x|)`.
    Log,
    /// A timestamp, in seconds since 1970.
    Time,
    /// The time of day as an angle: its sine.
    HourSin,
    /// The time of day as an angle: its cosine.
    HourCos,
    /// The time of the week, from Monday, as an angle: its sine.
    WeekdaySin,
    /// The time of the week, from Monday, as an angle: its cosine.
    WeekdayCos,
    /// The time of the year, with twelve equal months, as an angle: its sine.
    MonthSin,
    /// The time of the year, with twelve equal months, as an angle: its cosine.
    MonthCos,
}

impl Named for Step {
    const PARAMETER: &'static str = "`step`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(Step::AsIs, "none", "As it is"),
        Choice::new(Step::Log, "log", "sign(x) ln(1 + |x|)"),
        Choice::new(Step::Time, "time", "Seconds since 1970"),
        Choice::new(Step::HourSin, "hour_sin", "Time of day, sine"),
        Choice::new(Step::HourCos, "hour_cos", "Time of day, cosine"),
        Choice::new(Step::WeekdaySin, "weekday_sin", "Time of week, sine"),
        Choice::new(Step::WeekdayCos, "weekday_cos", "Time of week, cosine"),
        Choice::new(Step::MonthSin, "month_sin", "Time of year, sine"),
        Choice::new(Step::MonthCos, "month_cos", "Time of year, cosine"),
    ];
}

pub(super) const DAY: f64 = 86_400.0;

impl Step {
    /// Name in files.
    pub fn name(self) -> &'static str {
        name_of(self)
    }

    /// Whether the result is the sine or cosine of an angle, one of the two coordinates of a point
    /// on a circle.
    pub(crate) fn of_circle(self) -> bool {
        !matches!(self, Step::AsIs | Step::Log | Step::Time)
    }

    /// Whether the input is a timestamp.
    pub fn of_time(self) -> bool {
        !matches!(self, Step::AsIs | Step::Log)
    }

    /// Applies the transformation. A missing value stays missing.
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Step::AsIs | Step::Time => x,
            Step::Log => libm::log1p(x.abs()).copysign(x),
            Step::HourSin => libm::sin(TAU * turn_of_day(x)),
            Step::HourCos => libm::cos(TAU * turn_of_day(x)),
            Step::WeekdaySin => libm::sin(TAU * turn_of_week(x)),
            Step::WeekdayCos => libm::cos(TAU * turn_of_week(x)),
            Step::MonthSin => libm::sin(TAU * turn_of_year(x)),
            Step::MonthCos => libm::cos(TAU * turn_of_year(x)),
        }
    }

    /// Inverts the transformation. A sine or cosine, which has no inverse on its own, is returned
    /// unchanged. A value beyond the largest number
    /// becomes the largest number.
    pub fn undo(self, y: f64) -> f64 {
        match self {
            Step::Log => {
                let x = libm::expm1(y.abs());
                if x.is_infinite() { f64::MAX.copysign(y) } else { x.copysign(y) }
            }
            _ => y,
        }
    }
}

/// The elapsed share of the day.
fn turn_of_day(seconds: f64) -> f64 {
    seconds.rem_euclid(DAY) / DAY
}

/// The elapsed share of the week. 1970 began on a Thursday.
fn turn_of_week(seconds: f64) -> f64 {
    (seconds + 3.0 * DAY).rem_euclid(7.0 * DAY) / (7.0 * DAY)
}

/// Largest magnitude of a timestamp for which the date is computed: the number of days fits in 64
/// bits.
const LATEST: f64 = 1e20;

/// The elapsed share of the year, with each month counting one twelfth.
fn turn_of_year(seconds: f64) -> f64 {
    if !(seconds.abs() <= LATEST) {
        return f64::NAN;
    }
    let days = (seconds / DAY).floor();
    let Date { year, month, day } = civil(days as i64);
    let into = (f64::from(day) - 1.0) + (seconds - days * DAY) / DAY;
    (f64::from(month) - 1.0 + into / f64::from(days_in(year, month))) / 12.0
}

/// A date of the Gregorian calendar.
#[derive(Debug, PartialEq)]
pub(crate) struct Date {
    pub year: i64,
    pub month: u32,
    pub day: u32,
}

/// The date a number of days after the start of 1970. 400 years have 146,097 days, and a year that
/// begins in March has its leap day at the end.
pub(crate) fn civil(days: i64) -> Date {
    let since = days + 719_468;
    let era = since.div_euclid(146_097);
    let day_of_era = since.rem_euclid(146_097);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Date { year, month: month as u32, day: day as u32 }
}

fn days_in(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar_follow_one_another() {
        assert_eq!(civil(0), Date { year: 1970, month: 1, day: 1 });
        assert_eq!(civil(19_782), Date { year: 2024, month: 2, day: 29 });
        let Date { mut year, mut month, mut day } = civil(-1_000_000);
        for days in -999_999..1_000_000 {
            day += 1;
            if day > days_in(year, month) {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
            assert_eq!(civil(days), Date { year, month, day });
        }
    }

    #[test]
    fn turns_are_those_of_the_clock_and_the_calendar() {
        assert_eq!(turn_of_day(-21_600.0), 0.75);
        // 2024-01-01 was a Monday.
        assert_eq!(turn_of_week(19_723.0 * DAY), 0.0);
        assert_eq!(turn_of_year(19_723.0 * DAY), 0.0);
        assert!((turn_of_year(19_782.5 * DAY) - (1.0 + 28.5 / 29.0) / 12.0).abs() < 1e-15);
        assert!(turn_of_year(f64::NAN).is_nan() && turn_of_year(f64::INFINITY).is_nan());
        assert!(turn_of_year(-1e20) < 1.0 && turn_of_year(1e300).is_nan());
    }

    /// Steps are part of the format: a different implementation would change sketches.
    #[test]
    fn steps_have_the_same_bits_forever() {
        let mut bytes = Vec::new();
        for i in -2000i32..2000 {
            let x = f64::from(i) * f64::from(i) * f64::from(i) / 1024.0;
            let time = f64::from(i) * 1_000_003.25;
            for choice in Step::TABLE {
                let input = if choice.value.of_time() { time } else { x };
                bytes.extend(choice.value.apply(input).to_le_bytes());
            }
        }
        assert_eq!(
            crate::numeric::digest::sha256(&bytes),
            "ea04994dad8ee8ebcb17046213ab03cc3dde9cea3180179465a13a25cee239ac"
        );
    }

    #[test]
    fn logs_are_undone() {
        for x in [0.0, -0.5, 3.0, 1e9, -1e-9] {
            assert!((Step::Log.undo(Step::Log.apply(x)) - x).abs() <= 1e-12 * x.abs());
        }
        assert!(Step::Log.apply(f64::NAN).is_nan() && Step::Log.undo(f64::NAN).is_nan());
        assert_eq!(Step::Log.undo(-1e4), -f64::MAX);
    }
}
