//! The layout of the sums in the words of a masked file.

use crate::dp::Terms;
use nysketch_core::plan::Plan;
use nysketch_core::sums::{Sum, Sums};
use std::ops::Range;

/// Number of check words of a masked file.
pub(crate) const CHECK: usize = 2;

/// The name of the tensor of check words.
const CHECK_NAME: &str = "check";

/// The content of a tensor of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// A sum of a sketch.
    Sum(Sum),
    /// The noisy sums of the mechanism with this index in the terms.
    Noisy(usize),
    /// The check words.
    Check,
}

/// A tensor of words.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Name in files.
    pub name: String,
    /// The masked content.
    pub words: Words,
    /// Dimensions in files.
    pub shape: Vec<usize>,
    /// The range of its words.
    pub range: Range<usize>,
}

/// The tensors of words in the order of their names, as in files.
#[derive(Debug, Clone)]
pub(crate) struct Layout(pub Vec<Part>);

impl Layout {
    /// Returns the layout of the masked sketches of a plan or, with terms, of its masked releases.
    pub fn of(plan: &Plan, terms: Option<&Terms>) -> Self {
        let part = |name: &str, words, shape| Part { name: name.into(), words, shape, range: 0..0 };
        let mut parts: Vec<Part> = match terms {
            None => {
                let sums = plan.measured().specs().into_iter();
                sums.map(|spec| part(spec.sum.name(), Words::Sum(spec.sum), spec.shape)).collect()
            }
            Some(terms) => {
                let noisy = terms.spendings.iter().map(|s| s.mechanism).enumerate();
                noisy.map(|(i, m)| part(&m.tensor(), Words::Noisy(i), vec![m.len(plan)])).collect()
            }
        };
        parts.push(part(CHECK_NAME, Words::Check, vec![CHECK]));
        parts.sort_by(|a, b| a.name.cmp(&b.name));
        let mut end = 0;
        for part in &mut parts {
            part.range = end..end + part.shape.iter().product::<usize>();
            end = part.range.end;
        }
        Layout(parts)
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.0.last().map_or(0, |part| part.range.end)
    }

    /// Returns the range of the check words.
    pub fn check(&self) -> Range<usize> {
        let check = self.0.iter().find(|part| part.words == Words::Check);
        check.expect("every layout has check words").range.clone()
    }

    /// Converts sums to words, with zeros for the check words.
    pub fn words(&self, sums: &Sums) -> Vec<i128> {
        self.gather(|words| match words {
            Words::Sum(sum) => Some(&sums[sum]),
            _ => None,
        })
    }

    /// Converts noisy sums to words, with zeros for the check words.
    pub fn noisy_words(&self, noisy: &[Vec<i128>]) -> Vec<i128> {
        self.gather(|words| match words {
            Words::Noisy(at) => Some(&noisy[at]),
            _ => None,
        })
    }

    fn gather<'a>(&self, of: impl Fn(Words) -> Option<&'a Vec<i128>>) -> Vec<i128> {
        let mut words = vec![0; self.len()];
        for part in &self.0 {
            if let Some(sums) = of(part.words) {
                words[part.range.clone()].copy_from_slice(sums);
            }
        }
        words
    }

    /// Converts words to sums.
    pub fn sums(&self, words: &[i128]) -> Sums {
        let mut sums = Sums::none();
        for part in &self.0 {
            if let Words::Sum(sum) = part.words {
                sums[sum] = words[part.range.clone()].to_vec();
            }
        }
        sums
    }

    /// Converts words to noisy sums, in the order of the terms.
    pub fn noisy(&self, words: &[i128]) -> Vec<Vec<i128>> {
        let mut noisy: Vec<(usize, Vec<i128>)> = Vec::new();
        for part in &self.0 {
            if let Words::Noisy(at) = part.words {
                noisy.push((at, words[part.range.clone()].to_vec()));
            }
        }
        noisy.sort_by_key(|(at, _)| *at);
        noisy.into_iter().map(|(_, sums)| sums).collect()
    }
}
