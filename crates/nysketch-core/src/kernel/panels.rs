//! Panels of nearby landmarks, and the bounds that exclude panels from the search for a row's
//! nearest landmark.
//!
//! Landmarks are repeatedly split in two across their longest direction, down to panels of
//! [`PANEL`]. Panels form groups, each with a centre `c`. For a row x, its nearest centre `a`,
//! another centre `b` and any landmark z of b's group,
//!
//! ```text
//! 2 ‖b − a‖ ‖z − x‖  ≥  2 ⟨z − x, b − a⟩  =  (‖x − b‖² − ‖x − a‖²) − (‖z − b‖² − ‖z − a‖²)
//! ```
//!
//! The last bracket does not depend on rows. With its maximum over the group, `F_ab`,
//!
//! ```text
//! ‖z − x‖  ≥  (‖x − b‖² − ‖x − a‖² − F_ab) / 2‖b − a‖
//! ```
//!
//! so the distances of a row from all centres bound its distances from all landmarks. The bound is
//! the distance of x from a plane between two groups. It is tighter than a bound from balls around
//! centres: for 10,000 landmarks of covtype in groups of 32, balls leave 44 % to search and planes
//! 4.5 %; in groups of 16, planes leave 2 %.
//!
//! Squared distances in single precision are `S = ‖z − x‖² (1 + θ)` with `|θ| ≤ (d + 2) u` to first
//! order, where `u = 2⁻²⁴`, plus an underflow error of at most `d 2⁻¹⁵⁰`. The bounds allow for more
//! than twice these errors, `g = 2 (d + 10) u` and `d 2⁻¹⁴⁶`. `‖x − b‖²` is taken as `S (1 − g)`
//! and `‖x − a‖²` as `S (1 + g) + d 2⁻¹⁴⁶`, also in `F_ab`, and the factor `1 / 2‖b − a‖` is
//! reduced by a relative `2g`. The allowance exceeds the terms of higher order and the rounding of
//! these few operations, each at most `u` times a squared distance. The bound `L` is reduced by `√d
//! 2⁻⁷³` before it is squared. A group is excluded if `(1 − g) L²` is greater than an `S` that was
//! found; then the `S` of all its landmarks are strictly greater. Squared distances above [`FAR`]
//! count as [`FAR`].

use super::pack::{PackedRows, ROWS, Value};
use super::tile_pass::{Plain, Squared, Tile, distances};
use crate::numeric::points::Points;
use crate::numeric::simd::Instructions;
use pulp::{Simd, WithSimd};

/// Number of landmarks in a panel: the number of lanes of the widest vector.
pub const PANEL: usize = 16;
/// Largest number of groups. Bounds between all pairs take 8 MiB, and distances from all centres
/// take little time.
const MAX_GROUPS: usize = 1 << 10;
/// Number of panels with which a row is compared first.
const FIRST: usize = 4;
/// Number of points, and number of iterations, that determine the longest direction.
const DIRECTION_POINTS: usize = 512;
const DIRECTION_STEPS: usize = 4;
/// Upper limit of squared distances in bounds.
pub const FAR: f32 = (1u128 << 100) as f32;

/// Landmarks in panels, with bounds between groups of panels.
#[derive(Debug)]
pub struct Panels {
    dims: usize,
    /// Index of the landmark in each lane of each panel, a whole number; infinite in the padding of
    /// the last panel.
    places: Vec<f32>,
    /// `[panel][column][lane]`, padded with infinitely distant points.
    packed: Vec<f32>,
    /// Number of panels in a group.
    width: usize,
    groups: usize,
    /// Centres of the groups, in the layout of landmarks.
    centres: Vec<f32>,
    /// `[a][b]`: F_ab, rounded up, and 1 / 2‖b − a‖, rounded down. Lines are padded to whole
    /// panels.
    farthest: Vec<f32>,
    inverse: Vec<f32>,
    /// For each group, the panels with which a row near its centre is compared first.
    first: Vec<Vec<usize>>,
}

/// No landmark.
const NONE: u32 = u32::MAX;

