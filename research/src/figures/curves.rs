//! Computes curves from trials: medians and deviations, relative to the results for all rows.

use super::record::{Run, Trials};
use super::settings::{Job, Method, Panel, View};
use nysketch::Task;

/// One point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Sketch size divided by the number of parameters, or σ².
    pub x: f64,
    pub median: f64,
    /// Standard deviation over the trials.
    pub deviation: f64,
    pub trials: usize,
    /// Median and deviation for a single pursuit, if the curve shows the best of several.
    pub single: Option<[f64; 2]>,
    /// Number of fits whose search stopped at the iteration limit.
    pub at_limit: usize,
}

/// The style of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Method(Method),
    /// The index of one of several sketch sizes, in increasing order.
    Size(usize),
}

/// One curve.
#[derive(Debug, Clone)]
pub struct Curve {
    pub name: String,
    pub style: Style,
    pub points: Vec<Point>,
    /// Whether the value is the same for all x.
    pub flat: bool,
}

/// The contents of a picture.
#[derive(Debug, Clone)]
pub struct Chart {
    pub title: String,
    pub x_name: String,
    pub y_name: &'static str,
    /// Whether y is an agreement in [0, 1] instead of a risk.
    pub agreement: bool,
    /// Whether risks are differences in nats instead of ratios.
    pub nats: bool,
    pub curves: Vec<Curve>,
    /// Vertical lines.
    pub marks: Vec<(f64, Style)>,
    /// Number of fits that failed.
    pub failed: usize,
}

/// Computes the chart of a panel from the first `trials` trials.
pub fn chart(panel: &Panel, trials: u32, quick: bool, run: &Run, table: &Trials) -> Chart {
    let study = &panel.study;
    let parameters = (study.k * study.parameters_per_cluster(run.dims)) as f64;
    let nats = study.task == Task::Gmm;
    let mut found = Found { run, table, agreement: panel.view == View::Agreement, failed: 0 };
    let jobs = panel.jobs(0, quick);
    let mut curves: Vec<Curve> = Vec::new();
    for job in jobs.iter().filter(|j| j.method != Method::AllRows) {
        let values = found.values(job, trials);
        let size = median(&values.iter().filter_map(|v| v.features).collect::<Vec<f64>>());
        let x = match panel.view {
            // Uses the actual sketch size if it is known: BLESS chooses it, and frequencies come in
            // pairs.
            View::BySize | View::Agreement => match job.size {
                Some(m) if size.is_nan() => m as f64 / parameters,
                _ => size / parameters,
            },
            _ => job.sigma2.unwrap_or(f64::NAN),
        };
        let (name, style) = match panel.view {
            View::Sizes(_) if job.method != Method::One => {
                let m = job.size.unwrap_or(0);
                let place = study.sizes.iter().position(|s| *s == m).unwrap_or(0);
                (format!("m = {m} = {:.2} p", m as f64 / parameters), Style::Size(place))
            }
            _ => (job.method.title().to_string(), Style::Method(job.method)),
        };
        let risks: Vec<f64> = values.iter().map(|v| v.value).collect();
        if risks.is_empty() {
            continue;
        }
        let singles: Vec<f64> = values.iter().filter_map(|v| v.single).collect();
        let point = Point {
            x,
            median: median(&risks),
            deviation: deviation(&risks),
            trials: risks.len(),
            single: (!singles.is_empty()).then(|| [median(&singles), deviation(&singles)]),
            at_limit: values.iter().filter(|v| v.at_limit).count(),
        };
        match curves.iter_mut().find(|c| c.name == name) {
            Some(curve) => curve.points.push(point),
            None => {
                let flat = matches!(job.method, Method::Subsample | Method::One);
                curves.push(Curve { name, style, points: vec![point], flat });
            }
        }
    }
    curves.iter_mut().for_each(|c| c.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    let p = if nats { "2kd" } else { "kd" };
    let of_sizes = matches!(panel.view, View::BySize | View::Agreement);
    let marks = match panel.view {
        View::ByVariance => vec![
            (study.sigma2[0], Style::Method(Method::Uniform)),
            (study.sigma2[1], Style::Method(Method::Fourier)),
        ],
        View::Sizes(_) => curves
            .iter()
            .filter(|c| !c.flat)
            .filter_map(|c| {
                let best = c.points.iter().min_by(|a, b| a.median.total_cmp(&b.median))?;
                Some((best.x, c.style))
            })
            .collect(),
        _ => Vec::new(),
    };
    let sweep = match (panel.view, jobs.iter().find_map(|j| j.size)) {
        (View::ByVariance, Some(m)) => format!(", m = {m}"),
        (View::Sizes(Method::Fourier), _) => ", random Fourier".into(),
        (View::Sizes(_), _) => ", Nyström (uniform)".into(),
        _ => String::new(),
    };
    Chart {
        title: format!("{}{sweep}", study.title),
        x_name: if of_sizes {
            format!("sketch size m / p,  p = {p} = {parameters}")
        } else {
            "kernel variance σ²".into()
        },
        y_name: match (panel.view, nats) {
            (View::Agreement, _) => "adjusted Rand index",
            (_, true) => "nats above EM on all rows",
            (_, false) => "risk / risk of Lloyd on all rows",
        },
        agreement: panel.view == View::Agreement,
        nats,
        curves,
        marks,
        failed: found.failed,
    }
}

struct Found<'a> {
    run: &'a Run,
    table: &'a Trials,
    agreement: bool,
    failed: usize,
}

/// The values of one fit that a picture shows.
struct Value {
    value: f64,
    features: Option<f64>,
    single: Option<f64>,
    at_limit: bool,
}

impl Found<'_> {
    /// Returns the values of every trial that succeeded.
    fn values(&mut self, job: &Job, trials: u32) -> Vec<Value> {
        let mut values = Vec::new();
        for trial in 0..trials {
            let get = |job: &Job| self.table.get(&self.run.key(job));
            let outcome = match get(&job.at(trial)) {
                Some(Ok(outcome)) => outcome,
                Some(Err(_)) => {
                    self.failed += 1;
                    continue;
                }
                None => continue,
            };
            let Some(Ok(all)) = get(&job.study.reference(trial)) else {
                self.failed += 1;
                continue;
            };
            let over = |risk: f64, ari: Option<f64>| match (self.agreement, job.study.task) {
                (true, _) => ari.unwrap_or(f64::NAN),
                (false, Task::Gmm) => risk - all.risk,
                (false, _) => risk / all.risk,
            };
            values.push(Value {
                value: over(outcome.risk, outcome.ari),
                features: outcome.features.map(|f| f as f64),
                single: outcome.single.map(|(risk, ari)| over(risk, ari)),
                at_limit: outcome.search.as_ref().is_some_and(|s| s.status == "EvaluationLimit"),
            });
        }
        values
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_deviations() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(deviation(&[1.0, 3.0]), 2.0f64.sqrt());
        assert_eq!(deviation(&[5.0]), 0.0);
    }
}
