//! Runs the paper's experiments and draws its figures.

mod curves;
mod draw;
mod record;
mod settings;
mod trial;

use crate::Figures;
use anyhow::{Context, Result, bail};
use curves::Chart;
use nysketch::rows::read_in_order;
use nysketch_cli::parts::{
    Common, Fits, InputArgs, Kind, Usage, check_output, count, detail, interrupted, keep_bytes,
    name, note, on_interrupt, open_input, result, short, thousands,
};
use nysketch_core::rows::sample::mix;
use nysketch_report::page::Page;
use nysketch_report::plot;
use nysketch_tables::{Columns, Dataset, ReadOptions};
use record::{Key, Run, SEEDING, Trials};
use serde_json::json;
use settings::{Job, PANELS, Panel, Source, Study};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use trial::Data;

/// Default number of trials: that of the paper, and that of `--quick`.
const TRIALS: u32 = 50;
const QUICK_TRIALS: u32 = 2;

const INTERRUPTED: &str =
    "stopped before the end; finished fits are kept, and the same command continues from there";

pub fn run(args: &Figures, common: &Common) -> Result<()> {
    let start = Instant::now();
    let trials = args.trials.unwrap_or(if args.quick { QUICK_TRIALS } else { TRIALS });
    let mut wanted: Vec<Panel> =
        PANELS.iter().filter(|p| args.what.includes(p.figure)).copied().collect();
    let (files, missing) = read_files(&wanted, args, common)?;
    wanted.retain(|p| match p.study.source {
        Source::Mixture { .. } => true,
        Source::Files { rows, .. } | Source::Columns { rows, .. } => files.contains_key(rows),
    });
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot create the folder {}", args.output.display()))?;
    let page_file = args.output.join("index.html");
    check_output(common, &page_file, Kind::Page, [])?;
    for picture in wanted.iter().flat_map(|panel| pictures(panel, &args.output)) {
        check_output(common, &picture, Kind::by_extension(&picture), [])?;
    }
    let experiment = Experiment { files: &files, quick: args.quick, seed: args.seed };
    let mut table = Trials::open(&args.output)?;
    on_interrupt(INTERRUPTED);
    let all = experiment.jobs(&wanted, trials);
    let open: Vec<&(Key, Job)> = all.iter().filter(|(key, _)| table.get(key).is_none()).collect();
    let new = open.len();
    if new < all.len() {
        let there = thousands((all.len() - new) as u64);
        note(common, &format!("{there} of {} are already done", count(all.len() as u64, "fit")));
    }
    experiment.run(&open, &mut table, common)?;
    table.save()?;
    if interrupted().is_some() {
        bail!(INTERRUPTED);
    }
    let charts: Vec<(&Panel, Chart)> = wanted
        .iter()
        .map(|p| (p, curves::chart(p, trials, args.quick, &experiment.of(&p.study), &table)))
        .collect();
    let mut page = Page::new("Mean Nyström embeddings: the paper's experiments");
    introduce(&mut page, args, trials, &missing);
    let mut figure = 0;
    for (panel, chart) in &charts {
        if panel.figure != figure {
            figure = panel.figure;
            page.heading(&format!("Figure {figure}"));
            page.text(about(figure));
        }
        let picture = draw::draw(chart);
        for file in pictures(panel, &args.output) {
            plot::write(&file, &picture)?;
        }
        page.push("<figure>\n");
        page.push(&plot::element(&picture, "figure"));
        page.push("</figure>\n");
        if chart.failed > 0 {
            let fits = count(chart.failed as u64, "fit");
            page.note(&format!("{fits} failed and are not in the picture; the table says why."));
        }
        page.push("<details><summary>Numbers</summary>\n");
        page.table(&head(chart), &numbers(chart));
        page.push("</details>\n");
    }
    keep_bytes(&page_file, page.finish().as_bytes())?;
    let failed: usize = all.iter().filter(|(k, _)| matches!(table.get(k), Some(Err(_)))).count();
    let names: Vec<String> = wanted.iter().map(Panel::name).collect();
    let json = json!({
        "folder": name(&args.output), "trials": trials, "seed": args.seed, "quick": args.quick,
        "fits": all.len(), "new": new, "failed": failed, "missing": missing, "panels": names,
        "page": name(&page_file), "seconds": start.elapsed().as_secs_f64(),
    });
    let mut text = format!(
        "fits      {}, {} of them new, in {:.0} s; {trials} trials (figure 2: at most 10)\n",
        thousands(all.len() as u64),
        thousands(new as u64),
        start.elapsed().as_secs_f64()
    );
    for set in &missing {
        text.push_str(&format!("missing   {set}\n"));
    }
    text.push_str(&format!(
        "table     {}\npictures  {} panels, as .svg and .png\npage      {}\n",
        args.output.join("trials.csv").display(),
        names.len(),
        page_file.display()
    ));
    result(common, &json, &text)?;
    match failed {
        0 => Ok(()),
        _ => bail!(
            "{} failed; the column 'error' of the table says why, and the same command tries again",
            count(failed as u64, "fit")
        ),
    }
}

