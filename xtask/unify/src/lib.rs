//! Nothing but a list of features, in `Cargo.toml`.
//!
//! Cargo turns on the features that the packages it is asked for need. The wheel is built from one package and
//! the tests from all, so without this list most dependencies would be built twice.
