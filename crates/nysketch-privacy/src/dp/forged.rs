//! Tests with forged plans: for any content, the claim is at least the independent bound, and at
//! most 1 % above it.

use super::bound;
use super::mechanism::Mechanism;
use super::terms::Terms;
use super::{Budget, Shared};
use num_bigint::BigUint;
use nysketch_core::kernel::Kernel;
use nysketch_core::kernel::fourier::FrequencyLaw;
use nysketch_core::kernel::search::PanelsOnce;
use nysketch_core::numeric::fixed::power_of_two;
use nysketch_core::numeric::points::Points;
use nysketch_core::plan::collect::Collect;
use nysketch_core::plan::devices::OnDevices;
use nysketch_core::plan::frame::{EXPONENTS, Frame};
use nysketch_core::plan::private::{MAX_RADIUS, People, Private};
use nysketch_core::plan::sampling::Sampling;
use nysketch_core::plan::{Features, Plan};
use nysketch_core::recipe::Recipe;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Number of plans; `NYSKETCH_FORGED_PLANS` sets another number, and `NYSKETCH_FORGED_SEED` another
/// seed.
const PLANS: u64 = 3000;

/// Returns one of some values.
fn one_of<T: Copy>(rng: &mut ChaCha8Rng, values: &[T]) -> T {
    values[rng.random_range(0..values.len())]
}

/// Returns a coordinate in units: a typical one, a limit, or a number that 64-bit integers cannot
/// represent.
fn units(rng: &mut ChaCha8Rng) -> f64 {
    let limit = 2f64.powi(29);
    let at = [0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 200.5, limit, limit + 0.5, limit + 1.0, 2f64.powi(44)];
    let beyond =
        [2f64.powi(63), 2f64.powi(64), 1.1 * 2f64.powi(64), 1e30, 1e300, f64::MAX, f64::INFINITY];
    match rng.random_range(0..40) {
        0..6 => one_of(rng, &at),
        6 => one_of(rng, &beyond),
        7 => f64::NAN,
        8..12 => 2f64.powi(rng.random_range(-30..80)) * rng.random::<f64>(),
        12..16 => (rng.random::<f64>() * 300.0).round() + 0.5,
        _ => rng.random::<f64>() * 2f64.powi(28),
    }
}

/// Returns a double close to `x`.
fn near(rng: &mut ChaCha8Rng, x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() || rng.random_range(0..3) > 0 {
        return x;
    }
    f64::from_bits(x.to_bits().saturating_add_signed(rng.random_range(-2..3)))
}

fn forged_frame(rng: &mut ChaCha8Rng, d: usize) -> Frame {
    let exponent = match rng.random_range(0..10) {
        0 => one_of(rng, &[*EXPONENTS.start(), *EXPONENTS.end()]),
        1 => rng.random_range(EXPONENTS),
        _ => rng.random_range(-40..0),
    };
    let mut exponents = vec![exponent; d];
    if rng.random_range(0..100) == 0 {
        exponents[d - 1] = rng.random_range(EXPONENTS);
    }
    let centre = (0..d).map(|_| match rng.random_range(0..16) {
        0 => one_of(rng, &[0.0, -0.0, 1e300, -1e16, f64::MIN_POSITIVE, 5e-324]),
        1 => f64::from_bits(rng.random()),
        _ => 100.0 * (rng.random::<f64>() - 0.5),
    });
    let centre = centre.collect();
    let scale = (0..d).map(|_| match rng.random_range(0..16) {
        0 => one_of(rng, &[1e-50, 1e100, 1e-300, 1e300, f64::MIN_POSITIVE, 0.0, -1.0]),
        1..6 => 10.0 * rng.random::<f64>() + 1e-3,
        _ => 1.0,
    });
    let scale = scale.collect();
    Frame::from_parts(centre, scale, exponents)
}

