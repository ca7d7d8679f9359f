//! Landmarks in panels of near ones, and what proves that a row's nearest landmark is not in some of them.
//!
//! Landmarks are split in two across their longest direction, again and again, down to panels of
//! [`PANEL`]. Panels make groups, each with a centre `c`. For a row x, the centre `a` nearest to it, another centre `b`
//! and any landmark z of that group,
//!
//! ```text
//! 2 ‖b − a‖ ‖z − x‖  ≥  2 ⟨z − x, b − a⟩  =  (‖x − b‖² − ‖x − a‖²) − (‖z − b‖² − ‖z − a‖²)
//! ```
//!
//! The last bracket is known before there are rows. With its maximum over the group, `F_ab`,
//!
//! ```text
//! ‖z − x‖  ≥  (‖x − b‖² − ‖x − a‖² − F_ab) / 2‖b − a‖
//! ```
//!
//! so that the distances of a row from all centres bound its distances from all landmarks. This is the distance
//! of x from a plane between two groups. Balls around centres bound less: of 10,000 landmarks of covtype in groups of 32, balls
//! leave 44 % to look at, planes 4.5 %; in groups of 16, planes leave 2 %.
//!
//! Distances in single precision are `S = ‖z − x‖² (1 + θ)` with `|θ| ≤ (d + 2) u` to first order, `u = 2⁻²⁴`, but for
//! what underflows, at most `d 2⁻¹⁵⁰`. Bounds allow for more than twice of that, `g = 2 (d + 10) u` and `d 2⁻¹⁴⁶`:
//! `‖x − b‖²` counts `S (1 − g)`, `‖x − a‖²` counts `S (1 + g) + d 2⁻¹⁴⁶`, likewise in `F_ab`, and the factor
//! `1 / 2‖b − a‖` is lowered by `2g` of itself. What is beyond the first order and the rounding of these few operations,
//! each `u` of a squared distance at most, is less than what is allowed for. The bound `L` is lowered by `√d 2⁻⁷³` before it is squared, and
//! a group is left out where `(1 − g) L²` is greater than an `S` that was found: then the `S` of all its landmarks are
//! greater, too, not equal. Beyond [`FAR`] a squared distance proves no more than that it is as large.

use super::pack::{PackedRows, ROWS, Value};
use super::tile::{Plain, Squared, Tile, distances};
use crate::numeric::points::Points;
use crate::numeric::simd::Instructions;
use pulp::{Simd, WithSimd};

/// Landmarks of a panel: as many as the widest vector has lanes.
pub const PANEL: usize = 16;
/// Most groups: bounds between all of them take 8 MiB, and distances from all centres little time.
const MAX_GROUPS: usize = 1 << 10;
/// Panels that a row is compared with first.
const FIRST: usize = 4;
/// Points that the longest direction is found from, and steps to it.
const DIRECTION_POINTS: usize = 512;
const DIRECTION_STEPS: usize = 4;
/// Squared distances count no more than this.
pub const FAR: f32 = (1u128 << 100) as f32;

/// Landmarks in panels, with bounds between groups of panels.
#[derive(Debug)]
pub struct Panels {
    dims: usize,
    /// Which landmark each lane of each panel holds, a whole number; infinite where the last panel is filled up.
    places: Vec<f32>,
    /// `[panel][column][lane]`, filled up with infinitely distant points.
    packed: Vec<f32>,
    /// Panels of a group.
    width: usize,
    groups: usize,
    /// Centres of the groups, laid out like landmarks.
    centres: Vec<f32>,
    /// `[a][b]`: F_ab, rounded up, and 1 / 2‖b − a‖, rounded down; lines filled up to whole panels.
    farthest: Vec<f32>,
    inverse: Vec<f32>,
    /// For each group the panels that a row near its centre is compared with first.
    first: Vec<Vec<usize>>,
}

/// No landmark.
const NONE: u32 = u32::MAX;

