//! The plan in a file.

use super::container::{Reader, Tensor, encode, value_error};
use crate::collect::Collect;
use crate::error::{FormatError, Result};
use crate::frame::{EXPONENTS, Frame};
use crate::kernel::Kernel;
use crate::landmarks::Sampling;
use crate::names::Named;
use crate::plan::{Features, Plan};
use crate::points::Points;
use crate::weight::Weighting;
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Versions of the format that are read. A file has the least version that can hold its content.
pub const VERSIONS: std::ops::RangeInclusive<u64> = 1..=2;

/// Sections that a plan of version 2 may have: none yet.
const SECTIONS: [&str; 0] = [];

/// The metadata: canonical JSON, keys in alphabetical order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    collect: Vec<String>,
    columns: Vec<String>,
    features: String,
    /// The plan's fingerprint, in a sketch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    format: u64,
    /// From version 2 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// What kind of file it is.
    pub kind: String,
    sampling: Option<String>,
    /// From version 2 on: the SHA-256 of each section by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    sections: Option<BTreeMap<String, String>>,
    seed: u64,
    weights: Option<String>,
}

impl Metadata {
    /// What says how to read a plan.
    pub fn new(plan: &Plan, kind: &str, fingerprint: Option<String>) -> Self {
        let format = version(plan);
        Metadata {
            collect: plan.collect.names().iter().map(|s| s.to_string()).collect(),
            columns: plan.columns.clone(),
            features: plan.features.name().to_string(),
            fingerprint,
            format,
            kernel: (format > 1).then(|| plan.kernel.name().to_string()),
            kind: kind.to_string(),
            sampling: match &plan.features {
                Features::Nystrom(_, sampling) => Some(sampling.name().to_string()),
                Features::Fourier(_) => None,
            },
            sections: (format > 1).then(BTreeMap::new),
            seed: plan.seed,
            weights: plan.weighting.as_ref().map(|w| w.column.clone()),
        }
    }

    /// Canonical JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers are valid JSON")
    }

    /// Reads the version first, so that a newer file is not called damaged.
    pub fn from_json(json: &str) -> Result<Self> {
        let damaged = |e: serde_json::Error| FormatError::Metadata(e.to_string());
        let value: serde_json::Value = serde_json::from_str(json).map_err(damaged)?;
        match value.get("format") {
            Some(v) if v.as_u64().is_some_and(|v| VERSIONS.contains(&v)) => {}
            Some(v) => return Err(FormatError::Version { found: v.to_string() }.into()),
            None => return Err(FormatError::Metadata("the version is missing".into()).into()),
        }
        Ok(serde_json::from_str(json).map_err(damaged)?)
    }
}

/// The least version that can hold a plan.
fn version(plan: &Plan) -> u64 {
    if plan.kernel == Kernel::Gaussian { 1 } else { 2 }
}

impl Plan {
    /// The bytes of the plan's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(Metadata::new(self, "plan", None).to_json(), plan_tensors(self))
    }

    /// SHA-256 of the plan's file, in hexadecimal.
    pub fn fingerprint(&self) -> String {
        sha256(&self.to_bytes())
    }
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// The tensors of a plan.
pub fn plan_tensors(plan: &Plan) -> Vec<Tensor> {
    let (d, points) = (plan.dims(), plan.features.points());
    let f64s = |name, values: &[f64]| {
        Tensor::new(name, Dtype::F64, vec![values.len()], values, |x| x.to_le_bytes())
    };
    let name = points_name(plan.features.name());
    let mut tensors = vec![
        f64s("bandwidths", &plan.bandwidths),
        f64s("centre", &plan.frame.centre),
        f64s("scale", &plan.frame.scale),
        Tensor::new("exponent", Dtype::I32, vec![d], &plan.frame.exponent, |x| x.to_le_bytes()),
        Tensor::new(name, Dtype::F32, vec![points.len(), d], points.data(), |x| x.to_le_bytes()),
    ];
    tensors.extend(plan.weighting.as_ref().map(|w| f64s("weight_unit", &[w.unit])));
    tensors
}

fn points_name(features: &str) -> &'static str {
    if features == "nystrom" { "landmarks" } else { "frequencies" }
}

/// Reads the tensors of a plan and checks every rule.
pub fn read_plan(reader: &mut Reader<'_>, metadata: &Metadata) -> Result<Plan> {
    let columns = metadata.columns.clone();
    let d = columns.len();
    let centre = reader.f64s("centre", d)?;
    let scale = reader.f64s("scale", d)?;
    let bandwidths = reader.f64s("bandwidths", reader.length("bandwidths")?)?;
    let exponent = reader.i32s("exponent", d)?;
    // Before powers of two are made of them; everything else is checked by the plan itself.
    if !exponent.iter().all(|e| EXPONENTS.contains(e)) {
        return Err(value_error(format!("an exponent is outside {EXPONENTS:?}")));
    }
    let name = points_name(&metadata.features);
    let data = reader.f32s(name, reader.length(name)?, d)?;
    if d == 0 || data.is_empty() {
        return Err(value_error(format!("there are no columns or no {name}")));
    }
    let points = Points::new(d, data);
    let parse = |name: &String| Sampling::from_name(name).map_err(|e| value_error(e.to_string()));
    let features = match (metadata.features.as_str(), &metadata.sampling) {
        ("nystrom", Some(sampling)) => Features::Nystrom(points, parse(sampling)?),
        ("fourier", None) => Features::Fourier(points),
        (features, sampling) => {
            return Err(value_error(format!(
                "unknown features '{features}' with sampling {sampling:?}"
            )));
        }
    };
    let weighting = match &metadata.weights {
        Some(column) => {
            Some(Weighting { column: column.clone(), unit: reader.f64s("weight_unit", 1)?[0] })
        }
        None => None,
    };
    let kernel = match (metadata.format, &metadata.kernel, &metadata.sections) {
        (1, None, None) => Kernel::Gaussian,
        (2, Some(name), Some(sections)) => {
            if let Some(name) = sections.keys().find(|name| !SECTIONS.contains(&name.as_str())) {
                return Err(FormatError::Section(name.clone()).into());
            }
            Kernel::from_name(name).map_err(|e| value_error(e.to_string()))?
        }
        _ => return Err(value_error("a kernel and sections stand in files of version 2 alone")),
    };
    let plan = Plan {
        columns,
        weighting,
        frame: Frame::from_parts(centre, scale, exponent),
        features,
        kernel,
        bandwidths,
        collect: Collect::from_names(metadata.collect.iter().map(String::as_str))
            .map_err(|e| value_error(e.to_string()))?,
        seed: metadata.seed,
    };
    plan.check().map_err(|e| value_error(e.to_string()))?;
    Ok(plan)
}
