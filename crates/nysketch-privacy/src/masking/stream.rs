//! Keys of pairs, and the words that they generate.

use crate::masking::session::Session;
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// Number of words that are generated at once.
const CHUNK: usize = 256;

/// The public inputs of all keys of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    /// The session.
    pub session: &'a Session,
    /// Fingerprint of the list of parties.
    pub parties: &'a str,
    /// The fingerprint of the plan, or of the plan and the terms of a release.
    pub subject: &'a str,
}

impl Context<'_> {
    /// Returns the context of a key, with one line per input.
    pub fn text(&self, purpose: &str, ids: &[&str]) -> String {
        let ids: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let Context { session, parties, subject } = self;
        format!("nysketch {purpose} 1\n{session}\n{parties}\n{subject}\n{ids}")
    }

    /// Derives the key of two parties with HKDF-SHA256, without salt, from their shared secret; the
    /// id `first` is smaller than `second`.
    pub fn pair_key(&self, shared: &[u8; 32], first: &str, second: &str) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        let info = self.text("mask", &[first, second]);
        let expanded = Hkdf::<Sha256>::new(None, shared).expand(info.as_bytes(), &mut *key);
        expanded.expect("32 bytes are few enough");
        key
    }
}

/// Calls `take` with each index from 0 to `count` − 1 and the word of the key: 16 bytes,
/// little-endian, of the key stream of ChaCha20 (RFC 8439) with a zero nonce, starting at block 0.
/// A key generates one stream only, and 2²⁶ words are far below its end.
pub(super) fn each_word(key: &[u8; 32], count: usize, mut take: impl FnMut(usize, i128)) {
    let mut cipher = ChaCha20::new(key.into(), &[0; 12].into());
    let mut bytes = Zeroizing::new([0; 16 * CHUNK]);
    for start in (0..count).step_by(CHUNK) {
        bytes.fill(0);
        cipher.apply_keystream(&mut *bytes);
        let words = bytes.as_chunks::<16>().0.iter().take(count - start);
        for (i, word) in words.enumerate() {
            take(start + i, i128::from_le_bytes(*word));
        }
    }
}
