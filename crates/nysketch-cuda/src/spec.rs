//! What is summed, in plain numbers.

use crate::grid::{self, GROUPS};
use crate::rows::Element;
use std::ops::Range;

/// What a row and a point make of their coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// `Σ (z − point)²`.
    Squared,
    /// `Σ |z − point|`.
    Absolute,
    /// `Σ z·point`, a phase: features are its cosine and its sine.
    Phase,
}

/// How a feature comes from a distance or phase s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rung {
    /// `2^(factor · min(s, limit))`.
    Exp {
        /// Below zero.
        factor: f32,
        /// Beyond it the value counts nothing.
        limit: f32,
    },
    /// The value before, squared once or twice.
    Square {
        /// 1 or 2.
        times: u8,
    },
    /// Cosine and sine of `factor · s` quarter turns.
    Turns {
        /// Quarter turns for a phase of one.
        factor: f32,
    },
}

/// What rows are brought into by a private plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Private {
    /// Least value of each column.
    pub low: Vec<f64>,
    /// Largest value of each column.
    pub high: Vec<f64>,
    /// `[cell][column]`: what sums of cells are taken around, in whole units.
    pub anchors: Vec<f64>,
    /// How far from it a row counts, in the same units.
    pub radius: f64,
}

/// What is summed: FORMAT.md in numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Columns of numbers.
    pub dims: usize,
    /// Landmarks or frequencies, row-major.
    pub points: Vec<f32>,
    /// What rows and points make of their coordinates.
    pub metric: Metric,
    /// One for each bandwidth; none where no features are summed.
    pub rungs: Vec<Rung>,
    /// Factor and limit of κ² of the nearest landmark, for each bandwidth; none where coverage is not summed.
    pub coverage: Vec<(f32, f32)>,
    /// Whether moments of cells are summed.
    pub cells: bool,
    /// Whether moments of all rows are.
    pub moments: bool,
    /// Where rows may lack values: how many they must have.
    pub least_present: Option<u32>,
    /// `c_j`.
    pub centre: Vec<f64>,
    /// `1/s_j`.
    pub inverse: Vec<f64>,
    /// `2^−e_j`.
    pub per_unit: Vec<f64>,
    /// Number of levels of each category.
    pub categories: Vec<u32>,
    /// `[level][point]`: what the levels of all categories, one after the other, add to distances.
    pub levels: Vec<f32>,
    /// Bounds of a private plan.
    pub private: Option<Private>,
}

/// Sums that belong together, in the order in which they lie in memory.
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

/// Where each sum is among all of them.
#[derive(Debug, Clone)]
pub struct Layout {
    sections: Vec<(Section, Range<usize>)>,
}

