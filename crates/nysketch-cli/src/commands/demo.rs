//! `nysketch demo`: the whole path on generated data, checked against the rows.

use crate::args::{Common, Demo};
use crate::output::{result, size, thousands};
use crate::progress::Bar;
use anyhow::{Result, ensure};
use nysketch::kernel::Gaussian;
use nysketch::synthetic::CHUNK_ROWS;
use nysketch::{
    Instructions, Mixture, PlanParams, RowSource, Sketch, SketchParams, Table, make_plan,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

const DIMS: usize = 10;
const CLUSTERS: usize = 10;
/// Rows that are sketched apart and put together again.
const PART_ROWS: usize = 10_000;
/// Landmarks at which the sketch is compared with the rows.
const CHECKED: usize = 5;

pub fn run(args: &Demo, common: &Common) -> Result<()> {
    let mixture = Mixture::new(DIMS, CLUSTERS, 2.0, args.seed)?;
    let source = mixture.source(args.rows);
    let params = PlanParams {
        seed: args.seed,
        threads: common.threads(),
        ..PlanParams::default()
    };

    let start = Instant::now();
    let bar = Bar::new("planning", None, common.quiet);
    let (plan, _) = make_plan(&source, &params.check()?, &bar)?;
    drop(bar);
    let planning = start.elapsed().as_secs_f64();
    let plan = Arc::new(plan);

    let start = Instant::now();
    let whole = sketch(&plan, &source, Some(args.rows), common)?;
    let sketching = start.elapsed().as_secs_f64();
    let bytes = whole.to_bytes();

    // The first rows once more, taken out and put back.
    let rows = mixture
        .rows(0, PART_ROWS.min(args.rows as usize).min(CHUNK_ROWS))
        .values;
    let part = sketch(&plan, &Table::unnamed(DIMS, rows)?, None, common)?;
    let mut rest = whole.clone();
    rest.subtract(&part)?;
    let without = rest.rows();
    rest.merge(&part)?;
    ensure!(
        rest.to_bytes() == bytes,
        "taking rows out and putting them back changed the bytes"
    );

    let error = largest_error(&whole, &mixture, args.rows);
    let values = args.rows * DIMS as u64;
    let json = json!({
        "rows": args.rows, "columns": DIMS, "landmarks": plan.features.points().len(),
        "bytes": bytes.len(), "planning_seconds": planning, "sketching_seconds": sketching,
        "largest_relative_error": error, "same_bytes": true,
    });
    let text = format!(
        "\
generated   {} rows × {DIMS} columns, {CLUSTERS} clusters ({} as float32)
planned     {} landmarks, {} bandwidths, in {planning:.2} s
sketched    into {}, in {sketching:.2} s ({} rows/s)
subtracted  {} rows ({} left), merged them back: the same bytes
checked     kernel means against the rows in double precision: largest relative error {error:.1e}

Try it on your own table:
  nysketch sketch table.csv -o table.nys
  nysketch inspect table.nys",
        thousands(args.rows),
        size(4 * values as usize),
        plan.features.points().len(),
        plan.bandwidths.len(),
        size(bytes.len()),
        thousands((args.rows as f64 / sketching) as u64),
        thousands(part.rows()),
        thousands(without),
    );
    result(common, &json, &text)
}

fn sketch(
    plan: &Arc<nysketch::Plan>,
    source: &dyn RowSource,
    rows: Option<u64>,
    common: &Common,
) -> Result<Sketch> {
    let bar = Bar::new("sketching", rows, common.quiet || rows.is_none());
    let params = SketchParams {
        threads: common.threads(),
        instructions: Instructions::best(),
        ..SketchParams::default()
    };
    Ok(Sketch::of(plan, source, params, &bar)?)
}

/// The widest bandwidth's kernel means at a few landmarks, beside those computed from the rows.
fn largest_error(sketch: &Sketch, mixture: &Mixture, rows: u64) -> f64 {
    let plan = sketch.plan();
    let points = plan.features.points();
    let kernel = Gaussian {
        sigma2: plan.bandwidths[0],
    };
    let step = (points.len() / CHECKED).max(1);
    let chosen: Vec<usize> = (0..points.len()).step_by(step).take(CHECKED).collect();
    let landmarks: Vec<Vec<f64>> = chosen
        .iter()
        .map(|&j| plan.frame.widen(points.row(j)))
        .collect();
    let mut sums = vec![0.0; chosen.len()];
    for chunk in 0..rows.div_ceil(CHUNK_ROWS as u64) {
        let count = (rows - chunk * CHUNK_ROWS as u64).min(CHUNK_ROWS as u64);
        for row in mixture
            .rows(chunk, count as usize)
            .values
            .chunks_exact(DIMS)
        {
            for (sum, z) in sums.iter_mut().zip(&landmarks) {
                *sum += kernel.value(row, z);
            }
        }
    }
    let means = sketch.feature_means(0);
    let exact = sums.iter().map(|s| s / rows as f64);
    exact
        .zip(&chosen)
        .map(|(e, &j)| (means[j] / e - 1.0).abs())
        .fold(0.0, f64::max)
}
