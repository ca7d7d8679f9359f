//! A release in a file.

use super::account::Account;
use super::container::{Content, Reader, Tensor, value_error};
use super::plan::{Metadata, plan_tensors};
use crate::error::{FormatError, Result};
use crate::plan::Plan;
use crate::privacy::Release;
use safetensors::tensor::Dtype;
use std::sync::Arc;

impl Release {
    /// The bytes of the release's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.content().encode()
    }

    /// SHA-256, in hexadecimal, of the release's file.
    pub fn digest(&self) -> String {
        self.content().sha256()
    }

    /// What the release's file holds.
    pub(super) fn content(&self) -> Content<'_> {
        let mut tensors = plan_tensors(self.plan());
        for (spending, sums) in self.spendings().iter().zip(self.noisy()) {
            let shape = vec![sums.len(), 2];
            let name = spending.mechanism.tensor();
            tensors.push(Tensor::new(name, Dtype::U64, shape, sums, |x| x.to_le_bytes()));
        }
        let metadata = Metadata::of_release(self.plan(), Account::of(self.terms()));
        Content::new(metadata.to_json(), tensors)
    }
}

/// Reads the noisy sums of a plan.
pub fn read_release(
    reader: &mut Reader<'_>,
    metadata: &Metadata,
    plan: Arc<Plan>,
) -> Result<Release> {
    let found = metadata.fingerprint.clone().unwrap_or_default();
    let expected = plan.fingerprint();
    if found != expected {
        return Err(FormatError::Fingerprint { expected, found }.into());
    }
    let Some(account) = &metadata.release else {
        return Err(value_error("a release says what it costs"));
    };
    let terms = account.terms(&plan)?;
    let mut noisy = Vec::new();
    for spending in &terms.spendings {
        let shape = [spending.mechanism.len(&plan), 2];
        let bytes = reader.tensor(&spending.mechanism.tensor(), Dtype::U64, &shape)?;
        noisy.push(bytes.as_chunks::<16>().0.iter().map(|b| i128::from_le_bytes(*b)).collect());
    }
    Release::from_parts(plan, terms, noisy).map_err(|e| value_error(e.to_string()))
}
