//! The masked sketch of one party.

use super::check;
use super::error::MaskingError;
use super::keys::SecretKey;
use super::layout::Layout;
use super::ledger;
use super::parties::{Parties, Party};
use super::session::Session;
use super::stream::{Context, each_word};
use crate::error::Result;
use crate::plan::Plan;
use crate::sketch::Sketch;
use std::path::Path;
use std::sync::Arc;

/// What a masked sketch says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The session it belongs to.
    pub session: Session,
    /// Whose sketch it is.
    pub party: Party,
    /// Number of parties.
    pub parties: usize,
    /// Fingerprint of the list of parties.
    pub parties_fingerprint: String,
}

/// A sketch whose sums are masked: uniform words that say nothing until those of all parties are
/// [added up](super::Unmasking). The plan is in the clear.
#[derive(Debug, Clone, PartialEq)]
pub struct Masked {
    plan: Arc<Plan>,
    label: Label,
    /// Masked sums and check words, in the order of their [`Layout`].
    words: Vec<i128>,
}

impl Masked {
    /// From the parts of a file.
    pub(crate) fn from_parts(plan: Arc<Plan>, label: Label, words: Vec<i128>) -> Self {
        Masked { plan, label, words }
    }

    /// What was measured.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Session and party.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// The masked sums and check words.
    pub(crate) fn words(&self) -> &[i128] {
        &self.words
    }

    /// Adds the words of another.
    pub(super) fn add(&mut self, other: &Masked) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word = word.wrapping_add(*more);
        }
    }
}

/// Masks a sketch for a session: the sum of what all `parties` mask in it is the sketch of all their rows.
///
/// The file at `ledger` remembers what the key was used for, and must be the same for every use of it (see
/// [`ledger_beside`](super::ledger_beside)). Masking the same sketch again gives the same bytes; another one in the same session
/// is refused. It is written before this function returns, so before anybody can see the result.
pub fn mask(
    sketch: &Sketch,
    key: &SecretKey,
    parties: &Parties,
    session: &Session,
    ledger: &Path,
) -> Result<Masked> {
    check_maskable(sketch)?;
    let own = key.party();
    match parties.list().iter().find(|party| party.id() == own.id()) {
        None => return Err(MaskingError::NotListed { id: own.id().into() }.into()),
        Some(listed) if *listed != own => {
            return Err(MaskingError::AnotherKey { id: own.id().into() }.into());
        }
        Some(_) => {}
    }
    let masked = masked(sketch, key, parties, session)?;
    let Label { parties_fingerprint, .. } = masked.label();
    let used =
        [session.as_str(), parties_fingerprint, &sketch.plan().fingerprint(), &sketch.digest()];
    ledger::record(ledger, used)?;
    Ok(masked)
}

/// Refuses sketches that would show more than their sums.
fn check_maskable(sketch: &Sketch) -> Result<()> {
    check_private(sketch.plan())?;
    match sketch.folds() {
        Some(_) => Err(MaskingError::Folds.into()),
        None => Ok(()),
    }
}

/// Refuses plans that hold rows of the data, since a plan travels in the clear.
pub(crate) fn check_private(plan: &Plan) -> Result<()> {
    match plan.private {
        Some(_) => Ok(()),
        None => Err(MaskingError::Plan.into()),
    }
}

/// The sums and check words with the masks of all pairs that the party is in.
fn masked(
    sketch: &Sketch,
    key: &SecretKey,
    parties: &Parties,
    session: &Session,
) -> Result<Masked> {
    let (parties_fingerprint, plan) = (parties.fingerprint(), sketch.plan().fingerprint());
    let context = Context { session, parties: &parties_fingerprint, plan: &plan };
    let layout = Layout::of(sketch.plan());
    let mut words = layout.words(sketch.sums());
    let check = check::words(&context, key.id(), &words, &layout.check());
    words[layout.check()].copy_from_slice(&check);
    for other in parties.list().iter().filter(|party| party.id() != key.id()) {
        let shared = key.shared(other)?;
        let first = key.id() < other.id();
        let (low, high) = if first { (key.id(), other.id()) } else { (other.id(), key.id()) };
        let pair = context.pair_key(&shared, low, high);
        each_word(&pair, layout.len(), |k, mask| {
            words[k] =
                if first { words[k].wrapping_add(mask) } else { words[k].wrapping_sub(mask) };
        });
    }
    let label = Label {
        session: session.clone(),
        party: key.party(),
        parties: parties.list().len(),
        parties_fingerprint,
    };
    Ok(Masked::from_parts(sketch.plan().clone(), label, words))
}
