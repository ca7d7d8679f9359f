//! Encoding of plans.

use super::container::{Content, Reader, Tensor, value_error};
use crate::error::names::Named;
use crate::error::{FormatError, Result};
use crate::kernel::Kernel;
use crate::kernel::fourier::FrequencyLaw;
use crate::kernel::search::PanelsOnce;
use crate::numeric::digest::is_sha256;
use crate::numeric::points::Points;
use crate::plan::collect::Collect;
use crate::plan::devices::OnDevices;
use crate::plan::frame::{EXPONENTS, Frame};
use crate::plan::private::{People, Private};
use crate::plan::sampling::Sampling;
use crate::plan::witnesses::Witnesses;
use crate::plan::{Features, Plan};
use crate::recipe::{Category, Number, Recipe, Step};
use crate::rows::weight::Weighting;
use crate::sketch::Sketch;
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Supported versions of the format. A file has the lowest version that supports its content.
pub const VERSIONS: std::ops::RangeInclusive<u64> = 1..=4;

/// The section of retained rows, and its tensor.
const WITNESSES: &str = "witnesses";
const WITNESS_ROWS: &str = "witnesses.rows";
const WITNESS_LEVELS: &str = "witnesses.levels";
const WITNESS_WEIGHTS: &str = "witnesses.weights";

/// The section of the folds of a sketch.
pub const FOLDS: &str = "folds";

/// Optional sections of a plan or a sketch, since version 2.
const SECTIONS: [&str; 2] = [FOLDS, WITNESSES];

/// The metadata: canonical JSON with keys in alphabetical order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// Since version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    categories: Option<Vec<Levels>>,
    collect: Vec<String>,
    columns: Vec<String>,
    features: String,
    /// The fingerprint of the plan, in a sketch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    format: u64,
    /// Since version 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// The kind of the file.
    pub kind: String,
    /// Since version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    least_present: Option<u64>,
    /// Since version 4: the party of a masked sketch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masked: Option<Value>,
    /// Since version 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    private: Option<Bounded>,
    /// Since version 4: the cost of a release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<Value>,
    sampling: Option<String>,
    /// Since version 2: the SHA-256 of each section by name, and the rule that assigns rows to
    /// folds.
    #[serde(skip_serializing_if = "Option::is_none")]
    sections: Option<BTreeMap<String, String>>,
    seed: u64,
    /// Since version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepOf>>,
    /// Since version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<Vec<[usize; 2]>>,
    weights: Option<String>,
}

/// A category; its weight is stored in a tensor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Levels {
    levels: Vec<String>,
    name: String,
}

/// The parameters of a private plan; the bounds are stored in tensors.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounded {
    #[serde(skip_serializing_if = "Option::is_none")]
    people: Option<RowsPer>,
    radius: u64,
    spent: u64,
}

/// The protected unit, if it is not a single row.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowsPer {
    column: String,
    rows: u64,
}

impl Bounded {
    fn of(private: &Private) -> Self {
        let people = |p: &People| RowsPer { column: p.column.clone(), rows: p.rows };
        let people = private.people.as_ref().map(people);
        Bounded { people, radius: private.radius, spent: private.spent }
    }

    fn people(&self) -> Result<Option<People>> {
        let people = self.people.as_ref().map(|p| People::new(&p.column, p.rows));
        people.transpose().map_err(|e| value_error(e.to_string()))
    }
}

/// The source of a column of numbers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepOf {
    input: String,
    step: String,
}

impl Metadata {
    /// Returns the metadata of a plan.
    pub fn of_plan(plan: &Plan) -> Self {
        Metadata::new(plan, "plan", None, None)
    }

    /// Returns the metadata of a sketch.
    pub fn of_sketch(sketch: &Sketch) -> Self {
        let folds = sketch.folds().map(|folds| folds.rule().to_text());
        Metadata::new(sketch.plan(), "sketch", Some(sketch.plan().fingerprint()), folds)
    }

