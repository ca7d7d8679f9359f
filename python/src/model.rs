//! `Model`: what was learned, applied to rows.

use crate::error::{in_keywords, os_error};
use crate::input::{Extras, Input, Wanted};
use crate::map::{InOrder, map_rows, map_valid_rows, reserved};
use crate::natural::Natural;
use crate::plan::{reduced, save};
use crate::work::{SILENT, Shown, run, threads};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use nysketch::metrics::Risks;
use nysketch::model::Shape;
use nysketch::predictor::log_density;
use nysketch::{Block, Error, Instructions, Model, Predictor, Progress};
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::path::PathBuf;
use std::sync::Arc;

/// What was learned from a sketch, in the units of the table.
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

/// Models are equal whatever time they took.
impl PartialEq for PyModel {
    fn eq(&self, other: &Self) -> bool {
        let mut other = (*other.model).clone();
        other.report.seconds = self.model.report.seconds;
        *self.model == other
    }
}

impl PyModel {
    /// `width` numbers for each row of X, from the row and its scores.
    #[allow(clippy::type_complexity, reason = "one closure, named where it is passed")]
    fn map<T: Clone + Default + Send + 'static>(
        &self,
        x: &Bound<'_, PyAny>,
        shown: (&'static str, bool),
        threads: Option<Natural>,
        width: usize,
        map: impl Fn(&Predictor<'_>, &[f64], &[f64], &mut Vec<T>) + Send + Sync + 'static,
    ) -> PyResult<(usize, Vec<T>)> {
        let input = Input::open(x, Wanted::Given(&self.model.columns), Extras::default())?;
        let shown = Shown { what: shown.0, verbose: shown.1, rows: input.rows };
        let (model, threads) = (self.model.clone(), self::threads(threads));
        run(x.py(), shown, move |watch| {
            let predictor = Predictor::new(&model, Instructions::best());
            let each = |block: &Block, out: &mut Vec<T>| {
                score(&predictor, block, |row, _, scores| map(&predictor, row, scores, out));
            };
            map_rows(&input, threads, watch, width, each)
        })
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

/// Visits every row of a block with its weight and its scores.
fn score(predictor: &Predictor<'_>, block: &Block, mut visit: impl FnMut(&[f64], f64, &[f64])) {
    let k = predictor.model().k();
    let mut scores = vec![0.0; block.len() * k];
    predictor.scores(&block.values, &mut scores);
    for ((_, row, weight), scores) in block.rows().zip(scores.chunks_exact(k)) {
        visit(row, weight, scores);
    }
}

fn matrix<'py>(py: Python<'py>, rows: &[Vec<f64>]) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let d = rows.first().map_or(0, Vec::len);
    PyArray1::from_vec(py, rows.concat()).reshape([rows.len(), d])
}

#[pymethods]
impl PyModel {
    /// The nearest centre or most likely component of every row.
    ///
    /// Parameters
    /// ----------
    /// X : array-like, path or Arrow
    ///     The rows, read once and batch by batch.
    /// threads : int, optional
    ///     Threads to use; one a core.
    /// verbose : bool, default=False
    ///     Show progress on stderr.
    ///
    /// Returns
    /// -------
    /// ndarray of shape (n_rows,), int32
    #[pyo3(signature = (X, *, threads=None, verbose=false))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn predict<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        threads: Option<Natural>,
        verbose: bool,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        if matches!(self.model.shape, Shape::Components { .. }) {
            return Err(PyValueError::new_err(
                "principal components have no labels; use transform",
            ));
        }
        let (_, labels) =
            self.map(X, ("predicting", verbose), threads, 1, |predictor, row, scores, out| {
                out.push(predictor.label(row, scores) as i32);
            })?;
        Ok(PyArray1::from_vec(X.py(), labels))
    }

