//! Damages files, for tests on the stable toolchain.

/// Returns a copy with a few bytes changed. The changes depend only on the seed.
pub fn damaged(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    Chance(seed).damage(&mut bytes);
    bytes
}

/// Bytes that have a meaning in some format.
const BYTES: [u8; 8] = [0xff, 0x80, 0x7f, 0, 1, b'"', b'\n', b','];

/// Overwrites bytes from a position onwards.
fn put(bytes: &mut Vec<u8>, at: usize, with: &[u8]) {
    let end = bytes.len().min(at + with.len());
    bytes.splice(at..end, with.iter().copied());
}

/// A simple linear congruential generator is sufficient here.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }

    /// Applies damage that is likely to expose errors: lengths become huge, bytes are removed.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(3) {
            let at = self.below(bytes.len());
            match self.below(7) {
                0 => put(bytes, at, &BYTES[self.below(8)..][..1]),
                1 => put(bytes, at, &(1u64 << self.below(64)).to_le_bytes()),
                2 => put(bytes, at, &(u32::MAX - self.below(3) as u32).to_le_bytes()),
                3 => put(bytes, at, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
                4 => bytes.truncate(at),
                5 => drop(bytes.drain(at..bytes.len().min(at + 1 + self.below(8)))),
                _ => bytes[at] ^= 1 << self.below(8),
            }
            if bytes.is_empty() {
                return;
            }
        }
    }
}
