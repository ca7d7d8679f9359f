//! From the masked sketches of all parties to the sketch of all their rows.

use super::check::{share, tag};
use super::error::MaskingError;
use super::layout::Layout;
use super::masked::{Label, Masked};
use super::parties::{Parties, Party};
use super::stream::Context;
use crate::error::Result;
use crate::sketch::{Sketch, check_same_plan};

/// Adds up the masked sketches of one session, in any order.
///
/// Missing, doubled and mixed files are known by what they say about themselves; files that were altered by their check words.
/// See the [module](crate::masking) for an example.
#[derive(Debug, Default)]
pub struct Unmasking {
    total: Option<Masked>,
    /// Who is in it, with the digest of the file.
    added: Vec<(Party, String)>,
}

impl Unmasking {
    /// Adds one. Refused, without a change, if it is of another session, list of parties or plan than those before, or of a
    /// party that is there already.
    pub fn add(&mut self, masked: Masked) -> Result<()> {
        let Label { session, party, parties, parties_fingerprint } = masked.label();
        let digest = masked.digest();
        let Some(total) = &mut self.total else {
            self.added.push((party.clone(), digest));
            self.total = Some(masked);
            return Ok(());
        };
        let first = total.label();
        if *session != first.session {
            return Err(MaskingError::MixedSessions {
                party: party.id().into(),
                found: session.to_string(),
                session: first.session.to_string(),
            }
            .into());
        }
        if (parties, parties_fingerprint) != (&first.parties, &first.parties_fingerprint) {
            return Err(MaskingError::MixedParties {
                party: party.id().into(),
                found: parties_fingerprint.clone(),
                expected: first.parties_fingerprint.clone(),
            }
            .into());
        }
        check_same_plan(total.plan(), masked.plan())?;
        if let Some((_, known)) = self.added.iter().find(|(added, _)| added.id() == party.id()) {
            let party = party.id().into();
            return Err(match *known == digest {
                true => MaskingError::Doubled { party }.into(),
                false => MaskingError::Replayed { party }.into(),
            });
        }
        self.added.push((party.clone(), digest));
        total.add(&masked);
        Ok(())
    }

    /// The parties whose sketches are there.
    pub fn parties(&self) -> impl Iterator<Item = &Party> {
        self.added.iter().map(|(party, _)| party)
    }

    /// What the first said about itself.
    pub fn label(&self) -> Option<&Label> {
        self.total.as_ref().map(Masked::label)
    }

    /// The sketch of all rows: that of [`Sketch::merge`], byte for byte. Refused unless the session is complete, all masks
    /// cancel, and the sums are those that were masked.
    pub fn finish(self) -> Result<Sketch> {
        let Some(total) = self.total else { return Err(MaskingError::Nothing.into()) };
        let Label { session, parties, parties_fingerprint, .. } = total.label();
        let (found, parties) = (self.added.len(), *parties);
        if found < parties {
            let session = session.to_string();
            return Err(MaskingError::Missing { found, parties, session }.into());
        }
        let list = Parties::new(self.added.into_iter().map(|(party, _)| party).collect())?;
        if list.fingerprint() != *parties_fingerprint {
            let (expected, found) = (parties_fingerprint.clone(), list.fingerprint());
            return Err(MaskingError::OtherParties { expected, found }.into());
        }
        let plan = total.plan().fingerprint();
        let context = Context { session, parties: parties_fingerprint, plan: &plan };
        let (layout, words) = (Layout::of(total.plan()), total.words());
        let shares = list.list().iter().map(|party| share(&context, party.id()));
        let check = &words[layout.check()];
        if check[0] != shares.fold(0, i128::wrapping_add) {
            return Err(MaskingError::MasksRemain.into());
        }
        if check[1] != tag(&context, words, &layout.check()) {
            return Err(MaskingError::Altered.into());
        }
        Sketch::from_sums(total.plan().clone(), layout.sums(words))
    }
}
