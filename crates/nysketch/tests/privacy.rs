//! Private plans and releases.

use nysketch::privacy::{Budget, ExpectedNoise, Mechanism, Release, Shared, Terms, after, made_up};
use nysketch::{
    Accumulator, Block, Collect, DatePart, EngineKind, Error, FitParams, Invalid, Missing, Mixture,
    Model, People, Plan, PlanParams, PrivateParams, Result, Scale, Sketch, SketchParams, Table,
    Task, fit, plan_for,
};
use proptest::prelude::*;
use std::sync::Arc;

fn names(d: usize) -> Vec<String> {
    (0..d).map(|j| format!("c{j}")).collect()
}

fn bounds(d: usize, reach: f64) -> PrivateParams {
    PrivateParams::new(names(d).into_iter().map(|name| (name, -reach, reach)))
}

/// Returns a plan made from points spread over the bounds.
fn plan(d: usize, m: usize, collect: &[&str]) -> Arc<Plan> {
    let private = bounds(d, 6.0);
    let collect = Collect::from_names(collect.iter().copied()).unwrap();
    let anywhere = private.anywhere(500, 1).unwrap();
    let params = PlanParams::default().landmarks(m).collect(collect).private(private);
    Arc::new(plan_for(&anywhere, params).unwrap().plan)
}

fn rows(d: usize, n: usize, seed: u64) -> Vec<f64> {
    Mixture::new(d, 4, 2.0, seed).unwrap().rows(0, n).values
}

