//! Conversion of Arrow arrays to numbers, times, categories and text, for callers with Arrow data
//! in memory.

use crate::parse::{DAY, to_seconds};
use crate::text::{WriteText, text_of};
use crate::texts::{Texts, encode};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{ArrowError, DataType, Schema, TimeUnit};
use nysketch_core::rows::{MISSING, Vocabulary};
use std::collections::HashMap;
use std::sync::Arc;

/// Whether a column of this type contains numbers. True and false are 1 and 0.
///
/// ```
/// use arrow_schema::DataType;
/// use nysketch_tables::arrow::is_numeric;
///
/// assert!(is_numeric(&DataType::Decimal128(10, 2)) && is_numeric(&DataType::Boolean));
/// assert!(!is_numeric(&DataType::Date32) && !is_numeric(&DataType::Utf8));
/// ```
pub fn is_numeric(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_numeric(values),
        DataType::Boolean | DataType::Decimal32(..) | DataType::Decimal64(..) => true,
        DataType::Decimal128(..) | DataType::Decimal256(..) => true,
        other => other.is_numeric(),
    }
}

/// Whether a column of this type contains text, plain or as a dictionary.
///
/// ```
/// use arrow_schema::DataType;
/// use nysketch_tables::arrow::is_text;
///
/// assert!(is_text(&DataType::Utf8View));
/// assert!(is_text(&DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))));
/// ```
pub fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_text(values),
        DataType::RunEndEncoded(_, values) => is_text(values.data_type()),
        other => matches!(other, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    }
}

/// Whether a column of this type contains points in time: days or timestamps.
pub fn is_time(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_time(values),
        other => matches!(other, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)),
    }
}

/// Returns the type of the numbers in a column of vectors, and the length of the vectors if the
/// type declares it.
///
/// ```
/// use arrow_schema::DataType;
/// use nysketch_tables::arrow::vector_of;
///
/// let embedding = DataType::new_fixed_size_list(DataType::Float32, 384, true);
/// assert_eq!(vector_of(&embedding), Some((&DataType::Float32, Some(384))));
/// assert_eq!(vector_of(&DataType::Float32), None);
/// ```
pub fn vector_of(data_type: &DataType) -> Option<(&DataType, Option<usize>)> {
    let (values, length) = match data_type {
        DataType::List(field) | DataType::LargeList(field) => (field, None),
        DataType::FixedSizeList(field, n) => (field, Some(usize::try_from(*n).ok()?)),
        _ => return None,
    };
    let plain = values.data_type().is_integer() || values.data_type().is_floating();
    plain.then_some((values.data_type(), length))
}

/// Returns the usual name of a type: `int64`, `text`, `timestamp[us, UTC]`, `float32[384]`.
pub fn type_name(data_type: &DataType) -> String {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    };
    match data_type {
        t if t.is_integer() || t.is_floating() => format!("{t:?}").to_lowercase(),
        DataType::Boolean => "bool".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".into(),
        DataType::FixedSizeBinary(n) => format!("binary[{n}]"),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Time32(u) | DataType::Time64(u) => format!("time[{}]", unit(u)),
        DataType::Duration(u) => format!("duration[{}]", unit(u)),
        DataType::Timestamp(u, None) => format!("timestamp[{}]", unit(u)),
        DataType::Timestamp(u, Some(zone)) => format!("timestamp[{}, {zone}]", unit(u)),
        DataType::Decimal32(digits, scale) | DataType::Decimal64(digits, scale) => {
            format!("decimal({digits}, {scale})")
        }
        DataType::Decimal128(digits, scale) | DataType::Decimal256(digits, scale) => {
            format!("decimal({digits}, {scale})")
        }
        DataType::Dictionary(_, values) => format!("dictionary of {}", type_name(values)),
        DataType::List(field) | DataType::LargeList(field) => {
            format!("list of {}", type_name(field.data_type()))
        }
        DataType::FixedSizeList(field, n) => format!("{}[{n}]", type_name(field.data_type())),
        DataType::Struct(_) => "struct".into(),
        DataType::ListView(field) | DataType::LargeListView(field) => {
            format!("list view of {}", type_name(field.data_type()))
        }
        DataType::Map(..) => "map".into(),
        other => other.to_string(),
    }
}

