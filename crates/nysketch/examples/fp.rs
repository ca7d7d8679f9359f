//! fp
#![allow(missing_docs)]
use nysketch::decoder::{explain, fit_curve};
use nysketch::metrics::Risks;
use nysketch::planning::Missing;
use nysketch::predictor::{Detail, ModelRows};
use nysketch::recipe::View;
use nysketch::rows::read_in_order;
use nysketch::theory::{TheoryParams, theory};
use nysketch::*;
use rand::SeedableRng;
use std::sync::Arc;

fn show(name: &str, what: impl std::fmt::Debug) {
    let text = format!("{what:?}");
    // wall-clock fields
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("seconds: ") {
        out.push_str(&rest[..at]);
        rest = &rest[at + 9..];
        let end = rest.find([',', ' ']).unwrap_or(0);
        rest = &rest[end..];
    }
    out.push_str(rest);
    println!("{name}: {out}");
}

fn seen(model: &Model, table: &Table) -> (Vec<f64>, Vec<u32>) {
    let view = View::new(&model.recipe, &model.columns, table).unwrap();
    let (mut values, mut codes) = (Vec::new(), Vec::new());
    read_in_order(&view, &(), |block| {
        values.extend_from_slice(&block.values);
        codes.extend_from_slice(&block.codes);
        Ok(())
    })
    .unwrap();
    (values, codes)
}

fn examine(name: &str, sketch: &Sketch, table: &Table, params: &FitParams) {
    let context = Context::new(sketch);
    let model = match context.fit(params) {
        Ok(model) => model,
        Err(e) => return show(name, e.to_string()),
    };
    show(name, &model);
    show(&format!("{name} risk"), context.risk(&model));
    match context.explain(&model) {
        Ok(e) => show(&format!("{name} explain"), e),
        Err(e) => show(&format!("{name} explain"), e.to_string()),
    }
    show(&format!("{name} clusters"), model.clusters().len());
    let (values, codes) = seen(&model, table);
    let all = ModelRows { values: &values, codes: &codes };
    let predictor = Predictor::new(&model);
    let n = all.len(model.columns.len()).min(700);
    let part = all.some(0..n, model.columns.len());
    show(&format!("{name} predict"), predictor.predict(part, Detail::All));
    show(&format!("{name} density"), predictor.predict(part, Detail::Density));
    for i in (0..n).step_by(13) {
        let row = all.some(i..i + 1, model.columns.len());
        show(&format!("{name} row {i}"), model.predict_row(row.values, row.codes));
    }
    let mut risks = Risks::default();
    risks.add(&predictor, all, &[]);
    show(&format!("{name} eval"), risks.evaluation(&model));
    show(&format!("{name} sample"), model.sample(5, &mut rand_chacha::ChaCha8Rng::seed_from_u64(1)));
    println!("{name} json: {}", Model::from_json(&model.to_json()).unwrap() == model);
}

