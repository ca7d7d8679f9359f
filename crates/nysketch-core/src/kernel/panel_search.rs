//! The comparison of rows with panels of landmarks: see [`search`](super::search).

use super::left::{Left, Possible};
use super::panels::{FAR, PANEL, Panels, Slack};
use super::row::Rows;
use super::search::Reach;
use super::tile::Nearest;
use super::tile_pass::{Squared, Term};
use pulp::Simd;

/// Number of columns after which sums are checked, if as many columns remain.
const CHECK: usize = 2 * STEP;
/// Number of columns that are added without any check.
const STEP: usize = 8;
/// Cost of starting a panel, in columns.
pub(super) const LOOK: usize = 48;

/// A search of the rows of a block through panels of V vectors.
pub(super) struct PanelSearch<'a, S: Simd, const V: usize, F: Reach> {
    pub simd: S,
    pub panels: &'a Panels,
    pub packed: &'a [[S::f32s; V]],
    /// `[level][panel]`, and the index of the first level of each category.
    pub tables: &'a [[S::f32s; V]],
    pub starts: &'a [usize],
    pub rows: Rows<'a>,
    /// The nearest landmarks so far.
    pub nearest: &'a mut Nearest,
    pub reach: &'a F,
    pub limits: &'a mut Vec<f32>,
    pub work: &'a mut usize,
}

