//! Digests of bytes, as files and messages show them.

use sha2::{Digest, Sha256};

/// SHA-256 in lower-case hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    sha256_of(|take| take(bytes))
}

/// The same of bytes that come in parts.
pub(crate) fn sha256_of(write: impl FnOnce(&mut dyn FnMut(&[u8]))) -> String {
    let mut digest = Sha256::new();
    write(&mut |part| digest.update(part));
    digest.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// Whether a text is the SHA-256 of something, in lower-case hexadecimal.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
