//! `nysketch inspect`: shows the contents of a file.

use super::files::{read_any, read_masked, read_model};
use super::parties::in_groups;
use super::witnesses::plan_beside;
use super::{private_plan, privatize};
use crate::args::{Common, InputArgs, Inspect};
use crate::input;
use crate::kind::Kind;
use crate::output::{
    Usage, count, extended, list, name, note, percent, result, short, size, thousands,
};
use crate::progress::Bar;
use anyhow::Result;
use nysketch::decoder::Explanation;
use nysketch::format::File;
use nysketch::inspect::{InspectParams, Inspection, RawRows, inspect};
use nysketch::privacy::{Budget, ExpectedNoise, ROWS_OF_MEAN};
use nysketch::theory::{Basis, Theory, TheoryParams};
use nysketch::{Contained, Plan, Recipe, Sketch};
use nysketch_report::words::columns;
use nysketch_report::words::describe::{
    clusters_json, doubts, estimated, folds_text, measured_at, mixture_json, notes, one_line,
    protected, raw_rows, summary, table,
};
use nysketch_tables::{Columns, Dataset, Extras, ReadOptions};
use serde_json::json;
use std::path::Path;

pub fn run(args: &Inspect, common: &Common) -> Result<()> {
    if Kind::of(&args.file).is_ok_and(|kind| kind == Kind::Model) {
        return inspect_model(args, common);
    }
    if Kind::of(&args.file).is_ok_and(|kind| kind == Kind::Masked) {
        return inspect_masked(args, common);
    }
    let (decoded, bytes) = read_any(&args.file)?;
    let estimate = match &decoded {
        File::Release(release) => Some(release.estimate()?),
        _ => None,
    };
    let (plan, sketch, release) = match &decoded {
        File::Plan(plan) => (plan, None, None),
        File::Sketch(sketch) => (sketch.plan(), Some(sketch), None),
        File::Release(release) => (release.plan(), estimate.as_ref(), Some(release)),
        File::Masked(masked) => (masked.plan(), None, None),
    };
    if release.is_some() && (args.model.is_some() || args.theory) {
        let message = "--model and --theory compare sums with the noise of sampling, which is not \
            all the noise of a release";
        return Err(Usage(message.into()).into());
    }
    let model = args.model.as_deref().map(read_model).transpose()?;
    let rows = args.rows.as_deref().map_or(Ok(Vec::new()), |file| rows_of(file, plan))?;
    let theory = args.theory.then_some(
        TheoryParams::new(args.k)
            .lambda(args.lambda)
            .delta(args.delta)
            .known_variance(args.known_variance)
            .secants(args.secants)
            .rows(rows),
    );
    // The theory needs the retained rows, which a sketch without them takes from the plan next to
    // it.
    let beside = match sketch {
        Some(sketch) if args.theory && args.rows.is_none() && sketch.rows() > 0 => {
            with_witnesses(sketch, &args.file, common)?
        }
        _ => None,
    };
    let params = InspectParams { model: model.as_ref(), theory };
    let mut found = inspect(plan, beside.as_ref().or(sketch), &params)?;
    // Count only the retained rows in the file itself.
    found.plan.witnesses = RawRows::of_plan(plan).witnesses;
    if let Some(release) = release {
        // A release contains no skipped rows and no coverage.
        (found.kind, found.skipped, found.missed) = ("release", None, None);
        found.rows = Some(release.rows());
    }
    let mut json = serde_json::to_value(&found)?;
    json["file"] = name(&args.file);
    json["bytes"] = json!(bytes);
    if plan.private.is_some() {
        json["private"] = private_plan::described(plan);
    }
    let noise = expected_noise(args, plan, release.is_some())?;
    if let Some(noise) = &noise {
        json["noise"] = json!(noise.as_ref().ok());
    }
    if let Some(release) = release {
        json["release"] = json!({
            "epsilon": release.budget().epsilon, "delta": release.budget().delta,
            "rho": release.rho().value(), "total_rho": release.total().value(), "mechanisms": release.summary(),
        });
    }
    let raw = match (sketch, release) {
        (Some(sketch), None) => RawRows::of_sketch(sketch),
        _ => RawRows::of_plan(plan),
    };
    json["raw_rows"] = json!(raw.total());
    let mut text = text(args, plan, &found, raw, bytes);
    match &noise {
        Some(Ok(noise)) => noise_lines(noise, &mut text),
        Some(Err(why)) => text.push_str(&format!("\nno noise is shown: {why}\n")),
        None => {}
    }
    if let Some(table) = &args.contains {
        if release.is_some() {
            let message = "--contains belongs to plans and sketches; a release holds no rows";
            return Err(Usage(message.into()).into());
        }
        let found = contained(table, plan, sketch, common)?;
        json["contains"] = json!(found);
        text.push_str(&contained_text(table, &args.file, &found));
    }
    if let Some(release) = release {
        text.push_str(&format!(
            "\nall sums have noise: {}\n{}",
            release.promise(),
            privatize::noise(release)
        ));
    }
    result(common, &json, text.trim_end())
}

