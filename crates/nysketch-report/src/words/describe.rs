//! Text about plans, models and changes, shared by several commands.

use crate::words::numbers::{count, short, thousands};
use crate::words::options::in_options;
use nysketch::clusters::{Aspect, Facts, Trait, telling, unusual};
use nysketch::decoder::Curve;
use nysketch::drift::Drift;
use nysketch::inspect::{FoldSummary, RawRows};
use nysketch::recipe::words::{cycle, percent};
use nysketch::{
    CovarianceKind, Features, FrequencyLaw, Interval, Intervals, Model, Plan, Recipe, Shape,
    Sketch, Step, Task,
};
use serde_json::{Value, json};

/// Maximum number of columns that describe a cluster or a cell.
const TOLD: usize = 3;
/// Maximum number of clusters or components that are listed.
const LISTED: usize = 40;
/// Smallest difference, in standard deviations, that describes a cluster.
const TELLING: f64 = 0.1;

/// Removes line breaks from a name, for use in a table.
pub fn one_line(name: &str) -> String {
    name.replace(['\n', '\r'], "␤")
}

/// Formats the size of a sketch: "1,000 rows", or "rows of total weight 12.5".
pub fn amount(sketch: &Sketch) -> String {
    match sketch.plan().weighting {
        None => count(sketch.rows(), "row"),
        Some(_) => format!("rows of total weight {}", short(sketch.weight())),
    }
}

/// Names the unit that a private plan protects: single rows, or people.
pub fn protected(plan: &Plan) -> String {
    plan.people().map_or("single rows".into(), ToString::to_string)
}

/// Formats the measurement of a plan: "400 landmarks (dsquared)".
pub fn measured_at(plan: &Plan) -> String {
    match &plan.features {
        Features::Nystrom(points, sampling) => {
            format!("{} ({})", count(points.len() as u64, "landmark"), sampling.name())
        }
        Features::Fourier(points, FrequencyLaw::Normal) => {
            count(points.len() as u64, "Fourier frequency")
        }
        Features::Fourier(points, _) => {
            format!(
                "{} ({})",
                count(points.len() as u64, "Fourier frequency"),
                plan.features.name()
            )
        }
    }
}

/// Formats the number of raw rows in a file: "5,400 raw rows: 400 landmarks and 5,000 witnesses".
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

/// Describes the folds of a sketch in one line.
pub fn folds_text(folds: &FoldSummary) -> String {
    let by =
        folds.by.as_ref().map_or("the values of rows".into(), |by| format!("'{}'", one_line(by)));
    let FoldSummary { count, smallest, largest, .. } = folds;
    format!("{count} by {by}, of {} to {} rows", thousands(*smallest), thousands(*largest))
}

/// Lists the largest differences: "distance 2560 ↑2.1 (all 730), carrier: UA 61 % ↑1.2 (all 17 %)".
fn told(traits: &[Trait], columns: &[String], recipe: &Recipe) -> String {
    told_with(traits, columns, recipe, |_| None)
}

/// As [`told`], with half the width of a value's interval if there is one.
fn told_with(
    traits: &[Trait],
    columns: &[String],
    recipe: &Recipe,
    half: impl Fn(&Trait) -> Option<f64>,
) -> String {
    let telling = telling(traits);
    let telling = telling.iter().take(TOLD).filter(|t| t.deviations.abs() >= TELLING);
    let words: Vec<String> = telling
        .map(|t| {
            let far = short_deviations(t.deviations);
            let [value, all] = beside(t, recipe);
            let name = one_line(&t.aspect.name(columns, recipe));
            let half = half(t).map_or(String::new(), |half| format!("±{}", rounded(half)));
            format!("{name} {value}{half} {}{far} (all {all})", arrow(t))
        })
        .collect();
    if words.is_empty() { "like all rows".into() } else { words.join(", ") }
}

/// Returns an arrow for above or below; a cyclic time is neither.
pub fn arrow(t: &Trait) -> &'static str {
    match (t.aspect, t.deviations) {
        (_, 0.0) => "=",
        (Aspect::Cycle(..), _) => "↻",
        (_, z) if z > 0.0 => "↑",
        _ => "↓",
    }
}

