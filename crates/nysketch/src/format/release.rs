//! A release in a file.

use super::account::Account;
use super::container::{Content, Reader, Tensor, value_error};
use super::plan::{Metadata, plan_tensors};
use crate::error::{FormatError, Result};
use crate::names::Named;
use crate::plan::Plan;
use crate::privacy::{Budget, Mechanism, Release, Rho};
use safetensors::tensor::Dtype;
use std::sync::Arc;

fn tensor_name(mechanism: Mechanism) -> String {
    format!("noisy.{}", mechanism.name())
}

impl Release {
    /// The bytes of the release's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.content().encode()
    }

    /// What the release's file holds.
    pub(super) fn content(&self) -> Content<'_> {
        let mut tensors = plan_tensors(self.plan());
        for (spending, sums) in self.spendings().iter().zip(self.noisy()) {
            let shape = vec![sums.len(), 2];
            let name = tensor_name(spending.mechanism);
            tensors.push(Tensor::new(name, Dtype::U64, shape, sums, |x| x.to_le_bytes()));
        }
        let metadata = Metadata::of_release(self.plan(), Account::of(self));
        Content::new(metadata.to_json(), tensors)
    }
}

/// Reads the noisy sums of a plan. What is claimed must follow from the plan and the costs; the file must encode to
/// itself again, so nothing else can be claimed.
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
    let number = |text: &str| text.parse::<f64>().map_err(|_| value_error("ε and δ are numbers"));
    let told = |e: crate::error::Error| value_error(e.to_string());
    let budget = Budget::new(number(&account.epsilon)?, number(&account.delta)?).map_err(told)?;
    let (mut rhos, mut noisy) = (Vec::new(), Vec::new());
    for cost in &account.mechanisms {
        let mechanism = Mechanism::from_name(&cost.name).map_err(told)?;
        let bytes =
            reader.tensor(&tensor_name(mechanism), Dtype::U64, &[mechanism.len(&plan), 2])?;
        rhos.push((mechanism, Rho(cost.rho)));
        noisy.push(bytes.as_chunks::<16>().0.iter().map(|b| i128::from_le_bytes(*b)).collect());
    }
    Release::from_parts(plan, budget, &rhos, noisy).map_err(told)
}