impl Layout {
    /// The sections that are not empty, with their places.
    pub fn sections(&self) -> impl Iterator<Item = (Section, Range<usize>)> + '_ {
        self.sections.iter().filter(|(_, place)| !place.is_empty()).cloned()
    }

    /// Where a section starts.
    pub(crate) fn start(&self, section: Section) -> u64 {
        self.sections[section as usize].1.start as u64
    }

    /// Number of sums.
    pub fn len(&self) -> usize {
        self.sections.last().map_or(0, |(_, place)| place.end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Most bandwidths of a program.
pub(crate) const MOST_RUNGS: usize = 8;
/// Numbers that a thread may hold in registers: sums, and distances of four rows.
const HELD: usize = 96;
/// How many points a thread may have: few choices, since a program is compiled for each.
const POINTS: [usize; 7] = [1, 2, 4, 7, 10, 13, 16];
/// What a panel of points costs besides its points, in points of a thread.
const PANEL_COST: f64 = 1.5;

/// Values that the cache of a GPU has room for beside others, about.
const CACHED_VALUES: usize = 1 << 21;
/// Rows that a cell should have in a window, about.
const RUN: usize = 256;

/// What differs between programs for one [`Spec`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    /// Bandwidths of it.
    pub rungs: Range<usize>,
    /// Whether the nearest landmark is looked for.
    pub nearest: bool,
    /// Whether the second nearest is, too: then rows come as coordinates.
    pub second: bool,
    /// Whether rows have weights.
    pub weighted: bool,
    /// What values are.
    pub element: Element,
}

impl Variant {
    /// Whether it is the first that rows go through, and looks at their validity on the way. Weights say it already.
    fn checks(&self) -> bool {
        self.rungs.start == 0 && !self.weighted && !self.second
    }
}

impl Spec {
    /// Number of landmarks or frequencies.
    pub fn count(&self) -> usize {
        self.points.len() / self.dims
    }

    /// Whether each list is as long as what it is about, so that kernels read nothing beyond.
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

    /// Features of a point and bandwidth: one, or cosine and sine.
    fn kinds(&self) -> usize {
        if self.metric == Metric::Phase { 2 } else { 1 }
    }

    /// Number of levels of all categories.
    pub(crate) fn all_levels(&self) -> usize {
        self.categories.iter().map(|levels| *levels as usize).sum()
    }

    /// Where each sum is.
    pub fn layout(&self) -> Layout {
        let (m, d) = (self.count(), self.dims);
        let cells = |entries: usize| if self.cells { m * entries } else { 0 };
        let moments = |entries: usize| if self.moments { entries } else { 0 };
        let partial = self.least_present.is_some();
        let lengths = [
            (Section::Features, self.rungs.len() * self.kinds() * m),
            (Section::Coverage, self.coverage.len()),
            (Section::CellRows, cells(1)),
            (Section::CellSum, cells(d)),
            (Section::CellSquare, cells(d)),
            (Section::CellAbsent, if partial { cells(d) } else { 0 }),
            (Section::CellLevels, cells(self.all_levels())),
            (Section::Complete, usize::from(partial)),
            (Section::Sum, moments(d)),
            (Section::Outer, moments(d * (d + 1) / 2)),
        ];
        let mut end = 0;
        let place = |(section, length): (Section, usize)| {
            end += length;
            (section, end - length..end)
        };
        Layout { sections: lengths.into_iter().map(place).collect() }
    }

    /// Whether each row's nearest landmark is needed.
    pub(crate) fn nearest(&self) -> bool {
        self.cells || !self.coverage.is_empty()
    }

    /// The programs that rows go through, one after the other. Bandwidths are divided where one starts afresh.
    pub(crate) fn variants(&self, element: Element, weighted: bool) -> Vec<Variant> {
        let afresh = |rung: &usize| !matches!(self.rungs[*rung], Rung::Square { .. });
        let mut starts: Vec<usize> = (0..self.rungs.len()).filter(afresh).collect();
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
        let nearest = |part: &Range<usize>| part.start == 0 && self.nearest();
        parts
            .into_iter()
            .map(|rungs| Variant {
                nearest: nearest(&rungs),
                second: false,
                rungs,
                weighted,
                element,
            })
            .collect()
    }

    /// How many points a thread has: as few panels of them as registers allow, with few places left over.
    pub(crate) fn per_thread(&self, variant: &Variant) -> usize {
        let words = if variant.weighted { 2 } else { 1 };
        let most = (HELD / (4 + words * variant.rungs.len() * self.kinds())).max(1);
        let cost = |points: &usize| self.panels(*points) as f64 * (*points as f64 + PANEL_COST);
        let some = POINTS.into_iter().filter(|points| *points <= most);
        some.min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(1)
    }

    /// Panels of points, with so many for a thread.
    pub(crate) fn panels(&self, per_thread: usize) -> usize {
        self.count().div_ceil(GROUPS * per_thread)
    }

    /// How many rows are sorted by cell together, as a power of two: rows that fit in the cache of a GPU, but enough for a cell to
    /// have some of them.
    pub(crate) fn window(&self) -> u32 {
        let cached = CACHED_VALUES / self.dims;
        let rows = cached.max(RUN * self.count()).max(grid::SPAN as usize);
        rows.next_power_of_two().trailing_zeros()
    }

    /// Cells of all windows of so many rows.
    pub(crate) fn bins(&self, rows: u64) -> usize {
        rows.div_ceil(1 << self.window()) as usize * self.count()
    }

    /// Columns of a tile of the matrix of moments, without weights.
    pub(crate) fn edge(&self) -> usize {
        grid::EDGES[usize::from(self.dims >= grid::EDGES[0])]
    }

    /// Names and values that a program is compiled with.
    pub(crate) fn defines(&self, variant: &Variant) -> Vec<String> {
        let squarings =
            |rung: &Rung| if let Rung::Square { times } = rung { u32::from(*times) } else { 0 };
        let rungs = self.rungs[variant.rungs.clone()].iter().enumerate();
        let squarings: u32 = rungs.map(|(i, rung)| squarings(rung) << (2 * i)).sum();
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

    /// Points as a block reads them, `[panel][column][group][place]`: whole quads of places, those left over infinite.
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

    /// Levels with a place for each point of a panel. Those left over are infinite, so that no row is nearest to them: of one
    /// without numbers levels are all there is.
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
        let parts = |rungs: &[Rung]| -> Vec<(usize, usize)> {
            let variants = spec(3, rungs.to_vec()).variants(Element::F64, false);
            variants.into_iter().map(|v| (v.rungs.start, v.rungs.end)).collect()
        };
        assert_eq!(parts(&ladder), [(0, 5), (5, 10)]);
        assert_eq!(parts(&ladder[..5]), [(0, 5)]);
        assert_eq!(parts(&[]), [(0, 0)]);
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
        let chosen = |count| {
            let spec = spec(count, three.clone());
            spec.per_thread(&spec.variants(Element::F32, false)[0])
        };
        // One panel of 104 places for 100 points, since a thread has registers for 13.
        assert_eq!([chosen(100), chosen(8), chosen(1)], [13, 1, 1]);
    }
}
