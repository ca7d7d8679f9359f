//! `Sketch`: exact sums over rows, and learning from them.

use crate::curve::PyCurve;
use crate::error::{exception, in_keywords, os_error};
use crate::mixture::{self, MixtureOptions};
use crate::model::PyModel;
use crate::natural::Natural;
use crate::options::{Chosen, named, rows_of};
use crate::pass::{self, How};
use crate::plan::{PyPlan, reduced, save, warn_each};
use crate::results::{html, result};
use crate::work::{SILENT, Shown, run, threads};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use nysketch::decoder::{estimated_risk, fit_curve};
use nysketch::inspect::FoldSummary;
use nysketch::theory::{TheoryParams, theory};
use nysketch::{
    Context, CovarianceKind, Error, FitParams, Shape, Sketch, Suitability, Sum, Task, fit,
};
use nysketch_core::kernel::nystrom::{CUTOFF, NystromMap};
use nysketch_core::numeric::fixed::{centred_sum, coordinate_value, power_of_two};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Exact sums over rows: a small object from which models are learned.
///
/// Sketches of the same plan add up (``a + b``) to the bytes of the sketch of all their rows, in
/// any order. Rows can be removed again (``a - b``).
///
/// Parameters
/// ----------
/// plan : Plan
///     The specification of the measurement. The new sketch has no rows.
///
/// Examples
/// --------
/// >>> import numpy as np, nysketch
/// >>> X = np.random.default_rng(0).normal(size=(1000, 3))
/// >>> plan = nysketch.Plan.from_data(X, landmarks=50)
/// >>> whole = plan.sketch(X)
/// >>> parts = plan.sketch(X[600:]) + plan.sketch(X[:600])
/// >>> parts == whole, parts.to_bytes() == whole.to_bytes()
/// (True, True)
/// >>> whole.fit_kmeans(4).centres.shape
/// (4, 3)
#[pyclass(name = "Sketch", module = "nysketch", frozen)]
pub struct PySketch {
    /// Locked only briefly, never while Python code runs.
    sketch: Mutex<Arc<Sketch>>,
}

impl From<Sketch> for PySketch {
    fn from(sketch: Sketch) -> Self {
        PySketch { sketch: Mutex::new(Arc::new(sketch)) }
    }
}

impl PySketch {
    /// Returns the current sketch.
    pub fn get(&self) -> Arc<Sketch> {
        self.sketch.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Returns the bytes of its file, with the retained rows of the plan or without.
    fn bytes(&self, embed_witnesses: bool) -> Vec<u8> {
        let sketch = self.get();
        if embed_witnesses {
            sketch.to_bytes()
        } else {
            (*sketch).clone().without_witnesses().to_bytes()
        }
    }

    /// Refuses a reconstruction, which is not a sketch of rows.
    fn check_exact(&self) -> PyResult<()> {
        match self.get().released() {
            None => Ok(()),
            Some(_) => Err(PyValueError::new_err(
                "an estimate from a release is no sketch; save the release itself",
            )),
        }
    }

    fn fit(&self, py: Python<'_>, params: FitParams, verbose: bool) -> PyResult<PyModel> {
        let sketch = self.get();
        let shown = Shown { what: fitting(params.task), verbose, rows: None };
        let model = run(py, shown, move |_| fit(&sketch, &params))?;
        warn_each(py, model.report.doubts(model.k()))?;
        Ok(PyModel { model: Arc::new(model) })
    }

    /// Checks that a fold exists, and returns its number.
    fn known_fold(&self, fold: Natural) -> PyResult<usize> {
        let folds = self.get().folds().map_or(0, |folds| folds.len());
        match fold.size() {
            fold if fold < folds => Ok(fold),
            fold => Err(PyValueError::new_err(format!("there is no fold {fold} of {folds}"))),
        }
    }

    /// Returns the sketch, or an error if it has no rows to average.
    fn filled(&self) -> PyResult<Arc<Sketch>> {
        let sketch = self.get();
        match sketch.rows() {
            0 => Err(PyValueError::new_err("the sketch has no rows")),
            _ => Ok(sketch),
        }
    }
}

/// Names the work for the progress display.
fn fitting(task: Task) -> &'static str {
    match task {
        Task::Kmeans => "fitting kmeans",
        Task::Kmedians => "fitting kmedians",
        Task::Gmm => "fitting gmm",
        Task::Pca => "fitting pca",
    }
}

/// Returns the task with this name, which must have a number of clusters.
fn clustering(name: &str) -> PyResult<Task> {
    match named::<Task>(name)? {
        Task::Pca => {
            Err(PyValueError::new_err("task must be one of kmeans, kmedians, gmm, got 'pca'"))
        }
        task => Ok(task),
    }
}

/// Returns an empty sketch with the plan and the folds of another.
fn like(sketch: &Sketch) -> Result<Sketch, Error> {
    match sketch.folds() {
        None => Ok(Sketch::empty(sketch.plan().clone())),
        Some(folds) => Sketch::empty_folds(sketch.plan().clone(), folds.rule().clone()),
    }
}

