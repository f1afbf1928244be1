//! Work on many configurations at the same time, with a progress bar on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Deeply nested sources recurse deeply; the stack is only reserved, not used.
const STACK_BYTES: usize = 256 << 20;

/// Runs `work` on the numbers below `count`, on as many threads as there are processors, the first ones first. Gives the
/// results in order; nothing for those that `work` gave nothing for.
pub(crate) fn each<T: Send>(
    count: usize,
    title: &str,
    shows_progress: bool,
    work: impl Fn(usize) -> Option<T> + Sync,
) -> Vec<Option<T>> {
    let bar = if shows_progress { bar(count, title) } else { ProgressBar::hidden() };
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let next = AtomicUsize::new(0);
    let run = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                break;
            }
            let result = work(i);
            results.lock().unwrap_or_else(PoisonError::into_inner)[i] = result;
            bar.inc(1);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    std::thread::scope(|scope| {
        let started = (0..threads)
            .filter(|_| std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run).is_ok());
        if started.count() == 0 {
            run();
        }
    });
    bar.finish_and_clear();
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// A bar on standard error; `indicatif` draws nothing where that is no terminal.
pub(crate) fn bar(count: usize, title: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg:12} {wide_bar} {pos}/{len} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(title.to_owned());
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order() {
        let results = each(100, "", false, |i| (i % 3 != 0).then_some(i * i));
        assert_eq!(results.len(), 100);
        for (i, result) in results.into_iter().enumerate() {
            assert_eq!(result, (i % 3 != 0).then_some(i * i));
        }
        assert!(each(0, "", false, Some).is_empty());
    }
}
