//! Changes in the shares of levels and of missing values, each with a test.
//!
//! The levels of a category are compared by χ², with levels of fewer than 5 expected rows in either
//! sample pooled. Shares of missing values are compared by their difference in standard errors.

use crate::statistics::pooled::{Pooled, is_small};
use crate::statistics::tail::chi_squared_beyond;
use nysketch_core::recipe::Recipe;
use nysketch_core::sketch::Sketch;
use nysketch_core::sketch::aspects::Aspect;
use serde::Serialize;

/// The change of a category's levels.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CategoryChange {
    /// Name of the category.
    pub column: String,
    /// p-value of the test; `None` if there are too few rows or they are weighted.
    pub p_value: Option<f64>,
    /// The false-discovery rate at which the change is reported, as for columns.
    pub q_value: Option<f64>,
    /// Its levels, largest change first, without levels that have no rows.
    pub levels: Vec<LevelChange>,
}

/// The change of a level's share.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LevelChange {
    /// Text of the level.
    pub level: String,
    /// Shares of the rows of A and of B.
    pub shares: [f64; 2],
    /// Difference of the shares, B minus A, in standard errors.
    pub z: f64,
}

/// The change in the share of a column's missing values.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MissingChange {
    /// Name of the column in the table.
    pub column: String,
    /// Shares of the rows of A and of B.
    pub shares: [f64; 2],
    /// Difference of the shares, B minus A, in standard errors.
    pub z: f64,
    /// p-value of the test; `None` if there are too few rows or they are weighted.
    pub p_value: Option<f64>,
    /// The false-discovery rate at which the change is reported, as for columns.
    pub q_value: Option<f64>,
}

impl CategoryChange {
    fn p_value_or_infinity(&self) -> f64 {
        self.p_value.unwrap_or(f64::INFINITY)
    }
}

/// All shares of two sketches.
#[derive(Debug, Default)]
pub struct Shares {
    /// Numbers of rows of A and B with each level of each category, and with and without a value in
    /// each column with missing values.
    pub counts: Vec<Vec<[f64; 2]>>,
    pub categories: Vec<CategoryChange>,
    pub missing: Vec<MissingChange>,
}

impl Shares {
    /// Compares the shares of two sketches of one plan, largest change first.
    pub fn of(a: &Sketch, b: &Sketch) -> Self {
        let plan = a.plan();
        let totals = [a, b].map(|s| s.rows() as f64);
        let (rows_a, rows_b) = (a.level_rows(), b.level_rows());
        let mut shares = Shares::default();
        let levels = plan.categories().iter().zip(rows_a.iter().zip(&rows_b));
        for (category, (of_a, of_b)) in levels {
            let counts: Vec<[f64; 2]> =
                of_a.iter().zip(of_b).map(|(a, b)| [*a as f64, *b as f64]).collect();
            let mut levels = Vec::new();
            for (code, counts) in counts.iter().enumerate().filter(|(_, n)| n[0] + n[1] > 0.0) {
                let level = category.level(code).to_string();
                let (shares, z) = difference(*counts, totals);
                levels.push(LevelChange { level, shares, z });
            }
            levels.sort_by(|p, q| q.z.abs().total_cmp(&p.z.abs()));
            let (column, p_value) = (category.name.clone(), chi_squared(&counts, totals));
            shares.counts.push(counts);
            shares.categories.push(CategoryChange { column, p_value, q_value: None, levels });
        }
        let (of_a, of_b) = (a.missing_shares(), b.missing_shares());
        for j in compared_columns(&plan.recipe).filter(|j| of_a[*j] + of_b[*j] > 0.0) {
            let missing = [of_a[j] * totals[0], of_b[j] * totals[1]];
            let present = [totals[0] - missing[0], totals[1] - missing[1]];
            let column = plan.recipe.numbers[j].input.clone();
            let p_value = chi_squared(&[missing, present], totals);
            let (of_missing, z) = difference(missing, totals);
            shares.counts.push(vec![missing, present]);
            let change = MissingChange { column, shares: of_missing, z, p_value, q_value: None };
            shares.missing.push(change);
        }
        // The noise of weights is unknown.
        if plan.weighting.is_some() {
            shares.categories.iter_mut().for_each(|c| c.p_value = None);
            shares.missing.iter_mut().for_each(|m| m.p_value = None);
        }
        let categories = &mut shares.categories;
        categories.sort_by(|p, q| p.p_value_or_infinity().total_cmp(&q.p_value_or_infinity()));
        shares.missing.sort_by(|p, q| q.z.abs().total_cmp(&p.z.abs()));
        shares
    }

    fn p_values(&self) -> impl Iterator<Item = f64> {
        let categories = self.categories.iter().filter_map(|c| c.p_value);
        categories.chain(self.missing.iter().filter_map(|m| m.p_value))
    }

    /// The smallest p-value, multiplied by the number of tests (Bonferroni correction).
    pub fn min_p_value(&self) -> Option<f64> {
        let min = self.p_values().min_by(f64::total_cmp)?;
        Some((min * self.p_values().count() as f64).min(1.0))
    }
}

/// Columns whose missing values are compared. Each column of the table appears once.
fn compared_columns(recipe: &Recipe) -> impl Iterator<Item = usize> {
    Aspect::all(recipe).into_iter().filter_map(|aspect| match aspect {
        Aspect::Missing(j) => Some(j),
        _ => None,
    })
}