/// ε and δ of the displayed noise if `--noise` is not given.
const SHOWN_NOISE: [f64; 2] = [1.0, 1e-6];

/// Returns the noise of a release of a private plan; the inner error explains why none is possible.
fn expected_noise(
    args: &Inspect,
    plan: &Plan,
    release: bool,
) -> Result<Option<std::result::Result<ExpectedNoise, nysketch::Error>>> {
    if plan.private.is_none() || release {
        if args.noise.is_empty() {
            return Ok(None);
        }
        let message = "--noise belongs to private plans and their sketches, which are not released";
        return Err(Usage(message.into()).into());
    }
    let [epsilon, delta] = match args.noise[..] {
        [] => SHOWN_NOISE,
        [epsilon, delta] => [epsilon, delta],
        _ => return Err(Usage("--noise needs two numbers, ε and δ, such as 1,1e-6".into()).into()),
    };
    Ok(Some(ExpectedNoise::of(plan, Budget::new(epsilon, delta)?)))
}

/// Prints the noise of each mechanism, and of each column in its own unit.
fn noise_lines(noise: &ExpectedNoise, text: &mut String) {
    text.push_str(&format!(
        "\na release with ε = {}, δ = {:e} has this noise (--noise E,D shows another)\n",
        noise.epsilon, noise.delta
    ));
    text.push_str(&format!("  {:10} {:>10} {:>14} {:>14}\n", "sums", "numbers", "Δ", "noise"));
    for m in &noise.mechanisms {
        let numbers = thousands(m.numbers as u64);
        let (sensitivity, deviation) = (short(m.sensitivity), short(m.noise));
        text.push_str(&format!(
            "  {:10} {numbers:>10} {sensitivity:>14} {deviation:>14}\n",
            m.name
        ));
    }
    let Some(first) = noise.columns.first() else { return };
    let mean = format!("mean of {}", count(ROWS_OF_MEAN, "row"));
    let headers = [
        ("sum of a cell", first.cell_sum),
        (&mean, first.cell_mean),
        ("sum of all rows", first.total),
    ];
    let shown = headers.iter().filter(|(_, value)| value.is_some());
    let header: String = shown.map(|(name, _)| format!(" {name:>20}")).collect();
    text.push_str(&format!("\nin the units of the columns\n  {:20}{header}\n", "column"));
    for column in noise.columns.iter().take(LISTED) {
        let values = [column.cell_sum, column.cell_mean, column.total].into_iter().flatten();
        let values: String = values.map(|value| format!(" {:>20}", short(value))).collect();
        text.push_str(&format!("  {:20}{values}\n", one_line(&column.column)));
    }
    if noise.columns.len() > LISTED {
        text.push_str(&format!(
            "  … and {}\n",
            count((noise.columns.len() - LISTED) as u64, "more column")
        ));
    }
}

/// Returns the sketch with the retained rows of its plan, if only a plan next to it contains them.
fn with_witnesses(sketch: &Sketch, path: &Path, common: &Common) -> Result<Option<Sketch>> {
    if !sketch.plan().lacks_witnesses() {
        return Ok(None);
    }
    let Some((file, plan)) = plan_beside(path, sketch.plan()) else { return Ok(None) };
    note(common, &format!("retained rows for the theory come from {}", file.display()));
    Ok(Some(sketch.clone().with_witnesses_of(&plan)?))
}

