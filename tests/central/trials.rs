//! Random kernels as trials: in tile IR (`random.rs`) and in the kernel language (`written.rs`).
//!
//! A failing kernel is reduced as long as it fails in the same way (`reduce.rs`), and shown as a case for a file of
//! `tests/filetests/`.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use libtest_mimic::{Failed, Trial};

use crate::case::Case;
use crate::{export, judge, language, random, reduce, written};

/// Kernels of one trial.
const CHUNK: u64 = 10;

/// Seeds: those of every run, or others from the environment.
fn seeds(usual: Range<u64>) -> Range<u64> {
    let asked = std::env::var("RTC_CENTRAL_SEEDS").ok();
    let range = asked.as_deref().and_then(|s| s.split_once("..")).and_then(|(from, to)| {
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        Some(from..to)
    });
    range.unwrap_or(usual)
}

/// Whether failures are reduced, which takes as long as some hundred kernels; `RTC_CENTRAL_REDUCE=0` disables it.
fn reduces() -> bool {
    std::env::var("RTC_CENTRAL_REDUCE").map_or(true, |word| word != "0")
}

fn chunks(name: &str, range: Range<u64>, check: fn(u64) -> Result<(), Failed>) -> Vec<Trial> {
    let chunk = |from: u64| {
        let to = (from + CHUNK).min(range.end);
        Trial::test(format!("{name}/{from}..{to}"), move || (from..to).try_for_each(check))
    };
    range.clone().step_by(CHUNK as usize).map(chunk).collect()
}

/// Kernels in tile IR.
pub fn random() -> Vec<Trial> {
    chunks("random", seeds(0..100), |seed| {
        let text = random::kernel(seed);
        let judge = |text: &str| guarded(|| Case::parse(text).and_then(|case| judge::check(&case)));
        judge(&text).map_err(|e| {
            let small = if reduces() { reduce::tile_ir(&text, &e, &judge) } else { text.clone() };
            Failed::from(format!("seed {seed}: {e}\nThe smallest that fails so:\n{small}"))
        })
    })
}

/// Kernels in the kernel language.
pub fn written() -> Vec<Trial> {
    chunks("generated", seeds(0..60), |seed| {
        let sets = std::env::var("RTC_CENTRAL_SETS").ok().and_then(|s| s.parse().ok()).unwrap_or(4);
        // Nothing begins after this second of the day's clock: a run of a given length ends with what it has.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64());
        if number("RTC_CENTRAL_UNTIL").is_some_and(|until| now > until) {
            return Ok(());
        }
        let kernel = written::kernel(seed);
        judge::dump(&format!("written_{seed}.rt"), &kernel.case(0));
        let Err(error) = guarded(|| check(&kernel, 0, sets)) else {
            if export::is_asked() {
                export::write(seed, &(0..sets).map(|set| kernel.case(set)).collect::<Vec<_>>());
            }
            return Ok(());
        };
        // The inputs that fail alone, if some do: those that the message names, or one of the first.
        let alone = |set: &u64| guarded(|| check(&kernel, *set, 1)).err().map(|e| (*set, e));
        let named = error.split_once("inputs ").and_then(|(_, rest)| rest.split(':').next()?.parse().ok());
        let candidates = named.into_iter().chain(0..sets.min(50));
        let (set, error) = candidates.into_iter().find_map(|set| alone(&set)).unwrap_or((0, error));
        let judge = |kernel: &written::Written| guarded(|| check(kernel, set, 1));
        let small = if reduces() { reduce::written(&kernel, &error, &judge) } else { kernel.clone() }.case(set);
        Err(Failed::from(format!("seed {seed}, inputs {set}: {error}\nThe smallest that fails so:\n{small}")))
    })
}

/// Inputs of generated kernels that were checked so far, and kernels.
pub static CHECKED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Inputs that are made before the kernel is compiled; the others one by one.
const FIRST: u64 = 4;

/// A number that a variable gives.
fn number(name: &str) -> Option<f64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Checks a kernel with so many sets of inputs, from one on. No set begins later than `RTC_CENTRAL_SECONDS` after the
/// kernel did.
fn check(kernel: &written::Written, from: u64, sets: u64) -> Result<(), String> {
    let part = |set: u64| language::split(&kernel.case(set)).pop();
    let first = if export::is_asked() { sets } else { sets.min(FIRST) };
    let more = (from + 1..from + first).map(|set| part(set).ok_or("there is no case".to_string()));
    let more = more.collect::<Result<Vec<_>, _>>()?;
    let (start, seconds) = (Instant::now(), number("RTC_CENTRAL_SECONDS").unwrap_or(f64::INFINITY));
    let mut next = from + first;
    let mut further = || {
        let goes_on = next < from + sets && start.elapsed().as_secs_f64() < seconds;
        next += u64::from(goes_on);
        goes_on.then(|| part(next - 1)).flatten()
    };
    let own = part(from).ok_or("there is no case")?;
    language::check_all(&own, &more, &mut further, kernel.seed, "written.rt")?;
    CHECKED[0].fetch_add(next - from, Ordering::Relaxed);
    CHECKED[1].fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// A panic is a failure like others.
fn guarded(check: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|payload| {
        let words = payload.downcast_ref::<String>().cloned();
        let words = words.or_else(|| payload.downcast_ref::<&str>().map(|words| words.to_string()));
        Err(format!("panic: {}", words.unwrap_or_default()))
    })
}
