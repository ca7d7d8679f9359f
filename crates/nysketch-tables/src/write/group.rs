//! The unit of encoding.

use arrow_array::RecordBatch;

/// Rows that are encoded together.
pub(crate) type Group = Vec<RecordBatch>;
