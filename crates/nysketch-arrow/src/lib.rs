//! From Arrow arrays to numbers and text: what the command line and the Python package have in common.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType};
use std::collections::HashMap;
use std::sync::Arc;

/// Whether a column of this type holds numbers. True and false are 1 and 0.
pub fn is_numeric(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_numeric(values),
        DataType::Boolean | DataType::Decimal32(..) | DataType::Decimal64(..) => true,
        DataType::Decimal128(..) | DataType::Decimal256(..) => true,
        other => other.is_numeric(),
    }
}

/// Writes an array to every `stride`-th number from `offset` on; null becomes NaN.
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
            let plain = arrow_cast::cast(array, values)?;
            let mut numbers_of = vec![0.0; plain.len()];
            numbers(&plain, &mut numbers_of, 0, 1)?;
            out.zip(numbers_of).for_each(|(x, value)| *x = value);
        }
        // By way of the digits, so that a decimal is the same number as in a text file.
        t if is_numeric(t) => {
            let text = ArrayFormatter::try_new(array, &FormatOptions::default())?;
            for (i, x) in out.enumerate() {
                *x = match array.is_null(i) {
                    true => f64::NAN,
                    false => text.value(i).try_to_string()?.parse().unwrap_or(f64::NAN),
                };
            }
        }
        other => {
            return Err(ArrowError::CastError(format!("{other} does not hold numbers")));
        }
    }
    Ok(())
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
pub fn texts(array: &ArrayRef) -> Result<Vec<Option<Arc<str>>>, ArrowError> {
    let formatter = ArrayFormatter::try_new(array, &FormatOptions::default())?;
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
        let mut text = formatter.value(i).try_to_string()?;
        if fraction && text.ends_with(".0") {
            text.truncate(text.len() - 2);
        }
        let shared = known.entry(text).or_insert_with_key(|t| Arc::from(t.as_str()));
        texts.push(Some(shared.clone()));
    }
    Ok(texts)
}
