//! Options of planning: the keywords of `Plan.from_data` and of `nysketch.spark.plan`.

use crate::error::exception;
use crate::input::{self, Files};
use crate::natural::Natural;
use numpy::PyReadonlyArray2;
use nysketch::planning::{DatePart, Missing};
use nysketch::{
    Choice, Collect, FeatureKind, Invalid, Kernel, KnownCovariance, LandmarkCount, Named,
    PlanParams, SampleRows, Sampling, Scale,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;

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
    /// Returns all values.
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
    /// Columns that the user chose.
    #[pyo3(default)]
    pub named: Vec<String>,
    #[pyo3(default)]
    pub categorical: Option<OneOrMore<String>>,
    #[pyo3(default)]
    pub numeric: Option<OneOrMore<String>>,
    #[pyo3(default)]
    pub dates: Option<Dates>,
    #[pyo3(default)]
    pub missing: Option<Chosen<Holes>>,
    #[pyo3(default)]
    pub log: Option<OneOrMore<String>>,
    #[pyo3(default)]
    pub weight_columns: Option<BTreeMap<String, f64>>,
    #[pyo3(default)]
    pub unit: Option<OneOrMore<String>>,
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

/// Treatment of missing values, with Python's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    Auto,
    Error,
    Skip,
    Partial,
}

impl Named for Holes {
    const PARAMETER: &'static str = "`missing`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(Holes::Auto, "auto", "partial where values are missing while planning"),
        Choice::new(Holes::Error, "error", "A row with a missing value is invalid"),
        Choice::new(Holes::Skip, "skip", "Rows that lack a value are left out and counted"),
        Choice::new(Holes::Partial, "partial", "Rows count by the values they have"),
    ];
}

/// Columns of dates, with the parts to measure if they are given.
pub struct Dates(pub Vec<(String, Option<Vec<DatePart>>)>);

impl<'a, 'py> FromPyObject<'a, 'py> for Dates {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Ok(parts_of) = object.cast::<PyDict>() else {
            let names: OneOrMore<String> = object.extract()?;
            return Ok(Dates(names.into_vec().into_iter().map(|name| (name, None)).collect()));
        };
        let mut dates = Vec::new();
        for (name, parts) in parts_of.iter() {
            let parts: Option<OneOrMore<String>> = parts.extract()?;
            let parts = parts.map(|parts| {
                let parts = parts.into_vec();
                parts.iter().map(|part| named::<DatePart>(part)).collect::<PyResult<Vec<_>>>()
            });
            dates.push((name.extract()?, parts.transpose()?));
        }
        Ok(Dates(dates))
    }
}

/// Returns the names, which may be none.
fn all(names: &Option<OneOrMore<String>>) -> Vec<String> {
    match names {
        None => Vec::new(),
        Some(OneOrMore::One(name)) => vec![name.clone()],
        Some(OneOrMore::More(names)) => names.clone(),
    }
}

impl PlanOptions<'_> {
    /// Returns the choice of columns, which may include and exclude some.
    pub fn choice(&self, columns: input::Chosen, exclude: Vec<String>) -> input::Choice {
        let dates = self.dates.iter().flat_map(|Dates(dates)| dates);
        input::Choice {
            columns,
            exclude,
            categorical: all(&self.categorical),
            numeric: all(&self.numeric),
            dates: dates.map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Returns whether incomplete rows are left out.
    pub fn skips(&self) -> bool {
        self.skip_invalid || self.missing.as_ref().is_some_and(|Chosen(m)| *m == Holes::Skip)
    }

    /// Returns whether missing values are allowed.
    pub fn allows_missing(&self) -> bool {
        !self.missing.as_ref().is_some_and(|Chosen(m)| *m == Holes::Error)
    }

    /// Converts the options to parameters of the library, which defines their meaning. `columns`
    /// are the columns of the rows, `weights` is the name of the column of weights, and `matching`
    /// returns the columns that names and patterns match.
    pub fn params(
        self,
        columns: Option<&[String]>,
        matching: impl Fn(&[String]) -> PyResult<Vec<String>>,
        weights: Option<String>,
        threads: usize,
    ) -> PyResult<PlanParams> {
        if self.skip_invalid && !self.allows_missing() {
            return Err(PyValueError::new_err(
                "skip_invalid=True leaves out rows that lack values, which missing='error' refuses",
            ));
        }
        let mut params = PlanParams::default()
            .sample_rows(sample_rows(self.sample_rows.as_ref())?)
            .seed(self.seed.0)
            .invalid(invalid(self.skips()))
            .missing(match self.missing {
                None | Some(Chosen(Holes::Auto | Holes::Skip)) => Missing::Auto,
                Some(Chosen(Holes::Error)) => Missing::Error,
                Some(Chosen(Holes::Partial)) => Missing::Partial,
            })
            .log(matching(&all(&self.log))?)
            .unit(all(&self.unit))
            .categorical(matching(&all(&self.categorical))?)
            .threads(threads);
        params.named = matching(&[&self.named[..], &all(&self.numeric)].concat())?;
        params.named.extend(params.categorical.clone());
        for (pattern, parts) in self.dates.map_or(Vec::new(), |Dates(dates)| dates) {
            let parts = parts.unwrap_or_else(|| DatePart::DEFAULT.to_vec());
            for name in matching(&[pattern])? {
                params.named.push(name.clone());
                params = params.dates(name, parts.clone());
            }
        }
        for (pattern, weight) in self.weight_columns.unwrap_or_default() {
            for name in matching(&[pattern])? {
                params = params.column_weight(name, weight);
            }
        }
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
        params.scale = self.scale.map(|Chosen(scale)| scale);
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

/// Returns a choice of the library by name.
pub fn named<T: Named>(name: &str) -> PyResult<T> {
    T::from_name(name).map_err(exception)
}

/// A choice of the library by name. Any other object is refused, and the error lists the names.
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

/// Reads the user's own landmarks, from an array or a file.
fn given(rows: &Bound<'_, PyAny>, columns: Option<&[String]>) -> PyResult<Vec<Vec<f64>>> {
    if let Some(files) = Files::of(rows)? {
        let rows = files.read_all(columns)?;
        return if rows.is_empty() {
            Err(PyValueError::new_err("landmarks_from has no rows"))
        } else {
            Ok(rows)
        };
    }
    rows_of(rows)
}

/// Reads a number, an array of variances, or a matrix.
pub fn known_covariance(given: &Bound<'_, PyAny>) -> PyResult<KnownCovariance> {
    if let Ok(variance) = given.extract::<f64>() {
        return Ok(KnownCovariance::Variance(variance));
    }
    let rows = given.py().import("numpy")?.call_method1("atleast_2d", (given,))?;
    KnownCovariance::from_rows(&rows_of(&rows)?).map_err(exception)
}

/// Returns the rows of a small array.
pub fn rows_of(array: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<f64>>> {
    let rows = array.py().import("nysketch._input")?.call_method1("matrix", (array,))?;
    let rows: PyReadonlyArray2<'_, f64> = rows.extract()?;
    Ok(rows.as_array().rows().into_iter().map(|r| r.to_vec()).collect())
}

/// Returns how invalid rows are treated.
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