/// Returns the files of a panel.
fn pictures(panel: &Panel, folder: &Path) -> [PathBuf; 2] {
    ["svg", "png"].map(|kind| folder.join(format!("{}.{kind}", panel.name())))
}

/// The inputs that all fits of a run share.
struct Experiment<'a> {
    files: &'a BTreeMap<&'static str, Data>,
    quick: bool,
    seed: u64,
}

impl Experiment<'_> {
    fn file(&self, study: &Study) -> Option<&Data> {
        match study.source {
            Source::Mixture { .. } => None,
            Source::Files { rows, .. } | Source::Columns { rows, .. } => self.files.get(rows),
        }
    }

    /// Returns the rows and the seed of a study.
    fn of(&self, study: &Study) -> Run {
        let (rows, dims) = match (study.source, self.file(study)) {
            (Source::Mixture { rows, dims, .. }, _) => {
                (rows.min(Study::most_rows(self.quick)), dims)
            }
            (_, Some(data)) => (data.len(), data.dims()),
            (_, None) => (0, 0),
        };
        let checksum = self.file(study).and_then(|data| data.checksum);
        Run { rows, dims, checksum, seed: self.seed }
    }

    /// Returns every fit once, ordered by trial.
    fn jobs(&self, panels: &[Panel], trials: u32) -> Vec<(Key, Job)> {
        let mut seen = HashSet::new();
        let mut jobs = Vec::new();
        for trial in 0..trials {
            for panel in panels {
                let run = self.of(&panel.study);
                let keyed = panel.jobs(trial, self.quick).into_iter().map(|j| (run.key(&j), j));
                jobs.extend(keyed.filter(|(key, _)| seen.insert(key.clone())));
            }
        }
        jobs
    }

    /// Runs fits on all threads. The result of each depends only on its key.
    fn run(&self, jobs: &[&(Key, Job)], table: &mut Trials, common: &Common) -> Result<()> {
        let cost = |job: &Job| {
            let run = self.of(&job.study);
            job.cost(run.rows, run.dims)
        };
        let fits = Fits::new(jobs.len(), jobs.iter().map(|(_, j)| cost(j)).sum(), common.quiet);
        let next = AtomicUsize::new(0);
        let shared = Mutex::new((table, Ok(())));
        std::thread::scope(|scope| {
            for _ in 0..common.threads().min(jobs.len()) {
                scope.spawn(|| {
                    while let Some((key, job)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if interrupted().is_some() {
                            break;
                        }
                        let start = Instant::now();
                        let line = self.fit(key, job).map_err(|e| e.to_string());
                        let seconds = start.elapsed().as_secs_f64();
                        detail(common, &format!("{}: {seconds:.2} s", key.join(",")));
                        let mut shared = shared.lock().unwrap_or_else(|e| e.into_inner());
                        // Nothing may be appended after a line that was cut off.
                        if shared.1.is_err() {
                            break;
                        }
                        if let Err(e) = shared.0.add(key.clone(), line) {
                            shared.1 = Err(e);
                            break;
                        }
                        fits.advance(cost(job));
                    }
                });
            }
        });
        shared.into_inner().unwrap_or_else(|e| e.into_inner()).1
    }

    fn fit(&self, key: &Key, job: &Job) -> nysketch::Result<trial::Outcome> {
        let most = Study::most_rows(self.quick);
        let data = trial::rows_of(&job.study, self.file(&job.study), job.trial, self.seed, most)?;
        let seed = key[..SEEDING].join(",").bytes().fold(0, |h, byte| mix(h ^ u64::from(byte)));
        trial::run(job, &data, seed)
    }
}

/// Reads the files that the panels need, and lists the missing ones.
fn read_files(
    panels: &[Panel],
    args: &Figures,
    common: &Common,
) -> Result<(BTreeMap<&'static str, Data>, Vec<String>)> {
    if let Some(folder) = args.data.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Usage(format!("--data: {} is not a folder", folder.display())).into());
    }
    let (mut files, mut missing, mut seen) = (BTreeMap::new(), Vec::new(), HashSet::new());
    for panel in panels {
        let (rows, needed) = match panel.study.source {
            Source::Mixture { .. } => continue,
            Source::Files { rows, labels, .. } => (rows, vec![rows, labels]),
            Source::Columns { rows, .. } => (rows, vec![rows]),
        };
        if !seen.insert(rows) {
            continue;
        }
        let absent = match &args.data {
            Some(folder) => needed
                .into_iter()
                .find(|file| !folder.join(file).exists())
                .map(|file| format!("no {} in {}", file, folder.display())),
            None => Some("name the folder with its files by --data".to_string()),
        };
        match (absent, &args.data) {
            (None, Some(folder)) => {
                let data = match panel.study.source {
                    Source::Files { labels, dims, .. } => {
                        read_set(&folder.join(rows), &folder.join(labels), dims)?
                    }
                    Source::Columns { names, .. } => read_columns(&folder.join(rows), names)?,
                    Source::Mixture { .. } => continue,
                };
                files.insert(rows, data.thin(Study::most_rows(args.quick))?.summed());
            }
            (why, _) => {
                let why = format!("{}: {}", panel.study.set, why.unwrap_or_default());
                note(common, &format!("skipping {why}"));
                missing.push(why);
            }
        }
    }
    Ok((files, missing))
}

