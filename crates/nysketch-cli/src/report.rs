//! A page about a sketch that opens in any browser: what `nysketch report` writes.

use crate::describe::{measured_at, place};
use crate::output::{Usage, count, short, size, thousands};
use crate::page::{Page, escape};
use crate::plot;
use anyhow::{Context, Result};
use nysketch::decoder::{Curve, noise_floor};
use nysketch::drift::{Comparison, Drift, DriftParams};
use nysketch::model::Shape;
use nysketch::predictor::Detail;
use nysketch::{Context as Decoding, FitParams, Model, Predictor, Sketch, Task, fit};
use std::fmt::Write;
use std::ops::RangeInclusive;

/// Columns of a table of centres, and clusters drawn apart, before they are too many to read.
const MOST_COLUMNS: usize = 40;
/// Largest k of the curve where none is given.
pub const DEFAULT_MOST_CLUSTERS: usize = 12;
/// What may be given: an elbow needs neighbours, and more fits take minutes.
const CLUSTERS: RangeInclusive<usize> = 3..=200;

/// What to report on.
#[derive(Debug, Clone)]
pub struct ReportRequest<'a> {
    /// The sketch.
    pub sketch: &'a Sketch,
    /// What the sketch is called: the title of the page.
    pub name: &'a str,
    /// The model to show; k-means with the k that the curve suggests by default.
    pub model: Option<&'a Model>,
    /// A sketch to compare with, and what it is called.
    pub baseline: Option<(&'a Sketch, &'a str)>,
    /// Largest k of the curve.
    pub most_clusters: usize,
    /// Seed of everything random.
    pub seed: u64,
}

impl<'a> ReportRequest<'a> {
    /// The defaults for a sketch.
    pub fn new(sketch: &'a Sketch, name: &'a str) -> Self {
        let most_clusters = DEFAULT_MOST_CLUSTERS;
        ReportRequest { sketch, name, model: None, baseline: None, most_clusters, seed: 0 }
    }
}

/// A page about a sketch.
#[derive(Debug, Clone)]
pub struct Report {
    /// One HTML file without links to anything else.
    pub html: String,
    /// Clusters or components of the model that is shown.
    pub k: Option<usize>,
}

/// Makes the page.
pub fn page(request: &ReportRequest<'_>) -> Result<Report> {
    let ReportRequest { sketch, name, .. } = *request;
    if sketch.rows() == 0 {
        return Err(Usage(format!("{name} has no rows to report on")).into());
    }
    if !CLUSTERS.contains(&request.most_clusters) {
        let (low, high) = (CLUSTERS.start(), CLUSTERS.end());
        let got = request.most_clusters;
        let message = format!("`most_clusters` must be between {low} and {high}, got {got}");
        return Err(Usage(message).into());
    }
    if request.model.is_some_and(|model| model.columns != sketch.plan().columns) {
        return Err(Usage("the model has other columns than the sketch".into()).into());
    }
    let decoding = Decoding::new(sketch);
    let curve = curve(&decoding, request)?;
    let suggested = curve.as_ref().map(|c| &c.points[c.suggested].model);
    let model = request.model.or(suggested);
    let mut page = Page::new(name);
    summary(&mut page, sketch);
    match model {
        Some(model) => clusters(&mut page, &decoding, model)?,
        None => page
            .text("No clusters: Fourier sketches and sketches of one place need a model to show."),
    }
    if let Some(curve) = &curve {
        k_curve(&mut page, curve)?;
    }
    columns(&mut page, sketch);
    bandwidths(&mut page, &decoding, model)?;
    if let Some((baseline, other)) = request.baseline {
        let params = DriftParams::default().seed(request.seed);
        let drift = Comparison::new(baseline.plan())?
            .of(baseline, sketch, &params)
            .with_context(|| format!("{other} and {name}"))?;
        drift_section(&mut page, &drift, sketch, other);
    }
    Ok(Report { html: page.finish(), k: model.map(Model::k) })
}

/// k-means for every k, where the sketch can tell risks and has places for two centres.
fn curve(decoding: &Decoding<'_>, request: &ReportRequest<'_>) -> Result<Option<Curve>> {
    let (sketch, plan) = (decoding.sketch(), decoding.plan());
    let places = match plan.collect.cells {
        true => sketch.cells().len(),
        false => plan.features.points().len(),
    };
    let most = places.min(request.most_clusters);
    if plan.landmarks().is_none() || !(plan.collect.cells || plan.collect.kernel) || most < 2 {
        return Ok(None);
    }
    let params = FitParams::new(Task::Kmeans, 1).seed(request.seed);
    Ok(Some(decoding.curve(&params, 1, most)?))
}

fn names(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|t| t.to_string()).collect()
}