/// Formats a value and that of all rows. A number that is negligible compared with their difference
/// is shown as 0. Large numbers with a small difference get enough digits to distinguish them.
pub fn beside(t: &Trait, recipe: &Recipe) -> [String; 2] {
    let nothing = |x: f64| x.abs() < 1e-6 * (t.value - t.overall).abs();
    let pair = [t.value, t.overall];
    let texts = pair.map(|x| t.aspect.text(if nothing(x) { 0.0 } else { x }, recipe));
    let plain = matches!(t.aspect, Aspect::Number(j) if recipe.numbers[j].step == Step::AsIs);
    if plain && t.value != t.overall && texts[0] == texts[1] { told_apart(pair) } else { texts }
}

/// Formats two numbers with two digits of their difference, within the precision of doubles.
fn told_apart([a, b]: [f64; 2]) -> [String; 2] {
    let exponent = |x: f64| x.abs().log10().floor();
    let digits = (exponent(a) - exponent(a - b) + 2.0).clamp(1.0, 17.0);
    if (1e-5..1e15).contains(&a.abs()) {
        let decimals = (digits - 1.0 - exponent(a)).clamp(0.0, 22.0) as usize;
        [a, b].map(|x| format!("{x:.decimals$}"))
    } else {
        [a, b].map(|x| format!("{x:.*e}", digits as usize - 1))
    }
}

fn short_deviations(deviations: f64) -> String {
    match deviations.abs() {
        far if far < 100.0 => format!("{far:.1}"),
        far => short(far.round()),
    }
}

