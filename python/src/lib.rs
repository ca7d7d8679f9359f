//! The compiled part of the Python package `nysketch`: each function converts its arguments,
//! releases the GIL, calls the library, and maps the error.
//!
//! [`input`] makes sources from files, arrays, sparse matrices and Arrow streams. [`work`] runs
//! long work without blocking the interpreter, and [`pass`] sketches rows. [`plan`], [`sketch`] and
//! [`model`] contain the classes; [`results`] and [`command`] provide the functions of the command.
//! The estimators are written in Python: `nysketch/estimators/`.

mod cluster;
mod command;
mod curve;
mod error;
mod input;
mod map;
mod mixture;
mod model;
mod natural;
mod options;
mod pass;
mod plan;
mod release;
mod results;
mod sketch;
mod work;

use pyo3::prelude::*;

/// Sketches of tables, and models learned from them.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::cluster::{
        _distant_part, _merge_distant_parts, _merge_survey_parts, _plan_sample_rows, _survey_part,
        PyDraft,
    };
    #[pymodule_export]
    use crate::command::main;
    #[pymodule_export]
    use crate::curve::PyCurve;
    #[pymodule_export]
    use crate::input::_read_number;
    #[pymodule_export]
    use crate::model::PyModel;
    #[pymodule_export]
    use crate::plan::PyPlan;
    #[pymodule_export]
    use crate::release::{PyRelease, private_plan};
    #[pymodule_export]
    use crate::results::{
        _attribute, _default_landmarks, _diff, _inspect, _read, _report, _unusual, _watch,
    };
    #[pymodule_export]
    use crate::sketch::PySketch;
    #[pymodule_export]
    use crate::work::{_join_left_work, set_max_work};

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "as Python names it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
