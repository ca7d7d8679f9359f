//! `Model`: a learned model, and its application to rows.

use crate::error::{exception, in_keywords, os_error};
use crate::input::{Extras, Input, Wanted, Weights};
use crate::map::{InOrder, Unusable, map_rows, reserved};
use crate::natural::Natural;
use crate::plan::{reduced, save};
use crate::results::{html, result};
use crate::work::{SILENT, Shown, run, threads};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use nysketch::metrics::Risks;
use nysketch::model::Shape;
use nysketch::predictor::{Column, Detail, ModelRows, Predictions, Values};
use nysketch::{Block, Category, Covariance, CovarianceKind, Error, Model, Predictor, Progress};
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyTuple};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A model learned from a sketch, in the units of the table.
///
/// Models come from ``Sketch.fit_kmeans``, ``fit_kmedians``, ``fit_gmm`` and ``fit_pca``, or from
/// the JSON file that :meth:`save` and the command line write.
///
/// Examples
/// --------
/// >>> import numpy as np, nysketch
/// >>> X = np.random.default_rng(0).normal(size=(1000, 3))
/// >>> X[:500] += 10
/// >>> model = nysketch.Plan.from_data(X).sketch(X).fit_kmeans(2)
/// >>> model
/// Model(task='kmeans', k=2, columns=3)
/// >>> labels = model.predict(X)
/// >>> int((labels[:500] == labels[0]).sum()), int((labels[500:] == labels[0]).sum())
/// (500, 0)
#[pyclass(name = "Model", module = "nysketch", frozen, eq)]
pub struct PyModel {
    pub model: Arc<Model>,
}

/// Models are equal even if they took different times.
impl PartialEq for PyModel {
    fn eq(&self, other: &Self) -> bool {
        let mut other = (*other.model).clone();
        other.report.seconds = self.model.report.seconds;
        *self.model == other
    }
}

impl PyModel {
    /// Computes numbers for each row of X from the predictions for the rows.
    fn map<T: Copy + Default + Send + Sync + 'static>(
        &self,
        x: &Bound<'_, PyAny>,
        how: How,
        each: Each<T>,
        take: impl Fn(Predictions, &mut Vec<T>) + Send + Sync + 'static,
    ) -> PyResult<(usize, Vec<T>)> {
        let input = Input::open(x, self.wanted(), self.extras(how.skip_invalid))?;
        let shown = Shown { what: "predicting", verbose: how.verbose, rows: input.rows };
        let (model, threads) = (self.model.clone(), self::threads(how.threads));
        run(x.py(), shown, move |watch| {
            let predictor = Predictor::new(&model);
            let Each { width, detail, invalid } = each;
            let unusable = |row: &[f64], _: &[u32]| model.out_of_range(row);
            let strict: Option<Unusable<'_>> = (!how.skip_invalid).then_some(&unusable);
            let map = |block: &Block, out: &mut Vec<T>| {
                let usable = Usable::of(&model, block);
                let mut found = Vec::with_capacity(usable.rows() * width);
                take(predictor.predict(usable.model_rows(), detail), &mut found);
                usable.spread(found, width, invalid, out);
            };
            map_rows(&input, (&*model).into(), threads, watch, width, strict, map)
        })
    }

    /// Returns the columns that the model reads from a table.
    fn wanted(&self) -> Wanted {
        Wanted::recipe(&self.model.recipe)
    }

    /// Returns how rows are read, if some may be skipped.
    fn extras(&self, skip_invalid: bool) -> Extras {
        let allow_missing = self.model.recipe.least_present.is_some();
        Extras { skip_invalid, allow_missing, ..Extras::default() }
    }

    fn lacks(&self, what: &str) -> PyErr {
        PyAttributeError::new_err(format!("a {} model has no {what}", self.model.task))
    }

    fn mixture_only(&self, what: &str) -> PyResult<()> {
        match self.model.shape {
            Shape::Mixture { .. } => Ok(()),
            _ => Err(PyValueError::new_err(format!("{what} needs a mixture (fit_gmm)"))),
        }
    }
}

/// Options of reading.
struct How {
    threads: Option<Natural>,
    verbose: bool,
    /// Whether unusable rows get the value `invalid` instead of raising an error.
    skip_invalid: bool,
}

/// The result for each row: its width, the detail of prediction that it needs, and the value for an
/// unusable row.
struct Each<T> {
    width: usize,
    detail: Detail,
    invalid: T,
}

