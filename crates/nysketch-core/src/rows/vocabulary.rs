//! Texts as numbers: the levels of a category as a source calls them.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

/// A code that stands for no text: the value is missing.
pub const MISSING: u32 = u32::MAX;
/// A code for texts that are not kept, since there are too many or they are too long.
pub const OTHER: u32 = u32::MAX - 1;
/// Most different texts that are kept of a column.
pub const MAX_TEXTS: usize = 1 << 16;
/// Most bytes of a text that is kept.
pub const MAX_TEXT_BYTES: usize = 1 << 10;

/// The texts of a column and their codes, shared by all threads and all readings of a source.
///
/// Codes count from 0 in the order in which texts were first seen, which may differ from run to run:
/// nothing that is kept may depend on them. A plan has levels of its own, and knows them by their text.
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
    /// Whether a text that is not known is not kept, for a reason that is.
    fn is_lost(&self, text: &str) -> bool {
        match text.len() > MAX_TEXT_BYTES {
            true => self.lost == Some(Lost::TooLong),
            false => self.lost.is_some() && self.texts.len() >= MAX_TEXTS,
        }
    }
}

/// Why some texts are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// There are more than [`MAX_TEXTS`].
    TooMany,
    /// One has more than [`MAX_TEXT_BYTES`].
    TooLong,
}

impl Vocabulary {
    /// Hands the code of each text to `put`, in their order; `None` is a missing value.
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
                    // Where nothing is learned by it, threads do not wait for one another.
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

    /// The code of a text.
    pub fn code(&self, text: &str) -> u32 {
        let mut code = MISSING;
        self.encode([Some(text)], |found| code = found);
        code
    }

    /// The texts so far, by their codes.
    pub fn texts(&self) -> Vec<Arc<str>> {
        self.known.read().unwrap_or_else(|e| e.into_inner()).texts.clone()
    }

    /// Why some texts have the code [`OTHER`], if some have.
    pub fn lost(&self) -> Option<Lost> {
        self.known.read().unwrap_or_else(|e| e.into_inner()).lost
    }

    /// Takes up a text that was not known a moment ago.
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

/// A column of categories that a source gives beside its numbers.
#[derive(Debug, Clone)]
pub struct CategoryColumn {
    /// Its name.
    pub name: String,
    /// What its codes mean.
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
