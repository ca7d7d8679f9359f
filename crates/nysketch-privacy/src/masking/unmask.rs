//! Unmasking: the masked files of all parties become the sketch, or the release, of all their rows.

use super::check::{share, tag};
use super::layout::Layout;
use super::masked::{Label, Masked, subject};
use super::parties::{Parties, Party};
use super::stream::Context;
use crate::dp::{Release, Terms};
use nysketch_core::error::Result;
use nysketch_core::error::masking::MaskingError;
use nysketch_core::sketch::{Sketch, check_same_plan};

/// The total of the masked files of all parties.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is taken apart at once")]
pub enum Unmasked {
    /// The sketch of all rows.
    Sketch(Sketch),
    /// The release of all rows, if the parties have added noise.
    Release(Release),
}

impl Unmasked {
    /// Returns the bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Unmasked::Sketch(sketch) => sketch.to_bytes(),
            Unmasked::Release(release) => release.to_bytes(),
        }
    }
}

/// Adds up the masked sketches of one session, in any order.
///
/// Labels detect missing, repeated and mixed files; check words detect altered files. See the
/// [module](crate::masking) for an example.
#[derive(Debug, Default)]
pub struct Unmasking {
    total: Option<Masked>,
    /// The parties that have been added, with the digests of their files.
    added: Vec<(Party, String)>,
}

impl Unmasking {
    /// Adds a masked sketch. If it has another session, list of parties or plan than the previous
    /// ones, or if its party has been added already, it is refused and the total is unchanged.
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
        if masked.terms() != total.terms() {
            let terms = |m: &Masked| m.terms().map_or("no noise".into(), Terms::brief);
            return Err(MaskingError::MixedTerms {
                party: party.id().into(),
                found: terms(&masked),
                expected: terms(total),
            }
            .into());
        }
        if let Some((_, known)) = self.added.iter().find(|(added, _)| added.id() == party.id()) {
            let party = party.id().into();
            return Err(if *known == digest {
                MaskingError::Doubled { party }.into()
            } else {
                MaskingError::Replayed { party }.into()
            });
        }
        self.added.push((party.clone(), digest));
        total.add(&masked);
        Ok(())
    }

    /// Returns the parties whose sketches have been added.
    pub fn parties(&self) -> impl Iterator<Item = &Party> {
        self.added.iter().map(|(party, _)| party)
    }

    /// Returns the label of the first masked sketch.
    pub fn label(&self) -> Option<&Label> {
        self.total.as_ref().map(Masked::label)
    }

    /// Returns the sketch of all rows, byte for byte the result of [`Sketch::merge`], or their
    /// release if the parties have added noise. Refused unless the session is complete, all masks
    /// cancel, and the sums are unaltered.
    pub fn finish(self) -> Result<Unmasked> {
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
        let subject = subject(total.plan(), total.terms());
        let context = Context { session, parties: parties_fingerprint, subject: &subject };
        let (layout, words) = (Layout::of(total.plan(), total.terms()), total.words());
        let shares = list.list().iter().map(|party| share(&context, party.id()));
        let check = &words[layout.check()];
        if check[0] != shares.fold(0, i128::wrapping_add) {
            return Err(MaskingError::MasksRemain.into());
        }
        if check[1] != tag(&context, words, &layout.check()) {
            return Err(MaskingError::Altered.into());
        }
        let plan = total.plan().clone();
        Ok(match total.terms() {
            None => Unmasked::Sketch(Sketch::from_sums(plan, layout.sums(words))?),
            Some(terms) => {
                let release = Release::from_parts(plan, terms.clone(), layout.noisy(words))?;
                Unmasked::Release(release)
            }
        })
    }
}
