//! Encoding of sketches.

use super::container::{Content, Reader, Tensor, value_error};
use super::plan::{FOLDS, Metadata, plan_tensors, section_tensors};
use crate::error::{Error, FormatError, Result};
use crate::numeric::digest::sha256_of;
use crate::plan::Plan;
use crate::plan::table::Spec;
use crate::sketch::Sketch;
use crate::sketch::folds::{FoldRule, Folds, WitnessFolds};
use crate::sums::{BrokenRule, Sum, Sums};
use safetensors::tensor::Dtype;
use std::sync::Arc;

impl Sketch {
    /// Returns the bytes of the sketch's file, including the retained rows of the plan if they are
    /// available.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.content().encode()
    }

    /// Returns the content of the sketch's file.
    pub(super) fn content(&self) -> Content<'_> {
        self.with_sections(section_tensors(self.plan()))
    }

    /// Returns the SHA-256, in hexadecimal, of the sketch's file without retained rows. Sketches of
    /// the same rows by the same plan have the same digest; other sketches have a different one
    /// with near certainty.
    pub fn digest(&self) -> String {
        self.with_sections(Vec::new()).sha256()
    }

    /// Returns the SHA-256, in hexadecimal, of the plan's fingerprint and of all sums over rows, by
    /// which ledgers identify a sketch. It excludes folds, skipped rows and the maximum number of
    /// rows per person, so that it does not depend on how the same rows were sketched and merged.
    /// It also does not depend on how a file stores the sums.
    pub fn rows_digest(&self) -> String {
        let plan = self.plan();
        let mut specs = plan.measured().specs();
        specs.retain(|spec| !matches!(spec.sum, Sum::Skipped | Sum::PersonRows));
        specs.sort_by_key(|spec| spec.sum.name());
        sha256_of(|take| {
            take(format!("nysketch rows 1\n{}\n", plan.fingerprint()).as_bytes());
            for spec in specs {
                take(format!("{} {}\n", spec.sum.name(), spec.entries()).as_bytes());
                self.sums()[spec.sum].iter().for_each(|sum| take(&sum.to_le_bytes()));
            }
        })
    }

    fn with_sections<'a>(&'a self, sections: Vec<Tensor<'a>>) -> Content<'a> {
        let plan = self.plan();
        let mut tensors = plan_tensors(plan);
        tensors.extend(sections);
        for spec in plan.measured().specs() {
            let sums = std::slice::from_ref(self.sums());
            tensors.push(sum_tensor(spec.sum.name().into(), &spec, shape(&spec), sums));
        }
        if let Some(folds) = self.folds() {
            tensors.extend(fold_tensors(plan, folds));
        }
        Content::new(Metadata::of_sketch(self).to_json(), tensors)
    }
}

/// Returns the shape of a sum in a file: two words for each integer.
fn shape(spec: &Spec) -> Vec<usize> {
    spec.shape.iter().copied().chain([2]).collect()
}

/// Returns the tensor of a sum for one or more sets of rows, one after the other.
fn sum_tensor<'a>(name: String, spec: &Spec, shape: Vec<usize>, all: &'a [Sums]) -> Tensor<'a> {
    let sum = spec.sum;
    let values = all.iter().flat_map(move |sums| sums[sum].iter());
    // Two's complement, low word first: the little-endian bytes of a 128-bit integer.
    Tensor::new(name, Dtype::U64, shape, values, |x| x.to_le_bytes())
}

/// Returns the tensor name of a sum for all folds except the last.
fn of_folds(spec: &Spec) -> String {
    format!("{FOLDS}.{}", spec.sum.name())
}

/// The tensor of the counts for the retained rows.
const FOLD_WITNESSES: &str = "folds.witnesses";

/// Returns the tensors of all folds except the last, which is the remainder.
fn fold_tensors<'a>(plan: &Plan, folds: &'a Folds) -> Vec<Tensor<'a>> {
    let stored = &folds.sums()[..folds.len() - 1];
    let sums = plan.measured().specs().into_iter().map(|spec| {
        let shape = [vec![stored.len()], shape(&spec)].concat();
        sum_tensor(of_folds(&spec), &spec, shape, stored)
    });
    let witnesses = folds.witness_counts().map(|WitnessFolds(counts)| {
        let values = counts.iter().flatten();
        Tensor::new(FOLD_WITNESSES, Dtype::U64, vec![counts.len(), 3], values, |x| x.to_le_bytes())
    });
    sums.chain(witnesses).collect()
}

/// Reads the sums of all folds except the last, and computes the last as the remainder of `total`.
fn read_folds(reader: &mut Reader<'_>, rule: &str, plan: &Plan, total: &Sums) -> Result<Folds> {
    let rule = FoldRule::from_text(rule)
        .ok_or_else(|| value_error(format!("the section '{FOLDS}' contains '{rule}'")))?;
    let stored = rule.count() as usize - 1;
    let (mut last, mut folds) = (total.clone(), vec![Sums::none(); stored]);
    for spec in plan.measured().specs() {
        let shape = [vec![stored], shape(&spec)].concat();
        let mut integers = integers(reader.tensor(&of_folds(&spec), Dtype::U64, &shape)?);
        for sums in &mut folds {
            sums[spec.sum] = integers.by_ref().take(spec.entries()).collect();
        }
    }
    folds.iter().for_each(|sums| last.combine(sums, i128::wrapping_sub));
    folds.push(last);
    let witnesses = match rule.key().and(plan.witnesses.as_ref()) {
        None => None,
        Some(witnesses) => {
            let rows = witnesses.rows().map_or(reader.length(FOLD_WITNESSES), |r| Ok(r.len()))?;
            let words = reader.tensor(FOLD_WITNESSES, Dtype::U64, &[rows, 3])?.as_chunks::<8>().0;
            let words: Vec<i64> = words.iter().map(|b| i64::from_le_bytes(*b)).collect();
            Some(WitnessFolds(words.as_chunks::<3>().0.to_vec()))
        }
    };
    Ok(Folds::from_parts(rule, folds, witnesses))
}

/// Returns the 128-bit integers of a tensor.
fn integers(bytes: &[u8]) -> impl Iterator<Item = i128> {
    bytes.as_chunks::<16>().0.iter().map(|b| i128::from_le_bytes(*b))
}

/// The error for a sum that breaks a rule.
fn broken_rule(rule: BrokenRule) -> Error {
    value_error(format!("{} would {}", rule.sum, rule.how))
}

/// Reads the sums of a plan and checks every rule.
pub fn read_sketch(
    reader: &mut Reader<'_>,
    metadata: &Metadata,
    plan: Arc<Plan>,
) -> Result<Sketch> {
    // Allocate memory only for tensors that the file contains.
    let mut sums = Sums::none();
    for spec in plan.measured().specs() {
        let bytes = reader.tensor(spec.sum.name(), Dtype::U64, &shape(&spec))?;
        sums[spec.sum] = integers(bytes).collect();
    }
    let found = metadata.fingerprint.clone().unwrap_or_default();
    let expected = plan.fingerprint();
    if found != expected {
        return Err(FormatError::Fingerprint { expected, found }.into());
    }
    sums.check(&plan).map_err(broken_rule)?;
    let Some(rule) = metadata.folds() else { return Ok(Sketch::from_parts(plan, sums)) };
    let folds = read_folds(reader, rule, &plan, &sums)?;
    folds.check(&plan).map_err(broken_rule)?;
    Ok(Sketch::from_folds(plan, folds))
}