/// How much distances in single precision may be off.
#[derive(Debug, Clone, Copy)]
pub struct Slack {
    /// g.
    share: f64,
    /// What underflows of squared distances, and of distances.
    square: f64,
    distance: f64,
}

impl Slack {
    /// For distances of so many columns.
    pub fn new(dims: usize) -> Self {
        let d = dims as f64;
        Slack {
            share: 2.0 * (d + 10.0) * 2.0f64.powi(-24),
            square: d * 2.0f64.powi(-146),
            distance: d.sqrt() * 2.0f64.powi(-73),
        }
    }

    /// Factor that makes a squared distance smaller than it can be.
    pub fn shrink(&self) -> f32 {
        (1.0 - self.share) as f32
    }

    /// No less than the exact squared distance.
    pub fn above(&self, square: f32) -> f32 {
        up(f64::from(square) * (1.0 + self.share) + self.square)
    }

    /// What a bound on a distance must exceed, and be lowered by.
    pub fn least(&self) -> f32 {
        up(self.distance)
    }
}

/// The least single that is no less.
fn up(x: f64) -> f32 {
    let narrow = x as f32;
    if f64::from(narrow) < x { narrow.next_up() } else { narrow }
}

impl Panels {
    /// Arranges landmarks.
    pub fn new(landmarks: &Points, instructions: Instructions) -> Self {
        Self::in_groups(landmarks, MAX_GROUPS, instructions)
    }

    /// The same with at most so many groups.
    pub fn in_groups(landmarks: &Points, most: usize, instructions: Instructions) -> Self {
        let d = landmarks.dims();
        let mut index: Vec<u32> = (0..landmarks.len() as u32).collect();
        halve(landmarks, &mut index);
        index.resize(index.len().next_multiple_of(PANEL), NONE);
        let panels = index.len() / PANEL;
        let width = panels.div_ceil(most).next_power_of_two();
        let groups = panels.div_ceil(width);
        let members: Vec<&[u32]> = index.chunks(width * PANEL).collect();
        let mut means = Vec::with_capacity(groups * d);
        for group in &members {
            let group: Vec<&u32> = group.iter().filter(|j| **j != NONE).collect();
            let value = |j: &u32, k: usize| f64::from(landmarks.row(*j as usize)[k]);
            let mean = |k| group.iter().map(|j| value(j, k)).sum::<f64>() / group.len() as f64;
            means.extend((0..d).map(|k| mean(k) as f32));
        }
        let lines: Vec<Option<&[f32]>> = means.chunks_exact(d).map(Some).collect();
        let centres = pack(d, &lines);
        let place = |j: &u32| if *j == NONE { f32::INFINITY } else { *j as f32 };
        let mut this = Panels {
            dims: d,
            packed: pack(d, &index.iter().map(|j| row(landmarks, *j)).collect::<Vec<_>>()),
            width,
            groups,
            centres,
            farthest: Vec::new(),
            inverse: Vec::new(),
            first: Vec::new(),
            places: index.iter().map(place).collect(),
        };
        this.bound(landmarks, &members, &means, instructions);
        this
    }