#[pymethods]
impl PySketch {
    #[new]
    fn new(plan: &PyPlan) -> Self {
        Sketch::empty(plan.plan.clone()).into()
    }

    /// Add rows. If an exception is raised, the sketch is unchanged.
    ///
    /// Parameters
    /// ----------
    /// X : array-like, or anything with the Arrow stream interface, or a function that returns it
    ///     The rows, read once, batch by batch; an array in GPU memory is read in place.
    /// weights : str or array-like, optional
    ///     Row weights, for a plan that was made with weights.
    /// skip_invalid : bool, default=False
    ///     Leave out invalid rows and count them, instead of raising.
    /// threads : int, optional
    ///     Number of threads; one per core by default.
    /// device : str, default='auto'
    ///     Where the sums are computed: 'cpu', 'cuda' or 'cuda:1', as for :meth:`Plan.sketch`.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    /// allow_empty : bool, default=False
    ///     Whether X may have no rows, such as an empty partition.
    ///
    /// Returns
    /// -------
    /// Sketch
    ///     The sketch itself.
    #[pyo3(signature = (X, *, weights=None, skip_invalid=false, threads=None, device="auto",
        verbose=false, allow_empty=false))]
    #[allow(non_snake_case, clippy::too_many_arguments, reason = "keywords of Python")]
    fn update<'py>(
        slf: Bound<'py, Self>,
        X: &Bound<'py, PyAny>,
        weights: Option<&Bound<'py, PyAny>>,
        skip_invalid: bool,
        threads: Option<Natural>,
        device: &str,
        verbose: bool,
        allow_empty: bool,
    ) -> PyResult<Bound<'py, Self>> {
        let empty = like(&slf.get().get()).map_err(exception)?;
        // The lock is not held during the pass, so that several threads can add rows at the same
        // time.
        let how = How { weights, skip_invalid, threads, device, verbose, allow_empty };
        let part = pass::sketch(empty, X, &how)?;
        let mut sketch = slf.get().sketch.lock().unwrap_or_else(|e| e.into_inner());
        Arc::make_mut(&mut sketch).merge(&part).map_err(exception)?;
        drop(sketch);
        Ok(slf)
    }

    fn __add__(&self, other: &Self) -> PyResult<Self> {
        let mut sum = (*self.get()).clone();
        sum.merge(&other.get()).map_err(exception)?;
        Ok(sum.into())
    }

    /// Supports ``sum``, which starts from 0.
    fn __radd__(&self, zero: i64) -> PyResult<Self> {
        match zero {
            0 => Ok((*self.get()).clone().into()),
            _ => Err(PyTypeError::new_err("only sketches can be added to a sketch")),
        }
    }

    fn __sub__(&self, other: &Self) -> PyResult<Self> {
        let mut difference = (*self.get()).clone();
        difference.subtract(&other.get()).map_err(exception)?;
        Ok(difference.into())
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.get() == other.get()
    }

    /// Learn centres with the smallest mean squared distance.
    ///
    /// Parameters
    /// ----------
    /// k : int
    ///     Number of centres.
    /// decoder : {'auto', 'cells', 'kernel', 'clompr', 'clomp'}, default='auto'
    ///     The decoder: 'cells' uses cell moments, and the others use kernel sums; 'clompr' is the
    ///     paper's decoder.
    /// bandwidth : float, optional
    ///     Bandwidth at which kernel sums are decoded; one of the bandwidths of the plan.
    /// separation, radius : float, optional
    ///     Constraints of 'clompr', in the coordinates of the plan: minimum distance between
    ///     centres, and maximum distance from the plan's centre.
    /// replicates : int, optional
    ///     Number of pursuits of 'clompr' and 'clomp'; the one that matches the sketch best is
    ///     kept. 5 by default.
    /// init : array-like of shape (k, n_columns), optional
    ///     The only initial centres, for 'cells'; by default they are drawn several times.
    /// seed : int, default=0
    ///     Seed of all random choices.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    ///
    /// Returns
    /// -------
    /// Model
    #[pyo3(signature = (k, *, decoder="auto", bandwidth=None, separation=None, radius=None,
        replicates=None, init=None, seed=0, verbose=false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn fit_kmeans(
        &self,
        py: Python<'_>,
        k: Natural,
        decoder: &str,
        bandwidth: Option<f64>,
        separation: Option<f64>,
        radius: Option<f64>,
        replicates: Option<Natural>,
        init: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = crate::natural::from_object)] seed: u64,
        verbose: bool,
    ) -> PyResult<PyModel> {
        let params = FitParams::new(Task::Kmeans, k.size())
            .decoder(named(decoder)?)
            .bandwidth(bandwidth)
            .constraints(separation, radius)
            .replicates(replicates.map(|n| n.size()))
            .init(init.map_or(Ok(Vec::new()), rows_of)?)
            .seed(seed);
        self.fit(py, params, verbose)
    }

    /// Learn centres with the smallest mean distance.
    ///
    /// Parameters
    /// ----------
    /// k : int
    ///     Number of centres.
    /// decoder : {'auto', 'cells', 'kernel', 'clompr', 'clomp'}, default='auto'
    ///     The decoder, as for ``fit_kmeans``.
    /// bandwidth : float, optional
    ///     Bandwidth at which kernel sums are decoded; one of the bandwidths of the plan.
    /// init : array-like of shape (k, n_columns), optional
    ///     The only initial centres, for 'cells'; by default they are drawn several times.
    /// seed : int, default=0
    ///     Seed of all random choices.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    ///
    /// Returns
    /// -------
    /// Model
    #[pyo3(signature = (k, *, decoder="auto", bandwidth=None, init=None, seed=0, verbose=false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn fit_kmedians(
        &self,
        py: Python<'_>,
        k: Natural,
        decoder: &str,
        bandwidth: Option<f64>,
        init: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = crate::natural::from_object)] seed: u64,
        verbose: bool,
    ) -> PyResult<PyModel> {
        let params = FitParams::new(Task::Kmedians, k.size())
            .decoder(named(decoder)?)
            .bandwidth(bandwidth)
            .init(init.map_or(Ok(Vec::new()), rows_of)?)
            .seed(seed);
        self.fit(py, params, verbose)
    }

    /// Learn a Gaussian mixture.
    ///
    /// Parameters
    /// ----------
    /// k : int
    ///     Number of components.
    /// decoder : {'auto', 'cells', 'kernel', 'clompr', 'clomp'}, default='auto'
    ///     The decoder, as for ``fit_kmeans``.
    /// bandwidth : float, optional
    ///     Bandwidth at which kernel sums are decoded; one of the bandwidths of the plan.
    /// known_covariance : float or array-like of shape (n_columns,) or (n_columns, n_columns),
    /// optional
    ///     Covariance of every component, if it is known: one variance of all columns in the
    ///     coordinates of the plan, or variances or a matrix in the units of the rows. Decoded from
    ///     kernel sums.
    /// covariance : {'full', 'tied', 'diag', 'spherical'}, optional
    ///     Type of the covariances; 'full' if there are four retained rows for each parameter of
    ///     the model, otherwise 'diag'. ``Model.covariance_type`` returns the type.
    /// min_variance : float, optional
    ///     Minimum variance of a component in any direction, as a share of the column's variance;
    ///     0.0001 by default.
    /// restarts : int, optional
    ///     Number of starts of EM; 36 by default, most of which are abandoned early.
    /// max_iterations : int, optional
    ///     Maximum number of steps of EM; 200 by default.
    /// tolerance : float, optional
    ///     EM ends when the mean log-likelihood grows by less than this in a step; 0.0001 by
    ///     default.
    /// init : array-like of shape (k, n_columns), optional
    ///     The only initial means; by default they are drawn several times.
    /// init_weights : array-like of shape (k,), optional
    ///     Initial weights, with ``init``.
    /// init_covariances : array-like of shape (k, n_columns) or (k, n_columns, n_columns), optional
    ///     Initial variances or matrices, with ``init``.
    /// separation, radius : float, optional
    ///     Constraints of 'clompr'.
    /// replicates : int, optional
    ///     Number of pursuits of 'clompr' and 'clomp'; the one that matches the sketch best is
    ///     kept. 5 by default.
    /// threads : int, optional
    ///     Number of threads; one per core by default. It does not change the result.
    /// seed : int, default=0
    ///     Seed of all random choices.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    ///
    /// Returns
    /// -------
    /// Model
    #[pyo3(signature = (k, *, decoder="auto", bandwidth=None, known_covariance=None,
        covariance=None, min_variance=None, restarts=None, max_iterations=None, tolerance=None,
        init=None, init_weights=None, init_covariances=None, separation=None, radius=None,
        replicates=None, seed=0, threads=None, verbose=false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn fit_gmm(
        &self,
        py: Python<'_>,
        k: Natural,
        decoder: &str,
        bandwidth: Option<f64>,
        known_covariance: Option<&Bound<'_, PyAny>>,
        covariance: Option<Chosen<CovarianceKind>>,
        min_variance: Option<f64>,
        restarts: Option<Natural>,
        max_iterations: Option<Natural>,
        tolerance: Option<f64>,
        init: Option<&Bound<'_, PyAny>>,
        init_weights: Option<&Bound<'_, PyAny>>,
        init_covariances: Option<&Bound<'_, PyAny>>,
        separation: Option<f64>,
        radius: Option<f64>,
        replicates: Option<Natural>,
        #[pyo3(from_py_with = crate::natural::from_object)] seed: u64,
        threads: Option<Natural>,
        verbose: bool,
    ) -> PyResult<PyModel> {
        let params = FitParams::new(Task::Gmm, k.size())
            .decoder(named(decoder)?)
            .bandwidth(bandwidth)
            .known_covariance(known_covariance.map(crate::options::known_covariance).transpose()?)
            .constraints(separation, radius)
            .replicates(replicates.map(|n| n.size()))
            .init(init.map_or(Ok(Vec::new()), rows_of)?)
            .init_weights(init_weights.map_or(Ok(Vec::new()), mixture::numbers)?)
            .init_covariances(init_covariances.map_or(Ok(Vec::new()), mixture::covariances)?)
            .seed(seed)
            .threads(self::threads(threads));
        let options =
            MixtureOptions { covariance, min_variance, restarts, max_iterations, tolerance };
        self.fit(py, options.set(params), verbose)
    }

    /// Learn principal components, exactly.
    ///
    /// Parameters
    /// ----------
    /// k : int
    ///     Number of components.
    ///
    /// Returns
    /// -------
    /// Model
    fn fit_pca(&self, py: Python<'_>, k: Natural) -> PyResult<PyModel> {
        self.fit(py, FitParams::new(Task::Pca, k.size()), false)
    }

    /// Learn a model for every k of a range, and suggest one.
    ///
    /// Parameters
    /// ----------
    /// low, high : int
    ///     Smallest and largest k.
    /// task : {'kmeans', 'kmedians', 'gmm'}, default='kmeans'
    ///     The task.
    /// decoder : {'auto', 'cells', 'kernel', 'clompr', 'clomp'}, default='auto'
    ///     The decoder, as for ``fit_kmeans``.
    /// covariance, min_variance, restarts, max_iterations, tolerance
    ///     Options of mixtures, as for ``fit_gmm``. The covariances have the same type for every k.
    /// seed : int, default=0
    ///     Seed of all random choices.
    /// threads : int, optional
    ///     Number of threads; one per core by default. It does not change the result.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    ///
    /// Returns
    /// -------
    /// KCurve
    ///     With ``ks``, ``risks``, for mixtures ``bics`` and ``icls``, ``models``, ``suggested``
    ///     (the elbow, or for mixtures the smallest BIC) and ``clear``.
    #[pyo3(signature = (low, high, *, task="kmeans", decoder="auto", covariance=None,
        min_variance=None, restarts=None, max_iterations=None, tolerance=None, seed=0,
        threads=None, verbose=false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn k_curve(
        &self,
        py: Python<'_>,
        low: Natural,
        high: Natural,
        task: &str,
        decoder: &str,
        covariance: Option<Chosen<CovarianceKind>>,
        min_variance: Option<f64>,
        restarts: Option<Natural>,
        max_iterations: Option<Natural>,
        tolerance: Option<f64>,
        #[pyo3(from_py_with = crate::natural::from_object)] seed: u64,
        threads: Option<Natural>,
        verbose: bool,
    ) -> PyResult<PyCurve> {
        let task = clustering(task)?;
        let (low, high) = (low.size(), high.size());
        if low > high {
            return Err(PyValueError::new_err(format!("low is {low}, above high, {high}")));
        }
        let params = FitParams::new(task, low)
            .decoder(named(decoder)?)
            .seed(seed)
            .threads(self::threads(threads));
        let options =
            MixtureOptions { covariance, min_variance, restarts, max_iterations, tolerance };
        let params = options.set(params);
        let sketch = self.get();
        let shown = Shown { what: fitting(task), verbose, rows: None };
        let curve = run(py, shown, move |_| fit_curve(&sketch, &params, low, high))?;
        Ok(PyCurve::new(curve))
    }

    /// Add confidence intervals to a model, from the folds of the sketch from which it was learned.
    ///
    /// The model is first iterated to convergence. Each fold is then left out in turn, and the
    /// model is learned again.
    ///
    /// Parameters
    /// ----------
    /// model : Model
    ///     A model learned from this sketch, which must have folds: ``plan.sketch(X, folds=16)``.
    /// confidence : float, default=0.95
    ///     Confidence level of the intervals.
    /// restarts : int, optional
    ///     Number of starts of EM in each new search, for mixtures; 36 by default.
    /// seed : int, default=0
    ///     Seed of all random choices.
    /// threads : int, optional
    ///     Number of threads; one per core by default. It does not change the result.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    ///
    /// Returns
    /// -------
    /// Model
    ///     The model with ``intervals``.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, nysketch
    /// >>> shifts = np.repeat([[0.0], [9.0]], 1000, axis=0)
    /// >>> X = np.random.default_rng(0).normal(size=(2000, 2)) + shifts
    /// >>> sketch = nysketch.Plan.from_data(X, landmarks=50).sketch(X, folds=16)
    /// >>> model = sketch.with_intervals(sketch.fit_kmeans(2))
    /// >>> low, high = model.intervals.weights[0]
    /// >>> low < 0.5 < high, model.intervals.stability
    /// (True, (1.0, 1.0))
    #[pyo3(signature = (model, *, confidence=0.95, restarts=None, seed=0, threads=None,
        verbose=false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn with_intervals(
        &self,
        py: Python<'_>,
        model: &PyModel,
        confidence: f64,
        restarts: Option<Natural>,
        #[pyo3(from_py_with = crate::natural::from_object)] seed: u64,
        threads: Option<Natural>,
        verbose: bool,
    ) -> PyResult<PyModel> {
        let (sketch, model) = (self.get(), (*model.model).clone());
        if model.columns != sketch.plan().columns {
            return Err(PyValueError::new_err("the model is of other columns than the sketch"));
        }
        let mut params = FitParams::new(model.task, model.k()).seed(seed);
        if let Shape::Mixture { covariance, .. } = &model.shape {
            params = params.covariance(*covariance).restarts(restarts.map(Natural::size));
            params = params.min_variance(model.report.min_variance);
        }
        let params = params.threads(self::threads(threads));
        let shown = Shown { what: fitting(params.task), verbose, rows: None };
        let model = run(py, shown, move |_| {
            Context::new(&sketch).with_intervals(model, &params, confidence)
        })?;
        Ok(PyModel { model: Arc::new(model) })
    }

    /// Estimate the held-out risk for every k, with the folds of the sketch.
    ///
    /// Landmarks and scale are fixed: they were chosen from all rows.
    ///
    /// Parameters
    /// ----------
    /// low, high : int
    ///     Smallest and largest k.
    /// task : {'kmeans', 'kmedians', 'gmm'}, default='kmeans'
    ///     The task.
    /// covariance, min_variance, restarts, max_iterations, tolerance
    ///     Options of mixtures, as for ``fit_gmm``.
    /// seed : int, default=0
    ///     Seed of all random choices.
    /// threads : int, optional
    ///     Number of threads; one per core by default. It does not change the result.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    ///
    /// Returns
    /// -------
    /// nysketch.results.CrossValidation
    ///     With ``points`` (``k``, ``risk`` and its standard ``error``), the indices ``best`` and
    ///     ``within_error``, ``folds`` and ``by``.
    #[pyo3(signature = (low, high, *, task="kmeans", covariance=None, min_variance=None,
        restarts=None, max_iterations=None, tolerance=None, seed=0, threads=None, verbose=false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn cross_validate<'py>(
        &self,
        py: Python<'py>,
        low: Natural,
        high: Natural,
        task: &str,
        covariance: Option<Chosen<CovarianceKind>>,
        min_variance: Option<f64>,
        restarts: Option<Natural>,
        max_iterations: Option<Natural>,
        tolerance: Option<f64>,
        #[pyo3(from_py_with = crate::natural::from_object)] seed: u64,
        threads: Option<Natural>,
        verbose: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let task = clustering(task)?;
        let options =
            MixtureOptions { covariance, min_variance, restarts, max_iterations, tolerance };
        let (low, high) = (low.size(), high.size());
        let params = FitParams::new(task, low).seed(seed).threads(self::threads(threads));
        let params = options.set(params);
        let sketch = self.get();
        let shown = Shown { what: fitting(task), verbose, rows: None };
        let found =
            run(py, shown, move |_| Context::new(&sketch).cross_validate(&params, low, high))?;
        result(py, "CrossValidation", &found)
    }

    /// The folds of the sketch, or None: ``count``, ``by`` (the column that assigns rows to folds,
    /// or None for all values of a row), and ``smallest`` and ``largest``, the numbers of rows of
    /// the smallest and largest fold.
    #[getter]
    fn folds<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        FoldSummary::of(&self.get()).map(|folds| result(py, "Result", &folds)).transpose()
    }

    /// Return the sketch of the rows of one fold.
    ///
    /// Parameters
    /// ----------
    /// fold : int
    ///     Counted from 0.
    ///
    /// Returns
    /// -------
    /// Sketch
    fn fold(&self, fold: Natural) -> PyResult<Self> {
        Ok(self.get().fold(self.known_fold(fold)?).into())
    }

    /// Return the sketch of all rows except those of one fold, by one exact subtraction.
    ///
    /// Parameters
    /// ----------
    /// fold : int
    ///     Counted from 0.
    ///
    /// Returns
    /// -------
    /// Sketch
    fn without_fold(&self, fold: Natural) -> PyResult<Self> {
        Ok(self.get().without_fold(self.known_fold(fold)?).into())
    }

    /// Return the sketch of the same rows without folds.
    ///
    /// Returns
    /// -------
    /// Sketch
    fn without_folds(&self) -> Self {
        self.get().without_folds().into()
    }

    /// Estimate the risk of a model on the rows of the sketch: mean squared distance, mean
    /// distance, or negative log-likelihood. Returns None if the sketch does not contain the
    /// necessary sums.
    ///
    /// Parameters
    /// ----------
    /// model : Model
    ///
    /// Returns
    /// -------
    /// float or None
    fn estimated_risk(&self, py: Python<'_>, model: &PyModel) -> PyResult<Option<f64>> {
        let (sketch, model) = (self.get(), model.model.clone());
        if model.columns != sketch.plan().columns {
            return Err(PyValueError::new_err("the model is of other columns than the sketch"));
        }
        run(py, SILENT, move |_| Ok(estimated_risk(&sketch, &model)))
    }

    /// Test whether a mixture explains the sketch: compare its residual at every bandwidth with the
    /// noise.
    ///
    /// Parameters
    /// ----------
    /// model : Model
    ///     A mixture (``fit_gmm``) of the sketch's columns.
    ///
    /// Returns
    /// -------
    /// nysketch.results.Explanation
    ///     With ``explained``, ``verdict`` and ``residuals`` (``bandwidth``, ``residual``,
    ///     ``floor``
    ///     and ``missed`` of each bandwidth).
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, nysketch
    /// >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    /// >>> sketch = nysketch.Plan.from_data(X, landmarks=50).sketch(X)
    /// >>> sketch.explain(sketch.fit_gmm(1)).verdict
    /// 'the model explains the sketch'
    fn explain<'py>(&self, py: Python<'py>, model: &PyModel) -> PyResult<Bound<'py, PyAny>> {
        let (sketch, model) = (self.get(), model.model.clone());
        let found = run(py, SILENT, move |_| Context::new(&sketch).explanation(&model))?;
        result(py, "Explanation", &found)
    }

    /// Estimate the quantities of the paper's theorems from the sketch.
    ///
    /// Parameters
    /// ----------
    /// k : int, default=10
    ///     Number of clusters of the models in the theorems.
    /// bandwidth : float, optional
    ///     One of the plan's bandwidths; the middle one by default.
    /// lambda_ : float, optional
    ///     λ of the theorems; the largest for which C = 2 C_F by default.
    /// delta : float, default=0.1
    ///     Probability with which the theorems may fail.
    /// known_variance : float, default=0.0
    ///     Variance of the clusters, for mixtures instead of k-means.
    /// secants : int, default=300
    ///     Number of pairs of models to sample.
    /// seed : int, optional
    ///     Seed of the sample; by default the seed of the plan.
    ///
    /// Returns
    /// -------
    /// nysketch.results.Theory
    #[pyo3(signature = (k=10, *, bandwidth=None, lambda_=None, delta=0.1, known_variance=0.0,
        secants=300, seed=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn theory<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = crate::natural::from_object)] k: u64,
        bandwidth: Option<f64>,
        lambda_: Option<f64>,
        delta: f64,
        known_variance: f64,
        #[pyo3(from_py_with = crate::natural::from_object)] secants: u64,
        seed: Option<Natural>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let sketch = self.get();
        let rung = bandwidth.map(|sigma2| sketch.plan().rung_of(sigma2)).transpose();
        let mut params = TheoryParams::new(Natural(k).size())
            .lambda(lambda_)
            .delta(delta)
            .known_variance(known_variance)
            .secants(Natural(secants).size());
        params.rung = rung.map_err(exception)?;
        params.seed = seed.map(|s| s.0);
        let found = run(py, SILENT, move |_| theory(&sketch, &params))?;
        result(py, "Theory", &found)
    }

    /// Write the sketch to a file, completely or not at all.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    /// embed_witnesses : bool, default=True
    ///     Whether to include the retained rows of the plan. Without them the file is smaller, and
    ///     :meth:`with_witnesses` restores them. Save the plan once if many sketches share it.
    #[pyo3(signature = (path, *, embed_witnesses=true))]
    fn save(&self, py: Python<'_>, path: PathBuf, embed_witnesses: bool) -> PyResult<()> {
        self.check_exact()?;
        save(py, &path, || self.bytes(embed_witnesses))
    }

    /// Add the retained rows of the plan to a sketch that was read from a file without them.
    ///
    /// Parameters
    /// ----------
    /// plan : Plan
    ///     The plan that the sketch was made with.
    ///
    /// Returns
    /// -------
    /// Sketch
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the plan is a different one.
    fn with_witnesses(&self, plan: &PyPlan) -> PyResult<Self> {
        let sketch = (*self.get()).clone().with_witnesses_of(&plan.plan).map_err(exception)?;
        Ok(sketch.into())
    }

    /// Read a sketch from a file.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    ///
    /// Returns
    /// -------
    /// Sketch
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let bytes = std::fs::read(&path).map_err(|e| os_error(&e, &path))?;
        let sketch = Sketch::from_bytes(&bytes).map_err(|e| {
            PyValueError::new_err(format!("{}: {}", path.display(), in_keywords(&e.to_string())))
        })?;
        Ok(PySketch::from(sketch))
    }

    /// Return the bytes of the sketch's file, in the same format as the command.
    ///
    /// Parameters
    /// ----------
    /// embed_witnesses : bool, default=True
    ///     Whether to include the retained rows of the plan.
    ///
    /// Returns
    /// -------
    /// bytes
    #[pyo3(signature = (*, embed_witnesses=true))]
    fn to_bytes<'py>(&self, py: Python<'py>, embed_witnesses: bool) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes(embed_witnesses))
    }

    /// Read a sketch from the bytes of its file.
    ///
    /// Parameters
    /// ----------
    /// data : bytes
    ///
    /// Returns
    /// -------
    /// Sketch
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        let sketch = Sketch::from_bytes(data).map_err(exception)?;
        Ok(PySketch::from(sketch))
    }

    /// The plan: the specification of the measurement.
    #[getter]
    fn plan(&self) -> PyPlan {
        self.get().plan().clone().into()
    }

    /// Number of rows, or the sum of their weights in the plan's unit.
    #[getter]
    fn rows(&self) -> u64 {
        self.get().rows()
    }

    /// Total weight of the rows; their number if they have no weights.
    #[getter]
    fn weight(&self) -> f64 {
        self.get().weight()
    }

    /// Number of rows left out as invalid.
    #[getter]
    fn skipped(&self) -> u64 {
        self.get().skipped()
    }

    /// Notes if the plan does not suit the rows. For a `part` of the rows for which the plan was
    /// made, columns may vary less.
    fn _plan_notes(&self, part: bool) -> Vec<String> {
        let notes = Suitability::of(&self.get()).notes(part);
        notes.iter().map(|note| in_keywords(note)).collect()
    }

    /// Mean kernel values at the landmarks (or cosines, followed by sines), shape (n_bandwidths,
    /// m); None if the plan collects no kernel sums.
    #[getter]
    fn kernel_means<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let sketch = self.filled()?;
        let plan = sketch.plan();
        if !plan.collect.kernel {
            return Ok(None);
        }
        let rungs = plan.bandwidths.len();
        let means = (0..rungs).flat_map(|r| sketch.feature_means(r)).collect();
        let shape = [rungs, plan.features_per_bandwidth()];
        Ok(Some(PyArray1::from_vec(py, means).reshape(shape)?))
    }

    /// Return the sketch of eq. (3) of the paper: the mean of the feature map over the rows.
    ///
    /// Parameters
    /// ----------
    /// bandwidth : float, optional
    ///     One of the plan's bandwidths; the middle one by default.
    ///
    /// Returns
    /// -------
    /// ndarray of shape (n_features,)
    ///     In the coordinates of ``Plan.transform``.
    #[pyo3(signature = (*, bandwidth=None))]
    fn embedding<'py>(
        &self,
        py: Python<'py>,
        bandwidth: Option<f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let sketch = self.filled()?;
        let plan = sketch.plan().clone();
        if !plan.collect.kernel {
            let message = "the plan keeps no kernel sums; collect 'kernel'";
            return Err(PyValueError::new_err(message));
        }
        let rung = match bandwidth {
            None => plan.bandwidths.len() / 2,
            Some(sigma2) => plan.rung_of(sigma2).map_err(exception)?,
        };
        if let Some(category) = plan.categories().first() {
            return Err(PyValueError::new_err(format!(
                "the feature map is one of numbers, but '{}' is a category",
                category.name
            )));
        }
        let values = run(py, SILENT, move |_| {
            let means = sketch.feature_means(rung);
            match sketch.plan().landmarks() {
                Some(points) => {
                    let plan = sketch.plan();
                    let kernel = plan.kernel.at(plan.bandwidths[rung]);
                    let map = NystromMap::new(points, kernel, CUTOFF)?;
                    Ok(map.whitening.times(&means))
                }
                None => {
                    let norm = (means.len() as f64 / 2.0).sqrt();
                    Ok(means.iter().map(|x| x / norm).collect())
                }
            }
        })?;
        Ok(PyArray1::from_vec(py, values))
    }

    /// Number of rows nearest to each landmark, shape (m,); None if the plan collects no cells.
    #[getter]
    fn cell_rows<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<i64>>> {
        let sketch = self.get();
        let rows = sketch.sums()[Sum::CellRows].iter().map(|n| *n as i64).collect();
        sketch.plan().collect.cells.then(|| PyArray1::from_vec(py, rows))
    }

    /// Number of rows of each cell with each level, by category, shape (m, levels). The last two
    /// levels are '(other)' and '(missing)'. Empty if the plan collects no cells.
    #[getter]
    fn cell_levels<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<BTreeMap<String, Bound<'py, PyArray2<i64>>>> {
        let sketch = self.get();
        let recipe = &sketch.plan().recipe;
        let mut found = BTreeMap::new();
        if !sketch.plan().collect.cells || recipe.categories.is_empty() {
            return Ok(found);
        }
        let (counts, all) = (&sketch.sums()[Sum::CellLevels], recipe.levels());
        for (category, start) in recipe.categories.iter().zip(recipe.level_offsets()) {
            let of_cell = |cell: &[i128]| cell[start..start + category.len()].to_vec();
            let rows: Vec<i64> =
                counts.chunks_exact(all).flat_map(of_cell).map(|n| n as i64).collect();
            let shape = [counts.len() / all, category.len()];
            found.insert(category.name.clone(), PyArray1::from_vec(py, rows).reshape(shape)?);
        }
        Ok(found)
    }

    /// Mean of each cell over the rows with a value, shape (m, n_columns), NaN if there are none;
    /// None if the plan collects no cells.
    #[getter]
    fn cell_means<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        self.cell_values(py, |sketch, cell, j, rows| {
            let frame = &sketch.plan().frame;
            let sum = sketch.sums()[Sum::CellSum][cell * frame.dims() + j];
            frame.centre[j]
                + frame.scale[j] * coordinate_value(sum, frame.exponent[j]) / rows as f64
        })
    }

    /// Variance of each column in each cell, shape (m, n_columns), NaN for a cell without rows;
    /// None if the plan collects no cells.
    #[getter]
    fn cell_variances<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        self.cell_values(py, |sketch, cell, j, rows| {
            let (frame, sums) = (&sketch.plan().frame, sketch.sums());
            let at = cell * frame.dims() + j;
            let (sum, square) = (sums[Sum::CellSum][at], sums[Sum::CellSquare][at]);
            let unit = frame.scale[j] * power_of_two(frame.exponent[j]);
            centred_sum(square, sum, sum, rows).max(0.0) * unit * unit / rows as f64
        })
    }

    /// Mean of every column; None if the plan collects neither moments nor cells.
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let sketch = self.filled()?;
        let frame = &sketch.plan().frame;
        let means = sketch.coordinate_means();
        Ok(means.map(|y| PyArray1::from_vec(py, frame.widen_coordinates(&y))))
    }

    /// Population covariance of the columns over complete rows; None if the plan collects no
    /// moments.
    #[getter]
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let sketch = self.filled()?;
        let (plan, sums) = (sketch.plan(), sketch.sums());
        if !plan.collect.moments {
            return Ok(None);
        }
        let rows = if plan.is_partial() { Sum::Complete } else { Sum::Rows };
        let (d, n) = (plan.dims(), sums[rows][0]);
        let unit = |j: usize| plan.frame.scale[j] * power_of_two(plan.frame.exponent[j]);
        let entry = |i: usize| {
            let (high, low) = ((i / d).max(i % d), (i / d).min(i % d));
            let product = sums[Sum::Outer][high * (high + 1) / 2 + low];
            centred_sum(product, sums[Sum::Sum][high], sums[Sum::Sum][low], n) / n as f64
                * unit(high)
                * unit(low)
        };
        Ok(Some(PyArray1::from_vec(py, (0..d * d).map(entry).collect()).reshape([d, d])?))
    }

    /// Upper bound on the share of the data that the landmarks do not represent, for each
    /// bandwidth, between 0 and 1; None if the plan has no landmarks or collects no kernel sums.
    #[getter]
    fn missed<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let missed = self.filled()?.missed();
        Ok((!missed.is_empty()).then(|| PyArray1::from_vec(py, missed)))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html("sketch", slf)
    }

    fn __repr__(&self) -> String {
        let sketch = self.get();
        let skipped = match sketch.skipped() {
            0 => String::new(),
            n => format!(", skipped={n}"),
        };
        let d = sketch.plan().dims();
        // Weights in whole units mean little to users, so the total weight is shown.
        let rows = match sketch.plan().weighting {
            Some(_) => format!("weight={}", shortened(sketch.weight())),
            None => format!("rows={}", sketch.rows()),
        };
        let points = sketch.plan().features.points().len();
        let name = if sketch.plan().landmarks().is_some() { "landmarks" } else { "frequencies" };
        format!("Sketch({rows}{skipped}, columns={d}, {name}={points})")
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        reduced::<Self>(py, &self.get().to_bytes())
    }
}

/// Formats a number with at most two decimals.
fn shortened(x: f64) -> String {
    if x == x.round() { format!("{x}") } else { format!("{x:.2}") }
}

impl PySketch {
    fn cell_values<'py>(
        &self,
        py: Python<'py>,
        value: impl Fn(&Sketch, usize, usize, i128) -> f64,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let sketch = self.get();
        if !sketch.plan().collect.cells {
            return Ok(None);
        }
        let d = sketch.plan().dims();
        let rows = &sketch.sums()[Sum::CellRows];
        // Rows with a missing value are not in the sums of this column.
        let absent = |i: usize| {
            if sketch.plan().is_partial() { sketch.sums()[Sum::CellAbsent][i] } else { 0 }
        };
        let values = (0..rows.len() * d)
            .map(|i| match rows[i / d] - absent(i) {
                0 => f64::NAN,
                n => value(&sketch, i / d, i % d, n),
            })
            .collect();
        Ok(Some(PyArray1::from_vec(py, values).reshape([rows.len(), d])?))
    }
}