impl<S: Simd, const V: usize, F: Reach> PanelSearch<'_, S, V, F> {
    /// The squared distance up to which landmarks matter for a row.
    #[inline(always)]
    fn limit(&self, row: usize) -> f32 {
        if F::FARTHER { self.limits[row] } else { self.nearest.distance[row] }
    }

    /// Compares a row with the panels around its nearest centre, and records the groups that
    /// remain. `squares` are its squared distances from all centres.
    #[inline(always)]
    pub fn begin<const P: usize>(
        &mut self,
        row: usize,
        squares: &[f32],
        slack: Slack,
        left: &mut Left,
    ) {
        let simd = self.simd;
        self.nearest.index.push(0);
        self.nearest.distance.push(f32::INFINITY);
        if F::FARTHER {
            self.nearest.second.push(f32::INFINITY);
            self.limits.push(f32::INFINITY);
        }
        let group = place_of_min(simd, squares).min(self.panels.groups() - 1);
        let first = self.panels.first(group);
        for some in first.chunks(P) {
            let at = std::array::from_fn(|p| some[p.min(some.len() - 1)]);
            self.look::<1, P>([row], at, some.len());
        }
        let limit = self.limit(row);
        let near = simd.splat_f32s(-slack.above(squares[group]));
        let shrink = simd.splat_f32s(slack.shrink());
        let underflow = simd.splat_f32s(slack.underflow());
        let (far, zero) = (simd.splat_f32s(FAR), simd.splat_f32s(0.0));
        let (farthest, inverse) = self.panels.bounds(group);
        let bounds = vectors::<S>(squares).iter().zip(vectors::<S>(farthest));
        for (at, ((square, farthest), inverse)) in bounds.zip(vectors::<S>(inverse)).enumerate() {
            let difference = simd.mul_add_f32s(simd.min_f32s(*square, far), shrink, near);
            let bound = simd.mul_f32s(simd.sub_f32s(difference, *farthest), *inverse);
            // NaN excludes nothing.
            let bound = simd.max_f32s(simd.sub_f32s(bound, underflow), zero);
            let bound = simd.mul_f32s(simd.mul_f32s(bound, bound), shrink);
            let excluded = simd.less_than_f32s(simd.splat_f32s(limit), bound);
            if has_any(simd, simd.not_m32s(excluded)) {
                let mut lanes = [0.0; PANEL];
                S::as_mut_simd_f32s(&mut lanes).0[0] = bound;
                left.add(row, at * S::F32_LANES, &lanes[..S::F32_LANES], limit);
            }
        }
    }

    /// Compares a group's panels with the rows for which the group remains.
    #[inline(always)]
    pub fn finish<const R: usize>(&mut self, group: usize, left: &[Possible]) {
        let (mut rows, mut count) = ([0; R], 0);
        for (i, possible) in left.iter().enumerate() {
            let row = possible.row as usize;
            rows[count] = row;
            count += usize::from(!(possible.square > self.limit(row)));
            if count == R || count > 0 && i + 1 == left.len() {
                // Unused slots repeat the last row, which changes nothing.
                let some = std::array::from_fn(|r| rows[r.min(count - 1)]);
                for panel in self.panels.of_group(group) {
                    self.look::<R, 1>(some, [panel], count);
                }
                count = 0;
            }
        }
    }

    /// Compares rows with panels, of which `count` pairs are distinct.
    #[inline(always)]
    fn look<const R: usize, const P: usize>(
        &mut self,
        rows: [usize; R],
        panels: [usize; P],
        count: usize,
    ) {
        let Some(sums) = self.measure(rows, panels, count) else { return };
        let (simd, never) = (self.simd, self.simd.splat_f32s(f32::INFINITY));
        for (row, sums) in rows.iter().zip(&sums) {
            if R > 1 && all_beyond(simd, sums, self.limit(*row)) {
                continue;
            }
            let (index, distance) =
                (&mut self.nearest.index[*row], &mut self.nearest.distance[*row]);
            let before = *distance;
            let min = simd.reduce_min_f32s(min_of(simd, sums));
            let value = simd.splat_f32s(min);
            let mut first = never;
            for (panel, sums) in panels.iter().zip(sums) {
                let places = &self.panels.places()[panel * PANEL..(panel + 1) * PANEL];
                for (place, sum) in vectors::<S>(places).iter().zip(sums) {
                    let here = simd.select_f32s(simd.equal_f32s(*sum, value), *place, never);
                    first = simd.min_f32s(first, here);
                }
            }
            let first = simd.reduce_min_f32s(first) as u32;
            let nearer = min < *distance || min == *distance && first < *index;
            if nearer {
                (*index, *distance) = (first, min);
            }
            if F::FARTHER {
                // A row, panel or landmark may occur twice, so the second smallest is taken over
                // all landmarks except the nearest.
                let (nearest, other) = (*index as f32, if nearer { before } else { f32::INFINITY });
                let second = self.second_of(nearest, panels, sums).min(other);
                self.nearest.second[*row] = self.nearest.second[*row].min(second);
                self.limits[*row] = self.reach.of(self.nearest.distance[*row]);
            }
        }
    }

    /// The smallest sum of panels, except that of one landmark.
    #[inline(always)]
    fn second_of<const P: usize>(
        &self,
        except: f32,
        panels: [usize; P],
        sums: &[[S::f32s; V]; P],
    ) -> f32 {
        let (simd, never) = (self.simd, self.simd.splat_f32s(f32::INFINITY));
        let (except, mut min) = (simd.splat_f32s(except), never);
        for (panel, sums) in panels.iter().zip(sums) {
            let places = &self.panels.places()[panel * PANEL..(panel + 1) * PANEL];
            for (place, sum) in vectors::<S>(places).iter().zip(sums) {
                let other = simd.select_f32s(simd.equal_f32s(*place, except), never, *sum);
                min = simd.min_f32s(min, other);
            }
        }
        simd.reduce_min_f32s(min)
    }

    /// Squared distances of rows from the landmarks of panels, `[row][panel]`, or `None` if all
    /// exceed the limit of their row.
    #[inline(always)]
    fn measure<const R: usize, const P: usize>(
        &mut self,
        rows: [usize; R],
        panels: [usize; P],
        count: usize,
    ) -> Option<[[[S::f32s; V]; P]; R]> {
        let simd = self.simd;
        let d = self.packed.len() / self.panels.panels();
        let mut sums = [[[simd.splat_f32s(0.0); V]; P]; R];
        let x: [_; R] = std::array::from_fn(|r| {
            self.rows.z[rows[r] * d..(rows[r] + 1) * d].as_chunks::<STEP>()
        });
        let z: [_; P] = std::array::from_fn(|p| {
            self.packed[panels[p] * d..(panels[p] + 1) * d].as_chunks::<STEP>()
        });
        for step in 0..d / STEP {
            let x: [&[f32; STEP]; R] = std::array::from_fn(|r| &x[r].0[step]);
            let z: [&[[S::f32s; V]; STEP]; P] = std::array::from_fn(|p| &z[p].0[step]);
            for k in 0..STEP {
                let x: [f32; R] = std::array::from_fn(|r| x[r][k]);
                let z: [[S::f32s; V]; P] = std::array::from_fn(|p| z[p][k]);
                add_column(simd, x, z, &mut sums);
            }
            let done = (step + 1) * STEP;
            if done.is_multiple_of(CHECK) && done + CHECK <= d && self.all_beyond(rows, &sums) {
                *self.work += count * (done + LOOK);
                return None;
            }
        }
        for k in 0..d % STEP {
            let x: [f32; R] = std::array::from_fn(|r| x[r].1[k]);
            let z: [[S::f32s; V]; P] = std::array::from_fn(|p| z[p].1[k]);
            add_column(simd, x, z, &mut sums);
        }
        *self.work += count * (d + LOOK);
        self.add_levels(rows, panels, &mut sums);
        (!self.all_beyond(rows, &sums)).then_some(sums)
    }

    /// Whether all sums exceed the limit of their row.
    #[inline(always)]
    fn all_beyond<const R: usize, const P: usize>(
        &self,
        rows: [usize; R],
        sums: &[[[S::f32s; V]; P]; R],
    ) -> bool {
        let mut within = false;
        for r in 0..R {
            within |= !all_beyond(self.simd, &sums[r], self.limit(rows[r]));
        }
        !within
    }

    /// Adds the contributions of the rows' levels, in the order of the categories.
    #[inline(always)]
    fn add_levels<const R: usize, const P: usize>(
        &self,
        rows: [usize; R],
        panels: [usize; P],
        sums: &mut [[[S::f32s; V]; P]; R],
    ) {
        for (c, start) in self.starts.iter().enumerate() {
            for r in 0..R {
                let level = start + self.rows.codes[rows[r] * self.starts.len() + c] as usize;
                for p in 0..P {
                    let entries = &self.tables[level * self.panels.panels() + panels[p]];
                    for v in 0..V {
                        sums[r][p][v] = self.simd.add_f32s(sums[r][p][v], entries[v]);
                    }
                }
            }
        }
    }
}