    /// Returns the metadata of a release or a masked sketch over a plan. Each kind defines its own
    /// part, as JSON with keys in alphabetical order.
    pub fn of_kind(kind: &str, plan: &Plan, masked: Option<Value>, release: Option<Value>) -> Self {
        let metadata = Metadata::new(plan, kind, Some(plan.fingerprint()), None);
        Metadata { masked, release, ..metadata }
    }

    fn new(plan: &Plan, kind: &str, fingerprint: Option<String>, folds: Option<String>) -> Self {
        let mut sections = sections(plan);
        sections.extend(folds.map(|folds| (FOLDS.into(), folds)));
        let format = version(plan, &sections);
        let recipe = (format > 2).then_some(&plan.recipe);
        Metadata {
            categories: recipe.map(|r| {
                let levels =
                    |c: &Category| Levels { levels: c.levels.clone(), name: c.name.clone() };
                r.categories.iter().map(levels).collect()
            }),
            collect: plan.collect.names().iter().map(|s| s.to_string()).collect(),
            columns: plan.columns.clone(),
            features: plan.features.name().to_string(),
            fingerprint,
            format,
            kernel: (format > 1).then(|| plan.kernel.name().to_string()),
            kind: kind.to_string(),
            least_present: recipe.and_then(|r| r.least_present).map(|n| n as u64),
            masked: None,
            private: plan.private.as_ref().map(Bounded::of),
            release: None,
            sampling: match &plan.features {
                Features::Nystrom(_, sampling) => Some(sampling.name().to_string()),
                Features::Fourier(..) => None,
            },
            sections: (format > 1).then_some(sections),
            seed: plan.seed,
            steps: recipe.map(|r| {
                let step =
                    |n: &Number| StepOf { input: n.input.clone(), step: n.step.name().into() };
                r.numbers.iter().map(step).collect()
            }),
            units: recipe.map(|r| r.units.iter().map(|u| [u.start, u.end]).collect()),
            weights: plan.weighting.as_ref().map(|w| w.column.clone()),
        }
    }

    /// Returns the digest of the section of retained rows, if it exists.
    pub fn witnesses(&self) -> Option<&str> {
        self.sections.as_ref()?.get(WITNESSES).map(String::as_str)
    }

    /// Returns the rule that assigns the rows of a sketch to folds, if it has folds.
    pub fn folds(&self) -> Option<&str> {
        self.sections.as_ref()?.get(FOLDS).map(String::as_str)
    }

    /// Encodes the metadata as canonical JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers are valid JSON")
    }

    /// Decodes the metadata. The version is read first, so that a newer file is not reported as
    /// damaged.
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

/// Returns the lowest version that supports a plan and these sections.
fn version(plan: &Plan, sections: &BTreeMap<String, String>) -> u64 {
    let first = plan.kernel == Kernel::Gaussian
        && matches!(
            plan.features,
            Features::Nystrom(..) | Features::Fourier(_, FrequencyLaw::Normal)
        );
    match plan.recipe.is_plain(&plan.columns) {
        _ if plan.private.is_some() => 4,
        true if first && sections.is_empty() => 1,
        true => 2,
        false => 3,
    }
}

/// Returns the digest of each section of a plan by name.
fn sections(plan: &Plan) -> BTreeMap<String, String> {
    let witnesses = plan.witnesses.as_ref().map(|w| (WITNESSES.into(), w.digest().into()));
    witnesses.into_iter().collect()
}

impl Plan {
    /// Returns the bytes of the plan's file, including the retained rows if they are available.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.content().encode()
    }

    /// Returns the content of the plan's file.
    pub(super) fn content(&self) -> Content<'_> {
        self.with_sections(section_tensors(self))
    }

    /// Returns the SHA-256, in hexadecimal, of the plan's file without the tensors of sections,
    /// whose digests are in the metadata. It does not depend on whether the retained rows are
    /// available.
    pub fn fingerprint(&self) -> String {
        self.with_sections(Vec::new()).sha256()
    }

    /// Returns the bytes that the fingerprint hashes: two plans are equal if these bytes are equal.
    pub(crate) fn identity(&self) -> Vec<u8> {
        self.with_sections(Vec::new()).encode()
    }

    fn with_sections<'a>(&'a self, sections: Vec<Tensor<'a>>) -> Content<'a> {
        let mut tensors = plan_tensors(self);
        tensors.extend(sections);
        Content::new(Metadata::of_plan(self).to_json(), tensors)
    }
}

