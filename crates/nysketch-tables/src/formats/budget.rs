//! The limit on the memory for decompressed data.

/// Size in bytes to which any compressed piece of a file may expand.
const ALWAYS: u64 = 512 << 20;
/// Maximum ratio of decompressed to compressed size for larger pieces.
const RATIO: u64 = 64;

/// Refuses data that would expand to more than 512 MiB and to more than 64 times its size.
pub fn check_expansion(compressed: u64, expanded: u64) -> Result<(), String> {
    if expanded <= ALWAYS.max(compressed.saturating_mul(RATIO)) {
        return Ok(());
    }
    Err(format!(
        "{compressed} bytes would expand to {expanded}; at most 512 MB, or {RATIO} times the size, \
         are read at once"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_or_dense_pieces_pass() {
        for (compressed, expanded) in [(0, 0), (1, 512 << 20), (1 << 30, 64 << 30)] {
            assert_eq!(check_expansion(compressed, expanded), Ok(()));
        }
        assert!(check_expansion(8 << 20, (512 << 20) + 1).is_err());
        assert!(check_expansion(100, 1 << 40).is_err());
        assert!(check_expansion(u64::MAX, u64::MAX).is_ok());
    }
}
