//! `Plan`: the specification of the measurement.

use crate::error::{exception, in_keywords, os_error};
use crate::input::{self, Extras, Input, Wanted};
use crate::map::map_rows;
use crate::natural::Natural;
use crate::options::{Chosen, Dates, Holes, Landmarks, OneOrMore, PlanOptions, invalid};
use crate::pass::{self, How, check_weights};
use crate::results::html;
use crate::sketch::PySketch;
use crate::work::{Shown, run, threads};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use nysketch::sketching::DEFAULT_GROUPS;
use nysketch::{
    Block, Category, Error, FeatureKind, Features, FoldBy, FoldRule, GroupParams, Groups, Kernel,
    Plan, PlanReport, Planned, Points, RowSource, Sampling, Scale, Sketch, SketchParams, Step,
    make_plan,
};
use nysketch_core::kernel::fourier;
use nysketch_core::kernel::nystrom::{CUTOFF, NystromMap};
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The specification of the measurement: landmarks (or frequencies), bandwidths and scaling.
///
/// A plan is made once, from all rows or some of them, and used for every part of the data.
/// Sketches of the same plan can be added. Make a plan with :meth:`Plan.from_data`.
///
/// Examples
/// --------
/// >>> import numpy as np, nysketch
/// >>> X = np.random.default_rng(0).normal(size=(1000, 3))
/// >>> plan = nysketch.Plan.from_data(X, landmarks=50)
/// >>> plan
/// Plan(columns=3, landmarks=50, sampling='dsquared', bandwidths=3)
/// >>> plan.sketch(X).rows
/// 1000
#[pyclass(name = "Plan", module = "nysketch", frozen, eq)]
pub struct PyPlan {
    pub plan: Arc<Plan>,
    /// The last feature map, with its bandwidth.
    map: Mutex<Option<(f64, Arc<NystromMap>)>>,
}

impl From<Arc<Plan>> for PyPlan {
    fn from(plan: Arc<Plan>) -> Self {
        PyPlan { plan, map: Mutex::new(None) }
    }
}

impl From<Plan> for PyPlan {
    fn from(plan: Plan) -> Self {
        Arc::new(plan).into()
    }
}

impl PartialEq for PyPlan {
    fn eq(&self, other: &Self) -> bool {
        self.plan == other.plan
    }
}

/// Converts a number of folds. The library refuses numbers that are too large.
fn fold_count(count: Natural) -> u32 {
    u32::try_from(count.size()).unwrap_or(u32::MAX)
}

