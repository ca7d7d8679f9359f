//! Results of the command's functions, as JSON of the library's types. `nysketch/results.py` makes
//! objects from it.

use crate::error::{command_exception, in_keywords, os_error};
use crate::model::PyModel;
use crate::natural::Natural;
use crate::plan::{PyPlan, save};
use crate::release::PyRelease;
use crate::sketch::PySketch;
use crate::work::{SILENT, run, threads};
use nysketch::drift::{Comparison, Days, DriftParams, Segment, set_q_values_of_many};
use nysketch::format::{File, decode, may_be_file};
use nysketch::inspect::{InspectParams, inspect};
use nysketch::planning::default_landmarks;
use nysketch::theory::TheoryParams;
use nysketch::{FormatError, Sketch};
use nysketch_core::numeric::parallel::in_parallel;
use nysketch_report::{ReportRequest, report_page as page};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Converts a result of the library to JSON.
pub fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Converts a result of the library to an object of `nysketch.results`.
pub fn result<'py>(
    py: Python<'py>,
    class: &str,
    value: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("nysketch.results")?.getattr(class)?;
    class.call_method1("_from_json", (json(value)?,))
}

/// Formats an object as a table for notebooks, with a function of `nysketch/_html.py`.
pub fn html<'py, T>(function: &str, object: &Bound<'py, T>) -> PyResult<Bound<'py, PyAny>> {
    object.py().import("nysketch._html")?.call_method1(function, (object.as_any(),))
}

/// Parameters of the theorems, from the keywords of `nysketch.inspect`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct TheoryOptions {
    k: Natural,
    lambda_: Option<f64>,
    delta: f64,
    known_variance: f64,
    secants: Natural,
}

impl From<TheoryOptions> for TheoryParams {
    fn from(options: TheoryOptions) -> Self {
        TheoryParams::new(options.k.size())
            .lambda(options.lambda_)
            .delta(options.delta)
            .known_variance(options.known_variance)
            .secants(options.secants.size())
    }
}

/// Summarises a plan or a sketch as JSON.
#[pyfunction]
#[pyo3(signature = (what, model=None, theory=None))]
pub fn _inspect(
    what: &Bound<'_, PyAny>,
    model: Option<&PyModel>,
    theory: Option<TheoryOptions>,
) -> PyResult<String> {
    let (plan, sketch) = match (what.cast::<PyPlan>(), what.cast::<PySketch>()) {
        (Ok(plan), _) => (plan.get().plan.clone(), None),
        (_, Ok(sketch)) => {
            let sketch = sketch.get().get();
            (sketch.plan().clone(), Some(sketch))
        }
        _ => return Err(PyTypeError::new_err("expected a Plan or a Sketch")),
    };
    let (model, theory) = (model.map(|m| m.model.clone()), theory.map(TheoryParams::from));
    let found = run(what.py(), SILENT, move |_| {
        inspect(&plan, sketch.as_deref(), &InspectParams { model: model.as_deref(), theory })
    })?;
    json(&found)
}

/// Thresholds, from the keywords of `nysketch.diff` and related functions.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct DriftOptions {
    draws: Natural,
    seed: Natural,
    level: f64,
    tolerance: Option<f64>,
}

impl From<DriftOptions> for DriftParams {
    fn from(options: DriftOptions) -> Self {
        DriftParams::default()
            .draws(options.draws.size())
            .seed(options.seed.0)
            .level(options.level)
            .tolerance(options.tolerance)
    }
}

/// Compares sketches with a baseline and returns JSON. With several sketches, significance accounts
/// for their number.
#[pyfunction]
#[pyo3(signature = (baseline, sketches, options, many, top=None))]
pub fn _diff(
    baseline: &Bound<'_, PySketch>,
    sketches: Vec<Bound<'_, PySketch>>,
    options: DriftOptions,
    many: bool,
    top: Option<Natural>,
) -> PyResult<Vec<String>> {
    let py = baseline.py();
    let baseline = baseline.get().get();
    let others: Vec<Arc<_>> = sketches.iter().map(|s| s.get().get()).collect();
    let params = DriftParams::from(options);
    let found = run(py, SILENT, move |_| {
        params.check()?;
        let comparison = Comparison::new(baseline.plan())?;
        let compare = |other: Arc<Sketch>| comparison.of(&baseline, &other, &params);
        let each = in_parallel(threads(None), others, compare);
        let mut found = each.into_iter().collect::<nysketch::Result<Vec<_>>>()?;
        if many {
            set_q_values_of_many(&mut found.iter_mut().collect::<Vec<_>>());
        }
        Ok(found)
    })?;
    let shown = found.into_iter().map(|mut drift| {
        if let Some(top) = top {
            drift.keep(top.size());
        }
        drift.no_test = drift.no_test.as_deref().map(in_keywords);
        json(&drift)
    });
    shown.collect()
}

/// Named days in order.
type NamedSketches<'py> = Vec<(String, Bound<'py, PySketch>)>;

