//! Private plans, and `Release`: sums with noise, which can be published.

use crate::error::{exception, in_keywords, os_error};
use crate::input::{Choice, Chosen as ChosenColumns, Extras, Input, Wanted};
use crate::natural::Natural;
use crate::options::{Chosen, OneOrMore};
use crate::plan::{PyPlan, reduced, save, warn_each};
use crate::results::json;
use crate::sketch::PySketch;
use nysketch::ledger::Ledgers;
use nysketch::privacy::{Budget, Mechanism, Release};
use nysketch::{Collect, Named, People, PlanParams, PrivateParams, Scale, make_plan};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::path::PathBuf;

/// Make a plan with only public information, for sketches that are to be released.
///
/// Parameters
/// ----------
/// bounds : dict of str to (float, float)
///     The columns to measure, each with the bounds to which its values are clipped.
/// public : array-like, path, or anything with the Arrow stream interface, optional
///     Public rows from which landmarks are chosen; by default landmarks cover the bounds. The
///     columns of an array are named c0, c1, …
/// release : Release, optional
///     An earlier release of the same rows, from which landmarks are chosen. Its cost is added to
///     that of later releases.
/// landmarks, clusters : int, optional
///     As in ``Plan.from_data``.
/// scale : {'none', 'standard', 'robust'}, optional
///     How columns are scaled, based on the public rows.
/// collect : str or list of str, optional
///     Sums to collect; 'cells' by default. Each kind takes part of the privacy budget.
/// radius : float, optional
///     Largest distance from its landmark at which a row counts in the sums of its cell.
/// max_rows_per : (str, int), optional
///     Treat all rows with the same text in a column as one person, and count at most this number
///     of them, as in ``("user_id", 10)``. By default single rows are protected.
/// seed : int, default=0
///
/// Returns
/// -------
/// Plan
///
/// Examples
/// --------
/// >>> import numpy as np, nysketch
/// >>> X = np.random.default_rng(0).normal(size=(20000, 2))
/// >>> plan = nysketch.private_plan({"c0": (-5, 5), "c1": (-5, 5)}, landmarks=100)
/// >>> release = nysketch.Release(plan.sketch(X), epsilon=1.0, delta=1e-6)
/// >>> release.estimate().fit_kmeans(3).centres.shape
/// (3, 2)
#[pyfunction]
#[pyo3(signature = (bounds, *, public=None, release=None, landmarks=None, clusters=None,
    scale=None, collect=None, radius=None, max_rows_per=None, seed=0))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn private_plan(
    py: Python<'_>,
    bounds: &Bound<'_, PyDict>,
    public: Option<&Bound<'_, PyAny>>,
    release: Option<&Bound<'_, PyRelease>>,
    landmarks: Option<Natural>,
    clusters: Option<Natural>,
    scale: Option<Chosen<Scale>>,
    collect: Option<OneOrMore<String>>,
    radius: Option<f64>,
    max_rows_per: Option<(String, Natural)>,
    #[pyo3(from_py_with = crate::natural::from_object)] seed: u64,
) -> PyResult<PyPlan> {
    let mut given = Vec::new();
    for (name, range) in bounds {
        let (low, high): (f64, f64) = range.extract()?;
        given.push((name.extract::<String>()?, low, high));
    }
    let mut private = PrivateParams::new(given);
    private.radius = radius;
    let people = max_rows_per.map(|(column, rows)| People::new(column, rows.0));
    private.people = people.transpose().map_err(exception)?;
    let mut params = PlanParams::default().seed(seed).scale(scale.map(|Chosen(scale)| scale));
    params.clusters = clusters.map(Natural::size);
    if let Some(count) = landmarks {
        params = params.landmarks(count.size());
    }
    if let Some(names) = collect {
        let names = names.into_vec();
        let collect = Collect::from_names(names.iter().map(String::as_str)).map_err(exception)?;
        params = params.collect(collect);
    }
    let made = match (public, release) {
        (Some(_), Some(_)) => {
            return Err(PyValueError::new_err("public and release cannot be given together"));
        }
        (Some(x), None) => {
            let columns = ChosenColumns::These(private.columns());
            let choice = Choice { columns, ..Choice::default() };
            let source = Input::open(x, Wanted::Choice(choice), Extras::default())?.source;
            let params = params.private(private).check().map_err(exception)?;
            py.detach(|| make_plan(&*source, &params, &()))
        }
        (None, release) => {
            let release = release.map(|release| &release.get().release);
            let (private, table) =
                nysketch::privacy::made_up(private, release, seed).map_err(exception)?;
            let params = params.private(private).check().map_err(exception)?;
            py.detach(|| make_plan(&table, &params, &()))
        }
    };
    Ok(made.map_err(exception)?.plan.into())
}

