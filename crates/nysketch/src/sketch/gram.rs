//! Σ q qᵀ of quantised coordinates, exactly, by floating-point matrix arithmetic.
//!
//! A coordinate |q| ≤ 2⁴⁴ is split as `q = h·2²² + l` with |h| ≤ 2²² and 0 ≤ l < 2²². Products of
//! the halves are integers up to 2⁴⁴, and sums of 256 of them stay within 2⁵³, where doubles are
//! exact: the result does not depend on the order of operations.

use crate::kernel::tile::{Instructions, Work};

/// Bits of the low half.
const LOW_BITS: u32 = 22;
/// Rows after which the partial sums must be folded into integers.
pub const MAX_ROWS: usize = 256;

/// Scratch memory for one block.
#[derive(Debug, Clone)]
pub struct Gram {
    instructions: Instructions,
    dims: usize,
    high: Vec<f64>,
    low: Vec<f64>,
    /// `d × d` each: Σhhᵀ, Σ(hlᵀ + lhᵀ), Σllᵀ; the lower triangle is used.
    hh: Vec<f64>,
    hl: Vec<f64>,
    ll: Vec<f64>,
}

impl Gram {
    /// Scratch for `dims` columns.
    pub fn new(dims: usize, instructions: Instructions) -> Self {
        let square = vec![0.0; dims * dims];
        Gram {
            instructions,
            dims,
            high: Vec::new(),
            low: Vec::new(),
            hh: square.clone(),
            hl: square.clone(),
            ll: square,
        }
    }

    /// Adds the products of at most [`MAX_ROWS`] rows to the packed lower triangle `outer`.
    pub fn add(&mut self, q: &[i64], outer: &mut [i128]) {
        let d = self.dims;
        assert!(q.len() <= MAX_ROWS * d, "more rows than doubles are exact for");
        self.high.clear();
        self.low.clear();
        self.high.extend(q.iter().map(|x| (x >> LOW_BITS) as f64));
        self.low.extend(q.iter().map(|x| (x & ((1 << LOW_BITS) - 1)) as f64));
        for sums in [&mut self.hh, &mut self.hl, &mut self.ll] {
            sums.fill(0.0);
        }
        let instructions = self.instructions;
        instructions.run(Multiply(self));
        let mut at = 0;
        for i in 0..d {
            for j in 0..=i {
                let part = |sums: &[f64]| i128::from(sums[i * d + j] as i64);
                outer[at] += (part(&self.hh) << (2 * LOW_BITS))
                    + (part(&self.hl) << LOW_BITS)
                    + part(&self.ll);
                at += 1;
            }
        }
    }
}

struct Multiply<'a>(&'a mut Gram);

impl Work for Multiply<'_> {
    #[inline(always)]
    fn work(self) {
        let Gram { dims, high, low, hh, hl, ll, .. } = self.0;
        let d = *dims;
        // Four rows at a time, so that a sum is loaded and stored once for four products.
        let whole = high.len() / (4 * d) * 4 * d;
        for (h, l) in high[..whole].chunks_exact(4 * d).zip(low[..whole].chunks_exact(4 * d)) {
            add_rows::<4>(d, h, l, hh, hl, ll);
        }
        for (h, l) in high[whole..].chunks_exact(d).zip(low[whole..].chunks_exact(d)) {
            add_rows::<1>(d, h, l, hh, hl, ll);
        }
    }
}

/// Adds the products of R rows to the lower triangles.
#[inline(always)]
fn add_rows<const R: usize>(
    d: usize,
    h: &[f64],
    l: &[f64],
    hh: &mut [f64],
    hl: &mut [f64],
    ll: &mut [f64],
) {
    for i in 0..d {
        // Lengths and factors outside the inner loop, which then vectorises over j.
        let n = i + 1;
        let (hh, hl, ll) = (&mut hh[i * d..][..n], &mut hl[i * d..][..n], &mut ll[i * d..][..n]);
        let h: [&[f64]; R] = std::array::from_fn(|r| &h[r * d..][..n]);
        let l: [&[f64]; R] = std::array::from_fn(|r| &l[r * d..][..n]);
        let (hi, li): ([f64; R], [f64; R]) = (h.map(|h| h[i]), l.map(|l| l[i]));
        for j in 0..n {
            let (mut a, mut b, mut c) = (hh[j], hl[j], ll[j]);
            for r in 0..R {
                a += hi[r] * h[r][j];
                b += hi[r] * l[r][j] + li[r] * h[r][j];
                c += li[r] * l[r][j];
            }
            hh[j] = a;
            hl[j] = b;
            ll[j] = c;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::COORDINATE_LIMIT;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// The same integers as 128-bit products, up to the largest coordinates and blocks.
        #[test]
        fn matches_integer_products(
            d in 1usize..9,
            n in prop::sample::select(vec![1usize, 2, 3, 5, 7, 64, 255, 256]),
            seed in any::<u64>(),
            extreme in any::<bool>(),
        ) {
            let mut state = seed;
            let q: Vec<i64> = (0..n * d).map(|_| {
                state = crate::sample::mix(state);
                if extreme {
                    if state & 1 == 0 { COORDINATE_LIMIT } else { -COORDINATE_LIMIT + (state as i64 >> 1 & 1) }
                } else {
                    (state as i64) >> (19 + state % 30)
                }
            }).collect();
            let mut expected = vec![5i128; d * (d + 1) / 2];
            for row in q.chunks_exact(d) {
                let mut at = 0;
                for i in 0..d {
                    for j in 0..=i {
                        expected[at] += i128::from(row[i]) * i128::from(row[j]);
                        at += 1;
                    }
                }
            }
            for set in Instructions::all() {
                let mut outer = vec![5i128; expected.len()];
                Gram::new(d, set).add(&q, &mut outer);
                prop_assert_eq!(&outer, &expected);
            }
        }
    }
}
