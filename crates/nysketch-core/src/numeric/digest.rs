//! Digests of bytes, as shown in files and messages.

use sha2::{Digest, Sha256};

/// SHA-256 in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    sha256_of(|take| take(bytes))
}

/// SHA-256, in lower-case hexadecimal, of bytes that arrive in parts.
pub(crate) fn sha256_of(write: impl FnOnce(&mut dyn FnMut(&[u8]))) -> String {
    let mut digest = Sha256::new();
    write(&mut |part| digest.update(part));
    hex(&digest.finalize())
}

/// Formats bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Parses exactly `N` bytes in hexadecimal.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().as_chunks::<2>().0) {
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(bytes)
}

/// Returns the value of a hexadecimal digit.
fn digit(b: u8) -> Option<u32> {
    char::from(b).to_digit(16)
}

/// Whether a text has the form of a SHA-256 digest in lower-case hexadecimal.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