fn main() {
    let rows = Mixture::new(4, 5, 2.0, 7).unwrap().rows(0, 4000).values;
    let table = Table::unnamed(4, rows.clone()).unwrap();
    let sketch_of = |params: PlanParams, table: &Table| {
        let plan = Arc::new(plan_for(table, params).unwrap().0);
        Sketch::of(&plan, table, SketchParams::default(), &()).unwrap()
    };
    let plans = [
        ("plain", PlanParams::default().landmarks(80)),
        ("few", PlanParams::default().landmarks(60).witnesses(150)),
        ("none", PlanParams::default().landmarks(60).witnesses(0)),
        ("laplace", PlanParams::default().landmarks(60).kernel(Kernel::Laplace)),
        ("fourier", PlanParams::default().fourier(60)),
    ];
    for (plan, params) in plans {
        let made = std::panic::catch_unwind(|| plan_for(&table, params.clone()).map(|p| p.0));
        let Ok(Ok(_)) = made else { println!("{plan} not planned"); continue };
        let sketch = sketch_of(params, &table);
        for task in [Task::Kmeans, Task::Kmedians, Task::Gmm, Task::Pca] {
            for decoder in [Decoder::Auto, Decoder::Cells, Decoder::Kernel, Decoder::Clompr, Decoder::Clomp] {
                if task == Task::Pca && decoder != Decoder::Auto { continue }
                let k = if task == Task::Pca { 3 } else { 5 };
                let params = FitParams::new(task, k).decoder(decoder).seed(3);
                let params = match task {
                    Task::Gmm if matches!(decoder, Decoder::Auto | Decoder::Cells) => params.restarts(8),
                    _ => params,
                };
                let params = if matches!(decoder, Decoder::Clompr | Decoder::Clomp) { params.replicates(2) } else { params };
                examine(&format!("{plan} {task} {}", decoder.name()), &sketch, &table, &params);
            }
        }
        for kind in [CovarianceKind::Full, CovarianceKind::Tied, CovarianceKind::Diag, CovarianceKind::Spherical] {
            let params = FitParams::new(Task::Gmm, 4).covariance(kind).restarts(6).decoder(Decoder::Cells).threads(2);
            examine(&format!("{plan} kind {}", kind.name()), &sketch, &table, &params);
        }
        let known = KnownCovariance::Variance(1.0);
        for decoder in [Decoder::Kernel, Decoder::Clompr] {
            let params = FitParams::new(Task::Gmm, 3).decoder(decoder).known_covariance(Some(known.clone()));
            examine(&format!("{plan} known {}", decoder.name()), &sketch, &table, &params);
        }
        let matrix = SymmetricMatrix::from_fn(4, |i, j| 0.6f64.powi((i - j) as i32));
        let known = KnownCovariance::Covariance(Covariance::Full(matrix));
        for decoder in [Decoder::Kernel, Decoder::Clompr] {
            let params = FitParams::new(Task::Gmm, 3).decoder(decoder).known_covariance(Some(known.clone()));
            examine(&format!("{plan} known matrix {}", decoder.name()), &sketch, &table, &params);
        }
        let params = FitParams::new(Task::Kmeans, 4).decoder(Decoder::Clompr).constraints(Some(2.0), Some(9.0)).replicates(2);
        examine(&format!("{plan} constraints"), &sketch, &table, &params);
        examine(&format!("{plan} blind"), &sketch, &table, &FitParams::new(Task::Kmeans, 4).decoder(Decoder::Clompr).replicates(2).blind());
        let init: Vec<Vec<f64>> = rows.chunks_exact(4).step_by(700).take(5).map(|r| r.to_vec()).collect();
        for task in [Task::Kmeans, Task::Gmm] {
            examine(&format!("{plan} init {task}"), &sketch, &table, &FitParams::new(task, 5).init(init.clone()));
        }
        let full = FitParams::new(Task::Gmm, 5).init(init.clone()).init_weights(vec![0.1, 0.2, 0.3, 0.2, 0.2])
            .init_covariances(vec![Covariance::Diagonal(vec![1.0, 2.0, 1.0, 0.5]); 5]);
        examine(&format!("{plan} init full"), &sketch, &table, &full);
        for task in [Task::Kmeans, Task::Gmm] {
            match fit_curve(&sketch, &FitParams::new(task, 1).min_variance(if task == Task::Gmm { Some(1e-3) } else { None }), 2, 6) {
                Ok(c) => show(&format!("{plan} curve {task}"), c),
                Err(e) => show(&format!("{plan} curve {task}"), e.to_string()),
            }
        }
        match theory(&sketch, &TheoryParams::new(3).secants(40)) {
            Ok(t) => show(&format!("{plan} theory"), t),
            Err(e) => show(&format!("{plan} theory"), e.to_string()),
        }
        if let Ok(s) = Context::new(&sketch).spectrum(0) { show(&format!("{plan} spectrum"), s); }
    }
    // Folds.
    let plan = Arc::new(plan_for(&table, PlanParams::default().landmarks(80)).unwrap().0);
    let rule = FoldRule::by_content(6).unwrap();
    let folded = Sketch::of_folds(&plan, &rule, &table, SketchParams::default(), &()).unwrap();
    for task in [Task::Kmeans, Task::Gmm, Task::Pca] {
        let params = FitParams::new(task, 3);
        let params = if task == Task::Gmm { params.restarts(5) } else { params };
        let context = Context::new(&folded);
        let model = context.fit(&params).unwrap();
        show(&format!("intervals {task}"), context.with_intervals(model, &params, 0.9).unwrap());
        if task != Task::Pca {
            show(&format!("cv {task}"), context.cross_validate(&params, 2, 4).unwrap());
        }
    }
    // Missing values, categories, spheres, weights.
    let mut state = 5u64;
    let mut next = || { state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); (state >> 33) as usize };
    let holed: Vec<f64> = rows.iter().map(|x| if next() % 10 < 2 { f64::NAN } else { *x }).collect();
    let holed = Table::unnamed(4, holed).unwrap();
    let level: Vec<String> = rows.chunks_exact(4).map(|r| format!("a{}", if r[0] + r[1] > 0.0 { next() % 2 } else { 1 + next() % 3 })).collect();
    let level: Vec<Option<&str>> = level.iter().map(|t| Some(t.as_str())).collect();
    let mixed = table.clone().with_category("first", &level).unwrap();
    let holed_mixed = holed.clone().with_category("first", &level).unwrap();
    let weights: Vec<f64> = (0..4000).map(|_| 1.0 + (next() % 5) as f64).collect();
    let weighted = table.clone().with_weights(weights).unwrap();
    let p = || PlanParams::default().landmarks(70);
    for (name, table, params) in [
        ("holed", &holed, p().missing(Missing::Partial)),
        ("holed few", &holed, p().missing(Missing::Partial).witnesses(200)),
        ("holed none", &holed, p().missing(Missing::Partial).witnesses(0)),
        ("mixed", &mixed, p()),
        ("mixed few", &mixed, p().witnesses(150)),
        ("mixed none", &mixed, p().witnesses(0)),
        ("holed mixed", &holed_mixed, p().missing(Missing::Partial)),
        ("holed mixed few", &holed_mixed, p().missing(Missing::Partial).witnesses(150)),
        ("weighted", &weighted, p().weights("weight", None)),
        ("unit", &table, p().unit(["*"])),
        ("unit none", &table, p().unit(["*"]).witnesses(0)),
    ] {
        let sketch = match plan_for(table, params) {
            Ok((plan, _)) => Sketch::of(&Arc::new(plan), table, SketchParams::default(), &()).unwrap(),
            Err(e) => { println!("{name} {e}"); continue }
        };
        for task in [Task::Kmeans, Task::Kmedians, Task::Gmm, Task::Pca] {
            let params = FitParams::new(task, 3).seed(2);
            let params = if task == Task::Gmm { params.restarts(5) } else { params };
            examine(&format!("{name} {task}"), &sketch, table, &params);
        }
        for task in [Task::Kmeans, Task::Gmm] {
            match fit_curve(&sketch, &FitParams::new(task, 1), 2, 4) {
                Ok(c) => show(&format!("{name} curve {task}"), c),
                Err(e) => show(&format!("{name} curve {task}"), e.to_string()),
            }
        }
        let _ = explain(&sketch, &fit(&sketch, &FitParams::new(Task::Kmeans, 2)).unwrap());
    }
    // A plan used for other rows.
    let other = Table::unnamed(4, rows.iter().map(|x| 0.7 * x + 1.5).collect()).unwrap();
    let sketch = Sketch::of(&plan, &other, SketchParams::default(), &()).unwrap();
    for task in [Task::Kmeans, Task::Gmm] {
        examine(&format!("other {task}"), &sketch, &other, &FitParams::new(task, 4).seed(1));
    }
}
