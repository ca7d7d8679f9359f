//! Where each sum stands among the words of a masked sketch.

use crate::plan::Plan;
use crate::sums::{Sum, Sums};
use std::ops::Range;

/// Check words of a masked sketch.
pub(crate) const CHECK: usize = 2;

/// The name of their tensor.
const CHECK_NAME: &str = "check";

/// A tensor of words.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Its name in files.
    pub name: &'static str,
    /// The sum that it masks; `None` for the check words.
    pub sum: Option<Sum>,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Where its words are.
    pub range: Range<usize>,
}

/// The tensors of words in the order of their names, which is that of files.
#[derive(Debug, Clone)]
pub(crate) struct Layout(pub Vec<Part>);

impl Layout {
    /// Of the masked sketches of a plan.
    pub fn of(plan: &Plan) -> Self {
        let part = |name, sum, shape| Part { name, sum, shape, range: 0..0 };
        let sums = plan.measured().specs().into_iter();
        let mut parts: Vec<Part> =
            sums.map(|spec| part(spec.sum.name(), Some(spec.sum), spec.shape)).collect();
        parts.push(part(CHECK_NAME, None, vec![CHECK]));
        parts.sort_by_key(|part| part.name);
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

    /// Where the check words are.
    pub fn check(&self) -> Range<usize> {
        let check = self.0.iter().find(|part| part.sum.is_none());
        check.expect("every layout has check words").range.clone()
    }

    /// Sums as words, with zeros for the check words.
    pub fn words(&self, sums: &Sums) -> Vec<i128> {
        let mut words = vec![0; self.len()];
        for part in &self.0 {
            if let Some(sum) = part.sum {
                words[part.range.clone()].copy_from_slice(&sums[sum]);
            }
        }
        words
    }

    /// Words as sums.
    pub fn sums(&self, words: &[i128]) -> Sums {
        let mut sums = Sums::none();
        for part in &self.0 {
            if let Some(sum) = part.sum {
                sums[sum] = words[part.range.clone()].to_vec();
            }
        }
        sums
    }
}