/// Searches a file for the rows of a table.
fn contained(
    table: &Path,
    plan: &Plan,
    sketch: Option<&Sketch>,
    common: &Common,
) -> Result<Contained> {
    let input = InputArgs { skip_invalid: true, ..InputArgs::of(table) };
    let source = input::open_for_plan(&input, plan, Extras::default())?;
    let bar = Bar::reading("comparing", &source, common.quiet);
    Ok(Contained::of(plan, sketch, &source, common.threads(), &bar)?)
}

fn contained_text(table: &Path, file: &Path, found: &Contained) -> String {
    let (table, file) = (table.display(), file.display());
    let mut text = match found.found {
        0 => format!("\nnone of the {} of {table} stands in {file}", count(found.rows, "row")),
        n => format!(
            "\n{} of the {} of {table} stand in {file}: {} as landmarks, {} as witnesses, {} alone \
             in a cell",
            thousands(n),
            count(found.rows, "row"),
            thousands(found.landmarks),
            thousands(found.witnesses),
            thousands(found.alone)
        ),
    };
    if found.not_compared > 0 {
        let rows = count(found.not_compared, "row");
        text.push_str(&format!("\n{rows} could not be compared: numbers are missing"));
    }
    if found.witnesses_elsewhere {
        text.push_str("\nretained rows are kept in the plan's own file: look there, too");
    }
    text.push('\n');
    text
}

/// Prints the party of a masked sketch; only the sum of all parties contains the rest.
fn inspect_masked(args: &Inspect, common: &Common) -> Result<()> {
    if args.theory || args.model.is_some() || args.contains.is_some() || !args.noise.is_empty() {
        let message = "--model, --theory, --contains and --noise belong to a sketch; the file is a \
            masked sketch";
        return Err(Usage(message.into()).into());
    }
    let (masked, bytes) = read_masked(&args.file)?;
    let (label, plan) = (masked.label(), masked.plan());
    let json = json!({
        "file": name(&args.file), "kind": "masked", "party": label.party.id(),
        "public": label.party.public().to_string(), "parties": label.parties,
        "parties_fingerprint": label.parties_fingerprint, "session": label.session.as_str(),
        "columns": plan.columns, "fingerprint": plan.fingerprint(), "bytes": bytes,
        "noise": masked.terms().map(|t| json!({
            "epsilon": t.budget.epsilon, "delta": t.budget.delta, "rho": t.rho().value(), "person_rows": t.person_rows,
            "honest": t.shared.map(|s| s.honest),
        })),
    });
    let mut text = format!("{}: a masked sketch, {}\n", args.file.display(), size(bytes));
    line(&mut text, "party", &format!("{}, one of {}", label.party.id(), label.parties));
    line(&mut text, "session", label.session.as_str());
    line(&mut text, "parties", &in_groups(&label.parties_fingerprint));
    plan_lines(plan, &mut text);
    line(&mut text, "fingerprint", &plan.fingerprint());
    if let Some(terms) = masked.terms() {
        line(&mut text, "noise", &format!("a share for {}", terms.promise(plan)));
    }
    line(
        &mut text,
        "contains",
        "sums that only the masked sketches of all parties reveal together",
    );
    result(common, &json, &text)
}

/// Prints a model in the same form as `fit`.
fn inspect_model(args: &Inspect, common: &Common) -> Result<()> {
    if args.theory || args.model.is_some() || args.contains.is_some() || !args.noise.is_empty() {
        let message =
            "--model, --theory, --contains and --noise belong to a sketch; the file is a model";
        return Err(Usage(message.into()).into());
    }
    let model = read_model(&args.file)?;
    let mut json = json!({
        "file": name(&args.file), "kind": "model", "schema": model.schema, "task": model.task, "k": model.k(),
        "rows": model.rows, "columns": model.columns, "scale": model.scale, "fingerprint": model.plan,
        "decoder": model.report.decoder, "status": model.report.status, "clusters": clusters_json(&model),
    });
    extended(&mut json, mixture_json(&model));
    let risk = model.report.likelihood.map(|l| -l.mean);
    if let Some(risk) = risk {
        json["estimated_risk"] = json!(risk);
    }
    let mut text = format!("{}: a model, {}\n", args.file.display(), summary(&model));
    line(&mut text, "rows", &thousands(model.rows));
    recipe_lines(&mut text, &model.recipe, &model.columns);
    if model.scale.iter().any(|s| *s != 1.0) {
        line(&mut text, "scale", "columns are divided by their scale before distances are taken");
    }
    line(&mut text, "learned by", &model.report.decoder);
    if let Some(risk) = risk {
        line(&mut text, "likelihood", &estimated(&model, risk));
    }
    if let Some(threshold) = model.densities.as_ref().and_then(|d| d.threshold(0.01)) {
        let below = format!("1 % of the rows have a log density below {}", short(threshold));
        line(&mut text, "densities", &below);
    }
    notes(&model).iter().for_each(|note| line(&mut text, "note", note));
    line(&mut text, "plan", &model.plan);
    text.push_str(&format!("\n{}", table(&model)));
    doubts(&model).iter().for_each(|doubt| text.push_str(&format!("{doubt}\n")));
    result(common, &json, &text)
}