/// Bounds on the error of distances in single precision.
#[derive(Debug, Clone, Copy)]
pub struct Slack {
    /// g.
    share: f64,
    /// Underflow of squared distances, and of distances.
    square: f64,
    distance: f64,
}

impl Slack {
    /// Bounds for distances over `dims` columns.
    pub fn new(dims: usize) -> Self {
        let d = dims as f64;
        Slack {
            share: 2.0 * (d + 10.0) * 2.0f64.powi(-24),
            square: d * 2.0f64.powi(-146),
            distance: d.sqrt() * 2.0f64.powi(-73),
        }
    }

    /// Factor that turns a computed squared distance into a lower bound.
    pub fn shrink(&self) -> f32 {
        (1.0 - self.share) as f32
    }

    /// An upper bound on the exact squared distance.
    pub fn above(&self, square: f32) -> f32 {
        up(f64::from(square) * (1.0 + self.share) + self.square)
    }

    /// Amount by which a bound on a distance is reduced.
    pub fn underflow(&self) -> f32 {
        up(self.distance)
    }
}

/// The smallest f32 that is not below `x`.
fn up(x: f64) -> f32 {
    let narrow = x as f32;
    if f64::from(narrow) < x { narrow.next_up() } else { narrow }
}

impl Panels {
    /// Arranges landmarks in panels.
    pub fn new(landmarks: &Points, instructions: Instructions) -> Self {
        Self::in_groups(landmarks, MAX_GROUPS, instructions)
    }

    /// Arranges landmarks in at most `max_groups` groups.
    pub fn in_groups(landmarks: &Points, max_groups: usize, instructions: Instructions) -> Self {
        let d = landmarks.dims();
        let mut index: Vec<u32> = (0..landmarks.len() as u32).collect();
        halve(landmarks, &mut index);
        index.resize(index.len().next_multiple_of(PANEL), NONE);
        let panels = index.len() / PANEL;
        let width = panels.div_ceil(max_groups).next_power_of_two();
        let groups = panels.div_ceil(width);
        let members: Vec<&[u32]> = index.chunks(width * PANEL).collect();
        let mut means = Vec::with_capacity(groups * d);
        for group in &members {
            let points: Vec<&[f32]> = group.iter().filter_map(|j| row(landmarks, *j)).collect();
            for k in 0..d {
                let sum = points.iter().map(|z| f64::from(z[k])).sum::<f64>();
                means.push((sum / points.len() as f64) as f32);
            }
        }
        let lines: Vec<Option<&[f32]>> = means.chunks_exact(d).map(Some).collect();
        let centres = pack(d, &lines);
        let mut this = Panels {
            dims: d,
            packed: pack(d, &index.iter().map(|j| row(landmarks, *j)).collect::<Vec<_>>()),
            width,
            groups,
            centres,
            farthest: Vec::new(),
            inverse: Vec::new(),
            first: Vec::new(),
            places: index.iter().map(|j| place(*j)).collect(),
        };
        this.bound(landmarks, &members, &means, instructions);
        this
    }

