//! Kernels that are made at random, as trials: in tile IR (`random.rs`) and in the kernel language (`written.rs`).
//!
//! What fails is made as small as it can be with the same failure (`reduce.rs`), and shown as a case that can be put into
//! a file of `tests/filetests/`.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libtest_mimic::{Failed, Trial};

use crate::case::Case;
use crate::{export, judge, language, random, reduce, written};

/// Kernels of one trial.
const CHUNK: u64 = 10;

/// Seeds: those that every run makes, or others that are asked for.
fn seeds(usual: Range<u64>) -> Range<u64> {
    let asked = std::env::var("RTC_CENTRAL_SEEDS").ok();
    let range = asked.as_deref().and_then(|s| s.split_once("..")).and_then(|(from, to)| {
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        Some(from..to)
    });
    range.unwrap_or(usual)
}

/// Whether what fails is made small, which takes as long as some hundred kernels; `RTC_CENTRAL_REDUCE=0` forbids it.
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
        let kernel = written::kernel(seed);
        judge::dump(&format!("written_{seed}.rt"), &kernel.case(0));
        let Err(error) = guarded(|| check(&kernel, 0, sets)) else {
            if export::is_asked() {
                export::write(seed, &(0..sets).map(|set| kernel.case(set)).collect::<Vec<_>>());
            }
            return Ok(());
        };
        // The inputs that fail alone, if some do.
        let alone = |set: &u64| guarded(|| check(&kernel, *set, 1)).err().map(|e| (*set, e));
        let (set, error) = (0..sets).find_map(|set| alone(&set)).unwrap_or((0, error));
        let judge = |kernel: &written::Written| guarded(|| check(kernel, set, 1));
        let small = if reduces() { reduce::written(&kernel, &error, &judge) } else { kernel.clone() }.case(set);
        Err(Failed::from(format!("seed {seed}, inputs {set}: {error}\nThe smallest that fails so:\n{small}")))
    })
}

/// Checks a kernel with so many sets of inputs, from one on.
fn check(kernel: &written::Written, from: u64, sets: u64) -> Result<(), String> {
    let part = |set: u64| {
        let mut parts = language::split(&kernel.case(set));
        parts.pop().ok_or("there is no case")
    };
    let more = (from + 1..from + sets).map(part).collect::<Result<Vec<_>, _>>()?;
    language::check_all(&part(from)?, &more, kernel.seed, "written.rt")
}

/// A panic is a failure like others.
fn guarded(check: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|payload| {
        let words = payload.downcast_ref::<String>().cloned();
        let words = words.or_else(|| payload.downcast_ref::<&str>().map(|words| words.to_string()));
        Err(format!("panic: {}", words.unwrap_or_default()))
    })
}