fn sketch(plan: &Arc<Plan>, values: Vec<f64>) -> Sketch {
    let table = Table::unnamed(plan.dims(), values).unwrap();
    Sketch::of(plan, &table, SketchParams::default(), &()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// No row, wherever it is, changes any sum by more than the claimed sensitivity.
    #[test]
    fn one_row_moves_sums_by_no_more_than_is_claimed(
        d in 1usize..8, m in 1usize..40, seed in any::<u64>(), far in -3i32..300, fourier in any::<bool>(),
    ) {
        let plan = if !fourier { plan(d, m, &["cells", "kernel", "moments"]) } else {
            let private = bounds(d, 6.0);
            let anywhere = private.anywhere(500, 1).unwrap();
            let params = PlanParams::default().fourier(m).private(private);
            Arc::new(plan_for(&anywhere, params).unwrap().plan)
        };
        let mut before = rows(d, 20, seed);
        let without = sketch(&plan, before.clone());
        let direction = Mixture::new(d, 1, 1.0, seed).unwrap().rows(0, 1).values;
        before.extend(direction.iter().map(|x| x * 2f64.powi(far)));
        let with = sketch(&plan, before);
        for mechanism in Mechanism::of_plan(&plan) {
            let pairs = mechanism.exact(&with).unwrap().into_iter().zip(mechanism.exact(&without).unwrap());
            let moved: f64 = pairs.map(|(a, b)| ((a - b) as f64).powi(2)).sum();
            let claimed: f64 = mechanism.sensitivity(&plan).unwrap().to_string().parse().unwrap();
            prop_assert!(moved <= claimed, "{}: {moved} of {claimed}", mechanism.name());
        }
    }

    /// Whatever the noise, the reconstruction is a sketch that some rows could have, and its file
    /// can be read again.
    #[test]
    fn estimates_are_sketches(
        d in 1usize..6, m in 1usize..60, n in 0usize..400, epsilon in prop::sample::select(vec![0.01, 1.0, 20.0]),
        collect in prop::sample::select(vec![vec!["cells"], vec!["moments"], vec!["cells", "kernel", "moments"]]),
    ) {
        let plan = plan(d, m, &collect);
        let budget = Budget::new(epsilon, 1e-6).unwrap();
        let release = Release::of(&sketch(&plan, rows(d, n, 3)), budget, &[]).unwrap();
        let estimate = release.estimate().unwrap();
        prop_assert!(Sketch::from_bytes(&estimate.to_bytes()).is_ok());
        prop_assert_eq!(Release::from_bytes(&release.to_bytes()).unwrap(), release);
    }
}

#[test]
fn rows_beyond_the_bounds_count_at_them_and_broken_rows_not_at_all() {
    let plan = plan(2, 10, &["cells", "moments"]);
    let beyond = sketch(&plan, vec![1e300, -1e300, 2.0, 7.0]);
    let at = sketch(&plan, vec![6.0, -6.0, 2.0, 6.0]);
    assert_eq!(beyond.to_bytes(), at.to_bytes());
    // Invalid rows leave no trace, since refusing or counting them would reveal that they exist.
    let broken = sketch(&plan, vec![f64::NAN, 1.0, f64::INFINITY, 1.0, 0.0, 0.0]);
    assert_eq!((broken.rows(), broken.skipped()), (1, 0));
    assert_eq!(broken.to_bytes(), sketch(&plan, vec![0.0, 0.0]).to_bytes());
    let release = Release::of(&broken, Budget::new(1.0, 1e-6).unwrap(), &[]).unwrap();
    assert!(!String::from_utf8_lossy(&release.to_bytes()).contains("skipped"));
}

#[test]
fn with_much_budget_and_many_rows_the_estimate_is_the_sketch() {
    let plan = plan(3, 30, &["cells", "moments"]);
    let sketch = sketch(&plan, rows(3, 200_000, 5));
    let release = Release::of(&sketch, Budget::new(20.0, 1e-6).unwrap(), &[]).unwrap();
    let estimate = release.estimate().unwrap();
    assert!(release.rows().abs_diff(200_000) < 100);
    let fitted = |s: &Sketch, task| fit(s, &FitParams::new(task, 2)).unwrap();
    let (ours, exact) = (fitted(&estimate, Task::Pca), fitted(&sketch, Task::Pca));
    let of = |m: &Model| serde_json::to_value(m).unwrap()["explained_variance"].clone();
    for (a, b) in of(&ours).as_array().unwrap().iter().zip(of(&exact).as_array().unwrap()) {
        let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
        assert!((a / b - 1.0).abs() < 0.01, "{a} {b}");
    }
    for (a, b) in estimate.cells().iter().zip(sketch.cells().iter().filter(|c| c.1 > 1000)) {
        if a.0 == b.0 {
            assert!(a.2.iter().zip(&b.2).all(|(a, b)| (a - b).abs() < 0.05), "{a:?} {b:?}");
        }
    }
}

#[test]
fn what_cannot_be_private_is_refused_by_name() {
    let private = bounds(2, 3.0);
    let anywhere = private.anywhere(100, 0).unwrap();
    let refused = |params: PlanParams| plan_for(&anywhere, params).unwrap_err().to_string();
    let base = || PlanParams::default().private(private.clone());
    for (params, name) in [
        (base().witnesses(5), "`witnesses`"),
        (base().weights("c1", None), "`weights`"),
        (base().missing(Missing::Partial), "`missing=partial`"),
        (base().categorical(["c1"]), "`categorical`"),
        (base().unit(["*"]), "`unit`"),
        (base().dates("c1", [DatePart::Time]), "`dates`"),
    ] {
        let message = refused(params);
        assert!(message.contains(name) && message.contains("`private`"), "{message}");
    }
    let with = |bounds: Vec<(String, f64, f64)>| {
        refused(PlanParams::default().private(PrivateParams::new(bounds)))
    };
    assert!(with(vec![]).contains("`bounds`"));
    assert!(with(vec![("c0".into(), 1.0, 0.0), ("c1".into(), 0.0, 1.0)]).contains("c0"));
    assert!(
        with(vec![("c0".into(), f64::NEG_INFINITY, 0.0), ("c1".into(), 0.0, 1.0)]).contains("c0")
    );
    assert!(with(vec![("c0".into(), 0.0, 1.0)]).contains("c1"));
    // A plan made from rows has no bounds.
    let plan = Arc::new(plan_for(&anywhere, PlanParams::default()).unwrap().plan);
    let sketch = Sketch::of(&plan, &anywhere, SketchParams::default(), &()).unwrap();
    let error = Release::of(&sketch, Budget::new(1.0, 1e-6).unwrap(), &[]).unwrap_err();
    assert!(matches!(error, Error::NotPrivate));
}

#[test]
fn budgets_are_split_as_said() {
    let plan = plan(2, 10, &["cells"]);
    let sketch = sketch(&plan, rows(2, 100, 1));
    let budget = Budget::new(1.0, 1e-6).unwrap();
    let shares = [(Mechanism::Counts, 0.5), (Mechanism::Sums, 0.3), (Mechanism::Squares, 0.2)];
    let release = Release::of(&sketch, budget, &shares).unwrap();
    let rho = release.rho().value();
    assert!(rho <= budget.rho().value() && rho > 0.9999 * budget.rho().value());
    let counts = &release.spendings()[0];
    assert!((counts.rho.value() / rho - 0.5).abs() < 1e-6);
    // σ² = Δ²/2ρ, rounded up.
    assert!((counts.deviation().powi(2) * 2.0 * counts.rho.value() - 1.0).abs() < 1e-3);
    assert!(counts.deviation().powi(2) * 2.0 * counts.rho.value() >= 1.0);
    for wrong in [&shares[..2], &[shares[0], shares[1], (Mechanism::Squares, 0.0)]] {
        assert!(Release::of(&sketch, budget, wrong).is_err());
    }
}

#[test]
fn two_rounds_share_a_budget() {
    let first = plan(2, 100, &["cells"]);
    let sketched = sketch(&first, rows(2, 50_000, 7));
    let release = Release::of(&sketched, Budget::new(0.5, 1e-6).unwrap(), &[]).unwrap();
    let private = after(bounds(2, 6.0), &release).unwrap();
    let like = release.like_its_rows(5000, 0).unwrap();
    let params = PlanParams::default().landmarks(100).private(private);
    let second = Arc::new(plan_for(&like, params).unwrap().plan);
    let again = sketch(&second, rows(2, 50_000, 7));
    let budget = Budget::new(1.0, 1e-6).unwrap();
    let both = Release::of(&again, budget, &[]).unwrap();
    assert!(both.total() <= budget.rho() && both.rho() < both.total());
    // The budget of the first round is used up.
    let error = Release::of(&again, Budget::new(0.5, 1e-6).unwrap(), &[]).unwrap_err();
    assert!(error.to_string().contains("`epsilon`"), "{error}");
}

/// Returns rows of persons: person i has i + 1 rows.
fn people_rows(people: usize) -> (Vec<f64>, Vec<String>) {
    let (mut values, mut keys) = (Vec::new(), Vec::new());
    for person in 0..people {
        for row in 0..=person {
            values.extend([person as f64 * 0.1 - 1.0, row as f64 * 0.2 - 1.0]);
            keys.push(format!("user-{person}"));
        }
    }
    (values, keys)
}

fn people_plan(most: u64, collect: &[&str]) -> Arc<Plan> {
    let mut private = bounds(2, 6.0);
    private.people = Some(People::new("user", most).unwrap());
    let anywhere = private.anywhere(500, 1).unwrap();
    let collect = Collect::from_names(collect.iter().copied()).unwrap();
    let params = PlanParams::default().landmarks(20).collect(collect).private(private);
    Arc::new(plan_for(&anywhere, params).unwrap().plan)
}

fn keyed(values: &[f64], keys: &[String]) -> Table {
    let keys = keys.iter().map(|k| Some(k.as_str()));
    Table::unnamed(2, values.to_vec()).unwrap().with_keys(keys).unwrap().with_part_rows(7)
}

fn sketch_of(plan: &Arc<Plan>, table: &Table, threads: usize) -> Result<Sketch> {
    Sketch::of(plan, table, SketchParams::default().threads(threads), &())
}

#[test]
fn of_each_person_so_many_rows_count_whatever_their_order() {
    let plan = people_plan(5, &["cells", "moments"]);
    let (values, keys) = people_rows(12);
    let whole = sketch_of(&plan, &keyed(&values, &keys), 1).unwrap();
    // 1 + 2 + 3 + 4, then 8 persons with 5 each.
    assert_eq!((whole.rows(), whole.person_rows()), (50, Some(5)));
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|i| (i * 7919) % 1009);
    let mixed: Vec<f64> = order.iter().flat_map(|i| values[2 * i..2 * i + 2].to_vec()).collect();
    let names: Vec<String> = order.iter().map(|i| keys[*i].clone()).collect();
    let again = sketch_of(&plan, &keyed(&mixed, &names), 3).unwrap();
    assert_eq!(again.to_bytes(), whole.to_bytes());
    // Equal rows count up to the limit per person; rows without a person do not count.
    let same = keyed(&[0.5; 40], &vec!["a".to_string(); 20]);
    assert_eq!(sketch_of(&plan, &same, 2).unwrap().rows(), 5);
    let nobody = Table::unnamed(2, vec![0.0; 4]).unwrap().with_keys([None, Some("a")]).unwrap();
    assert_eq!(sketch_of(&plan, &nobody, 1).unwrap().rows(), 1);
    assert_eq!(Sketch::from_bytes(&whole.to_bytes()).unwrap(), whole);
}

