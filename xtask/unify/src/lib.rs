//! A list of features, in `Cargo.toml`.
//!
//! Cargo enables the features that the selected packages need. The wheel is built from one package
//! and the tests from all, so without this list most dependencies would be built twice.
