//! Plan and sketch files, as defined in FORMAT.md.
//!
//! A file is a safetensors container. Its content determines every byte: a reader checks every rule
//! of FORMAT.md, encodes the content again, and refuses a file whose bytes differ.

pub mod container;
pub mod file;
pub mod plan;
pub mod read;
pub mod sketch;

pub use plan::VERSIONS;
pub use read::{START, may_be_file};