#[test]
fn a_person_moves_sums_by_no_more_than_is_claimed() {
    let plan = people_plan(4, &["cells", "kernel", "moments"]);
    let (mut values, mut keys) = people_rows(9);
    let without = sketch_of(&plan, &keyed(&values, &keys), 1).unwrap();
    for far in [0.0, 0.3, 1e9] {
        let (length, names) = (values.len(), keys.len());
        for row in 0..30 {
            values.extend([far + f64::from(row) * 1e-3, -far]);
            keys.push("another".into());
        }
        let with = sketch_of(&plan, &keyed(&values, &keys), 1).unwrap();
        let budget = Budget::new(1.0, 1e-6).unwrap();
        for spending in Release::of(&with, budget, &[]).unwrap().spendings() {
            let exact = |s: &Sketch| spending.mechanism.exact(s).unwrap();
            let pairs = exact(&with).into_iter().zip(exact(&without));
            let moved: f64 = pairs.map(|(a, b)| ((a - b) as f64).powi(2)).sum();
            let claimed: f64 = spending.sensitivity.to_string().parse().unwrap();
            assert!(moved <= claimed, "{}: {moved} of {claimed}", spending.mechanism.name());
            // Sixteen times the claim for one row: four rows that change the sums in the same way.
            let row: f64 =
                spending.mechanism.sensitivity(&plan).unwrap().to_string().parse().unwrap();
            assert_eq!(claimed, 16.0 * row);
        }
        values.truncate(length);
        keys.truncate(names);
    }
}

