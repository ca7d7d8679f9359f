//! `nysketch merge` and `nysketch subtract`.

use super::files::{read_masked, read_sketch, sketch_files};
use super::parties::read_parties;
use crate::args::{Common, Merge, Subtract};
use crate::kind::Kind;
use crate::output::{Usage, count, extended, name, note, result, size};
use crate::writing::{check_output, go_on, write_bytes};
use anyhow::{Context, Result, bail};
use nysketch::ledger::Ledgers;
use nysketch::masking::{Unmasked, Unmasking};
use nysketch::privacy::Release;
use nysketch::{Sketch, Sum, subtractions};
use nysketch_report::words::describe::amount;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub fn merge(args: &Merge, common: &Common) -> Result<()> {
    let files = sketch_files(&args.input, None, common)?;
    if all_masked(&files)? {
        return unmask(args, &files, common);
    }
    check_output(common, &args.output, Kind::Sketch, files.iter().map(PathBuf::as_path))?;
    if args.parties.is_some() {
        return Err(
            Usage("--parties belongs to masked sketches; these are plain ones".into()).into()
        );
    }
    let mut total: Option<Sketch> = None;
    let mut parts = Parts::default();
    for path in &files {
        let sketch = read(path, args.drop_folds)?;
        parts.add(path, &sketch, args.allow_duplicates)?;
        match &mut total {
            Some(total) => {
                let merged = if args.disjoint_people {
                    total.merge_other_people(&sketch)
                } else {
                    total.merge(&sketch)
                };
                merged.with_context(|| {
                    format!("cannot merge {} with {}", path.display(), files[0].display())
                })?;
            }
            None => total = Some(sketch),
        }
    }
    parts.tell_contained(common);
    let total = total.context("no sketch to merge")?;
    tell_people(&total, args, common);
    finish(&total, &args.output, json!({}), common)
}

/// Reports how many rows a person may have in a merge, because noise grows with that number.
fn tell_people(total: &Sketch, args: &Merge, common: &Common) {
    let (Some(people), Some(rows)) = (total.plan().people(), total.person_rows()) else { return };
    if rows > people.rows && !args.disjoint_people {
        let message = format!(
            "one '{}' may have {rows} rows in these sketches together, and the noise grows with \
             that number; use --disjoint-people if each person is in one sketch only",
            people.column
        );
        note(common, &message);
    }
}

/// Whether all files are masked sketches. Refuses a mixture of masked and plain ones.
fn all_masked(files: &[PathBuf]) -> Result<bool> {
    let masked = |path: &&PathBuf| Kind::of(path).is_ok_and(|kind| kind == Kind::Masked);
    let (Some(first), Some(other)) =
        (files.iter().find(masked), files.iter().find(|path| !masked(path)))
    else {
        return Ok(files.first().is_some_and(|path| masked(&path)));
    };
    // Report an unreadable or damaged file first.
    read_sketch(other)?;
    bail!(
        "{} is a masked sketch and {} a plain one; masked sketches are added up by themselves, all \
         files of one session and no others",
        first.display(),
        other.display()
    )
}

/// Adds the masked sketches of a session.
fn unmask(args: &Merge, files: &[PathBuf], common: &Common) -> Result<()> {
    if args.allow_duplicates || args.drop_folds || args.disjoint_people {
        let message = "--allow-duplicates, --drop-folds and --disjoint-people belong to plain \
            sketches; these are masked";
        return Err(Usage(message.into()).into());
    }
    let mut all = Unmasking::default();
    let mut kind = Kind::Sketch;
    for path in files {
        let masked = read_masked(path)?.0;
        if masked.terms().is_some() {
            kind = Kind::Release;
        }
        all.add(masked).with_context(|| format!("cannot add {}", path.display()))?;
    }
    check_output(common, &args.output, kind, files.iter().map(PathBuf::as_path))?;
    if let Some(list) = &args.parties {
        check_parties(&all, list)?;
    }
    let label = all.label().context("no sketch to merge")?;
    let more = json!({
        "session": label.session.as_str(), "parties": label.parties,
        "parties_fingerprint": label.parties_fingerprint,
    });
    match all.finish()? {
        Unmasked::Sketch(sketch) => finish(&sketch, &args.output, more, common),
        Unmasked::Release(release) => finish_release(&release, &args.output, more, common),
    }
}

/// Writes the release that the parties have computed together.
fn finish_release(release: &Release, output: &Path, more: Value, common: &Common) -> Result<()> {
    let bytes = release.to_bytes();
    write_bytes(output, &bytes)?;
    let mut json = json!({
        "file": name(output), "rows": release.rows(), "epsilon": release.budget().epsilon,
        "delta": release.budget().delta, "fingerprint": release.plan().fingerprint(), "bytes": bytes.len(),
    });
    extended(&mut json, more);
    let text = format!(
        "{}: a release of about {}, {}\n{}",
        output.display(),
        count(release.rows(), "row"),
        size(bytes.len()),
        release.promise()
    );
    result(common, &json, &text)
}