fn with_days<T: Send + 'static>(
    py: Python<'_>,
    days: NamedSketches<'_>,
    ask: impl FnOnce(&Days<'_>) -> nysketch::Result<T> + Send + 'static,
) -> PyResult<T> {
    let days: Vec<(String, Arc<Sketch>)> =
        days.into_iter().map(|(name, day)| (name, day.get().get())).collect();
    let Some(plan) = days.first().map(|(_, day)| day.plan().clone()) else {
        return Err(PyValueError::new_err("there are no days to compare with"));
    };
    run(py, SILENT, move |_| {
        let comparison = Comparison::new(&plan)?;
        let mut all = Days::new(&comparison);
        days.iter().try_for_each(|(name, day)| all.push(name.as_str(), day))?;
        ask(&all)
    })
}

/// Compares a day with other days and returns JSON.
#[pyfunction]
pub fn _unusual(
    py: Python<'_>,
    days: NamedSketches<'_>,
    today: &Bound<'_, PySketch>,
    name: String,
    level: f64,
) -> PyResult<String> {
    let today = today.get().get();
    json(&with_days(py, days, move |days| days.compare(&name, &today, level))?)
}

/// Monitors days in order and returns JSON.
#[pyfunction]
#[pyo3(signature = (days, groups, level, seed))]
pub fn _watch(
    py: Python<'_>,
    days: NamedSketches<'_>,
    groups: Option<Vec<usize>>,
    level: f64,
    seed: Natural,
) -> PyResult<String> {
    json(&with_days(py, days, move |days| days.watch(groups.as_deref(), level, seed.0))?)
}

/// Finds the segments that explain a change and returns JSON.
#[pyfunction]
pub fn _attribute(
    py: Python<'_>,
    segments: Vec<(String, Bound<'_, PySketch>, Bound<'_, PySketch>)>,
    most: Natural,
    options: DriftOptions,
) -> PyResult<String> {
    let segments: Vec<Segment> = segments
        .into_iter()
        .map(|(name, before, after)| {
            let [before, after] = [before, after].map(|s| (*s.get().get()).clone());
            Segment { name, before, after }
        })
        .collect();
    let params = DriftParams::from(options);
    let Some(plan) = segments.first().map(|s| s.before.plan().clone()) else {
        return Err(PyValueError::new_err("there are no segments to compare"));
    };
    let found = run(py, SILENT, move |_| {
        Comparison::new(&plan)?.attribute(&segments, most.size(), &params)
    })?;
    json(&found)
}

/// Makes the page about a sketch, and writes it if a path is given. The series contains sketches to
/// compare with the baseline, and their names.
#[pyfunction]
#[pyo3(signature = (sketch, name, models, baseline, baseline_name, series, most_clusters, seed,
    path))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn _report(
    sketch: &Bound<'_, PySketch>,
    name: String,
    models: Vec<PyRef<'_, PyModel>>,
    baseline: Option<&Bound<'_, PySketch>>,
    baseline_name: String,
    series: Vec<(Bound<'_, PySketch>, String)>,
    most_clusters: Natural,
    seed: Natural,
    path: Option<PathBuf>,
) -> PyResult<String> {
    let py = sketch.py();
    let sketch = sketch.get().get();
    let models: Vec<_> = models.iter().map(|m| m.model.clone()).collect();
    let baseline = baseline.map(|b| b.get().get());
    let series: Vec<_> = series.into_iter().map(|(s, name)| (s.get().get(), name)).collect();
    let report = run(py, SILENT, move |_| {
        let request = ReportRequest {
            models: models.iter().map(|m| &**m).collect(),
            baseline: baseline.as_deref().map(|b| (b, baseline_name.as_str())),
            series: series.iter().map(|(sketch, name)| (&**sketch, name.as_str())).collect(),
            most_clusters: most_clusters.size(),
            seed: seed.0,
            threads: threads(None),
            ..ReportRequest::new(&sketch, &name)
        };
        Ok(page(&request))
    })?;
    let html = report.map_err(command_exception)?.html;
    if let Some(path) = path {
        save(py, &path, || html.clone().into_bytes())?;
    }
    Ok(html)
}

/// Reads a plan, a sketch or a model from a file.
#[pyfunction]
pub fn _read<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
    let bytes = std::fs::read(&path).map_err(|e| os_error(&e, &path))?;
    let bad = |message: String| PyValueError::new_err(format!("{}: {message}", path.display()));
    if !may_be_file(&bytes) {
        return Ok(Bound::new(py, PyModel::decode(&bytes).map_err(bad)?)?.into_any());
    }
    match decode(&bytes).map_err(|e| bad(in_keywords(&e.to_string())))? {
        File::Plan(plan) => Ok(Bound::new(py, PyPlan::from(plan))?.into_any()),
        File::Sketch(sketch) => Ok(Bound::new(py, PySketch::from(sketch))?.into_any()),
        File::Release(release) => Ok(Bound::new(py, PyRelease::from(release))?.into_any()),
        File::Masked(_) => Err(bad(FormatError::Masked.to_string())),
    }
}

/// Returns the default number of landmarks.
#[pyfunction]
#[pyo3(signature = (clusters=None))]
pub fn _default_landmarks(clusters: Option<Natural>) -> usize {
    default_landmarks(clusters.map(Natural::size))
}