#[test]
fn parts_of_the_same_people_add_up_and_nothing_is_subtracted() {
    let plan = people_plan(3, &["cells"]);
    let (values, keys) = people_rows(6);
    let day = sketch_of(&plan, &keyed(&values, &keys), 1).unwrap();
    let (mut both, mut others) = (day.clone(), day.clone());
    both.merge(&day).unwrap();
    others.merge_other_people(&day).unwrap();
    assert_eq!((both.person_rows(), others.person_rows()), (Some(6), Some(3)));
    let budget = Budget::new(1.0, 1e-6).unwrap();
    let noise = |s: &Sketch| Release::of(s, budget, &[]).unwrap().spendings()[0].deviation();
    assert!((noise(&both) / noise(&others) - 2.0).abs() < 1e-3);
    assert!(matches!(both.subtract(&day), Err(Error::PeopleSubtracted { .. })));
    let promise = Release::of(&both, budget, &[]).unwrap().promise();
    assert!(promise.contains("all rows of one 'user', of which 6 count at most"), "{promise}");
    // The rows that count can only be determined from all rows with their keys.
    let table = Table::unnamed(2, values.clone()).unwrap();
    assert!(sketch_of(&plan, &table, 1).unwrap_err().to_string().contains("keys"));
    let mut accumulator = Accumulator::new(plan.clone(), EngineKind::Cpu);
    let block = Block { values, columns: 2, ..Block::default() };
    assert!(accumulator.push(&block, Invalid::Skip).is_err());
    // Two rounds protect the same unit.
    let of_people = Release::of(&day, budget, &[]).unwrap();
    let of_rows = Release::of(&sketch(&plan_for_rows(), vec![0.0; 20]), budget, &[]).unwrap();
    let mut people = bounds(2, 6.0);
    people.people = Some(People::new("user", 9).unwrap());
    assert!(after(people.clone(), &of_people).unwrap().spent > 0);
    assert!(after(bounds(2, 6.0), &of_rows).unwrap().spent > 0);
    assert!(after(people, &of_rows).unwrap_err().to_string().contains("people by 'user'"));
    assert!(after(bounds(2, 6.0), &of_people).unwrap_err().to_string().contains("single rows"));
}

fn plan_for_rows() -> Arc<Plan> {
    plan(2, 5, &["cells"])
}

/// Rows that differ by less than single precision are different rows: the choice of the rows that
/// count does not depend on threads.
#[test]
fn rows_that_are_nearly_equal_count_by_their_own_hash() {
    let plan = people_plan(1, &["cells", "moments"]);
    let (mut values, mut keys) = (Vec::new(), Vec::new());
    for i in 0..4000u32 {
        values.extend([1.0 + f64::from(i % 40) * 1e-9, 0.5]);
        keys.push(format!("user-{}", i / 40));
    }
    let table = keyed(&values, &keys);
    let bytes = sketch_of(&plan, &table, 1).unwrap().to_bytes();
    for threads in [2, 4, 8] {
        assert_eq!(sketch_of(&plan, &table, threads).unwrap().to_bytes(), bytes, "{threads}");
    }
}

