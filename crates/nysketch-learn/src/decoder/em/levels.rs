//! Categories in EM: a component has a multinomial distribution over the levels of each category,
//! in addition to its Gaussian.
//!
//! ```text
//! log p(row) = log α + log N(x; μ, Γ) + Σ_j log θ_j(level of category j)
//! ```
//!
//! The shares θ are those of the points for which a component is responsible, plus one pseudo-point
//! with the shares of all points. No share is therefore zero if the level occurs at all.

/// Minimum share of a level among all points.
const LEAST: f64 = 1e-9;

/// The levels of the categories of some points.
#[derive(Debug, Clone, Default)]
pub struct Levels {
    /// Number of levels of each category.
    lens: Vec<usize>,
    /// The level of each point in each category, as an index into the levels of all categories.
    at: Vec<u32>,
    /// Shares of the levels among all points.
    overall: Vec<f64>,
    /// Weight of the pseudo-point.
    one: f64,
}

impl Levels {
    /// Creates the levels from the `codes` of points with these weights, `points × categories`.
    pub fn new(lens: &[usize], codes: &[u32], weights: &[f64]) -> Self {
        let mut starts = vec![0];
        lens.iter().for_each(|len| starts.push(starts[starts.len() - 1] + *len as u32));
        let at = codes.iter().enumerate().map(|(i, code)| starts[i % lens.len()] + code).collect();
        let mut levels = Levels { lens: lens.to_vec(), at, overall: Vec::new(), one: 0.0 };
        let mut sums = vec![0.0; levels.total()];
        weights.iter().enumerate().for_each(|(i, w)| levels.add(&mut sums, i, *w));
        levels.overall =
            levels.each_to_one(sums.iter().map(|s| s.max(LEAST * sums.iter().sum::<f64>())));
        let mass: f64 = weights.iter().sum();
        levels.one = weights.iter().map(|w| w * w).sum::<f64>() / mass.max(f64::MIN_POSITIVE);
        levels
    }

    /// Returns the levels of the same points in another order.
    pub fn ordered(&self, order: &[usize]) -> Self {
        let at = order.iter().flat_map(|i| self.of(*i)).copied().collect();
        Levels { at, ..self.clone() }
    }

    /// Returns whether there are no categories.
    pub fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }

    /// Returns the total number of levels of all categories.
    pub fn total(&self) -> usize {
        self.lens.iter().sum()
    }

    /// Returns the levels of point `i`.
    fn of(&self, i: usize) -> &[u32] {
        &self.at[i * self.lens.len()..(i + 1) * self.lens.len()]
    }

    /// Returns `log θ` of each level.
    pub fn logs(&self, shares: &[f64]) -> Vec<f64> {
        shares.iter().map(|share| share.max(f64::MIN_POSITIVE).ln()).collect()
    }

    /// Returns the contribution of the levels of point `i` to its log density.
    #[inline]
    pub fn log(&self, logs: &[f64], i: usize) -> f64 {
        self.of(i).iter().map(|level| logs[*level as usize]).sum()
    }

    /// Adds the levels of point `i` with this weight.
    #[inline]
    pub fn add(&self, sums: &mut [f64], i: usize, weight: f64) {
        for level in self.of(i) {
            sums[*level as usize] += weight;
        }
    }

    /// Returns the shares of the points that were added, plus the pseudo-point.
    pub fn shares(&self, sums: &[f64]) -> Vec<f64> {
        let sums = sums.iter().zip(&self.overall);
        self.each_to_one(sums.map(|(sum, overall)| sum + self.one * overall))
    }

    /// Normalises the numbers of each category to sum one.
    fn each_to_one(&self, numbers: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut shares: Vec<f64> = numbers.collect();
        let mut rest = &mut shares[..];
        for len in &self.lens {
            let (category, others) = rest.split_at_mut(*len);
            let total: f64 = category.iter().sum();
            category.iter_mut().for_each(|x| *x /= total.max(f64::MIN_POSITIVE));
            rest = others;
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_points_and_one_more() {
        let levels = Levels::new(&[2, 3], &[0, 2, 1, 0, 1, 0, 1, 0], &[1.0; 4]);
        let mut sums = vec![0.0; levels.total()];
        (1..4).for_each(|i| levels.add(&mut sums, i, 1.0));
        let shares = levels.shares(&sums);
        // The pseudo-point has the shares of all points: a quarter at the first level, three
        // quarters at the second.
        assert!((shares[0] - 0.25 / 4.0).abs() < 1e-8 && (shares[1] - 3.75 / 4.0).abs() < 1e-8);
        assert!((shares[2..].iter().sum::<f64>() - 1.0).abs() < 1e-12 && shares[3] > 0.0);
        let logs = levels.logs(&shares);
        assert!((levels.log(&logs, 0) - (shares[0] * shares[4]).ln()).abs() < 1e-12);
    }
}
