//! Exact moments of cells: Σq and Σq² of the rows nearest to each landmark.
//!
//! A quantised coordinate |q| ≤ 2⁴⁴, a whole number stored in a double, is split as `q = h·2²² + l`
//! with whole h and l, |h| ≤ 2²² and |l| ≤ 2²¹. The whole numbers q, h², hl and l² are below 2⁴⁵.
//! Adding [`WHOLE`] moves them to the low bits of a double, whose bits are summed as a 64-bit
//! integer for up to 2¹⁷ rows. Then the changed sums are folded into the 128-bit sums of the
//! sketch.
//!
//! Only cells with rows since the last fold use memory, and their number is limited so that memory
//! stays below 32 MiB. With more cells than that, each cell has few rows, and the search for them
//! takes much longer than folding.

use crate::numeric::simd::Instructions;
use crate::plan::frame::{PADDING, WHOLE};
use crate::sums::{Sum, Sums};
use pulp::{Simd, WithSimd};

/// Bits of the low part of a coordinate.
pub const LOW_BITS: u32 = 22;
/// Number of rows after which the sums must be folded.
const MAX_ROWS: usize = 1 << 17;
/// Number of sums per coordinate: Σq, Σh², Σhl, Σl².
const KINDS: usize = 4;

/// Largest number of 64-bit sums: 32 MiB.
const MAX_SUMS: usize = 1 << 22;
/// The slot of a cell without rows since the last fold.
const NO_SLOT: u32 = u32::MAX;

/// 64-bit sums of the rows since the last fold.
#[derive(Debug, Clone)]
pub struct CellMoments {
    instructions: Instructions,
    dims: usize,
    /// Slot of each cell.
    slots: Vec<u32>,
    /// Cells that have a slot, the number of rows in each, and the largest number of slots.
    touched: Vec<u32>,
    rows: Vec<u32>,
    max_slots: usize,
    /// `[slot][kind][column]`, with columns padded to whole chunks. Each row has added the bits of
    /// [`WHOLE`] as well.
    sums: Vec<u64>,
    /// Number of rows in all cells.
    all_rows: usize,
}

impl CellMoments {
    /// Sums without rows.
    pub fn new(cells: usize, dims: usize, instructions: Instructions) -> Self {
        Self::within(MAX_SUMS, cells, dims, instructions)
    }

    /// Sums without rows in a given amount of memory, but at least one slot.
    fn within(sums: usize, cells: usize, dims: usize, instructions: Instructions) -> Self {
        let each = KINDS * dims.next_multiple_of(PADDING);
        let max_slots = (sums / each).clamp(1, cells);
        CellMoments {
            instructions,
            dims,
            slots: vec![NO_SLOT; cells],
            touched: Vec::new(),
            rows: Vec::new(),
            max_slots,
            sums: vec![0; max_slots * each],
            all_rows: 0,
        }
    }

    /// Adds rows of one weight: row i of `q` to cell `cells[i]`. `q` has [`PADDING`] more values
    /// after the last row.
    pub fn add(&mut self, q: &[f64], cells: &[u32], weight: i128, totals: &mut Sums) {
        if weight != 1 {
            return self.add_weighted(q, cells, weight, totals);
        }
        if self.all_rows + cells.len() > MAX_ROWS {
            self.fold(totals);
        }
        assert!(cells.len() <= MAX_ROWS && q.len() >= cells.len() * self.dims + PADDING);
        let mut start = 0;
        for (i, &cell) in cells.iter().enumerate() {
            if self.slots[cell as usize] == NO_SLOT {
                if self.touched.len() == self.max_slots {
                    self.add_placed(&q[start * self.dims..], &cells[start..i]);
                    self.fold(totals);
                    start = i;
                }
                self.slots[cell as usize] = self.touched.len() as u32;
                self.touched.push(cell);
                self.rows.push(0);
            }
            self.rows[self.slots[cell as usize] as usize] += 1;
        }
        self.add_placed(&q[start * self.dims..], &cells[start..]);
    }

    /// Adds rows whose cells have a slot.
    fn add_placed(&mut self, q: &[f64], cells: &[u32]) {
        self.all_rows += cells.len();
        let columns = self.dims.next_multiple_of(PADDING);
        let Self { dims, slots, sums, .. } = self;
        self.instructions.dispatch(Rows { dims: *dims, columns, q, cells, slots, sums });
    }

    /// Adds weighted rows directly to the 128-bit sums, because a cell gets few rows of one weight.
    fn add_weighted(&self, q: &[f64], cells: &[u32], weight: i128, totals: &mut Sums) {
        let d = self.dims;
        let [rows, sums, squares] = totals.each_mut([Sum::CellRows, Sum::CellSum, Sum::CellSquare]);
        for (q, &cell) in q.chunks_exact(d).zip(cells) {
            let cell = cell as usize;
            rows[cell] += weight;
            let span = cell * d..(cell + 1) * d;
            for ((sum, square), &q) in sums[span.clone()].iter_mut().zip(&mut squares[span]).zip(q)
            {
                let q = q as i64;
                *sum += i128::from(q) * weight;
                *square += i128::from(q) * i128::from(q) * weight;
            }
        }
    }