#[pymethods]
impl PyPlan {
    /// Make a plan from rows.
    ///
    /// Reads the rows once for statistics and a uniform sample. Reads them again for D² landmarks
    /// if there are more rows than the sample holds.
    ///
    /// Parameters
    /// ----------
    /// X : array-like, path, object with the Arrow stream interface, or a function that returns it
    ///     The rows: a NumPy array; a pyarrow, polars, pandas or duckdb table; a pyarrow dataset or
    ///     a polars lazy frame, which may be larger than memory; a file, folder or pattern such as
    ///     ``'days/*.parquet'``, a list of them, or :class:`Files`. A stream that can be read only
    ///     once is not sufficient; pass a function that opens it.
    /// landmarks : int or 'auto', optional
    ///     Number of landmarks; by default 400 and at least ten per cluster, or all distinct rows
    ///     if there are fewer. 'auto' chooses from the data.
    /// clusters : int, optional
    ///     Number of clusters that will be learned.
    /// sampling : {'dsquared', 'uniform', 'leverage', 'greedy', 'rpcholesky'}, optional
    ///     The method of choosing landmarks.
    /// leverage_lambda : float, optional
    ///     λ of leverage sampling as in the paper: the number of landmarks is random.
    /// landmarks_from : array-like or path, optional
    ///     Your own landmarks, one per row.
    /// features : {'nystrom', 'fourier', 'adapted-fourier'}, optional
    ///     Kernel values at landmarks (the default), or random Fourier features with normal
    ///     frequencies or with frequencies of adapted lengths.
    /// frequencies : int, optional
    ///     Number of random frequencies; 200 by default.
    /// kernel : {'gaussian', 'laplace'}, optional
    ///     The kernel that is summed at landmarks; 'gaussian' by default.
    /// bandwidth : float or sequence of float, optional
    ///     Kernel bandwidths σ²; chosen from the sample by default.
    /// scale : {'none', 'standard', 'robust'}, optional
    ///     Whether numeric columns are divided by their standard deviation, or by the width of
    ///     their middle half. By default they are not scaled, unless there are categories or dates,
    ///     which have no common unit with other columns.
    /// categorical : str or sequence of str, optional
    ///     Columns to read as categories, whatever their type and number of levels. The 1,000 most
    ///     frequent levels are kept, and the others count as one. By default, text with at most 50
    ///     distinct values is a category.
    /// numeric : str or sequence of str, optional
    ///     Columns to read as numbers, even if they look like an id.
    /// dates : str, sequence of str, or dict of str to parts, optional
    ///     Columns of dates and times to read, and the parts to measure: any of 'time', 'hour',
    ///     'weekday' and 'month'; by default the first three.
    /// missing : {'auto', 'error', 'skip', 'partial'}, default='auto'
    ///     How rows with missing values are treated: 'error' raises, 'skip' leaves them out, and
    ///     with 'partial' they contribute the values they have. 'auto' is 'partial' if planning
    ///     finds missing values, and 'error' otherwise.
    /// log : str or sequence of str, optional
    ///     Columns to measure by their logarithm, ``sign(x) * log(1 + abs(x))``, for skewed
    ///     amounts.
    /// weight_columns : dict of str to float, optional
    ///     Weights of columns in squared distances; 1 by default.
    /// unit : str or sequence of str, optional
    ///     Vectors to scale to unit length in every row, for clusters by direction. '*' means all
    ///     numeric columns.
    /// sample_rows : int or 'all', optional
    ///     Number of rows in the sample from which landmarks are chosen; by default 20,000, or four
    ///     times the number of landmarks if that is larger. Samples of more than 16.8 million
    ///     values are reduced, down to twice the number of landmarks.
    /// witnesses : int, optional
    ///     Number of retained rows: rows of the sample, drawn uniformly, that the plan keeps. They
    ///     show mixtures the shape of clusters. By default 5,000, or all rows if there are fewer; 0
    ///     for none. A plan with given landmarks or without cells keeps none.
    /// collect : sequence of {'kernel', 'cells', 'moments'}, optional
    ///     The sums to collect; by default cells, kernel sums up to 4,000 landmarks, and moments up
    ///     to 64 columns.
    /// columns : sequence of str or 'all', optional
    ///     Columns to read: names, ranges ``'x1..x9'`` and patterns ``'temp*'``; by default the
    ///     columns of numbers or text. With 'all' every column is read, and an unsuitable one is an
    ///     error.
    /// exclude : str or sequence of str, optional
    ///     Columns to leave out, in the same form.
    /// weights : str or array-like, optional
    ///     Row weights: the name of a column, or one number per row.
    /// weight_unit : float, optional
    ///     Weights are rounded to whole multiples of this unit; by default 1 if all weights are
    ///     whole numbers, otherwise a small power of two.
    /// skip_invalid : bool, default=False
    ///     Leave out rows with NaN, infinity or null, instead of raising.
    /// seed : int, default=0
    ///     The same rows, order and seed give the same plan.
    /// threads : int, optional
    ///     Number of threads; one per core by default. It does not change the plan.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    /// warn : bool, default=True
    ///     Whether notes on the data, such as columns with very different spreads, become warnings.
    ///     A loss of precision always does.
    ///
    /// Returns
    /// -------
    /// Plan
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a row is invalid or a parameter is out of range. Rows are counted from 0.
    #[staticmethod]
    #[pyo3(signature = (X, *, landmarks=None, clusters=None, sampling=None, leverage_lambda=None,
        landmarks_from=None, features=None, frequencies=None, kernel=None, bandwidth=None,
        scale=None, categorical=None, numeric=None, dates=None, missing=None, log=None,
        weight_columns=None, unit=None, sample_rows=None, witnesses=None, collect=None,
        columns=None, exclude=None, weights=None, weight_unit=None, skip_invalid=false, seed=0,
        threads=None, verbose=false, warn=true))]
    #[allow(non_snake_case, clippy::too_many_arguments, reason = "keywords of Python")]
    fn from_data(
        X: &Bound<'_, PyAny>,
        landmarks: Option<Landmarks>,
        clusters: Option<Natural>,
        sampling: Option<Chosen<Sampling>>,
        leverage_lambda: Option<f64>,
        landmarks_from: Option<Bound<'_, PyAny>>,
        features: Option<Chosen<FeatureKind>>,
        frequencies: Option<Natural>,
        kernel: Option<Chosen<Kernel>>,
        bandwidth: Option<OneOrMore<f64>>,
        scale: Option<Chosen<Scale>>,
        categorical: Option<OneOrMore<String>>,
        numeric: Option<OneOrMore<String>>,
        dates: Option<Dates>,
        missing: Option<Chosen<Holes>>,
        log: Option<OneOrMore<String>>,
        weight_columns: Option<BTreeMap<String, f64>>,
        unit: Option<OneOrMore<String>>,
        sample_rows: Option<Bound<'_, PyAny>>,
        witnesses: Option<Natural>,
        collect: Option<OneOrMore<String>>,
        columns: Option<OneOrMore<String>>,
        exclude: Option<OneOrMore<String>>,
        weights: Option<&Bound<'_, PyAny>>,
        weight_unit: Option<f64>,
        skip_invalid: bool,
        #[pyo3(from_py_with = crate::natural::from_object)] seed: u64,
        threads: Option<Natural>,
        verbose: bool,
        warn: bool,
    ) -> PyResult<Self> {
        let columns = match columns {
            None => input::Chosen::Usual,
            Some(OneOrMore::One(name)) if name == "all" => input::Chosen::All,
            Some(OneOrMore::One(name)) => {
                let message = format!("columns must be names in a list, or 'all', got '{name}'");
                return Err(PyValueError::new_err(message));
            }
            Some(OneOrMore::More(names)) if names.is_empty() => {
                return Err(PyValueError::new_err("columns must name at least one"));
            }
            Some(OneOrMore::More(names)) => input::Chosen::These(names),
        };
        let named = match &columns {
            input::Chosen::These(names) => names.clone(),
            _ => Vec::new(),
        };
        let whole = columns == input::Chosen::All;
        let options = PlanOptions {
            named,
            categorical,
            numeric,
            dates,
            missing,
            log,
            weight_columns,
            unit,
            landmarks,
            clusters,
            sampling,
            leverage_lambda,
            landmarks_from,
            features: features.unwrap_or(Chosen(FeatureKind::default())),
            frequencies,
            kernel,
            bandwidth,
            scale,
            sample_rows,
            witnesses,
            collect,
            weight_unit,
            skip_invalid,
            seed: Natural(seed),
        };
        let py = X.py();
        let choice = options.choice(columns, exclude.map_or(Vec::new(), OneOrMore::into_vec));
        let (skip_invalid, allow_missing) = (options.skips(), options.allows_missing());
        let extras = Extras { skip_invalid, allow_missing, ..Extras::weights(weights)? };
        let input = Input::open(X, Wanted::Choice(choice), extras)?;
        let source = input.source.clone();
        let mut params = options.params(
            Some(source.columns()),
            |patterns| source.matching(patterns),
            input.weight_column.clone(),
            self::threads(threads),
        )?;
        // Columns that are identified by position must not be left out.
        if whole || input.by_position {
            let categories = source.categories().iter().map(|c| &c.name);
            params.named = source.columns().iter().chain(categories).cloned().collect();
        }
        let params = params.leave_out_ids(!input.by_position).check().map_err(exception)?;
        let shown = Shown { what: "planning", verbose, rows: input.rows };
        let Planned { plan, report } = run(py, shown, move |watch| {
            let planned = make_plan(&*source, &params, watch)?;
            let by_position = whole || input.by_position;
            match by_position.then(|| left_out(&planned, &*source)).flatten() {
                Some(message) => Err(Error::source(message)),
                None => Ok(planned),
            }
        })?;
        self::warn(py, &report, &input.notes, warn)?;
        Ok(plan.into())
    }

    /// Make a sketch of rows.
    ///
    /// Parameters
    /// ----------
    /// X : array-like, path, object with the Arrow stream interface, or a function that returns it
    ///     The rows, read once, batch by batch. Columns are found by name, or by position if X has
    ///     no names. An array in GPU memory is read in place.
    /// weights : str or array-like, optional
    ///     Row weights, for a plan that was made with weights.
    /// skip_invalid : bool, default=False
    ///     Leave out invalid rows and count them, instead of raising.
    /// threads : int, optional
    ///     Number of threads; one per core by default. It does not change the sketch.
    /// device : str, default='auto'
    ///     Where the sums are computed: 'cpu', 'cuda' for all GPUs, or 'cuda:1' for one of them.
    ///     'auto' uses the GPU that holds X, or a GPU if that saves time. The sketch is the same in
    ///     every case.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    /// allow_empty : bool, default=False
    ///     Whether X may have no rows, such as an empty partition. Otherwise it is an error,
    ///     because an exhausted stream looks the same.
    /// folds : int, optional
    ///     Also keep the sums of this number of folds, 2 to 64, for ``with_intervals`` and
    ///     ``cross_validate``. They take that many times the space of the sums.
    /// fold_by : str, optional
    ///     Column of X that assigns rows to folds: rows with the same value are in the same fold.
    ///     By default all values of a row decide, so that equal rows are in the same fold.
    ///
    /// Returns
    /// -------
    /// Sketch
    #[pyo3(signature = (X, *, weights=None, skip_invalid=false, threads=None, device="auto",
        verbose=false, allow_empty=false, folds=None, fold_by=None))]
    #[allow(non_snake_case, clippy::too_many_arguments, reason = "keywords of Python")]
    fn sketch(
        &self,
        X: &Bound<'_, PyAny>,
        weights: Option<&Bound<'_, PyAny>>,
        skip_invalid: bool,
        threads: Option<Natural>,
        device: &str,
        verbose: bool,
        allow_empty: bool,
        folds: Option<Natural>,
        fold_by: Option<String>,
    ) -> PyResult<PySketch> {
        let empty = match (folds, fold_by) {
            (None, None) => Sketch::empty(self.plan.clone()),
            (None, Some(_)) => {
                return Err(PyValueError::new_err("fold_by needs folds, such as folds=16"));
            }
            (Some(count), by) => {
                let rule =
                    FoldRule::new(fold_count(count), by.map_or(FoldBy::Content, FoldBy::Key));
                let empty = rule.and_then(|rule| Sketch::empty_folds(self.plan.clone(), rule));
                empty.map_err(exception)?
            }
        };
        let how = How { weights, skip_invalid, threads, device, verbose, allow_empty };
        Ok(pass::sketch(empty, X, &how)?.into())
    }

    /// Make one sketch for each value of a column, in one reading.
    ///
    /// Parameters
    /// ----------
    /// X : path, or anything with the Arrow stream interface, or a function that returns it
    ///     The rows, read once, batch by batch.
    /// by : str
    ///     The column whose values, as text, group the rows.
    /// weights : str or array-like, optional
    ///     Row weights, for a plan that was made with weights.
    /// skip_invalid : bool, default=False
    ///     Leave out invalid rows and rows without a group, instead of raising.
    /// max_groups : int, optional
    ///     Maximum number of distinct values, 1,000 by default; more are an error. Each group takes
    ///     the memory of a sketch.
    /// threads : int, optional
    ///     Number of threads; one per core by default.
    /// device : str, default='auto'
    ///     Where the sums are computed: 'cpu', 'cuda' or 'cuda:1', as for :meth:`sketch`.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    /// folds : int, optional
    ///     Also keep the sums of this number of folds of each group.
    ///
    /// Returns
    /// -------
    /// dict of str to Sketch
    #[pyo3(signature = (X, by, *, weights=None, skip_invalid=false, max_groups=None, threads=None,
        device="auto", verbose=false, folds=None))]
    #[allow(non_snake_case, clippy::too_many_arguments, reason = "keywords of Python")]
    fn sketch_groups(
        &self,
        X: &Bound<'_, PyAny>,
        by: String,
        weights: Option<&Bound<'_, PyAny>>,
        skip_invalid: bool,
        max_groups: Option<Natural>,
        threads: Option<Natural>,
        device: &str,
        verbose: bool,
        folds: Option<Natural>,
    ) -> PyResult<BTreeMap<String, PySketch>> {
        check_weights(&self.plan, weights.is_some())?;
        let extras = Extras {
            key: Some(by.clone()),
            skip_invalid,
            allow_missing: self.plan.recipe.least_present.is_some(),
            ..Extras::weights(weights)?
        };
        let input = Input::open(X, Wanted::recipe(&self.plan.recipe), extras)?;
        let (choice, threads) = (pass::device(X.py(), device)?, self::threads(threads));
        let params = SketchParams::default().threads(threads).invalid(invalid(skip_invalid));
        let limit = max_groups.map_or(DEFAULT_GROUPS, Natural::size);
        let shown = Shown { what: "sketching", verbose, rows: input.rows };
        let plan = self.plan.clone();
        let (groups, unused) = run(X.py(), shown, move |watch| {
            let (engine, note) = choice.engine(&plan, input.rows, threads, true)?;
            let group = GroupParams::new(&by).limit(limit).folds(folds.map(fold_count));
            let groups = Groups::of(&plan, &*input.source, group, params.engine(engine), watch)?;
            Ok((groups, note))
        })?;
        let rounded = self.plan.weighting.as_ref().and_then(|w| groups.rounding.note(w));
        warn_each(X.py(), unused.into_iter().chain(rounded))?;
        let sketches = groups.sketches.into_iter();
        Ok(sketches.map(|(key, sketch)| (key.to_string(), sketch.into())).collect())
    }

    /// Return a sketch without rows, to which others can be added.
    ///
    /// Returns
    /// -------
    /// Sketch
    fn empty(&self) -> PySketch {
        Sketch::empty(self.plan.clone()).into()
    }

    /// Apply the feature map of eq. (8) of the paper, or eq. (5) for Fourier features, to each row.
    ///
    /// Inner products of the results approximate the Gaussian kernel. Their mean over the rows is
    /// the sketch of eq. (3).
    ///
    /// Parameters
    /// ----------
    /// X : array-like, path or Arrow
    ///     The rows.
    /// bandwidth : float, optional
    ///     σ²; the middle one of the plan by default.
    /// threads : int, optional
    ///     Number of threads; one per core by default.
    ///
    /// Returns
    /// -------
    /// ndarray of shape (n_rows, n_features)
    #[pyo3(signature = (X, *, bandwidth=None, threads=None))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn transform<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        bandwidth: Option<f64>,
        threads: Option<Natural>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let sigma2 = self.bandwidth(bandwidth)?;
        let map = self.map(X.py(), sigma2)?;
        let input = Input::open(X, Wanted::recipe(&self.plan.recipe), Extras::default())?;
        let (plan, threads) = (self.plan.clone(), self::threads(threads));
        let width = self.width(map.as_deref());
        let (rows, values) = run(X.py(), crate::work::SILENT, move |watch| {
            let each = |block: &Block, out: &mut Vec<f64>| {
                let coordinates = block.rows().map(|(_, row, _)| plan.frame.coordinates(row));
                match &map {
                    Some(map) => {
                        let kernels: Vec<Vec<f64>> =
                            coordinates.map(|y| map.kernel_vector(&y)).collect();
                        out.extend(map.whitening.times_each(&kernels).into_iter().flatten());
                    }
                    None => coordinates.for_each(|y| {
                        out.extend(fourier::features(plan.features.points(), sigma2, &y));
                    }),
                }
            };
            let unusable = |row: &[f64], _: &[u32]| row.iter().position(|x| !x.is_finite());
            map_rows(&input, (&*plan).into(), threads, watch, width, Some(&unusable), each)
        })?;
        PyArray1::from_vec(X.py(), values).reshape([rows, width])
    }

    /// Return the number of features of :meth:`transform`: the rank of the kernel matrix of the
    /// landmarks.
    ///
    /// Parameters
    /// ----------
    /// bandwidth : float, optional
    ///     σ²; the middle one of the plan by default.
    ///
    /// Returns
    /// -------
    /// int
    #[pyo3(signature = (*, bandwidth=None))]
    fn n_features(&self, py: Python<'_>, bandwidth: Option<f64>) -> PyResult<usize> {
        let sigma2 = self.bandwidth(bandwidth)?;
        Ok(self.width(self.map(py, sigma2)?.as_deref()))
    }

    /// Write the plan to a file, completely or not at all.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the retained rows of the plan are not available, because the plan is from the file of
    ///     a sketch without them.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        if self.plan.lacks_witnesses() {
            let message = "the retained rows of this plan are elsewhere; the file that it was \
                saved to has them";
            return Err(PyValueError::new_err(message));
        }
        save(py, &path, || self.plan.to_bytes())
    }

    /// Read a plan, or the plan of a sketch, from a file.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    ///
    /// Returns
    /// -------
    /// Plan
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let bytes = std::fs::read(&path).map_err(|e| os_error(&e, &path))?;
        Self::decode(&bytes)
            .map_err(|message| PyValueError::new_err(format!("{}: {message}", path.display())))
    }

    /// Return the bytes of the plan's file.
    ///
    /// Parameters
    /// ----------
    /// embed_witnesses : bool, default=True
    ///     Whether to include the retained rows. Without them the plan is equal and smaller, which
    ///     suffices for machines that only sketch.
    ///
    /// Returns
    /// -------
    /// bytes
    #[pyo3(signature = (*, embed_witnesses=true))]
    fn to_bytes<'py>(&self, py: Python<'py>, embed_witnesses: bool) -> Bound<'py, PyBytes> {
        let bytes = if embed_witnesses {
            self.plan.to_bytes()
        } else {
            self.plan.without_witness_rows().to_bytes()
        };
        PyBytes::new(py, &bytes)
    }

    /// Read a plan, or the plan of a sketch, from the bytes of its file.
    ///
    /// Parameters
    /// ----------
    /// data : bytes
    ///
    /// Returns
    /// -------
    /// Plan
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Self::decode(data).map_err(PyValueError::new_err)
    }

    /// Names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.plan.columns.clone()
    }

    /// Columns of the table that are read: numeric columns, followed by categories.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        let categories = self.plan.categories().iter().map(|c| c.name.clone());
        self.plan.recipe.inputs().into_iter().chain(categories).collect()
    }

    /// The levels of each category, by decreasing number of rows. Other levels count as '(other)',
    /// and missing values as '(missing)'.
    #[getter]
    fn categories(&self) -> BTreeMap<String, Vec<String>> {
        self.plan.categories().iter().map(|c| (c.name.clone(), c.levels.clone())).collect()
    }

    /// The level of each landmark in each category.
    #[getter]
    fn landmark_levels(&self) -> BTreeMap<String, Vec<String>> {
        let categories = self.plan.categories();
        let codes = |k: usize| self.plan.landmark_levels.iter().skip(k).step_by(categories.len());
        let levels = |(k, c): (usize, &Category)| {
            let level = |code: &u32| c.level(*code as usize).to_string();
            (c.name.clone(), codes(k).map(level).collect())
        };
        categories.iter().enumerate().map(levels).collect()
    }

    /// How missing values are treated: with 'partial', rows contribute the values they have;
    /// 'error' raises.
    #[getter]
    fn missing(&self) -> &'static str {
        if self.plan.is_partial() { "partial" } else { "error" }
    }

    /// Columns that are measured by their logarithm, ``sign(x) * log(1 + abs(x))``.
    #[getter]
    fn log(&self) -> Vec<String> {
        let logs = self.plan.recipe.numbers.iter().filter(|number| number.step == Step::Log);
        logs.map(|number| number.input.clone()).collect()
    }

    /// Columns that are read as points in time.
    #[getter]
    fn _times(&self) -> Vec<String> {
        self.plan.recipe.times()
    }

    /// Landmarks in the units of the table, without logarithms, shape (m, n_columns); None for
    /// Fourier features.
    #[getter]
    fn landmarks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        self.plan.landmarks().map(|points| self.in_table_units(py, points)).transpose()
    }

    /// Retained rows in the units of the table, shape (n, n_columns); None if the plan has none or
    /// they are stored elsewhere.
    #[getter]
    fn witnesses<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        self.plan.witness_rows().map(|points| self.in_table_units(py, points)).transpose()
    }

    /// Random frequencies, not divided by σ, shape (m', n_columns); None if the plan has landmarks.
    #[getter]
    fn frequencies<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let Features::Fourier(points, _) = &self.plan.features else { return Ok(None) };
        let values = points.data().iter().map(|x| f64::from(*x)).collect();
        Ok(Some(PyArray1::from_vec(py, values).reshape([points.len(), points.dims()])?))
    }

    /// The features: 'nystrom', 'fourier' or 'adapted-fourier'.
    #[getter]
    fn features(&self) -> &'static str {
        self.plan.features.name()
    }

    /// The method of choosing landmarks; None for Fourier features.
    #[getter]
    fn sampling(&self) -> Option<&'static str> {
        match &self.plan.features {
            Features::Nystrom(_, sampling) => Some(sampling.name()),
            Features::Fourier(..) => None,
        }
    }

    /// The kernel that is summed.
    #[getter]
    fn kernel(&self) -> &'static str {
        self.plan.kernel.name()
    }

    /// Bandwidths σ², widest first.
    #[getter]
    fn bandwidths(&self) -> Vec<f64> {
        self.plan.bandwidths.clone()
    }

    /// The sums to collect: 'cells', 'kernel', 'moments'.
    #[getter]
    fn collect(&self) -> Vec<&'static str> {
        self.plan.collect.names()
    }

    /// The value that is subtracted from each column.
    #[getter]
    fn centre<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.plan.frame.centre)
    }

    /// The divisor of each column, after the subtraction.
    #[getter]
    fn scale<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.plan.frame.scale)
    }

    /// The unit of row weights; None if rows have no weights.
    #[getter]
    fn weight_unit(&self) -> Option<f64> {
        self.plan.weighting.as_ref().map(|w| w.unit)
    }

    /// The seed of the plan.
    #[getter]
    fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// SHA-256 of the plan's file without its retained rows. Sketches with the same fingerprint can
    /// be added.
    #[getter]
    fn fingerprint(&self) -> String {
        self.plan.fingerprint()
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html("plan", slf)
    }

    fn __repr__(&self) -> String {
        let points = self.plan.features.points().len();
        let measured = match &self.plan.features {
            Features::Nystrom(_, s) => format!("landmarks={points}, sampling='{}'", s.name()),
            Features::Fourier(..) => format!("frequencies={points}"),
        };
        let (d, rungs) = (self.plan.dims(), self.plan.bandwidths.len());
        format!("Plan(columns={d}, {measured}, bandwidths={rungs})")
    }

    fn __hash__(&self) -> u64 {
        let start: String = self.plan.fingerprint().chars().take(15).collect();
        u64::from_str_radix(&start, 16).unwrap_or(0)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        reduced::<Self>(py, &self.plan.to_bytes())
    }
}

