//! Parsing of text values: numbers, booleans and points in time.

/// Whether a field is a missing value in a column of numbers or times.
fn is_missing(text: &str) -> bool {
    matches!(text, "" | "NA" | "N/A" | "NaN" | "nan" | "null" | "NULL" | "None" | "#N/A")
}

/// Returns the text of a field without surrounding spaces.
fn trimmed(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field).ok().map(str::trim_ascii)
}

/// Parses a number: NaN if the field is missing, `None` if it is text.
pub fn number(field: &[u8]) -> Option<f64> {
    let text = trimmed(field)?;
    if is_missing(text) { Some(f64::NAN) } else { text.parse().ok() }
}

/// Parses `true` and `false` in the usual spellings.
pub fn truth(field: &[u8]) -> Option<f64> {
    match field.trim_ascii() {
        b"true" | b"True" | b"TRUE" => Some(1.0),
        b"false" | b"False" | b"FALSE" => Some(0.0),
        _ => None,
    }
}

/// Reads a field of a column of numbers. The result is NaN if the field is missing, and infinite if
/// it is not a number.
///
/// ASCII white space around the field is ignored. A field is missing if it is empty, `NA`, `N/A`,
/// `null`, `NULL`, `None` or `#N/A`, or `nan` in any case. `true`, `True` and `TRUE` are 1;
/// `false`, `False` and `FALSE` are 0. Any other number is decimal, with an optional sign, point
/// and exponent, and is rounded to the nearest double.
///
/// ```
/// use nysketch_tables::read_number;
///
/// assert_eq!([" 1.5", "-1e3", "True"].map(|text| read_number(text.as_bytes())), [1.5, -1e3, 1.0]);
/// assert!(read_number(b"NA").is_nan());
/// assert!(["yes", "1,5", "0x10", "1e999", "inf"].iter().all(|t| read_number(t.as_bytes()).is_infinite()));
/// ```
pub fn read_number(field: &[u8]) -> f64 {
    number(field).or_else(|| truth(field)).unwrap_or(f64::INFINITY)
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Time {
    /// Seconds since the start of 1970; NaN if missing.
    pub seconds: f64,
    /// Whether the time has a zone; `None` if missing.
    pub zoned: Option<bool>,
}

/// Parses a point in time as in ISO 8601: a day, or a day and a time with or without seconds, a
/// fraction of up to nine digits and an offset. Returns `None` for other text and for invalid days.
pub fn time(field: &[u8]) -> Option<Time> {
    let text = trimmed(field)?;
    if is_missing(text) {
        return Some(Time { seconds: f64::NAN, zoned: None });
    }
    let mut rest = text.as_bytes();
    let year = digits(&mut rest, 4)?;
    expect(&mut rest, b"-")?;
    let month = digits(&mut rest, 2)?;
    expect(&mut rest, b"-")?;
    let day = digits(&mut rest, 2)?;
    let days = days_from_1970(year, month, day)?;
    if rest.is_empty() {
        return Some(Time { seconds: (days * DAY) as f64, zoned: Some(false) });
    }
    expect(&mut rest, b"T ")?;
    let (hour, minute) = (digits(&mut rest, 2)?, {
        expect(&mut rest, b":")?;
        digits(&mut rest, 2)?
    });
    let mut second = 0;
    let mut nanoseconds = 0;
    if rest.first() == Some(&b':') {
        rest = &rest[1..];
        second = digits(&mut rest, 2)?;
        if matches!(rest.first(), Some(b'.' | b',')) {
            rest = &rest[1..];
            let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            if !(1..=9).contains(&count) {
                return None;
            }
            nanoseconds = digits(&mut rest, count)? * 10i64.pow(9 - count as u32);
        }
    }
    // A leap second equals the first second of the next minute, as in Unix time.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let offset = offset(rest)?;
    let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset.unwrap_or(0);
    let seconds = to_seconds(i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds));
    Some(Time { seconds, zoned: Some(offset.is_some()) })
}

/// Number of seconds in a day.
pub const DAY: i64 = 86_400;

/// Parses exactly `count` digits.
fn digits(rest: &mut &[u8], count: usize) -> Option<i64> {
    let (digits, after) = rest.split_at_checked(count)?;
    *rest = after;
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })
}

/// Consumes one byte, which must be one of `bytes`.
fn expect(rest: &mut &[u8], bytes: &[u8]) -> Option<()> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    bytes.contains(first).then_some(())
}

