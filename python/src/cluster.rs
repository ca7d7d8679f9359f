//! Planning when the rows are on many machines. Each machine surveys its own rows, and the driver
//! drafts the plan. If the draft needs landmarks far from the existing ones, the machines draw
//! them.
//!
//! All messages are bytes; `nysketch/cluster.py` describes the protocol.

use crate::error::exception;
use crate::input::{Extras, Input, Wanted, Weights};
use crate::natural::Natural;
use crate::options::PlanOptions;
use crate::plan::{PyPlan, warn};
use crate::work::{SILENT, run};
use nysketch::planning::{Draft, PlanValid, Planned, TableColumns, distant_rows, survey_rows};
use nysketch_core::planning::survey::SurveyPart;
use nysketch_core::rows::sample::Reservoir;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Mutex;

/// Makes the extras from the column of weights and the position of the first row.
fn extras(weights: Option<String>, position: Natural) -> Extras {
    let weights = weights.map_or(Weights::None, Weights::Column);
    Extras { weights, position: position.0, ..Extras::default() }
}

/// The columns of a table, which are the same on all machines.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Columns {
    /// Columns of numbers.
    numbers: Vec<String>,
    /// The columns of `numbers` that are points in time.
    times: Vec<String>,
    categories: Vec<String>,
}

impl From<Columns> for TableColumns {
    fn from(columns: Columns) -> Self {
        let Columns { numbers, times, categories } = columns;
        let timed = |name: String| (times.contains(&name), name);
        let numbers = numbers.into_iter().map(timed).map(|(time, name)| (name, time)).collect();
        TableColumns { numbers, categories }
    }
}

/// Checks the options of a plan. Columns are referred to by exact names.
fn params(
    columns: Option<&Columns>,
    weights: Option<String>,
    options: PlanOptions<'_>,
) -> PyResult<PlanValid> {
    let numbers = columns.map(|c| &c.numbers[..]);
    let params = options.params(numbers, |names| Ok(names.to_vec()), weights, 1)?;
    params.leave_out_ids(true).check().map_err(exception)
}

/// Returns the number of rows to sample for this number of columns. Raises if the options are
/// impossible, before any row is read.
#[pyfunction]
pub fn _plan_sample_rows(
    columns: usize,
    weights: Option<String>,
    options: PlanOptions<'_>,
) -> PyResult<usize> {
    Ok(params(None, weights, options)?.survey(columns).sample_rows)
}

/// Surveys the rows of X, which are part of all rows.
#[pyfunction]
#[allow(non_snake_case, reason = "keywords of Python")]
pub fn _survey_part<'py>(
    X: &Bound<'py, PyAny>,
    columns: Columns,
    weights: Option<String>,
    options: PlanOptions<'py>,
    position: Natural,
) -> PyResult<Bound<'py, PyBytes>> {
    let params = params(Some(&columns), weights.clone(), options)?;
    let Columns { numbers, times, categories } = columns;
    let wanted = Wanted::Exactly { numbers, times, categories, rowwise: false };
    let input = Input::open(X, wanted, extras(weights, position))?;
    let part = run(X.py(), SILENT, move |watch| survey_rows(&*input.source, &params, watch))?;
    Ok(PyBytes::new(X.py(), &part.to_bytes()))
}

/// Merges two surveys.
#[pyfunction]
pub fn _merge_survey_parts<'py>(
    py: Python<'py>,
    a: &[u8],
    b: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let mut all = SurveyPart::from_bytes(a).map_err(exception)?;
    all.merge(SurveyPart::from_bytes(b).map_err(exception)?);
    Ok(PyBytes::new(py, &all.to_bytes()))
}

/// Draws rows of X far from the landmarks of a plan.
#[pyfunction]
#[allow(non_snake_case, reason = "keywords of Python")]
pub fn _distant_part<'py>(
    X: &Bound<'py, PyAny>,
    plan: &PyPlan,
    count: Natural,
    weights: Option<String>,
    position: Natural,
) -> PyResult<Bound<'py, PyBytes>> {
    let plan = plan.plan.clone();
    let input = Input::open(X, Wanted::recipe(&plan.recipe), extras(weights, position))?;
    let rows = run(X.py(), SILENT, move |watch| {
        distant_rows(&plan, count.size(), &*input.source, 1, watch)
    })?;
    Ok(PyBytes::new(X.py(), &rows.to_bytes()))
}

/// Merges two draws.
#[pyfunction]
pub fn _merge_distant_parts<'py>(
    py: Python<'py>,
    a: &[u8],
    b: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let all = Reservoir::from_bytes(a).map_err(exception)?;
    all.merge(Reservoir::from_bytes(b).map_err(exception)?);
    Ok(PyBytes::new(py, &all.to_bytes()))
}

/// The draft of a plan, made from the merged surveys.
#[pyclass(name = "_Draft", module = "nysketch._core", frozen)]
pub struct PyDraft {
    /// `None` after the plan is finished.
    draft: Mutex<Option<Draft>>,
    #[pyo3(get)]
    wants_distant_rows: Option<(Py<PyPlan>, usize)>,
}

#[pymethods]
impl PyDraft {
    #[new]
    fn new(
        py: Python<'_>,
        columns: Columns,
        part: &[u8],
        weights: Option<String>,
        options: PlanOptions<'_>,
    ) -> PyResult<Self> {
        let params = params(Some(&columns), weights, options)?;
        let found = SurveyPart::from_bytes(part).and_then(SurveyPart::finish).map_err(exception)?;
        let draft = run(py, SILENT, move |_| Draft::new(&columns.into(), found, &params))?;
        let wants_distant_rows = match draft.wants_distant_rows() {
            Some((first, count)) => Some((Py::new(py, PyPlan::from(first))?, count)),
            None => None,
        };
        Ok(PyDraft { draft: Mutex::new(Some(draft)), wants_distant_rows })
    }

    fn finish(&self, py: Python<'_>, distant: Option<&[u8]>, warn: bool) -> PyResult<PyPlan> {
        let draft = self.draft.lock().unwrap_or_else(|e| e.into_inner()).take();
        let draft = draft.ok_or_else(|| PyValueError::new_err("the plan is finished"))?;
        let distant = distant.map(Reservoir::from_bytes).transpose().map_err(exception)?;
        let Planned { plan, report } = run(py, SILENT, move |_| draft.finish(distant))?;
        self::warn(py, &report, &[], warn)?;
        Ok(plan.into())
    }
}