impl PyPlan {
    /// Returns points of the plan in the units of the table.
    fn in_table_units<'py>(
        &self,
        py: Python<'py>,
        points: &Points,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let steps = self.plan.recipe.numbers.iter().map(|number| number.step);
        let undone = |z| {
            let row: Vec<f64> = self.plan.frame.widen(z);
            row.into_iter().zip(steps.clone()).map(|(x, step)| step.undo(x)).collect::<Vec<_>>()
        };
        let values = points.rows().flat_map(undone).collect();
        PyArray1::from_vec(py, values).reshape([points.len(), points.dims()])
    }

    /// Returns the requested bandwidth, or the middle one.
    fn bandwidth(&self, asked: Option<f64>) -> PyResult<f64> {
        let sigma2 = asked.unwrap_or(self.plan.bandwidths[self.plan.bandwidths.len() / 2]);
        if sigma2 > 0.0 && sigma2.is_finite() {
            Ok(sigma2)
        } else {
            Err(PyValueError::new_err(format!("bandwidth must be a positive number, got {sigma2}")))
        }
    }

    /// Returns the Nyström map, cached until another bandwidth is requested; `None` for Fourier
    /// features.
    fn map(&self, py: Python<'_>, sigma2: f64) -> PyResult<Option<Arc<NystromMap>>> {
        let Features::Nystrom(points, _) = &self.plan.features else { return Ok(None) };
        if let Some(category) = self.plan.categories().first() {
            return Err(PyValueError::new_err(format!(
                "the feature map is one of numbers, but '{}' is a category",
                category.name
            )));
        }
        let known = self.map.lock().unwrap_or_else(|e| e.into_inner()).clone();
        if let Some((_, map)) = known.filter(|(known, _)| *known == sigma2) {
            return Ok(Some(map));
        }
        let (points, kernel) = (points.clone(), self.plan.kernel.at(sigma2));
        let map = run(py, crate::work::SILENT, move |_| NystromMap::new(&points, kernel, CUTOFF))?;
        let map = Arc::new(map);
        *self.map.lock().unwrap_or_else(|e| e.into_inner()) = Some((sigma2, map.clone()));
        Ok(Some(map))
    }

    fn width(&self, map: Option<&NystromMap>) -> usize {
        map.map_or(self.plan.features_per_bandwidth(), NystromMap::rank)
    }

    /// Reads a plan, or the plan of a sketch.
    fn decode(bytes: &[u8]) -> Result<Self, String> {
        let plan = Plan::from_bytes(bytes).map(Arc::new);
        let plan = plan.or_else(|error| match Sketch::from_bytes(bytes) {
            Ok(sketch) => Ok(sketch.plan().clone()),
            Err(_) => Err(error),
        });
        plan.map(PyPlan::from).map_err(|e| in_keywords(&e.to_string()))
    }
}

