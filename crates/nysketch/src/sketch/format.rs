//! Plan and sketch files: FORMAT.md in code.
//!
//! A file is a safetensors container whose bytes are a function of its content: reading checks
//! every rule of FORMAT.md and then encodes what was read again; a file that does not come out
//! byte for byte the same is refused.

use super::Sketch;
use super::sums::{Sums, shapes};
use crate::error::{Error, Result};
use crate::frame::{EXPONENTS, Frame};
use crate::plan::{Collect, Features, Plan};
use crate::points::Points;
use crate::weight::Weighting;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Version of the format.
pub const VERSION: u64 = 1;
/// The one metadata key.
const KEY: &str = "nysketch";
/// The tensor that holds the checksum; always the last four bytes of the file.
const CHECKSUM: &str = "crc32";

/// The rule of FORMAT.md that a file breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant says what its fields hold")]
#[non_exhaustive]
pub enum FormatError {
    #[error("not a nysketch file: {0}")]
    Container(String),
    #[error("not a nysketch file: the metadata key 'nysketch' is missing")]
    NoMetadata,
    #[error(
        "damaged file: the checksum is {found:08x} but the bytes give {expected:08x}; copy or make it again"
    )]
    Checksum { found: u32, expected: u32 },
    #[error("damaged file: the metadata is not valid: {0}")]
    Metadata(String),
    #[error(
        "the file has format version {found}, this program reads version {VERSION}; use a newer nysketch"
    )]
    Version { found: String },
    #[error("the file is a {found}, but a {expected} is needed here")]
    Kind { expected: &'static str, found: String },
    #[error("damaged file: the tensor '{0}' is missing")]
    MissingTensor(String),
    #[error("damaged file: the tensor '{0}' does not belong there")]
    UnexpectedTensor(String),
    #[error("damaged file: the tensor '{name}' should be {expected}, found {found}")]
    Shape { name: String, expected: String, found: String },
    #[error("damaged file: {0}")]
    Value(String),
    #[error("damaged file: the plan's fingerprint is {expected}, the file says {found}")]
    Fingerprint { expected: String, found: String },
    #[error("damaged file: its bytes are not the canonical ones for its content")]
    NotCanonical,
}

/// Either kind of file.
#[derive(Debug, Clone)]
pub enum Decoded {
    /// A plan.
    Plan(Plan),
    /// A sketch.
    Sketch(Sketch),
}

/// The metadata: canonical JSON, keys in alphabetical order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    collect: Vec<String>,
    columns: Vec<String>,
    features: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    format: u64,
    kind: String,
    sampling: Option<String>,
    seed: u64,
    weights: Option<String>,
}

struct Tensor {
    name: &'static str,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Tensor {
    fn new<const N: usize, T>(
        name: &'static str,
        dtype: Dtype,
        shape: Vec<usize>,
        values: impl IntoIterator<Item = T>,
        to_bytes: impl Fn(T) -> [u8; N],
    ) -> Self {
        Tensor { name, dtype, shape, bytes: values.into_iter().flat_map(to_bytes).collect() }
    }
}

/// The bytes of a plan file.
pub fn encode_plan(plan: &Plan) -> Vec<u8> {
    encode(&metadata(plan, "plan", None), plan_tensors(plan))
}

/// The bytes of a sketch file.
pub fn encode_sketch(sketch: &Sketch) -> Vec<u8> {
    let plan = sketch.plan();
    let mut tensors = plan_tensors(plan);
    for (name, mut shape) in shapes(plan) {
        shape.push(2);
        // Two's complement, low word first: the little-endian bytes of a 128-bit integer.
        let values = sketch.sums().array(name).iter();
        tensors.push(Tensor::new(name, Dtype::U64, shape, values, |x| x.to_le_bytes()));
    }
    encode(&metadata(plan, "sketch", Some(plan.fingerprint())), tensors)
}

/// SHA-256 of the plan's file.
pub fn fingerprint(plan: &Plan) -> String {
    Sha256::digest(encode_plan(plan)).iter().map(|b| format!("{b:02x}")).collect()
}

fn metadata(plan: &Plan, kind: &str, fingerprint: Option<String>) -> Metadata {
    Metadata {
        collect: plan.collect.names().iter().map(|s| s.to_string()).collect(),
        columns: plan.columns.clone(),
        features: plan.features.name().to_string(),
        fingerprint,
        format: VERSION,
        kind: kind.to_string(),
        sampling: match &plan.features {
            Features::Nystrom(_, sampling) => Some(sampling.name().to_string()),
            Features::Fourier(_) => None,
        },
        seed: plan.seed,
        weights: plan.weighting.as_ref().map(|w| w.column.clone()),
    }
}