/// Describes a place by its most unusual values compared with the baseline of a comparison.
pub fn place(mean: &[f64], levels: &[f64], drift: &Drift, plan: &Plan) -> String {
    let facts = Facts { numbers: mean, levels, missing: &[] };
    match &drift.whole {
        Some(whole) => told(&unusual(&plan.recipe, facts, whole), &plan.columns, &plan.recipe),
        None => {
            let first = Aspect::all(&plan.recipe).into_iter().take(TOLD);
            let named = first.filter_map(|aspect| {
                let value = aspect.text(facts.value(aspect, &plan.recipe)?, &plan.recipe);
                Some(format!("{} {value}", one_line(&aspect.name(&plan.columns, &plan.recipe))))
            });
            named.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns the mean share of missing values in a cluster, if the model has profiles.
pub fn lacking(model: &Model, label: usize) -> Option<f64> {
    let missing = model.profile.as_ref()?.missing_within.get(label)?;
    Some(missing.iter().sum::<f64>() / missing.len().max(1) as f64)
}

/// Summarises a model: "kmeans, 5 clusters", "gmm, 3 components, full covariances".
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

/// Formats a model as a table.
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
    let lacks = clusters.iter().any(|c| lacking(model, c.label).is_some_and(|share| share > 0.0));
    let what = if model.task == Task::Gmm { "component" } else { "cluster" };
    let width = what.len();
    let intervals = model.intervals.as_ref();
    let mut text = format!("{what} {:>7}", "share");
    if intervals.is_some() {
        text.push_str(&format!(" {:>9} {:>6}", "±", "stable"));
    }
    text.push_str(&format!(" {:>13}", "rows"));
    if spread {
        text.push_str(&format!(" {:>9}", "spread"));
    }
    if lacks {
        text.push_str(&format!(" {:>8}", "missing"));
    }
    text.push_str(if telling {
        "  differs most in (↑↓ in standard deviations of all rows)\n"
    } else {
        "\n"
    });
    for c in clusters.iter().take(LISTED) {
        text.push_str(&format!("{:>width$} {:>6.1}%", c.label, 100.0 * c.share));
        if let Some(intervals) = intervals {
            let half = intervals.weights[c.label].map(|i| format!("{}%", rounded(50.0 * wide(i))));
            let half = half.unwrap_or("unstable".into());
            text.push_str(&format!(" {half:>9} {:>6.2}", intervals.stability[c.label]));
        }
        text.push_str(&format!(" {:>13}", thousands(c.rows)));
        if spread {
            text.push_str(&format!(" {:>9}", c.spread.map_or("-".into(), short)));
        }
        if lacks {
            let share = lacking(model, c.label).map_or("-".into(), percent);
            text.push_str(&format!(" {share:>8}"));
        }
        if telling {
            let half = |t: &Trait| half_width(model, c.label, t);
            text.push_str("  ");
            text.push_str(&told_with(&c.traits, &model.columns, &model.recipe, half));
        }
        text.push('\n');
    }
    more(&mut text, clusters.len());
    intervals.iter().for_each(|i| text.push_str(&intervals_text(model, i)));
    text
}

fn wide([low, high]: Interval) -> f64 {
    high - low
}

/// Formats half the width of an interval with two digits.
fn rounded(half: f64) -> String {
    match half {
        half if half > 0.0 && half < 1e5 => {
            let digits = digits(half) + usize::from(half < 10.0);
            format!("{half:.digits$}")
        }
        half => short(half),
    }
}

/// Returns half the width of the interval of a centre's value, if the value is shown in the units
/// of the column.
fn half_width(model: &Model, label: usize, t: &Trait) -> Option<f64> {
    let Aspect::Number(j) = t.aspect else { return None };
    let as_it_is = model.recipe.numbers[j].step == Step::AsIs;
    let centre = model.intervals.as_ref()?.centres.get(label)?.as_ref()?;
    as_it_is.then(|| 0.5 * wide(centre[j]))
}

/// Explains the intervals and gives the interval of the risk.
fn intervals_text(model: &Model, intervals: &Intervals) -> String {
    let by = intervals.by.as_ref().map_or(String::new(), |by| format!(" by '{}'", one_line(by)));
    let mut text = format!(
        "± half of the {} interval from {} folds{by}; stable: Jaccard similarity to the cluster \
         found without a fold\n",
        percent(intervals.confidence),
        intervals.folds
    );
    if let Some(risk @ [low, high]) = intervals.risk {
        let name = risk_name(model);
        let digits = digits(0.5 * wide(risk)) + 1;
        text.push_str(&format!("{name}: {low:.digits$} to {high:.digits$}\n"));
    }
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
    let ratios = model.intervals.as_ref().map(|i| &i.explained_variance_ratio);
    let mut text = format!("{:>9} {:>9}", "component", "explains");
    if ratios.is_some() {
        text.push_str(&format!(" {:>9}", "±"));
    }
    text.push_str(&format!(" {:>9}  largest loadings\n", "together"));
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
        text.push_str(&format!("{:>9} {share:>8.1}%", i + 1));
        if let Some(ratios) = ratios {
            text.push_str(&format!(" {:>8}%", rounded(50.0 * wide(ratios[i]))));
        }
        text.push_str(&format!(" {together:>8.1}%  {named}\n"));
    }
    more(&mut text, components.len());
    if let Some(intervals) = &model.intervals {
        let (confidence, folds) = (percent(intervals.confidence), intervals.folds);
        text.push_str(&format!("± half of the {confidence} interval from {folds} folds\n"));
    }
    text
}

/// Returns the clusters for JSON, each with its largest differences.
pub fn clusters_json(model: &Model) -> Value {
    let one = |c: &nysketch::clusters::Cluster| {
        let told: Vec<Value> =
            telling(&c.traits).iter().take(TOLD).map(|t| trait_json(t, c.label, model)).collect();
        let mut json = json!({"label": c.label, "share": c.share, "rows": c.rows,
            "spread": c.spread, "columns": told});
        if let Some(share) = lacking(model, c.label) {
            json["missing"] = json!(share);
        }
        json
    };
    model.clusters().iter().map(one).collect()
}

/// Returns a property of a cluster for JSON, in the units of the table.
fn trait_json(t: &Trait, label: usize, model: &Model) -> Value {
    let recipe = &model.recipe;
    let undone = |x: f64| match t.aspect {
        Aspect::Number(j) => recipe.numbers[j].step.undo(x),
        _ => x,
    };
    let mut json = json!({"value": undone(t.value), "overall": undone(t.overall),
        "deviations": t.deviations});
    match t.aspect {
        Aspect::Number(j) => {
            let spreads = model.profile.as_ref().and_then(|p| p.spread.get(label));
            json["column"] = json!(model.columns[j]);
            json["spread"] = json!(spreads.map(|s| s[j]));
        }
        Aspect::Cycle(j, _) => {
            json["column"] = json!(recipe.numbers[j].input);
            json["part"] = json!(cycle(recipe.numbers[j].step).map(|(name, _)| name));
        }
        Aspect::Level(c, level) => {
            json["column"] = json!(recipe.categories[c].name);
            json["level"] = json!(recipe.categories[c].level(level));
        }
        Aspect::Missing(j) => {
            json["column"] = json!(recipe.numbers[j].input);
            json["lacks"] = json!(true);
        }
    }
    json
}

/// Names a risk, with its coordinates if columns are scaled.
pub fn risk_name(model: &Model) -> String {
    let name = match model.task {
        Task::Gmm => return "mean negative log-likelihood".into(),
        Task::Kmedians => "mean distance",
        _ => "mean squared distance",
    };
    if model.scale.iter().all(|s| *s == 1.0) {
        name.into()
    } else {
        format!("{name} in scaled columns")
    }
}

/// Formats a risk: "estimated mean squared distance 4.957", "estimated mean negative log-likelihood
/// 10.52 (10.49 to 10.55)".
pub fn estimated(model: &Model, risk: f64) -> String {
    let name = risk_name(model);
    // The interval belongs to the model's own sketch. If every row is retained, the risk is exact
    // and has no interval.
    let own = model.report.likelihood.is_some_and(|l| -l.mean == risk);
    match interval(model).filter(|[low, high]| own && high - low > 1e-4 * risk.abs()) {
        None => format!("estimated {name} {}", short(risk)),
        Some([low, high]) => {
            let digits = digits(0.5 * (high - low)).max(2);
            format!("estimated {name} {risk:.digits$} ({low:.digits$} to {high:.digits$})")
        }
    }
}

/// Returns the number of decimals that shows a number with this error.
pub fn digits(error: f64) -> usize {
    (-error.log10().floor()).clamp(0.0, 6.0) as usize
}

/// Returns the 95 % interval of the estimated risk of a mixture, if retained rows provide one.
pub fn interval(model: &Model) -> Option<[f64; 2]> {
    model.report.likelihood.map(|l| [-l.high, -l.low])
}

/// Returns further fields of a mixture for JSON; other models have none.
pub fn mixture_json(model: &Model) -> Value {
    let Shape::Mixture { covariance, .. } = &model.shape else { return json!({}) };
    let (r, [low, high]) = (&model.report, interval(model).map_or([None; 2], |i| i.map(Some)));
    json!({"covariance": covariance, "low": low, "high": high, "min_variance": r.min_variance,
        "collapsed": r.collapsed, "shrinkage": r.shrinkage, "notes": notes(model)})
}

/// Returns the notes of a model's report, with parameters spelled as options.
pub fn notes(model: &Model) -> Vec<String> {
    model.report.notes.iter().map(|note| in_options(note)).collect()
}

/// Returns the doubts about a model, with parameters spelled as options.
pub fn doubts(model: &Model) -> Vec<String> {
    model.report.doubts(model.k()).iter().map(|doubt| in_options(doubt)).collect()
}

/// Explains why this k is suggested, and what counts against it.
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
        return if curve.at_end() {
            format!("k = {k} has the least BIC, but is at {end}{icl}")
        } else {
            format!("k = {k} has the least BIC{icl}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_digits_that_tell_them_apart() {
        let texts = |a, b| told_apart([a, b]).join(" ");
        assert_eq!(texts(1.7e12 + 220.0, 1.7e12), "1700000000220 1700000000000");
        assert_eq!(texts(1000.0312, 1000.0), "1000.031 1000.000");
        assert_eq!(texts(4.70002e-12, 4.7e-12), "4.700020e-12 4.700000e-12");
        assert_eq!(texts(6.0220012e23, 6.022e23), "6.0220012e23 6.0220000e23");
        assert_eq!(texts(1.0 + f64::EPSILON, 1.0), "1.0000000000000002 1.0000000000000000");
    }
}