/// Returns the reason why a column of the table is not in its plan, if one is not.
fn left_out(planned: &Planned, source: &dyn RowSource) -> Option<String> {
    let Planned { plan, report } = planned;
    let inputs = plan.recipe.inputs();
    let kept = |name: &&String| {
        inputs.contains(name) || plan.recipe.categories.iter().any(|c| c.name == **name)
    };
    let categories = source.categories().iter().map(|c| &c.name);
    let name = source.columns().iter().chain(categories).find(|name| !kept(name))?;
    let start = format!("column '{name}' is left out: ");
    let note = report.notes.iter().find_map(|note| note.strip_prefix(&start));
    let why = note.and_then(|why| why.split(';').next()).unwrap_or("it does not vary");
    Some(format!(
        "column '{name}' cannot be used: {why}; leave it out, or call it categorical to keep its \
         most frequent levels"
    ))
}

/// Pickles an object as the bytes of its file.
pub fn reduced<'py, T: pyo3::PyTypeInfo>(
    py: Python<'py>,
    bytes: &[u8],
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let class: Bound<'py, PyType> = T::type_object(py);
    Ok((class.getattr("from_bytes")?, PyTuple::new(py, [PyBytes::new(py, bytes)])?))
}

/// Writes a file completely or not at all, without the GIL.
pub fn save(py: Python<'_>, path: &Path, bytes: impl FnOnce() -> Vec<u8> + Send) -> PyResult<()> {
    let written: io::Result<()> =
        py.detach(|| nysketch::file::write(path, |out| out.write_all(&bytes())));
    written.map_err(|e| os_error(&e, path))
}

/// Raises notes of planning as warnings.
pub fn warn(py: Python<'_>, report: &PlanReport, input: &[String], notes: bool) -> PyResult<()> {
    let mut told = report.warnings.clone();
    if notes {
        told.extend(report.notes.iter().chain(input).cloned());
    }
    warn_each(py, told)
}

/// Raises notes of the library as warnings.
pub fn warn_each(py: Python<'_>, remarks: impl IntoIterator<Item = String>) -> PyResult<()> {
    for remark in remarks {
        let text = std::ffi::CString::new(in_keywords(&remark))
            .map_err(|_| PyTypeError::new_err("a column name holds a zero byte"))?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(())
}
