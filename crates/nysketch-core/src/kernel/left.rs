//! Pairs of rows and landmark groups that no bound excludes, sorted by group.

use super::panels::PANEL;

/// A group that may contain the nearest landmark of a row.
#[derive(Debug, Clone, Copy, Default)]
pub struct Possible {
    group: u32,
    /// The row.
    pub row: u32,
    /// Lower bound on the squared distances of its landmarks.
    pub square: f32,
}

/// The remaining groups for the rows of a block.
#[derive(Debug, Clone, Default)]
pub struct Left {
    count: usize,
    all: Vec<Possible>,
    sorted: Vec<Possible>,
    /// End of each group among the sorted pairs.
    ends: Vec<u32>,
}

impl Left {
    /// Removes all pairs.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds the groups of consecutive lanes that may contain the nearest landmark of a row.
    #[inline(always)]
    pub fn add(&mut self, row: usize, first: usize, squares: &[f32], distance: f32) {
        if self.all.len() < self.count + squares.len() {
            self.all.resize(2 * self.count + PANEL, Possible::default());
        }
        // Branch-free, because the branches would be unpredictable.
        let mut count = self.count;
        for (lane, square) in squares.iter().enumerate() {
            let (group, row) = ((first + lane) as u32, row as u32);
            self.all[count] = Possible { group, row, square: *square };
            count += usize::from(!(*square > distance));
        }
        self.count = count;
    }

    /// Sorts the pairs by group.
    pub fn sort(&mut self, groups: usize) {
        let all = &self.all[..self.count];
        self.ends.clear();
        self.ends.resize(groups.next_multiple_of(PANEL) + 1, 0);
        all.iter().for_each(|p| self.ends[p.group as usize + 1] += 1);
        for group in 1..self.ends.len() {
            self.ends[group] += self.ends[group - 1];
        }
        self.sorted.resize(all.len().max(self.sorted.len()), Possible::default());
        for possible in all {
            // The start of each group becomes its end.
            let at = &mut self.ends[possible.group as usize];
            self.sorted[*at as usize] = *possible;
            *at += 1;
        }
    }

    /// The rows for which a group remains. Requires a previous [`sort`](Self::sort).
    pub fn of_group(&self, group: usize) -> &[Possible] {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.sorted[start as usize..self.ends[group] as usize]
    }
}