/// Shares of A and B, and their difference in standard errors.
pub(super) fn difference(counts: [f64; 2], totals: [f64; 2]) -> ([f64; 2], f64) {
    let [na, nb] = totals.map(|n| n.max(1.0));
    let shares = [counts[0] / na, counts[1] / nb];
    let share = (counts[0] + counts[1]) / (na + nb);
    let error = (share * (1.0 - share) * (1.0 / na + 1.0 / nb)).sqrt();
    let z = if error > 0.0 { (shares[1] - shares[0]) / error } else { 0.0 };
    (shares, z)
}

/// The two-sided p-value of `few` successes in `n` trials with success probability `share`: twice
/// the tail probability.
fn binomial(few: f64, n: f64, share: f64) -> f64 {
    // Sums the tail from the observed count away from the mean, because its terms decrease quickly.
    let (mut at, step) = if few <= n * share { (few, -1.0) } else { (few, 1.0) };
    let mut total = 0.0;
    while (0.0..=n).contains(&at) {
        let log = libm::lgamma(n + 1.0) - libm::lgamma(at + 1.0) - libm::lgamma(n - at + 1.0)
            + at * share.ln()
            + (n - at) * (1.0 - share).ln();
        let term = log.exp();
        total += term;
        if term < 1e-18 * total || total == 0.0 && (at - few).abs() > 1e4 {
            break;
        }
        at += step;
    }
    (2.0 * total).min(1.0)
}

/// The p-value of counts in A and B, with small ones pooled; `None` if fewer than two groups
/// remain.
fn chi_squared(counts: &[[f64; 2]], totals: [f64; 2]) -> Option<f64> {
    let share = totals[0] / (totals[0] + totals[1]);
    let Pooled { mut groups, rest } = Pooled::new(counts, totals);
    match (rest, &mut groups[..]) {
        (Some([a, b]), [_]) if is_small(a + b, share) => return Some(binomial(a, a + b, share)),
        (Some([a, b]), [_, _, ..]) if is_small(a + b, share) => {
            let smallest = groups.iter_mut().min_by(|p, q| (p[0] + p[1]).total_cmp(&(q[0] + q[1])));
            smallest.into_iter().for_each(|g| *g = [g[0] + a, g[1] + b]);
        }
        (rest, _) => groups.extend(rest),
    }
    if groups.len() < 2 {
        return None;
    }
    let all = groups.iter().fold([0.0; 2], |sum, g| [sum[0] + g[0], sum[1] + g[1]]);
    let share = all[0] / (all[0] + all[1]);
    let terms = groups.iter().map(|[a, b]| {
        let n = a + b;
        (a - n * share).powi(2) / (n * share * (1.0 - share))
    });
    let statistic: f64 = terms.sum();
    Some(chi_squared_beyond(statistic, groups.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nysketch_core::numeric::random::below;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// 2,000 trials on equal distributions: at level 5 %, the standard deviation of the rate of
    /// false alarms is 0.5 %.
    #[test]
    fn false_alarms_are_as_rare_as_they_should_be() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut alarms = 0;
        for _ in 0..2000 {
            let mut counts = [[0.0; 2]; 5];
            for row in 0..500 {
                // Levels of 50, 25, 12, 9 and 4 %.
                let at = below(100, &mut rng);
                let level = [50, 75, 87, 96, 100].iter().position(|end| at < *end).unwrap_or(4);
                counts[level][usize::from(row >= 300)] += 1.0;
            }
            alarms += usize::from(chi_squared(&counts, [300.0, 200.0]).unwrap() <= 0.05);
        }
        assert!((70..=130).contains(&alarms), "{alarms} of 2,000");
    }

    #[test]
    fn small_counts_are_taken_together() {
        assert_eq!(chi_squared(&[[3.0, 2.0], [2.0, 4.0]], [1000.0, 1000.0]), None);
        let p = chi_squared(&[[300.0, 200.0], [690.0, 790.0], [2.0, 1.0], [8.0, 9.0]], [1000.0; 2]);
        assert!(p.unwrap() < 1e-5);
        // No values are missing among 50,000 rows, and nearly all are missing among 400 others: few
        // rows were expected there, and many are present.
        let p = chi_squared(&[[0.0, 360.0], [50_000.0, 40.0]], [50_000.0, 400.0]);
        assert!(p.unwrap() < 1e-9, "{p:?}");
        let p = chi_squared(&[[0.0, 400.0], [50_000.0, 0.0]], [50_000.0, 400.0]);
        assert!(p.unwrap() < 1e-9, "{p:?}");
        // At most 3 heads of 10 coins: 176 of 1,024 outcomes.
        assert!((binomial(3.0, 10.0, 0.5) - 2.0 * 176.0 / 1024.0).abs() < 1e-12);
        // For two groups, χ² is the squared difference in standard errors.
        let (counts, totals) = ([[30.0, 55.0], [70.0, 145.0]], [100.0, 200.0]);
        let z = difference(counts[0], totals).1;
        assert!(
            (chi_squared(&counts, totals).unwrap() - chi_squared_beyond(z * z, 1)).abs() < 1e-12
        );
    }
}
