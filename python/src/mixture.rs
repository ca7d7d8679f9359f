//! The keywords of mixtures in `Sketch.fit_gmm` and `Sketch.k_curve`.

use crate::natural::Natural;
use crate::options::Chosen;
use numpy::PyReadonlyArrayDyn;
use nysketch::{Covariance, CovarianceKind, FitParams, SymmetricMatrix};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Options of the search for a mixture by EM. `None` means the default of the library.
#[derive(Default)]
pub struct MixtureOptions {
    pub covariance: Option<Chosen<CovarianceKind>>,
    pub min_variance: Option<f64>,
    pub restarts: Option<Natural>,
    pub max_iterations: Option<Natural>,
    pub tolerance: Option<f64>,
}

impl MixtureOptions {
    pub fn set(self, params: FitParams) -> FitParams {
        params
            .covariance(self.covariance.map(|c| c.0))
            .min_variance(self.min_variance)
            .restarts(self.restarts.map(|n| n.size()))
            .max_iterations(self.max_iterations.map(|n| n.size()))
            .tolerance(self.tolerance)
    }
}

/// Reads matrices of shape (k, d, d), or variances of shape (k, d).
pub fn covariances(array: &Bound<'_, PyAny>) -> PyResult<Vec<Covariance>> {
    let numpy = array.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (array, "float64"))?;
    let array: PyReadonlyArrayDyn<'_, f64> = array.extract()?;
    let array = array.as_array();
    let rows = array.outer_iter();
    match *array.shape() {
        [_, _] => Ok(rows.map(|v| Covariance::Diagonal(v.iter().copied().collect())).collect()),
        [_, d, e] if d == e => {
            let matrix = |m: numpy::ndarray::ArrayViewD<'_, f64>| {
                let entry = |i: usize, j: usize| 0.5 * (m[[i, j]] + m[[j, i]]);
                Covariance::Full(SymmetricMatrix::from_fn(d, entry))
            };
            Ok(rows.map(matrix).collect())
        }
        ref shape => Err(PyValueError::new_err(format!(
            "init_covariances must be variances of shape (k, n_columns) or matrices of shape (k, n_columns, \
             n_columns), got an array of shape {shape:?}"
        ))),
    }
}

/// Reads a one-dimensional array.
pub fn numbers(array: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let numpy = array.py().import("numpy")?;
    numpy.call_method1("asarray", (array, "float64"))?.call_method0("tolist")?.extract()
}
