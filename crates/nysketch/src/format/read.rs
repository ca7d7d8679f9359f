//! Reading a file of either kind.

use super::container::Reader;
use super::masked::read_masked;
use super::plan::{Metadata, read_plan};
use super::release::read_release;
use super::sketch::read_sketch;
use crate::error::{Error, FormatError, Result};
use crate::masking::masked::Masked;
use crate::plan::Plan;
use crate::privacy::Release;
use crate::sketch::Sketch;
use std::sync::Arc;

/// What a file holds; see [`decode`].
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "files are decoded one at a time, not kept in lists")]
pub enum File {
    /// A plan.
    Plan(Arc<Plan>),
    /// A sketch.
    Sketch(Sketch),
    /// Sums with noise.
    Release(Release),
    /// The masked sketch of one party.
    Masked(Masked),
}

impl File {
    /// What kind of file it is.
    pub fn kind(&self) -> &'static str {
        match self {
            File::Plan(_) => "plan",
            File::Sketch(_) => "sketch",
            File::Release(_) => "release",
            File::Masked(_) => "masked sketch",
        }
    }

    /// Says that a file is not of the kind that was expected.
    fn is_not(&self, expected: &'static str) -> Error {
        match self {
            File::Masked(_) => FormatError::Masked.into(),
            other => FormatError::Kind { expected, found: other.kind().into() }.into(),
        }
    }
}

/// First bytes of a file that [`may_be_file`] looks at.
pub const START: usize = 9;

/// Whether a file that starts like this may be a plan or a sketch: eight bytes with the length of a
/// header, of which the upper four are zero, and a brace.
pub fn may_be_file(start: &[u8]) -> bool {
    start.get(4..START) == Some(b"\0\0\0\0{")
}

/// Reads a plan or a sketch, checking every rule of the format.
///
/// ```
/// use nysketch::format::{File, decode};
/// use nysketch::{PlanParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let plan = plan_for(&Table::unnamed(1, vec![1.0, 2.0])?, PlanParams::default())?.0;
/// assert!(matches!(decode(&plan.to_bytes())?, File::Plan(read) if *read == plan));
/// assert!(decode(b"something else").is_err());
/// # Ok(())
/// # }
/// ```
pub fn decode(bytes: &[u8]) -> Result<File> {
    let (mut reader, json) = Reader::open(bytes)?;
    let metadata = Metadata::from_json(&json);
    // A file of a newer version is called that, whatever its checksum.
    if !matches!(metadata, Err(crate::error::Error::Format(FormatError::Version { .. }))) {
        reader.check_checksum(bytes)?;
    }
    let metadata = metadata?;
    let plan = Arc::new(read_plan(&mut reader, &metadata)?);
    let file = match metadata.kind.as_str() {
        "plan" => File::Plan(plan),
        "sketch" => File::Sketch(read_sketch(&mut reader, &metadata, plan)?),
        "release" => File::Release(read_release(&mut reader, &metadata, plan)?),
        "masked" => File::Masked(read_masked(&mut reader, &metadata, plan)?),
        other => {
            let (found, expected) = (other.to_string(), "plan, sketch, release or masked sketch");
            return Err(FormatError::Kind { expected, found }.into());
        }
    };
    reader.finish()?;
    let canonical = match &file {
        File::Plan(plan) => plan.content().is_encoded_as(bytes),
        File::Sketch(sketch) => sketch.content().is_encoded_as(bytes),
        File::Release(release) => release.content().is_encoded_as(bytes),
        File::Masked(masked) => masked.content().is_encoded_as(bytes),
    };
    if !canonical {
        return Err(FormatError::NotCanonical.into());
    }
    Ok(file)
}

impl Plan {
    /// Reads the bytes of a plan's file, checking every rule of the format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match decode(bytes)? {
            File::Plan(plan) => Ok(Arc::unwrap_or_clone(plan)),
            other => Err(other.is_not("plan")),
        }
    }
}

impl Sketch {
    /// Reads the bytes of a sketch's file, checking every rule of the format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match decode(bytes)? {
            File::Sketch(sketch) => Ok(sketch),
            other => Err(other.is_not("sketch")),
        }
    }
}

impl Release {
    /// Reads the bytes of a release's file, checking every rule of the format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match decode(bytes)? {
            File::Release(release) => Ok(release),
            other => Err(other.is_not("release")),
        }
    }
}

impl Masked {
    /// Reads the bytes of a masked sketch's file, checking every rule of the format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match decode(bytes)? {
            File::Masked(masked) => Ok(masked),
            other => Err(other.is_not("masked sketch")),
        }
    }
}
