//! Words for plans, models and changes that several commands show.

use crate::output::{count, in_options, short, thousands};
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
        Task::Gmm => return "mean negative log-likelihood".into(),
        Task::Kmedians => "mean distance",
        _ => "mean squared distance",
    };
    match model.scale.iter().all(|s| *s == 1.0) {
        true => name.into(),
        false => format!("{name} in scaled columns"),
    }
}

/// "estimated mean squared distance 4.957", "estimated mean negative log-likelihood 10.52 (10.49 to 10.55)".
pub fn estimated(model: &Model, risk: f64) -> String {
    let name = risk_name(model);
    // The interval is that of the model's own sketch; where every row is a witness, nothing is left to estimate.
    let own = model.report.likelihood.is_some_and(|l| -l.mean == risk);
    match interval(model).filter(|[low, high]| own && high - low > 1e-4 * risk.abs()) {
        None => format!("estimated {name} {}", short(risk)),
        Some([low, high]) => {
            let digits = digits(0.5 * (high - low)).max(2);
            format!("estimated {name} {risk:.digits$} ({low:.digits$} to {high:.digits$})")
        }
    }
}

/// Digits behind the point that show a number that may be off by so much.
pub fn digits(error: f64) -> usize {
    (-error.log10().floor()).clamp(0.0, 6.0) as usize
}

/// The 95 % interval of the estimated risk of a mixture, where witness rows tell it.
pub fn interval(model: &Model) -> Option<[f64; 2]> {
    model.report.likelihood.map(|l| [-l.high, -l.low])
}

/// What else a mixture is told by, for JSON; nothing of other models.
pub fn mixture_json(model: &Model) -> Value {
    let Shape::Mixture { covariance, .. } = &model.shape else { return json!({}) };
    let (r, [low, high]) = (&model.report, interval(model).map_or([None; 2], |i| i.map(Some)));
    json!({"covariance": covariance, "low": low, "high": high, "min_variance": r.min_variance,
        "collapsed": r.collapsed, "shrinkage": r.shrinkage, "notes": notes(model)})
}

/// Notes on how a model was found, for people at the command line.
pub fn notes(model: &Model) -> Vec<String> {
    model.report.notes.iter().map(|note| in_options(note)).collect()
}

/// What is doubtful about a model.
pub fn doubt(model: &Model) -> Option<String> {
    model.report.doubt(model.k()).map(|doubt| in_options(&doubt))
}

/// Why that k, and what speaks against it.
pub fn suggestion(curve: &Curve) -> String {
    let k = curve.best().k;
    let end = "the end of the range: a wider one may hold a better";
    if curve.best().bic.is_some() {
        let icl = match curve.least_icl() {
            Some(p) if p.k == k => ", and the least ICL".to_string(),
            Some(p) => {
                format!("; ICL, which counts overlap against a model, is least at k = {}", p.k)
            }
            None => String::new(),
        };
        return match curve.at_end() {
            true => format!("k = {k} has the least BIC, but is at {end}{icl}"),
            false => format!("k = {k} has the least BIC{icl}"),
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
