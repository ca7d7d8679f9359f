//! Decoders: from a sketch to a model, without the rows.

pub mod matching;