fn plan_tensors(plan: &Plan) -> Vec<Tensor> {
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

fn encode(metadata: &Metadata, mut tensors: Vec<Tensor>) -> Vec<u8> {
    tensors.push(Tensor { name: CHECKSUM, dtype: Dtype::U8, shape: vec![4], bytes: vec![0; 4] });
    let views = tensors.iter().map(|t| {
        let view =
            TensorView::new(t.dtype, t.shape.clone(), &t.bytes).expect("shape and bytes agree");
        (t.name, view)
    });
    let json = serde_json::to_string(metadata).expect("strings and numbers are valid JSON");
    let info = HashMap::from([(KEY.to_string(), json)]);
    let mut bytes = safetensors::serialize(views, Some(info)).expect("few tensors of known size");
    let body = bytes.len() - 4;
    let checksum = crc32fast::hash(&bytes[..body]);
    bytes[body..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Reads a plan or a sketch.
pub fn decode(bytes: &[u8]) -> Result<Decoded> {
    let container =
        SafeTensors::deserialize(bytes).map_err(|e| FormatError::Container(e.to_string()))?;
    let (_, header) =
        SafeTensors::read_metadata(bytes).map_err(|e| FormatError::Container(e.to_string()))?;
    let json =
        header.metadata().as_ref().and_then(|m| m.get(KEY)).ok_or(FormatError::NoMetadata)?;
    check_version(json)?;
    let reader = Reader { container, names: HashSet::new() };
    reader.check_checksum(bytes)?;
    let metadata: Metadata =
        serde_json::from_str(json).map_err(|e| FormatError::Metadata(e.to_string()))?;
    let (decoded, again) = read_content(reader, &metadata)?;
    if again != bytes {
        return Err(FormatError::NotCanonical.into());
    }
    Ok(decoded)
}

/// Reads a plan.
pub fn decode_plan(bytes: &[u8]) -> Result<Plan> {
    match decode(bytes)? {
        Decoded::Plan(plan) => Ok(plan),
        Decoded::Sketch(_) => {
            Err(FormatError::Kind { expected: "plan", found: "sketch".into() }.into())
        }
    }
}

/// Reads a sketch.
pub fn decode_sketch(bytes: &[u8]) -> Result<Sketch> {
    match decode(bytes)? {
        Decoded::Sketch(sketch) => Ok(sketch),
        Decoded::Plan(_) => {
            Err(FormatError::Kind { expected: "sketch", found: "plan".into() }.into())
        }
    }
}

/// The version is read first, so that a newer file is not called damaged.
fn check_version(json: &str) -> Result<()> {
    let value: serde_json::Value =
        serde_json::from_str(json).map_err(|e| FormatError::Metadata(e.to_string()))?;
    match value.get("format") {
        Some(v) if v.as_u64() == Some(VERSION) => Ok(()),
        Some(v) => Err(FormatError::Version { found: v.to_string() }.into()),
        None => Err(FormatError::Metadata("the version is missing".into()).into()),
    }
}

fn read_content(mut reader: Reader<'_>, metadata: &Metadata) -> Result<(Decoded, Vec<u8>)> {
    let plan = Arc::new(read_plan(&mut reader, metadata)?);
    match metadata.kind.as_str() {
        "plan" => {
            reader.finish()?;
            let again = encode_plan(&plan);
            Ok((Decoded::Plan(Arc::unwrap_or_clone(plan)), again))
        }
        "sketch" => {
            let sums = read_sums(&mut reader, &plan)?;
            reader.finish()?;
            let found = metadata.fingerprint.clone().unwrap_or_default();
            let expected = plan.fingerprint();
            if found != expected {
                return Err(FormatError::Fingerprint { expected, found }.into());
            }
            sums.check(&plan)
                .map_err(|b| FormatError::Value(format!("{} would {}", b.sum, b.how)))?;
            let sketch = Sketch::from_parts(plan, sums);
            let again = encode_sketch(&sketch);
            Ok((Decoded::Sketch(sketch), again))
        }
        other => {
            Err(FormatError::Kind { expected: "plan or sketch", found: other.to_string() }.into())
        }
    }
}

fn read_plan(reader: &mut Reader<'_>, metadata: &Metadata) -> Result<Plan> {
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
    let parse = |sampling: &String| sampling.parse().map_err(|e: Error| value_error(e.to_string()));
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
    let plan = Plan {
        columns,
        weighting,
        frame: Frame::from_parts(centre, scale, exponent),
        features,
        bandwidths,
        collect: Collect::from_names(metadata.collect.iter().map(String::as_str))
            .map_err(|e| value_error(e.to_string()))?,
        seed: metadata.seed,
    };
    plan.check().map_err(|e| value_error(e.to_string()))?;
    Ok(plan)
}

fn read_sums(reader: &mut Reader<'_>, plan: &Plan) -> Result<Sums> {
    let mut arrays: HashMap<&str, Vec<i128>> = HashMap::new();
    for (name, mut shape) in shapes(plan) {
        shape.push(2);
        let bytes = reader.tensor(name, Dtype::U64, &shape)?;
        let words = bytes.as_chunks::<16>().0.iter().map(|b| i128::from_le_bytes(*b));
        arrays.insert(name, words.collect());
    }
    let mut take = |name| arrays.remove(name).unwrap_or_default();
    Ok(Sums {
        rows: take("rows"),
        skipped: take("skipped"),
        features: take("features"),
        coverage: take("coverage"),
        cell_rows: take("cell_rows"),
        cell_sum: take("cell_sum"),
        cell_square: take("cell_square"),
        sum: take("sum"),
        outer: take("outer"),
    })
}

fn value_error(what: impl Into<String>) -> crate::Error {
    FormatError::Value(what.into()).into()
}

/// The tensors of a file, each of which must be asked for.
struct Reader<'a> {
    container: SafeTensors<'a>,
    names: HashSet<&'static str>,
}

impl<'a> Reader<'a> {
    fn view(&self, name: &str) -> Result<TensorView<'a>> {
        Ok(self.container.tensor(name).map_err(|_| FormatError::MissingTensor(name.into()))?)
    }

    /// First dimension of a tensor. Sizes are bounded by the file's own, which is in memory.
    fn length(&self, name: &str) -> Result<usize> {
        Ok(self.view(name)?.shape().first().copied().unwrap_or(0))
    }

    fn tensor(&mut self, name: &'static str, dtype: Dtype, shape: &[usize]) -> Result<&'a [u8]> {
        let view = self.view(name)?;
        if view.dtype() != dtype || view.shape() != shape {
            return Err(FormatError::Shape {
                name: name.to_string(),
                expected: format!("{dtype:?} {shape:?}"),
                found: format!("{:?} {:?}", view.dtype(), view.shape()),
            }
            .into());
        }
        self.names.insert(name);
        Ok(view.data())
    }

    fn f64s(&mut self, name: &'static str, n: usize) -> Result<Vec<f64>> {
        let bytes = self.tensor(name, Dtype::F64, &[n])?;
        let values: Vec<f64> =
            bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        if !values.iter().all(|x| x.is_finite()) {
            return Err(value_error(format!(
                "the tensor '{name}' holds a value that is not finite"
            )));
        }
        Ok(values)
    }

    fn i32s(&mut self, name: &'static str, n: usize) -> Result<Vec<i32>> {
        let bytes = self.tensor(name, Dtype::I32, &[n])?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b)).collect())
    }

    fn f32s(&mut self, name: &'static str, rows: usize, columns: usize) -> Result<Vec<f32>> {
        let bytes = self.tensor(name, Dtype::F32, &[rows, columns])?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
    }

    fn check_checksum(&self, bytes: &[u8]) -> Result<()> {
        let view = self.view(CHECKSUM)?;
        if view.dtype() != Dtype::U8 || view.shape() != [4] {
            return Err(FormatError::MissingTensor(CHECKSUM.into()).into());
        }
        let (body, tail) = bytes.split_at(bytes.len() - 4);
        let found = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
        let expected = crc32fast::hash(body);
        match found == expected {
            true => Ok(()),
            false => Err(FormatError::Checksum { found, expected }.into()),
        }
    }

    /// Every tensor must have been asked for.
    fn finish(&self) -> Result<()> {
        for name in self.container.names() {
            if name != CHECKSUM && !self.names.contains(name) {
                return Err(FormatError::UnexpectedTensor(name.to_string()).into());
            }
        }
        Ok(())
    }
}
