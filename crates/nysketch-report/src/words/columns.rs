//! Text about the columns of a table: roles, missing values, levels and ranges.

use crate::words::describe::one_line;
use crate::words::numbers::{count, percent, short, thousands};
use crate::words::options::in_options;
use nysketch::columns::{ColumnSummary, LevelShare, Use};
use nysketch::recipe::words;
use nysketch::{Plan, Sketch};

/// Maximum number of levels of a category that are listed.
const LEVELS: usize = 4;
/// Maximum number of characters of a name or a level that are shown.
const LONGEST: usize = 32;

/// Formats the number of columns: "9 columns", "9 columns and 3 categories".
pub fn measured(plan: &Plan) -> String {
    let numbers = count(plan.dims() as u64, "column");
    match plan.categories().len() {
        0 => numbers,
        n => format!(
            "{numbers} and {}",
            if n == 1 { "1 category".into() } else { count(n as u64, "category") }
        ),
    }
}

/// Formats a table with one line per column, at most `most` of them.
pub fn table(columns: &[ColumnSummary], most: usize) -> String {
    let mut lines =
        vec![["column", "type", "role", "missing", "values", "measured as"].map(String::from)];
    lines.extend(columns.iter().take(most).map(cells));
    let wide = |i: usize| lines.iter().map(|l| l[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(wide).collect();
    // Types are known only if the table itself was read.
    let typed = lines[1..].iter().any(|l| !l[1].is_empty());
    let mut text = String::new();
    for cells in &lines {
        let mut line = String::new();
        for (i, cell) in cells.iter().enumerate().filter(|(i, _)| typed || *i != 1) {
            let space = " ".repeat(widths[i] - cell.chars().count());
            // Shares are aligned at the right.
            line.push_str(&if i == 3 {
                format!("{space}{cell}  ")
            } else {
                format!("{cell}{space}  ")
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if columns.len() > most {
        text.push_str(&format!("… and {} more\n", thousands((columns.len() - most) as u64)));
    }
    text
}

fn cells(column: &ColumnSummary) -> [String; 6] {
    let role = match column.role {
        Use::Vector => format!("vector of {}", column.numbers),
        role => role.name().to_string(),
    };
    let missing = match column.missing {
        None => String::new(),
        Some(0.0) => "0".into(),
        Some(share) => percent(share),
    };
    let values = match &column.left_out {
        Some(why) => in_options(why),
        None => values(column),
    };
    let name = cut(&one_line(&column.column));
    let holds = column.holds.clone().unwrap_or_default();
    [name, holds, role, missing, values, column.transformation.join(", ")]
}

/// Formats the range of a number, or the levels of a category.
fn values(column: &ColumnSummary) -> String {
    if column.role == Use::Category {
        return levels(&column.levels);
    }
    let text = |x: f64| if column.role == Use::Time { words::time(x) } else { short(x) };
    match (column.low, column.high) {
        (Some(low), Some(high)) if low == high => text(low),
        (Some(low), Some(high)) => format!("{} … {}", text(low), text(high)),
        _ => column.mean.map_or(String::new(), |mean| format!("mean {}", text(mean))),
    }
}

/// Formats levels by decreasing share: "16 levels: UA 17.4 %, B6 16.2 %, …".
fn levels(levels: &[LevelShare]) -> String {
    let mut order: Vec<&LevelShare> = levels.iter().collect();
    order.sort_by(|a, b| b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0)));
    let named = order.iter().take(LEVELS).map(|l| match l.share {
        Some(share) => format!("{} {}", cut(&one_line(&l.level)), percent(share)),
        None => cut(&one_line(&l.level)),
    });
    let named: Vec<String> = named.collect();
    let more = if levels.len() > LEVELS { ", …" } else { "" };
    format!("{}: {}{more}", count(levels.len() as u64, "level"), named.join(", "))
}

/// Shortens a text to at most [`LONGEST`] characters.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// Formats a number of rows, or their total weight if rows have weights.
fn rows(sketch: &Sketch, sum: f64) -> String {
    match &sketch.plan().weighting {
        None => count(sum as u64, "row"),
        Some(w) => format!("rows of total weight {}", short(sum * w.unit)),
    }
}

/// Describes for each category the rows whose level is not in the plan.
pub fn unknown_levels(sketch: &Sketch) -> Vec<String> {
    let counts = sketch.level_rows();
    let unknown = sketch.plan().categories().iter().zip(&counts);
    let unknown = unknown.map(|(c, counts)| (c, counts[c.other() as usize] as f64));
    unknown
        .filter(|(_, n)| *n > 0.0)
        .map(|(category, n)| {
            format!(
                "{}: {} ({}) have another level than the plan's {}",
                one_line(&category.name),
                rows(sketch, n),
                percent(n / sketch.rows() as f64),
                category.levels.len()
            )
        })
        .collect()
}

/// Describes the rows with missing numbers, if there are any.
pub fn incomplete(sketch: &Sketch) -> Option<String> {
    let complete = Some(sketch.complete_rows()).filter(|rows| *rows < sketch.rows())? as f64;
    let collect = sketch.plan().collect;
    let sums = match (collect.kernel, collect.moments) {
        (true, true) => "; kernel sums and moments use only these",
        (true, false) => "; kernel sums use only these",
        (false, true) => "; moments use only these",
        (false, false) => "",
    };
    let share = percent(complete / sketch.rows() as f64);
    Some(format!("{} ({share}) are complete{sums}", rows(sketch, complete)))
}