/// The usable rows of a block.
struct Usable<'a> {
    values: Cow<'a, [f64]>,
    codes: Cow<'a, [u32]>,
    columns: usize,
    /// For each row of the block whether it is usable; `None` if all are.
    at: Option<Vec<bool>>,
}

impl<'a> Usable<'a> {
    fn of(model: &Model, block: &'a Block) -> Self {
        let (columns, wide) = (block.columns, model.categories().len());
        let (values, codes) = (&block.values[..], &block.codes[..]);
        let levels = |i: usize| &codes[i * wide..(i + 1) * wide];
        let usable = |(i, row)| model.unusable(row, levels(i)).is_none();
        let at: Vec<bool> = values.chunks_exact(columns).enumerate().map(usable).collect();
        if at.iter().all(|usable| *usable) {
            return Usable { values: values.into(), codes: codes.into(), columns, at: None };
        }
        let (mut some, mut some_codes) = (Vec::new(), Vec::new());
        for (i, row) in values.chunks_exact(columns).enumerate().filter(|(i, _)| at[*i]) {
            some.extend_from_slice(row);
            some_codes.extend_from_slice(levels(i));
        }
        Usable { values: some.into(), codes: some_codes.into(), columns, at: Some(at) }
    }

    fn model_rows(&self) -> ModelRows<'_> {
        ModelRows { values: &self.values, codes: &self.codes }
    }

    fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Returns whether the i-th row of the block is usable.
    fn has(&self, i: usize) -> bool {
        self.at.as_ref().is_none_or(|at| at[i])
    }

    /// Writes `width` numbers for each row of the block: those found, in order, or `invalid`.
    fn spread<T: Copy>(&self, mut found: Vec<T>, width: usize, invalid: T, out: &mut Vec<T>) {
        let Some(at) = &self.at else {
            out.append(&mut found);
            return;
        };
        let mut found = found.chunks_exact(width);
        for usable in at {
            match if *usable { found.next() } else { None } {
                Some(numbers) => out.extend_from_slice(numbers),
                None => out.extend(std::iter::repeat_n(invalid, width)),
            }
        }
    }
}

/// Returns the prediction columns of a row, with the outlier flag if a share is given.
fn columns(model: &Model, flag: Option<f64>) -> nysketch::Result<Vec<Column>> {
    let flag = flag.map(|share| Column::outlier(model, share)).transpose()?;
    Ok(Column::of(model).into_iter().chain(flag).collect())
}

/// Returns labels in NumPy's type.
fn labels(said: &Predictions) -> impl Iterator<Item = i32> {
    said.label.iter().map(|label| *label as i32)
}

fn matrix<'py>(py: Python<'py>, rows: &[Vec<f64>]) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let d = rows.first().map_or(0, Vec::len);
    PyArray1::from_vec(py, rows.concat()).reshape([rows.len(), d])
}

