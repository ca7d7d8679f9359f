//! What can be chosen about a plan: the keywords of `Plan.from_data` and of `nysketch.spark.plan`.

use crate::error::exception;
use crate::input::Files;
use crate::natural::Natural;
use numpy::PyReadonlyArray2;
use nysketch::{
    Collect, FeatureKind, Invalid, Kernel, KnownCovariance, LandmarkCount, Named, PlanParams,
    SampleRows, Sampling, Scale,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// One value, or several.
pub enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<'a, 'py, T> FromPyObject<'a, 'py> for OneOrMore<T>
where
    T: FromPyObjectOwned<'py>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(one) = object.extract::<T>() {
            return Ok(OneOrMore::One(one));
        }
        object.extract::<Vec<T>>().map(OneOrMore::More).map_err(|_| {
            let text = object.repr().map_or_else(|_| "another".into(), |r| r.to_string());
            PyTypeError::new_err(format!("expected one value or a list of them, got {text}"))
        })
    }
}

impl<T> OneOrMore<T> {
    /// All of them.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            OneOrMore::One(x) => vec![x],
            OneOrMore::More(all) => all,
        }
    }
}

/// The keywords, from a call or from a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PlanOptions<'py> {
    #[pyo3(default)]
    pub landmarks: Option<Landmarks>,
    #[pyo3(default)]
    pub clusters: Option<Natural>,
    #[pyo3(default)]
    pub sampling: Option<Chosen<Sampling>>,
    #[pyo3(default)]
    pub leverage_lambda: Option<f64>,
    #[pyo3(default)]
    pub landmarks_from: Option<Bound<'py, PyAny>>,
    pub features: Chosen<FeatureKind>,
    #[pyo3(default)]
    pub frequencies: Option<Natural>,
    #[pyo3(default)]
    pub kernel: Option<Chosen<Kernel>>,
    #[pyo3(default)]
    pub bandwidth: Option<OneOrMore<f64>>,
    #[pyo3(default)]
    pub scale: Option<Chosen<Scale>>,
    #[pyo3(default)]
    pub sample_rows: Option<Bound<'py, PyAny>>,
    #[pyo3(default)]
    pub witnesses: Option<Natural>,
    #[pyo3(default)]
    pub collect: Option<OneOrMore<String>>,
    #[pyo3(default)]
    pub weight_unit: Option<f64>,
    #[pyo3(default)]
    pub skip_invalid: bool,
    #[pyo3(default = Natural(0))]
    pub seed: Natural,
}

impl PlanOptions<'_> {
    /// What was said, for rows of these columns whose weights stand in a column of this name, on so many
    /// threads; the library says what it means.
    pub fn params(
        self,
        columns: Option<&[String]>,
        weights: Option<String>,
        threads: usize,
    ) -> PyResult<PlanParams> {
        let mut params = PlanParams::default()
            .sample_rows(sample_rows(self.sample_rows.as_ref())?)
            .seed(self.seed.0)
            .invalid(invalid(self.skip_invalid))
            .threads(threads);
        params.features = self.features.0;
        params.landmarks = self.landmarks.map(|Landmarks(count)| count);
        params.clusters = self.clusters.map(Natural::size);
        params.sampling = self.sampling.map(|Chosen(rule)| rule);
        params.leverage_lambda = self.leverage_lambda;
        params.frequencies = self.frequencies.map(Natural::size);
        params.witnesses = self.witnesses.map(Natural::size);
        params.bandwidths = self.bandwidth.map(OneOrMore::into_vec);
        if let Some(Chosen(kernel)) = self.kernel {
            params.kernel = kernel;
        }
        if let Some(Chosen(scale)) = self.scale {
            params.scale = Some(scale);
        }
        if let Some(names) = self.collect {
            let names = names.into_vec();
            let collect = Collect::from_names(names.iter().map(String::as_str));
            params.collect = Some(collect.map_err(exception)?);
        }
        if let Some(column) = weights {
            params = params.weights(column, self.weight_unit);
        }
        if let Some(rows) = self.landmarks_from {
            params = params.landmarks_from("landmarks_from", given(&rows, columns)?);
        }
        Ok(params)
    }
}

/// A choice of the library, by name.
pub fn named<T: Named>(name: &str) -> PyResult<T> {
    T::from_name(name).map_err(exception)
}

/// A choice of the library by name; anything else than a name is refused with the names to choose from.
pub struct Chosen<T>(pub T);

impl<'a, 'py, T: Named> FromPyObject<'a, 'py> for Chosen<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<String>() {
            Ok(name) => named(&name).map(Chosen),
            Err(_) => named(&object.repr()?.to_string()).map(Chosen),
        }
    }
}

/// A number of landmarks, or 'auto'.
pub struct Landmarks(LandmarkCount);

impl<'a, 'py> FromPyObject<'a, 'py> for Landmarks {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.extract::<String>().is_ok_and(|s| s == "auto") {
            return Ok(Landmarks(LandmarkCount::Auto));
        }
        object.extract::<Natural>().map(|n| Landmarks(LandmarkCount::Number(n.size())))
    }
}

/// Landmarks of the user's own: an array, or a file.
fn given(rows: &Bound<'_, PyAny>, columns: Option<&[String]>) -> PyResult<Vec<Vec<f64>>> {
    if let Some(files) = Files::of(rows)? {
        let rows = files.read_all(columns)?;
        return match rows.is_empty() {
            true => Err(PyValueError::new_err("landmarks_from has no rows")),
            false => Ok(rows),
        };
    }
    rows_of(rows)
}

/// A number, or an array of variances or of a matrix.
pub fn known_covariance(given: &Bound<'_, PyAny>) -> PyResult<KnownCovariance> {
    if let Ok(variance) = given.extract::<f64>() {
        return Ok(KnownCovariance::Variance(variance));
    }
    let rows = given.py().import("numpy")?.call_method1("atleast_2d", (given,))?;
    KnownCovariance::from_rows(&rows_of(&rows)?).map_err(exception)
}

/// The rows of a small array.
pub fn rows_of(array: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<f64>>> {
    let rows = array.py().import("nysketch._input")?.call_method1("matrix", (array,))?;
    let rows: PyReadonlyArray2<'_, f64> = rows.extract()?;
    Ok(rows.as_array().rows().into_iter().map(|r| r.to_vec()).collect())
}

/// What to do with invalid rows.
pub fn invalid(skip: bool) -> Invalid {
    if skip { Invalid::Skip } else { Invalid::Refuse }
}

fn sample_rows(given: Option<&Bound<'_, PyAny>>) -> PyResult<SampleRows> {
    let Some(given) = given else { return Ok(SampleRows::Default) };
    match given.extract::<Natural>() {
        Ok(n) => Ok(SampleRows::Count(n.size())),
        Err(_) if given.extract::<String>().is_ok_and(|s| s == "all") => Ok(SampleRows::All),
        Err(_) => Err(PyValueError::new_err(format!(
            "sample_rows must be a number or 'all', got {}",
            given.repr()?
        ))),
    }
}
