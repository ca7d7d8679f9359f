//! Encoding of masked sketches.

use crate::dp::Terms;
use crate::dp::account::Account;
use crate::masking::layout::{Layout, Part};
use crate::masking::masked::{Label, Masked, check_private};
use crate::masking::parties::{MOST, Party, PublicKey};
use crate::masking::session::Session;
use nysketch_core::error::{FormatError, Result};
use nysketch_core::format::container::{Content, Tensor, value_error};
use nysketch_core::format::plan::{Metadata, plan_tensors};
use nysketch_core::format::read::Opened;
use nysketch_core::numeric::digest::is_sha256;
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};

/// The label of a masked sketch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskedBy {
    /// Number of parties.
    pub parties: usize,
    /// Fingerprint of the list of parties.
    pub parties_fingerprint: String,
    /// The id of the party.
    pub party: String,
    /// Its public key.
    pub public: String,
    /// The id of the session.
    pub session: String,
}

impl Masked {
    /// Returns the bytes of the masked sketch's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.content().encode()
    }

    /// Returns the SHA-256 of the file, in hexadecimal.
    pub fn digest(&self) -> String {
        self.content().sha256()
    }

    /// Returns the content of the file.
    fn content(&self) -> Content<'_> {
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
        let by = serde_json::to_value(by).ok();
        let release = self.terms().map(|terms| Account::of(terms).to_value());
        let metadata = Metadata::of_kind("masked", self.plan(), by, release);
        Content::new(metadata.to_json(), tensors)
    }
}

/// Returns the shape of a tensor in a file: two 64-bit words for each 128-bit word.
fn shape(part: &Part) -> Vec<usize> {
    part.shape.iter().copied().chain([2]).collect()
}

impl Masked {
    /// Decodes a masked sketch and checks every rule of the format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let opened = Opened::of_kind(bytes, "masked")?;
        Self::read(opened)
    }

    /// Reads the masked sums of an opened file. Every word may have any value.
    pub fn read(mut opened: Opened<'_>) -> Result<Self> {
        let plan = opened.plan.clone();
        let Some(by) = opened.metadata.masked.take() else {
            return Err(value_error("a masked sketch must name its party"));
        };
        let label = label(&from_value(by)?)?;
        check_private(&plan).map_err(|e| value_error(e.to_string()))?;
        if opened.metadata.folds().is_some() {
            return Err(value_error("a masked sketch has no folds"));
        }
        let terms = match opened.metadata.release.take() {
            None => None,
            Some(account) => Some(Account::from_value(account)?.terms(&plan)?),
        };
        if !terms.as_ref().is_none_or(|terms| is_shared_by(terms, label.parties)) {
            return Err(value_error("the noise of a masked release is that of its parties"));
        }
        // Allocate memory only for tensors that the file contains.
        let mut words = Vec::new();
        for part in Layout::of(&plan, terms.as_ref()).0 {
            let bytes = opened.reader.tensor(&part.name, Dtype::U64, &shape(&part))?;
            words.extend(bytes.as_chunks::<16>().0.iter().map(|b| i128::from_le_bytes(*b)));
        }
        opened.check_fingerprint()?;
        let masked = Masked::from_parts(plan, label, terms, words);
        opened.close(&masked.content())?;
        Ok(masked)
    }
}

/// Whether the terms have this number of parties, each of which added a share of the noise.
fn is_shared_by(terms: &Terms, parties: usize) -> bool {
    terms.shared.is_some_and(|shared| shared.parties == parties as u64)
}

/// Reads the label of a masked sketch.
fn from_value(value: serde_json::Value) -> Result<MaskedBy> {
    serde_json::from_value(value).map_err(|e| FormatError::Metadata(e.to_string()).into())
}

/// Checks session and party.
fn label(by: &MaskedBy) -> Result<Label> {
    let told = |e: nysketch_core::error::Error| value_error(e.to_string());
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
