//! `cargo run --release -p nysketch-bench --bin privacy [--trials N]`: an audit of releases.
//!
//! Two tables that differ by one row, the canary, are released many times each, and the most
//! powerful test tries to distinguish the releases: it projects them onto the direction in which
//! the canary moves the sums, in standard deviations of the noise. Its errors at all thresholds
//! give a lower bound on the information revealed, as μ of Gaussian differential privacy, which
//! holds for all lines of the table together with 95 % confidence. The bound must not exceed the
//! claim, and must exceed it for releases with half the noise. Prints Markdown.

use nysketch::privacy::{Budget, Mechanism, Release};
use nysketch::{Mixture, Plan, PlanParams, PrivateParams, Sketch, SketchParams, Table, plan_for};
use std::sync::Arc;

const EPSILON: f64 = 4.0;
const DELTA: f64 = 1e-6;
const ROWS: usize = 100;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let trials = match &words[..] {
        [] => 20_000,
        [flag, n] if flag == "--trials" => n.parse().expect("a number of trials"),
        _ => panic!("usage: privacy [--trials N]"),
    };
    let mut private = PrivateParams::new([("x".into(), -5.0, 5.0), ("y".into(), -5.0, 5.0)]);
    // Small enough that the first canary is as far away as it allows.
    private.radius = Some(1.0);
    let anywhere = private.anywhere(500, 0).expect("points");
    let params = PlanParams::default().landmarks(20).private(private);
    let plan = Arc::new(plan_for(&anywhere, params).expect("a plan").0);
    let landmarks = plan.landmark_rows();
    let border: Vec<f64> =
        landmarks[0].iter().zip(&landmarks[1]).map(|(a, b)| 0.5 * (a + b)).collect();
    let canaries = [
        ("far beyond the bounds", vec![1e9, -1e9]),
        ("on a landmark", landmarks[0].clone()),
        ("between two landmarks", border),
    ];
    let budget = Budget::new(EPSILON, DELTA).expect("a budget");
    // Four times the cost is half the noise.
    let careless = (1..16_000)
        .map(|i| Budget::new(EPSILON + f64::from(i) * 1e-3, DELTA).expect("a budget"))
        .find(|b| b.rho().value() >= 4.0 * budget.rho().value())
        .expect("within 20");
    println!(
        "Releases at ε = {EPSILON}, δ = {DELTA:e}, {trials} of each table, with and without a \
         canary:\n"
    );
    println!(
        "| noise | canary | sums | μ claimed | μ at least | ε claimed | ε at least | verdict |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut found = Vec::new();
    for (noise, used) in [("as claimed", budget), ("half of it", careless)] {
        for (name, canary) in &canaries {
            found.push(audit((noise, name), &plan, canary, (budget, used), trials));
        }
    }
    let (claimed, halved) = found.split_at(canaries.len());
    assert!(claimed.iter().flatten().all(|l| l.least <= l.claim), "more is revealed than claimed");
    assert!(claimed[0][0].least >= 0.7 * claimed[0][0].claim, "counts are audited too weakly");
    assert!(halved[0].iter().all(|l| l.least > l.claim), "half the noise is not noticed");
    println!("\nAll of it as it should be.");
}

/// The claim for some sums, and the lower bound on the information revealed.
struct Line {
    claim: f64,
    least: f64,
}

