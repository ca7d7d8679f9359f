//! Files of plans, sketches, releases and masked sketches: FORMAT.md in code.
//!
//! A file is a safetensors container whose bytes are a function of its content: reading checks
//! every rule of FORMAT.md and then encodes what was read again; a file that does not come out
//! byte for byte the same is refused.

use crate::masking::Masked;
use crate::privacy::Release;
use crate::{FormatError, Plan, Result, Sketch};
use nysketch_core::format::read::Opened;
use std::sync::Arc;

pub use nysketch_core::format::{START, VERSIONS, may_be_file};

/// The content of a file; see [`decode`].
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
    /// Returns the kind of the file, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            File::Plan(_) => "plan",
            File::Sketch(_) => "sketch",
            File::Release(_) => "release",
            File::Masked(_) => "masked sketch",
        }
    }
}

/// Reads a file of any kind, checking every rule of the format.
///
/// ```
/// use nysketch::format::{File, decode};
/// use nysketch::{PlanParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let plan = plan_for(&Table::unnamed(1, vec![1.0, 2.0])?, PlanParams::default())?.plan;
/// assert!(matches!(decode(&plan.to_bytes())?, File::Plan(read) if *read == plan));
/// assert!(decode(b"something else").is_err());
/// # Ok(())
/// # }
/// ```
pub fn decode(bytes: &[u8]) -> Result<File> {
    let opened = Opened::new(bytes)?;
    match opened.metadata.kind.as_str() {
        "plan" => Plan::read(opened).map(File::Plan),
        "sketch" => Sketch::read(opened).map(File::Sketch),
        "release" => Release::read(opened).map(File::Release),
        "masked" => Masked::read(opened).map(File::Masked),
        found => {
            let expected = "plan, sketch, release or masked sketch";
            Err(FormatError::Kind { expected, found: found.into() }.into())
        }
    }
}