    /// Computes the bounds between groups.
    fn bound(
        &mut self,
        landmarks: &Points,
        members: &[&[u32]],
        means: &[f32],
        instructions: Instructions,
    ) {
        let (d, line) = (self.dims, self.line());
        let slack = Slack::new(d);
        self.farthest = vec![f32::NEG_INFINITY; self.groups * line];
        self.inverse = vec![1.0; self.groups * line];
        let (mut points, mut squares) = (Vec::new(), Vec::new());
        let mut rows = PackedRows::new(d);
        let (mut farthest, mut first_pairs) = (vec![0.0; self.groups], Vec::new());
        for (b, group) in members.iter().enumerate() {
            points.clear();
            group.iter().for_each(|j| points.extend_from_slice(row(landmarks, *j).unwrap_or(&[])));
            points.extend_from_slice(&means[b * d..(b + 1) * d]);
            squares.resize(points.len() / d * line, 0.0);
            rows.pack(&points);
            let (centres, rows) = (&self.centres[..], &rows);
            instructions.dispatch(FromCentres { centres, rows, line, squares: &mut squares });
            let (of_points, of_centre) = squares.split_at(squares.len() - line);
            farthest.fill(f64::NEG_INFINITY);
            for squares in of_points.chunks_exact(line) {
                let above = f64::from(squares[b]) * (1.0 + slack.share) + slack.square;
                for (farthest, square) in farthest.iter_mut().zip(squares) {
                    let below = f64::from(square.min(FAR)) * (1.0 - slack.share);
                    *farthest = f64::max(*farthest, above - below);
                }
            }
            for a in 0..self.groups {
                let above = f64::from(of_centre[a]) * (1.0 + slack.share) + slack.square;
                self.farthest[a * line + b] = up(farthest[a]);
                self.inverse[a * line + b] = ((0.5 - slack.share) / above.sqrt()) as f32;
            }
            // The groups nearest to this centre are searched first, so they need no bound.
            let count = FIRST.div_ceil(self.width).min(self.groups);
            let mut near: Vec<NearGroup> = (0..self.groups)
                .map(|a| NearGroup { other: a != b, square: of_centre[a].to_bits(), group: a })
                .collect();
            near.select_nth_unstable(count - 1);
            near.truncate(count);
            near.sort_unstable();
            for a in &near {
                first_pairs.push((b, a.group));
            }
            self.first.push(near.iter().flat_map(|a| self.of_group(a.group)).collect());
        }
        for (a, b) in first_pairs {
            self.farthest[a * line + b] = f32::NEG_INFINITY;
        }
    }

    /// Number of entries in a line of bounds.
    pub fn line(&self) -> usize {
        self.groups.next_multiple_of(PANEL)
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Number of panels.
    pub fn panels(&self) -> usize {
        self.places.len() / PANEL
    }

    /// The panels of a group.
    pub fn of_group(&self, group: usize) -> std::ops::Range<usize> {
        group * self.width..((group + 1) * self.width).min(self.panels())
    }

    /// Panels with which a row near the centre of this group is compared first.
    pub fn first(&self, group: usize) -> &[usize] {
        &self.first[group]
    }

    /// F_ab and 1 / 2‖b − a‖ for all groups b.
    pub fn bounds(&self, a: usize) -> (&[f32], &[f32]) {
        let span = a * self.line()..(a + 1) * self.line();
        (&self.farthest[span.clone()], &self.inverse[span])
    }

    /// `[panel][column][lane]`.
    pub fn packed(&self) -> &[f32] {
        &self.packed
    }

    /// Centres of the groups, in the same layout.
    pub fn centres(&self) -> &[f32] {
        &self.centres
    }

    /// Indices of the landmarks in the order of panels and lanes, as whole numbers. An f32 is exact
    /// up to 2²⁴.
    pub fn places(&self) -> &[f32] {
        &self.places
    }
}

/// A group in the order of the distance of its centre from another group's centre. The other group
/// itself comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NearGroup {
    other: bool,
    /// The bits of the squared distance, which are in the order of the distances.
    square: u32,
    group: usize,
}

/// Computes the squared distances of rows from all centres, `[row][centre]`.
struct FromCentres<'a> {
    centres: &'a [f32],
    rows: &'a PackedRows,
    line: usize,
    squares: &'a mut [f32],
}

impl WithSimd for FromCentres<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut lines = self.squares.chunks_mut(ROWS * self.line);
        for (numbers, out) in self.rows.tiles().zip(&mut lines) {
            from_centres(simd, self.centres, numbers, out);
        }
        let rest = lines.flat_map(|lines| lines.chunks_exact_mut(self.line));
        for (numbers, out) in self.rows.singles().zip(rest) {
            from_centres(simd, self.centres, numbers, out);
        }
    }
}

/// Computes the squared distances of R rows from all centres, `[row][centre]`.
#[inline(always)]
pub fn from_centres<S: Simd, const R: usize>(
    simd: S,
    centres: &[f32],
    numbers: &[[Value; R]],
    out: &mut [f32],
) {
    match S::F32_LANES {
        16 => from_vectors::<S, R, 1>(simd, centres, numbers, out),
        8 => from_vectors::<S, R, 2>(simd, centres, numbers, out),
        4 => from_vectors::<S, R, 4>(simd, centres, numbers, out),
        _ => from_vectors::<S, R, PANEL>(simd, centres, numbers, out),
    }
}