    /// Distances to the centres, probabilities of the components, or principal coordinates.
    ///
    /// Distances are taken in the plan's coordinates, that is, between scaled columns where the plan
    /// scales them.
    ///
    /// Parameters
    /// ----------
    /// X : array-like, path or Arrow
    ///     The rows.
    /// threads : int, optional
    ///     Threads to use; one a core.
    ///
    /// Returns
    /// -------
    /// ndarray of shape (n_rows, k)
    #[pyo3(signature = (X, *, threads=None))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn transform<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        threads: Option<Natural>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let k = self.model.k();
        let (rows, values) =
            self.map(X, ("", false), threads, k, |predictor, row, scores, out| {
                match predictor.model().shape {
                    Shape::Centres { .. } => out.extend(scores.iter().map(|d2| d2.sqrt())),
                    Shape::Components { .. } => out.extend(scores),
                    Shape::Mixture { .. } => match log_density(scores) {
                        // So far out that every density is zero: the nearest mean takes it all.
                        f64::NEG_INFINITY => {
                            let label = predictor.label(row, scores);
                            out.extend((0..scores.len()).map(|c| f64::from(u8::from(c == label))));
                        }
                        total => out.extend(scores.iter().map(|s| (s - total).exp())),
                    },
                }
            })?;
        PyArray1::from_vec(X.py(), values).reshape([rows, k])
    }

    /// Log density of every row under a mixture.
    ///
    /// Parameters
    /// ----------
    /// X : array-like, path or Arrow
    ///     The rows.
    /// threads : int, optional
    ///     Threads to use; one a core.
    ///
    /// Returns
    /// -------
    /// ndarray of shape (n_rows,)
    #[pyo3(signature = (X, *, threads=None))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn log_density<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        threads: Option<Natural>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.mixture_only("log_density")?;
        let (_, values) = self.map(X, ("", false), threads, 1, |_, _, scores, out| {
            out.push(log_density(scores));
        })?;
        Ok(PyArray1::from_vec(X.py(), values))
    }

    /// How well the model fits rows.
    ///
    /// Parameters
    /// ----------
    /// X : array-like, path or Arrow
    ///     The rows, read once and batch by batch.
    /// threads : int, optional
    ///     Threads to use; one a core.
    ///
    /// Returns
    /// -------
    /// dict
    ///     ``rows``, ``mse`` (mean squared distance, or what principal components leave),
    ///     ``scaled_mse`` (the same in the plan's coordinates), ``mean_distance``, and for mixtures
    ///     ``nll`` (mean negative log-likelihood).
    #[pyo3(signature = (X, *, threads=None))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn evaluate<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        threads: Option<Natural>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let input = Input::open(X, Wanted::Given(&self.model.columns), Extras::default())?;
        let (model, threads) = (self.model.clone(), self::threads(threads));
        let risks = run(X.py(), SILENT, move |watch| {
            let parts = InOrder::default();
            map_rows(&input, threads, watch, 0, |block, _: &mut Vec<u8>| {
                let mut risks = Risks::default();
                block.rows().for_each(|(_, row, _)| risks.add(&model, row, None));
                parts.push(block, risks);
            })?;
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
        dict.set_item("scaled_mse", risks.scaled_mse)?;
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
    ///     How many.
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
            for i in 0..n {
                if i % 4096 == 0 && watch.cancelled() {
                    return Err(Error::Cancelled);
                }
                values.extend(model.sample(&mut rng).into_iter().flatten());
            }
            Ok(values)
        })?;
        PyArray1::from_vec(py, values).reshape([n, d])
    }

    /// Write the model to a JSON file, whole or not at all.
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

    /// The bytes of the model's file.
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

    /// 'kmeans', 'kmedians', 'gmm' or 'pca'.
    #[getter]
    fn task(&self) -> &str {
        &self.model.task
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

    /// Rows it was learned from, weights counted.
    #[getter]
    fn rows(&self) -> u64 {
        self.model.rows
    }

    /// Fingerprint of the plan.
    #[getter]
    fn plan(&self) -> &str {
        &self.model.plan
    }

    /// What columns are divided by before distances are taken.
    #[getter]
    fn scale<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.model.scale)
    }

    /// Centres, shape (k, n_columns).
    #[getter]
    fn centres<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        match &self.model.shape {
            Shape::Centres { centres, .. } => matrix(py, centres),
            _ => Err(self.lacks("centres")),
        }
    }

    /// Share of the data at each centre or component, shape (k,).
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        match &self.model.shape {
            Shape::Centres { weights, .. } | Shape::Mixture { weights, .. } => {
                Ok(PyArray1::from_slice(py, weights))
            }
            Shape::Components { .. } => Err(self.lacks("weights")),
        }
    }

    /// Means of the components, shape (k, n_columns).
    #[getter]
    fn means<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        match &self.model.shape {
            Shape::Mixture { means, .. } => matrix(py, means),
            _ => Err(self.lacks("means")),
        }
    }

    /// Variances of the components, shape (k, n_columns).
    #[getter]
    fn variances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        match &self.model.shape {
            Shape::Mixture { variances, .. } => matrix(py, variances),
            _ => Err(self.lacks("variances")),
        }
    }

    /// Mean of the columns, of principal components.
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        match &self.model.shape {
            Shape::Components { mean, .. } => Ok(PyArray1::from_slice(py, mean)),
            _ => Err(self.lacks("mean")),
        }
    }

    /// Principal components, unit vectors of shape (k, n_columns), by falling variance.
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

    /// The same as shares of the total.
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

    /// How it was found: decoder, bandwidth, status, iterations, objective, seconds.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = &self.model.report;
        let dict = PyDict::new(py);
        dict.set_item("decoder", &report.decoder)?;
        dict.set_item("bandwidth", report.bandwidth)?;
        dict.set_item("status", &report.status)?;
        dict.set_item("iterations", report.iterations)?;
        dict.set_item("objective", &report.objective)?;
        dict.set_item("seconds", report.seconds)?;
        Ok(dict)
    }

    /// What the command line's `predict` writes for every row, as columns by name: `label`, `distance`
    /// and for mixtures `log_density`, or `pc1`, `pc2`, …; label -1 and NaN for invalid rows.
    #[pyo3(signature = (X, skip_invalid=false))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn _columns<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        skip_invalid: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let input = Input::open(X, Wanted::Given(&self.model.columns), Extras::default())?;
        let model = self.model.clone();
        let names = match &model.shape {
            Shape::Components { .. } => (1..=model.k()).map(|c| format!("pc{c}")).collect(),
            Shape::Centres { .. } => vec!["label".to_string(), "distance".into()],
            Shape::Mixture { .. } => vec!["label".into(), "distance".into(), "log_density".into()],
        };
        let width = names.len();
        let (rows, values) = run(X.py(), SILENT, move |watch| {
            map_valid_rows(&input, 1, watch, width, skip_invalid, |block, out: &mut Vec<f64>| {
                for (_, row, _) in block.rows() {
                    if Model::unusable(row).is_some() {
                        let label = matches!(model.shape, Shape::Components { .. });
                        out.push(if label { f64::NAN } else { -1.0 });
                        out.extend((1..width).map(|_| f64::NAN));
                        continue;
                    }
                    let p = model.predict(row);
                    match model.shape {
                        Shape::Components { .. } => out.extend(p.scores),
                        _ => {
                            out.extend([p.label as f64, p.squared_distance.sqrt()]);
                            out.extend(p.log_density);
                        }
                    }
                }
            })
        })?;
        let dict = PyDict::new(X.py());
        for (c, name) in names.into_iter().enumerate() {
            let column = (0..rows).map(|i| values[i * width + c]);
            match name.as_str() {
                "label" => {
                    let labels = column.map(|x| x as i32).collect();
                    dict.set_item(name, PyArray1::<i32>::from_vec(X.py(), labels))?;
                }
                _ => dict.set_item(name, PyArray1::from_vec(X.py(), column.collect()))?,
            }
        }
        Ok(dict)
    }

    /// Labels, and the sum over the rows of weight × squared distance (distance for k-medians), in
    /// the plan's coordinates: what an estimator needs in one pass.
    #[pyo3(signature = (X, weights=None, threads=None))]
    #[allow(non_snake_case, reason = "keywords of Python")]
    fn _assign<'py>(
        &self,
        X: &Bound<'py, PyAny>,
        weights: Option<&Bound<'py, PyAny>>,
        threads: Option<Natural>,
    ) -> PyResult<(Bound<'py, PyArray1<i32>>, f64)> {
        let extras = Extras::weights(weights)?;
        let input = Input::open(X, Wanted::Given(&self.model.columns), extras)?;
        let (model, threads) = (self.model.clone(), self::threads(threads));
        let medians = model.task == nysketch::Task::Kmedians.name();
        let (labels, risk) = run(X.py(), SILENT, move |watch| {
            let predictor = Predictor::new(&model, Instructions::best());
            let sums = InOrder::default();
            let each = |block: &Block, out: &mut Vec<i32>| {
                let mut sum = 0.0;
                score(&predictor, block, |row, weight, scores| {
                    let label = predictor.label(row, scores);
                    out.push(label as i32);
                    sum += weight * if medians { scores[label].sqrt() } else { scores[label] };
                });
                sums.push(block, sum);
            };
            let (_, labels) = map_rows(&input, threads, watch, 1, each)?;
            Ok((labels, sums.into_iter().sum()))
        })?;
        Ok((PyArray1::from_vec(X.py(), labels), risk))
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
    fn decode(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| "not a model; models are JSON files".to_string())?;
        let model = Model::from_json(text).map_err(|e| in_keywords(&e.to_string()))?;
        Ok(PyModel { model: Arc::new(model) })
    }
}
