//! Arrow values as text, for CSV files and for keys.

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::as_datetime;
use arrow_array::timezone::Tz;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{ArrowError, DataType, IntervalUnit, TimeUnit};
use chrono::{DateTime, FixedOffset, Offset, SecondsFormat, TimeZone, Utc};
use std::fmt::Write;

/// A function that appends the text of the value with a given index, or an empty text if it is
/// missing.
pub(crate) type WriteText<'a> = Box<dyn Fn(usize, &mut String) -> Result<(), ArrowError> + 'a>;

/// Whether values of this type can be written as text.
pub(crate) fn has_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => has_text(values),
        DataType::RunEndEncoded(_, values) => has_text(values.data_type()),
        other => !other.is_nested(),
    }
}

/// Returns a writer of each value as text: numbers with the fewest digits that parse to the same
/// number, dates and times as in ISO 8601, binary values in hexadecimal digits.
pub(crate) fn text_of(array: &dyn Array) -> Result<WriteText<'_>, ArrowError> {
    let write = text_of_valid(array)?;
    Ok(Box::new(move |i, out| if array.is_null(i) { Ok(()) } else { write(i, out) }))
}

fn text_of_valid(array: &dyn Array) -> Result<WriteText<'_>, ArrowError> {
    macro_rules! plain {
        ($type:ty) => {
            shown(array.as_primitive::<$type>(), |x, out| write!(out, "{x}"))
        };
    }
    macro_rules! temporal {
        ($type:ty, $value:ident) => {{
            let array = array.as_primitive::<$type>();
            checked(array, |array, i| Some(format!("{:?}", array.$value(i)?)))
        }};
    }
    macro_rules! decimal {
        ($type:ty) => {{
            let array = array.as_primitive::<$type>();
            checked(array, |array, i| Some(array.value_as_string(i)))
        }};
    }
    macro_rules! duration {
        ($type:ty) => {{
            let array = array.as_primitive::<$type>();
            checked(array, |array, i| Some(array.value_as_duration(i)?.to_string()))
        }};
    }
    macro_rules! bytes {
        ($array:expr) => {{
            let array = $array;
            Box::new(move |i, out| {
                let mut digits = array.value(i).iter();
                digits.try_for_each(|byte| write!(out, "{byte:02x}")).map_err(unwritten)
            })
        }};
    }
    macro_rules! string {
        ($array:expr) => {{
            let array = $array;
            Box::new(move |i, out| {
                out.push_str(array.value(i));
                Ok(())
            })
        }};
    }
    macro_rules! runs {
        ($type:ty) => {{
            let runs = array.as_run::<$type>();
            let values = text_of(runs.values())?;
            Box::new(move |i, out| values(runs.get_physical_index(i), out))
        }};
    }
    Ok(match array.data_type() {
        DataType::Null => Box::new(|_, _| Ok(())),
        DataType::Boolean => {
            let array = array.as_boolean();
            Box::new(move |i, out| {
                out.push_str(if array.value(i) { "true" } else { "false" });
                Ok(())
            })
        }
        DataType::Int8 => plain!(Int8Type),
        DataType::Int16 => plain!(Int16Type),
        DataType::Int32 => plain!(Int32Type),
        DataType::Int64 => plain!(Int64Type),
        DataType::UInt8 => plain!(UInt8Type),
        DataType::UInt16 => plain!(UInt16Type),
        DataType::UInt32 => plain!(UInt32Type),
        DataType::UInt64 => plain!(UInt64Type),
        DataType::Float16 => plain!(Float16Type),
        DataType::Float32 => shown(array.as_primitive::<Float32Type>(), |x, out| {
            out.write_str(ryu::Buffer::new().format(x))
        }),
        DataType::Float64 => shown(array.as_primitive::<Float64Type>(), |x, out| {
            out.write_str(ryu::Buffer::new().format(x))
        }),
        DataType::Decimal32(..) => decimal!(Decimal32Type),
        DataType::Decimal64(..) => decimal!(Decimal64Type),
        DataType::Decimal128(..) => decimal!(Decimal128Type),
        DataType::Decimal256(..) => decimal!(Decimal256Type),
        DataType::Utf8 => string!(array.as_string::<i32>()),
        DataType::LargeUtf8 => string!(array.as_string::<i64>()),
        DataType::Utf8View => string!(array.as_string_view()),
        DataType::Binary => bytes!(array.as_binary::<i32>()),
        DataType::LargeBinary => bytes!(array.as_binary::<i64>()),
        DataType::BinaryView => bytes!(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => bytes!(array.as_fixed_size_binary()),
        DataType::Date32 => temporal!(Date32Type, value_as_date),
        DataType::Date64 => temporal!(Date64Type, value_as_datetime),
        DataType::Time32(TimeUnit::Second) => time::<Time32SecondType>(array, 1),
        DataType::Time32(_) => time::<Time32MillisecondType>(array, 1000),
        DataType::Time64(TimeUnit::Microsecond) => time::<Time64MicrosecondType>(array, 1_000_000),
        DataType::Time64(_) => time::<Time64NanosecondType>(array, 1_000_000_000),
        DataType::Timestamp(unit, zone) => {
            let zone = zone.as_deref().map(offset);
            match unit {
                TimeUnit::Second => timestamp::<TimestampSecondType>(array, zone),
                TimeUnit::Millisecond => timestamp::<TimestampMillisecondType>(array, zone),
                TimeUnit::Microsecond => timestamp::<TimestampMicrosecondType>(array, zone),
                TimeUnit::Nanosecond => timestamp::<TimestampNanosecondType>(array, zone),
            }
        }
        DataType::Duration(TimeUnit::Second) => duration!(DurationSecondType),
        DataType::Duration(TimeUnit::Millisecond) => duration!(DurationMillisecondType),
        DataType::Duration(TimeUnit::Microsecond) => duration!(DurationMicrosecondType),
        DataType::Duration(TimeUnit::Nanosecond) => duration!(DurationNanosecondType),
        DataType::Interval(IntervalUnit::YearMonth) => {
            shown(array.as_primitive::<IntervalYearMonthType>(), |x, out| {
                write!(out, "{} years {} mons", x.div_euclid(12), x.rem_euclid(12))
            })
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            shown(array.as_primitive::<IntervalDayTimeType>(), |x, out| {
                out.write_str(&interval(0, x.days, i64::from(x.milliseconds), 3))
            })
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            shown(array.as_primitive::<IntervalMonthDayNanoType>(), |x, out| {
                out.write_str(&interval(x.months, x.days, x.nanoseconds, 9))
            })
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = text_of(dictionary.values().as_ref())?;
            // Keys of missing values are ignored, and the dictionary may be empty.
            let keys = if dictionary.values().is_empty() {
                vec![0; array.len()]
            } else {
                dictionary.normalized_keys()
            };
            Box::new(move |i, out| values(keys[i], out))
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs!(Int16Type),
            DataType::Int32 => runs!(Int32Type),
            _ => runs!(Int64Type),
        },
        other => return Err(ArrowError::CastError(format!("{other} cannot be written as text"))),
    })
}

