//! Vocabularies: the texts of a categorical column and their codes.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

/// Code of a missing value.
pub const MISSING: u32 = u32::MAX;
/// Code of all texts that are not stored, because there are too many or they are too long.
pub const OTHER: u32 = u32::MAX - 1;
/// Largest number of different texts stored per column.
pub const MAX_TEXTS: usize = 1 << 16;
/// Largest size of a stored text, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 10;

/// The texts of a column and their codes, shared by all threads and all readings of a source.
///
/// Codes count from 0 in the order in which texts were first seen, which can differ from run to
/// run. Stored results must not depend on them. A plan numbers its levels itself and identifies
/// them by their text.
///
/// ```
/// use nysketch_core::rows::{MISSING, Vocabulary};
/// let carriers = Vocabulary::default();
/// let mut codes = Vec::new();
/// carriers.encode([Some("UA"), None, Some("AA"), Some("UA")], |code| codes.push(code));
/// assert_eq!(codes, [0, MISSING, 1, 0]);
/// assert_eq!(carriers.texts().iter().map(|t| &**t).collect::<Vec<_>>(), ["UA", "AA"]);
/// ```
#[derive(Debug, Default)]
pub struct Vocabulary {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    codes: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    lost: Option<Lost>,
}

impl Known {
    /// Whether an unknown text cannot be stored, for a reason that is already recorded.
    fn is_lost(&self, text: &str) -> bool {
        if text.len() > MAX_TEXT_BYTES {
            self.lost == Some(Lost::TooLong)
        } else {
            self.lost.is_some() && self.texts.len() >= MAX_TEXTS
        }
    }
}

/// The reason why some texts are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// There are more than [`MAX_TEXTS`] texts.
    TooMany,
    /// A text has more than [`MAX_TEXT_BYTES`] bytes.
    TooLong,
}

impl Vocabulary {
    /// Passes the code of each text to `put`, in order. `None` is a missing value.
    pub fn encode<'a>(
        &self,
        texts: impl IntoIterator<Item = Option<&'a str>>,
        mut put: impl FnMut(u32),
    ) {
        let mut known = self.known.read().unwrap_or_else(|e| e.into_inner());
        for text in texts {
            let code = match text {
                None => MISSING,
                Some(text) => match known.codes.get(text) {
                    Some(code) => *code,
                    // Adding the text would change nothing, so threads skip the write lock.
                    None if known.is_lost(text) => OTHER,
                    None => {
                        drop(known);
                        let code = self.add(text);
                        known = self.known.read().unwrap_or_else(|e| e.into_inner());
                        code
                    }
                },
            };
            put(code);
        }
    }

    /// Returns the code of a text, adding the text if it is new.
    pub fn code(&self, text: &str) -> u32 {
        let mut code = MISSING;
        self.encode([Some(text)], |found| code = found);
        code
    }

    /// The texts so far, ordered by code.
    pub fn texts(&self) -> Vec<Arc<str>> {
        self.known.read().unwrap_or_else(|e| e.into_inner()).texts.clone()
    }

    /// The reason why some texts have the code [`OTHER`], if any have.
    pub fn lost(&self) -> Option<Lost> {
        self.known.read().unwrap_or_else(|e| e.into_inner()).lost
    }

    /// Adds a text, unless another thread has added it in the meantime.
    fn add(&self, text: &str) -> u32 {
        let mut known = self.known.write().unwrap_or_else(|e| e.into_inner());
        if let Some(code) = known.codes.get(text) {
            return *code;
        }
        let lost = match text.len() {
            n if n > MAX_TEXT_BYTES => Some(Lost::TooLong),
            _ if known.texts.len() >= MAX_TEXTS => Some(Lost::TooMany),
            _ => None,
        };
        if lost.is_some() {
            known.lost = known.lost.max(lost);
            return OTHER;
        }
        let (text, code): (Arc<str>, u32) = (Arc::from(text), known.texts.len() as u32);
        known.texts.push(text.clone());
        known.codes.insert(text, code);
        code
    }
}

/// A categorical column of a source.
#[derive(Debug, Clone)]
pub struct CategoryColumn {
    /// Name of the column.
    pub name: String,
    /// The texts of its codes.
    pub vocabulary: Arc<Vocabulary>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_beyond_the_limits_are_not_kept() {
        let vocabulary = Vocabulary::default();
        for i in 0..MAX_TEXTS {
            assert_eq!(vocabulary.code(&i.to_string()), i as u32);
        }
        assert_eq!((vocabulary.code("more"), vocabulary.lost()), (OTHER, Some(Lost::TooMany)));
        assert_eq!(vocabulary.code("7"), 7);
        let vocabulary = Vocabulary::default();
        assert_eq!(vocabulary.code(&"x".repeat(MAX_TEXT_BYTES + 1)), OTHER);
        assert_eq!(vocabulary.lost(), Some(Lost::TooLong));
        assert_eq!(vocabulary.code(""), 0);
    }

    #[test]
    fn threads_agree_on_codes() {
        let vocabulary = Vocabulary::default();
        std::thread::scope(|s| {
            for t in 0..4 {
                let vocabulary = &vocabulary;
                s.spawn(move || {
                    for i in 0..1000 {
                        vocabulary.code(&((i * 7 + t) % 300).to_string());
                    }
                });
            }
        });
        let texts = vocabulary.texts();
        assert_eq!(texts.len(), 300);
        assert!(texts.iter().enumerate().all(|(i, text)| vocabulary.code(text) == i as u32));
    }
}