    /// Adds the sums to those of the sketch and clears them.
    pub fn fold(&mut self, totals: &mut Sums) {
        let d = self.dims;
        let columns = d.next_multiple_of(PADDING);
        let [cell_rows, cell_sum, cell_square] =
            totals.each_mut([Sum::CellRows, Sum::CellSum, Sum::CellSquare]);
        let touched = self.touched.drain(..).zip(self.rows.drain(..));
        for ((cell, rows), sums) in touched.zip(self.sums.chunks_exact_mut(KINDS * columns)) {
            let cell = cell as usize;
            self.slots[cell] = NO_SLOT;
            cell_rows[cell] += i128::from(rows);
            let extra = u64::from(rows).wrapping_mul(WHOLE.to_bits());
            for j in 0..d {
                let [q, hh, hl, ll] = std::array::from_fn(|kind| {
                    i128::from(sums[kind * columns + j].wrapping_sub(extra) as i64)
                });
                cell_sum[cell * d + j] += q;
                cell_square[cell * d + j] += (hh << (2 * LOW_BITS)) + (hl << (LOW_BITS + 1)) + ll;
            }
            sums.fill(0);
        }
        self.all_rows = 0;
    }
}

struct Rows<'a> {
    dims: usize,
    columns: usize,
    q: &'a [f64],
    cells: &'a [u32],
    slots: &'a [u32],
    sums: &'a mut [u64],
}

impl WithSimd for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let whole = simd.splat_f64s(WHOLE);
        for (i, &cell) in self.cells.iter().enumerate() {
            let (row, _) = S::as_simd_f64s(&self.q[i * self.dims..][..self.columns]);
            let all = KINDS * self.columns;
            let slot = self.slots[cell as usize] as usize;
            let (sums, _) = S::as_mut_simd_u64s(&mut self.sums[slot * all..][..all]);
            let (sum, sums) = sums.split_at_mut(row.len());
            let (hh, sums) = sums.split_at_mut(row.len());
            let (hl, ll) = sums.split_at_mut(row.len());
            let sums = sum.iter_mut().zip(hh).zip(hl).zip(ll);
            for (&q, (((sum, hh), hl), ll)) in row.iter().zip(sums) {
                let (h, l) = split(simd, q);
                add(simd, sum, simd.add_f64s(q, whole));
                add(simd, hh, simd.mul_add_f64s(h, h, whole));
                add(simd, hl, simd.mul_add_f64s(h, l, whole));
                add(simd, ll, simd.mul_add_f64s(l, l, whole));
            }
        }
    }
}

/// Adds the bits of a double.
#[inline(always)]
fn add<S: Simd>(simd: S, sum: &mut S::u64s, value: S::f64s) {
    *sum = simd.add_u64s(*sum, simd.transmute_u64s_f64s(value));
}

/// Splits `q = h·2²² + l` into whole numbers with |l| ≤ 2²¹.
#[inline(always)]
pub fn split<S: Simd>(simd: S, q: S::f64s) -> (S::f64s, S::f64s) {
    let whole = simd.splat_f64s(WHOLE);
    let unit = f64::from(1u32 << LOW_BITS);
    let h = simd.sub_f64s(simd.mul_add_f64s(q, simd.splat_f64s(1.0 / unit), whole), whole);
    (h, simd.mul_add_f64s(h, simd.splat_f64s(-unit), q))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::fixed::COORDINATE_LIMIT;
    use crate::numeric::random::Hashes;
    use crate::planning::{PlanParams, make_plan};
    use crate::rows::Table;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// The sums equal those of 128-bit arithmetic, up to the largest coordinates.
        #[test]
        fn matches_integer_products(
            d in 1usize..20,
            n in prop::sample::select(vec![1usize, 2, 64, 256]),
            times in prop::sample::select(vec![1usize, 3, 600]),
            seed in any::<u64>(),
            extreme in any::<bool>(),
        ) {
            let mut hashes = Hashes(seed);
            let mut q = Vec::new();
            for _ in 0..n * d {
                let bits = hashes.draw();
                let coordinate = if !extreme {
                    (bits as i64) >> (19 + bits % 30)
                } else if bits & 1 == 0 {
                    COORDINATE_LIMIT
                } else {
                    -COORDINATE_LIMIT
                };
                q.push(coordinate.clamp(-COORDINATE_LIMIT, COORDINATE_LIMIT) as f64);
            }
            let cells: Vec<u32> = (0..n).map(|_| (hashes.draw() % 3) as u32).collect();
            let values = (0..20 * d).map(|_| (hashes.draw() % 1000) as f64).collect();
            let table = Table::unnamed(d, values).unwrap();
            let plan = make_plan(&table, &PlanParams::default().check().unwrap(), &()).unwrap().plan;
            let mut expected = Sums::zero(&plan);
            for (row, &cell) in q.chunks_exact(d).zip(&cells) {
                expected[Sum::CellRows][cell as usize] += times as i128;
                for (j, &q) in row.iter().enumerate() {
                    let at = cell as usize * d + j;
                    expected[Sum::CellSum][at] += q as i128 * times as i128;
                    expected[Sum::CellSquare][at] += (q as i128).pow(2) * times as i128;
                }
            }
            q.resize(n * d + PADDING, f64::NAN);
            let sizes = [MAX_SUMS, 0, 2 * KINDS * d.next_multiple_of(PADDING)];
            let cells_of_plan = plan.features.points().len();
            for set in Instructions::all() {
                for size in sizes {
                    let mut cell_moments = CellMoments::within(size, cells_of_plan, d, set);
                    let mut sums = Sums::zero(&plan);
                    for _ in 0..times {
                        cell_moments.add(&q, &cells, 1, &mut sums);
                    }
                    cell_moments.fold(&mut sums);
                    prop_assert_eq!(&sums, &expected);
                }
            }
        }
    }
}
