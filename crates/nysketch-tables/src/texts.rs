//! Texts stored one after the other in one buffer.

use nysketch_core::rows::{MISSING, Vocabulary};

/// A list of texts. An empty text means a missing value: csv files cannot distinguish the two, and
/// the same rows must be equal in every format.
#[derive(Debug, Default)]
pub struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// Adds the text that `write` appends.
    pub fn write<E>(&mut self, write: impl FnOnce(&mut String) -> Result<(), E>) -> Result<(), E> {
        write(&mut self.text)?;
        self.ends.push(self.text.len());
        Ok(())
    }

    /// Iterates over the texts in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let text = &self.text[start..*end];
            start = *end;
            Some(text).filter(|t| !t.is_empty())
        })
    }
}

/// Writes the codes of the texts to every `stride`-th element of `out`, starting at `offset`.
pub fn encode<'a>(
    vocabulary: &Vocabulary,
    texts: impl Iterator<Item = Option<&'a str>>,
    out: &mut [u32],
    offset: usize,
    stride: usize,
) {
    let mut out = out.iter_mut().skip(offset).step_by(stride);
    vocabulary.encode(texts, |code| {
        if let Some(out) = out.next() {
            *out = code;
        }
    });
}

/// Writes the code of one text to the same elements.
pub fn fill(
    vocabulary: &Vocabulary,
    text: Option<&str>,
    out: &mut [u32],
    offset: usize,
    stride: usize,
) {
    let code = text.map_or(MISSING, |text| vocabulary.code(text));
    out.iter_mut().skip(offset).step_by(stride).for_each(|out| *out = code);
}
