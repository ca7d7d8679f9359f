//! The same work on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `work` on several threads at once, including this one, and returns their results. If the
/// system provides fewer threads, there are fewer results.
pub(crate) fn on_threads<R: Send>(threads: usize, work: impl Fn() -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads.max(1))
            .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, &work).ok())
            .collect();
        let mut results = vec![work()];
        for worker in workers {
            results.push(worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        }
        results
    })
}

/// Applies `work` to each item on at most `threads` threads, and returns the results in the order
/// of the items.
pub fn in_parallel<T: Send, R: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let count = items.len();
    if threads < 2 || count < 2 {
        return items.into_iter().map(work).collect();
    }
    let items: Vec<Mutex<Option<T>>> = items.into_iter().map(|i| Mutex::new(Some(i))).collect();
    let results: Vec<Mutex<Option<R>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    on_threads(threads.min(count), || {
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < count) {
            let item = items[at].lock().unwrap_or_else(|e| e.into_inner()).take();
            let result = item.map(&work);
            *results[at].lock().unwrap_or_else(|e| e.into_inner()) = result;
        }
    });
    let results = results.into_iter();
    results.filter_map(|r| r.into_inner().unwrap_or_else(|e| e.into_inner())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for threads in [1, 2, 7] {
            let squares = in_parallel(threads, (0..100).collect(), |i: u64| i * i);
            assert_eq!(squares, (0..100).map(|i| i * i).collect::<Vec<u64>>());
        }
        assert!(in_parallel(4, Vec::<u8>::new(), |_| ()).is_empty());
    }
}
