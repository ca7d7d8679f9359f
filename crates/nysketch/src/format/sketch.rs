//! The sums in a file.

use super::container::{Content, Reader, Tensor, value_error};
use super::plan::{Metadata, plan_tensors, section_tensors};
use crate::error::{FormatError, Result};
use crate::plan::Plan;
use crate::sketch::Sketch;
use crate::sums::Sums;
use safetensors::tensor::Dtype;
use std::sync::Arc;

impl Sketch {
    /// The bytes of the sketch's file, with the plan's witness rows where they are at hand.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.content().encode()
    }

    /// What the sketch's file holds.
    pub(super) fn content(&self) -> Content<'_> {
        self.with_sections(section_tensors(self.plan()))
    }

    /// SHA-256, in hexadecimal, of the sketch's file without witness rows: sketches of the same rows by the same plan,
    /// and hardly any others, have the same.
    pub fn digest(&self) -> String {
        self.with_sections(Vec::new()).sha256()
    }

    fn with_sections<'a>(&'a self, sections: Vec<Tensor<'a>>) -> Content<'a> {
        let plan = self.plan();
        let mut tensors = plan_tensors(plan);
        tensors.extend(sections);
        for spec in plan.measured().specs() {
            let mut shape = spec.shape;
            shape.push(2);
            // Two's complement, low word first: the little-endian bytes of a 128-bit integer.
            let values = self.sums()[spec.sum].iter();
            tensors
                .push(Tensor::new(spec.sum.name(), Dtype::U64, shape, values, |x| x.to_le_bytes()));
        }
        Content::new(Metadata::new(plan, "sketch", Some(plan.fingerprint())).to_json(), tensors)
    }
}

/// Reads the sums of a plan and checks every rule.
pub fn read_sketch(
    reader: &mut Reader<'_>,
    metadata: &Metadata,
    plan: Arc<Plan>,
) -> Result<Sketch> {
    // Memory is taken only for tensors that are there.
    let mut sums = Sums::none();
    for spec in plan.measured().specs() {
        let mut shape = spec.shape;
        shape.push(2);
        let bytes = reader.tensor(spec.sum.name(), Dtype::U64, &shape)?;
        let words = bytes.as_chunks::<16>().0.iter().map(|b| i128::from_le_bytes(*b));
        sums[spec.sum] = words.collect();
    }
    let found = metadata.fingerprint.clone().unwrap_or_default();
    let expected = plan.fingerprint();
    if found != expected {
        return Err(FormatError::Fingerprint { expected, found }.into());
    }
    sums.check(&plan).map_err(|b| value_error(format!("{} would {}", b.sum, b.how)))?;
    Ok(Sketch::from_parts(plan, sums))
}
