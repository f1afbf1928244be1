//! The central test: a kernel computes the same after every pass, and in the end as PTX.
//!
//! Every kernel of `tests/filetests/central/`, of `tests/filetests/async/`, of `tests/filetests/run/` and of
//! `tests/filetests/language/` (in the kernel language: `language.rs`, `source.rs`), and random kernels, are
//! interpreted as they are, interpreted again after each pass (on whole tiles and, once there are layouts, in the
//! registers of the threads), compiled for two targets, assembled if NVIDIA's assembler is installed, and executed in
//! the emulator. All must leave the same bytes in all tensors, and print the same lines: bit by bit, except for tensors
//! with a tolerance in the header of the file. Accesses outside of the tensors are faults in both executors, and
//! unwritten memory must be unchanged. Kernels in the kernel language also have expected results.
//!
//! The sanitizer runs in the emulator and must find nothing, except for the planted bugs of `tests/filetests/planted/`,
//! which it must find, each at its line (`planted.rs`), and the interpreter's findings about unspecified results
//! (`open.rs`).
//!
//! ```text
//! cargo test --test central                                     all files, and some kernels at random
//! cargo test --test central scan                                files with this in their name
//! RTC_CENTRAL_SEEDS=1000..2000 cargo test --test central random kernels of these seeds, in tile IR
//! RTC_CENTRAL_SEEDS=1000..2000 RTC_CENTRAL_SETS=50 cargo test --test central generated
//!                                                               kernels of these seeds, in the kernel language, with
//!                                                               so many sets of inputs for each; at most
//!                                                               RTC_CENTRAL_SECONDS for a kernel, and none after the
//!                                                               second RTC_CENTRAL_UNTIL since 1970
//! RTC_CENTRAL_PLANS=50 cargo test --test central               nothing but so many plans drawn at random for each
//!                                                               kernel with dots in loops (`plans.rs`)
//! RTC_CENTRAL_DUMP=/tmp cargo test --test central scan          keeps final tile IR and PTX
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use libtest_mimic::{Arguments, Failed, Trial};

#[path = "central/assembler.rs"]
mod assembler;
#[path = "central/case.rs"]
mod case;
#[path = "central/covered.rs"]
mod covered;
#[path = "central/data.rs"]
mod data;
#[path = "central/export.rs"]
mod export;
#[path = "central/inputs.rs"]
mod inputs;
#[path = "central/judge.rs"]
mod judge;
#[path = "central/language.rs"]
mod language;
#[path = "central/open.rs"]
mod open;
#[path = "central/plans.rs"]
mod plans;
#[path = "central/planted.rs"]
mod planted;
#[path = "ptxas.rs"]
mod ptxas;
#[path = "central/random.rs"]
mod random;
#[path = "central/reduce.rs"]
mod reduce;
#[path = "central/source.rs"]
mod source;
#[path = "central/tensor.rs"]
mod tensor;
#[path = "central/trials.rs"]
mod trials;
#[path = "central/written.rs"]
mod written;

use case::Case;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = files("central");
    trials.extend(files("async"));
    trials.extend(files("run"));
    trials.extend(language_cases("language"));
    let planted = language_cases("planted");
    assert!(planted.len() >= 60, "only {} planted mistakes", planted.len());
    trials.extend(planted);
    assert!(trials.len() > 60, "only {} kernels", trials.len());
    trials.extend(open_cases());
    trials.push(Trial::test("every operation", every_operation));
    trials.extend(trials::random());
    trials.extend(trials::written());
    let conclusion = libtest_mimic::run(&arguments, trials);
    let [inputs, kernels] = trials::CHECKED.each_ref().map(|count| count.load(Ordering::Relaxed));
    if kernels > 0 {
        println!("{inputs} inputs of {kernels} generated kernels agree");
    }
    let [pairs, kernels] = plans::CHECKED.each_ref().map(|count| count.load(Ordering::Relaxed));
    if pairs > 0 {
        println!("{pairs} plans drawn at random gave {kernels} different kernels, which agree");
    }
    conclusion.exit();
}

