//! Plan and sketch files: FORMAT.md in code.
//!
//! A file is a safetensors container whose bytes are a function of its content: reading checks
//! every rule of FORMAT.md and then encodes what was read again; a file that does not come out
//! byte for byte the same is refused.

pub mod container;
pub mod file;
pub mod plan;
pub mod read;
pub mod sketch;

pub use plan::VERSIONS;
pub use read::{START, may_be_file};