/// Returns the columns that contain the index of a pandas table, according to its metadata. They
/// are names of rows, not features.
///
/// ```
/// use arrow_schema::Schema;
/// use nysketch_tables::arrow::pandas_index;
///
/// let noted = r#"{"index_columns": ["__index_level_0__"], "columns": []}"#;
/// let schema = Schema::empty().with_metadata([("pandas".to_string(), noted.to_string())]);
/// assert_eq!(pandas_index(&schema), ["__index_level_0__"]);
/// ```
pub fn pandas_index(schema: &Schema) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Pandas {
        /// Names of columns. A range is described by an object and is not stored as a column.
        index_columns: Vec<serde_json::Value>,
    }
    let noted = schema.metadata().get("pandas");
    let read = noted.and_then(|text| serde_json::from_str::<Pandas>(text).ok());
    let columns = read.map_or_else(Vec::new, |pandas| pandas.index_columns);
    columns.iter().filter_map(|c| c.as_str().map(String::from)).collect()
}

/// Writes an array to every `stride`-th number, starting at `offset`; null becomes NaN.
///
/// ```
/// use arrow_array::{ArrayRef, Int8Array};
/// use nysketch_tables::arrow::numbers;
///
/// let array: ArrayRef = std::sync::Arc::new(Int8Array::from(vec![Some(7), None]));
/// let mut rows = [0.0; 4];
/// numbers(&array, &mut rows, 1, 2)?;
/// assert!(rows[1] == 7.0 && rows[3].is_nan() && rows[0] == 0.0);
/// # Ok::<(), arrow_schema::ArrowError>(())
/// ```
pub fn numbers(
    array: &ArrayRef,
    out: &mut [f64],
    offset: usize,
    stride: usize,
) -> Result<(), ArrowError> {
    if let DataType::Dictionary(_, values) = array.data_type()
        && is_numeric(values)
    {
        return through_dictionary(array, numbers, out, offset, stride);
    }
    let out = out.iter_mut().skip(offset).step_by(stride);
    match array.data_type() {
        DataType::Int8 => fill(array.as_primitive::<Int8Type>(), out, f64::from),
        DataType::Int16 => fill(array.as_primitive::<Int16Type>(), out, f64::from),
        DataType::Int32 => fill(array.as_primitive::<Int32Type>(), out, f64::from),
        DataType::Int64 => fill(array.as_primitive::<Int64Type>(), out, |x| x as f64),
        DataType::UInt8 => fill(array.as_primitive::<UInt8Type>(), out, f64::from),
        DataType::UInt16 => fill(array.as_primitive::<UInt16Type>(), out, f64::from),
        DataType::UInt32 => fill(array.as_primitive::<UInt32Type>(), out, f64::from),
        DataType::UInt64 => fill(array.as_primitive::<UInt64Type>(), out, |x| x as f64),
        DataType::Float16 => fill(array.as_primitive::<Float16Type>(), out, f64::from),
        DataType::Float32 => fill(array.as_primitive::<Float32Type>(), out, f64::from),
        DataType::Float64 => fill(array.as_primitive::<Float64Type>(), out, |x| x),
        DataType::Boolean => {
            for (x, value) in out.zip(array.as_boolean().iter()) {
                *x = value.map_or(f64::NAN, f64::from);
            }
        }
        // Convert decimals through their digits, so that the result equals that of a text file.
        t if is_numeric(t) => {
            let (write, mut text) = (text_of(array)?, String::new());
            for (i, x) in out.enumerate().take(array.len()) {
                text.clear();
                write(i, &mut text)?;
                *x = text.parse().unwrap_or(f64::NAN);
            }
        }
        other => {
            return Err(no_numbers(other));
        }
    }
    Ok(())
}