/// Two clusters in a corner of wide bounds, all in one cell of the first round: the second round
/// places landmarks there.
#[test]
fn a_second_round_looks_where_the_first_saw_rows() {
    let corner = |n: usize| rows(2, n, 3).iter().map(|x| x + 50.0).collect::<Vec<f64>>();
    let bounds = || PrivateParams::new(names(2).into_iter().map(|name| (name, 0.0, 5000.0)));
    let plan_of = |(private, table): (PrivateParams, Table)| {
        Arc::new(
            plan_for(&table, PlanParams::default().landmarks(200).private(private)).unwrap().plan,
        )
    };
    let first = plan_of(made_up(bounds(), None, 0).unwrap());
    let half = Budget::new(0.5, 1e-6).unwrap();
    let release = Release::of(&sketch(&first, corner(100_000)), half, &[]).unwrap();
    let second = plan_of(made_up(bounds(), Some(&release), 0).unwrap());
    assert!(second.landmark_rows().len() > 150);
    let near = |row: &Vec<f64>| row.iter().all(|x| *x < 500.0);
    let there = second.landmark_rows().iter().filter(|row| near(row)).count();
    assert!(there > 100, "{there}");
}

#[test]
fn an_estimate_is_no_sketch_of_rows() {
    let plan = plan(2, 20, &["cells", "kernel"]);
    let exact = sketch(&plan, rows(2, 20_000, 3));
    let budget = Budget::new(1.0, 1e-6).unwrap();
    let release = Release::of(&exact, budget, &[]).unwrap();
    assert!(release.signal() > 100.0);
    let estimate = release.estimate().unwrap();
    assert!(estimate.released().unwrap().contains("ε = 1"));
    let refused = |result: Result<()>| matches!(result, Err(Error::Released { .. }));
    assert!(refused(estimate.clone().merge(&exact)) && refused(exact.clone().subtract(&estimate)));
    assert!(refused(Release::of(&estimate, budget, &[]).map(|_| ())));
    let model = fit(&estimate, &FitParams::new(Task::Gmm, 3)).unwrap();
    assert!(model.report.notes.iter().any(|n| n.contains("learned from a release")));
    assert!(nysketch::decoder::explain(&estimate, &model).unwrap().is_none());
    let model = fit(&exact, &FitParams::new(Task::Kmeans, 3)).unwrap();
    assert!(model.report.notes.iter().any(|n| n.contains("not private")));
    // No rows at all: no cell is above the noise.
    let nothing = Release::of(&sketch(&plan, vec![]), budget, &[]).unwrap();
    assert!(nothing.signal() < 10.0);
}

/// A plan of three columns for the attack: the first has a bound of 2⁶⁸ units, which integers of 64
/// bits do not hold, so that its
/// rows are not clipped; the others have bounds a hair's width apart.
fn plan_without_noise(high: f64) -> Plan {
    let mut plan = Plan::clone(&plan(3, 5, &["moments"]));
    let unit = 2f64.powi(plan.frame.exponent[0]);
    let centre = plan.frame.centre.clone();
    let private = plan.private.as_mut().unwrap();
    for j in [1, 2] {
        (private.low[j], private.high[j]) = (centre[j] - unit, centre[j] + unit);
    }
    private.high[0] = high;
    plan
}

/// Another party's plan claimed Δ² of a few units while a column counted unclipped, so that a
/// release at ε = 0.1 held its sum
/// nearly exactly. Each use of such a plan is refused, by the name of the column and of the bound.
#[test]
fn bounds_that_integers_do_not_hold_are_refused() {
    let budget = Budget::new(0.1, 1e-9).unwrap();
    for high in [1e13, 1e30, 1e300, f64::MAX] {
        let plan = Arc::new(plan_without_noise(high));
        assert!(high / 2f64.powi(plan.frame.exponent[0]) > 2f64.powi(64));
        let refused = |result: Result<()>| {
            let message = result.unwrap_err().to_string();
            assert!(message.contains("`bounds`") && message.contains("'c0'"), "{message}");
            assert!(message.contains(&format!("high = {high}")), "{message}");
        };
        refused(Plan::from_bytes(&plan.to_bytes()).map(drop));
        // A sketch of a plan that was never read.
        let sketch = sketch(&plan, rows(3, 500, 1));
        assert_eq!(sketch.rows(), 500);
        refused(Sketch::from_bytes(&sketch.to_bytes()).map(drop));
        refused(Release::of(&sketch, budget, &[]).map(drop));
        refused(ExpectedNoise::of(&plan, budget).map(drop));
        for mechanism in Mechanism::of_plan(&plan) {
            refused(mechanism.sensitivity(&plan).map(drop));
        }
        // Three parties that share the noise.
        let shared = Shared::new(3, 2).ok();
        refused(Terms::new(&plan, budget, &[], None, shared).map(drop));
    }
}

