//! Preprocessing: from the columns of a table to the measured columns.
//!
//! * `columns`: the numeric columns and categories of a plan or a model;
//! * `step`: the transformation of a value and its inverse;
//! * `view`: a source with the columns of a plan or a model;
//! * `words`: values formatted for display, in the units of the table;
//! * `space`: categories as coordinates, for operations on few points.

mod columns;
mod space;
mod step;
mod view;
pub mod words;

pub(crate) use columns::vector_of;
pub use columns::{
    Category, MAX_CATEGORIES, MAX_LEVELS, MISSING_LEVEL, Number, OTHER_LEVEL, Recipe,
};
pub use step::Step;
pub use view::View;