/// Prints the measured columns of the table and the bounds of their rows.
fn recipe_lines(text: &mut String, recipe: &Recipe, columns: &[String]) {
    let names = |names: &[String]| {
        let shown: Vec<String> = names.iter().take(12).map(|name| one_line(name)).collect();
        let more = if names.len() > shown.len() { ", …" } else { "" };
        format!("{}: {}{more}", names.len(), shown.join(", "))
    };
    line(text, "columns", &names(&recipe.inputs()));
    if !recipe.categories.is_empty() {
        let categories: Vec<String> = recipe.categories.iter().map(|c| c.name.clone()).collect();
        line(text, "categories", &names(&categories));
    }
    if let Some(least) = recipe.least_present {
        let all = columns.len() + recipe.categories.len();
        let rows = format!("rows count by the values they have, at least {least} of {all}");
        line(text, "missing", &rows);
    }
}

fn text(args: &Inspect, plan: &Plan, found: &Inspection, raw: RawRows, bytes: usize) -> String {
    let mut text = format!("{}: a {}, {}\n", args.file.display(), found.kind, size(bytes));
    if let Some(rows) = found.rows {
        let about = if found.kind == "release" { "about " } else { "" };
        line(&mut text, "rows", &format!("{about}{}", rows_text(found, rows)));
    }
    if let Some(folds) = &found.folds {
        line(&mut text, "folds", &folds_text(folds));
    }
    plan_lines(plan, &mut text);
    if found.ranks.is_some() {
        bandwidth_table(found, &mut text);
    } else {
        line(&mut text, "bandwidths", &format!("σ² {}", list(&plan.bandwidths)));
    }
    line(&mut text, "fingerprint", &found.plan.fingerprint);
    line(&mut text, "contains", &raw_rows(raw));
    if plan.lacks_witnesses() {
        line(&mut text, "witnesses", &witnesses_elsewhere(&args.file, plan));
    }
    if let (Some(file), Some(explanation)) = (&args.model, &found.model) {
        model_lines(file, explanation, &mut text);
    }
    text.push_str(&format!("\n{}", columns::table(&found.roles, LISTED)));
    if let Some(theory) = &found.theory {
        theory_lines(theory, &mut text);
    }
    text
}

/// Maximum number of columns that are listed.
const LISTED: usize = 60;

fn line(text: &mut String, name: &str, value: &str) {
    text.push_str(&format!("  {name:12} {value}\n"));
}

fn rows_text(found: &Inspection, rows: u64) -> String {
    let mut text = match &found.weights {
        None => thousands(rows),
        Some(w) => format!(
            "total weight {} (column '{}', in units of {})",
            short(rows as f64 * w.unit),
            w.column,
            w.unit
        ),
    };
    if let Some(skipped) = found.skipped.filter(|n| *n > 0) {
        text.push_str(&format!(", {} skipped as invalid", thousands(skipped)));
    }
    if let Some(complete) = found.complete.filter(|complete| *complete < rows) {
        let share = percent(complete as f64 / rows as f64);
        text.push_str(&format!(", {share} complete"));
    }
    text
}

