//! From Arrow arrays to numbers and text, for those who have Arrow data in memory.

use crate::text::text_of;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{ArrowError, DataType, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// Whether a column of this type holds numbers. True and false are 1 and 0.
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

/// The columns that hold the index of a pandas table, as its metadata say: names of rows, not features.
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
        /// Names; a range is described instead, and not stored.
        index_columns: Vec<serde_json::Value>,
    }
    let noted = schema.metadata().get("pandas");
    let read = noted.and_then(|text| serde_json::from_str::<Pandas>(text).ok());
    let columns = read.map_or_else(Vec::new, |pandas| pandas.index_columns);
    columns.iter().filter_map(|c| c.as_str().map(String::from)).collect()
}

/// Writes an array to every `stride`-th number from `offset` on; null becomes NaN.
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
        DataType::Dictionary(_, values) => {
            if !is_numeric(values) {
                return Err(no_numbers(array.data_type()));
            }
            let dictionary = array.as_any_dictionary();
            let mut values = vec![0.0; dictionary.values().len()];
            numbers(dictionary.values(), &mut values, 0, 1)?;
            // Keys of missing values are not looked at, and there may be no values at all.
            let keys = if values.is_empty() { Vec::new() } else { dictionary.normalized_keys() };
            for (i, x) in out.enumerate().take(array.len()) {
                *x = if array.is_null(i) { f64::NAN } else { values[keys[i]] };
            }
        }
        // By way of the digits, so that a decimal is the same number as in a text file.
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

fn no_numbers(data_type: &DataType) -> ArrowError {
    ArrowError::CastError(format!("{data_type} does not hold numbers"))
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

/// The text of every value; whole numbers have no decimal point, whatever their type.
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
    let write = text_of(array)?;
    let fraction = matches!(array.data_type(), t if t.is_floating());
    let mut known: HashMap<String, Arc<str>> = HashMap::new();
    let mut texts = Vec::with_capacity(array.len());
    // A logical null of a dictionary stands in its values.
    let nulls = array.logical_nulls();
    for i in 0..array.len() {
        if nulls.as_ref().is_some_and(|n| n.is_null(i)) {
            texts.push(None);
            continue;
        }
        let mut text = String::new();
        write(i, &mut text)?;
        if fraction && text.ends_with(".0") {
            text.truncate(text.len() - 2);
        }
        let shared = known.entry(text).or_insert_with_key(|t| Arc::from(t.as_str()));
        texts.push(Some(shared.clone()));
    }
    Ok(texts)
}