#[pymethods]
impl PyModel {
    /// Return the nearest centre or most likely component of every row.
    ///
    /// Parameters
    /// ----------
    /// X : array-like, path or Arrow
    ///     The rows, read once, batch by batch.
    /// threads : int, optional
    ///     Number of threads; one per core by default.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    /// skip_invalid : bool, default=False
    ///     Give rows with NaN, infinity or null the label -1 instead of raising. If the model
    ///     allows missing values, incomplete rows are labelled by their available values, and get
    ///     -1 only if too many values are missing.
    ///
    /// Returns
    /// -------
    /// ndarray of shape (n_rows,), int32
    #[pyo3(signature = (X, *, threads=None, verbose=false, skip_invalid=false))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn predict<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        threads: Option<Natural>,
        verbose: bool,
        skip_invalid: bool,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        if matches!(self.model.shape, Shape::Components { .. }) {
            return Err(PyValueError::new_err(
                "principal components have no labels; use transform",
            ));
        }
        let how = How { threads, verbose, skip_invalid };
        let each = Each { width: 1, detail: Detail::Label, invalid: -1 };
        let (_, found) = self.map(X, how, each, |said, out| out.extend(labels(&said)))?;
        Ok(PyArray1::from_vec(X.py(), found))
    }

    /// Return distances to the centres, probabilities of the components, or principal coordinates.
    ///
    /// Distances are in the coordinates of the plan, that is, between scaled columns if the plan
    /// scales them.
    ///
    /// Parameters
    /// ----------
    /// X : array-like, path or Arrow
    ///     The rows.
    /// threads : int, optional
    ///     Number of threads; one per core by default.
    /// skip_invalid : bool, default=False
    ///     Give rows with NaN, infinity or null the value NaN instead of raising.
    ///
    /// Returns
    /// -------
    /// ndarray of shape (n_rows, k)
    #[pyo3(signature = (X, *, threads=None, skip_invalid=false))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn transform<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        threads: Option<Natural>,
        skip_invalid: bool,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let k = self.model.k();
        let how = How { threads, verbose: false, skip_invalid };
        let each = Each { width: k, detail: Detail::All, invalid: f64::NAN };
        let (rows, values) =
            self.map(X, how, each, |mut said, out| out.append(&mut said.transformed))?;
        PyArray1::from_vec(X.py(), values).reshape([rows, k])
    }

    /// Return the log density of every row under a mixture.
    ///
    /// Parameters
    /// ----------
    /// X : array-like, path or Arrow
    ///     The rows.
    /// threads : int, optional
    ///     Number of threads; one per core by default.
    /// skip_invalid : bool, default=False
    ///     Give rows with NaN, infinity or null the value NaN instead of raising.
    ///
    /// Returns
    /// -------
    /// ndarray of shape (n_rows,)
    #[pyo3(signature = (X, *, threads=None, skip_invalid=false))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn log_density<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        threads: Option<Natural>,
        skip_invalid: bool,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.mixture_only("log_density")?;
        let how = How { threads, verbose: false, skip_invalid };
        let each = Each { width: 1, detail: Detail::Density, invalid: f64::NAN };
        let (_, values) =
            self.map(X, how, each, |mut said, out| out.append(&mut said.log_density))?;
        Ok(PyArray1::from_vec(X.py(), values))
    }

    /// Measure how well the model fits rows.
    ///
    /// Parameters
    /// ----------
    /// X : array-like, path or Arrow
    ///     The rows, read once, batch by batch.
    /// threads : int, optional
    ///     Number of threads; one per core by default.
    ///
    /// Returns
    /// -------
    /// dict
    ///     ``rows``, ``mse`` (mean squared distance, for principal components the mean squared
    ///     residual), ``mse_table_units`` (the same in the units of the table), ``mean_distance``,
    ///     and for mixtures ``nll`` (mean negative log-likelihood). Distances are in the
    ///     coordinates of the fit, that is, between scaled columns if the plan scales them.
    #[pyo3(signature = (X, *, threads=None))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn evaluate<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        threads: Option<Natural>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let input = Input::open(X, self.wanted(), self.extras(false))?;
        let (model, threads) = (self.model.clone(), self::threads(threads));
        let risks = run(X.py(), SILENT, move |watch| {
            let parts = InOrder::default();
            let predictor = Predictor::new(&model);
            let unusable = |row: &[f64], _: &[u32]| model.out_of_range(row);
            let add = |block: &Block, _: &mut Vec<u8>| {
                let mut risks = Risks::default();
                risks.add(&predictor, Usable::of(&model, block).model_rows(), &[]);
                parts.push(block, risks);
            };
            map_rows(&input, (&*model).into(), threads, watch, 0, Some(&unusable), add)?;
            let mut all = Risks::default();
            parts.into_iter().for_each(|risks| all.merge(risks));
            match all.rows {
                0 => Err(Error::NoRows { skipped: 0 }),
                _ => Ok(all.evaluation(&model)),
            }
        })?;
        let dict = PyDict::new(X.py());
        dict.set_item("rows", risks.rows)?;
        dict.set_item("mse", risks.mse)?;
        dict.set_item("mse_table_units", risks.mse_table_units)?;
        dict.set_item("mean_distance", risks.mean_distance)?;
        if let Some(nll) = risks.nll {
            dict.set_item("nll", nll)?;
        }
        Ok(dict)
    }

    /// Draw rows from a mixture.
    ///
    /// Parameters
    /// ----------
    /// n : int
    ///     Number of rows.
    /// seed : int, default=0
    ///     Seed of the draw.
    ///
    /// Returns
    /// -------
    /// ndarray of shape (n, n_columns)
    #[pyo3(signature = (n, *, seed=0))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: Natural,
        #[pyo3(from_py_with = crate::natural::from_object)] seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.mixture_only("sample")?;
        let n = n.size();
        let (model, d) = (self.model.clone(), self.model.columns.len());
        let values = run(py, SILENT, move |watch| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut values = reserved(n, d)?;
            for first in (0..n).step_by(4096) {
                if watch.cancelled() {
                    return Err(Error::Cancelled);
                }
                let rows = 4096.min(n - first);
                values.extend(model.sample(rows, &mut rng).into_iter().flatten());
            }
            Ok(values)
        })?;
        PyArray1::from_vec(py, values).reshape([n, d])
    }

    /// Write the model to a JSON file, completely or not at all.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        save(py, &path, || self.model.to_json().into_bytes())
    }

    /// Read a model from a JSON file.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    ///
    /// Returns
    /// -------
    /// Model
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let bytes = std::fs::read(&path).map_err(|e| os_error(&e, &path))?;
        Self::decode(&bytes)
            .map_err(|message| PyValueError::new_err(format!("{}: {message}", path.display())))
    }

    /// Return the bytes of the model's file.
    ///
    /// Returns
    /// -------
    /// bytes
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.model.to_json().as_bytes())
    }

    /// Read a model from the bytes of its file.
    ///
    /// Parameters
    /// ----------
    /// data : bytes
    ///
    /// Returns
    /// -------
    /// Model
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Self::decode(data).map_err(PyValueError::new_err)
    }

    /// The task: 'kmeans', 'kmedians', 'gmm' or 'pca'.
    #[getter]
    fn task(&self) -> &str {
        self.model.task.name()
    }

    /// Number of centres or components.
    #[getter]
    fn k(&self) -> usize {
        self.model.k()
    }

    /// Names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.model.columns.clone()
    }

    /// Number of rows of the sketch, including their weights.
    #[getter]
    fn rows(&self) -> u64 {
        self.model.rows
    }

    /// Fingerprint of the plan.
    #[getter]
    fn plan(&self) -> &str {
        &self.model.plan
    }

    /// The divisor of each column in distances.
    #[getter]
    fn scale<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.model.scale)
    }

    /// Columns that the model reads from a table: numeric columns, followed by categories.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        let categories = self.model.categories().iter().map(|c| c.name.clone());
        self.model.recipe.inputs().into_iter().chain(categories).collect()
    }

    /// The levels of each category, in the order of ``level_shares``. The last two are '(other)'
    /// and '(missing)'.
    #[getter]
    fn levels(&self) -> BTreeMap<String, Vec<String>> {
        let levels = |c: &Category| (0..c.len()).map(|code| c.level(code).to_string()).collect();
        self.model.categories().iter().map(|c| (c.name.clone(), levels(c))).collect()
    }

    /// The share of each level in each cluster or component, by category, shape (k, levels). Empty
    /// for principal components.
    #[getter]
    fn level_shares<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<BTreeMap<String, Bound<'py, PyArray2<f64>>>> {
        let mut found = BTreeMap::new();
        let recipe = &self.model.recipe;
        if self.model.levels.is_empty() {
            return Ok(found);
        }
        for (category, start) in recipe.categories.iter().zip(recipe.level_offsets()) {
            let of_cluster = |shares: &Vec<f64>| shares[start..start + category.len()].to_vec();
            let rows: Vec<Vec<f64>> = self.model.levels.iter().map(of_cluster).collect();
            found.insert(category.name.clone(), matrix(py, &rows)?);
        }
        Ok(found)
    }

    /// How missing values are treated: with 'partial', rows are assigned by their available values;
    /// 'error' raises.
    #[getter]
    fn missing(&self) -> &'static str {
        if self.model.recipe.least_present.is_some() { "partial" } else { "error" }
    }

    /// Centres, shape (k, n_columns). For a column measured by its logarithm, they are logarithms.
    #[getter]
    fn centres<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        match &self.model.shape {
            Shape::Centres { centres, .. } => matrix(py, centres),
            _ => Err(self.lacks("centres")),
        }
    }

    /// Share of the data in each cluster or component, shape (k,).
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        match &self.model.shape {
            Shape::Centres { weights, .. } | Shape::Mixture { weights, .. } => {
                Ok(PyArray1::from_slice(py, weights))
            }
            Shape::Components { .. } => Err(self.lacks("weights")),
        }
    }

    /// Means of the components, shape (k, n_columns). For a column measured by its logarithm, they
    /// are logarithms.
    #[getter]
    fn means<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        match &self.model.shape {
            Shape::Mixture { means, .. } => matrix(py, means),
            _ => Err(self.lacks("means")),
        }
    }

    /// The type of the covariances of a mixture: 'full', 'tied', 'diag' or 'spherical'.
    #[getter]
    fn covariance_type(&self) -> PyResult<&'static str> {
        match &self.model.shape {
            Shape::Mixture { covariance, .. } => Ok(covariance.name()),
            _ => Err(self.lacks("covariance_type")),
        }
    }

    /// Covariances of the components.
    ///
    /// The shape is (k, n_columns, n_columns) for 'full', (n_columns, n_columns) for 'tied', (k,
    /// n_columns) for 'diag' and (k,) for 'spherical'. Spherical variances refer to scaled columns
    /// if the plan scales them.
    #[getter]
    fn covariances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Shape::Mixture { covariance, covariances, .. } = &self.model.shape else {
            return Err(self.lacks("covariances"));
        };
        let (k, d) = (covariances.len(), self.model.columns.len());
        let entries =
            |c: &Covariance| -> Vec<f64> { (0..d * d).map(|at| c.get(at / d, at % d)).collect() };
        Ok(match covariance {
            CovarianceKind::Full => {
                let numbers = covariances.iter().flat_map(entries).collect();
                PyArray1::from_vec(py, numbers).reshape([k, d, d])?.into_any()
            }
            CovarianceKind::Tied => {
                PyArray1::from_vec(py, entries(&covariances[0])).reshape([d, d])?.into_any()
            }
            CovarianceKind::Diag => self.variances(py)?.into_any(),
            CovarianceKind::Spherical => {
                let scale = self.model.scale[0];
                let variance = |c: &Covariance| c.get(0, 0) / (scale * scale);
                PyArray1::from_vec(py, covariances.iter().map(variance).collect()).into_any()
            }
        })
    }

    /// Variances of the components in each column, shape (k, n_columns).
    #[getter]
    fn variances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        match &self.model.shape {
            Shape::Mixture { covariances, .. } => {
                let variances: Vec<_> =
                    covariances.iter().map(|c| c.variances().into_owned()).collect();
                matrix(py, &variances)
            }
            _ => Err(self.lacks("variances")),
        }
    }

    /// Number of free parameters of a mixture: weights, means and covariances.
    #[getter]
    fn n_parameters(&self) -> PyResult<usize> {
        match &self.model.shape {
            Shape::Mixture { covariance, .. } => {
                Ok(covariance.parameters(self.model.k(), self.model.columns.len()))
            }
            _ => Err(self.lacks("n_parameters")),
        }
    }

    /// Mean of the columns, for principal components.
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        match &self.model.shape {
            Shape::Components { mean, .. } => Ok(PyArray1::from_slice(py, mean)),
            _ => Err(self.lacks("mean")),
        }
    }

    /// Principal components, unit vectors of shape (k, n_columns), by decreasing variance.
    #[getter]
    fn components<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        match &self.model.shape {
            Shape::Components { components, .. } => matrix(py, components),
            _ => Err(self.lacks("components")),
        }
    }

    /// Variance along each principal component.
    #[getter]
    fn explained_variance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        match &self.model.shape {
            Shape::Components { explained_variance, .. } => {
                Ok(PyArray1::from_slice(py, explained_variance))
            }
            _ => Err(self.lacks("explained_variance")),
        }
    }

    /// Variance along each principal component as a share of the total variance.
    #[getter]
    fn explained_variance_ratio<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        match &self.model.shape {
            Shape::Components { explained_variance_ratio, .. } => {
                Ok(PyArray1::from_slice(py, explained_variance_ratio))
            }
            _ => Err(self.lacks("explained_variance_ratio")),
        }
    }

    /// Quantiles of the log density of the sketch's rows under a mixture.
    ///
    /// A dict with the arrays ``share`` and ``log_density``: this share of the rows has a log
    /// density below this value. ``witnesses`` is the number of retained rows used for the
    /// estimate, or 0 if it is from cells alone. None if the sketch does not contain the necessary
    /// sums.
    #[getter]
    fn densities<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(densities) = &self.model.densities else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("share", PyArray1::from_slice(py, &densities.share))?;
        dict.set_item("log_density", PyArray1::from_slice(py, &densities.log_density))?;
        dict.set_item("witnesses", densities.witnesses)?;
        Ok(Some(dict))
    }

    /// Confidence intervals from ``Sketch.with_intervals``, or None.
    ///
    /// A ``nysketch.results.Intervals`` with ``confidence``, ``folds``, ``by`` and ``risk``. For
    /// clusters and components of mixtures it also has ``weights``, ``centres`` (None for an
    /// unstable one) and ``stability``; for principal components ``explained_variance`` and
    /// ``explained_variance_ratio``.
    #[getter]
    fn intervals<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let intervals = self.model.intervals.as_ref();
        intervals.map(|intervals| result(py, "Intervals", intervals)).transpose()
    }

    /// Return the log density below which this share of the rows of the sketch lies. Rows below it
    /// are outliers.
    ///
    /// If estimated from s retained rows, the share is accurate up to
    /// ``2 * sqrt(share * (1 - share) / s)``.
    ///
    /// Parameters
    /// ----------
    /// share : float
    ///     Between 0.0001 and 0.9.
    ///
    /// Returns
    /// -------
    /// float
    fn threshold(&self, share: f64) -> PyResult<f64> {
        self.mixture_only("threshold")?;
        let Some(densities) = &self.model.densities else {
            return Err(PyValueError::new_err(
                "the model does not know the densities of its rows; fit it again, from a sketch \
                 with cells",
            ));
        };
        densities.threshold(share).ok_or_else(|| {
            let (least, most) = densities.range();
            PyValueError::new_err(format!("share must be between {least} and {most}, got {share}"))
        })
    }

    /// Report on how the model was learned.
    ///
    /// A dict with decoder, bandwidth, rank (number of moments used from kernel sums, or None),
    /// replicates (the final objective of each pursuit), status, iterations, objective and seconds.
    /// For mixtures it also has likelihood (None, or the estimated mean log-likelihood of the rows
    /// with mean, low and high of its 95 % interval, and the mean entropy of the component given
    /// the row), min_variance, collapsed (number of components at the minimum variance in some
    /// direction), shrinkage (weight of the common correlations in full covariances, in rows) and
    /// notes.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = &self.model.report;
        let dict = PyDict::new(py);
        dict.set_item("decoder", &report.decoder)?;
        dict.set_item("bandwidth", report.bandwidth)?;
        dict.set_item("status", format!("{:?}", report.status))?;
        dict.set_item("calibrated", report.calibrated)?;
        dict.set_item("rank", report.rank)?;
        dict.set_item("replicates", &report.replicates)?;
        dict.set_item("iterations", report.iterations)?;
        dict.set_item("objective", &report.objective)?;
        dict.set_item("seconds", report.seconds)?;
        if matches!(self.model.shape, Shape::Mixture { .. }) {
            let likelihood = report.likelihood.map(|l| {
                let numbers =
                    [("mean", l.mean), ("low", l.low), ("high", l.high), ("entropy", l.entropy)];
                numbers.into_py_dict(py)
            });
            dict.set_item("likelihood", likelihood.transpose()?)?;
            dict.set_item("min_variance", report.min_variance)?;
            dict.set_item("collapsed", report.collapsed)?;
            dict.set_item("shrinkage", report.shrinkage)?;
            let notes: Vec<String> = report.notes.iter().map(|note| in_keywords(note)).collect();
            dict.set_item("notes", notes)?;
        }
        Ok(dict)
    }

    /// Names of the columns that the command ``predict`` writes, with their types: 'labels',
    /// 'numbers' or 'flags'.
    #[pyo3(signature = (flag=None))]
    fn _column_names(&self, flag: Option<f64>) -> PyResult<Vec<(String, &'static str)>> {
        let kind = |column: &Column| match column {
            Column::Label => "labels",
            Column::Outlier { .. } => "flags",
            _ => "numbers",
        };
        let columns = columns(&self.model, flag).map_err(exception)?;
        Ok(columns.iter().map(|c| (c.name(), kind(c))).collect())
    }

    /// The columns that the command ``predict`` writes, by name. Invalid rows have label -1, NaN
    /// and no flag.
    #[pyo3(signature = (X, skip_invalid=false, flag=None))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn _columns<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        skip_invalid: bool,
        flag: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let input = Input::open(X, self.wanted(), self.extras(skip_invalid))?;
        let model = self.model.clone();
        let columns = run(X.py(), SILENT, move |watch| {
            let columns = columns(&model, flag)?;
            let predictor = Predictor::new(&model);
            let parts = InOrder::default();
            let unusable = |row: &[f64], _: &[u32]| model.out_of_range(row);
            let strict: Option<Unusable<'_>> = (!skip_invalid).then_some(&unusable);
            let add = |block: &Block, _: &mut Vec<u8>| {
                parts.push(block, predictor.columns(block, &columns));
            };
            map_rows(&input, (&*model).into(), 1, watch, 0, strict, add)?;
            let mut all: Vec<Values> = predictor.columns(&[], &columns);
            for part in parts.into_iter() {
                all.iter_mut().zip(part).for_each(|(all, part)| all.append(part));
            }
            Ok(columns.into_iter().map(|c| c.name()).zip(all).collect::<Vec<_>>())
        })?;
        let dict = PyDict::new(X.py());
        for (name, values) in columns {
            match values {
                Values::Labels(labels) => {
                    dict.set_item(name, PyArray1::from_vec(X.py(), labels))?;
                }
                Values::Numbers(numbers) => {
                    dict.set_item(name, PyArray1::from_vec(X.py(), numbers))?;
                }
                Values::Flags(flags) => {
                    let flags = flags.into_iter().map(|f| f == Some(true)).collect();
                    dict.set_item(name, PyArray1::from_vec(X.py(), flags))?;
                }
            }
        }
        Ok(dict)
    }

    /// Rows in the columns of the model, with NaN for missing numbers.
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn _numbers<'py>(&self, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let input = Input::open(X, self.wanted(), self.extras(true))?;
        let (model, d) = (self.model.clone(), self.model.columns.len());
        let (rows, values) = run(X.py(), SILENT, move |watch| {
            let copy = |block: &Block, out: &mut Vec<f64>| out.extend_from_slice(&block.values);
            map_rows(&input, (&*model).into(), 1, watch, d, None, copy)
        })?;
        PyArray1::from_vec(X.py(), values).reshape([rows, d])
    }

    /// Labels, and the sum over rows of weight × squared distance (distance for k-medians) in the
    /// coordinates of the plan. Computes both in one pass, for the estimators.
    #[pyo3(signature = (X, weights=None, threads=None, skip_invalid=false))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn _assign<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        weights: Option<&Bound<'py, PyAny>>,
        threads: Option<Natural>,
        skip_invalid: bool,
    ) -> PyResult<(Bound<'py, PyArray1<i32>>, f64)> {
        let extras = Extras { weights: Weights::new(weights)?, ..self.extras(skip_invalid) };
        let input = Input::open(X, self.wanted(), extras)?;
        let (model, threads) = (self.model.clone(), self::threads(threads));
        let medians = model.task == nysketch::Task::Kmedians;
        let (labels, risk) = run(X.py(), SILENT, move |watch| {
            let predictor = Predictor::new(&model);
            let sums = InOrder::default();
            let each = |block: &Block, out: &mut Vec<i32>| {
                let usable = Usable::of(&model, block);
                let said = predictor.predict(usable.model_rows(), Detail::Label);
                let mut sum = 0.0;
                let rows = block.rows().enumerate().filter(|(i, _)| usable.has(*i));
                for ((_, (_, _, weight)), d2) in rows.zip(&said.squared_distance) {
                    sum += weight * if medians { d2.sqrt() } else { *d2 };
                }
                usable.spread(self::labels(&said).collect(), 1, -1, out);
                sums.push(block, sum);
            };
            let unusable = |row: &[f64], _: &[u32]| model.out_of_range(row);
            let strict: Option<Unusable<'_>> = (!skip_invalid).then_some(&unusable);
            let (_, labels) = map_rows(&input, (&*model).into(), threads, watch, 1, strict, each)?;
            Ok((labels, sums.into_iter().sum()))
        })?;
        Ok((PyArray1::from_vec(X.py(), labels), risk))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html("model", slf)
    }

    fn __repr__(&self) -> String {
        let (k, d) = (self.model.k(), self.model.columns.len());
        format!("Model(task='{}', k={k}, columns={d})", self.model.task)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        reduced::<Self>(py, self.model.to_json().as_bytes())
    }
}

impl PyModel {
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| "not a model; models are JSON files".to_string())?;
        let model = Model::from_json(text).map_err(|e| in_keywords(&e.to_string()))?;
        Ok(PyModel { model: Arc::new(model) })
    }
}
