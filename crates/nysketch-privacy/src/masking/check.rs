//! The two check words of a masked sketch. They are masked like sums, so that their totals are
//! visible only if all masks cancel.
//!
//! ```text
//! share_i = hash(session, list, subject, party)      Σ_i share_i is known in advance
//! tag_i   = Σ_k r_k x_ik                             Σ_i tag_i = Σ_k r_k Σ_i x_ik
//! r_k     = an odd hash(session, list, subject)
//! ```
//!
//! A wrong total of shares means that masks remain. A wrong total of tags means that sums were
//! altered: a single altered word is always detected, because r_k has an inverse modulo 2¹²⁸. All
//! inputs are public, so anyone who alters a file deliberately can alter its tag as well.

use super::layout::CHECK;
use super::stream::{Context, each_word};
use sha2::{Digest, Sha256};
use std::ops::Range;

/// Returns the share of a party.
pub(super) fn share(context: &Context<'_>, id: &str) -> i128 {
    let digest: [u8; 32] = Sha256::digest(context.text("share", &[id])).into();
    i128::from_le_bytes(*digest.first_chunk().expect("32 bytes"))
}

/// Returns the tag of sums. `words` are those of a complete file, in which the check words, at
/// `check`, are ignored.
pub(super) fn tag(context: &Context<'_>, words: &[i128], check: &Range<usize>) -> i128 {
    let key: [u8; 32] = Sha256::digest(context.text("tag", &[])).into();
    let mut tag = 0i128;
    each_word(&key, words.len(), |k, r| {
        if !check.contains(&k) {
            tag = tag.wrapping_add(words[k].wrapping_mul(r | 1));
        }
    });
    tag
}

/// Returns the check words of a party.
pub(super) fn words(
    context: &Context<'_>,
    id: &str,
    words: &[i128],
    check: &Range<usize>,
) -> [i128; CHECK] {
    [share(context, id), tag(context, words, check)]
}
