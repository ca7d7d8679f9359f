//! The compiled half of the Python package `nysketch`: convert, release the GIL, call, map the error.
//!
//! [`input`] makes sources of the library out of arrays and Arrow streams, [`work`] runs long work
//! beside the interpreter, and [`plan`], [`sketch`] and [`model`] are the classes. The estimators of
//! scikit-learn's kind are Python: `nysketch/estimators.py`.

mod error;
mod input;
mod model;
mod natural;
mod plan;
mod sketch;
mod work;

use pyo3::prelude::*;

/// Sketches of tables, and what can be learned from them.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::model::{PyCurve, PyModel};
    #[pymodule_export]
    use crate::plan::PyPlan;
    #[pymodule_export]
    use crate::sketch::PySketch;
}
