//! What people look at: words and numbers for the terminal, pictures, and the page about a sketch.
//!
//! | folder | contents |
//! |---|---|
//! | [`markup`] | text that is safe in SVG and HTML |
//! | [`words`] | numbers, columns, plans and models in words |
//! | [`plot`] | pictures: shapes in charts with axes, as SVG or PNG |
//! | [`page`] | any page: its policy, style and script |
//! | [`sections`] | the sections of the page about a sketch |

pub mod markup;
pub mod page;
pub mod plot;
pub mod sections;
pub mod words;

pub use sections::{Report, ReportRequest, page as report_page};

/// An error in the use of the command, not in the data.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);