fn plan_lines(plan: &Plan, text: &mut String) {
    recipe_lines(text, &plan.recipe, &plan.columns);
    if plan.frame.scale.iter().any(|s| *s != 1.0) {
        line(text, "scale", "columns are divided by the numbers below");
    }
    line(text, "measured at", &measured_at(plan));
    if let Some(private) = &plan.private {
        line(text, "private", &format!("protects {}", protected(plan)));
        let bounds = plan.columns.iter().zip(private.low.iter().zip(&private.high));
        let bounds: Vec<String> = bounds
            .map(|(c, (low, high))| format!("{c} {}..{}", short(*low), short(*high)))
            .collect();
        line(text, "bounds", &bounds.join(", "));
        if private.radius > 0 {
            let radius = short(private.radius_in(&plan.frame));
            line(
                text,
                "radius",
                &format!("in cells, rows count within {radius} of their landmark"),
            );
        }
    }
    line(text, "collects", &plan.collect.names().join(", "));
}

/// Prints one line per bandwidth, with rank and condition only if they were computed.
fn bandwidth_table(found: &Inspection, text: &mut String) {
    let missed = found.missed.as_deref().unwrap_or(&[]);
    let dimensions = found.dimensions.as_ref();
    let mut header = format!("{:>12} {:>10} {:>12}", "σ²", "rank", "condition");
    if !missed.is_empty() {
        header.push_str("  missed at most");
    }
    if dimensions.is_some() {
        header.push_str(&format!(" {:>9} {:>9} {:>12}", "N(λ)", "N∞(λ)", "noise floor"));
    }
    line(text, "bandwidths", &header);
    for (i, sigma2) in found.plan.bandwidths.iter().enumerate() {
        let (rank, condition) = rank_text(found, i);
        let mut row = format!("{:>12} {rank:>10} {condition:>12}", short(*sigma2));
        if let Some(share) = missed.get(i) {
            row.push_str(&format!(" {:>14.2}%", 100.0 * share));
        }
        if let Some(d) = dimensions {
            row.push_str(&format!(
                " {:>9.1} {:>9.1} {:>12}",
                d.effective_dimension[i],
                d.largest_leverage[i],
                d.noise_floor.get(i).map_or("-".to_string(), |f| short(*f))
            ));
        }
        line(text, "", &row);
    }
    if let Some(d) = dimensions {
        let at = short(d.lambda);
        let note =
            format!("(effective dimensions at λ = 1/√n = {at}, from the landmarks: lower bounds)");
        line(text, "", &note);
    }
    if found.ranks.as_ref().is_some_and(|r| r.rank.is_empty()) {
        line(text, "", "(rank and condition are left out: they would take long)");
    }
}

/// Returns the rank, such as "50/60", and the condition of one bandwidth.
fn rank_text(found: &Inspection, rung: usize) -> (String, String) {
    let of = found.plan.landmarks.unwrap_or(0);
    match found.ranks.as_ref().filter(|r| rung < r.rank.len()) {
        Some(ranks) => (format!("{}/{of}", ranks.rank[rung]), short(ranks.condition[rung])),
        None => ("-".to_string(), "-".to_string()),
    }
}

/// Prints whether a mixture explains the sketch.
fn model_lines(file: &Path, explanation: &Explanation, text: &mut String) {
    line(text, "model", &format!("{}: {}", file.display(), explanation.verdict.text()));
    line(text, "", &format!("{:>12} {:>12} {:>12}", "σ²", "residual", "noise floor"));
    for r in &explanation.residuals {
        let numbers = [r.sigma2, r.residual, r.floor].map(short);
        line(text, "", &format!("{:>12} {:>12} {:>12}", numbers[0], numbers[1], numbers[2]));
    }
}

