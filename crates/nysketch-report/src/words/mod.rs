//! Plans, models, columns and numbers in words, for the command and the page.

pub mod columns;
pub mod describe;
pub mod numbers;
pub mod options;
