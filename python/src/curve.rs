//! `KCurve`: models for a range of k.

use crate::model::PyModel;
use crate::results::html;
use nysketch::decoder::Curve;
use pyo3::prelude::*;
use std::sync::Arc;

/// Models for a range of k, and the k that the sketch suggests.
///
/// Returned by ``Sketch.k_curve``.
#[pyclass(name = "KCurve", module = "nysketch", frozen)]
pub struct PyCurve {
    curve: Curve,
}

impl PyCurve {
    pub fn new(curve: Curve) -> Self {
        PyCurve { curve }
    }
}

#[pymethods]
impl PyCurve {
    /// Every k, in order.
    #[getter]
    fn ks(&self) -> Vec<usize> {
        self.curve.points.iter().map(|p| p.k).collect()
    }

    /// The risk of each model, estimated from the sketch.
    #[getter]
    fn risks(&self) -> Vec<f64> {
        self.curve.points.iter().map(|p| p.risk).collect()
    }

    /// The Bayesian information criterion of each mixture, or None; the smallest is best.
    #[getter]
    fn bics(&self) -> Vec<Option<f64>> {
        self.curve.points.iter().map(|p| p.bic).collect()
    }

    /// The integrated completed likelihood of each mixture, or None: BIC with a penalty for
    /// overlapping components. The smallest indicates the number of clusters.
    #[getter]
    fn icls(&self) -> Vec<Option<f64>> {
        self.curve.points.iter().map(|p| p.icl).collect()
    }

    /// The model of every k.
    #[getter]
    fn models(&self) -> Vec<PyModel> {
        let points = self.curve.points.iter();
        points.map(|p| PyModel { model: Arc::new(p.model.clone()) }).collect()
    }

    /// The suggested k.
    #[getter]
    fn suggested(&self) -> usize {
        self.curve.points[self.curve.suggested].k
    }

    /// The model of the suggested k.
    #[getter]
    fn best(&self) -> PyModel {
        let point = &self.curve.points[self.curve.suggested];
        PyModel { model: Arc::new(point.model.clone()) }
    }

    /// Whether the suggested k stands out.
    #[getter]
    fn clear(&self) -> bool {
        self.curve.clear
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html("k_curve", slf)
    }

    fn __repr__(&self) -> String {
        let ks = self.ks();
        let (low, high) = (ks.first().copied().unwrap_or(0), ks.last().copied().unwrap_or(0));
        format!("KCurve(k={low}..{high}, suggested={})", self.suggested())
    }
}
