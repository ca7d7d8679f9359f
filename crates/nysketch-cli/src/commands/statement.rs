//! The statement of a release: one page for a data-protection officer, in Markdown that can be read
//! as plain text.

use super::privatize::noise_text;
use crate::kind::STATEMENT;
use crate::output::{count, printable, thousands};
use nysketch::privacy::{Release, Releases, Rho};
use std::path::Path;

/// Columns of text in a line.
const WIDTH: usize = 98;
/// Names of columns that are listed.
const MOST_NAMES: usize = 8;

/// What a statement is about.
pub struct Statement<'a> {
    /// The file of the release.
    pub file: &'a Path,
    /// The sums with noise.
    pub release: &'a Release,
    /// The releases of its sketch.
    pub releases: &'a Releases,
}

/// The page.
pub fn text(statement: &Statement<'_>) -> String {
    let mut page = format!("{STATEMENT}\n\n");
    for part in [
        released(statement),
        "Controller: ____________________   Purpose and recipients: \
         _________________________________\n"
            .into(),
        "## Promise".into(),
        promise(statement.release),
        costs(statement),
        noise(statement.release),
        "## Assumptions".into(),
        assumptions(statement),
        "## Limits".into(),
        limits(),
        "Date: ______________   Name and signature: \
         _________________________________________________"
            .into(),
    ] {
        page.push_str(part.trim_end());
        page.push_str("\n\n");
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// Names the file, its columns and its digests.
fn released(statement: &Statement<'_>) -> String {
    let Statement { file, release, .. } = statement;
    let columns = &release.plan().columns;
    // Names come from a plan of others, so they must not end the quotation.
    let name = |text: &str| format!("`{}`", printable(text).replace('`', "'"));
    let mut names: Vec<String> = columns.iter().take(MOST_NAMES).map(|c| name(c)).collect();
    if columns.len() > MOST_NAMES {
        names.push(format!("{} more", columns.len() - MOST_NAMES));
    }
    let text = format!(
        "**Released:** {}, sums with noise over about {} rows (a noisy number) of {}: {}. Every number in the file that depends on \
         rows has noise.",
        name(&file.display().to_string()),
        thousands(release.rows()),
        count(columns.len() as u64, "column"),
        names.join(", "),
    );
    let digests =
        format!("SHA-256: {}\nPlan:    {}", release.digest(), release.plan().fingerprint());
    format!("{}\n\n```\n{digests}\n```", wrapped(&text, ""))
}

/// States the unit of protection and the promise.
fn promise(release: &Release) -> String {
    let (epsilon, delta) = (release.budget().epsilon, release.budget().delta);
    let (unit, whose) = match (release.plan().people(), release.terms().person_rows) {
        (Some(people), Some(rows)) => (
            format!(
                "one person: all rows with the same '{}', of which at most {rows} count",
                printable(&people.column)
            ),
            "one person's rows",
        ),
        _ => ("one row. A person with several rows is protected less".into(), "one row"),
    };
    let text = format!(
        "**Protected:** {unit}. Adding or removing {whose} makes every event at most {:.3} times as likely (e^ε), plus {delta:e} (δ), \
         whatever is computed from the file and whatever else is known.",
        epsilon.exp()
    );
    wrapped(&text, "")
}

/// ε, δ and ρ of this release, of all releases, and for replaced rows.
fn costs(statement: &Statement<'_>) -> String {
    let Statement { release, releases, .. } = statement;
    let budget = release.budget();
    let total = release.total();
    let unit = if release.plan().people().is_some() { "person" } else { "row" };
    let rounds = if release.rho() < total { ", with the earlier rounds in its plan" } else { "" };
    let lines = [
        (format!("this release{rounds}"), total),
        (
            format!("the same, for one {unit} replaced by another (two steps, ρ × 4)"),
            replaced(total),
        ),
        (
            format!("ledger: {} of this sketch so far", count(releases.count as u64, "release")),
            releases.rho,
        ),
    ];
    let mut table = String::from("| cost | ε | δ | ρ |\n|---|---|---|---|\n");
    for (what, rho) in lines {
        // Rounded up, except for the ε that was asked for.
        let epsilon = if rho == total {
            budget.epsilon.to_string()
        } else {
            format!("{:.3}", (1e3 * budget.epsilon_of(rho)).ceil() / 1e3)
        };
        let (delta, rho) = (budget.delta, rho.value());
        table.push_str(&format!("| {what} | {epsilon} | {delta:e} | {rho:.6} |\n"));
    }
    table
}

/// Returns the cost of replacing a row: sums move twice as far as for a row that is added, and ρ
/// grows with the square.
fn replaced(rho: Rho) -> Rho {
    let twice = rho.and(rho);
    twice.and(twice)
}

/// How the budget is split, and the noise that this takes.
fn noise(release: &Release) -> String {
    let mut table = String::from(
        "| sums | numbers | share of ρ | noise of each (standard deviation) |\n|---|---|---|---|\n",
    );
    for (spending, sums) in release.spendings().iter().zip(release.noisy()) {
        table.push_str(&format!(
            "| {} | {} | {:.0} % | {} |\n",
            spending.mechanism.name(),
            thousands(sums.len() as u64),
            100.0 * spending.rho.value() / release.rho().value(),
            noise_text(spending.mechanism, spending.deviation(), release)
        ));
    }
    table
}

/// Lists the assumptions of the promise.
fn assumptions(statement: &Statement<'_>) -> String {
    let others = match statement.releases.others {
        0 => String::new(),
        n => format!(
            " It also has {} of other sketches of this plan, whose costs add up if they share \
             rows.",
            count(n as u64, "release")
        ),
    };
    let mut list = vec![
        "Each row was read independently of the others, and is in the sketch once.".to_string(),
        "Noise comes from the random source of the operating system, which was not \
         predictable."
            .into(),
        "The plan is public and was made without looking at the rows: bounds, landmarks, \
         bandwidths."
            .into(),
        format!(
            "The ledger is complete. It is the file of one account on one machine, `{}`.{others}",
            printable(&statement.releases.ledger.display().to_string()).replace('`', "'")
        ),
    ];
    if statement.release.plan().people().is_some() {
        list.push("A person has the same identifier in all rows.".into());
    }
    bullets(&list)
}

/// Lists the limits of the promise.
fn limits() -> String {
    let list = [
        "What holds for a group can be learned, and concerns its members whether they took part or \
         not.".to_string(),
        "The plan, the exact sketch, and models or reports made from the exact sketch are not \
         protected.".into(),
        "Releases of the same rows by other plans, accounts, machines or programs add to the \
         cost.".into(),
        "Someone who observes the machine, its memory or its timing is not considered.".into(),
        "The proof (docs/PRIVACY.md) was tested by the project, and not verified by a third \
         party.".into(),
    ];
    bullets(&list)
}

fn bullets(list: &[String]) -> String {
    let items: Vec<String> = list.iter().map(|item| wrapped(&format!("- {item}"), "  ")).collect();
    items.join("\n")
}

/// Text in lines of at most [`WIDTH`] columns where words allow; lines after the first begin with
/// `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line = format!("{indent}{word}");
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines + &line
}