fn summary(page: &mut Page, sketch: &Sketch) {
    let plan = sketch.plan();
    let bytes = sketch.to_bytes().len();
    let mut rows = vec![
        names(&["rows", &thousands(sketch.rows())]),
        names(&["columns", &thousands(plan.dims() as u64)]),
        names(&["measured at", &measured_at(plan)]),
        names(&["keeps", &plan.collect.names().join(", ")]),
        names(&["size", &size(bytes)]),
        names(&["plan", &plan.fingerprint()[..16]]),
    ];
    if sketch.skipped() > 0 {
        rows.insert(1, names(&["skipped as invalid", &thousands(sketch.skipped())]));
    }
    if let Some(w) = &plan.weighting {
        rows.insert(
            1,
            names(&["weights", &format!("column {}, in units of {}", w.column, w.unit)]),
        );
    }
    if plan.frame.scale.iter().any(|s| *s != 1.0) {
        rows.push(names(&["scale", "columns are divided by their standard deviation"]));
    }
    page.table(&names(&["sketch", ""]), &rows);
}

/// Two axes to draw in: principal ones, or the widest columns where moments are not kept.
struct Axes {
    names: [String; 2],
    model: Option<Model>,
    columns: [usize; 2],
}

impl Axes {
    fn new(sketch: &Sketch) -> Self {
        let d = sketch.plan().dims();
        let names = ["first principal axis", "second principal axis"].map(String::from);
        if let Ok(model) = fit(sketch, &FitParams::new(Task::Pca, d.min(2)))
            && d > 1
        {
            return Axes { names, model: Some(model), columns: [0, 0] };
        }
        let mut order: Vec<usize> = (0..d).collect();
        let moments = sketch.column_moments().unwrap_or_else(|| vec![(0.0, 0.0); d]);
        let scale = &sketch.plan().frame.scale;
        let spread = |k: usize| moments[k].1 / (scale[k] * scale[k]);
        order.sort_by(|i, j| spread(*j).total_cmp(&spread(*i)));
        let columns = [order[0], order[d.min(2) - 1]];
        Axes { names: columns.map(|k| sketch.plan().columns[k].clone()), model: None, columns }
    }

    fn place(&self, row: &[f64]) -> (f64, f64) {
        match &self.model {
            Some(model) => {
                let predictor = Predictor::new(model);
                let y = predictor.predict(row, Detail::All).transformed;
                (y[0], y[1])
            }
            None => (row[self.columns[0]], row[self.columns[1]]),
        }
    }
}

