//! `nysketch demo`: the complete workflow on generated data, compared with baselines.

use crate::args::{Common, Demo};
use crate::kind::Kind;
use crate::output::{name, result, size, thousands};
use crate::progress::Bar;
use crate::writing::{check_output, go_on, keep_bytes};
use anyhow::{Result, ensure};
use nysketch::decoder::cells::Cells;
use nysketch::metrics::Risks;
use nysketch::model::Shape;
use nysketch::predictor::Detail;
use nysketch::{
    CovarianceKind, Decoder, FitParams, Mixture, Model, Plan, PlanParams, Predictor, Report,
    Sketch, SketchParams, Table, Task, fit, make_plan,
};
use nysketch_core::kmeans::{Effort, Loss, WeightedPoints};
use nysketch_report::plot;
use nysketch_report::sections::{ReportRequest, page};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

const DIMS: usize = 10;
const CLUSTERS: usize = 10;
/// Number of rows that are subtracted and merged again.
const PART_ROWS: usize = 5000;
/// Number of rows in the sample that serves as a baseline.
const SUBSAMPLE: usize = 2000;
/// Next steps, printed after the demo.
const NEXT: &str = "
try it on a table of your own (Parquet, csv, Arrow, npy):
  nysketch sketch table.parquet -o table.nys --scale standard
  nysketch fit kmeans table.nys -k 2..20 -o model.json
  nysketch report table.nys model.json -o report.html
";

/// Number of rows in the picture.
const DRAWN: usize = 3000;

/// One line of the comparison table.
struct Line {
    task: &'static str,
    from: &'static str,
    risk: f64,
    bytes: usize,
    seconds: f64,
}

pub fn run(args: &Demo, common: &Common) -> Result<()> {
    let page_file = args.output.with_extension("html");
    check_output(common, &args.output, Kind::by_extension(&args.output), [])?;
    check_output(common, &page_file, Kind::Page, [])?;
    let mixture = Mixture::new(DIMS, CLUSTERS, 2.0, args.seed)?;
    let rows = mixture.chunks(args.rows).flat_map(|chunk| chunk.values).collect();
    let table = Table::unnamed(DIMS, rows)?;
    let params = PlanParams::default().seed(args.seed).threads(common.threads());

    let start = Instant::now();
    let bar = Bar::making("planning", 2 * args.rows, common.quiet);
    let plan = Arc::new(make_plan(&table, &params.check()?, &bar)?.plan);
    let planning = start.elapsed().as_secs_f64();
    drop(bar);
    let start = Instant::now();
    let whole = sketch(&plan, &table, common)?;
    let sketching = start.elapsed().as_secs_f64();
    let bytes = whole.to_bytes();

    let part = Table::unnamed(DIMS, table.values()[..PART_ROWS * DIMS].to_vec())?;
    let part = sketch(&plan, &part, common)?;
    let mut rest = whole.clone();
    rest.subtract(&part)?;
    let without = rest.rows();
    rest.merge(&part)?;
    ensure!(rest.to_bytes() == bytes, "subtracting rows and merging them back changed the bytes");

    let values = table.values();
    let (kmeans, lines) = compare(&whole, values, bytes.len(), args.seed)?;
    go_on()?;
    draw(args, &whole, &kmeans, values)?;
    let title = format!("{} rows of nysketch demo", thousands(args.rows));
    let request = ReportRequest { seed: args.seed, ..ReportRequest::new(&whole, &title) };
    keep_bytes(&page_file, page(&request)?.html.as_bytes())?;

    let results: Vec<_> = lines
        .iter()
        .map(|l| {
            let relative = relative(l, &lines);
            json!({"task": l.task, "from": l.from, "risk": l.risk, "relative": relative, "bytes": l.bytes, "seconds": l.seconds})
        })
        .collect();
    let json = json!({
        "rows": args.rows, "columns": DIMS, "landmarks": plan.features.points().len(), "bytes": bytes.len(),
        "planning_seconds": planning, "sketching_seconds": sketching, "same_bytes": true,
        "picture": name(&args.output), "page": name(&page_file), "results": results,
    });
    let mut text = format!(
        "\
generated   {} rows × {DIMS} columns, {CLUSTERS} clusters ({} in memory)
planned     {} landmarks, {} bandwidths, in {planning:.2} s
sketched    into {}, in {sketching:.2} s
subtracted  {} rows ({} left), merged them back: the same bytes

{:9} {:34} {:>9} {:>9} {:>10} {:>8}
",
        thousands(args.rows),
        size(8 * values.len()),
        plan.features.points().len(),
        plan.bandwidths.len(),
        size(bytes.len()),
        thousands(part.rows()),
        thousands(without),
        "task",
        "learned from",
        "risk",
        "",
        "kept",
        "seconds",
    );
    for l in &lines {
        let relative = match l.task {
            "kmeans" => format!("×{:.4}", relative(l, &lines)),
            _ => format!("{:+.4}", relative(l, &lines)),
        };
        let row = format!(
            "{:9} {:34} {:>9.4} {relative:>9} {:>10} {:>8.2}\n",
            l.task,
            l.from,
            l.risk,
            size(l.bytes),
            l.seconds
        );
        text.push_str(&row);
    }
    text.push_str(&format!(
        "\nrisk: mean squared distance for kmeans, negative log-likelihood (nats) for \
         gmm\npicture: {}\npage: {} (opens in any browser)\n{NEXT}",
        args.output.display(),
        page_file.display()
    ));
    result(common, &json, &text)
}

