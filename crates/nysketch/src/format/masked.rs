//! The masked sums in a file.

use super::account::Account;
use super::container::{Content, Reader, Tensor, value_error};
use super::plan::{MaskedBy, Metadata, plan_tensors};
use crate::digest::is_sha256;
use crate::error::{FormatError, Result};
use crate::masking::layout::{Layout, Part};
use crate::masking::masked::{Label, Masked, check_private};
use crate::masking::parties::{MOST, Party, PublicKey};
use crate::masking::session::Session;
use crate::plan::Plan;
use crate::privacy::Terms;
use safetensors::tensor::Dtype;
use std::sync::Arc;

impl Masked {
    /// The bytes of the masked sketch's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.content().encode()
    }

    /// SHA-256, in hexadecimal, of the file.
    pub fn digest(&self) -> String {
        self.content().sha256()
    }

    /// What the file holds.
    pub(super) fn content(&self) -> Content<'_> {
        let Label { session, party, parties, parties_fingerprint } = self.label();
        let by = MaskedBy {
            parties: *parties,
            parties_fingerprint: parties_fingerprint.clone(),
            party: party.id().to_string(),
            public: party.public().to_string(),
            session: session.to_string(),
        };
        let mut tensors = plan_tensors(self.plan());
        for part in Layout::of(self.plan(), self.terms()).0 {
            let words = &self.words()[part.range.clone()];
            let (name, shape) = (part.name.clone(), shape(&part));
            tensors.push(Tensor::new(name, Dtype::U64, shape, words, |x| x.to_le_bytes()));
        }
        let account = self.terms().map(Account::of);
        Content::new(Metadata::of_masked(self.plan(), by, account).to_json(), tensors)
    }
}

/// The shape of a tensor in a file: two words of 64 bits for each of 128.
fn shape(part: &Part) -> Vec<usize> {
    part.shape.iter().copied().chain([2]).collect()
}

/// Reads the masked sums of a plan. They obey no rule of sums: every word may be anything.
pub fn read_masked(
    reader: &mut Reader<'_>,
    metadata: &Metadata,
    plan: Arc<Plan>,
) -> Result<Masked> {
    let by = metadata.masked.as_ref();
    let label = label(by.ok_or_else(|| value_error("a masked sketch must say whose it is"))?)?;
    check_private(&plan).map_err(|e| value_error(e.to_string()))?;
    if metadata.folds().is_some() {
        return Err(value_error("a masked sketch has no folds"));
    }
    let account = metadata.release.as_ref();
    let terms = account.map(|account| account.terms(&plan)).transpose()?;
    let shared = |t: &Terms| t.shared.is_some_and(|s| s.parties == label.parties as u64);
    if !terms.as_ref().is_none_or(shared) {
        return Err(value_error("the noise of a masked release is that of its parties"));
    }
    // Memory is taken only for tensors that are there.
    let mut words = Vec::new();
    for part in Layout::of(&plan, terms.as_ref()).0 {
        let bytes = reader.tensor(&part.name, Dtype::U64, &shape(&part))?;
        words.extend(bytes.as_chunks::<16>().0.iter().map(|b| i128::from_le_bytes(*b)));
    }
    let found = metadata.fingerprint.clone().unwrap_or_default();
    let expected = plan.fingerprint();
    if found != expected {
        return Err(FormatError::Fingerprint { expected, found }.into());
    }
    Ok(Masked::from_parts(plan, label, terms, words))
}

/// Checks session and party.
fn label(by: &MaskedBy) -> Result<Label> {
    let told = |e: crate::error::Error| value_error(e.to_string());
    let public = PublicKey::from_hex(&by.public)
        .ok_or_else(|| value_error(format!("'{}' is not a public key", by.public)))?;
    if !(2..=MOST).contains(&by.parties) || !is_sha256(&by.parties_fingerprint) {
        return Err(value_error("the list of parties has no such number or no such fingerprint"));
    }
    Ok(Label {
        session: Session::new(&by.session).map_err(told)?,
        party: Party::new(&by.party, public).map_err(told)?,
        parties: by.parties,
        parties_fingerprint: by.parties_fingerprint.clone(),
    })
}