/// The files of a folder, in order.
fn paths(folder: &str, ending: &str) -> Vec<PathBuf> {
    // Cargo sets the variable; a test binary carried to another machine runs in the root of a checkout.
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let root = root.join("tests/filetests").join(folder);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(&root).map(|d| d.flatten().map(|e| e.path()).collect()).unwrap_or_default();
    paths.retain(|p| p.extension().is_some_and(|e| e == ending));
    paths.sort();
    paths
}

/// A trial for each kernel of the files of a folder.
fn files(folder: &str) -> Vec<Trial> {
    let mut trials = Vec::new();
    for path in paths(folder, "tir") {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (number, part) in text.split("\n// ----\n").enumerate() {
            // The interpreter's own files also hold kernels of later phases, and faults in its words.
            if folder == "run" && (!part.contains("phase tile") || part.contains("// fault:")) {
                continue;
            }
            let part = part.to_string();
            let at = path.clone();
            trials.push(Trial::test(format!("{folder}/{stem}/{number}"), move || run(&part, &at)));
        }
    }
    trials
}

/// A trial for each kernel that leans, or does not lean, on what the language leaves open.
fn open_cases() -> Vec<Trial> {
    let cases = paths("open", "rt").into_iter().flat_map(|path| {
        let at = path.display().to_string();
        let parts = language::split(&fs::read_to_string(&path).unwrap_or_default());
        parts.into_iter().map(move |part| (part, at.clone()))
    });
    let trial = |(part, at): (language::Part, String)| {
        Trial::test(format!("open/{}", part.name), move || {
            open::check(&part, &at).map_err(|e| format!("{at}: {e}").into())
        })
    };
    cases.map(trial).collect()
}

/// A case, and where it has block pointers, what `rtc fix` makes of it: that must mean the same.
fn with_fixed(part: language::Part) -> Vec<language::Part> {
    if !part.source.contains("make_block_ptr") {
        return vec![part];
    }
    let fixed = rtc_syntax::fix::block_pointers(rtc_source::FileId(0), &part.source);
    let after = part.with_source(format!("{}_fixed", part.name), fixed.apply(&part.source));
    if fixed.edits.is_empty() { vec![part] } else { vec![part, after] }
}

/// A trial for each case of the files in the kernel language.
fn language_cases(folder: &str) -> Vec<Trial> {
    let mut trials = Vec::new();
    for path in paths(folder, "rt") {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if text.contains("# case ") {
            trials.extend(language::split(&text).into_iter().flat_map(with_fixed).map(|part| {
                let (name, at) = (format!("{folder}/{stem}/{}", part.name), path.display().to_string());
                let run = move || {
                    let checked = language::check(&part, &at).map_err(|e| Failed::from(format!("{at}: {e}")));
                    if export::is_asked() && part.source.contains(planted::MARK) {
                        export::write_planted(&part.name, &part);
                    }
                    checked
                };
                Trial::test(name, run)
            }));
            continue;
        }
        for (number, part) in text.split("\n# ----\n").enumerate() {
            let (part, at) = (part.to_string(), path.clone());
            let run = move || {
                let checked = source::case(&part).and_then(|case| judge::check(&case));
                checked.map_err(|e| Failed::from(format!("{}: {e}", at.display())))
            };
            trials.push(Trial::test(format!("{folder}/{stem}/{number}"), run));
        }
    }
    trials
}

/// The files have every operation that all executors have. Conversions are put in by a pass; the times
/// of records differ from run to run, and `runtime/cli/tests/instrument.rs` tests those.
fn every_operation() -> Result<(), Failed> {
    let mut missing: Vec<&str> = rtc_ir::SPECS.iter().map(|spec| spec.mnemonic).collect();
    missing.retain(|name| !["convert_layout", "extern_call", "record"].contains(name));
    for path in paths("central", "tir").into_iter().chain(paths("async", "tir")) {
        let text = fs::read_to_string(path)?;
        missing.retain(|name| !text.lines().any(|l| l.split_whitespace().any(|word| word == *name)));
    }
    if missing.is_empty() { Ok(()) } else { Err(format!("no file has {}", missing.join(", ")).into()) }
}

fn run(text: &str, path: &Path) -> Result<(), Failed> {
    let checked = Case::parse(text).and_then(|case| judge::check(&case));
    checked.map_err(|e| Failed::from(format!("{}: {e}", path.display())))
}
