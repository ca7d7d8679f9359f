//! A description of the sums, in plain numbers.

use crate::grid::{self, GROUPS};
use crate::rows::Element;
use std::ops::Range;

/// The combination of the coordinates of a row and a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// `Σ (z − point)²`.
    Squared,
    /// `Σ |z − point|`.
    Absolute,
    /// `Σ z·point`, a phase. The features are its cosine and its sine.
    Phase,
}

/// The computation of a feature from a distance or phase s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rung {
    /// `2^(factor · min(s, limit))`.
    Exp {
        /// Negative.
        factor: f32,
        /// Distance beyond which the value is negligible.
        limit: f32,
    },
    /// The previous value, squared once or twice.
    Square {
        /// 1 or 2.
        times: u8,
    },
    /// Cosine and sine of `factor · s` quarter turns.
    Turns {
        /// Quarter turns per unit of phase.
        factor: f32,
    },
}

/// The bounds of a private plan, to which rows are clipped.
#[derive(Debug, Clone, PartialEq)]
pub struct Private {
    /// Smallest value of each column.
    pub low: Vec<f64>,
    /// Largest value of each column.
    pub high: Vec<f64>,
    /// `[cell][column]`: the points around which the sums of cells are clipped, in whole units.
    pub anchors: Vec<f64>,
    /// The radius around these points, in the same units.
    pub radius: f64,
}

/// The sums to compute: FORMAT.md in numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Number of numeric columns.
    pub dims: usize,
    /// Landmarks or frequencies, row-major.
    pub points: Vec<f32>,
    /// The combination of the coordinates of a row and a point.
    pub metric: Metric,
    /// One per bandwidth; empty if features are not summed.
    pub rungs: Vec<Rung>,
    /// Factor and limit of κ² at the nearest landmark, one pair per bandwidth; empty if coverage is
    /// not summed.
    pub coverage: Vec<(f32, f32)>,
    /// Whether moments of cells are summed.
    pub cells: bool,
    /// Whether moments of all rows are summed.
    pub moments: bool,
    /// The smallest number of values of a row, if missing values are allowed.
    pub least_present: Option<u32>,
    /// `c_j`.
    pub centre: Vec<f64>,
    /// `1/s_j`.
    pub inverse: Vec<f64>,
    /// `2^−e_j`.
    pub per_unit: Vec<f64>,
    /// Number of levels of each category.
    pub categories: Vec<u32>,
    /// `[level][point]`: contributions of the levels to distances, with all categories
    /// concatenated.
    pub levels: Vec<f32>,
    /// Bounds of a private plan.
    pub private: Option<Private>,
}

/// Groups of sums, in the order of their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the sums of a sketch")]
pub enum Section {
    Features,
    Coverage,
    CellRows,
    CellSum,
    CellSquare,
    CellAbsent,
    CellLevels,
    Complete,
    Sum,
    Outer,
}

/// The position of each section among all sums.
#[derive(Debug, Clone)]
pub struct Layout {
    sections: Vec<(Section, Range<usize>)>,
}

impl Layout {
    /// The non-empty sections, with their positions.
    pub fn sections(&self) -> impl Iterator<Item = (Section, Range<usize>)> + '_ {
        self.sections.iter().filter(|(_, place)| !place.is_empty()).cloned()
    }

    /// Start of a section.
    pub(crate) fn start(&self, section: Section) -> u64 {
        self.sections[section as usize].1.start as u64
    }

    /// Number of sums.
    pub fn len(&self) -> usize {
        self.sections.last().map_or(0, |(_, place)| place.end)
    }

    /// Whether there are no sums.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Largest number of bandwidths in a program.
pub(crate) const MOST_RUNGS: usize = 8;
/// Number of values that a thread may hold in registers: sums, and distances of four rows.
const HELD: usize = 96;
/// Allowed numbers of points per thread. There are few, because a program is compiled for each.
const POINTS: [usize; 7] = [1, 2, 4, 7, 10, 13, 16];
/// Overhead of a panel of points, in points per thread.
const PANEL_COST: f64 = 1.5;

/// Approximate number of values that fit in the cache of a GPU together with other data.
const CACHED_VALUES: usize = 1 << 21;
/// Approximate number of rows that a cell should have in a window.
const RUN: usize = 256;

/// The parameters of a program for one [`Spec`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    /// Indices of its bandwidths.
    pub rungs: Range<usize>,
    /// Whether it finds the nearest landmark.
    pub nearest: bool,
    /// Whether it also finds the second nearest; rows are then given as coordinates.
    pub second: bool,
    /// Whether rows have weights.
    pub weighted: bool,
    /// Type of the values.
    pub element: Element,
}

impl Variant {
    /// Whether it is the first program of a pass and checks rows for validity. With weights, rows
    /// have been checked already.
    fn checks(&self) -> bool {
        self.rungs.start == 0 && !self.weighted && !self.second
    }
}

impl Spec {
    /// Number of landmarks or frequencies.
    pub fn count(&self) -> usize {
        self.points.len() / self.dims
    }