/// Compares a line with the one for all rows: a ratio for k-means, a difference in nats for
/// mixtures.
fn relative(line: &Line, lines: &[Line]) -> f64 {
    let reference = lines.iter().find(|l| l.task == line.task).map_or(line.risk, |l| l.risk);
    if line.task == "kmeans" { line.risk / reference } else { line.risk - reference }
}

fn sketch(plan: &Arc<Plan>, source: &Table, common: &Common) -> Result<Sketch> {
    let params = SketchParams::default().threads(common.threads());
    Ok(Sketch::of(
        plan,
        source,
        params,
        &Bar::making("sketching", source.len() as u64, common.quiet),
    )?)
}

/// Fits k-means and a mixture to all rows, to the sketch, to its landmarks alone, and to a
/// subsample.
fn compare(sketch: &Sketch, values: &[f64], bytes: usize, seed: u64) -> Result<(Model, Vec<Line>)> {
    let mut lines = Vec::new();
    let landmarks = sketch.plan().features.points();
    let landmark_rows: Vec<f64> =
        landmarks.rows().flat_map(|z| sketch.plan().frame.widen(z)).collect();
    let subsample = &values[..SUBSAMPLE * DIMS];
    let mut lloyd = |from, rows: &[f64], restarts| {
        let start = Instant::now();
        let points = WeightedPoints::of_rows(DIMS, rows);
        let effort = Effort::new(restarts, 100);
        let centres =
            points.cluster(CLUSTERS, Loss::Squared, effort, &mut ChaCha8Rng::seed_from_u64(seed));
        let seconds = start.elapsed().as_secs_f64();
        let all = WeightedPoints::of_rows(DIMS, values);
        let risk = all.risk(&centres, Loss::Squared);
        lines.push(Line { task: "kmeans", from, risk, bytes: 8 * rows.len(), seconds });
    };
    lloyd("all rows (best of 5 Lloyd runs)", values, 5);
    lloyd("the landmarks alone", &landmark_rows, 10);
    lloyd("2,000 rows", subsample, 10);
    // EM on all rows uses diagonal covariances, so the sketch does, too.
    let covariance = |task| (task == Task::Gmm).then_some(CovarianceKind::Diag);
    let params = |task, decoder| {
        FitParams::new(task, CLUSTERS).decoder(decoder).seed(seed).covariance(covariance(task))
    };
    let em = |from, rows: &[f64], restarts| {
        let start = Instant::now();
        let effort = Effort::new(restarts, 100);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let rows_as_cells = Cells::of_rows(DIMS, rows);
        let atoms = rows_as_cells.mixture(CLUSTERS, effort, &mut rng, &mut Report::default());
        let seconds = start.elapsed().as_secs_f64();
        let risk = -Cells::of_rows(DIMS, values).likelihood(&atoms);
        Line { task: "gmm", from, risk, bytes: 8 * rows.len(), seconds }
    };
    let learned = |from, task: Task, decoder| -> Result<(Model, Line)> {
        let start = Instant::now();
        let model = fit(sketch, &params(task, decoder))?;
        let seconds = start.elapsed().as_secs_f64();
        let e = evaluate(&model, values);
        let risk = e.nll.unwrap_or(e.mse);
        Ok((model, Line { task: task.name(), from, risk, bytes, seconds }))
    };
    let (kmeans, line) = learned("the sketch: cells", Task::Kmeans, Decoder::Cells)?;
    lines.push(line);
    for (from, decoder) in [
        ("the sketch: kernel sums", Decoder::Kernel),
        ("the sketch: kernel sums, CL-OMPR", Decoder::Clompr),
    ] {
        lines.push(learned(from, Task::Kmeans, decoder)?.1);
    }
    lines.push(em("all rows (EM)", values, 1));
    lines.push(em("2,000 rows (EM, best of 10)", subsample, 10));
    for (from, decoder) in
        [("the sketch: cells", Decoder::Cells), ("the sketch: kernel sums", Decoder::Kernel)]
    {
        lines.push(learned(from, Task::Gmm, decoder)?.1);
    }
    Ok((kmeans, lines))
}

fn evaluate(model: &Model, values: &[f64]) -> nysketch::metrics::Evaluation {
    let mut risks = Risks::default();
    risks.add(&Predictor::new(model), values, &[]);
    risks.evaluation(model)
}

/// Draws rows in the first two principal axes, coloured by cluster.
fn draw(args: &Demo, sketch: &Sketch, kmeans: &Model, values: &[f64]) -> Result<()> {
    let axes = fit(sketch, &FitParams::new(Task::Pca, 2))?;
    let axes = Predictor::new(&axes);
    let places = |rows: &[f64]| -> Vec<(f64, f64)> {
        let y = axes.predict(rows, Detail::All).transformed;
        y.chunks_exact(2).map(|y| (y[0], y[1])).collect()
    };
    let drawn = &values[..values.len().min(DRAWN * DIMS)];
    let labels = Predictor::new(kmeans).predict(drawn, Detail::Label).label;
    let dot = |(place, label)| plot::Dot {
        place,
        rows: 1.0,
        cluster: label as usize,
        title: String::new(),
    };
    let dots: Vec<plot::Dot> = places(drawn).into_iter().zip(labels).map(dot).collect();
    let centres = match &kmeans.shape {
        Shape::Centres { centres, .. } => places(&centres.concat()),
        _ => Vec::new(),
    };
    let title =
        format!("{CLUSTERS} clusters learned from the sketch of {} rows", thousands(args.rows));
    let scene = plot::map(&plot::Map {
        title: &title,
        axes: ["first principal axis", "second principal axis"],
        what: "row",
        dots: &dots,
        centres: &[centres],
        shown: 0,
    });
    plot::write(&args.output, &scene)
}
