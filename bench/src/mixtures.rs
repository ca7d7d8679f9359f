//! Scratch.
use nysketch::*;
use std::sync::Arc;
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let kinds: Vec<CovarianceKind> =
        args[1].split(',').map(|k| CovarianceKind::from_name(k).unwrap()).collect();
    let ks: Vec<usize> = args[2].split(',').map(|k| k.parse().unwrap()).collect();
    let seeds: u64 = args[3].parse().unwrap();
    let witnesses: usize = args[4].parse().unwrap();
    for file in args[0].split(',') {
        let bytes = std::fs::read(file).unwrap();
        let header = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
        let text = String::from_utf8_lossy(&bytes[10..10 + header]).to_string();
        let shape = text.split("'shape': (").nth(1).unwrap();
        let d: usize = shape.split([',', ')']).nth(1).unwrap().trim().parse().unwrap();
        let rows: Vec<f64> = bytes[10 + header..]
            .chunks_exact(4)
            .map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])))
            .collect();
        let table = Table::unnamed(d, rows.clone()).unwrap();
        for seed in 0..seeds {
            let start = Instant::now();
            let mut params = PlanParams::default().seed(seed).threads(2);
            if witnesses != 1 {
                params = params.witnesses(witnesses);
            }
            let plan = Arc::new(plan_for(&table, params).unwrap().0);
            let made = start.elapsed().as_secs_f64();
            let sketch =
                Sketch::of(&plan, &table, SketchParams::default().threads(2), &()).unwrap();
            let pass = start.elapsed().as_secs_f64() - made;
            let context = Context::new(&sketch);
            for &kind in &kinds {
                for &k in &ks {
                    let model = context
                        .fit(&FitParams::new(Task::Gmm, k).covariance(kind).seed(seed).threads(2))
                        .unwrap();
                    let said = Predictor::new(&model)
                        .predict(&rows, predictor::Detail::Density)
                        .log_density;
                    let mean = said.iter().sum::<f64>() / said.len() as f64;
                    let l = model.report.likelihood;
                    let flagged =
                        model.densities.as_ref().and_then(|d| d.threshold(0.01)).map(|t| {
                            said.iter().filter(|l| **l < t).count() as f64 / said.len() as f64
                        });
                    println!(
                        "{} {kind} k={k} seed {seed}: {mean:.3} estimated {:.3} [{:.3}, {:.3}] {} fit {:.2}s steps {} collapsed {} shrink {} flagged {:?}; plan {made:.2} pass {pass:.2}",
                        file.rsplit('/').next().unwrap(),
                        l.map_or(f64::NAN, |l| l.mean),
                        l.map_or(f64::NAN, |l| l.low),
                        l.map_or(f64::NAN, |l| l.high),
                        l.is_some_and(|l| l.low <= mean && mean <= l.high),
                        model.report.seconds,
                        model.report.iterations,
                        model.report.collapsed,
                        model.report.shrinkage,
                        flagged
                    );
                }
            }
        }
    }
}