fn forged_bounds(rng: &mut ChaCha8Rng, frame: &Frame) -> Private {
    let d = frame.dims();
    let unit = power_of_two(frame.exponent[0]);
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for j in 0..d {
        let mut at = |sign: f64| {
            let x = frame.centre[j] + sign * units(rng) * unit * frame.scale[j];
            near(rng, x)
        };
        let (a, b) = (at(-1.0), at(1.0));
        let (a, b) = if rng.random_range(0..20) == 0 { (b, b.next_up()) } else { (a, b) };
        low.push(a);
        high.push(b);
    }
    let radius = match rng.random_range(0..8) {
        0 => one_of(rng, &[0, 1, 2, MAX_RADIUS, MAX_RADIUS + 1, u64::MAX]),
        1 => rng.random_range(1..100),
        2 => rng.random::<u64>() >> rng.random_range(0..64),
        _ => rng.random_range(1..MAX_RADIUS),
    };
    let rows = one_of(rng, &[1, 3, 1 << 20, 1 << 21, u64::MAX]);
    let people = (rng.random_range(0..4) == 0).then(|| People { column: "user".into(), rows });
    Private { low, high, radius, spent: 0, people }
}

/// Returns landmarks that are spread, close to each other, equal, or unusual.
fn forged_points(rng: &mut ChaCha8Rng, frame: &Frame, m: usize) -> Points {
    let (d, unit) = (frame.dims(), power_of_two(frame.exponent[0]));
    let spread = 2f64.powi(rng.random_range(-10..30));
    let base: Vec<f64> = (0..d).map(|_| rng.random::<f64>() * 2f64.powi(28)).collect();
    let odd = one_of(rng, &[f32::NAN, f32::INFINITY, 3e38, -1e20, 1e-45, 0.0]);
    let has_odd = rng.random_range(0..30) == 0;
    let centred = rng.random::<bool>();
    let mut data: Vec<f32> = (0..m * d)
        .map(|at| {
            let base = if centred { 0.0 } else { base[at % d] };
            ((base + spread * (rng.random::<f64>() - 0.5)) * unit) as f32
        })
        .collect();
    if has_odd {
        data[0] = odd;
    }
    if m > 1 && rng.random_range(0..4) == 0 {
        data.copy_within(0..d, d);
    }
    Points::new(d, data)
}

/// Returns bandwidths near the distances of points, or anywhere; some form ladders.
fn forged_bandwidths(rng: &mut ChaCha8Rng, points: &Points) -> Vec<f64> {
    let apart: f64 = points
        .row(0)
        .iter()
        .zip(points.row(points.len() - 1))
        .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2))
        .sum();
    let near = apart * 2f64.powi(rng.random_range(-6..7));
    let anywhere = 2f64.powi(rng.random_range(-101..112));
    let mut sigma2 = if rng.random_range(0..6) == 0 || !(near > 0.0) { anywhere } else { near };
    let count = rng.random_range(1..7);
    let ratio = one_of(rng, &[2.0, 4.0, 16.0, 1.5, 3.0, 1.0]);
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(sigma2);
        sigma2 /= ratio;
    }
    all
}

fn forged_plan(rng: &mut ChaCha8Rng) -> Plan {
    let (d, m) = (rng.random_range(1..5), rng.random_range(1..10));
    let columns: Vec<String> = (0..d).map(|j| format!("c{j}")).collect();
    let frame = forged_frame(rng, d);
    let mut private = forged_bounds(rng, &frame);
    let points = forged_points(rng, &frame, m);
    let bandwidths = forged_bandwidths(rng, &points);
    let fourier = rng.random_range(0..5) == 0;
    let cells = !fourier && rng.random::<bool>();
    let laplace = !cells && !fourier && rng.random::<bool>();
    if !cells && rng.random_range(0..50) > 0 {
        private.radius = 0;
    }
    Plan {
        recipe: Recipe::plain(columns.iter().cloned()),
        columns,
        weighting: None,
        frame,
        features: if fourier {
            Features::Fourier(points, FrequencyLaw::Normal)
        } else {
            Features::Nystrom(points, Sampling::Given)
        },
        landmark_levels: Vec::new(),
        kernel: if laplace { Kernel::Laplace } else { Kernel::Gaussian },
        bandwidths,
        collect: Collect {
            kernel: fourier || rng.random::<bool>() || !cells,
            cells,
            moments: rng.random(),
        },
        seed: 0,
        witnesses: None,
        private: Some(private),
        panels: PanelsOnce::default(),
        on_devices: OnDevices::default(),
    }
}

