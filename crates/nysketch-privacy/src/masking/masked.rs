//! The masked sketch of one party.

use super::check;
use super::keys::SecretKey;
use super::layout::Layout;
use super::ledger::{self, Use};
use super::parties::{Parties, Party};
use super::session::Session;
use super::stream::{Context, each_word};
use crate::dp::{Budget, Mechanism, Releases, Shared, Terms};
use crate::ledger::Ledgers;
use nysketch_core::error::Result;
use nysketch_core::error::masking::MaskingError;
use nysketch_core::numeric::digest::sha256;
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use std::sync::Arc;

/// The label of a masked sketch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The session of the masked sketch.
    pub session: Session,
    /// The party whose sketch is masked.
    pub party: Party,
    /// Number of parties.
    pub parties: usize,
    /// Fingerprint of the list of parties.
    pub parties_fingerprint: String,
}

/// A masked sketch: its words are uniform and reveal no sums until those of all parties are [added
/// up](super::Unmasking). The plan is not masked.
#[derive(Debug, Clone, PartialEq)]
pub struct Masked {
    plan: Arc<Plan>,
    label: Label,
    /// The terms of the sum of all parties, if it is a release.
    terms: Option<Terms>,
    /// Masked sums and check words, in the order of their [`Layout`].
    words: Vec<i128>,
}

impl Masked {
    /// Creates a masked sketch from the parts of a file.
    pub(crate) fn from_parts(
        plan: Arc<Plan>,
        label: Label,
        terms: Option<Terms>,
        words: Vec<i128>,
    ) -> Self {
        Masked { plan, label, terms, words }
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Returns the session and the party.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// Returns the terms of the sum over all parties, if each has added its share of noise.
    pub fn terms(&self) -> Option<&Terms> {
        self.terms.as_ref()
    }

    /// Returns the masked sums and check words.
    pub(crate) fn words(&self) -> &[i128] {
        &self.words
    }

    /// Adds the words of another masked sketch.
    pub(super) fn add(&mut self, other: &Masked) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word = word.wrapping_add(*more);
        }
    }
}

/// Masks a sketch for a session. The sum of the masked sketches of all `parties` in the session is
/// the sketch of all their rows.
///
/// The ledger of the key records the session before this function returns, and therefore before
/// anyone can see the result. Masking the same sketch again gives the same bytes; another sketch in
/// the same session is refused. A key without a ledger is also refused, because its sessions are
/// unknown (see [`new_session_ledger`](super::new_session_ledger)).
pub fn mask(
    sketch: &Sketch,
    key: &SecretKey,
    parties: &Parties,
    session: &Session,
    ledgers: &Ledgers,
) -> Result<Masked> {
    check_maskable(sketch)?;
    check_listed(key, parties)?;
    let words = Layout::of(sketch.plan(), None).words(sketch.sums());
    let masked = masked(sketch.plan(), None, words, key, parties, session)?;
    record(&masked, sketch.digest(), ledgers)?;
    Ok(masked)
}

/// The parameters on which parties agree that add noise to their sums. The total is a
/// [release](crate::dp::Release) that no one has seen without noise, including the server that adds
/// up the sums.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseParams {
    /// The privacy budget of the total.
    pub budget: Budget,
    /// The split of the budget, as in [`Release::of`](crate::dp::Release::of).
    pub spend: Vec<(Mechanism, f64)>,
    /// Minimum number of parties that keep their noise secret from the server and from all others
    /// together. Each party adds more noise if this number is smaller.
    pub honest: u64,
    /// Whether no person has rows at two parties, for plans that protect people. It cannot be
    /// checked.
    pub other_people: bool,
}

/// Masks a sketch with a share of noise. The sum of the masked sketches of all `parties` with the
/// same parameters is a release.
///
/// Noise is drawn again on each call, so every session can be used only once: masking again, even
/// the same sketch, is refused. The release also counts in the ledger of the sketch.
pub fn mask_noisy(
    sketch: &Sketch,
    key: &SecretKey,
    parties: &Parties,
    session: &Session,
    ledgers: &Ledgers,
    params: &NoiseParams,
) -> Result<(Masked, Releases)> {
    check_maskable(sketch)?;
    check_listed(key, parties)?;
    let plan = sketch.plan();
    let count = parties.list().len() as u64;
    let people = plan.people().map(|people| people.rows);
    if sketch.person_rows() > people {
        return Err(MaskingError::PersonRows { most: people.unwrap_or(1) }.into());
    }
    let person_rows = people.map(|rows| if params.other_people { rows } else { rows * count });
    let shared = Shared::new(count, params.honest)?;
    let terms = Terms::new(plan, params.budget, &params.spend, person_rows, Some(shared))?;
    let words = Layout::of(plan, Some(&terms)).noisy_words(&terms.noisy(sketch)?);
    let masked = masked(plan, Some(terms.clone()), words, key, parties, session)?;
    // Never the digest of another call, whose noise differs.
    let digest = masked.digest();
    record(&masked, digest.clone(), ledgers)?;
    // After the session, so that a refused session costs nothing.
    let releases = Releases::note(sketch, &terms, digest, ledgers)?;
    Ok((masked, releases))
}

fn check_listed(key: &SecretKey, parties: &Parties) -> Result<()> {
    let own = key.party();
    match parties.list().iter().find(|party| party.id() == own.id()) {
        None => Err(MaskingError::NotListed { id: own.id().into() }.into()),
        Some(listed) if *listed != own => {
            Err(MaskingError::AnotherKey { id: own.id().into() }.into())
        }
        Some(_) => Ok(()),
    }
}

/// Records a masked sketch in the ledger of its key.
fn record(masked: &Masked, digest: String, ledgers: &Ledgers) -> Result<()> {
    let Label { session, party, parties_fingerprint, .. } = masked.label();
    let new = Use {
        session: session.to_string(),
        parties: parties_fingerprint.clone(),
        plan: masked.plan().fingerprint(),
        sketch: digest,
    };
    ledger::record(ledgers, &party.public(), new)
}

/// Refuses sketches that would reveal more than their sums.
fn check_maskable(sketch: &Sketch) -> Result<()> {
    sketch.check_exact("mask")?;
    check_private(sketch.plan())?;
    match sketch.folds() {
        Some(_) => Err(MaskingError::Folds.into()),
        None => Ok(()),
    }
}

/// Refuses plans that contain rows of the data, because the plan is not masked.
pub(crate) fn check_private(plan: &Plan) -> Result<()> {
    match plan.private {
        Some(_) => Ok(()),
        None => Err(MaskingError::Plan.into()),
    }
}

/// Returns the subject of the keys: the fingerprint of the plan or, for a release, the SHA-256 of
/// that fingerprint and of the terms.
pub(super) fn subject(plan: &Plan, terms: Option<&Terms>) -> String {
    let fingerprint = plan.fingerprint();
    match terms {
        None => fingerprint,
        Some(terms) => sha256(format!("{fingerprint}\n{}", terms.text()).as_bytes()),
    }
}

/// Adds the check words to words, and the masks of all pairs that include the party.
fn masked(
    plan: &Arc<Plan>,
    terms: Option<Terms>,
    mut words: Vec<i128>,
    key: &SecretKey,
    parties: &Parties,
    session: &Session,
) -> Result<Masked> {
    let (parties_fingerprint, subject) = (parties.fingerprint(), subject(plan, terms.as_ref()));
    let context = Context { session, parties: &parties_fingerprint, subject: &subject };
    let layout = Layout::of(plan, terms.as_ref());
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
    Ok(Masked::from_parts(plan.clone(), label, terms, words))
}
