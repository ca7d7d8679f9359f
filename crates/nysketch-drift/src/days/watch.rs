//! Daily monitoring: a verdict that stays valid for any number of looks.
//!
//! Each day is ranked among itself and the days before it (`days.rs`), with ties broken at random:
//!
//! ```text
//! p_t = (#{i ≤ t: score_i > score_t} + U·#{i ≤ t: score_i = score_t}) / t ,   U uniform on (0, 1)
//! ```
//!
//! If the days are exchangeable, p_1, p_2, … are independent and uniform. A gambler who bets
//! against this, with a share of the stake on ε·p^(ε−1) for several ε, has a fortune M_t that is a
//! martingale. By Ville's inequality, M_t ever exceeds 1/level with probability at most `level`. An
//! alarm is therefore raised at M_t ≥ 1/level, and daily looks keep the level. Each day a part of
//! the fortune is redistributed evenly over all ε, so that a late change is found as quickly as an
//! early one (the jumper of Vovk et al. 2021).
//!
//! Days that resemble their neighbours are not exchangeable. This is tested by shuffling their
//! order, and reported.

use crate::days::baseline::{Day, Days, Scores};
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::random::{below, unit};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Values of ε in the bets ε·p^(ε−1). The last, 1, keeps its stake.
const BETS: [f64; 5] = [0.1, 0.25, 0.4, 0.6, 1.0];
/// The part of the fortune that is redistributed evenly each day.
const SPREAD: f64 = 0.01;
/// Smallest number of earlier days with which a day is ranked.
const LEAST_BEFORE: usize = 4;
/// Number of random orders with which the correlation of neighbours is compared.
const SHUFFLES: usize = 199;

/// Result of monitoring a sequence of days.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Watched {
    /// The probability of ever raising an alarm if days are exchangeable.
    pub level: f64,
    /// All days.
    pub days: Vec<WatchedDay>,
    /// The day on which the alarm was raised, if any.
    pub alarm: Option<String>,
    /// The most likely first day of the change, if there was an alarm.
    pub began: Option<String>,
    /// Correlation between the cells of neighbouring days; 0 for exchangeable days.
    pub autocorrelation: Option<f64>,
    /// The p-value of that correlation.
    pub autocorrelation_p_value: Option<f64>,
}

/// A monitored day.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct WatchedDay {
    /// Name of the day.
    pub name: String,
    /// Number of rows of the day, by weight.
    pub rows: u64,
    /// Share of the day's rows that would have to move to make it like the days before it; `None`
    /// without cells.
    pub moved: Option<f64>,
    /// Its p-value among the days before it; `None` if there are too few.
    pub p_value: Option<f64>,
    /// Evidence for a change: the fortune of a gambler who bets that days are not exchangeable.
    pub evidence: f64,
}

impl Days<'_> {
    /// Monitors the days in order. With `groups`, one per day, each day is ranked only among days
    /// of its own group, such as the same day of the week.
    pub fn watch(&self, groups: Option<&[usize]>, level: f64, seed: u64) -> Result<Watched> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::parameter("`level`", "between 0 and 1", level));
        }
        if self.days.len() <= LEAST_BEFORE {
            let expected = format!("at least {} to be watched", LEAST_BEFORE + 1);
            return Err(Error::parameter("days", expected, self.days.len()));
        }
        if let Some(groups) = groups.filter(|g| g.len() != self.days.len()) {
            let expected = format!("one for each of {} days", self.days.len());
            return Err(Error::parameter("groups", expected, groups.len()));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut fortune = Fortune::default();
        let mut watched = Watched {
            level,
            days: Vec::new(),
            alarm: None,
            began: None,
            autocorrelation: None,
            autocorrelation_p_value: None,
        };
        for (t, day) in self.days.iter().enumerate() {
            let before = same_group(&self.days[..=t], groups, t);
            let (mut p_value, mut moved) = (None, None);
            if before.len() > LEAST_BEFORE {
                let scores = Scores::of(&before);
                // Never 0, so that no bet wins an infinite amount.
                let p = scores.p_value(before.len() - 1, 1.0 - unit(&mut rng));
                fortune.bet(p);
                p_value = Some(p);
                moved = scores.moved.last().map(|m| m.max(0.0));
            }
            if fortune.total() >= 1.0 / level && watched.alarm.is_none() {
                watched.alarm = Some(day.name.clone());
            }
            let (name, rows) = (day.name.clone(), day.rows.round() as u64);
            watched.days.push(WatchedDay { name, rows, moved, p_value, evidence: fortune.total() });
        }
        let shares = standardised(&self.days, groups);
        if !shares.is_empty() {
            let (correlation, p_value) = neighbours(&shares, &mut rng);
            watched.autocorrelation = Some(correlation);
            watched.autocorrelation_p_value = Some(p_value);
            let alarm = watched.days.iter().position(|d| d.evidence >= 1.0 / level);
            watched.began = alarm.map(|at| self.days[likely_start(&shares, at)].name.clone());
        }
        Ok(watched)
    }
}

/// The fortune that started as a stake of one, divided among the bets.
struct Fortune([f64; BETS.len()]);

impl Default for Fortune {
    fn default() -> Self {
        Fortune([1.0 / BETS.len() as f64; BETS.len()])
    }
}

