//! The Arrow PyCapsule interface: converts a Python object to record batches.

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi::c_str;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// A stream of record batches, or a single batch. Rows that are null as a whole are refused: the
/// arrow crate's own reader would treat the memory below them as values.
pub struct Reader {
    pub schema: SchemaRef,
    stream: Option<FFI_ArrowArrayStream>,
    only: Option<FFI_ArrowArray>,
    /// The next batch, if it was read in advance.
    peeked: Option<RecordBatch>,
}

impl Reader {
    fn of_stream(mut stream: FFI_ArrowArrayStream) -> Result<Self, ArrowError> {
        let mut schema = FFI_ArrowSchema::empty();
        match stream.get_schema() {
            // SAFETY: this calls a callback of a live stream, which fills in the schema.
            Some(get) if unsafe { get(&mut stream, &mut schema) } == 0 => {}
            _ => return Err(failure(&mut stream)),
        }
        let schema = Arc::new(Schema::try_from(&schema)?);
        Ok(Reader { schema, stream: Some(stream), only: None, peeked: None })
    }

    fn of_array(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> Result<Self, ArrowError> {
        let DataType::Struct(fields) = DataType::try_from(schema)? else {
            return Err(ArrowError::SchemaError(
                "it is one array; a table has named columns".into(),
            ));
        };
        let schema = Arc::new(Schema::new(fields));
        Ok(Reader { schema, stream: None, only: Some(array), peeked: None })
    }

    /// Returns the next batch without consuming it.
    pub fn peek(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        self.peeked = self.next()?;
        Ok(self.peeked.clone())
    }

    /// Returns the next batch, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        if let Some(peeked) = self.peeked.take() {
            return Ok(Some(peeked));
        }
        let array = match (self.only.take(), &mut self.stream) {
            (Some(only), _) => only,
            (None, None) => return Ok(None),
            (None, Some(stream)) => {
                let mut array = FFI_ArrowArray::empty();
                match stream.get_next() {
                    // SAFETY: this calls a callback of a live stream, which fills in the next
                    // array.
                    Some(get) if unsafe { get(stream, &mut array) } == 0 => {}
                    _ => return Err(failure(stream)),
                }
                if array.is_released() {
                    return Ok(None);
                }
                array
            }
        };
        if array.num_children() != self.schema.fields().len() {
            let message = "a batch has other columns than the stream".to_string();
            return Err(ArrowError::SchemaError(message));
        }
        let data_type = DataType::Struct(self.schema.fields().clone());
        // SAFETY: the producer guarantees that the array has its schema.
        let data = unsafe { from_ffi_and_data_type(array, data_type) }?;
        let rows = StructArray::from(data);
        if rows.null_count() > 0 {
            return Err(ArrowError::InvalidArgumentError("a row is null as a whole".into()));
        }
        Ok(Some(RecordBatch::from(rows)))
    }
}

/// Returns the last error of a stream.
fn failure(stream: &mut FFI_ArrowArrayStream) -> ArrowError {
    // SAFETY: this calls a callback of a live stream; the text belongs to the stream and is copied.
    let text = stream.get_last_error().and_then(|get| unsafe {
        let text = get(stream);
        (!text.is_null()).then(|| std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned())
    });
    ArrowError::CDataInterface(text.unwrap_or_else(|| "the stream has failed".into()))
}

/// Starts reading an object, or the return value of a function.
pub fn reader_of(origin: &Bound<'_, PyAny>) -> PyResult<Reader> {
    let unreadable = |e: ArrowError| PyValueError::new_err(format!("X cannot be read: {e}"));
    let origin = &if origin.is_callable() && !origin.hasattr("__arrow_c_stream__")? {
        origin.call0()?
    } else {
        origin.clone()
    };
    if origin.hasattr("__arrow_c_stream__")? {
        let capsule = origin.call_method0("__arrow_c_stream__")?;
        let capsule = capsule.cast::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(c_str!("arrow_array_stream")))?;
        // SAFETY: by the PyCapsule interface, a capsule with this name holds an ArrowArrayStream.
        // It is moved out, and the original is marked as released.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr().cast()) };
        return Reader::of_stream(stream).map_err(unreadable);
    }
    if origin.hasattr("__arrow_c_array__")? {
        let pair = origin.call_method0("__arrow_c_array__")?;
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = pair.extract()?;
        let schema = schema.pointer_checked(Some(c_str!("arrow_schema")))?;
        let array = array.pointer_checked(Some(c_str!("arrow_array")))?;
        // SAFETY: by the PyCapsule interface, capsules with these names hold an ArrowSchema and its
        // ArrowArray. Both are moved out, and the originals are marked as released.
        let (schema, array) = unsafe {
            let schema = FFI_ArrowSchema::from_raw(schema.as_ptr().cast());
            (schema, FFI_ArrowArray::from_raw(array.as_ptr().cast()))
        };
        return Reader::of_array(array, &schema).map_err(unreadable);
    }
    Err(PyTypeError::new_err(format!(
        "X must be an array, or have the Arrow stream interface, or be a function that returns \
         such a stream; got {}",
        origin.get_type().name()?
    )))
}
