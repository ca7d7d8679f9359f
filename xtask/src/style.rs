//! Style that rustfmt and clippy do not check: the width of lines, the length of functions, named
//! closures and glob imports. `--table` prints the structure of each crate.
//!
//! The check scans text, not syntax. It relies on rustfmt: the brace that closes a function has the
//! indentation of the line with `fn`.

use crate::shell::{Outcome, output, root};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Maximum width of a line, in characters. A line with a URL may be longer.
const MAX_COLUMNS: usize = 100;
/// Maximum length of a function, in lines.
const MAX_FUNCTION: usize = 100;
/// The limits of a crate.
struct Limits {
    name: &'static str,
    /// Named closures per 1,000 lines.
    closures: f64,
    /// Lines that are too wide.
    wide: usize,
    /// Functions that are too long.
    long: usize,
}

/// The limits of every crate that is not listed below.
const LIMITS: Limits = Limits { name: "", closures: 3.0, wide: 0, long: 0 };
/// Crates above these limits, with their present numbers. A number may fall but not rise.
const PRESENT: &[Limits] = &[
    Limits { name: "*.py", closures: 3.0, wide: 72, long: 0 },
    Limits { name: "nysketch", closures: 7.2, wide: 7, long: 1 },
    Limits { name: "nysketch-cli", closures: 11.7, wide: 18, long: 4 },
    Limits { name: "nysketch-core", closures: 3.0, wide: 6, long: 0 },
    Limits { name: "nysketch-learn", closures: 3.0, wide: 4, long: 0 },
    Limits { name: "nysketch-privacy", closures: 14.6, wide: 7, long: 0 },
    Limits { name: "nysketch-report", closures: 19.5, wide: 9, long: 0 },
    Limits { name: "nysketch-tables", closures: 13.9, wide: 15, long: 1 },
    Limits { name: "python", closures: 7.2, wide: 3, long: 1 },
    Limits { name: "research", closures: 11.0, wide: 10, long: 0 },
];

/// A function of a file.
#[derive(Debug, PartialEq)]
struct Function {
    line: usize,
    name: String,
    lines: usize,
    arguments: usize,
}

/// Measurements of one file, or of all files of a crate.
#[derive(Default)]
struct Measured {
    lines: usize,
    /// Places of lines that are too wide.
    wide: Vec<String>,
    closures: usize,
    /// Places of functions that are too long.
    long: Vec<String>,
    functions: Vec<Function>,
}

/// Checks all files, or prints the table of the structure.
pub fn check(table: bool) -> Outcome {
    let mut crates = BTreeMap::<String, Measured>::new();
    let mut faults = Vec::new();
    for path in files()? {
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        let measured = measure(&path, &text, &mut faults);
        let total = crates.entry(crate_of(&path)).or_default();
        total.lines += measured.lines;
        total.wide.extend(measured.wide);
        total.long.extend(measured.long);
        total.closures += measured.closures;
        total.functions.extend(measured.functions);
    }
    if table {
        print_table(&mut crates);
        return Ok(());
    }
    eprintln!("== style");
    for (name, measured) in &crates {
        let limits = PRESENT.iter().find(|limits| limits.name == name).unwrap_or(&LIMITS);
        let rate = per_thousand(measured.closures, measured.lines);
        if rate > limits.closures {
            let (limit, advice) = (limits.closures, "use functions, or pass the closure");
            faults.push(format!(
                "{name}: {rate:.2} named closures per 1,000 lines, at most {limit} ({advice})"
            ));
        }
        for (places, limit) in [(&measured.wide, limits.wide), (&measured.long, limits.long)] {
            if places.len() > limit {
                faults.push(format!("{name}: {} places, at most {limit}:", places.len()));
                faults.extend(places.iter().map(|place| format!("  {place}")));
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("style:\n  {}", faults.join("\n  "))) }
}

/// Lists the Rust and Python files that git tracks or would add.
fn files() -> Result<Vec<String>, String> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs", "*.py"]);
    list.current_dir(root());
    Ok(output("git", list)?.lines().map(String::from).collect())
}

/// Returns the crate of a Rust file; all Python files count as one.
fn crate_of(path: &str) -> String {
    let within = path.strip_prefix("crates/").unwrap_or(path);
    let name = if path.ends_with(".py") { "*.py" } else { within };
    name.split('/').next().unwrap_or_default().to_string()
}