/// Parses the end of a time: empty, `Z`, or an offset in hours and minutes, which is returned in
/// seconds.
#[allow(clippy::option_option, reason = "no offset is not the same as no time")]
fn offset(mut rest: &[u8]) -> Option<Option<i64>> {
    let sign = match rest.split_first() {
        None => return Some(None),
        Some((b'Z' | b'z', [])) => return Some(Some(0)),
        Some((b'+', _)) => 1,
        Some((b'-', _)) => -1,
        Some(_) => return None,
    };
    rest = &rest[1..];
    let hours = digits(&mut rest, 2)?;
    if rest.first() == Some(&b':') {
        rest = &rest[1..];
    }
    let minutes = if rest.is_empty() { 0 } else { digits(&mut rest, 2)? };
    (rest.is_empty() && hours < 24 && minutes < 60)
        .then_some(Some(sign * (hours * 3600 + minutes * 60)))
}

/// Returns the number of days from 1970-01-01 to a Gregorian date; `None` if the date is invalid.
fn days_from_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Count years from March, so that the leap day is the last day.
    let years = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    let leaps = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    Some(365 * years + leaps + (153 * month + 2) / 5 + day - 1 - 719_468)
}

/// Converts nanoseconds to seconds with a single rounding.
pub fn to_seconds(nanoseconds: i128) -> f64 {
    const SECOND: u128 = 1_000_000_000;
    let whole = nanoseconds.unsigned_abs();
    // The quotient has at least 55 bits. Its last bit is set if there is a remainder.
    let shift = 86u32.saturating_sub(128 - whole.leading_zeros());
    let scaled = whole << shift;
    let quotient = (scaled / SECOND) | u128::from(!scaled.is_multiple_of(SECOND));
    let seconds = quotient as f64 * 0.5f64.powi(shift as i32);
    if nanoseconds < 0 { -seconds } else { seconds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Days, NaiveDate};
    use proptest::prelude::*;

    #[test]
    fn missing_values_are_spelled_in_many_ways() {
        for text in ["", " ", "NA", " N/A ", "NaN", "nan", "null", "NULL", "None", "#N/A"] {
            assert!(number(text.as_bytes()).is_some_and(f64::is_nan), "{text}");
            assert!(time(text.as_bytes()).is_some_and(|t| t.zoned.is_none()), "{text}");
        }
        assert_eq!(number(b" 1.5 "), Some(1.5));
        assert_eq!(number(b"none"), None);
    }

    #[test]
    fn times_are_iso_8601() {
        let seconds =
            |text: &str| time(text.as_bytes()).map(|t| (t.seconds, t.zoned == Some(true)));
        assert_eq!(seconds("1970-01-01"), Some((0.0, false)));
        assert_eq!(seconds("2013-01-01"), Some((1_356_998_400.0, false)));
        for text in ["2013-01-01T05:00:00", "2013-01-01 05:00", "2013-01-01T05:00:00.000"] {
            assert_eq!(seconds(text), Some((1_357_016_400.0, false)), "{text}");
        }
        for text in [
            "2013-01-01T05:00:00Z",
            "2013-01-01 06:30:00+01:30",
            "2013-01-01T00:00-0500",
            "2013-01-01T06:00:00.0+01",
        ] {
            assert_eq!(seconds(text), Some((1_357_016_400.0, true)), "{text}");
        }
        assert_eq!(seconds("1969-12-31T23:59:59.5"), Some((-0.5, false)));
        for text in [
            "2013-02-29",
            "2013-13-01",
            "2013-00-01",
            "2013-01-00",
            "2013-1-1",
            "2013",
            "x",
            "2013-01-01T",
            "2013-01-01T24:00:00",
            "2013-01-01T05:60",
            "2013-01-01T05:00:00.",
            "2013-01-01T05:00:00.1234567890",
            "2013-01-01T05:00:00+24:00",
            "2013-01-01T05:00:00 UTC",
            "2013-01-01Z",
            "+013-01-01",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn days_are_those_of_the_calendar(days in 0u64..3_652_059) {
            let day = NaiveDate::from_ymd_opt(1, 1, 1).unwrap() + Days::new(days);
            let expected = day.signed_duration_since(NaiveDate::from_ymd_opt(1970, 1, 1).unwrap());
            let found = time(day.to_string().as_bytes()).unwrap().seconds;
            prop_assert_eq!(found, expected.num_seconds() as f64);
        }

        /// Parsing the digits of a decimal number also rounds once.
        #[test]
        fn seconds_are_rounded_once(nanoseconds: i64, zeros in 0u32..10) {
            let unit = 10i64.pow(zeros);
            let nanoseconds = nanoseconds / unit * unit;
            let (sign, whole) = (if nanoseconds < 0 { "-" } else { "" }, nanoseconds.unsigned_abs());
            let text = format!("{sign}{}.{:09}", whole / 1_000_000_000, whole % 1_000_000_000);
            prop_assert_eq!(to_seconds(i128::from(nanoseconds)), text.parse::<f64>().unwrap());
        }
    }
}
