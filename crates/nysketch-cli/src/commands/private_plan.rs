//! `nysketch plan --private`: creates a plan from public information only.

use super::files::read_release;
use super::plan::{params, tell_input};
use crate::args::{Common, InputArgs, PlanArgs};
use crate::input;
use crate::kind::Kind;
use crate::losses::Lost;
use crate::output::{Usage, count, list, name, note, result, short, size};
use crate::progress::Bar;
use crate::writing::{check_output, write_bytes};
use anyhow::{Context, Result};
use nysketch::inspect::PlanSummary;
use nysketch::privacy::Rho;
use nysketch::{Invalid, People, Plan, Planned, PrivateParams, make_plan};
use nysketch_report::words::describe::{measured_at, protected};
use nysketch_tables::{Columns, Extras};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;

pub fn run(args: &PlanArgs, common: &Common) -> Result<()> {
    let private = &args.private;
    let Some(output) = &args.output else {
        return Err(Usage("--private needs -o".into()).into());
    };
    let inputs = private.public.iter().chain(&private.release).chain(&private.bounds_from);
    check_output(common, output, Kind::Plan, inputs.map(|p| p.as_path()))?;
    let Planned { plan, report } = make(args, common)?;
    for remark in report.warnings.iter().chain(&report.notes) {
        note(common, remark);
    }
    let bytes = plan.to_bytes();
    write_bytes(output, &bytes)?;
    let summary = PlanSummary::new(&plan);
    let mut json = serde_json::to_value(&summary)?;
    json["file"] = name(output);
    json["bytes"] = json!(bytes.len());
    json["private"] = described(&plan);
    let radius = plan.private.as_ref().filter(|p| p.radius > 0).map(|p| {
        format!(
            "; in cells, rows count within {} of their landmark",
            short(p.radius_in(&plan.frame))
        )
    });
    let from = match (&private.public[..], &private.release) {
        ([], Some(release)) => format!("landmarks from the release {}", release.display()),
        ([], None) => "landmarks from all over the bounds".into(),
        _ => format!("landmarks from {}, which everybody may see", count(report.rows, "row")),
    };
    let people = protected(&plan);
    let text = format!(
        "{}: a private plan, {} for {}, {}\nprotects {people}\n{from}{}\nbandwidths σ² {}; \
         collects {}\nfingerprint {}",
        output.display(),
        measured_at(&plan),
        count(plan.dims() as u64, "column"),
        size(bytes.len()),
        radius.unwrap_or_default(),
        list(&plan.bandwidths),
        plan.collect.names().join(", "),
        summary.fingerprint,
    );
    result(common, &json, &text)
}

/// Returns the bounds of a private plan, in the units of its columns after their steps.
pub fn described(plan: &Plan) -> serde_json::Value {
    let Some(private) = &plan.private else { return json!(null) };
    let columns = plan.columns.iter().zip(private.low.iter().zip(&private.high));
    let bounds: Vec<_> = columns
        .map(|(column, (low, high))| json!({"column": column, "low": low, "high": high}))
        .collect();
    json!({
        "bounds": bounds,
        "radius": private.radius_in(&plan.frame),
        "spent_rho": Rho(private.spent).value(),
        "max_rows_per": private.people.as_ref().map(|p| json!({"column": p.column, "rows": p.rows})),
    })
}

fn make(args: &PlanArgs, common: &Common) -> Result<Planned> {
    let said = &args.private;
    let given = match &said.bounds_from {
        None => said.bounds.clone(),
        Some(path) => bounds_in(path)?,
    };
    let mut private = PrivateParams::new(given);
    private.radius = said.radius;
    let people = said.max_rows_per.as_ref();
    private.people = people.map(|(column, rows)| People::new(column, *rows)).transpose()?;
    let mut params = params(&args.input, &args.plan, common)?.device(args.device.device);
    params.log = args.plan.log.clone();
    params.column_weights = args.plan.weight_column.clone();
    // Check the parameters before opening any file.
    params.clone().private(private.clone()).check()?;
    if !said.public.is_empty() {
        // Invalid public rows are always skipped: they affect no one's privacy.
        let input =
            InputArgs { input: said.public.clone(), skip_invalid: true, ..args.input.clone() };
        params = params.invalid(Invalid::Skip);
        let columns = Columns::exactly(private.columns());
        let source = input::open(&input, columns, Extras::default(), false)?;
        tell_input(&source, common);
        let bar = Bar::reading("planning", &source, common.quiet);
        let made = make_plan(&source, &params.private(private).check()?, &bar)?;
        drop(bar);
        let Planned { plan, report } = &made;
        Lost::of_plan(&report.losses, plan, report.rows + report.losses.skipped()).tell(common, "");
        return Ok(made);
    }
    let release = said.release.as_deref().map(read_release).transpose()?;
    let made_up = nysketch::privacy::made_up(private, release.as_ref(), args.plan.seed);
    let (private, table) = match &said.release {
        None => made_up?,
        Some(path) => made_up.with_context(|| path.display().to_string())?,
    };
    Ok(make_plan(&table, &params.private(private).check()?, &())?)
}

/// Reads bounds from a TOML file, in file order.
fn bounds_in(path: &Path) -> Result<Vec<(String, f64, f64)>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let all: BTreeMap<String, Spanned<[f64; 2]>> =
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            // Messages show text in backquotes as an option.
            let why = error.message().replace('`', "'");
            Usage(format!("{name}: {why}; lines look like age = [0, 120]"))
        })?;
    let mut all: Vec<(String, Spanned<[f64; 2]>)> = all.into_iter().collect();
    all.sort_by_key(|(_, bounds)| bounds.span().start);
    let pair = |(column, bounds): (String, Spanned<[f64; 2]>)| {
        let [low, high] = bounds.into_inner();
        (column, low, high)
    };
    Ok(all.into_iter().map(pair).collect())
}