    /// Finds what bounds there are between groups.
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
                let own = f64::from(squares[b]) * (1.0 + slack.share) + slack.square;
                for (farthest, square) in farthest.iter_mut().zip(squares) {
                    let least = f64::from(square.min(FAR)) * (1.0 - slack.share);
                    *farthest = f64::max(*farthest, own - least);
                }
            }
            for a in 0..self.groups {
                let most = f64::from(of_centre[a]) * (1.0 + slack.share) + slack.square;
                self.farthest[a * line + b] = up(farthest[a]);
                self.inverse[a * line + b] = ((0.5 - slack.share) / most.sqrt()) as f32;
            }
            // Those nearest to this centre are looked at first, so they need no bound.
            let count = FIRST.div_ceil(self.width).min(self.groups);
            let mut near: Vec<u32> = (0..self.groups as u32).collect();
            let key = |a: &u32| (*a as usize != b, of_centre[*a as usize].to_bits(), *a);
            near.select_nth_unstable_by_key(count - 1, key);
            near.truncate(count);
            near.sort_unstable_by_key(key);
            for a in &near {
                first_pairs.push((b, *a as usize));
            }
            self.first.push(near.into_iter().flat_map(|a| self.of_group(a as usize)).collect());
        }
        for (a, b) in first_pairs {
            self.farthest[a * line + b] = f32::NEG_INFINITY;
        }
    }

    /// Entries of a line of bounds.
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

    /// Panels that a row near the centre of this group is compared with first.
    pub fn first(&self, group: usize) -> &[usize] {
        &self.first[group]
    }

    /// F and 1 / 2‖b − a‖ of all groups b.
    pub fn bounds(&self, a: usize) -> (&[f32], &[f32]) {
        let span = a * self.line()..(a + 1) * self.line();
        (&self.farthest[span.clone()], &self.inverse[span])
    }

    /// `[panel][column][lane]`.
    pub fn packed(&self) -> &[f32] {
        &self.packed
    }

    /// Centres of the groups, laid out likewise.
    pub fn centres(&self) -> &[f32] {
        &self.centres
    }

    /// Landmarks in the order of panels and lanes, as whole numbers, which singles hold up to 2²⁴.
    pub fn places(&self) -> &[f32] {
        &self.places
    }
}

/// Squared distances of rows from all centres, `[row][centre]`.
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

/// Squared distances of R rows from all centres, `[row][centre]`.
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

/// `[panel][column][lane]` of points; there is none infinitely far away.
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

/// Sorts landmarks so that every half, quarter and so on, down to panels, are near one another.
fn halve(landmarks: &Points, some: &mut [u32]) {
    let panels = some.len().div_ceil(PANEL);
    if panels < 2 {
        return;
    }
    let direction = longest_direction(landmarks, some);
    let along = |j: u32| -> f64 {
        let z = landmarks.row(j as usize).iter();
        z.zip(&direction).map(|(z, v)| f64::from(*z) * v).sum()
    };
    let mut order: Vec<(f64, u32)> = some.iter().map(|j| (along(*j), *j)).collect();
    let middle = panels / 2 * PANEL;
    order.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    some.iter_mut().zip(order).for_each(|(j, (_, of))| *j = of);
    let (left, right) = some.split_at_mut(middle);
    halve(landmarks, left);
    halve(landmarks, right);
}

/// About the direction in which some landmarks differ most.
fn longest_direction(landmarks: &Points, some: &[u32]) -> Vec<f64> {
    let d = landmarks.dims();
    let step = some.len().div_ceil(DIRECTION_POINTS);
    let some: Vec<&[f32]> = some.iter().step_by(step).map(|j| landmarks.row(*j as usize)).collect();
    let mut mean = vec![0.0; d];
    for z in &some {
        mean.iter_mut().zip(*z).for_each(|(m, z)| *m += f64::from(*z) / some.len() as f64);
    }
    let difference = |z: &&[f32], k: usize| f64::from(z[k]) - mean[k];
    let length = |z: &&&[f32]| (0..d).map(|k| difference(z, k).powi(2)).sum::<f64>();
    let farthest = some.iter().max_by(|a, b| length(a).total_cmp(&length(b)));
    let mut direction: Vec<f64> =
        (0..d).map(|k| farthest.map_or(0.0, |z| difference(z, k))).collect();
    for _ in 0..DIRECTION_STEPS {
        let size = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
        if !(size > 0.0) {
            break;
        }
        let mut next = vec![0.0; d];
        for z in &some {
            let along = (0..d).map(|k| difference(z, k) * direction[k]).sum::<f64>() / size;
            (0..d).for_each(|k| next[k] += along * difference(z, k));
        }
        direction = next;
    }
    direction
}
