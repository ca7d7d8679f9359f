//! `nysketch sketch --by COLUMN`: one sketch per value of a column.

use super::witnesses::Plans;
use crate::args::{Common, SketchArgs};
use crate::losses::Lost;
use crate::output::{Usage, count, name, note, result, size, thousands};
use crate::progress::Bar;
use crate::writing::go_on;
use anyhow::{Context, Result, anyhow, bail};
use nysketch::inspect::{PlanSummary, RawRows};
use nysketch::{Error, GroupParams, Groups, SketchParams, file};
use nysketch_report::words::columns;
use nysketch_report::words::describe::{measured_at, raw_rows};
use nysketch_tables::{Dataset, natural_order};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::Instant;

/// Fails before the work starts if the folder could not be written at the end.
pub fn check_folder(path: &Path) -> Result<()> {
    let name = path.display();
    if path == Path::new("-") {
        return Err(Usage("-o needs the name of a folder".into()).into());
    }
    if path.is_dir() {
        let mut entries =
            path.read_dir().with_context(|| format!("cannot read the folder {name}"))?;
        if entries.next().is_some() {
            bail!("the folder {name} is not empty; choose a new or empty folder");
        }
    } else if path.exists() {
        bail!("{name} is a file; with --by, the output must be a folder");
    }
    // Tests with a file next to the folder, as for a single output file.
    let probe = path.components().as_path().with_extension("nysketch-probe");
    file::check_writable(&probe).with_context(|| format!("cannot write {name}"))
}

pub fn run(
    args: &SketchArgs,
    column: &str,
    plans: &Plans,
    input: Option<&Dataset>,
    params: SketchParams,
    start: Instant,
    common: &Common,
) -> Result<()> {
    let plan = &plans.sketched;
    let by = GroupParams::new(column).limit(args.max_groups).folds(args.folds);
    let groups = match input {
        Some(input) => {
            let bar = Bar::reading("sketching", input, common.quiet);
            Groups::of(plan, input, by, params, &bar).map_err(|error| match error {
                Error::TooManyGroups { .. } => {
                    let memory = size(Groups::bytes_each(plan, by));
                    anyhow!("{error} (each group takes {memory} of memory)")
                }
                error => error.into(),
            })?
        }
        None => Groups::default(),
    };
    let skipped = groups.losses.skipped();
    let rows: u64 = groups.sketches.values().map(|s| s.counted()).sum();
    if rows == 0 && !args.allow_empty {
        return Err(Error::NoRows { skipped: skipped + groups.without_group }.into());
    }
    let lost = Lost::of_plan(&groups.losses, plan, groups.read);
    lost.check(&args.input)?;
    let mut listed = Vec::new();
    let cannot = || format!("cannot write {}", args.output.display());
    let folder = file::Folder::new(&args.output).with_context(cannot)?;
    let mut bytes = 0;
    if args.plan_file.is_none() {
        let contents = plans.whole.to_bytes();
        bytes += contents.len();
        folder.write(PLAN, &contents).with_context(cannot)?;
    }
    let mut sketches: Vec<_> = groups.sketches.iter().collect();
    sketches.sort_by(|a, b| natural_order(a.0, b.0));
    for (value, sketch) in sketches {
        go_on()?;
        let file = file_name(value);
        let contents = sketch.to_bytes();
        bytes += contents.len();
        folder.write(&file, &contents).with_context(cannot)?;
        listed.push(json!({
            "value": **value, "file": name(&args.output.join(&file)), "rows": sketch.counted(),
            "skipped": sketch.skipped(),
        }));
    }
    folder.persist().with_context(cannot)?;
    lost.tell(common, "; the sketches record how many");
    if let Some(remark) = plan.weighting.as_ref().and_then(|w| groups.rounding.note(w)) {
        note(common, &remark);
    }
    if groups.without_group > 0 {
        let rows = count(groups.without_group, "row");
        note(
            common,
            &format!("{rows} skipped because '{column}' is missing; no sketch counts them"),
        );
    }
    let seconds = start.elapsed().as_secs_f64();
    let mut json = serde_json::to_value(PlanSummary::new(plan))?;
    json["file"] = name(&args.output);
    let raw = RawRows::of_plan(plan);
    json["raw_rows"] = json!(raw.total());
    let mut revealed =
        format!("each sketch contains {}, and rows that are alone in a cell", raw_rows(raw));
    if args.plan_file.is_none() {
        json["plan"] = name(&args.output.join(PLAN));
        revealed
            .push_str(&format!("\n{PLAN} contains {}", raw_rows(RawRows::of_plan(&plans.whole))));
    }
    json["rows"] = json!(rows);
    json["skipped"] = json!(skipped);
    json["skipped_by_column"] = lost.json();
    json["without_group"] = json!(groups.without_group);
    json["groups"] = json!(listed);
    json["bytes"] = json!(bytes);
    json["seconds"] = json!(seconds);
    let text = format!(
        "{}: {} of {} × {} at {} in {}, {seconds:.1} s\n{revealed}",
        args.output.display(),
        match groups.sketches.len() {
            1 => "1 sketch".to_string(),
            n => format!("{} sketches", thousands(n as u64)),
        },
        count(rows, "row"),
        columns::measured(plan),
        measured_at(plan),
        size(bytes),
    );
    result(common, &json, &text)
}

