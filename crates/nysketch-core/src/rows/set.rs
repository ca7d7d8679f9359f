//! Sets of positions.

use std::ops::Range;

/// A set of positions, stored as sorted ranges with gaps between them.
///
/// ```
/// use nysketch_core::RowSet;
/// let mut done = RowSet::new([0..100, 300..400]);
/// done.insert(100..200);
/// assert_eq!(done.ranges(), [0..200, 300..400]);
/// assert_eq!(done.first_missing(50), 200);
/// assert_eq!(done.len(), 300);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowSet(Vec<Range<u64>>);

impl RowSet {
    /// The union of ranges.
    pub fn new(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut set = RowSet::default();
        ranges.into_iter().for_each(|r| set.insert(r));
        set
    }

    /// The ranges, in order.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.0
    }

    pub(super) fn into_ranges(self) -> Vec<Range<u64>> {
        self.0
    }

    /// Number of positions.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|r| r.end - r.start).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a range.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let from = self.0.partition_point(|r| r.end < range.start);
        let to = self.0.partition_point(|r| r.start <= range.end);
        let start = self.0.get(from).map_or(range.start, |r| r.start.min(range.start));
        let end = if to > from { self.0[to - 1].end.max(range.end) } else { range.end };
        self.0.splice(from..to, [if to > from { start..end } else { range }]);
    }

    /// The first position, from `at` onwards, that is not in the set.
    pub fn first_missing(&self, at: u64) -> u64 {
        self.0.iter().find(|r| r.contains(&at)).map_or(at, |r| r.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether a position is in one of the ranges, given by their starts and lengths.
    fn is_inside(ranges: &[(u64, u64)], x: u64) -> bool {
        ranges.iter().any(|(start, length)| (*start..start + length).contains(&x))
    }

    proptest! {
        #[test]
        fn row_sets_are_sets(ranges in prop::collection::vec((0u64..60, 0u64..9), 0..20)) {
            let set = RowSet::new(ranges.iter().map(|(a, n)| *a..a + n));
            for x in 0..80 {
                prop_assert_eq!(set.ranges().iter().any(|r| r.contains(&x)), is_inside(&ranges, x));
                let missing = (x..).find(|y| !is_inside(&ranges, *y));
                prop_assert_eq!(Some(set.first_missing(x)), missing);
            }
            prop_assert!(set.ranges().windows(2).all(|w| w[0].end < w[1].start));
            let inside = (0..80).filter(|x| is_inside(&ranges, *x)).count();
            prop_assert_eq!(set.len(), inside as u64);
        }
    }
}
