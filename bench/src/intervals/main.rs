//! `cargo run --release -p nysketch-bench --bin intervals [coverage] [--trials N] [WORD]`: the
//! coverage of the intervals of `nysketch fit --intervals` for the optimum of the population,
//! simulated with a new plan in each trial. `… --bin intervals held-out FOLDER [WORD]`: the
//! estimates of `nysketch fit --cross-validate`, compared with risks on held-out rows, on real
//! tables in `.npy` format (bench/convert.py). Both print Markdown tables; a word selects lines.

mod coverage;
mod held_out;
#[path = "../quality/npy.rs"]
mod npy;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut words = arguments.iter().map(String::as_str).peekable();
    match words.next_if(|word| ["coverage", "held-out"].contains(word)) {
        Some("held-out") => {
            let folder = words.next().expect("a folder of .npy files");
            held_out::print(folder.as_ref(), words.next().unwrap_or(""));
        }
        _ => {
            let mut trials = 1000;
            let mut only = "";
            while let Some(word) = words.next() {
                match word {
                    "--trials" => {
                        let count = words.next().and_then(|n| n.parse().ok());
                        trials = count.expect("a number of trials");
                    }
                    word => only = word,
                }
            }
            coverage::print(trials, only);
        }
    }
}

/// Returns the results of `work` for all numbers below `count`, in order, computed on all cores.
fn each<T: Send>(count: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let work = &work;
    let mut all: Vec<(u64, T)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|t| {
                let numbers = (t..count).step_by(threads as usize);
                scope.spawn(move || numbers.map(|i| (i, work(i))).collect::<Vec<_>>())
            })
            .collect();
        handles.into_iter().flat_map(|h| h.join().expect("no panic")).collect()
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, result)| result).collect()
}
