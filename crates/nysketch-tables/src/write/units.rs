//! Conversion of columns to types that Parquet supports.
//!
//! Parquet does not support seconds or dates in milliseconds: readers without Arrow support would
//! see plain integers. Such values are converted to milliseconds and to days. A value that cannot
//! be converted exactly is an error.

use crate::arrow::type_name;
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;

const MILLISECONDS_OF_DAY: i64 = 86_400_000;

/// Returns the columns in types that Parquet supports. Refuses a column whose type has no
/// equivalent.
pub fn schema_of(schema: &SchemaRef) -> Result<SchemaRef> {
    let stored = |field: &FieldRef| match stored(field.data_type()) {
        Some(data_type) => Ok(Field::clone(field).with_data_type(data_type)),
        None => Err(Error::CannotHold {
            column: field.name().clone(),
            kind: type_name(field.data_type()),
            format: "Parquet",
        }),
    };
    let fields: Vec<Field> = schema.fields().iter().map(stored).collect::<Result<_>>()?;
    Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}

/// Returns the type in which Parquet stores values of a type, or `None` if there is none.
fn stored(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Date64 => DataType::Date32,
        DataType::Dictionary(keys, values) => {
            DataType::Dictionary(keys.clone(), Box::new(stored(values)?))
        }
        other if is_held(other) => other.clone(),
        _ => return None,
    })
}

/// Whether Parquet supports this type without conversion.
fn is_held(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(TimeUnit::Second, _)
        | DataType::Time32(TimeUnit::Second)
        | DataType::Date64
        | DataType::Interval(IntervalUnit::MonthDayNano)
        | DataType::Union(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => false,
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            is_held(field.data_type())
        }
        DataType::Map(field, _) => is_held(field.data_type()),
        DataType::Struct(fields) => {
            !fields.is_empty() && fields.iter().all(|field| is_held(field.data_type()))
        }
        DataType::Dictionary(_, values) => is_held(values),
        DataType::RunEndEncoded(_, values) => is_held(values.data_type()),
        _ => true,
    }
}

/// Converts rows to the types of this schema. `first_row` is the number of the first row in the
/// output.
pub fn convert(batch: RecordBatch, schema: &SchemaRef, first_row: u64) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch);
    }
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        let converted = in_type(column, field.data_type());
        if let Some(row) = first_lost(column, &converted) {
            let row = first_row + row as u64;
            let kind = type_name(column.data_type());
            return Err(Error::CannotHold {
                column: field.name().clone(),
                kind: format!("a value in row {row} ({kind})"),
                format: "Parquet",
            });
        }
        columns.push(converted);
    }
    RecordBatch::try_new(schema.clone(), columns).map_err(Error::writing)
}

/// Returns the first row that has a value in `before` but not in `after`.
fn first_lost(before: &ArrayRef, after: &ArrayRef) -> Option<usize> {
    let (before_nulls, after_nulls) = (before.logical_nulls(), after.logical_nulls()?);
    let had_value = |row: usize| before_nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    (0..before.len()).find(|row| after_nulls.is_null(*row) && had_value(*row))
}

/// Converts the values to another type; null if the type cannot represent the value.
fn in_type(column: &ArrayRef, to: &DataType) -> ArrayRef {
    if column.data_type() == to {
        return column.clone();
    }
    match (column.data_type(), to) {
        (DataType::Timestamp(..), DataType::Timestamp(_, zone)) => {
            let milliseconds = |seconds: i64| seconds.checked_mul(1000);
            let times =
                changed::<TimestampSecondType, TimestampMillisecondType>(column, milliseconds);
            Arc::new(times.with_timezone_opt(zone.clone()))
        }
        (DataType::Time32(_), _) => {
            let milliseconds = |seconds: i32| seconds.checked_mul(1000);
            Arc::new(changed::<Time32SecondType, Time32MillisecondType>(column, milliseconds))
        }
        (DataType::Date64, _) => {
            let days = |milliseconds: i64| {
                let is_whole = milliseconds % MILLISECONDS_OF_DAY == 0;
                let days = i32::try_from(milliseconds / MILLISECONDS_OF_DAY).ok();
                days.filter(|_| is_whole)
            };
            Arc::new(changed::<Date64Type, Date32Type>(column, days))
        }
        (DataType::Dictionary(..), DataType::Dictionary(_, values)) => {
            let dictionary = column.as_any_dictionary();
            dictionary.with_values(in_type(dictionary.values(), values))
        }
        _ => column.clone(),
    }
}

fn changed<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
    column: &ArrayRef,
    value: impl Fn(A::Native) -> Option<B::Native>,
) -> PrimitiveArray<B> {
    column.as_primitive::<A>().unary_opt(value)
}