/// Prints the requirements of the theorems and the values of the data.
fn theory_lines(t: &Theory, text: &mut String) {
    let whole = |x: f64| if x < 1e12 { thousands(x.ceil() as u64) } else { short(x) };
    let model = if t.known_variance > 0.0 { "Gaussians" } else { "Diracs" };
    text.push_str(&format!(
        "\ntheory at σ² = {}, δ = {}, mixtures of {} {model}, {} sampled pairs, the worst ones \
         improved\n",
        short(t.sigma2),
        t.delta,
        t.k,
        t.secants
    ));
    let sampled = thousands(t.sampled as u64);
    let (of, decisive) = match t.basis {
        Basis::Rows => ("rows; pairs at others", true),
        Basis::Witnesses => ("retained rows; pairs at others", true),
        _ => ("landmarks, which the pairs also use; --rows FILE gives better estimates", false),
    };
    line(text, "Σ", &format!("estimated from {sampled} {of}; ‖Σ‖ = {}", short(t.norm)));
    line(text, "λ_t (13)", &format!("{} for t = {}", short(t.lambda), short(t.t)));
    line(
        text,
        "(19)",
        &match (t.holds, t.constant) {
            (Some(true), Some(c)) => {
                format!("holds, 3λt = {}, with C = {} C_F", short(t.condition), short(c))
            }
            (Some(_), _) => format!(
                "does not hold at this λ: 3λt = {}, even {} at rows that Σ has seen; smaller λ \
                 cannot be decided",
                short(t.condition),
                short(t.seen_condition)
            ),
            (None, _) => format!(
                "cannot be decided from {}: 3λt = {}, but {} at rows that Σ has seen",
                if decisive { "these rows" } else { "this sketch" },
                short(t.condition),
                short(t.seen_condition)
            ),
        },
    );
    line(
        text,
        "N(λ)",
        &format!(
            "at least {} (from half of the rows {})",
            short(t.effective_dimension),
            short(t.half_dimension)
        ),
    );
    line(
        text,
        "N∞(λ)",
        &if decisive {
            format!(
                "between {} and {} (at most 1/λ = {})",
                short(t.seen_leverage.min(t.largest_leverage)),
                short(t.seen_leverage.max(t.largest_leverage)),
                short(1.0 / t.lambda)
            )
        } else {
            format!(
                "at least {} (at most 1/λ = {})",
                short(t.largest_leverage),
                short(1.0 / t.lambda)
            )
        },
    );
    line(text, "(20)", &format!("m ≥ {} landmarks drawn uniformly", whole(t.uniform)));
    line(
        text,
        "(21)",
        &format!(
            "m ≥ {} landmarks by exact leverage scores; n ≥ {}, λ ≥ {}: {}",
            whole(t.leverage),
            whole(t.least_rows),
            short(t.least_lambda),
            if t.leverage_holds() { "met" } else { "not met" }
        ),
    );
    line(
        text,
        "prop. 4.1",
        &match t.source {
            Some(s) => format!(
                "γ_s = {} at s = {:.2}: λ = {}, and by (64) m ≥ {} for C = 2 C_F",
                short(s.gamma),
                s.s,
                short(s.lambda),
                whole(s.m)
            ),
            None => "no s gives a finite size".to_string(),
        },
    );
    line(
        text,
        "LRIP (25)",
        &format!(
            "‖A(μ)‖/‖A_m(μ)‖ is {} at the largest found, {} in the median of the pairs",
            short(t.distortion[0]),
            short(t.distortion[1])
        ),
    );
    if let Some(risk) = &t.risk {
        let excess = risk.excess.map_or(String::new(), |e| format!("; CL-OMPR has {}", short(e)));
        line(
            text,
            "(18)",
            &format!(
                "allows an excess risk of {} or more in addition to the bias: C_F ≥ {}, ‖A(π − \
                 π_n)‖ ≈ {}{excess}",
                short(risk.bound),
                short(risk.constant),
                short(risk.noise)
            ),
        );
    }
    line(
        text,
        "in practice",
        &format!(
            "this sketch has {} landmarks; {} = 2k(d + 1) are enough in the experiments of \
             research/RESULTS.md",
            thousands(t.landmarks as u64),
            thousands(t.enough as u64)
        ),
    );
}

/// Returns the columns of the plan from a table.
fn rows_of(file: &Path, plan: &Plan) -> Result<Vec<Vec<f64>>> {
    let options = ReadOptions::default().columns(Columns::exactly(&plan.columns));
    Ok(Dataset::open([file], &options)?.read_all()?)
}

/// Returns the location of the plan's retained rows, which this file does not contain.
fn witnesses_elsewhere(path: &Path, plan: &Plan) -> String {
    match plan_beside(path, plan) {
        Some((found, _)) => format!("not in this file, but in {}", found.display()),
        None => "not in this file, but in that of the plan".to_string(),
    }
}
