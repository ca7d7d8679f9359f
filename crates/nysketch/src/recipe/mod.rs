//! From the columns of a table to what is measured.
//!
//! * `columns`: which columns become numbers and which categories, as a plan or a model keeps it;
//! * `step`: what is done to a value on the way, and how it is undone;
//! * `view`: a source as a plan or a model sees it;
//! * `words`: values as people write them, what steps made of them undone;
//! * `space`: categories as coordinates, for work on few points.

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