#[inline(always)]
fn from_vectors<S: Simd, const R: usize, const V: usize>(
    simd: S,
    centres: &[f32],
    numbers: &[[Value; R]],
    out: &mut [f32],
) {
    let (centres, _) = S::as_simd_f32s(centres);
    let (centres, _) = centres.as_chunks::<V>();
    let (out, _) = S::as_mut_simd_f32s(out);
    let (out, _) = out.as_chunks_mut::<V>();
    let line = out.len() / R;
    let tile = Tile { numbers, present: &[], codes: &[] };
    for (at, panel) in centres.chunks_exact(numbers.len()).enumerate() {
        let squares = distances::<S, Squared, Plain, R, V>(simd, tile, panel);
        for r in 0..R {
            out[r * line + at] = squares[r];
        }
    }
}

fn row(landmarks: &Points, j: u32) -> Option<&[f32]> {
    (j != NONE).then(|| landmarks.row(j as usize))
}

/// The index of a landmark as a number, infinite for padding.
fn place(j: u32) -> f32 {
    if j == NONE { f32::INFINITY } else { j as f32 }
}

/// `[panel][column][lane]` of points. `None` is infinitely distant.
fn pack(dims: usize, points: &[Option<&[f32]>]) -> Vec<f32> {
    let mut packed = vec![f32::INFINITY; points.len().next_multiple_of(PANEL) * dims];
    for (panel, points) in packed.chunks_exact_mut(PANEL * dims).zip(points.chunks(PANEL)) {
        for (lane, point) in points.iter().enumerate() {
            for (k, value) in point.unwrap_or(&[]).iter().enumerate() {
                panel[k * PANEL + lane] = *value;
            }
        }
    }
    packed
}

/// Sorts landmarks so that the landmarks of each half, each quarter and so on, down to panels, are
/// near each other.
fn halve(landmarks: &Points, indices: &mut [u32]) {
    let panels = indices.len().div_ceil(PANEL);
    if panels < 2 {
        return;
    }
    let direction = longest_direction(landmarks, indices);
    let mut order = Vec::with_capacity(indices.len());
    for j in indices.iter() {
        let z = landmarks.row(*j as usize).iter();
        let along: f64 = z.zip(&direction).map(|(z, v)| f64::from(*z) * v).sum();
        order.push((along, *j));
    }
    let middle = panels / 2 * PANEL;
    order.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    indices.iter_mut().zip(order).for_each(|(j, (_, of))| *j = of);
    let (left, right) = indices.split_at_mut(middle);
    halve(landmarks, left);
    halve(landmarks, right);
}

/// The approximate direction of largest variance of some landmarks, by power iteration.
fn longest_direction(landmarks: &Points, indices: &[u32]) -> Vec<f64> {
    let d = landmarks.dims();
    let step = indices.len().div_ceil(DIRECTION_POINTS);
    let points: Vec<&[f32]> =
        indices.iter().step_by(step).map(|j| landmarks.row(*j as usize)).collect();
    let mut mean = vec![0.0; d];
    for z in &points {
        mean.iter_mut().zip(*z).for_each(|(m, z)| *m += f64::from(*z) / points.len() as f64);
    }
    let differences: Vec<Vec<f64>> = points
        .iter()
        .map(|z| z.iter().zip(&mean).map(|(z, m)| f64::from(*z) - m).collect())
        .collect();
    let farthest =
        differences.iter().max_by(|a, b| squared_length(a).total_cmp(&squared_length(b)));
    let mut direction = farthest.cloned().unwrap_or_else(|| vec![0.0; d]);
    for _ in 0..DIRECTION_STEPS {
        let size = squared_length(&direction).sqrt();
        if !(size > 0.0) {
            break;
        }
        let mut next = vec![0.0; d];
        for z in &differences {
            let along = z.iter().zip(&direction).map(|(z, v)| z * v).sum::<f64>() / size;
            next.iter_mut().zip(z).for_each(|(next, z)| *next += along * z);
        }
        direction = next;
    }
    direction
}

fn squared_length(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum()
}