/// Writes the points in time of an array to every `stride`-th number, starting at `offset`, as
/// seconds since the start of 1970, rounded once; null becomes NaN.
///
/// ```
/// use arrow_array::{ArrayRef, Date32Array, TimestampMillisecondArray};
/// use nysketch_tables::arrow::times;
/// use std::sync::Arc;
///
/// let mut seconds = [0.0; 2];
/// let day: ArrayRef = Arc::new(Date32Array::from(vec![1]));
/// times(&day, &mut seconds, 0, 2)?;
/// let instant: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1500]));
/// times(&instant, &mut seconds, 1, 2)?;
/// assert_eq!(seconds, [86_400.0, 1.5]);
/// # Ok::<(), arrow_schema::ArrowError>(())
/// ```
pub fn times(
    array: &ArrayRef,
    out: &mut [f64],
    offset: usize,
    stride: usize,
) -> Result<(), ArrowError> {
    if let DataType::Dictionary(..) = array.data_type() {
        return through_dictionary(array, times, out, offset, stride);
    }
    let out = out.iter_mut().skip(offset).step_by(stride);
    let scaled = |x: i64, unit: i128| to_seconds(i128::from(x) * unit);
    match array.data_type() {
        DataType::Date32 => {
            fill(array.as_primitive::<Date32Type>(), out, |days| (i64::from(days) * DAY) as f64);
        }
        DataType::Date64 => {
            fill(array.as_primitive::<Date64Type>(), out, |x| scaled(x, 1_000_000));
        }
        DataType::Timestamp(TimeUnit::Second, _) => {
            fill(array.as_primitive::<TimestampSecondType>(), out, |x| x as f64);
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            fill(array.as_primitive::<TimestampMillisecondType>(), out, |x| scaled(x, 1_000_000));
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            fill(array.as_primitive::<TimestampMicrosecondType>(), out, |x| scaled(x, 1000));
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            fill(array.as_primitive::<TimestampNanosecondType>(), out, |x| scaled(x, 1));
        }
        other => {
            let how = format!("{} does not hold points in time", type_name(other));
            return Err(ArrowError::CastError(how));
        }
    }
    Ok(())
}

/// Returns the coordinates of the vectors of an array, one vector after another, or the number of
/// the first row with another length, and that length. Coordinates of a missing vector are NaN.
///
/// ```
/// use arrow_array::types::Float32Type;
/// use arrow_array::{ArrayRef, ListArray};
/// use nysketch_tables::arrow::vectors;
/// use std::sync::Arc;
///
/// let rows = vec![Some(vec![Some(1.0), Some(2.0)]), None, Some(vec![Some(3.0)])];
/// let lists = ListArray::from_iter_primitive::<Float32Type, _, _>(rows);
/// let first: ArrayRef = Arc::new(lists.slice(0, 2));
/// let numbers = vectors(&first, 2)?.unwrap();
/// assert!(numbers[..2] == [1.0, 2.0] && numbers[2..].iter().all(|x| x.is_nan()));
/// let all: ArrayRef = Arc::new(lists);
/// assert_eq!(vectors(&all, 2)?, Err((2, 1)));
/// # Ok::<(), arrow_schema::ArrowError>(())
/// ```
#[allow(clippy::type_complexity, reason = "a row of another length is no failure of Arrow")]
pub fn vectors(
    array: &ArrayRef,
    length: usize,
) -> Result<Result<Vec<f64>, (usize, usize)>, ArrowError> {
    let rows = array.len();
    let (values, starts) = values_of(array)?;
    let odd = |i: &usize| array.is_valid(*i) && starts[i + 1] - starts[*i] != length;
    if let Some(row) = (0..rows).find(odd) {
        return Ok(Err((row, starts[row + 1] - starts[row])));
    }
    let mut all = vec![0.0; values.len()];
    numbers(&values, &mut all, 0, 1)?;
    if array.null_count() == 0 {
        return Ok(Ok(all));
    }
    let mut complete = Vec::with_capacity(rows * length);
    for i in 0..rows {
        if array.is_valid(i) {
            complete.extend_from_slice(&all[starts[i]..][..length])
        } else {
            complete.resize(complete.len() + length, f64::NAN)
        }
    }
    Ok(Ok(complete))
}

