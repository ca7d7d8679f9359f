//! The list of parties of a secure aggregation and their public keys.

use nysketch_core::error::Result;
use nysketch_core::error::masking::MaskingError;
use nysketch_core::numeric::digest::{hex, sha256, unhex};
use std::collections::HashMap;

/// Maximum number of parties in a list.
pub(crate) const MOST: usize = 10_000;

/// Maximum length of the id of a party.
const LONGEST_ID: usize = 64;

/// A public key of X25519 in canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Creates the key with these bytes; `None` unless they are the canonical form of a number
    /// below 2²⁵⁵ − 19, so that keys with different bytes are different keys.
    pub fn new(bytes: [u8; 32]) -> Option<Self> {
        let too_large = bytes[31] == 0x7f && bytes[1..31] == [0xff; 30] && bytes[0] >= 0xed;
        (bytes[31] < 0x80 && !too_large).then_some(PublicKey(bytes))
    }

    /// Creates a key from 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        PublicKey::new(unhex(text)?)
    }

    /// Returns the bytes of the key.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// A party: its id and its public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    id: String,
    public: PublicKey,
}

impl Party {
    /// Creates a party. The id consists of 1 to 64 ASCII letters and digits, `.`, `_` and `-`.
    pub fn new(id: &str, public: PublicKey) -> Result<Self> {
        check_id(id)?;
        Ok(Party { id: id.to_string(), public })
    }

    /// Creates a party from its entry in a list: its id, and its public key in hexadecimal.
    pub fn from_text(id: &str, public: &str) -> Result<Self> {
        let public = PublicKey::from_hex(public);
        Party::new(id, public.ok_or(MaskingError::PublicKey { id: id.to_string() })?)
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }
}

/// Refuses ids that would be ambiguous in a line with other ids.
pub(super) fn check_id(id: &str) -> Result<()> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(fits) {
        Ok(())
    } else {
        Err(MaskingError::PartyId { id: id.to_string() }.into())
    }
}

/// The list of parties, sorted by id. Every party must have the same list. All parties compare its
/// [fingerprint](Self::fingerprint) over a channel that the distributor of the list cannot change.
///
/// ```
/// use nysketch::masking::{Parties, SecretKey};
/// # fn main() -> nysketch::Result<()> {
/// let [a, b] = [SecretKey::random("clinic-a")?.party(), SecretKey::random("clinic-b")?.party()];
/// let parties = Parties::new(vec![b.clone(), a.clone()])?;
/// assert_eq!(parties.list(), [a.clone(), b.clone()]);
/// assert_eq!(parties.fingerprint(), Parties::new(vec![a.clone(), b])?.fingerprint());
/// assert!(Parties::new(vec![a.clone(), a]).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parties(Vec<Party>);

impl Parties {
    /// Accepts 2 to 10,000 parties, in any order. All ids and all keys must differ.
    pub fn new(mut parties: Vec<Party>) -> Result<Self> {
        if !(2..=MOST).contains(&parties.len()) {
            return Err(MaskingError::PartyCount { found: parties.len(), most: MOST }.into());
        }
        parties.sort_by(|a, b| a.id.cmp(&b.id));
        if let Some(pair) = parties.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(MaskingError::SameId { id: pair[0].id.clone() }.into());
        }
        let mut owners = HashMap::new();
        for party in &parties {
            if let Some(first) = owners.insert(party.public, &party.id) {
                let (first, second) = (first.clone(), party.id.clone());
                return Err(MaskingError::SameKey { first, second }.into());
            }
        }
        Ok(Parties(parties))
    }

    /// Returns the parties by id.
    pub fn list(&self) -> &[Party] {
        &self.0
    }

    /// Returns the SHA-256, in hexadecimal, of the list: a line `nysketch parties 1`, then for each
    /// party its id, a space and its public key in hexadecimal.
    pub fn fingerprint(&self) -> String {
        let line = |party: &Party| format!("{} {}\n", party.id, party.public);
        let lines: String = self.0.iter().map(line).collect();
        sha256(format!("nysketch parties 1\n{lines}").as_bytes())
    }
}