/// Checks that no masked sketch is missing; the error names the parties of missing ones.
fn check_parties(all: &Unmasking, list: &Path) -> Result<()> {
    let (parties, file) = (read_parties(list)?, list.display());
    let Some(label) = all.label() else { return Ok(()) };
    let (found, expected) = (parties.fingerprint(), &label.parties_fingerprint);
    if found != *expected {
        bail!(
            "{file} ({found}) is not the list of parties that these sketches were masked with \
             ({expected})"
        );
    }
    let there = |id: &str| all.parties().any(|party| party.id() == id);
    let missing: Vec<&str> =
        parties.list().iter().map(|party| party.id()).filter(|id| !there(id)).collect();
    if !missing.is_empty() {
        let session = &label.session;
        bail!(
            "missing in session {session}: {}; masks cancel only if no file is missing",
            missing.join(", ")
        );
    }
    Ok(())
}

pub fn subtract(args: &Subtract, common: &Common) -> Result<()> {
    let inputs = [args.from.as_path(), args.what.as_path()];
    check_output(common, &args.output, Kind::Sketch, inputs)?;
    let mut total = read(&args.from, args.drop_folds)?;
    let what = read(&args.what, args.drop_folds)?;
    go_on()?;
    let done = if args.no_ledger {
        total.subtract(&what)
    } else {
        let ledgers = Ledgers::of_user().context("--no-ledger subtracts without a ledger")?;
        subtractions::subtract(&mut total, &what, args.again, &ledgers)
    };
    done.with_context(|| {
        format!("cannot subtract {} from {}", args.what.display(), args.from.display())
    })?;
    if total.rows() == 0 {
        note(common, "no rows are left: the sketch is empty");
    }
    finish(&total, &args.output, json!({}), common)
}

fn read(path: &Path, drop_folds: bool) -> Result<Sketch> {
    let sketch = read_sketch(path)?;
    Ok(if drop_folds { sketch.without_folds() } else { sketch })
}

/// The merged sketches, to detect rows that are counted twice.
#[derive(Default)]
struct Parts<'a> {
    by_digest: HashMap<String, &'a Path>,
    /// Rows by cell, or kernel sums if cells are not kept. Every count of a part of a sketch is at
    /// most the count of the sketch.
    counts: Vec<(&'a Path, Vec<i128>)>,
}

impl<'a> Parts<'a> {
    /// Refuses a repeated sketch, unless it has no rows or the user allows duplicates.
    fn add(&mut self, path: &'a Path, sketch: &Sketch, allow_duplicates: bool) -> Result<()> {
        if sketch.rows() == 0 {
            return Ok(());
        }
        let twin = self.by_digest.insert(sketch.digest(), path);
        if let Some(twin) = twin
            && sketch.plan().private.is_some()
        {
            bail!(
                "{} and {} hold the same sums, and their plan is private: rows that count twice \
                 would be protected by half the noise they need",
                twin.display(),
                path.display()
            );
        }
        if let Some(twin) = twin
            && !allow_duplicates
        {
            bail!(
                "{} and {} hold the same sums, so their rows would count twice; --allow-duplicates \
                 merges them all the same",
                twin.display(),
                path.display()
            );
        }
        let sum = if sketch.plan().collect.cells { Sum::CellRows } else { Sum::Features };
        self.counts.push((path, sketch.sums()[sum].clone()));
        Ok(())
    }

    /// Prints a note if the rows of one sketch may be among the rows of another; the sums cannot
    /// prove it.
    fn tell_contained(&self, common: &Common) {
        let within = |small: &[i128], large: &[i128]| {
            small != large
                && small.len() == large.len()
                && small.iter().zip(large).all(|(s, l)| s <= l)
        };
        let pairs = self
            .counts
            .iter()
            .flat_map(|large| self.counts.iter().map(move |small| (small, large)));
        let mut found = pairs.filter(|(small, large)| within(&small.1, &large.1));
        if let Some((small, large)) = found.next() {
            let more = match found.count() {
                0 => String::new(),
                n => format!(", and so may {}", count(n as u64, "other pair")),
            };
            note(
                common,
                &format!(
                    "the rows of {} may be among those of {}{more}; if they are, they count twice",
                    small.0.display(),
                    large.0.display()
                ),
            );
        }
    }
}

fn finish(sketch: &Sketch, output: &Path, more: Value, common: &Common) -> Result<()> {
    let bytes = sketch.to_bytes();
    write_bytes(output, &bytes)?;
    let mut json = json!({
        "file": name(output), "rows": sketch.counted(), "skipped": sketch.skipped(),
        "fingerprint": sketch.plan().fingerprint(), "bytes": bytes.len(),
    });
    extended(&mut json, more);
    let text = format!("{}: {}, {}", output.display(), amount(sketch), size(bytes.len()));
    result(common, &json, &text)
}