/// Returns the first coordinates of each vector of an array, one vector after another. They are
/// infinite if a vector is too short, and NaN if it is missing.
pub(crate) fn first_coordinates(array: &ArrayRef, length: usize) -> Result<Vec<f64>, ArrowError> {
    let (values, starts) = values_of(array)?;
    let mut all = vec![0.0; values.len()];
    numbers(&values, &mut all, 0, 1)?;
    let mut found = Vec::with_capacity(array.len() * length);
    for i in 0..array.len() {
        let vector = &all[starts[i]..starts[i + 1]];
        match vector.get(..length) {
            _ if array.is_null(i) => found.resize(found.len() + length, f64::NAN),
            Some(first) => found.extend_from_slice(first),
            None => found.resize(found.len() + length, f64::INFINITY),
        }
    }
    Ok(found)
}

/// Returns the values of all vectors of an array, the start of each row among them, and the end of
/// the last row.
fn values_of(array: &ArrayRef) -> Result<(ArrayRef, Vec<usize>), ArrowError> {
    let (values, starts): (&ArrayRef, Vec<usize>) = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (list.values(), list.value_offsets().iter().map(|x| *x as usize).collect())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (list.values(), list.value_offsets().iter().map(|x| *x as usize).collect())
        }
        DataType::FixedSizeList(_, n) => {
            let (list, n) = (array.as_fixed_size_list(), *n as usize);
            (list.values(), (0..=array.len()).map(|i| i * n).collect())
        }
        other => return Err(no_numbers(other)),
    };
    let (first, last) = (starts.first().copied(), starts.last().copied());
    let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
    let starts = starts.into_iter().map(|start| start - first).collect();
    Ok((values.slice(first, last - first), starts))
}

/// Converts the values of a dictionary and looks up each row by its key.
fn through_dictionary(
    array: &ArrayRef,
    read: impl Fn(&ArrayRef, &mut [f64], usize, usize) -> Result<(), ArrowError>,
    out: &mut [f64],
    offset: usize,
    stride: usize,
) -> Result<(), ArrowError> {
    let dictionary = array.as_any_dictionary();
    let mut values = vec![0.0; dictionary.values().len()];
    read(dictionary.values(), &mut values, 0, 1)?;
    // Keys of missing values are ignored, and the dictionary may be empty.
    let keys = if values.is_empty() { Vec::new() } else { dictionary.normalized_keys() };
    let out = out.iter_mut().skip(offset).step_by(stride);
    for (i, x) in out.enumerate().take(array.len()) {
        *x = if array.is_null(i) { f64::NAN } else { values[keys[i]] };
    }
    Ok(())
}

/// Writes the codes of the texts of an array to every `stride`-th number, starting at `offset`;
/// null and empty text are [`MISSING`]. The texts are those of [`texts`]. Each value of a
/// dictionary is looked up once.
///
/// ```
/// use arrow_array::{ArrayRef, DictionaryArray, types::Int8Type};
/// use nysketch_core::rows::{MISSING, Vocabulary};
/// use nysketch_tables::arrow::codes;
///
/// let array: DictionaryArray<Int8Type> = [Some("b"), None, Some("a"), Some("b")].into_iter().collect();
/// let array: ArrayRef = std::sync::Arc::new(array);
/// let (vocabulary, mut rows) = (Vocabulary::default(), [0; 4]);
/// codes(&array, &vocabulary, &mut rows, 0, 1)?;
/// assert_eq!(rows, [0, MISSING, 1, 0]);
/// # Ok::<(), arrow_schema::ArrowError>(())
/// ```
pub fn codes(
    array: &ArrayRef,
    vocabulary: &Vocabulary,
    out: &mut [u32],
    offset: usize,
    stride: usize,
) -> Result<(), ArrowError> {
    macro_rules! encode_all {
        ($texts:expr) => {
            encode(
                vocabulary,
                $texts.iter().map(|t| t.filter(|t| !t.is_empty())),
                out,
                offset,
                stride,
            )
        };
    }
    match array.data_type() {
        DataType::Utf8 => encode_all!(array.as_string::<i32>()),
        DataType::LargeUtf8 => encode_all!(array.as_string::<i64>()),
        DataType::Utf8View => encode_all!(array.as_string_view()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            // Look up only values that occur: a dictionary may also contain the values of other
            // rows.
            let keys = if dictionary.values().is_empty() {
                Vec::new()
            } else {
                dictionary.normalized_keys()
            };
            let mut used = vec![false; dictionary.values().len()];
            let valid = |i: &usize| array.is_valid(*i);
            (0..array.len()).filter(valid).for_each(|i| used[keys[i]] = true);
            let mut texts = Texts::default();
            let write = text_of(dictionary.values().as_ref())?;
            let fraction = has_fractions(array.data_type());
            for (key, used) in used.into_iter().enumerate() {
                texts.write(
                    |text| if used { write_key(&write, fraction, key, text) } else { Ok(()) },
                )?;
            }
            let mut values = vec![MISSING; dictionary.values().len()];
            encode(vocabulary, texts.iter(), &mut values, 0, 1);
            let out = out.iter_mut().skip(offset).step_by(stride);
            for (i, code) in out.enumerate().take(array.len()) {
                *code = if array.is_null(i) { MISSING } else { values[keys[i]] };
            }
        }
        other => {
            let (write, fraction) = (text_of(array)?, has_fractions(other));
            let mut texts = Texts::default();
            for i in 0..array.len() {
                texts.write(|text| write_key(&write, fraction, i, text))?;
            }
            encode(vocabulary, texts.iter(), out, offset, stride);
        }
    }
    Ok(())
}