/// A plan that no row moves would have no noise.
#[test]
fn bounds_that_round_to_nothing_are_refused() {
    let mut plan = plan_without_noise(1.0);
    let tiny = 0.4 * 2f64.powi(plan.frame.exponent[0]);
    let centre = plan.frame.centre.clone();
    let private = plan.private.as_mut().unwrap();
    private.low = centre.iter().map(|c| c - tiny).collect();
    private.high = centre.iter().map(|c| c + tiny).collect();
    let error = Plan::from_bytes(&plan.to_bytes()).unwrap_err().to_string();
    assert!(error.contains("`bounds`") && error.contains("one unit"), "{error}");
    assert!(Mechanism::Totals.sensitivity(&plan).is_err());
}

/// A row at the bounds moves totals and products by exactly what is claimed.
#[test]
fn claims_of_moments_are_attained() {
    let plan = plan(4, 3, &["moments"]);
    let corner = vec![6.0, -6.0, 6.0, 6.0];
    let (without, with) = (sketch(&plan, vec![]), sketch(&plan, corner));
    let far = |j: usize| (6.0 + plan.frame.centre[j].abs()) / 2f64.powi(plan.frame.exponent[0]);
    for mechanism in [Mechanism::Totals, Mechanism::Products] {
        let moved = mechanism.exact(&with).unwrap();
        assert!(mechanism.exact(&without).unwrap().iter().all(|x| *x == 0));
        let moved: f64 = moved.iter().map(|x| (*x as f64).powi(2)).sum();
        let claimed: f64 = mechanism.sensitivity(&plan).unwrap().to_string().parse().unwrap();
        assert!(moved <= claimed * (1.0 + 1e-12));
        // The centre of a column is not zero, so one of the two bounds is farther.
        let farthest: f64 = (0..4).map(|j| far(j).powi(2)).sum();
        if mechanism == Mechanism::Totals {
            assert!((claimed / farthest - 1.0).abs() < 1e-6, "{claimed} {farthest}");
        }
    }
}

#[test]
fn expected_noise_is_in_the_units_of_columns() {
    let bounds = [("age".into(), 0.0, 120.0), ("height".into(), 30.0, 250.0)];
    let private = PrivateParams::new(bounds);
    let anywhere = private.anywhere(2000, 0).unwrap();
    let params = PlanParams::default().landmarks(50).scale(Scale::Standard).private(private);
    let plan = Arc::new(plan_for(&anywhere, params).unwrap().plan);
    let budget = Budget::new(1.0, 1e-6).unwrap();
    let noise = ExpectedNoise::of(&plan, budget).unwrap();
    let table = Table::new(vec!["age".into(), "height".into()], vec![30.0, 180.0]).unwrap();
    let sketch = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
    let release = Release::of(&sketch, budget, &[]).unwrap();
    let sums = &release.spendings()[1];
    for (j, column) in noise.columns.iter().enumerate() {
        let unit = 2f64.powi(plan.frame.exponent[0]) * plan.frame.scale[j];
        assert_eq!(column.cell_sum, Some(sums.deviation() * unit));
        assert_eq!(column.cell_mean, Some(sums.deviation() * unit / 1000.0));
        assert_eq!((column.column.as_str(), column.total), (["age", "height"][j], None));
    }
    let names: Vec<&str> = noise.mechanisms.iter().map(|m| m.name).collect();
    assert_eq!(names, ["counts", "sums", "squares"]);
    assert_eq!(noise.mechanisms[0].sensitivity, 1.0);
    let radius = plan.private.as_ref().unwrap().radius_in(&plan.frame);
    assert!((noise.mechanisms[1].sensitivity / radius - 1.0).abs() < 1e-9);
}
