//! Random private plans, including plans that a hostile party could send.

use super::draw::Rng;
use nysketch::{Collect, Kernel, People, Plan, PlanParams, PrivateParams, Scale, plan_for};
use std::panic::catch_unwind;

/// Names of columns. Some look like values.
const NAMES: [&str; 14] = [
    "age", "smoker", "c0", "c1", "c2", "true", "1", "NaN", "a b", "x,y", "é", "q\"t", "v[0]",
    "v[1]",
];

/// The column of persons.
pub const WHO: &str = "who";

/// Returns a valid plan.
pub fn random(rng: &mut Rng) -> Plan {
    loop {
        let made = made(rng);
        let Some(plan) = made else { continue };
        if rng.once_in(3)
            && let Some(plan) = twisted(rng, plan.clone())
        {
            return plan;
        }
        return plan;
    }
}

fn made(rng: &mut Rng) -> Option<Plan> {
    let mut names = NAMES.to_vec();
    rng.shuffle(&mut names);
    names.truncate(1 + rng.below(3));
    match rng.below(8) {
        0 => names = ["c0", "c1", "c2"][..names.len()].to_vec(),
        1 => names = vec!["v[1]", "v[0]", "age"],
        _ => {}
    }
    let bounds = names.iter().map(|name| {
        let (low, high) = rng.pick(&[
            (0.0, 1.0),
            (0.0, 100.0),
            (-1000.0, 1000.0),
            (0.0, 0.001),
            (1e6, 1e6 + 0.5),
            (-3.0, 1e5),
        ]);
        (name.to_string(), low, high)
    });
    let mut private = PrivateParams::new(bounds.collect::<Vec<_>>());
    if rng.once_in(4) {
        private.people = People::new(WHO, 1 + rng.below(3) as u64).ok();
    }
    let collect = rng.pick(&[
        &["cells"][..],
        &["kernel"],
        &["moments"],
        &["cells", "kernel"],
        &["cells", "moments"],
        &["cells", "kernel", "moments"],
        &["kernel", "moments"],
    ]);
    let mut params = PlanParams::default()
        .seed(rng.next())
        .landmarks(1 + rng.below(12))
        .collect(Collect::from_names(collect.iter().copied()).ok()?);
    if collect == ["kernel"] {
        match rng.below(3) {
            0 => params = PlanParams::default().fourier(1 + rng.below(6)).collect(params.collect?),
            1 => params = params.kernel(Kernel::Laplace),
            _ => {}
        }
    }
    if rng.once_in(3) {
        params = params.scale(Scale::Standard);
    }
    if rng.once_in(5) {
        params = params.log([names[0]]);
    }
    if collect.contains(&"cells") && rng.once_in(3) {
        private.radius = Some(10f64.powf(4.0 * rng.share() - 3.0));
    }
    let anywhere = private.anywhere(60, rng.next()).ok()?;
    Some(plan_for(&anywhere, params.private(private)).ok()?.plan)
}

/// Returns the plan with extreme bounds or radius, or `None` if that breaks a rule of plans.
fn twisted(rng: &mut Rng, mut plan: Plan) -> Option<Plan> {
    let private = plan.private.as_mut()?;
    for j in 0..private.low.len() {
        let (low, high) = (private.low[j], private.high[j]);
        match rng.below(5) {
            0 => private.high[j] = low.next_up(),
            1 => private.low[j] = high.next_down(),
            2 => private.high[j] = high * 2f64.powi(rng.below(120) as i32),
            3 => private.low[j] = low - (high - low) * 2f64.powi(rng.below(120) as i32),
            _ => {}
        }
    }
    if private.radius > 0 && rng.once_in(2) {
        private.radius = rng.pick(&[1, 2, 1 << 20, 1 << 38]);
    }
    // A plan whose check overflows is refused, too.
    let read = || Plan::from_bytes(&plan.to_bytes()).ok();
    catch_unwind(std::panic::AssertUnwindSafe(read)).ok()?
}
