//! One pass over X, on the processors of this machine, on a GPU, or on the GPU that holds X.

use crate::error::exception;
use crate::input::{DeviceArray, Extras, Input, Wanted};
use crate::natural::Natural;
use crate::options::invalid;
use crate::plan::warn_each;
use crate::work::{Shown, run, threads};
use nysketch::rows::Losses;
use nysketch::{
    Accumulator, DeviceChoice, Error, Invalid, Plan, Progress, Rounding, RowSet, Run, Sketch,
    SketchParams,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::path::PathBuf;

/// Options of a pass, from Python.
pub struct How<'a, 'py> {
    pub weights: Option<&'a Bound<'py, PyAny>>,
    pub skip_invalid: bool,
    pub threads: Option<Natural>,
    pub device: &'a str,
    pub verbose: bool,
    pub allow_empty: bool,
}

impl How<'_, '_> {
    fn shown(&self, rows: Option<u64>) -> Shown {
        Shown { what: "sketching", verbose: self.verbose, rows }
    }

    /// Returns whether further columns are read, besides the plan's.
    fn reads_beside(&self, empty: &Sketch) -> bool {
        key(empty).is_some() || self.weights.is_some_and(|w| w.is_instance_of::<PyString>())
    }

    /// Returns what is read in addition to the columns.
    fn extras(&self, empty: &Sketch) -> PyResult<Extras> {
        let plan = empty.plan();
        Ok(Extras {
            key: key(empty).map(str::to_string),
            skip_invalid: self.skip_invalid || plan.private.is_some(),
            allow_missing: plan.recipe.least_present.is_some(),
            ..Extras::weights(self.weights)?
        })
    }
}

/// Sketches X with the plan and the folds of an empty sketch. If the plan has weights, X must have
/// weights, too.
pub fn sketch(empty: Sketch, x: &Bound<'_, PyAny>, how: &How<'_, '_>) -> PyResult<Sketch> {
    check_weights(empty.plan(), how.weights.is_some())?;
    let choice = device(x.py(), how.device)?;
    let there = match choice {
        DeviceChoice::Cpu => None,
        _ => {
            let wanted = Wanted::plan(empty.plan());
            DeviceArray::of(x, wanted, how.reads_beside(&empty), || how.extras(&empty))?
        }
    };
    let Some(array) = there else { return from_host(empty, x, choice, how) };
    match in_place(empty.clone(), array, x.py(), choice, how)? {
        Ok(sketch) => Ok(sketch),
        Err(reason) => {
            let note = format!(
                "X is copied to the memory of this machine, since its GPU cannot be used: {reason}"
            );
            warn_each(x.py(), [note])?;
            from_host(empty, x, DeviceChoice::Cpu, how)
        }
    }
}

/// Sketches rows in the memory of this machine.
fn from_host(
    empty: Sketch,
    x: &Bound<'_, PyAny>,
    choice: DeviceChoice,
    how: &How<'_, '_>,
) -> PyResult<Sketch> {
    let input = Input::open(x, Wanted::plan(empty.plan()), how.extras(&empty)?)?;
    let params = SketchParams::default()
        .threads(self::threads(how.threads))
        .invalid(invalid(how.skip_invalid));
    let allow_empty = how.allow_empty;
    let (sketch, notes) = run(x.py(), how.shown(input.rows), move |watch| {
        let divided = empty.folds().is_some();
        let (engine, unused) = choice.engine(empty.plan(), input.rows, params.threads, divided)?;
        let mut pass = Run::resume(empty, RowSet::default());
        pass.finish(&*input.source, params.engine(engine), watch)?;
        let (losses, rounding, read) = (pass.losses().clone(), pass.rounding(), pass.done().len());
        let passed = Passed { sketch: pass.into_sketch(), losses, rounding, read };
        let (sketch, notes) = passed.checked(allow_empty)?;
        Ok((sketch, unused.into_iter().chain(notes)))
    })?;
    warn_each(x.py(), notes)?;
    Ok(sketch)
}

/// Sketches rows in GPU memory on that GPU. If the GPU fails and was not requested by name, returns
/// the reason.
fn in_place(
    empty: Sketch,
    array: DeviceArray,
    py: Python<'_>,
    choice: DeviceChoice,
    how: &How<'_, '_>,
) -> PyResult<Result<Sketch, Error>> {
    let rows = array.rows.len();
    let (invalid, allow_empty) = (invalid(how.skip_invalid), how.allow_empty);
    let added = run(py, how.shown(Some(rows)), move |watch| {
        let passed = match added(empty, &array, choice, invalid) {
            Err(reason) if choice.excuses(&reason) => return Ok(Err(reason)),
            other => other?,
        };
        watch.advance(rows);
        passed.checked(allow_empty).map(Ok)
    })?;
    match added {
        Err(reason) => Ok(Err(reason)),
        Ok((sketch, notes)) => {
            warn_each(py, notes)?;
            Ok(Ok(sketch))
        }
    }
}

/// Adds rows in GPU memory to a sketch.
fn added(
    empty: Sketch,
    array: &DeviceArray,
    choice: DeviceChoice,
    invalid: Invalid,
) -> nysketch::Result<Passed> {
    let Some(engine) = array.engine(choice, empty.plan())? else {
        return Ok(Passed::nothing(empty));
    };
    let mut sums = Accumulator::of(&empty, engine)?;
    sums.push_on_device(&array.rows, &array.weights, 0, invalid)?;
    let (losses, rounding) = (sums.losses().clone(), sums.rounding());
    Ok(Passed { sketch: sums.freeze()?, losses, rounding, read: array.rows.len() })
}

/// The result of a pass.
struct Passed {
    sketch: Sketch,
    losses: Losses,
    rounding: Rounding,
    /// Number of rows read.
    read: u64,
}

/// A share of skipped rows above this causes a warning.
const MANY_SKIPPED: f64 = 0.05;
/// Maximum number of columns in the warning.
const NAMED: usize = 5;

impl Passed {
    /// Returns the result of a pass over no rows.
    fn nothing(empty: Sketch) -> Self {
        let (losses, rounding) = (Losses::default(), Rounding::default());
        Passed { sketch: empty, losses, rounding, read: 0 }
    }

    /// Returns the sketch, with notes on losses. An empty sketch is an error unless it is allowed.
    fn checked(self, allow_empty: bool) -> nysketch::Result<(Sketch, Vec<String>)> {
        let plan = self.sketch.plan();
        let rounding = plan.weighting.as_ref().and_then(|w| self.rounding.note(w));
        if let (0, Some(note)) = (self.sketch.rows(), &rounding) {
            return Err(Error::source(format!("every weight is rounded to zero: {note}")));
        }
        let allow_empty = allow_empty || plan.private.is_some();
        match (self.sketch.rows(), self.sketch.skipped()) {
            (0, 0) if !allow_empty => Err(Error::source(
                "X has no rows; a stream that was read before has none left, and what may be empty \
                 needs allow_empty=True",
            )),
            (0, skipped) if !allow_empty => Err(Error::NoRows { skipped }),
            _ => {
                let notes = rounding.into_iter().chain(self.skipped_note()).collect();
                Ok((self.sketch, notes))
            }
        }
    }

    /// Returns a note if many rows were skipped, with the columns that caused most losses.
    fn skipped_note(&self) -> Option<String> {
        let (skipped, rows) = (self.losses.skipped(), self.read);
        let share = skipped as f64 / rows.max(1) as f64;
        let plan = self.sketch.plan();
        let names: Vec<String> = plan
            .columns
            .iter()
            .cloned()
            .chain(plan.weighting.iter().map(|w| w.column.clone()))
            .collect();
        let costly = self.losses.by_column(&names);
        let named = costly.iter().take(NAMED).map(|(name, rows)| format!("{name} {rows}"));
        (share > MANY_SKIPPED).then(|| {
            let percent = 100.0 * share;
            let named: Vec<String> = named.collect();
            let more = if costly.len() > NAMED { ", …" } else { "" };
            format!(
                "{skipped} of {rows} rows are skipped as invalid ({percent:.1} %), by column: \
                 {}{more}",
                named.join(", ")
            )
        })
    }
}

/// Returns the device of a pass by name. The GPU compiler may be installed as a Python package, so
/// the folders of `sys.path` are searched for it.
pub fn device(py: Python<'_>, name: &str) -> PyResult<DeviceChoice> {
    let choice = DeviceChoice::from_name(name).map_err(exception)?;
    let path = py.import("sys")?.getattr("path")?;
    let folders = path.try_iter()?.filter_map(|folder| folder.ok()?.extract::<PathBuf>().ok());
    nysketch_cuda::look_in(folders.collect());
    Ok(choice)
}

/// Returns the column whose text is read with every row: the column of folds, or of the people whom
/// a plan protects.
fn key(sketch: &Sketch) -> Option<&str> {
    let folds = sketch.folds().and_then(|folds| folds.rule().key());
    folds.or(sketch.plan().people().map(|people| people.column.as_str()))
}

/// Checks that weights are given if and only if the plan has weights.
pub fn check_weights(plan: &Plan, given: bool) -> PyResult<()> {
    match (plan.weighting.is_some(), given) {
        (true, false) => Err(PyValueError::new_err("the plan was made with weights; pass weights")),
        (false, true) => Err(PyValueError::new_err(
            "the plan was made without weights; make one with weights, or leave them out",
        )),
        _ => Ok(()),
    }
}