/// The results for the mechanisms of some plans.
#[derive(Debug, Default)]
struct Found {
    /// Number of plans that are refused.
    refused: u64,
    /// Number of plans that are accepted.
    accepted: u64,
    /// Largest ratio of a claim to its bound.
    ratio: f64,
}

fn as_f64(x: &BigUint) -> f64 {
    x.to_string().parse().unwrap()
}

/// Compares every claim of a plan with its bound.
fn compare(plan: &Plan, found: &mut Found) {
    if plan.check().is_err() {
        found.refused += 1;
        for mechanism in Mechanism::of_plan(plan) {
            assert!(mechanism.sensitivity(plan).is_err(), "{plan:?}");
        }
        return;
    }
    found.accepted += 1;
    for mechanism in Mechanism::of_plan(plan) {
        let name = mechanism.name();
        let claim = mechanism.sensitivity(plan).unwrap();
        let bound = bound::of_row(mechanism, plan).unwrap();
        assert!(claim >= bound, "{name}: {claim} below {bound} of {plan:?}");
        let ratio = as_f64(&claim) / as_f64(&bound);
        assert!(ratio <= 1.01, "{name}: {ratio} of {plan:?}");
        found.ratio = found.ratio.max(ratio);
    }
    let budget = Budget::new(0.1, 1e-9).unwrap();
    let rows = plan.people().map(|people| people.rows);
    for shared in [None, Shared::new(3, 2).ok()] {
        let terms = Terms::new(plan, budget, &[], rows, shared).unwrap();
        bound::check(&terms, plan).unwrap();
    }
}

/// Most plans are refused; for the others, claim and bound differ by at most 1 %.
#[test]
fn claims_of_forged_plans_are_their_bounds() {
    let plans = std::env::var("NYSKETCH_FORGED_PLANS");
    let plans = plans.map_or(PLANS, |n| n.parse().unwrap());
    let seed = std::env::var("NYSKETCH_FORGED_SEED").map_or(37, |n| n.parse().unwrap());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut found = Found::default();
    for number in 0..plans {
        let plan = forged_plan(&mut rng);
        compare(&plan, &mut found);
        // Reading a file refuses the same plans.
        if number % 50 == 0 {
            let read = Plan::from_bytes(&plan.to_bytes());
            assert_eq!(read.is_ok(), plan.check().is_ok(), "{:?} of {plan:?}", read.err());
        }
    }
    println!("{found:?}");
    assert!(found.accepted > plans / 5 && found.refused > plans / 20, "{found:?}");
}

/// Claims that are too small are refused, and so is a quarter of the variance.
#[test]
fn wrong_claims_are_contradicted() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut plan = forged_plan(&mut rng);
    while plan.check().is_err() || !plan.collect.moments {
        plan = forged_plan(&mut rng);
    }
    let rows = plan.people().map(|people| people.rows);
    let terms = Terms::new(&plan, Budget::new(1.0, 1e-6).unwrap(), &[], rows, None).unwrap();
    for at in 0..terms.spendings.len() {
        let mut wrong = terms.clone();
        let claim = &mut wrong.spendings[at].sensitivity;
        *claim -= &*claim / 50u32 + 1u32;
        let error = bound::check(&wrong, &plan).unwrap_err();
        assert!(
            matches!(error, nysketch_core::error::Error::SensitivityContradicted { .. }),
            "{error}"
        );
        let mut quiet = terms.clone();
        let quarter = quiet.spendings[at].variance.units() / 4u32;
        quiet.spendings[at].variance = super::Variance::new(quarter).unwrap();
        let error = bound::check(&quiet, &plan).unwrap_err();
        assert!(matches!(error, nysketch_core::error::Error::TooLittleNoise { .. }), "{error}");
    }
}
