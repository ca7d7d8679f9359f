//! Planning where the rows lie on many machines: each surveys its own, the driver drafts the plan, and where it wants
//! landmarks far from those it has, the machines draw them.
//!
//! What travels is bytes; `nysketch/cluster.py` says who sends what to whom.

use crate::error::exception;
use crate::input::{Extras, Input, Wanted, Weights};
use crate::natural::Natural;
use crate::options::PlanOptions;
use crate::plan::{PyPlan, warn};
use crate::work::{SILENT, run};
use nysketch::planning::{Draft, PlanValid, TableColumns, distant_rows, survey_rows};
use nysketch::sample::Reservoir;
use nysketch::survey::SurveyPart;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Mutex;

/// Weights by the name of their column, and the position of the first row.
fn extras(weights: Option<String>, position: Natural) -> Extras {
    let weights = weights.map_or(Weights::None, Weights::Column);
    Extras { weights, position: position.0, ..Extras::default() }
}

/// The columns of a table, the same on all machines.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Columns {
    /// Columns of numbers.
    numbers: Vec<String>,
    /// Those of them that are points in time.
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

/// What was said about a plan, in which columns go by their own names.
fn params(
    columns: Option<&Columns>,
    weights: Option<String>,
    options: PlanOptions<'_>,
) -> PyResult<PlanValid> {
    let numbers = columns.map(|c| &c.numbers[..]);
    let params = options.params(numbers, |names| Ok(names.to_vec()), weights, 1)?;
    params.leave_out_ids(true).check().map_err(exception)
}

/// How many rows of so many columns are sampled; raises where options cannot be, before any row is read.
#[pyfunction]
pub fn _plan_sample_rows(
    columns: usize,
    weights: Option<String>,
    options: PlanOptions<'_>,
) -> PyResult<usize> {
    Ok(params(None, weights, options)?.survey(columns).sample_rows)
}

/// What is found of the rows of X, which are some of all rows.
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

/// What is found of the rows of both.
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

/// Some rows of X far from the landmarks of a plan.
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

/// Those of both.
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

/// A plan in the making, from the merged parts of a survey.
#[pyclass(name = "_Draft", module = "nysketch._core", frozen)]
pub struct PyDraft {
    /// `None` once it is finished.
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
        let (plan, report) = run(py, SILENT, move |_| draft.finish(distant))?;
        self::warn(py, &report, &[], warn)?;
        Ok(plan.into())
    }
}
