//! Reading of files: container, checksum and plan first, then the content of each kind.

use super::container::{Content, Reader};
use super::plan::{Metadata, read_plan};
use super::sketch::read_sketch;
use crate::error::{Error, FormatError, Result};
use crate::plan::Plan;
use crate::sketch::Sketch;
use std::sync::Arc;

/// Number of bytes that [`may_be_file`] needs.
pub const START: usize = 9;

/// Whether a file with these first bytes may be a plan or a sketch: eight bytes with the length of
/// a header, of which the upper four are zero, and a brace.
pub fn may_be_file(start: &[u8]) -> bool {
    start.get(4..START) == Some(b"\0\0\0\0{")
}

/// A file whose container, checksum, metadata and plan have been read.
pub struct Opened<'a> {
    /// The tensors that have not been read yet.
    pub reader: Reader<'a>,
    /// The metadata of the file.
    pub metadata: Metadata,
    /// The plan that the file contains.
    pub plan: Arc<Plan>,
    bytes: &'a [u8],
}

impl<'a> Opened<'a> {
    /// Opens a file of any kind.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let (mut reader, json) = Reader::open(bytes)?;
        let metadata = Metadata::from_json(&json);
        // A file of a newer version is reported as such, whatever its checksum.
        if !matches!(metadata, Err(Error::Format(FormatError::Version { .. }))) {
            reader.check_checksum(bytes)?;
        }
        let metadata = metadata?;
        let plan = Arc::new(read_plan(&mut reader, &metadata)?);
        Ok(Opened { reader, metadata, plan, bytes })
    }

    /// Opens a file that must have this kind.
    pub fn of_kind(bytes: &'a [u8], expected: &'static str) -> Result<Self> {
        let opened = Opened::new(bytes)?;
        match opened.metadata.kind.as_str() {
            found if found == expected => Ok(opened),
            "masked" => Err(FormatError::Masked.into()),
            found => {
                let expected = if expected == "masked" { "masked sketch" } else { expected };
                Err(FormatError::Kind { expected, found: found.into() }.into())
            }
        }
    }

    /// Checks that the file contains the fingerprint of its plan.
    pub fn check_fingerprint(&self) -> Result<()> {
        let found = self.metadata.fingerprint.clone().unwrap_or_default();
        let expected = self.plan.fingerprint();
        if found == expected {
            Ok(())
        } else {
            Err(FormatError::Fingerprint { expected, found }.into())
        }
    }

    /// Checks that every tensor was read and that the bytes are the canonical encoding of
    /// `content`.
    pub fn close(self, content: &Content<'_>) -> Result<()> {
        self.reader.finish()?;
        if content.is_encoded_as(self.bytes) {
            Ok(())
        } else {
            Err(FormatError::NotCanonical.into())
        }
    }
}

impl Plan {
    /// Decodes a plan and checks every rule of the format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let plan = Self::read(Opened::of_kind(bytes, "plan")?)?;
        Ok(Arc::unwrap_or_clone(plan))
    }

    /// Reads a plan from an opened file.
    pub fn read(opened: Opened<'_>) -> Result<Arc<Self>> {
        let plan = opened.plan.clone();
        opened.close(&plan.content())?;
        Ok(plan)
    }
}

impl Sketch {
    /// Decodes a sketch and checks every rule of the format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(Opened::of_kind(bytes, "sketch")?)
    }

    /// Reads a sketch from an opened file.
    pub fn read(mut opened: Opened<'_>) -> Result<Self> {
        let plan = opened.plan.clone();
        let sketch = read_sketch(&mut opened.reader, &opened.metadata, plan)?;
        opened.close(&sketch.content())?;
        Ok(sketch)
    }
}
