//! One day among others, and days in their order.

pub mod baseline;
pub mod watch;