fn shown<'a, T: ArrowPrimitiveType>(
    array: &'a PrimitiveArray<T>,
    write: impl Fn(T::Native, &mut String) -> std::fmt::Result + 'a,
) -> WriteText<'a> {
    Box::new(move |i, out| write(array.value(i), out).map_err(unwritten))
}

/// Converts the error of writing to a string, which never occurs.
fn unwritten(error: std::fmt::Error) -> ArrowError {
    ArrowError::CastError(error.to_string())
}

/// Returns a writer for values that may be out of range, such as a day of the year 300,000.
fn checked<'a, T: ArrowPrimitiveType>(
    array: &'a PrimitiveArray<T>,
    text: impl Fn(&'a PrimitiveArray<T>, usize) -> Option<String> + 'a,
) -> WriteText<'a> {
    Box::new(move |i, out| {
        let text = text(array, i).ok_or_else(|| {
            let (value, kind) = (array.value(i), array.data_type());
            ArrowError::CastError(format!("{value:?} is out of range for {kind}"))
        })?;
        out.push_str(&text);
        Ok(())
    })
}

/// Returns a writer for times of day. The range is checked first, because the conversion to a time
/// truncates to 32 bits.
fn time<T: ArrowTemporalType>(array: &dyn Array, per_second: i64) -> WriteText<'_>
where
    i64: From<T::Native>,
{
    checked(array.as_primitive::<T>(), move |array, i| {
        let is_within_day = (0..86_400 * per_second).contains(&i64::from(array.value(i)));
        let time = is_within_day.then(|| array.value_as_time(i)).flatten()?;
        Some(format!("{time:?}"))
    })
}