fn read_set(rows: &Path, labels: &Path, wanted: usize) -> Result<Data> {
    let (dims, values) = read_numbers(rows)?;
    if dims != wanted {
        bail!("{} has {dims} columns, expected {wanted}", rows.display());
    }
    let (one, classes) = read_numbers(labels)?;
    if one != 1 {
        bail!("{} has {one} columns; a file of classes must have one", labels.display());
    }
    if classes.len() != values.len() / dims {
        let (n, name) = (values.len() / dims, labels.display());
        bail!("{name} has {} values; {} has {n} rows", classes.len(), rows.display());
    }
    let class = |x: &f64| {
        if x.fract() == 0.0 && (0.0..65_536.0).contains(x) {
            Ok(*x as u32)
        } else {
            bail!("{}: {x} is not a class from 0 to 65535", labels.display())
        }
    };
    let classes = classes.iter().map(class).collect::<Result<Vec<u32>>>()?;
    Ok(Data::new(dims, values, classes)?)
}

/// Reads some columns of a table, without classes.
fn read_columns(path: &Path, names: &[&str]) -> Result<Data> {
    let columns = names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let options = ReadOptions::default().columns(Columns::exactly(&columns));
    let rows = Dataset::open([path], &options)?.read_all()?;
    let count = rows.len();
    Ok(Data::new(names.len(), rows.concat(), vec![0; count])?)
}

/// Reads a whole table of finite numbers; returns its number of columns and its values.
fn read_numbers(path: &Path) -> Result<(usize, Vec<f64>)> {
    let input = open_input(&InputArgs::of(path), Default::default(), Default::default(), false)?;
    let (mut columns, mut values) = (0, Vec::new());
    read_in_order(&input, &(), |block| {
        columns = block.columns;
        values.extend_from_slice(&block.values);
        Ok(())
    })?;
    if values.is_empty() || values.iter().any(|x| !x.is_finite()) {
        bail!("{} is empty or has missing or infinite values", path.display());
    }
    Ok((columns, values))
}

fn introduce(page: &mut Page, args: &Figures, trials: u32, missing: &[String]) {
    page.text(&format!(
        "Section 5 and appendix E of “Mean Nyström Embeddings for Adaptive Compressive Learning” (Chatalic et al., \
         AISTATS 2022): {trials} trials with seed {}{}. Lines are medians. Solid lines, with bands of one standard \
         deviation, are the paper's methods, all decoded by CL-OMPR, the best of five pursuits by their objective, with starts and bounds from \
         the moments of the rows; the variances of figure 1 are those of appendix E.2, \
         times five for the audio set, whose rows have five times the variance of the paper's. Dashed lines are ours, with the \
         defaults of plan and no variance chosen by hand. Dotted lines are what a sketch has to beat: the same number of rows, or \
         2,000 rows, on their own, and one cluster for all rows.",
        args.seed,
        if args.quick { ", quick: at most 10,000 rows and small sketches" } else { "" }
    ));
    page.text(
        "The sketch size m counts real numbers: landmarks, or twice the frequencies. Ours keep more numbers per \
         landmark: kernel sums at three variances, or a count, d means and d variances of its cell. Risks are relative \
         to Lloyd's or EM's on the same rows; differences below 0.001 nats are drawn at 0.001. Numbers of rows, sizes, λ \
         and the further synthetic sets are our choice, since the paper's figures are not in its text.",
    );
    for set in missing {
        page.note(&format!("Missing: {set}."));
    }
}

fn about(figure: u8) -> &'static str {
    match figure {
        1 => "Risk against the sketch size: k-means first, then Gaussian modelling.",
        2 => {
            "Gaussian modelling, k = 20, d = 30, p = 2kd = 1200, against σ² for several sketch \
             sizes; vertical lines are at the best σ² of each."
        }
        3 => {
            "k-means on a second synthetic set, and the agreement of the clusters of CIFAR10 with \
             its classes."
        }
        _ => {
            "Gaussian modelling against the sketch size and against σ²; vertical lines are at the \
             σ² of the left pictures."
        }
    }
}

fn head(chart: &Chart) -> Vec<String> {
    let x = chart.x_name.split(',').next().unwrap_or_default();
    let names =
        ["method", x, "median", "deviation", "trials", "one pursuit", "deviation", "at limit"];
    names.map(String::from).to_vec()
}

fn numbers(chart: &Chart) -> Vec<Vec<String>> {
    let of_curve = |c: &curves::Curve| {
        let rows = c.points.iter().map(|p| {
            let x = if c.flat { String::new() } else { short(p.x) };
            let single = p.single.map_or(Default::default(), |single| single.map(short));
            let mut line = vec![c.name.clone(), x, short(p.median), short(p.deviation)];
            line.push(p.trials.to_string());
            line.extend(single);
            line.push(if p.at_limit > 0 { p.at_limit.to_string() } else { String::new() });
            line
        });
        rows.collect::<Vec<_>>()
    };
    chart.curves.iter().flat_map(of_curve).collect()
}