/// Audits one canary: a line for each mechanism and one for all together.
fn audit(
    names: (&str, &str),
    plan: &Arc<Plan>,
    canary: &[f64],
    budgets: (Budget, Budget),
    trials: usize,
) -> Vec<Line> {
    let (claimed, used) = budgets;
    let rows = Mixture::new(2, 3, 1.5, 1).expect("a mixture").rows(0, ROWS).values;
    let [without, with] = [rows.clone(), [&rows[..], canary].concat()].map(|values| {
        let table = Table::new(plan.columns.clone(), values).expect("whole rows");
        Sketch::of(plan, &table, SketchParams::default(), &()).expect("a sketch")
    });
    let mechanisms = Mechanism::of_plan(plan);
    let exact: Vec<Vec<i128>> = mechanisms.iter().map(|m| m.exact(&without)).collect();
    let moved: Vec<Vec<f64>> = mechanisms
        .iter()
        .zip(&exact)
        .map(|(m, before)| m.exact(&with).iter().zip(before).map(|(a, b)| (a - b) as f64).collect())
        .collect();
    let promise = Release::of(&without, claimed, &[]).expect("a release");
    let deviations: Vec<f64> = promise.spendings().iter().map(|s| s.deviation()).collect();
    let projection = Projection { budget: used, trials, exact, moved, deviations };
    let (before, after) = std::thread::scope(|scope| {
        let before = scope.spawn(|| projection.scores(&without));
        (before.join().expect("no panic"), projection.scores(&with))
    });
    // Upper bound on the information that the canary reveals according to the claim: half of the
    // claim if it moves the sums by half of the bound.
    let moved = projection.moved.iter().zip(&projection.deviations);
    let mu: Vec<f64> = moved.map(|(moved, deviation)| norm(moved) / deviation).collect();
    let bound: Vec<f64> =
        promise.spendings().iter().map(|s| (2.0 * s.rho.value()).sqrt()).collect();
    let lines = 2 * 3 * (mechanisms.len() + 1);
    let mut found_all = Vec::new();
    for k in 0..=mechanisms.len() {
        let together = k == mechanisms.len();
        let (name, claim, possible) = if together {
            ("all together".to_string(), norm(&bound), norm(&mu))
        } else {
            (mechanisms[k].name().to_string(), bound[k], mu[k])
        };
        let least = lower_bound(&before[k], &after[k], 0.05 / lines as f64);
        let verdict = if least > claim { "**reveals more than claimed**" } else { "holds" };
        let (of, at) = if together {
            (format!("{:.2}", claimed.epsilon), format!("{:.2}", epsilon(least, DELTA)))
        } else {
            ("".into(), "".into())
        };
        println!(
            "| {} | {} | {name} | {claim:.3} (this row: {possible:.3}) | {least:.3} | {of} | {at} \
             | {verdict} |",
            names.0, names.1
        );
        found_all.push(Line { claim, least });
    }
    found_all
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The projection of releases onto the direction in which the canary moves the sums, for each
/// mechanism.
struct Projection {
    budget: Budget,
    trials: usize,
    /// The sums without the canary.
    exact: Vec<Vec<i128>>,
    /// The change of the sums by the canary.
    moved: Vec<Vec<f64>>,
    /// The standard deviations of the noise.
    deviations: Vec<f64>,
}

impl Projection {
    /// Returns the scores of each mechanism and, at the end, of all together.
    fn scores(&self, sketch: &Sketch) -> Vec<Vec<f64>> {
        let count = self.exact.len();
        let mut all = vec![Vec::with_capacity(self.trials); count + 1];
        for _ in 0..self.trials {
            let release = Release::of(sketch, self.budget, &[]).expect("a release");
            let mut total = 0.0;
            for (k, noisy) in release.noisy().iter().enumerate() {
                let along = noisy.iter().zip(&self.exact[k]).zip(&self.moved[k]);
                let score: f64 = along.map(|((x, e), m)| (x - e) as f64 * m).sum();
                all[k].push(score);
                total += score / self.deviations[k].powi(2);
            }
            all[count].push(total);
        }
        all
    }
}

/// Returns a lower bound on μ from scores without and with the canary: the largest Φ⁻¹(true
/// positives) − Φ⁻¹(false positives) over all thresholds, both corrected by the inequality of
/// Dvoretzky, Kiefer and Wolfowitz at this level.
fn lower_bound(before: &[f64], after: &[f64], level: f64) -> f64 {
    let (mut before, mut after) = (before.to_vec(), after.to_vec());
    before.sort_by(f64::total_cmp);
    after.sort_by(f64::total_cmp);
    let [margin, margin_after] =
        [&before, &after].map(|all| ((4.0 / level).ln() / (2.0 * all.len() as f64)).sqrt());
    let mut bound = 0.0f64;
    for t in after.iter().step_by(10) {
        let hits = share_above(&after, *t) - margin_after;
        let false_alarms = share_above(&before, *t) + margin;
        if hits > 0.0 && false_alarms < 1.0 {
            bound = bound.max(quantile(hits) - quantile(false_alarms));
        }
    }
    bound
}

/// Returns the share of sorted values above a threshold.
fn share_above(sorted: &[f64], threshold: f64) -> f64 {
    1.0 - sorted.partition_point(|x| *x <= threshold) as f64 / sorted.len() as f64
}

/// Returns P(X > x) of a standard Gaussian, by Lentz's continued fraction for x ≥ 3 and by the
/// series below.
fn tail(x: f64) -> f64 {
    if x < 0.0 {
        return 1.0 - tail(-x);
    }
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x < 3.0 {
        let (mut term, mut sum, mut k) = (x, x, 1.0);
        while term > 1e-17 {
            term *= x * x / (2.0 * k + 1.0);
            sum += term;
            k += 1.0;
        }
        return 0.5 - density * sum;
    }
    let fraction = (1..80).rev().fold(x, |below, k| x + f64::from(k) / below);
    density / fraction
}

/// Computes Φ⁻¹ by bisection.
fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if 1.0 - tail(middle) < p { low = middle } else { high = middle }
    }
    low
}

/// Returns ε of μ-Gaussian differential privacy at δ.
fn epsilon(mu: f64, delta: f64) -> f64 {
    let (mut low, mut high) = (0.0, 60.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        let at = tail(middle / mu - 0.5 * mu) - middle.exp() * tail(middle / mu + 0.5 * mu);
        if at > delta { low = middle } else { high = middle }
    }
    high
}
