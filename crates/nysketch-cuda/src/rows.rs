//! Rows in the memory of a GPU.

use crate::device::Device;
use crate::error::Result;
use crate::memory::{Memory, Stream};
use std::marker::PhantomData;
use std::sync::Arc;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// Double precision.
    F64,
    /// Single precision.
    F32,
    /// Half precision with five bits of exponent.
    F16,
    /// Half precision with eight bits of exponent.
    Bf16,
}

impl Element {
    /// Name in the kernels.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Element::F64 => "double",
            Element::F32 => "float",
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
        }
    }

    /// Size of a value in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Element::F64 => 8,
            Element::F32 => 4,
            Element::F16 | Element::Bf16 => 2,
        }
    }
}

/// Rows in the memory of a GPU. Value (i, k) is at `address + bytes·(i·row_stride +
/// k·column_stride)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceRows<'a> {
    pub(crate) address: u64,
    pub(crate) element: Element,
    pub(crate) rows: u64,
    pub(crate) columns: usize,
    pub(crate) row_stride: i64,
    pub(crate) column_stride: i64,
    pub(crate) stream: Option<usize>,
    of: PhantomData<&'a ()>,
}

impl<'a> DeviceRows<'a> {
    /// Contiguous rows, row-major, that are already written.
    ///
    /// # Safety
    /// All values must be in the memory of one GPU for the lifetime `'a`, and must not be written
    /// to during a call that takes the rows.
    pub unsafe fn new(address: u64, element: Element, rows: u64, columns: usize) -> Self {
        let row_stride = columns as i64;
        let (column_stride, of) = (1, PhantomData);
        DeviceRows { address, element, rows, columns, row_stride, column_stride, stream: None, of }
    }

    /// Sets the distances between rows and between columns, in values.
    ///
    /// # Safety
    /// As for [`new`](Self::new), with these distances.
    #[must_use]
    pub unsafe fn with_strides(self, row_stride: i64, column_stride: i64) -> Self {
        DeviceRows { row_stride, column_stride, ..self }
    }

    /// Declares that the rows are written on a stream, given by its driver handle. The pass waits
    /// for that stream.
    ///
    /// # Safety
    /// The stream must exist.
    #[must_use]
    pub unsafe fn written_on(self, stream: usize) -> Self {
        DeviceRows { stream: Some(stream), ..self }
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Distance between rows in bytes, if kernels can represent it.
    pub(crate) fn row_bytes(&self) -> Option<i32> {
        self.row_stride.checked_mul(self.element.bytes() as i64)?.try_into().ok()
    }

    /// `rows` rows, from row `from` onwards.
    pub(crate) fn part(&self, from: u64, rows: u64) -> DeviceRows<'a> {
        let offset =
            self.row_stride.wrapping_mul(from as i64).wrapping_mul(self.element.bytes() as i64);
        DeviceRows { address: self.address.wrapping_add_signed(offset), rows, ..*self }
    }
}

/// Rows that were copied to a GPU.
#[derive(Debug)]
pub struct OwnedRows {
    memory: Memory,
    element: Element,
    rows: u64,
    columns: usize,
}

impl OwnedRows {
    /// Copies values, little-endian and row-major.
    pub fn copy(
        device: &Arc<Device>,
        bytes: &[u8],
        element: Element,
        columns: usize,
    ) -> Result<Self> {
        let rows = (bytes.len() / element.bytes() / columns.max(1)) as u64;
        let memory = Memory::of(device, bytes, &Stream::new(device)?, "rows")?;
        Ok(OwnedRows { memory, element, rows, columns })
    }

    /// Copies values `copies` times, one copy after the other.
    pub fn repeated(
        device: &Arc<Device>,
        bytes: &[u8],
        element: Element,
        columns: usize,
        copies: usize,
    ) -> Result<Self> {
        let memory = Memory::new(device, bytes.len() * copies, "rows")?;
        let stream = Stream::new(device)?;
        memory.write(0, bytes, &stream)?;
        for copy in 1..copies {
            memory.copy_within(copy * bytes.len(), bytes.len(), &stream)?;
        }
        stream.wait("copying within the GPU")?;
        let rows = (bytes.len() / element.bytes() / columns.max(1) * copies) as u64;
        Ok(OwnedRows { memory, element, rows, columns })
    }

    /// The rows.
    pub fn get(&self) -> DeviceRows<'_> {
        // SAFETY: the rows were copied before the constructor returned, cannot be written to, and
        // live as long as `self`.
        unsafe { DeviceRows::new(self.memory.address(), self.element, self.rows, self.columns) }
    }
}