/// Measures a file and adds its faults.
fn measure(path: &str, text: &str, faults: &mut Vec<String>) -> Measured {
    let lines: Vec<&str> = text.lines().collect();
    let mut measured = Measured { lines: lines.len(), ..Measured::default() };
    let rust = path.ends_with(".rs");
    if rust {
        measured.functions = functions(&lines);
    }
    for (at, line) in lines.iter().enumerate() {
        let place = format!("{path}:{}", at + 1);
        let columns = line.chars().count();
        if columns > MAX_COLUMNS && !line.contains("://") && !is_table(line) {
            measured.wide.push(format!("{place}: {columns} columns, at most {MAX_COLUMNS}"));
        }
        let next = lines.get(at + 1).copied().unwrap_or_default();
        measured.closures += usize::from(rust && is_named_closure(line, next));
        if rust && line.trim_start().starts_with("use nysketch") && line.contains('*') {
            faults.push(format!("{place}: import the names that are used instead of '*'"));
        }
    }
    for function in measured.functions.iter().filter(|f| f.lines > MAX_FUNCTION) {
        let Function { line, name, lines, .. } = function;
        measured
            .long
            .push(format!("{path}:{line}: '{name}' has {lines} lines, at most {MAX_FUNCTION}"));
    }
    measured
}

/// Whether a line is a row of a table in a comment, which cannot be wrapped.
fn is_table(line: &str) -> bool {
    let text = line.trim_start().trim_start_matches(['/', '!']).trim_start();
    line.trim_start().starts_with("//") && text.starts_with('|')
}

/// Finds the functions with a body.
fn functions(lines: &[&str]) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let rest = &lines[at..];
        let Some(head) = rest.iter().position(|l| l.ends_with(['{', ';', '}'])) else { continue };
        let closing = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let length = match rest[head].chars().last() {
            Some('{') => rest.iter().position(|l| **l == closing).map(|last| last + 1),
            Some('}') => Some(head + 1),
            // A declaration.
            _ => None,
        };
        let arguments = arguments(&rest[..=head].join(" "));
        found.extend(length.map(|lines| Function { line: at + 1, name, lines, arguments }));
    }
    found
}