/// Returns the tensors of a plan's available sections.
pub fn section_tensors(plan: &Plan) -> Vec<Tensor<'_>> {
    let levels = plan.witnesses.as_ref().map_or(&[][..], |w| w.levels());
    let levels = (!levels.is_empty()).then(|| level_tensor(WITNESS_LEVELS, plan, levels));
    let weights = plan.witnesses.as_ref().map_or(&[][..], |w| w.weights());
    let weights = (!weights.is_empty()).then(|| {
        Tensor::new(WITNESS_WEIGHTS, Dtype::F32, vec![weights.len(), 1], weights, |x| {
            x.to_le_bytes()
        })
    });
    let rows = plan.witness_rows().map(|rows| points_tensor(WITNESS_ROWS, rows));
    levels.into_iter().chain(rows).chain(weights).collect()
}

fn points_tensor<'a>(name: &'static str, points: &'a Points) -> Tensor<'a> {
    let shape = vec![points.len(), points.dims()];
    Tensor::new(name, Dtype::F32, shape, points.data(), |x| x.to_le_bytes())
}

fn f64s<'a>(name: &'static str, values: &'a [f64]) -> Tensor<'a> {
    Tensor::new(name, Dtype::F64, vec![values.len()], values, |x| x.to_le_bytes())
}

/// Returns a tensor with the level of each category for each point.
fn level_tensor<'a>(name: &'static str, plan: &Plan, levels: &'a [u32]) -> Tensor<'a> {
    let categories = plan.categories().len();
    let shape = vec![levels.len() / categories, categories];
    Tensor::new(name, Dtype::I32, shape, levels, |x| x.to_le_bytes())
}

/// Returns the tensors of a plan except those of its sections.
pub fn plan_tensors(plan: &Plan) -> Vec<Tensor<'_>> {
    let (d, points) = (plan.dims(), plan.features.points());
    let name = points_name(plan.features.name());
    let mut tensors = vec![
        f64s("bandwidths", &plan.bandwidths),
        f64s("centre", &plan.frame.centre),
        f64s("scale", &plan.frame.scale),
        Tensor::new("exponent", Dtype::I32, vec![d], &plan.frame.exponent, |x| x.to_le_bytes()),
        points_tensor(name, points),
    ];
    tensors.extend(
        plan.weighting.as_ref().map(|w| f64s("weight_unit", std::slice::from_ref(&w.unit))),
    );
    if !plan.categories().is_empty() {
        let weights = plan.categories().iter().map(|c| c.weight);
        let shape = vec![weights.len()];
        tensors.push(Tensor::new("category_weight", Dtype::F64, shape, weights, f64::to_le_bytes));
        tensors.push(level_tensor("landmark_levels", plan, &plan.landmark_levels));
    }
    if let Some(private) = &plan.private {
        tensors.extend([f64s("low", &private.low), f64s("high", &private.high)]);
    }
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
    // Exponents must be in range before the powers of two are computed; the plan checks everything
    // else.
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
        ("fourier", None) => Features::Fourier(points, FrequencyLaw::Normal),
        ("adapted-fourier", None) => Features::Fourier(points, FrequencyLaw::Adapted),
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
        (2..=4, Some(name), Some(sections)) => {
            if let Some(name) = sections.keys().find(|name| !SECTIONS.contains(&name.as_str())) {
                return Err(FormatError::Section(name.clone()).into());
            }
            Kernel::from_name(name).map_err(|e| value_error(e.to_string()))?
        }
        _ => return Err(value_error("a kernel and sections stand in files from version 2 on")),
    };
    let recipe = read_recipe(reader, metadata)?;
    let landmark_levels = match recipe.categories.len() {
        0 => Vec::new(),
        categories => read_levels(reader, "landmark_levels", features.points().len(), categories)?,
    };
    let private = match (metadata.format, &metadata.private) {
        (4, Some(bounded)) => Some(Private {
            low: reader.f64s("low", d)?,
            high: reader.f64s("high", d)?,
            radius: bounded.radius,
            spent: bounded.spent,
            people: bounded.people()?,
        }),
        (1..=3, None) => None,
        _ => return Err(value_error("plans of version 4, and no others, are private")),
    };
    let plan = Plan {
        columns,
        recipe,
        weighting,
        frame: Frame::from_parts(centre, scale, exponent),
        features,
        landmark_levels,
        kernel,
        bandwidths,
        collect: Collect::from_names(metadata.collect.iter().map(String::as_str))
            .map_err(|e| value_error(e.to_string()))?,
        seed: metadata.seed,
        witnesses: read_witnesses(reader, metadata)?,
        private,
        panels: PanelsOnce::default(),
        on_devices: OnDevices::default(),
    };
    plan.check().map_err(|e| value_error(e.to_string()))?;
    Ok(plan)
}

