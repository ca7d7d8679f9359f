//! Exact Σq and Σqqᵀ of quantised coordinates, by floating-point matrix arithmetic.
//!
//! Coordinates are split as in [`cell_moments`](super::cell_moments), `q = h·2²² + l`. Products of
//! the parts are whole numbers up to 2⁴⁴, and sums of 256 products stay within 2⁵³, where doubles
//! are exact. The result therefore does not depend on the order of operations.

use super::cell_moments::{LOW_BITS, split};
use crate::numeric::simd::Instructions;
use crate::plan::frame::PADDING;
use pulp::{Simd, WithSimd};

/// Number of rows after which the partial sums must be folded into integers.
pub const MAX_ROWS: usize = 256;

/// Scratch memory for one block. Rows are padded to whole chunks with arbitrary values.
#[derive(Debug, Clone)]
pub struct Gram {
    instructions: Instructions,
    dims: usize,
    /// `[row][column]`: the high and low parts of the coordinates.
    high: Vec<f64>,
    low: Vec<f64>,
    /// `[column]`: Σq.
    sum: Vec<f64>,
    /// `[column][column]`: Σhhᵀ, Σ(hlᵀ + lhᵀ), Σllᵀ. Only the chunks of the lower triangle are
    /// used.
    hh: Vec<f64>,
    hl: Vec<f64>,
    ll: Vec<f64>,
}

impl Gram {
    /// Scratch memory for `dims` columns.
    pub fn new(dims: usize, instructions: Instructions) -> Self {
        let columns = dims.next_multiple_of(PADDING);
        let (rows, square) = (vec![0.0; MAX_ROWS * columns], vec![0.0; dims * columns]);
        Gram {
            instructions,
            dims,
            high: rows.clone(),
            low: rows,
            sum: vec![0.0; columns],
            hh: square.clone(),
            hl: square.clone(),
            ll: square,
        }
    }

    /// Adds `rows` rows of one weight, at most [`MAX_ROWS`], and their products. `q` has
    /// [`PADDING`] more values after the last row.
    pub fn add(
        &mut self,
        q: &[f64],
        rows: usize,
        weight: i128,
        sum: &mut [i128],
        outer: &mut [i128],
    ) {
        let (d, columns) = (self.dims, self.sum.len());
        assert!(rows <= MAX_ROWS, "more rows than doubles are exact for");
        assert!(q.len() >= rows * d + PADDING, "a row is read in whole chunks");
        for sums in [&mut self.sum, &mut self.hh, &mut self.hl, &mut self.ll] {
            sums.fill(0.0);
        }
        let instructions = self.instructions;
        instructions.dispatch(Multiply { q, rows, gram: self });
        for (sum, &s) in sum.iter_mut().zip(&self.sum) {
            *sum += s as i128 * weight;
        }
        let mut at = 0;
        for i in 0..d {
            for j in 0..=i {
                let entry = i * columns + j;
                let [hh, hl, ll] = [&self.hh, &self.hl, &self.ll].map(|sums| sums[entry] as i64);
                let product = (i128::from(hh) << (2 * LOW_BITS))
                    + (i128::from(hl) << LOW_BITS)
                    + i128::from(ll);
                outer[at] += product * weight;
                at += 1;
            }
        }
    }
}

struct Multiply<'a> {
    q: &'a [f64],
    rows: usize,
    gram: &'a mut Gram,
}

impl WithSimd for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Gram { dims: d, high, low, sum, hh, hl, ll, .. } = self.gram;
        let columns = sum.len();
        let used = self.rows * columns;
        let (high, low) = (&mut high[..used], &mut low[..used]);
        let (sum, _) = S::as_mut_simd_f64s(sum);
        let halves = high.chunks_exact_mut(columns).zip(low.chunks_exact_mut(columns));
        for (i, (high, low)) in halves.enumerate() {
            let (q, _) = S::as_simd_f64s(&self.q[i * *d..][..columns]);
            let (high, _) = S::as_mut_simd_f64s(high);
            let (low, _) = S::as_mut_simd_f64s(low);
            for (((q, s), h), l) in q.iter().zip(&mut *sum).zip(high).zip(low) {
                *s = simd.add_f64s(*s, *q);
                (*h, *l) = split(simd, *q);
            }
        }
        // Processes four rows at a time, so that a sum is loaded and stored once for four products.
        let whole = self.rows / 4 * 4 * columns;
        let rows =
            high[..whole].chunks_exact(4 * columns).zip(low[..whole].chunks_exact(4 * columns));
        for (h, l) in rows {
            add_rows::<S, 4>(simd, *d, h, l, hh, hl, ll);
        }
        let rows = high[whole..].chunks_exact(columns).zip(low[whole..].chunks_exact(columns));
        for (h, l) in rows {
            add_rows::<S, 1>(simd, *d, h, l, hh, hl, ll);
        }
    }
}