/// Whether the values are floating-point numbers, whose text has a decimal point.
fn has_fractions(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => has_fractions(values),
        DataType::RunEndEncoded(_, values) => has_fractions(values.data_type()),
        other => other.is_floating(),
    }
}

/// Appends the text of a value; an integer has no decimal point, whatever its type.
fn write_key(
    write: &WriteText<'_>,
    fraction: bool,
    i: usize,
    text: &mut String,
) -> Result<(), ArrowError> {
    let start = text.len();
    write(i, text)?;
    if fraction && text[start..].ends_with(".0") {
        text.truncate(text.len() - 2);
    }
    Ok(())
}

fn no_numbers(data_type: &DataType) -> ArrowError {
    ArrowError::CastError(format!("{} does not hold numbers", type_name(data_type)))
}

fn fill<'a, T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    out: impl Iterator<Item = &'a mut f64>,
    number: impl Fn(T::Native) -> f64,
) {
    if array.null_count() == 0 {
        out.zip(array.values()).for_each(|(x, value)| *x = number(*value));
    } else {
        out.zip(array.iter()).for_each(|(x, value)| *x = value.map_or(f64::NAN, &number));
    }
}

/// Returns the text of every value; integers have no decimal point, whatever their type.
///
/// ```
/// use arrow_array::{ArrayRef, Float64Array};
/// use nysketch_tables::arrow::texts;
///
/// let array: ArrayRef = std::sync::Arc::new(Float64Array::from(vec![Some(2.0), None, Some(0.5)]));
/// assert_eq!(texts(&array)?, [Some("2".into()), None, Some("0.5".into())]);
/// # Ok::<(), arrow_schema::ArrowError>(())
/// ```
pub fn texts(array: &ArrayRef) -> Result<Vec<Option<Arc<str>>>, ArrowError> {
    texts_unless(array, |_, error| Err(error))
}

/// Converts values as [`texts`] does. `failed` receives the number and the error of each row whose
/// value cannot be written as text, such as a day out of range.
pub(crate) fn texts_unless(
    array: &ArrayRef,
    mut failed: impl FnMut(usize, ArrowError) -> Result<(), ArrowError>,
) -> Result<Vec<Option<Arc<str>>>, ArrowError> {
    let write = text_of(array)?;
    let fraction = has_fractions(array.data_type());
    let mut known: HashMap<String, Arc<str>> = HashMap::new();
    let mut texts = Vec::with_capacity(array.len());
    // A dictionary can also store nulls among its values.
    let nulls = array.logical_nulls();
    for i in 0..array.len() {
        if nulls.as_ref().is_some_and(|n| n.is_null(i)) {
            texts.push(None);
            continue;
        }
        let mut text = String::new();
        if let Err(error) = write_key(&write, fraction, i, &mut text) {
            failed(i, error)?;
            texts.push(None);
            continue;
        }
        let shared = known.entry(text).or_insert_with_key(|t| Arc::from(t.as_str()));
        texts.push(Some(shared.clone()));
    }
    Ok(texts)
}
