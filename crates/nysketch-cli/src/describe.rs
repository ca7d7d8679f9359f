//! Words for plans, models and changes that several commands show.

use crate::output::{count, short, thousands};
use nysketch::clusters::{Trait, unusual};
use nysketch::decoder::Curve;
use nysketch::drift::Drift;
use nysketch::inspect::RawRows;
use nysketch::{CovarianceKind, Features, Model, Plan, Shape, Sketch, Task};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Columns that a cluster or a cell is told by.
const TOLD: usize = 3;
/// Clusters or components that are listed.
const LISTED: usize = 40;
/// Differences below this many standard deviations do not tell a cluster from the whole.
const TELLING: f64 = 0.1;
/// A component has collapsed where a variance is below this share of the column's.
const COLLAPSED: f64 = 1e-6;

/// A name inside a table, on one line.
pub fn one_line(name: &str) -> String {
    name.replace(['\n', '\r'], "␤")
}

/// "1,000 rows", or "rows of total weight 12.5".
pub fn amount(sketch: &Sketch) -> String {
    match sketch.plan().weighting {
        None => count(sketch.rows(), "row"),
        Some(_) => format!("rows of total weight {}", short(sketch.weight())),
    }
}

/// "400 landmarks (dsquared)".
pub fn measured_at(plan: &Plan) -> String {
    match &plan.features {
        Features::Nystrom(points, sampling) => {
            format!("{} ({})", count(points.len() as u64, "landmark"), sampling.name())
        }
        Features::Fourier(points) => count(points.len() as u64, "Fourier frequency"),
    }
}