    /// Whether all lists have consistent lengths, so that kernels read within bounds.
    pub(crate) fn is_whole(&self) -> bool {
        let (d, m) = (self.dims, self.count());
        let framed = [&self.centre, &self.inverse, &self.per_unit];
        let private = self.private.iter().all(|p| {
            p.low.len() == d && p.high.len() == d && (!self.cells || p.anchors.len() == m * d)
        });
        let levels = self.all_levels() * m;
        d > 0
            && self.points.len() == m * d
            && m > 0
            && framed.iter().all(|list| list.len() == d)
            && (self.levels.is_empty() || self.levels.len() == levels)
            && private
    }

    /// Number of features per point and bandwidth: one, or two for cosine and sine.
    fn kinds(&self) -> usize {
        if self.metric == Metric::Phase { 2 } else { 1 }
    }

    /// Number of levels of all categories.
    pub(crate) fn all_levels(&self) -> usize {
        self.categories.iter().map(|levels| *levels as usize).sum()
    }

    /// The position of each sum.
    pub fn layout(&self) -> Layout {
        let (m, d) = (self.count(), self.dims);
        // Numbers of cells and of matrices of moments.
        let (cells, moments) = (if self.cells { m } else { 0 }, usize::from(self.moments));
        let partial = self.least_present.is_some();
        let lengths = [
            (Section::Features, self.rungs.len() * self.kinds() * m),
            (Section::Coverage, self.coverage.len()),
            (Section::CellRows, cells),
            (Section::CellSum, cells * d),
            (Section::CellSquare, cells * d),
            (Section::CellAbsent, if partial { cells * d } else { 0 }),
            (Section::CellLevels, cells * self.all_levels()),
            (Section::Complete, usize::from(partial)),
            (Section::Sum, moments * d),
            (Section::Outer, moments * (d * (d + 1) / 2)),
        ];
        let (mut sections, mut end) = (Vec::new(), 0);
        for (section, length) in lengths {
            sections.push((section, end..end + length));
            end += length;
        }
        Layout { sections }
    }

    /// Whether the nearest landmark of each row is needed.
    pub(crate) fn nearest(&self) -> bool {
        self.cells || !self.coverage.is_empty()
    }

    /// The programs of a pass, in order. Bandwidths are divided among them where one starts with a
    /// new exponential.
    pub(crate) fn variants(&self, element: Element, weighted: bool) -> Vec<Variant> {
        let rungs = self.rungs.iter().enumerate();
        let starts = rungs.filter(|(_, rung)| !matches!(rung, Rung::Square { .. }));
        let mut starts: Vec<usize> = starts.map(|(i, _)| i).collect();
        starts.push(self.rungs.len());
        let mut parts: Vec<Range<usize>> = Vec::new();
        for chain in starts.windows(2).map(|w| w[0]..w[1]) {
            match parts.last_mut() {
                Some(part) if chain.end - part.start <= MOST_RUNGS => part.end = chain.end,
                _ => parts.push(chain),
            }
        }
        if parts.is_empty() {
            parts.push(0..0);
        }
        parts
            .into_iter()
            .map(|rungs| Variant {
                nearest: rungs.start == 0 && self.nearest(),
                second: false,
                rungs,
                weighted,
                element,
            })
            .collect()
    }

    /// Number of points per thread: as few panels as registers allow, with few unused places.
    pub(crate) fn per_thread(&self, variant: &Variant) -> usize {
        let words = if variant.weighted { 2 } else { 1 };
        let max = (HELD / (4 + words * variant.rungs.len() * self.kinds())).max(1);
        let possible = POINTS.into_iter().filter(|points| *points <= max);
        possible.min_by(|a, b| self.cost(*a).total_cmp(&self.cost(*b))).unwrap_or(1)
    }

    /// The relative time of a row, for a number of points per thread.
    fn cost(&self, per_thread: usize) -> f64 {
        self.panels(per_thread) as f64 * (per_thread as f64 + PANEL_COST)
    }

    /// Number of panels of points, for a number of points per thread.
    pub(crate) fn panels(&self, per_thread: usize) -> usize {
        self.count().div_ceil(GROUPS * per_thread)
    }

    /// log₂ of the number of rows that are sorted by cell together: rows that fit in the cache of a
    /// GPU, but enough for a cell to have several.
    pub(crate) fn window(&self) -> u32 {
        let cached = CACHED_VALUES / self.dims;
        let rows = cached.max(RUN * self.count()).max(grid::SPAN as usize);
        rows.next_power_of_two().trailing_zeros()
    }

    /// Number of bins in all windows of this number of rows.
    pub(crate) fn bins(&self, rows: u64) -> usize {
        rows.div_ceil(1 << self.window()) as usize * self.count()
    }

    /// Number of columns in a tile of the matrix of moments, without weights.
    pub(crate) fn edge(&self) -> usize {
        grid::EDGES[usize::from(self.dims >= grid::EDGES[0])]
    }

