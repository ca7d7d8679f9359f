//! What can be chosen about a plan: the keywords of `Plan.from_data` and of `nysketch.spark.plan`.

use crate::error::exception;
use crate::input::Files;
use crate::natural::Natural;
use numpy::PyReadonlyArray2;
use nysketch::planning::DEFAULT_FREQUENCIES;
use nysketch::{
    Collect, FeatureParams, GivenLandmarks, Invalid, PlanParams, SampleRows, Sampling, Scale,
    Weighting,
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
    pub landmarks: Option<Natural>,
    #[pyo3(default)]
    pub sampling: Option<String>,
    #[pyo3(default)]
    pub leverage_lambda: Option<f64>,
    #[pyo3(default)]
    pub landmarks_from: Option<Bound<'py, PyAny>>,
    pub features: String,
    #[pyo3(default)]
    pub frequencies: Option<Natural>,
    #[pyo3(default)]
    pub bandwidth: Option<OneOrMore<f64>>,
    #[pyo3(default)]
    pub scale: Option<String>,
    #[pyo3(default)]
    pub sample_rows: Option<Bound<'py, PyAny>>,
    #[pyo3(default)]
    pub collect: Option<OneOrMore<String>>,
    #[pyo3(default = 1.0)]
    pub weight_unit: f64,
    #[pyo3(default)]
    pub skip_invalid: bool,
    #[pyo3(default = Natural(0))]
    pub seed: Natural,
}

impl PlanOptions<'_> {
    /// What they mean, for rows of these columns whose weights stand in a column of this name, on so many threads.
    pub fn params(
        self,
        columns: Option<&[String]>,
        weights: Option<String>,
        threads: usize,
    ) -> PyResult<PlanParams> {
        let unit = self.weight_unit;
        Ok(PlanParams {
            auto_landmarks: None,
            scale: scale(self.scale.as_deref())?,
            sample_rows: sample_rows(self.sample_rows.as_ref())?,
            weighting: weights.map(|column| Weighting { column, unit }),
            seed: self.seed.0,
            invalid: invalid(self.skip_invalid),
            threads,
            features: features(
                self.features,
                Chosen {
                    landmarks: self.landmarks.map(Natural::size),
                    sampling: self.sampling,
                    leverage_lambda: self.leverage_lambda,
                    landmarks_from: self.landmarks_from,
                    frequencies: self.frequencies.map(Natural::size),
                },
                columns,
            )?,
            bandwidths: self.bandwidth.map(|b| {
                let mut values = b.into_vec();
                values.sort_by(|a, b| b.total_cmp(a));
                values
            }),
            collect: self
                .collect
                .map(|names| Collect::from_names(names.into_vec().iter().map(String::as_str)))
                .transpose()
                .map_err(exception)?,
        })
    }
}

/// What was chosen about landmarks or frequencies.
struct Chosen<'py> {
    landmarks: Option<usize>,
    sampling: Option<String>,
    leverage_lambda: Option<f64>,
    landmarks_from: Option<Bound<'py, PyAny>>,
    frequencies: Option<usize>,
}

fn features(
    name: String,
    chosen: Chosen<'_>,
    columns: Option<&[String]>,
) -> PyResult<FeatureParams> {
    let refuse = |message: &str| Err(PyValueError::new_err(message.to_string()));
    let Chosen { landmarks, sampling, leverage_lambda, landmarks_from, frequencies } = chosen;
    match name.as_str() {
        "fourier" => {
            let any = landmarks.is_some()
                || sampling.is_some()
                || landmarks_from.is_some()
                || leverage_lambda.is_some();
            match any {
                true => refuse("Fourier features have no landmarks; use frequencies"),
                false => Ok(FeatureParams::Fourier {
                    frequencies: frequencies.unwrap_or(DEFAULT_FREQUENCIES),
                }),
            }
        }
        "nystrom" if frequencies.is_some() => refuse("frequencies goes with features='fourier'"),
        "nystrom" => {
            if let Some(rows) = landmarks_from {
                return match landmarks.is_some() || sampling.is_some() || leverage_lambda.is_some()
                {
                    true => refuse(
                        "landmarks_from goes without landmarks, sampling and leverage_lambda",
                    ),
                    false => given(&rows, columns),
                };
            }
            let sampling = match (sampling, leverage_lambda) {
                (Some(s), _) => s.parse().map_err(exception)?,
                (None, Some(_)) => Sampling::Leverage,
                (None, None) => Sampling::default(),
            };
            Ok(FeatureParams::Nystrom { landmarks, sampling, leverage_lambda })
        }
        other => refuse(&format!("features must be 'nystrom' or 'fourier', got '{other}'")),
    }
}

/// Landmarks of the user's own: an array, or a file.
fn given(rows: &Bound<'_, PyAny>, columns: Option<&[String]>) -> PyResult<FeatureParams> {
    let name = "landmarks_from".to_string();
    if let Some(files) = Files::of(rows)? {
        let rows = files.read_all(columns)?;
        return match rows.is_empty() {
            true => Err(PyValueError::new_err("landmarks_from has no rows")),
            false => Ok(FeatureParams::Given(GivenLandmarks { name, rows })),
        };
    }
    let rows = rows.py().import("nysketch._input")?.call_method1("matrix", (rows,))?;
    let rows: PyReadonlyArray2<'_, f64> = rows.extract()?;
    let rows = rows.as_array().rows().into_iter().map(|r| r.to_vec()).collect();
    Ok(FeatureParams::Given(GivenLandmarks { name, rows }))
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

fn scale(given: Option<&str>) -> PyResult<Scale> {
    match given {
        None => Ok(Scale::None),
        Some("standard") => Ok(Scale::Standard),
        Some(other) => {
            Err(PyValueError::new_err(format!("scale must be None or 'standard', got '{other}'")))
        }
    }
}