/// Returns the offset of a zone that is given as an offset, such as +01:00, and UTC for a named
/// zone. Both denote the same instant, and the text does not depend on the version of a time-zone
/// database.
fn offset(zone: &str) -> FixedOffset {
    zone.parse().map_or(Utc.fix(), |zone: Tz| {
        zone.offset_from_utc_datetime(&DateTime::UNIX_EPOCH.naive_utc()).fix()
    })
}

fn timestamp<T: ArrowTimestampType>(array: &dyn Array, zone: Option<FixedOffset>) -> WriteText<'_> {
    checked(array.as_primitive::<T>(), move |array, i| {
        let naive = as_datetime::<T>(array.value(i))?;
        Some(match zone {
            None => format!("{naive:?}"),
            Some(zone) => {
                let there = Utc.from_utc_datetime(&naive).with_timezone(&zone);
                there.to_rfc3339_opts(SecondsFormat::AutoSi, true)
            }
        })
    })
}

/// Formats an interval such as "2 mons 3 days 1 hours 0.500 secs" without the parts that are zero.
/// A second is 10^`digits` units.
fn interval(months: i32, days: i32, units: i64, digits: usize) -> String {
    let per_second = 10i64.pow(digits as u32);
    let (seconds, fraction) = (units / per_second, (units % per_second).abs());
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let mut parts = Vec::new();
    let whole = [(i64::from(months), "mons"), (i64::from(days), "days"), (hours, "hours")];
    for (n, unit) in whole.into_iter().chain([(minutes, "mins")]).filter(|(n, _)| *n != 0) {
        parts.push(format!("{n} {unit}"));
    }
    let rest = seconds % 60;
    if rest != 0 || fraction != 0 {
        let sign = if units < 0 { "-" } else { "" };
        parts.push(format!("{sign}{}.{fraction:0digits$} secs", rest.abs()));
    }
    if parts.is_empty() { "0 secs".into() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::*;
    use arrow_schema::Field;
    use std::sync::Arc;

    fn texts(array: &dyn Array) -> Vec<String> {
        let write = text_of(array).unwrap();
        let text = |i| {
            let mut text = String::new();
            write(i, &mut text).unwrap();
            text
        };
        (0..array.len()).map(text).collect()
    }

    #[test]
    fn numbers_read_back_the_same() {
        let doubles = [0.0, -0.0, 1.0, 0.1, 1e15, 1e16, 1e-5, 1e-6, 1e300, f64::NAN];
        let expected = [
            "0.0",
            "-0.0",
            "1.0",
            "0.1",
            "1000000000000000.0",
            "1e16",
            "0.00001",
            "1e-6",
            "1e300",
            "NaN",
        ];
        assert_eq!(texts(&Float64Array::from(doubles.to_vec())), expected);
        assert_eq!(texts(&Float32Array::from(vec![0.1, f32::INFINITY])), ["0.1", "inf"]);
        assert_eq!(texts(&Int32Array::from(vec![Some(-5), None])), ["-5", ""]);
        assert_eq!(texts(&BooleanArray::from(vec![true, false])), ["true", "false"]);
        let decimals = Decimal128Array::from(vec![Some(1234), Some(-5), None]);
        let decimals = decimals.with_precision_and_scale(10, 2).unwrap();
        assert_eq!(texts(&decimals), ["12.34", "-0.05", ""]);
        let half = Float16Array::from_iter_values([half::f16::from_f32(1.5)]);
        assert_eq!(texts(&half), ["1.5"]);
    }

    #[test]
    fn dates_and_times_are_iso_8601() {
        assert_eq!(texts(&Date32Array::from(vec![19_723])), ["2024-01-01"]);
        assert_eq!(texts(&Date64Array::from(vec![86_400_000])), ["1970-01-02T00:00:00"]);
        assert_eq!(texts(&Time64MicrosecondArray::from(vec![1_500_000])), ["00:00:01.500"]);
        let stamps = TimestampMillisecondArray::from(vec![Some(3_600_500), None]);
        assert_eq!(texts(&stamps), ["1970-01-01T01:00:00.500", ""]);
        let east = stamps.clone().with_timezone("+01:00");
        assert_eq!(texts(&east), ["1970-01-01T02:00:00.500+01:00", ""]);
        let vienna = stamps.clone().with_timezone("Europe/Vienna");
        assert_eq!(texts(&vienna), ["1970-01-01T01:00:00.500Z", ""]);
        assert_eq!(texts(&stamps.with_timezone("UTC"))[0], "1970-01-01T01:00:00.500Z");
        assert_eq!(texts(&DurationMillisecondArray::from(vec![1500])), ["PT1.5S"]);
        let day = IntervalDayTimeType::make_value(2, -61_500);
        assert_eq!(texts(&IntervalDayTimeArray::from(vec![day])), ["2 days -1 mins -1.500 secs"]);
        let none = IntervalMonthDayNanoType::make_value(0, 0, 0);
        assert_eq!(texts(&IntervalMonthDayNanoArray::from(vec![none])), ["0 secs"]);
        assert_eq!(texts(&IntervalYearMonthArray::from(vec![14])), ["1 years 2 mons"]);
    }

    /// A value beyond the range of dates and times is an error: it never wraps around to another
    /// value.
    #[test]
    fn dates_and_times_out_of_range_are_refused() {
        let refused = |array: &dyn Array| {
            let write = text_of(array).unwrap();
            let all = (0..array.len()).all(|i| write(i, &mut String::new()).is_err());
            assert!(all, "{:?}", array.data_type());
        };
        let ends = vec![i64::MIN, i64::MAX, i64::MAX / 2];
        refused(&Date32Array::from(vec![i32::MIN, i32::MAX]));
        refused(&Date64Array::from(ends.clone()));
        refused(&TimestampSecondArray::from(ends.clone()));
        refused(&TimestampSecondArray::from(ends.clone()).with_timezone("+01:00"));
        refused(&TimestampMillisecondArray::from(ends.clone()));
        refused(&TimestampMillisecondArray::from(ends.clone()).with_timezone("UTC"));
        refused(&Time32SecondArray::from(vec![i32::MIN, -1, 86_400, i32::MAX]));
        refused(&Time32MillisecondArray::from(vec![i32::MIN, -1, 86_400_000, i32::MAX]));
        // In 32-bit seconds, the last value would be midnight.
        let micros = [-1, 86_400_000_000, i64::MAX, (1 << 32) * 1_000_000];
        refused(&Time64MicrosecondArray::from(micros.to_vec()));
        let nanos = [-1, 86_400_000_000_000, i64::MAX, (1 << 32) * 1_000_000_000];
        refused(&Time64NanosecondArray::from(nanos.to_vec()));
        // Years up to 262,142 can be written as text.
        refused(&TimestampMicrosecondArray::from(vec![i64::MIN, i64::MAX]));
        let nanos = TimestampNanosecondArray::from(vec![i64::MIN, i64::MAX]);
        let expected = ["1677-09-21T00:12:43.145224192", "2262-04-11T23:47:16.854775807"];
        assert_eq!(texts(&nanos), expected);
    }

    #[test]
    fn text_in_every_shape() {
        let strings = [Some("a,b"), None, Some("")];
        let expected = ["a,b", "", ""];
        assert_eq!(texts(&StringArray::from(strings.to_vec())), expected);
        assert_eq!(texts(&LargeStringArray::from(strings.to_vec())), expected);
        assert_eq!(texts(&StringViewArray::from(strings.to_vec())), expected);
        assert_eq!(texts(&BinaryArray::from(vec![&b"\x01\xff"[..]])), ["01ff"]);
        let keys = Int8Array::from(vec![Some(1), None, Some(0), Some(2)]);
        let words = Arc::new(StringArray::from(vec![Some("x"), Some("y"), None]));
        assert_eq!(texts(&DictionaryArray::new(keys, words)), ["y", "", "x", ""]);
        let none = DictionaryArray::new(Int8Array::new_null(2), Arc::new(StringArray::new_null(0)));
        assert_eq!(texts(&none), ["", ""]);
        let ends = Int32Array::from(vec![2, 3]);
        let runs = RunArray::try_new(&ends, &StringArray::from(vec!["p", "q"])).unwrap();
        assert_eq!(texts(&runs), ["p", "p", "q"]);
        assert_eq!(texts(&NullArray::new(1)), [""]);
        let list = DataType::List(Arc::new(Field::new("item", DataType::Int8, true)));
        assert!(!has_text(&list) && has_text(&DataType::Date32));
        assert!(text_of(&arrow_array::new_empty_array(&list)).is_err());
    }
}
