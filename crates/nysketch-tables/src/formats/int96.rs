//! INT96 timestamps of Parquet files, which Spark, Hive and Impala write.
//!
//! A timestamp consists of a day and the nanoseconds since midnight. Nanoseconds in a 64-bit
//! integer cover only the years 1677 to 2262, and the Parquet crate wraps around outside them: the
//! sentinel 9999-12-31 would become a day in 1816. These columns are therefore read in
//! microseconds, which cover the years -290,307 to 294,246; digits after the sixth are truncated.
//! The same columns are also read in milliseconds, which cover every INT96 value. A timestamp whose
//! two values differ is refused.

use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMicrosecondType, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::schema::types::SchemaDescriptor;
use std::sync::Arc;

/// The metadata of a file with INT96 columns.
#[derive(Debug, Clone)]
pub struct Int96 {
    /// The metadata with the same columns in milliseconds.
    milliseconds: ArrowReaderMetadata,
    /// Indices of the INT96 columns in the file, without columns inside lists and structures.
    columns: Vec<usize>,
}

impl Int96 {
    /// Finds the INT96 columns and sets their unit to microseconds. `None` if the file has none.
    pub fn find(metadata: &mut ArrowReaderMetadata) -> Result<Option<Self>, ParquetError> {
        let physical = metadata.parquet_schema();
        if physical.columns().iter().all(|leaf| leaf.physical_type() != Type::INT96) {
            return Ok(None);
        }
        let columns = flat_columns(physical);
        *metadata = in_unit(metadata, TimeUnit::Nanosecond, TimeUnit::Microsecond)?;
        let milliseconds = in_unit(metadata, TimeUnit::Microsecond, TimeUnit::Millisecond)?;
        let is_checked = |column: &usize| {
            let read_as = metadata.schema().field(*column).data_type();
            matches!(read_as, DataType::Timestamp(TimeUnit::Microsecond, _))
        };
        Ok(Some(Int96 { columns: columns.into_iter().filter(is_checked).collect(), milliseconds }))
    }

    /// Prepares the check of the INT96 columns among the required columns. `None` if there are
    /// none.
    pub fn check(&self, wanted: &[usize]) -> Option<Check> {
        let found = wanted.iter().enumerate().filter(|(_, column)| self.columns.contains(column));
        let (places, columns): (Vec<usize>, Vec<usize>) = found.unzip();
        if places.is_empty() {
            return None;
        }
        let mask = ProjectionMask::roots(self.milliseconds.parquet_schema(), columns);
        Some(Check { metadata: self.milliseconds.clone(), mask, places: places.into() })
    }
}

/// The second reading, in milliseconds, of the INT96 columns among the required columns.
pub struct Check {
    pub metadata: ArrowReaderMetadata,
    pub mask: ProjectionMask,
    /// Indices of the INT96 columns among the required columns.
    pub places: Arc<[usize]>,
}

/// Refuses a timestamp whose values in microseconds and in milliseconds differ.
pub fn check(
    file: &str,
    first_row: u64,
    batch: &RecordBatch,
    milliseconds: &RecordBatch,
    places: &[usize],
) -> Result<()> {
    for (place, exact) in places.iter().zip(milliseconds.columns()) {
        let column = batch.column(*place);
        let micros = column.as_primitive::<TimestampMicrosecondType>();
        let millis = exact.as_primitive::<TimestampMillisecondType>();
        let both = micros.values().iter().zip(millis.values());
        // The truncated digits amount to less than one millisecond.
        let wrapped = |(micros, millis): (&i64, &i64)| {
            (i128::from(*micros) - i128::from(*millis) * 1000).abs() >= 1000
        };
        let mut wrapped = both.map(wrapped).enumerate();
        if let Some((row, _)) = wrapped.find(|(row, wrapped)| *wrapped && micros.is_valid(*row)) {
            let (row, name) = (first_row + row as u64, batch.schema_ref().field(*place).name());
            let how = "the INT96 timestamp is outside of the years -290307 to 294246";
            return Err(Error::in_file(file, format!("row {row}, column '{name}': {how}")));
        }
    }
    Ok(())
}

/// Returns the columns of the file whose own type is INT96.
fn flat_columns(schema: &SchemaDescriptor) -> Vec<usize> {
    let fields = schema.root_schema().get_fields().iter().enumerate();
    let is_int96 = fields.filter(|(_, f)| f.is_primitive() && f.get_physical_type() == Type::INT96);
    is_int96.map(|(i, _)| i).collect()
}

/// Returns the metadata with INT96 timestamps in another unit.
fn in_unit(
    metadata: &ArrowReaderMetadata,
    from: TimeUnit,
    to: TimeUnit,
) -> Result<ArrowReaderMetadata, ParquetError> {
    let leaves = metadata.parquet_schema().columns().iter();
    let mut change = Change { leaves: leaves.map(|leaf| leaf.physical_type()), from, to };
    let schema = metadata.schema();
    let fields: Vec<FieldRef> = schema.fields().iter().map(|field| change.field(field)).collect();
    let schema: SchemaRef = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let options = ArrowReaderOptions::new().with_schema(schema);
    ArrowReaderMetadata::try_new(metadata.metadata().clone(), options)
}

/// Changes the unit of INT96 timestamps. Primitive columns of the file have the same order as those
/// of the Arrow schema.
struct Change<I> {
    leaves: I,
    from: TimeUnit,
    to: TimeUnit,
}

impl<I: Iterator<Item = Type>> Change<I> {
    fn field(&mut self, field: &FieldRef) -> FieldRef {
        let data_type = self.data_type(field.data_type());
        Arc::new(Field::clone(field).with_data_type(data_type))
    }

    fn data_type(&mut self, data_type: &DataType) -> DataType {
        match data_type {
            DataType::Struct(fields) => {
                DataType::Struct(fields.iter().map(|field| self.field(field)).collect())
            }
            DataType::List(field) => DataType::List(self.field(field)),
            DataType::LargeList(field) => DataType::LargeList(self.field(field)),
            DataType::ListView(field) => DataType::ListView(self.field(field)),
            DataType::LargeListView(field) => DataType::LargeListView(self.field(field)),
            DataType::FixedSizeList(field, n) => DataType::FixedSizeList(self.field(field), *n),
            DataType::Map(field, sorted) => DataType::Map(self.field(field), *sorted),
            DataType::RunEndEncoded(ends, values) => {
                DataType::RunEndEncoded(ends.clone(), self.field(values))
            }
            leaf => match (self.leaves.next(), leaf) {
                (Some(Type::INT96), DataType::Timestamp(unit, zone)) if *unit == self.from => {
                    DataType::Timestamp(self.to, zone.clone())
                }
                _ => leaf.clone(),
            },
        }
    }
}