/// Reads the preprocessing that turns the columns of a table into those of the plan.
fn read_recipe(reader: &mut Reader<'_>, metadata: &Metadata) -> Result<Recipe> {
    let Metadata { categories, steps, units, least_present, .. } = metadata;
    let (categories, steps, units) = match (metadata.format, categories, steps, units) {
        (3 | 4, Some(categories), Some(steps), Some(units)) => (categories, steps, units),
        (1 | 2, None, None, None) if least_present.is_none() => {
            return Ok(Recipe::plain(metadata.columns.iter().cloned()));
        }
        _ => {
            return Err(value_error(
                "categories, steps and units stand in files from version 3 on",
            ));
        }
    };
    let weights = match categories.len() {
        0 => Vec::new(),
        n => reader.f64s("category_weight", n)?,
    };
    let mut recipe = Recipe::default();
    for StepOf { input, step } in steps {
        let step = Step::from_name(step).map_err(|e| value_error(e.to_string()))?;
        recipe.numbers.push(Number { input: input.clone(), step });
    }
    for (Levels { levels, name }, weight) in categories.iter().zip(weights) {
        recipe.categories.push(Category { name: name.clone(), levels: levels.clone(), weight });
    }
    recipe.units = units.iter().map(|[start, end]| *start..*end).collect();
    recipe.least_present = least_present.map(|n| n as usize);
    Ok(recipe)
}

/// Reads the level of each category for each point.
fn read_levels(
    reader: &mut Reader<'_>,
    name: &'static str,
    points: usize,
    categories: usize,
) -> Result<Vec<u32>> {
    let bytes = reader.tensor(name, Dtype::I32, &[points, categories])?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect())
}

/// Reads the section of retained rows, whose tensor may be absent.
fn read_witnesses(reader: &mut Reader<'_>, metadata: &Metadata) -> Result<Option<Witnesses>> {
    let Some(digest) = metadata.witnesses() else { return Ok(None) };
    if !is_sha256(digest) {
        return Err(value_error("the digest of the section 'witnesses' is not a SHA-256"));
    }
    if !reader.has(WITNESS_ROWS) {
        return Ok(Some(Witnesses::elsewhere(digest.to_string())));
    }
    let d = metadata.columns.len();
    let n = reader.length(WITNESS_ROWS)?;
    let data = reader.f32s(WITNESS_ROWS, n, d)?;
    let levels = match metadata.categories.as_ref().map_or(0, Vec::len) {
        0 => Vec::new(),
        categories => read_levels(reader, WITNESS_LEVELS, n, categories)?,
    };
    let weights =
        if reader.has(WITNESS_WEIGHTS) { reader.f32s(WITNESS_WEIGHTS, n, 1)? } else { Vec::new() };
    let witnesses = Witnesses::new(Points::new(d, data), levels, weights);
    if witnesses.digest() != digest {
        return Err(FormatError::SectionDigest {
            section: WITNESSES,
            expected: witnesses.digest().to_string(),
            found: digest.to_string(),
        }
        .into());
    }
    Ok(Some(witnesses))
}