/// Adds the contribution of a column to the squared distances of rows from the landmarks of panels.
#[inline(always)]
fn add_column<S: Simd, const V: usize, const P: usize, const R: usize>(
    simd: S,
    x: [f32; R],
    z: [[S::f32s; V]; P],
    sums: &mut [[[S::f32s; V]; P]; R],
) {
    for r in 0..R {
        for p in 0..P {
            for v in 0..V {
                let difference = simd.sub_f32s(z[p][v], simd.splat_f32s(x[r]));
                sums[r][p][v] = Squared::add(simd, sums[r][p][v], difference);
            }
        }
    }
}

/// Views a slice of whole vectors as vectors.
#[inline(always)]
pub(super) fn vectors<S: Simd>(values: &[f32]) -> &[S::f32s] {
    S::as_simd_f32s(values).0
}

/// Index of the smallest value.
#[inline(always)]
fn place_of_min<S: Simd>(simd: S, values: &[f32]) -> usize {
    let mut min = simd.splat_f32s(f32::INFINITY);
    let mut min_at = simd.splat_f32s(0.0);
    for (at, value) in vectors::<S>(values).iter().enumerate() {
        let closer = simd.less_than_f32s(*value, min);
        min = simd.select_f32s(closer, *value, min);
        min_at = simd.select_f32s(closer, simd.splat_f32s(at as f32), min_at);
    }
    let (mut lanes, mut lanes_at) = ([f32::INFINITY; PANEL], [0.0; PANEL]);
    S::as_mut_simd_f32s(&mut lanes).0[0] = min;
    S::as_mut_simd_f32s(&mut lanes_at).0[0] = min_at;
    let mut first = 0;
    for lane in 1..S::F32_LANES {
        if lanes[lane] < lanes[first] {
            first = lane;
        }
    }
    lanes_at[first] as usize * S::F32_LANES + first
}

/// The smallest sum in each lane.
#[inline(always)]
fn min_of<S: Simd, const V: usize, const P: usize>(simd: S, sums: &[[S::f32s; V]; P]) -> S::f32s {
    let mut min = sums[0][0];
    for sum in sums.as_flattened() {
        min = simd.min_f32s(min, *sum);
    }
    min
}

/// Whether all sums are greater than a limit.
#[inline(always)]
fn all_beyond<S: Simd, const V: usize, const P: usize>(
    simd: S,
    sums: &[[S::f32s; V]; P],
    limit: f32,
) -> bool {
    let within = simd.less_than_or_equal_f32s(min_of(simd, sums), simd.splat_f32s(limit));
    !has_any(simd, within)
}

/// Whether any lane of a mask is true.
#[inline(always)]
fn has_any<S: Simd>(simd: S, mask: S::m32s) -> bool {
    // The index of the lane found depends on the instruction set.
    simd.first_true_m32s(mask) < S::F32_LANES
}