impl Fortune {
    fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    fn bet(&mut self, p: f64) {
        let even = SPREAD * self.total() / BETS.len() as f64;
        for (stake, epsilon) in self.0.iter_mut().zip(BETS) {
            *stake = ((1.0 - SPREAD) * *stake + even) * epsilon * p.powf(epsilon - 1.0);
        }
    }
}

/// Shares of the cells of each day, minus the mean shares of its group, divided by the square root
/// of the mean shares of all days. χ² is then a squared distance.
fn standardised(days: &[Day], groups: Option<&[usize]>) -> Vec<Vec<f64>> {
    let cells = days[0].cells.len();
    if cells == 0 {
        return Vec::new();
    }
    let all: Vec<&Day> = days.iter().collect();
    let means: Vec<f64> = (0..cells).map(|j| mean_share(&all, j)).collect();
    let mut standardised = Vec::new();
    for (t, day) in days.iter().enumerate() {
        let group = same_group(days, groups, t);
        let used = (0..cells).filter(|j| means[*j] > 0.0);
        let shares =
            used.map(|j| (day.cells[j] / day.rows - mean_share(&group, j)) / means[j].sqrt());
        standardised.push(shares.collect());
    }
    standardised
}

/// The days of the group of day `t`.
fn same_group<'a>(days: &'a [Day], groups: Option<&[usize]>, t: usize) -> Vec<&'a Day> {
    let days = days.iter().enumerate();
    days.filter(|(i, _)| groups.is_none_or(|g| g[*i] == g[t])).map(|(_, day)| day).collect()
}

/// Mean over the days of the share of the rows in cell `j`.
fn mean_share(days: &[&Day], j: usize) -> f64 {
    days.iter().map(|d| d.cells[j] / d.rows).sum::<f64>() / days.len() as f64
}

/// Correlation of neighbouring days, and its p-value among shuffled orders.
fn neighbours(days: &[Vec<f64>], rng: &mut ChaCha8Rng) -> (f64, f64) {
    let total: f64 = days.iter().map(|day| product(day, day)).sum();
    if !(total > 0.0) {
        return (0.0, 1.0);
    }
    let mut order: Vec<usize> = (0..days.len()).collect();
    let observed = along(days, &order);
    let mut as_large = 1;
    for _ in 0..SHUFFLES {
        for i in (1..order.len()).rev() {
            order.swap(i, below(i + 1, rng));
        }
        as_large += usize::from(along(days, &order) >= observed);
    }
    (observed / total, as_large as f64 / (SHUFFLES + 1) as f64)
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The sum of the products of neighbouring days, in a given order.
fn along(days: &[Vec<f64>], order: &[usize]) -> f64 {
    order.windows(2).map(|pair| product(&days[pair[0]], &days[pair[1]])).sum()
}

/// The day τ, at most `latest`, at which the days before and from τ differ most: `argmax τ(T − τ)/T
/// ‖mean before − mean after‖²`.
fn likely_start(days: &[Vec<f64>], latest: usize) -> usize {
    let (count, size) = (days.len(), days[0].len());
    let mut after = vec![0.0; size];
    days.iter().for_each(|day| after.iter_mut().zip(day).for_each(|(a, d)| *a += d));
    let mut before = vec![0.0; size];
    let (mut best, mut max_gain) = (0, f64::NEG_INFINITY);
    for start in 1..count.min(latest + 1) {
        for ((b, a), d) in before.iter_mut().zip(&mut after).zip(&days[start - 1]) {
            *b += d;
            *a -= d;
        }
        let (left, right) = (start as f64, (count - start) as f64);
        let gap: f64 = before.iter().zip(&after).map(|(b, a)| (b / left - a / right).powi(2)).sum();
        let gain = left * right / count as f64 * gap;
        if gain > max_gain {
            (best, max_gain) = (start, gain);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform p-values leave the expected fortune unchanged for any stakes: ∫ M(p) dp = M. The
    /// integral is over t = −ln p: steps of 0.001 have an error of 10⁻⁶, and the omitted tail
    /// beyond t = 200 is at most e⁻²⁰.
    #[test]
    fn bets_are_fair() {
        let mut before = Fortune::default();
        [0.3, 0.02, 0.9].iter().for_each(|p| before.bet(*p));
        let mut mean = 0.0;
        for i in 0..200_000 {
            let t = 0.001 * (f64::from(i) + 0.5);
            let mut fortune = Fortune(before.0);
            fortune.bet((-t).exp());
            mean += 0.001 * fortune.total() * (-t).exp();
        }
        assert!((mean / before.total() - 1.0).abs() < 1e-5, "{mean}");
    }

    /// Ville's inequality: of 5,000 games of 50 days, at most 5 % ever have a fortune of 20 (250,
    /// standard deviation 15).
    #[test]
    fn alarms_are_as_rare_as_they_should_be() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut alarms = 0;
        for _ in 0..5000 {
            let mut fortune = Fortune::default();
            alarms += usize::from((0..50).any(|_| {
                fortune.bet(1.0 - unit(&mut rng));
                fortune.total() >= 20.0
            }));
        }
        assert!((50..=295).contains(&alarms), "{alarms} of 5,000");
    }

    #[test]
    fn starts_are_found() {
        let days: Vec<Vec<f64>> = (0..20)
            .map(|t| vec![if t < 13 { 0.0 } else { 1.0 } + 0.3 * f64::from(t).sin(), 0.0])
            .collect();
        assert_eq!(likely_start(&days, 19), 13);
        assert!(likely_start(&days, 10) <= 10);
    }
}
