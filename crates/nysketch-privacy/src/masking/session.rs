//! The id of a session, on which all parties agree before each sum.

use nysketch_core::error::masking::MaskingError;
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::digest::hex;

/// Length of the id of a session, in hexadecimal digits.
const DIGITS: std::ops::RangeInclusive<usize> = 32..=128;

/// A session: one sum of one sketch per party. Its id is random and never reused.
///
/// ```
/// use nysketch::masking::Session;
/// # fn main() -> nysketch::Result<()> {
/// let session = Session::random()?;
/// assert_eq!(Session::new(&session.to_string().to_uppercase())?, session);
/// assert!(Session::new("january").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session(String);

impl Session {
    /// Creates the session with this id, 32 to 128 hexadecimal digits.
    pub fn new(id: &str) -> Result<Self> {
        if DIGITS.contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(Session(id.to_ascii_lowercase()));
        }
        Err(MaskingError::Session { found: id.to_string() }.into())
    }

    /// Creates a session from 128 random bits of the operating system.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(Error::source)?;
        Ok(Session(hex(&bytes)))
    }

    /// Returns the id in lower-case hexadecimal.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