/// Adds the products of R rows to the lower triangles.
#[inline(always)]
fn add_rows<S: Simd, const R: usize>(
    simd: S,
    d: usize,
    high: &[f64],
    low: &[f64],
    hh: &mut [f64],
    hl: &mut [f64],
    ll: &mut [f64],
) {
    let columns = high.len() / R;
    let high: [&[f64]; R] = std::array::from_fn(|r| &high[r * columns..][..columns]);
    let low: [&[f64]; R] = std::array::from_fn(|r| &low[r * columns..][..columns]);
    for i in 0..d {
        let hi = high.map(|row| simd.splat_f64s(row[i]));
        let li = low.map(|row| simd.splat_f64s(row[i]));
        let vectors = i / S::F64_LANES + 1;
        let high = high.map(|row| &S::as_simd_f64s(row).0[..vectors]);
        let low = low.map(|row| &S::as_simd_f64s(row).0[..vectors]);
        let line = i * columns..(i + 1) * columns;
        let (hh, _) = S::as_mut_simd_f64s(&mut hh[line.clone()]);
        let (hl, _) = S::as_mut_simd_f64s(&mut hl[line.clone()]);
        let (ll, _) = S::as_mut_simd_f64s(&mut ll[line]);
        let (hh, hl, ll) = (&mut hh[..vectors], &mut hl[..vectors], &mut ll[..vectors]);
        for v in 0..vectors {
            let (mut a, mut b, mut c) = (hh[v], hl[v], ll[v]);
            for r in 0..R {
                let (h, l) = (high[r][v], low[r][v]);
                a = simd.mul_add_f64s(hi[r], h, a);
                b = simd.mul_add_f64s(hi[r], l, b);
                b = simd.mul_add_f64s(li[r], h, b);
                c = simd.mul_add_f64s(li[r], l, c);
            }
            (hh[v], hl[v], ll[v]) = (a, b, c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::fixed::COORDINATE_LIMIT;
    use crate::numeric::random::Hashes;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// The sums equal those of 128-bit products, up to the largest coordinates and blocks.
        #[test]
        fn matches_integer_products(
            d in 1usize..20,
            n in prop::sample::select(vec![1usize, 2, 3, 5, 7, 64, 255, 256]),
            seed in any::<u64>(),
            extreme in any::<bool>(),
        ) {
            let mut hashes = Hashes(seed);
            let mut q = Vec::new();
            for _ in 0..n * d {
                let bits = hashes.draw();
                q.push(if !extreme {
                    (bits as i64) >> (19 + bits % 30)
                } else if bits & 1 == 0 {
                    COORDINATE_LIMIT
                } else {
                    -COORDINATE_LIMIT + (bits as i64 >> 1 & 1)
                } as f64);
            }
            q.resize(n * d + PADDING, f64::NAN);
            let mut expected = vec![5i128; d * (d + 1) / 2];
            let mut expected_sum = vec![3i128; d];
            for row in q[..n * d].chunks_exact(d) {
                let mut at = 0;
                expected_sum.iter_mut().zip(row).for_each(|(s, q)| *s += *q as i128);
                for i in 0..d {
                    for j in 0..=i {
                        expected[at] += row[i] as i128 * row[j] as i128;
                        at += 1;
                    }
                }
            }
            for set in Instructions::all() {
                let mut outer = vec![5i128; expected.len()];
                let mut sum = vec![3i128; d];
                Gram::new(d, set).add(&q, n, 1, &mut sum, &mut outer);
                prop_assert_eq!((&sum, &outer), (&expected_sum, &expected));
            }
        }
    }
}
