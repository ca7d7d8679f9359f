//! CSV output.

use super::group::Group;
use crate::error::{Error, Result};
use crate::text::{has_text, text_of};
use arrow_schema::SchemaRef;
use csv::{ByteRecord, Writer};

/// Returns the header line, or an error if a column cannot be written as text.
pub fn header(schema: &SchemaRef) -> Result<Vec<u8>> {
    if let Some(field) = schema.fields().iter().find(|f| !has_text(f.data_type())) {
        return Err(Error::CannotHold {
            column: field.name().clone(),
            kind: field.data_type().to_string(),
            format: "csv",
        });
    }
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(schema.fields().iter().map(|f| f.name())).map_err(Error::writing)?;
    writer.into_inner().map_err(Error::writing)
}

/// Returns the lines of a group; a missing value is empty.
pub fn encode(group: &Group) -> Result<Vec<u8>> {
    let mut writer = Writer::from_writer(Vec::new());
    let (mut record, mut text) = (ByteRecord::new(), String::new());
    for batch in group {
        let columns = batch.columns().iter().map(|column| text_of(column.as_ref()));
        let columns: Vec<_> = columns.collect::<Result<_, _>>().map_err(Error::writing)?;
        for i in 0..batch.num_rows() {
            record.clear();
            for column in &columns {
                text.clear();
                column(i, &mut text).map_err(Error::writing)?;
                record.push_field(text.as_bytes());
            }
            writer.write_byte_record(&record).map_err(Error::writing)?;
        }
    }
    writer.into_inner().map_err(Error::writing)
}