/// "5,400 raw rows: 400 landmarks and 5,000 witnesses".
pub fn raw_rows(raw: RawRows) -> String {
    let parts = [
        (raw.landmarks, "landmark"),
        (raw.witnesses, "witness"),
        (raw.single_row_cells, "single-row cell"),
    ];
    let parts = parts.into_iter().filter(|(n, _)| *n > 0);
    let parts: Vec<String> = parts.map(|(n, what)| count(n as u64, what)).collect();
    let listed = match parts.split_last() {
        None => return "no raw rows".to_string(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    };
    format!("{}: {listed}", count(raw.total() as u64, "raw row"))
}

/// "distance 2560 ↑ 2.1 (overall 730), air_time 310 ↑ 2.0 (overall 104)": the most telling columns.
fn told(traits: &[Trait], columns: &[String]) -> String {
    let telling = traits.iter().take(TOLD).filter(|t| t.deviations.abs() >= TELLING);
    let words: Vec<String> = telling
        .map(|t| {
            let arrow = if t.deviations > 0.0 { '↑' } else { '↓' };
            let far = short_deviations(t.deviations);
            let (value, all) = (beside(t.value, t), beside(t.overall, t));
            format!("{} {value} {arrow}{far} (all {all})", one_line(&columns[t.column]))
        })
        .collect();
    if words.is_empty() { "like all rows".into() } else { words.join(", ") }
}

/// A number beside another one: what is next to nothing beside their difference is 0.
pub fn beside(x: f64, t: &Trait) -> String {
    short(if x.abs() < 1e-6 * (t.value - t.overall).abs() { 0.0 } else { x })
}

fn short_deviations(deviations: f64) -> String {
    match deviations.abs() {
        far if far < 100.0 => format!("{far:.1}"),
        far => short(far.round()),
    }
}

/// A place by the columns in which it is the most unusual, beside the baseline of a comparison.
pub fn place(mean: &[f64], drift: &Drift, plan: &Plan) -> String {
    let whole: HashMap<&str, (f64, f64)> =
        drift.columns.iter().map(|c| (c.column.as_str(), (c.means[0], c.deviations[0]))).collect();
    let known: Option<(Vec<f64>, Vec<f64>)> =
        plan.columns.iter().map(|name| whole.get(name.as_str()).copied()).collect();
    match known {
        Some((means, deviations)) => told(&unusual(mean, &means, &deviations), &plan.columns),
        None => {
            let named = plan.columns.iter().zip(mean).take(TOLD);
            named
                .map(|(name, x)| format!("{} {}", one_line(name), short(*x)))
                .collect::<Vec<_>>()
                .join(", ")
        }
    }
}

/// "kmeans, 5 clusters", "gmm, 3 components, full covariances".
pub fn summary(model: &Model) -> String {
    let k = model.k() as u64;
    let what = match &model.shape {
        Shape::Centres { .. } => count(k, "cluster"),
        Shape::Mixture { covariance, .. } => {
            let covariances = match covariance {
                CovarianceKind::Full => "full",
                CovarianceKind::Tied => "tied",
                CovarianceKind::Diag => "diagonal",
                CovarianceKind::Spherical => "spherical",
            };
            format!("{}, {covariances} covariances", count(k, "component"))
        }
        Shape::Components { .. } => count(k, "component"),
    };
    format!("{}, {what}", model.task)
}

/// What a model holds, as a table.
pub fn table(model: &Model) -> String {
    match &model.shape {
        Shape::Components { components, explained_variance_ratio, .. } => {
            loadings(model, components, explained_variance_ratio)
        }
        _ => clusters(model),
    }
}

fn clusters(model: &Model) -> String {
    let clusters = model.clusters();
    let (spread, telling) = (
        clusters.iter().any(|c| c.spread.is_some()),
        clusters.iter().any(|c| !c.traits.is_empty()),
    );
    let what = if model.task == Task::Gmm { "component" } else { "cluster" };
    let width = what.len();
    let mut text = format!("{what} {:>7} {:>13}", "share", "rows");
    if spread {
        text.push_str(&format!(" {:>9}", "spread"));
    }
    text.push_str(if telling {
        "  differs most in (↑↓ in standard deviations of all rows)\n"
    } else {
        "\n"
    });
    for c in clusters.iter().take(LISTED) {
        text.push_str(&format!(
            "{:>width$} {:>6.1}% {:>13}",
            c.label,
            100.0 * c.share,
            thousands(c.rows)
        ));
        if spread {
            text.push_str(&format!(" {:>9}", c.spread.map_or("-".into(), short)));
        }
        if telling {
            text.push_str(&format!("  {}", told(&c.traits, &model.columns)));
        }
        text.push('\n');
    }
    more(&mut text, clusters.len());
    text
}

fn more(text: &mut String, listed: usize) {
    if listed > LISTED {
        text.push_str(&format!(
            "    … and {} more, in the file\n",
            thousands((listed - LISTED) as u64)
        ));
    }
}

fn loadings(model: &Model, components: &[Vec<f64>], shares: &[f64]) -> String {
    let mut text =
        format!("{:>9} {:>9} {:>9}  largest loadings\n", "component", "explains", "together");
    let mut together = 0.0;
    for (i, (component, share)) in components.iter().zip(shares).enumerate().take(LISTED) {
        together += share;
        let mut order: Vec<usize> = (0..component.len()).collect();
        order.sort_by(|a, b| component[*b].abs().total_cmp(&component[*a].abs()));
        let named = order
            .iter()
            .take(TOLD)
            .map(|j| format!("{:+.2} {}", component[*j], one_line(&model.columns[*j])));
        let named = named.collect::<Vec<_>>().join(", ");
        let (share, together) = (100.0 * share, 100.0 * together);
        text.push_str(&format!("{:>9} {share:>8.1}% {together:>8.1}%  {named}\n", i + 1));
    }
    more(&mut text, components.len());
    text
}

/// The clusters for JSON, each with its most telling columns.
pub fn clusters_json(model: &Model) -> Value {
    let one = |c: &nysketch::clusters::Cluster| {
        let spreads = model.profile.as_ref().and_then(|p| p.spread.get(c.label));
        let told = c.traits.iter().take(TOLD).map(|t| {
            json!({"column": model.columns[t.column], "value": t.value, "overall": t.overall,
                "deviations": t.deviations, "spread": spreads.map(|s| s[t.column])})
        });
        json!({"label": c.label, "share": c.share, "rows": c.rows, "spread": c.spread,
            "columns": told.collect::<Vec<_>>()})
    };
    model.clusters().iter().map(one).collect()
}

/// The name of a risk, with its coordinates where columns are scaled.
pub fn risk_name(model: &Model) -> String {
    let name = match model.task {
        Task::Gmm => return "-log-likelihood".into(),
        Task::Kmedians => "mean distance",
        _ => "mean squared distance",
    };
    match model.scale.iter().all(|s| *s == 1.0) {
        true => name.into(),
        false => format!("{name} in scaled columns"),
    }
}

/// Why that k, and what speaks against it.
pub fn suggestion(curve: &Curve) -> String {
    let k = curve.best().k;
    let end = "the end of the range: a wider one may hold a better";
    if curve.best().bic.is_some() {
        return match curve.at_end() {
            true => format!("k = {k} has the least BIC, but is at {end}"),
            false => format!("k = {k} has the least BIC"),
        };
    }
    let separate = curve.most_separate().filter(|p| p.k != k).map_or(String::new(), |p| {
        let silhouette = p.silhouette.unwrap_or(0.0);
        format!("; the silhouette is largest at k = {} ({silhouette:.2})", p.k)
    });
    match (curve.at_end(), curve.clear) {
        (true, _) => format!("k = {k} improves most, but is at {end}{separate}"),
        (false, true) => format!("k = {k} is the elbow of the curve{separate}"),
        (false, false) => {
            format!("no k stands out; k = {k} has the sharpest bend{separate}")
        }
    }
}

/// What is doubtful about a mixture whose components have no width in some column.
pub fn collapsed(model: &Model) -> Option<String> {
    let (Shape::Mixture { covariances, .. }, Some(profile)) = (&model.shape, &model.profile) else {
        return None;
    };
    let narrow = |v: &[f64]| {
        let pairs = v.iter().zip(&profile.deviation).enumerate();
        pairs.filter(|(_, (v, d))| **d > 0.0 && **v < COLLAPSED * **d * **d).map(|(j, _)| j).next()
    };
    let found: Vec<usize> = covariances.iter().filter_map(|c| narrow(&c.variances())).collect();
    let first = model.columns.get(*found.first()?)?;
    Some(format!(
        "{} of {} collapsed to single values of a column, such as '{first}': their densities say little",
        found.len(),
        count(model.k() as u64, "component"),
    ))
}
