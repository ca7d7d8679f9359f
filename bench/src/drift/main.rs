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
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|a| a == name)?;
        arguments.get(at + 1)
    };
    let trials = value("--trials").map_or(1000, |n| n.parse().expect("a number of trials"));
    let only = value("--only");
    let rows = value("--rows").map_or("", String::as_str);
    let wanted = |part: &str| only.is_none_or(|only| only == part);
    if wanted("levels") {
        pairs::levels(trials, rows);
    }
    if wanted("power") {
        pairs::power(trials, rows, true);
    } else if wanted("sketches") {
        pairs::power(trials, rows, false);
    }
    if wanted("clustered") {
        clustered::tests(trials);
    }
    if wanted("days") {
        days::baselines(trials);
        days::streams(trials);
    }
}