/// Name of the plan's file, if the plan was made together with the groups.
const PLAN: &str = "plan.nys";

/// Returns the value followed by `.nys`. Characters that are unsuitable for a file name are written
/// as `%XX`.
fn file_name(value: &str) -> String {
    if value.is_empty() {
        return "%.nys".into();
    }
    if value.eq_ignore_ascii_case("plan") {
        // Avoids the name of the plan's file.
        return format!("%{:02X}{}.nys", value.as_bytes()[0], &value[1..]);
    }
    let mut name = String::new();
    for (i, c) in value.chars().enumerate() {
        if c.is_alphanumeric() || "-_+=, @".contains(c) || (c == '.' && i > 0) {
            name.push(c);
        } else {
            let mut buffer = [0; 4];
            c.encode_utf8(&mut buffer).bytes().for_each(|b| name.push_str(&format!("%{b:02X}")));
        }
    }
    // A name that is too long for file systems is cut and ends with a digest of the value. No other
    // name has two percent signs in a row.
    if name.len() > 200 {
        let cut = (0..=120).rev().find(|i| name.is_char_boundary(*i)).unwrap_or(0);
        let digest = Sha256::digest(value.as_bytes());
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        name = format!("{}%%{digits}", &name[..cut]);
    }
    name + ".nys"
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn file_names_are_safe_and_different() {
        assert_eq!(file_name("2024-01-31"), "2024-01-31.nys");
        assert_eq!(file_name("../Ö b"), "%2E.%2FÖ b.nys");
        assert_eq!(file_name("%2E"), "%252E.nys");
        assert_eq!(file_name(""), "%.nys");
        assert_eq!(
            (file_name("plan"), file_name("Plans")),
            ("%70lan.nys".into(), "Plans.nys".into())
        );
        let (a, b) = (file_name(&"é".repeat(300)), file_name(&"é".repeat(301)));
        assert!(a != b && a.len() < 250);
    }

    /// Checksums of 32 bits do not tell these two texts of a column apart.
    #[test]
    fn long_values_with_the_same_checksum_have_different_files() {
        let start = "x".repeat(210);
        let (a, b) = (format!("{start}plumless"), format!("{start}buckeroo"));
        assert_eq!(crc32fast::hash(a.as_bytes()), crc32fast::hash(b.as_bytes()));
        assert_ne!(file_name(&a), file_name(&b));
        // A short value never has the name of a long one.
        let name = file_name(&a);
        assert_ne!(file_name(name.strip_suffix(".nys").unwrap()), name);
    }
}