fn clusters(page: &mut Page, decoding: &Decoding<'_>, model: &Model) -> Result<()> {
    let sketch = decoding.sketch();
    let (weights, centres) = match &model.shape {
        Shape::Centres { weights, centres } => (weights, centres),
        Shape::Mixture { weights, means, .. } => (weights, means),
        Shape::Components { .. } => {
            page.text("The model holds principal components; clusters need k-means, k-medians or a mixture.");
            return Ok(());
        }
    };
    page.heading(&format!(
        "{}, learned from the sketch ({})",
        count(centres.len() as u64, "cluster"),
        model.task
    ));
    let cells = sketch.cells();
    if !cells.is_empty() {
        let axes = Axes::new(sketch);
        let most = cells.iter().map(|c| c.1).max().unwrap_or(1) as f64;
        let means: Vec<f64> = cells.iter().flat_map(|c| &c.2).copied().collect();
        let predictor = Predictor::new(model);
        let labels = predictor.predict(&means, Detail::Label).label;
        let dots: Vec<plot::Dot> = cells
            .iter()
            .zip(labels)
            .map(|((_, rows, mean), label)| {
                let (x, y) = axes.place(mean);
                let size = 2.0 + 16.0 * (*rows as f64 / most).sqrt();
                plot::Dot { x, y, cluster: label as usize, size }
            })
            .collect();
        let places: Vec<(f64, f64)> = centres.iter().map(|c| axes.place(c)).collect();
        let title = format!("{} cells of {} rows", cells.len(), thousands(sketch.rows()));
        page.push(&plot::clusters(&title, [&axes.names[0], &axes.names[1]], &dots, &places).svg()?);
        page.note("Each disc is a cell: the rows nearest to one landmark, at their mean, its area their number, its colour the cluster of that mean. Crosses are the centres.");
    }
    if let Some(explanation) = decoding.explain(model)? {
        let verdict = explanation.verdict.text();
        page.text(&format!("Against the noise of the sketch: {verdict}."));
    }
    let shown: Vec<usize> = (0..model.columns.len().min(MOST_COLUMNS)).collect();
    let mut html =
        String::from("<div class=\"wide\"><table><thead><tr><th>cluster</th><th>share</th>");
    for &k in &shown {
        write!(html, "<th>{}</th>", escape(&model.columns[k]))?;
    }
    html.push_str("</tr></thead><tbody>\n");
    for (i, (share, centre)) in weights.iter().zip(centres).enumerate() {
        let c = plot::colour(i);
        write!(
            html,
            "<tr><td><span class=\"dot\" style=\"background:rgb({},{},{})\"></span>{}</td><td>{:.1} %</td>",
            c.0,
            c.1,
            c.2,
            i,
            100.0 * share
        )?;
        for &k in &shown {
            write!(html, "<td>{}</td>", short(centre[k]))?;
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    page.push(&html);
    if model.columns.len() > MOST_COLUMNS {
        page.note(&format!("The first {MOST_COLUMNS} of {} columns.", model.columns.len()));
    }
    if let Some(moments) = sketch.column_moments() {
        let line = |centre: &Vec<f64>| {
            let z = |k: &usize| {
                let (mean, variance) = moments[*k];
                if variance > 0.0 { (centre[*k] - mean) / variance.sqrt() } else { 0.0 }
            };
            shown.iter().map(z).collect::<Vec<f64>>()
        };
        let lines: Vec<(f64, Vec<f64>)> =
            weights.iter().zip(centres).map(|(w, c)| (*w, line(c))).collect();
        if shown.len() > 1 {
            page.push(&plot::parallel(&model.columns[..shown.len()], &lines).svg()?);
            page.note("Centres across the columns; a wider line is a larger cluster.");
        }
    }
    Ok(())
}

fn k_curve(page: &mut Page, curve: &Curve) -> Result<()> {
    page.heading("How many clusters?");
    let points: Vec<(usize, f64)> = curve.points.iter().map(|p| (p.k, p.risk)).collect();
    let best = curve.points[curve.suggested].k;
    page.push(&plot::curve(&points, best, "mean squared distance (k-means)").svg()?);
    page.note(match curve.clear {
        true => "Estimated from the sketch. The elbow of the curve is clear.",
        false => "Estimated from the sketch. No k stands out; the one marked improves most beside the next.",
    });
    Ok(())
}

fn columns(page: &mut Page, sketch: &Sketch) {
    let Some(moments) = sketch.column_moments() else { return };
    page.heading("Columns");
    let row = |(name, (mean, variance)): (&String, (f64, f64))| {
        vec![name.clone(), short(mean), short(variance.sqrt())]
    };
    let rows: Vec<_> = sketch.plan().columns.iter().zip(moments).map(row).collect();
    page.table(&names(&["column", "mean", "standard deviation"]), &rows);
}

fn bandwidths(page: &mut Page, decoding: &Decoding<'_>, model: Option<&Model>) -> Result<()> {
    let (sketch, plan) = (decoding.sketch(), decoding.plan());
    if !plan.collect.kernel {
        return Ok(());
    }
    page.heading("Bandwidths");
    let missed = sketch.missed();
    let chosen = model.and_then(|m| m.report.bandwidth);
    let mut rows = Vec::new();
    for (rung, &sigma2) in plan.bandwidths.iter().enumerate() {
        let embedding = decoding.embedding(rung)?;
        let share = missed.get(rung).map_or("-".to_string(), |m| format!("{:.1} %", 100.0 * m));
        rows.push(vec![
            short(sigma2),
            share,
            format!("{} of {}", embedding.rank(), embedding.len()),
            short(noise_floor(embedding.squared_norm(&embedding.target), sketch.rows())),
            if chosen == Some(sigma2) { "yes".into() } else { String::new() },
        ]);
    }
    let header = ["σ²", "missed at most", "moments", "noise floor", "decoded"];
    page.table(&names(&header), &rows);
    page.note("Missed: an upper bound on the part of the rows' features that the landmarks do not see. Noise floor: how far the sketch of so many rows is from that of their distribution. Models from cells use no bandwidth.");
    Ok(())
}

fn drift_section(page: &mut Page, drift: &Drift, sketch: &Sketch, baseline: &str) {
    page.heading(&format!("Against {baseline}"));
    match (drift.p_value, &drift.no_test) {
        (Some(p), _) => {
            let differ = drift.drift == Some(true);
            let verdict = if differ { "the rows differ" } else { "no difference found" };
            page.text(&format!("p-value {}: {verdict} (level {}).", short(p), drift.level));
        }
        (None, Some(why)) => {
            page.text(&format!("No p-value: {}.", crate::output::in_options(why)));
        }
        _ => {}
    }
    let rows: Vec<_> = drift
        .discrepancies
        .iter()
        .map(|d| vec![short(d.sigma2), short(d.mmd), short(d.noise)])
        .collect();
    if !rows.is_empty() {
        page.table(&names(&["σ²", "discrepancy (MMD)", "noise"]), &rows);
    }
    let rows: Vec<_> = drift
        .columns
        .iter()
        .take(10)
        .map(|c| {
            vec![c.column.clone(), short(c.means[0]), short(c.means[1]), format!("{:+.1}", c.z)]
        })
        .collect();
    if !rows.is_empty() {
        page.table(&names(&["column", "mean there", "mean here", "z"]), &rows);
    }
    let rows: Vec<_> = drift
        .cells
        .iter()
        .take(10)
        .map(|c| {
            vec![
                place(&c.mean, drift, sketch.plan()),
                format!("{:.2} %", 100.0 * c.shares[0]),
                format!("{:.2} %", 100.0 * c.shares[1]),
                format!("{:+.1}", c.z),
            ]
        })
        .collect();
    if !rows.is_empty() {
        page.table(
            &names(&["cell, by its most unusual columns", "share there", "share here", "z"]),
            &rows,
        );
    }
}