/// Returns the name of the function that a line starts to define.
fn function_name(line: &str) -> Option<String> {
    let (before, after) = line.split_once("fn ")?;
    let qualifiers = ["pub", "const", "async", "unsafe", "extern", "\"C\""];
    let mut words = before.split_whitespace();
    if !words.all(|word| qualifiers.contains(&word) || word.starts_with("pub(")) {
        return None;
    }
    let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// Counts the arguments of a function, including `self`. The first parenthesis outside `<…>` opens
/// the list.
fn arguments(head: &str) -> usize {
    let (_, head) = head.split_once("fn ").unwrap_or_default();
    let (mut depth, mut is_list, mut count) = (0, false, 0);
    let (mut argument, mut before) = (String::new(), ' ');
    for c in head.chars() {
        if is_list && depth == 1 && matches!(c, ',' | ')') {
            count += usize::from(!argument.trim().is_empty());
            argument.clear();
            if c == ')' {
                break;
            }
        } else if is_list {
            argument.push(c);
        }
        is_list |= depth == 0 && c == '(';
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        before = c;
    }
    count
}

/// Whether a line gives a closure a name: `let name = |…|`, possibly with the closure on the next
/// line.
fn is_named_closure(line: &str, next: &str) -> bool {
    let Some((_, binding)) = line.split_once("let ") else { return false };
    let Some((pattern, value)) = binding.split_once('=') else { return false };
    let name = pattern.trim().trim_start_matches("mut ").split(':').next().unwrap_or_default();
    let value = if value.trim().is_empty() { next.trim() } else { value.trim() };
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name && value.trim_start_matches('&').trim_start_matches("move ").starts_with('|')
}

fn per_thousand(count: usize, lines: usize) -> f64 {
    1000.0 * count as f64 / lines.max(1) as f64
}

/// Prints one line per crate.
fn print_table(crates: &mut BTreeMap<String, Measured>) {
    println!(
        "| crate | lines | functions | median | p99 | longest | arguments | closures per 1,000 \
         | wide lines per 1,000 | entries |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, measured) in crates {
        measured.functions.sort_by_key(|function| function.lines);
        let functions = &measured.functions;
        let [median, p99, longest] = [0.5, 0.99, 1.0].map(|share| quantile(functions, share));
        let arguments = functions.iter().map(|f| f.arguments).max().unwrap_or(0);
        let closures = per_thousand(measured.closures, measured.lines);
        let wide = per_thousand(measured.wide.len(), measured.lines);
        println!(
            "| {name} | {} | {} | {median} | {p99} | {longest} | {arguments} | {closures:.2} \
             | {wide:.2} | {} |",
            measured.lines,
            functions.len(),
            entries(name)
        );
    }
}

/// Returns a quantile of the lengths of functions, which are sorted by length.
fn quantile(functions: &[Function], share: f64) -> usize {
    let at = (share * functions.len() as f64) as usize;
    functions.get(at.min(functions.len().saturating_sub(1))).map_or(0, |f| f.lines)
}

/// Counts the files and folders at the root of a crate's sources.
fn entries(name: &str) -> usize {
    let places = [root().join("crates").join(name).join("src"), root().join(name).join("src")];
    places.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the measurements and the faults of a text.
    fn measured(text: &str) -> (Measured, Vec<String>) {
        let mut faults = Vec::new();
        (measure("a.rs", text, &mut faults), faults)
    }

    #[test]
    fn functions_have_a_length_and_arguments() {
        let text = "impl A {\n    pub(crate) fn one<F: Fn(u8, u8) -> u8>(\n        &self,\n        \
                    f: F,\n    ) -> Vec<(u8, u8)> {\n        f(1, 2);\n    }\n}\nfn two() {}\n\
                    trait B {\n    fn three(&self, x: [u8; 2]);\n}\n// a fn of x {\n";
        let (measured, _) = measured(text);
        let one = Function { line: 2, name: "one".into(), lines: 6, arguments: 2 };
        let two = Function { line: 9, name: "two".into(), lines: 1, arguments: 0 };
        assert_eq!(measured.functions, [one, two]);
        assert_eq!(arguments("fn f(a: &dyn Fn(u8) -> Vec<u8>, b: (u8, u8), c: u8) {"), 3);
    }

    #[test]
    fn long_functions_and_lines_are_faults() {
        let body = "    x();\n".repeat(MAX_FUNCTION - 1);
        let text =
            format!("fn f() {{\n{body}}}\n{}\n// https://{}\n", "é".repeat(101), "x".repeat(100));
        let measured = measured(&text).0;
        assert_eq!(measured.wide, ["a.rs:102: 101 columns, at most 100"]);
        assert_eq!(measured.long, ["a.rs:1: 'f' has 101 lines, at most 100"]);
    }

    #[test]
    fn closures_with_a_name_are_counted() {
        let named =
            "let f = |x| x;\nlet mut g: T = move |x| x;\nlet h =\n    |x| x;\nlet k = &|x| x;";
        let others = "let a = b.map(|x| x);\nlet (a, b) = f(|x| x);\nif a || b {}\nlet c = a || b;";
        assert_eq!(measured(named).0.closures, 4);
        assert_eq!(measured(others).0.closures, 0);
    }

    #[test]
    fn glob_imports_of_the_library_are_faults() {
        assert_eq!(measured("use nysketch_core::rows::*;\nuse super::*;").1.len(), 1);
    }

    #[test]
    fn a_file_belongs_to_a_crate() {
        assert_eq!(crate_of("crates/nysketch-core/src/lib.rs"), "nysketch-core");
        assert_eq!(crate_of("bench/src/gpu.rs"), "bench");
        assert_eq!(crate_of("bench/peers/gpu.py"), "*.py");
    }

    #[test]
    fn quantiles_are_lengths_of_functions() {
        let functions: Vec<Function> = (1..=4)
            .map(|lines| Function { line: 1, name: String::new(), lines, arguments: 0 })
            .collect();
        assert_eq!([0.0, 0.5, 1.0].map(|share| quantile(&functions, share)), [1, 3, 4]);
        assert_eq!(quantile(&[], 0.5), 0);
    }
}
