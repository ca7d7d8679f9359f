//! Encoding of releases.

use super::account::Account;
use crate::dp::Release;
use nysketch_core::error::Result;
use nysketch_core::format::container::{Content, Tensor, value_error};
use nysketch_core::format::plan::{Metadata, plan_tensors};
use nysketch_core::format::read::Opened;
use safetensors::tensor::Dtype;

impl Release {
    /// Returns the bytes of the release's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.content().encode()
    }

    /// Returns the SHA-256 of the release's file, in hexadecimal.
    pub fn digest(&self) -> String {
        self.content().sha256()
    }

    /// Returns the content of the release's file.
    fn content(&self) -> Content<'_> {
        let mut tensors = plan_tensors(self.plan());
        for (spending, sums) in self.spendings().iter().zip(self.noisy()) {
            let shape = vec![sums.len(), 2];
            let name = spending.mechanism.tensor();
            tensors.push(Tensor::new(name, Dtype::U64, shape, sums, |x| x.to_le_bytes()));
        }
        let account = Account::of(self.terms()).to_value();
        let metadata = Metadata::of_kind("release", self.plan(), None, Some(account));
        Content::new(metadata.to_json(), tensors)
    }

    /// Decodes a release and checks every rule of the format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(Opened::of_kind(bytes, "release")?)
    }

    /// Reads the noisy sums of an opened file.
    pub fn read(mut opened: Opened<'_>) -> Result<Self> {
        opened.check_fingerprint()?;
        let plan = opened.plan.clone();
        let Some(account) = opened.metadata.release.take() else {
            return Err(value_error("a release must state its cost"));
        };
        let terms = Account::from_value(account)?.terms(&plan)?;
        let mut noisy = Vec::new();
        for spending in &terms.spendings {
            let shape = [spending.mechanism.len(&plan), 2];
            let name = spending.mechanism.tensor();
            let bytes = opened.reader.tensor(&name, Dtype::U64, &shape)?;
            noisy.push(bytes.as_chunks::<16>().0.iter().map(|b| i128::from_le_bytes(*b)).collect());
        }
        let release =
            Release::from_parts(plan, terms, noisy).map_err(|e| value_error(e.to_string()))?;
        opened.close(&release.content())?;
        Ok(release)
    }
}
