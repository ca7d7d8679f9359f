//! Two sketches compared, and the segments that explain a change.

pub mod compare;
pub mod segments;
