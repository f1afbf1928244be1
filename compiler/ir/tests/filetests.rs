//! Data-driven tests: `.tir` files under `tests/filetests/` of the workspace.
//!
//! | folder | what is checked |
//! | --- | --- |
//! | `text/` | reading and printing gives the snapshot, and is a fixed point |
//! | `verify/` | the verifier reports exactly the lines with `// error: part of the message` |
//! | `run/` | the interpreter: see `filetests/run.rs` |
//! | `analysis/NAME/` | the results of an analysis for each value, as comments in the kernel of the snapshot |

use std::path::{Path, PathBuf};

use rtc_ir::analysis::{Affine, Ranges, Steps, axis_info, print_touched};
use rtc_ir::text::{parse_with_spans, print};
use rtc_ir::{Kernel, print_errors, verify};

#[path = "filetests/run.rs"]
mod run;

/// All `.tir` files of a folder, in order.
fn files(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests").join(folder);
    let entries = std::fs::read_dir(&root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("a directory entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|x| x == "tir"));
    paths.sort();
    assert!(!paths.is_empty(), "no files in {}", root.display());
    paths.into_iter().map(|p| (p.clone(), std::fs::read_to_string(&p).expect("the file is text"))).collect()
}

#[test]
fn text() {
    for (path, source) in files("text") {
        let kernel = parse_with_spans(&source).unwrap_or_else(|e| panic!("{}:{e}", path.display())).kernel;
        let printed = print(&kernel);
        let again = parse_with_spans(&printed).unwrap_or_else(|e| panic!("{}: {e}\n{printed}", path.display())).kernel;
        assert_eq!(print(&again), printed, "{}", path.display());
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(path.parent().expect("files lie in a folder"));
        settings.set_prepend_module_to_snapshot(false);
        let name = path.file_name().expect("files have names").to_string_lossy().into_owned();
        settings.bind(|| insta::assert_snapshot!(name, printed));
    }
}

#[test]
fn verifier() {
    let mut wrong = String::new();
    for (path, source) in files("verify") {
        for part in source.split("\n// ----\n") {
            if let Err(message) = check_part(part) {
                wrong.push_str(&format!("{}:\n{message}\n", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Compares the complaints with the marks; a mark in the first lines, before `kernel`, is about the whole.
fn check_part(source: &str) -> Result<(), String> {
    let parsed = parse_with_spans(source).map_err(|e| format!("{e}\n{source}"))?;
    let mut marks: Vec<(usize, &str)> = Vec::new();
    let head = source.find("kernel ").map_or(0, |at| source[..at].matches('\n').count() + 1);
    for (i, line) in source.lines().enumerate() {
        if let Some((_, text)) = line.split_once("// error: ") {
            marks.push((if i < head { 0 } else { i + 1 }, text.trim()));
        }
    }
    let errors = verify(&parsed.kernel).err().unwrap_or_default();
    let line_of = |at: usize| source[..at].matches('\n').count() + 1;
    let mut missing = marks.clone();
    for error in &errors {
        let line = error.op.map_or(0, |op| line_of(parsed.spans[op].start));
        match missing.iter().position(|(at, text)| *at == line && error.message.contains(text)) {
            Some(i) => {
                missing.remove(i);
            }
            None if marks.iter().any(|(at, text)| *at == line && error.message.contains(text)) => {}
            None => return Err(format!("unexpected:\n{}", print_errors(&parsed.kernel, &errors))),
        }
    }
    match missing.first() {
        Some((line, text)) => {
            Err(format!("line {line}: no complaint with `{text}`\n{}", print_errors(&parsed.kernel, &errors)))
        }
        None => Ok(()),
    }
}

/// The results of an analysis of a kernel, as text.
type Analysis = fn(&Kernel) -> String;

/// The analyses by the folder of their files.
const ANALYSES: &[(&str, Analysis)] = &[
    ("axis-info", |kernel| axis_info(kernel).print(kernel)),
    ("steps", |kernel| Steps::new(kernel, &axis_info(kernel)).print()),
    ("ranges", |kernel| Ranges::new(kernel).print()),
    ("affine", Affine::print),
    ("bounds", Affine::print_accesses),
    ("extent", print_touched),
];

#[test]
fn analyses() {
    for (name, analysis) in ANALYSES {
        for (path, source) in files(&format!("analysis/{name}")) {
            let kernel = parse_with_spans(&source).unwrap_or_else(|e| panic!("{}:{e}", path.display())).kernel;
            verify(&kernel).unwrap_or_else(|e| panic!("{}:\n{}", path.display(), print_errors(&kernel, &e)));
            let mut settings = insta::Settings::clone_current();
            settings.set_snapshot_path(path.parent().expect("files lie in a folder"));
            settings.set_prepend_module_to_snapshot(false);
            settings.set_omit_expression(true);
            let file = path.file_name().expect("files have names").to_string_lossy().into_owned();
            settings.bind(|| insta::assert_snapshot!(file, analysis(&kernel)));
        }
    }
}
