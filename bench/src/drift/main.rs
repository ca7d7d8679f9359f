//! `cargo run --release -p nysketch-bench --bin drift [--trials N] [--only
//! levels|power|sketches|clustered|days] [--rows NAME]`: rates of false alarms and power of the
//! tests of `nysketch diff`, by simulation. Prints Markdown tables. `sketches` is `power` without
//! the slow test on raw rows; `--rows` selects lines of `levels` and `power` by the distribution of
//! the rows.

mod clustered;
mod days;
mod pairs;
mod rows;

fn main() {
    let trials = value("--trials").map_or(1000, |n| n.parse().expect("a number of trials"));
    let only = value("--only");
    let rows = value("--rows").unwrap_or_default();
    let parts = match &only {
        Some(only) => vec![only.as_str()],
        None => vec!["levels", "power", "clustered", "days"],
    };
    for part in parts {
        match part {
            "levels" => pairs::levels(trials, &rows),
            "power" => pairs::power(trials, &rows, true),
            "sketches" => pairs::power(trials, &rows, false),
            "clustered" => clustered::tests(trials),
            "days" => {
                days::baselines(trials);
                days::streams(trials);
            }
            other => panic!("no part '{other}'"),
        }
    }
}

/// Returns the argument after a name.
fn value(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}
