//! The table of sums: their names, shapes, units and bounds.

use crate::numeric::fixed::{COORDINATE_LIMIT, FEATURE_ONE, MAX_WEIGHT};
use crate::plan::collect::Collect;

/// A sum that a sketch may keep:
///
/// | sum | shape | summed over the rows | unit |
/// |---|---|---|---|
/// | `rows` | 1 | weights | 1 |
/// | `skipped` | 1 | 1 for each row skipped as invalid | 1 |
/// | `features` | bandwidths × m | κ(x̃_j, x), or cosines then sines | 2⁻²³ |
/// | `coverage` | bandwidths | κ(x, nearest landmark)² | 2⁻²³ |
/// | `cell_rows` | m | weights of the rows nearest to x̃_j | 1 |
/// | `cell_sum` | m × d | their coordinates | 2^e_k |
/// | `cell_square` | m × d | their squared coordinates | 2^2e_k |
/// | `cell_absent` | m × d | weights of the rows with a missing value | 1 |
/// | `cell_levels` | m × levels | weights of the rows with the level | 1 |
/// | `complete` | 1 | weights of the complete rows | 1 |
/// | `sum` | d | coordinates | 2^e_k |
/// | `outer` | d(d+1)/2 | products of coordinates k ≥ l, row by row | 2^(e_k+e_l) |
/// | `person_rows` | 1 | largest number of rows of one person, for each pass | 1 |
///
/// ```
/// use nysketch_core::Sum;
/// assert_eq!(Sum::CellRows.name(), "cell_rows");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is a row of the table above")]
pub enum Sum {
    Rows,
    Skipped,
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
    PersonRows,
}

/// Largest number of integers in a sketch: 1 GiB of 128-bit integers.
pub(crate) const MAX_SUMS: f64 = (1u64 << 26) as f64;

/// Number of different sums.
pub(crate) const SUMS: usize = 13;

/// The unit of the integers of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 1.
    One,
    /// 2⁻²³.
    Feature,
    /// 2^e_k, where k is the entry's column.
    Coordinate,
    /// 2^2e_k, where k is the entry's column.
    Square,
    /// 2^(e_k+e_l), where the entries form a packed lower triangle of columns.
    Product,
}

/// The rows that contribute to an entry of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Rows that this sum alone counts.
    Themselves,
    /// All rows.
    All,
    /// Complete rows.
    Complete,
    /// The rows of one cell, which has this many entries.
    Cell(usize),
    /// The rows of one cell with a value in the column. A cell has this many entries.
    Present(usize),
}

/// One line of the table, for a given plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The sum.
    pub sum: Sum,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// The unit of its integers.
    pub unit: Unit,
    /// The rows that contribute to an entry.
    pub over: Over,
    /// Smallest and largest term of a row of weight one.
    pub term: (i128, i128),
}

/// The properties of a plan that determine its set of sums.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Number of numeric columns d.
    pub dims: usize,
    /// Number of levels of all categories.
    pub levels: usize,
    /// Whether the plan allows missing values.
    pub partial: bool,
    /// Number of landmarks or frequencies m.
    pub points: usize,
    /// Whether the points are landmarks.
    pub landmarks: bool,
    /// Number of bandwidths.
    pub bandwidths: usize,
    /// The sums that are kept.
    pub collect: Collect,
    /// Whether the plan protects people.
    pub people: bool,
}

impl Measured {
    /// Number of features per bandwidth: m, or 2m for cosines and sines.
    pub fn features(&self) -> usize {
        if self.landmarks { self.points } else { 2 * self.points }
    }

    /// Number of integers in all sums.
    pub fn sums(&self) -> f64 {
        let specs = self.specs();
        specs.iter().map(|spec| spec.shape.iter().map(|n| *n as f64).product::<f64>()).sum()
    }

    /// Largest number of landmarks or frequencies within `MAX_SUMS`.
    pub fn most_points(&self) -> usize {
        // The number of integers is linear in the number of points.
        let [without, with_one] = [0, 1].map(|points| Measured { points, ..*self }.sums());
        ((MAX_SUMS - without) / (with_one - without)).max(0.0) as usize
    }