/// Sums with noise, which can be published.
///
/// Every outcome is at most exp(epsilon) times as likely with any one row as without it, plus
/// delta, and vice versa. The noise comes from the operating system, so there is no seed. Every
/// release of a sketch reveals more: a ledger, which the command shares, records each one, and a
/// warning shows what they reveal together.
///
/// Parameters
/// ----------
/// sketch : Sketch
///     A sketch made with a plan of ``private_plan``.
/// epsilon, delta : float
///     The privacy budget, including the release from which the plan was made, if any.
/// spend : dict of str to float, optional
///     Shares of the budget, in any unit: counts, sums and squares of cells, kernel, rows, totals,
///     products.
/// ledger : bool, default=True
///     Whether the ledger records the release. False is for experiments, whose releases are not
///     given away.
#[pyclass(name = "Release", module = "nysketch", frozen)]
pub struct PyRelease {
    release: Release,
}

impl From<Release> for PyRelease {
    fn from(release: Release) -> Self {
        PyRelease { release }
    }
}

#[pymethods]
impl PyRelease {
    #[new]
    #[pyo3(signature = (sketch, *, epsilon, delta, spend=None, ledger=true))]
    fn new(
        py: Python<'_>,
        sketch: &Bound<'_, PySketch>,
        epsilon: f64,
        delta: f64,
        spend: Option<&Bound<'_, PyDict>>,
        ledger: bool,
    ) -> PyResult<Self> {
        let mut shares = Vec::new();
        for (name, share) in spend.into_iter().flatten() {
            let name: String = name.extract()?;
            shares.push((Mechanism::from_name(&name).map_err(exception)?, share.extract()?));
        }
        let budget = Budget::new(epsilon, delta).map_err(exception)?;
        let sketch = sketch.get().get();
        if !ledger {
            let release = py.detach(|| Release::of(&sketch, budget, &shares)).map_err(exception)?;
            return Ok(release.into());
        }
        let ledgers = Ledgers::of_user().map_err(exception)?;
        let noted = py.detach(|| Release::noted(&sketch, budget, &shares, &ledgers));
        let (release, releases) = noted.map_err(exception)?;
        warn_each(py, releases.warning(release.terms()))?;
        Ok(release.into())
    }

    /// The ε of the privacy budget.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.release.budget().epsilon
    }

    /// The δ of the privacy budget.
    #[getter]
    fn delta(&self) -> f64 {
        self.release.budget().delta
    }

    /// Approximate number of rows: the sum of noisy counts.
    #[getter]
    fn rows(&self) -> u64 {
        self.release.rows()
    }

    /// Maximum number of rows of one person, if the plan protects people; None if it protects
    /// single rows.
    #[getter]
    fn person_rows(&self) -> Option<u64> {
        self.release.terms().person_rows
    }

    /// The privacy guarantee in words.
    #[getter]
    fn promise(&self) -> String {
        self.release.promise()
    }

    /// The cost of each kind of sum, and the standard deviation of its noise in units of its
    /// integers.
    #[getter]
    fn mechanisms<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = json(&self.release.summary())?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// Reconstruct a sketch that rows could have, as close to the noisy sums as their noise allows.
    /// Models are learned from the reconstruction, at no further privacy cost. It is not a sketch
    /// of rows: it cannot be merged, subtracted, compared or saved.
    ///
    /// Returns
    /// -------
    /// Sketch
    fn estimate(&self, py: Python<'_>) -> PyResult<PySketch> {
        py.detach(|| self.release.estimate()).map(PySketch::from).map_err(exception)
    }

    /// Write the release to a file, in the same format as the command.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        save(py, &path, || self.release.to_bytes())
    }

    /// Read a release from a file.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    ///
    /// Returns
    /// -------
    /// Release
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let bytes = std::fs::read(&path).map_err(|e| os_error(&e, &path))?;
        let release = Release::from_bytes(&bytes).map_err(|e| {
            PyValueError::new_err(format!("{}: {}", path.display(), in_keywords(&e.to_string())))
        })?;
        Ok(release.into())
    }

    /// Return the bytes of the release's file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.release.to_bytes())
    }

    /// Read a release from the bytes of its file.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Release::from_bytes(data).map(Self::from).map_err(exception)
    }

    fn __repr__(&self) -> String {
        let budget = self.release.budget();
        format!(
            "Release(epsilon={}, delta={:e}, rows≈{})",
            budget.epsilon,
            budget.delta,
            self.release.rows()
        )
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        reduced::<Self>(py, &self.release.to_bytes())
    }
}
