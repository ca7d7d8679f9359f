//! Contributions of a row's levels to its distance from each point.

/// A table `[category][level][point]`. For landmarks, an entry is zero if the landmark has that
/// level, and the weight of the category otherwise. For centres, it depends on the shares of the
/// levels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LevelTables {
    points: usize,
    /// Index of the first level of each category among all levels.
    starts: Vec<usize>,
    /// `[level][point]`, with the levels of all categories concatenated.
    entries: Vec<f32>,
}

impl LevelTables {
    /// A table for categories with these numbers of levels. `entry(category, level, point)` returns
    /// the contribution.
    pub fn new(
        points: usize,
        levels: &[usize],
        entry: impl Fn(usize, usize, usize) -> f32,
    ) -> Self {
        let (mut starts, mut entries) = (Vec::new(), Vec::new());
        for (category, levels) in levels.iter().enumerate() {
            starts.push(entries.len() / points.max(1));
            for level in 0..*levels {
                entries.extend((0..points).map(|point| entry(category, level, point)));
            }
        }
        LevelTables { points, starts, entries }
    }

    /// Number of categories.
    pub fn categories(&self) -> usize {
        self.starts.len()
    }

    /// Contribution of a category's level to the distance from a point.
    pub fn entry(&self, category: usize, code: u32, point: usize) -> f32 {
        self.entries[(self.starts[category] + code as usize) * self.points + point]
    }

    /// Adds the contributions of a row's levels to its distance from a point, in the order of the
    /// categories.
    pub fn add(&self, distance: f32, codes: &[u32], point: usize) -> f32 {
        let entries = codes.iter().enumerate();
        entries.fold(distance, |sum, (c, code)| sum + self.entry(c, *code, point))
    }

    /// `[level][point]`, with the levels of all categories concatenated.
    pub fn entries(&self) -> &[f32] {
        &self.entries
    }

    /// Index of the first level of each category among all levels.
    pub(super) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// `[level][place]` for points in another order. Infinite places have no point and get
    /// infinity.
    pub(super) fn arranged(&self, places: &[f32]) -> Vec<f32> {
        let mut arranged = Vec::new();
        for line in self.entries.chunks_exact(self.points.max(1)) {
            for j in places {
                arranged.push(line.get(*j as usize).copied().unwrap_or(f32::INFINITY));
            }
        }
        arranged
    }

    /// `[level][point]`, padded with infinity to whole vectors.
    pub(super) fn packed(&self, padded: usize) -> Vec<f32> {
        let mut packed = Vec::with_capacity(self.entries.len() / self.points.max(1) * padded);
        for line in self.entries.chunks_exact(self.points.max(1)) {
            packed.extend_from_slice(line);
            packed.resize(packed.len() + padded - self.points, f32::INFINITY);
        }
        packed
    }
}