    /// The lines of the table for the kept sums. Counts of rows come before the sums whose bounds
    /// depend on them.
    pub fn specs(&self) -> Vec<Spec> {
        let Measured { dims: d, levels, points: m, landmarks, bandwidths, collect, .. } = *self;
        let partial = self.partial;
        let (one, q) = (i128::from(FEATURE_ONE), i128::from(COORDINATE_LIMIT));
        let mut specs = vec![
            Spec::of_itself(Sum::Rows, MAX_WEIGHT),
            Spec::of_itself(Sum::Skipped, i128::from(u64::MAX)),
        ];
        if partial {
            specs.push(Spec::new(Sum::Complete, vec![1], Unit::One, Over::All, (0, 1)));
        }
        if collect.kernel {
            let low = if landmarks { 0 } else { -one };
            let shape = vec![bandwidths, self.features()];
            specs.push(Spec::new(Sum::Features, shape, Unit::Feature, Over::Complete, (low, one)));
            if landmarks {
                let shape = vec![bandwidths];
                specs.push(Spec::new(
                    Sum::Coverage,
                    shape,
                    Unit::Feature,
                    Over::Complete,
                    (0, one),
                ));
            }
        }
        if collect.cells {
            let (in_cell, present) = (Over::Cell(d), Over::Present(d));
            specs.push(Spec::new(Sum::CellRows, vec![m], Unit::One, Over::All, (0, 1)));
            if partial {
                specs.push(Spec::new(Sum::CellAbsent, vec![m, d], Unit::One, in_cell, (0, 1)));
            }
            specs.push(Spec::new(Sum::CellSum, vec![m, d], Unit::Coordinate, present, (-q, q)));
            specs.push(Spec::new(Sum::CellSquare, vec![m, d], Unit::Square, present, (0, q * q)));
            if levels > 0 {
                let in_cell = Over::Cell(levels);
                specs.push(Spec::new(Sum::CellLevels, vec![m, levels], Unit::One, in_cell, (0, 1)));
            }
        }
        if collect.moments {
            let pairs = vec![d * (d + 1) / 2];
            specs.push(Spec::new(Sum::Sum, vec![d], Unit::Coordinate, Over::Complete, (-q, q)));
            specs.push(Spec::new(
                Sum::Outer,
                pairs,
                Unit::Product,
                Over::Complete,
                (-q * q, q * q),
            ));
        }
        if self.people {
            specs.push(Spec::of_itself(Sum::PersonRows, MAX_WEIGHT));
        }
        specs
    }
}

impl Sum {
    /// Every sum with its name in files.
    pub const NAMES: [(Sum, &'static str); SUMS] = [
        (Sum::Rows, "rows"),
        (Sum::Skipped, "skipped"),
        (Sum::Features, "features"),
        (Sum::Coverage, "coverage"),
        (Sum::CellRows, "cell_rows"),
        (Sum::CellSum, "cell_sum"),
        (Sum::CellSquare, "cell_square"),
        (Sum::CellAbsent, "cell_absent"),
        (Sum::CellLevels, "cell_levels"),
        (Sum::Complete, "complete"),
        (Sum::Sum, "sum"),
        (Sum::Outer, "outer"),
        (Sum::PersonRows, "person_rows"),
    ];

    /// Name in files.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

impl Spec {
    fn new(sum: Sum, shape: Vec<usize>, unit: Unit, over: Over, term: (i128, i128)) -> Self {
        Spec { sum, shape, unit, over, term }
    }

    /// A number that is bounded by itself, and not by other sums.
    fn of_itself(sum: Sum, max: i128) -> Self {
        Spec::new(sum, vec![1], Unit::One, Over::Themselves, (0, max))
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.shape.iter().product()
    }

    /// Smallest and largest value of entry `i`, given the weight of the rows that contribute to it.
    /// Squares on the diagonal of a triangle are not negative.
    pub fn bounds(&self, i: usize, weight: i128) -> (i128, i128) {
        let (mut low, high) = self.term;
        if self.unit == Unit::Product && is_diagonal(i) {
            low = 0;
        }
        match self.over {
            Over::Themselves => (low, high),
            Over::All | Over::Complete | Over::Cell(_) | Over::Present(_) => {
                (low * weight, high * weight)
            }
        }
    }
}

/// Whether entry i of a packed lower triangle is on the diagonal, that is, whether i + 1 is a
/// triangular number.
fn is_diagonal(i: usize) -> bool {
    let root = (8 * (i + 1) + 1).isqrt();
    root * root == 8 * (i + 1) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagonal_entries_of_a_packed_triangle() {
        let mut at = 0;
        for k in 0..50 {
            for l in 0..=k {
                assert_eq!(is_diagonal(at), k == l, "{k} {l}");
                at += 1;
            }
        }
    }

    #[test]
    fn most_points_are_those_within_the_limit() {
        let collect = Collect { kernel: true, cells: true, moments: true };
        let small = Measured {
            dims: 1,
            levels: 0,
            partial: false,
            points: 0,
            landmarks: true,
            bandwidths: 3,
            collect,
            people: false,
        };
        let mixed = Measured { dims: 20, levels: 7, partial: true, ..small };
        let wide = Measured { dims: 4096, ..small };
        for plan in [small, mixed, wide] {
            let max = plan.most_points();
            assert!(Measured { points: max, ..plan }.sums() <= MAX_SUMS);
            assert!(Measured { points: max + 1, ..plan }.sums() > MAX_SUMS);
        }
    }

    #[test]
    fn names_stand_at_the_place_of_their_sum() {
        for (i, (sum, _)) in Sum::NAMES.iter().enumerate() {
            assert_eq!(*sum as usize, i);
        }
    }
}
