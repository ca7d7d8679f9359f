//! Rows that are grouped by user, or have weights: the test on rows compared with the test on
//! folds.

use crate::rows::{DRAWS, LEVEL, Rng, folded, share, sketch};
use nysketch::drift::{Comparison, DriftParams};
use nysketch::{FoldRule, PlanParams, Table, plan_for};
use nysketch_core::numeric::random::{normal, unit};
use rand::SeedableRng;
use std::sync::Arc;

/// Number of folds of every sketch.
const FOLDS: u32 = 16;
const USERS: usize = 400;
const COLUMNS: usize = 3;

struct Setting {
    name: &'static str,
    /// Number of rows of a user.
    rows: fn(&mut Rng) -> usize,
    /// Whether the users of B are those of A.
    same_users: bool,
    weighted: bool,
}

/// Returns plain rows, and the same rows with weights or with the user of each row. Every user has
/// a fixed position, determined by the number of the user.
fn sample(s: &Setting, first_user: usize, shift: f64, seed: u64, rng: &mut Rng) -> (Table, Table) {
    let (mut values, mut keys, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for user in first_user..first_user + USERS {
        let mut of_user = Rng::seed_from_u64(seed.wrapping_mul(1_000_003) + user as u64);
        let place: Vec<f64> = (0..COLUMNS).map(|_| 2.0 * normal(&mut of_user)).collect();
        for _ in 0..(s.rows)(rng) {
            values.extend(place.iter().map(|p| p + normal(rng) + shift));
            keys.push(Some(format!("user {user}")));
            weights.push(unit(rng).powi(3) + 0.01);
        }
    }
    let table = Table::unnamed(COLUMNS, values).expect("whole rows");
    let plain = table.clone();
    if s.weighted {
        (plain, table.with_weights(weights).expect("weights"))
    } else {
        (plain, table.with_keys(keys).expect("keys"))
    }
}

/// Prints the rates of alarms of the test on rows and of the test on folds.
pub fn tests(trials: u64) {
    let settings = [
        Setting {
            name: "10 rows per user, other users",
            rows: |_| 10,
            same_users: false,
            weighted: false,
        },
        Setting {
            name: "10 rows per user, the same users",
            rows: |_| 10,
            same_users: true,
            weighted: false,
        },
        Setting {
            name: "1 to 40 rows per user, most few",
            rows: |rng| 1 + (40.0 * unit(rng).powi(4)) as usize,
            same_users: false,
            weighted: false,
        },
        Setting {
            name: "independent rows with weights",
            rows: |_| 1,
            same_users: false,
            weighted: true,
        },
    ];
    println!(
        "\nAlarms at {LEVEL}, {USERS} users in A and in B, 50 landmarks, {FOLDS} folds, {trials} \
         trials:\n"
    );
    println!("| rows | change | by rows | by folds |\n|---|---|---|---|");
    for s in &settings {
        for (what, shift) in [("none", 0.0), ("all rows moved by 0.5 in every column", 0.5)] {
            let by_rows =
                share(trials, |seed| trial(s, shift, seed, false).is_some_and(|p| p <= LEVEL));
            let by_folds =
                share(trials, |seed| trial(s, shift, seed, true).is_some_and(|p| p <= LEVEL));
            let rows = if s.weighted { "none".into() } else { format!("{:.1} %", 100.0 * by_rows) };
            println!("| {} | {what} | {rows} | {:.1} % |", s.name, 100.0 * by_folds);
        }
    }
}

fn trial(s: &Setting, shift: f64, seed: u64, by_folds: bool) -> Option<f64> {
    let rng = &mut Rng::seed_from_u64(seed);
    let (plain, a) = sample(s, 0, 0.0, seed, rng);
    let (_, b) = sample(s, if s.same_users { 0 } else { USERS }, shift, seed, rng);
    let params = PlanParams::default().landmarks(50).seed(seed);
    let (plan, rule) = if s.weighted {
        (plan_for(&a, params.weights("w", None)), FoldRule::by_content(FOLDS))
    } else {
        (plan_for(&plain, params), FoldRule::by_key(FOLDS, "user"))
    };
    let (plan, rule) = (Arc::new(plan.expect("a plan").0), rule.expect("a rule"));
    let [a, b] = [a, b]
        .map(|table| if by_folds { folded(&plan, &rule, &table) } else { sketch(&plan, &table) });
    let comparison = Comparison::new(&plan).expect("a comparison");
    let params = DriftParams::default().draws(DRAWS).seed(seed);
    comparison.of(&a, &b, &params).expect("a drift").p_value
}
