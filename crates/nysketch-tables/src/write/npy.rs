//! NumPy arrays: numbers of one type in row-major order.

use super::group::Group;
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};

/// Returns the header of a little-endian, row-major NumPy file: 128 bytes, whatever the number of
/// rows.
pub fn header(rows: u64, schema: &SchemaRef) -> Result<Vec<u8>> {
    let first = schema.fields().first();
    let kind = match first.map(|f| f.data_type()) {
        Some(DataType::Float32) => "<f4",
        Some(DataType::Int32) => "<i4",
        _ => "<u4",
    };
    let odd = |f: &&arrow_schema::FieldRef| {
        let number =
            matches!(f.data_type(), DataType::Float32 | DataType::Int32 | DataType::UInt32);
        !number || first.is_some_and(|first| first.data_type() != f.data_type())
    };
    if let Some(field) = schema.fields().iter().find(odd) {
        let (column, kind) = (field.name().clone(), field.data_type().to_string());
        return Err(Error::CannotHold { column, kind, format: "npy" });
    }
    let shape = match schema.fields().len() {
        1 if kind != "<f4" => format!("({rows},)"),
        d => format!("({rows}, {d})"),
    };
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{text:117}\n").bytes());
    Ok(bytes)
}

/// Returns the numbers of a group in row-major order.
pub fn encode(group: &Group) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for batch in group {
        bytes.extend(row_major(batch)?);
    }
    Ok(bytes)
}

/// Converts a batch whose types the header has checked. A missing value is NaN; integer columns
/// contain none.
fn row_major(batch: &RecordBatch) -> Result<Vec<u8>> {
    let d = batch.num_columns();
    let mut bytes = vec![0u8; batch.num_rows() * d * 4];
    for (j, (column, field)) in batch.columns().iter().zip(batch.schema_ref().fields()).enumerate()
    {
        let places = bytes.as_chunks_mut::<4>().0.iter_mut().skip(j).step_by(d);
        match column.data_type() {
            DataType::Float32 => places
                .zip(column.as_primitive::<Float32Type>())
                .for_each(|(place, x)| *place = x.unwrap_or(f32::NAN).to_le_bytes()),
            _ if column.null_count() > 0 => {
                let column = field.name().clone();
                let kind = "missing values".to_string();
                return Err(Error::CannotHold { column, kind, format: "npy" });
            }
            DataType::Int32 => places
                .zip(column.as_primitive::<Int32Type>().values())
                .for_each(|(place, x)| *place = x.to_le_bytes()),
            _ => places
                .zip(column.as_primitive::<UInt32Type>().values())
                .for_each(|(place, x)| *place = x.to_le_bytes()),
        }
    }
    Ok(bytes)
}
