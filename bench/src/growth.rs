//! `cargo run --release -p nysketch-bench --bin growth`: time and memory of a sketch as functions
//! of the number of rows, columns, landmarks, clusters and threads. Rows are generated on the fly,
//! so 10⁸ rows fit on any machine. Prints Markdown tables. The slope is that of log time over log
//! size: 1 if time grows in proportion.

use nysketch::{
    Block, Decoder, FitParams, Mixture, Plan, PlanParams, Result, RowPart, RowSet, RowSource,
    RowStream, Sampling, Sketch, SketchParams, Task, fit, plan_for,
};
use std::sync::Arc;
use std::time::Instant;

/// Rows of a mixture, repeated with a small shift each time.
struct Endless {
    columns: Vec<String>,
    base: Vec<f64>,
    rows: u64,
}

/// Number of rows in the base and in a part.
const BASE: u64 = 1 << 16;
const PART: u64 = 1 << 12;

impl Endless {
    fn new(dims: usize, clusters: usize, rows: u64) -> Self {
        let mixture = Mixture::new(dims, clusters, 2.0, 0).expect("a mixture");
        let base =
            (0..BASE / PART).flat_map(|chunk| mixture.rows(chunk, PART as usize).values).collect();
        Endless { columns: (0..dims).map(|j| format!("c{j}")).collect(), base, rows }
    }
}

struct Stream<'a> {
    source: &'a Endless,
    next: u64,
}

struct Part<'a> {
    source: &'a Endless,
    from: u64,
}

impl RowSource for Endless {
    fn columns(&self) -> &[String] {
        &self.columns
    }
    fn open(&self, _: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
        Ok(Box::new(Stream { source: self, next: 0 }))
    }
}

impl<'a> RowStream<'a> for Stream<'a> {
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let from = self.next;
        self.next += PART;
        (from < self.source.rows).then(|| Box::new(Part { source: self.source, from }) as Box<_>)
    }
}

impl RowPart for Part<'_> {
    fn position(&self) -> u64 {
        self.from
    }
    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        let d = self.source.columns.len();
        let count = PART.min(self.source.rows - self.from) as usize;
        let start = (self.from % BASE) as usize * d;
        // Rows never repeat exactly: each repetition is shifted by up to 10⁻³.
        let shift = (self.from / BASE) as f64 * 1e-3 / (self.source.rows / BASE + 1) as f64;
        let rows = &self.source.base[start..start + count * d];
        Ok(Some(Block {
            values: rows.iter().map(|x| x + shift).collect(),
            columns: d,
            file: Arc::from("generated"),
            first_row: self.from + 1,
            position: self.from,
            ..Block::default()
        }))
    }
}

fn plan(dims: usize, clusters: usize, landmarks: usize) -> Arc<Plan> {
    let params = PlanParams::default().landmarks(landmarks).sampling(Sampling::Uniform);
    Arc::new(plan_for(&Endless::new(dims, clusters, BASE), params).expect("a plan").0)
}

/// Returns the seconds and the peak memory of the process, in MB; the best of `times`.
fn measure(times: usize, mut work: impl FnMut()) -> (f64, f64) {
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..times {
        // Reset the peak, if the operating system allows it.
        let is_reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
        let start = Instant::now();
        work();
        let seconds = start.elapsed().as_secs_f64();
        let peak = if is_reset { memory("VmHWM:") } else { f64::NAN };
        best = (best.0.min(seconds), best.1.min(peak));
    }
    best
}

/// Returns a line of this process's status in MB.
fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let rest = status.split(line).nth(1).unwrap_or_default();
    rest.split_whitespace().next().and_then(|kb| kb.parse().ok()).unwrap_or(f64::NAN) / 1024.0
}

/// Returns the seconds and memory of a sketch with the default sums.
fn sketch(plan: &Arc<Plan>, source: &Endless, threads: usize) -> (f64, f64) {
    let times = if source.rows > 10_000_000 { 1 } else { 3 };
    let params = SketchParams::default().threads(threads);
    measure(times, || drop(Sketch::of(plan, source, params, &()).expect("a sketch")))
}

/// Prints a table of seconds, memory and slopes over sizes.
fn table(what: &str, title: &str, sizes: &[u64], mut work: impl FnMut(u64) -> (f64, f64)) {
    println!("\n{title}\n\n| {what} | seconds | slope | memory, MB |\n|---|---|---|---|");
    let mut before: Option<(f64, f64)> = None;
    for &size in sizes {
        let (seconds, memory) = work(size);
        let slope = before.map_or("".to_string(), |(s, t)| {
            format!("{:.2}", (seconds / t).ln() / (size as f64 / s).ln())
        });
        println!("| {size} | {seconds:.3} | {slope} | {memory:.1} |");
        before = Some((size as f64, seconds));
    }
}

fn main() {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    println!(
        "Sketches hold kernel sums at three bandwidths, cells and moments. Memory is the peak of \
         the\nprocess, including the rows, which are used over and over. {threads} threads unless \
         stated otherwise."
    );
    let (d, m, n) = (20, 200, 1_000_000);
    let usual = plan(d, 10, m);
    let sizes = [100_000, 1_000_000, 10_000_000, 100_000_000];
    table("rows", &format!("Rows, d = {d}, m = {m}:"), &sizes, |n| {
        sketch(&usual, &Endless::new(d, 10, n), threads)
    });
    table("columns", &format!("Columns, {n} rows, m = {m}:"), &[5, 10, 20, 40, 80], |d| {
        sketch(&plan(d as usize, 10, m), &Endless::new(d as usize, 10, n), threads)
    });
    table(
        "landmarks",
        &format!("Landmarks, {n} rows, d = {d}:"),
        &[50, 100, 200, 400, 800, 1600],
        |m| sketch(&plan(d, 10, m as usize), &Endless::new(d, 10, n), threads),
    );
    let counts: Vec<u64> = (0..).map(|i| 1 << i).take_while(|t| *t <= threads as u64).collect();
    table("threads", &format!("Threads, {n} rows, d = {d}, m = {m}:"), &counts, |threads| {
        sketch(&usual, &Endless::new(d, 10, n), threads as usize)
    });
    let params = SketchParams::default().threads(threads);
    let many = Sketch::of(&plan(d, 100, 1000), &Endless::new(d, 100, n), params, &());
    let many = many.expect("a sketch");
    for (task, name) in [(Task::Kmeans, "k-means"), (Task::Gmm, "a mixture")] {
        let title = format!("Clusters, {name} from the cells of 1000 landmarks, d = {d}:");
        table("clusters", &title, &[5, 10, 20, 40, 80], |k| {
            let params = FitParams::new(task, k as usize).decoder(Decoder::Cells);
            measure(3, || drop(fit(&many, &params).expect("a model")))
        });
    }
}