    /// Names and values of the constants that a program is compiled with.
    pub(crate) fn defines(&self, variant: &Variant) -> Vec<String> {
        let rungs = self.rungs[variant.rungs.clone()].iter().enumerate();
        let squarings = rungs.map(|(i, rung)| match rung {
            Rung::Square { times } => u32::from(*times) << (2 * i),
            _ => 0,
        });
        let squarings: u32 = squarings.sum();
        let values = [
            ("METRIC", self.metric as usize),
            ("RUNGS", variant.rungs.len()),
            ("SQUARINGS", squarings as usize),
            ("PER_THREAD", self.per_thread(variant)),
            ("NEAREST", usize::from(variant.nearest)),
            ("SECOND", usize::from(variant.second)),
            ("WEIGHTED", usize::from(variant.weighted)),
            ("HOLES", usize::from(self.least_present.is_some())),
            ("PRIVATE", usize::from(self.private.is_some())),
            ("CHECKS", usize::from(variant.checks())),
            ("EDGE", self.edge()),
            ("NARROW", usize::from(self.dims < self.edge())),
        ];
        let mut defines: Vec<String> =
            values.iter().map(|(name, value)| format!("-D{name}={value}")).collect();
        defines.push(format!("-DELEMENT={}", variant.element.name()));
        defines.extend(grid::defines());
        defines
    }

    /// Points in the layout of a block, `[panel][column][group][place]`, padded with infinity to
    /// whole quads of places.
    pub(crate) fn packed_points(&self, per_thread: usize) -> Vec<f32> {
        let (d, m) = (self.dims, self.count());
        let (panels, places) = (self.panels(per_thread), per_thread.next_multiple_of(4));
        let mut packed = vec![f32::INFINITY; panels * d * GROUPS * places];
        let mut lines = packed.chunks_exact_mut(places);
        for panel in 0..panels {
            for k in 0..d {
                for group in 0..GROUPS {
                    let first = (panel * GROUPS + group) * per_thread;
                    let Some(line) = lines.next() else { return packed };
                    for (place, j) in line.iter_mut().zip(first..m.min(first + per_thread)) {
                        *place = self.points[j * d + k];
                    }
                }
            }
        }
        packed
    }

    /// Levels with a place for each point of a panel. Unused places are infinite, so that no row is
    /// nearest to them: for a row without numeric values, the levels are the whole distance.
    pub(crate) fn packed_levels(&self, per_thread: usize) -> Vec<f32> {
        let (m, filled) = (self.count(), self.panels(per_thread) * GROUPS * per_thread);
        let mut packed = Vec::with_capacity(self.all_levels() * filled);
        for line in self.levels.chunks_exact(m.max(1)) {
            packed.extend_from_slice(line);
            packed.resize(packed.len() + filled - m, f32::INFINITY);
        }
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(count: usize, rungs: Vec<Rung>) -> Spec {
        Spec {
            dims: 2,
            points: (0..2 * count).map(|i| i as f32).collect(),
            metric: Metric::Squared,
            rungs,
            coverage: Vec::new(),
            cells: true,
            moments: false,
            least_present: None,
            centre: vec![0.0; 2],
            inverse: vec![1.0; 2],
            per_unit: vec![1.0; 2],
            categories: Vec::new(),
            levels: Vec::new(),
            private: None,
        }
    }

    #[test]
    fn bandwidths_are_divided_where_one_starts_afresh() {
        let (exp, square) = (Rung::Exp { factor: -1.0, limit: 30.0 }, Rung::Square { times: 1 });
        let ladder = [exp, square, square, square, square, exp, square, square, square, exp];
        for (rungs, expected) in
            [(&ladder[..], &[(0, 5), (5, 10)][..]), (&ladder[..5], &[(0, 5)]), (&[], &[(0, 0)])]
        {
            let variants = spec(3, rungs.to_vec()).variants(Element::F64, false);
            let parts = variants.iter().map(|v| (v.rungs.start, v.rungs.end));
            assert_eq!(parts.collect::<Vec<(usize, usize)>>(), expected);
        }
    }

    #[test]
    fn every_point_has_one_place() {
        for count in [1, 7, 8, 100, 105, 400, 1000] {
            for per_thread in [1, 4, 13, 16] {
                let packed = spec(count, Vec::new()).packed_points(per_thread);
                let mut finite: Vec<f32> = packed.into_iter().filter(|x| x.is_finite()).collect();
                finite.sort_by(f32::total_cmp);
                assert_eq!(finite, (0..2 * count).map(|i| i as f32).collect::<Vec<f32>>());
            }
        }
        let three = vec![Rung::Exp { factor: -1.0, limit: 30.0 }; 3];
        // One panel of 104 places for 100 points, because a thread has registers for 13.
        for (count, expected) in [(100, 13), (8, 1), (1, 1)] {
            let spec = spec(count, three.clone());
            assert_eq!(spec.per_thread(&spec.variants(Element::F32, false)[0]), expected);
        }
    }
}
