//! The tutorial in `docs/tutorial`: each command of a page is run in a folder with the files of `docs/tutorial/code`, and its
//! output is compared with the page. `UPDATE=1 cargo test -p rtc-cli --test tutorial` writes the output into the pages.
#![allow(clippy::unwrap_used, reason = "a page or a folder that cannot be read is a failure")]

mod compare;
mod page;
mod workplace;

use page::{Block, Page};
use rtc_test_needs::{Need, missing};
use std::path::{Path, PathBuf};
use workplace::Workplace;

/// The pages that a test below names.
const PAGES: [&str; 8] = [
    "README.md",
    "01-vector-addition.md",
    "02-softmax.md",
    "03-matrix-multiplication.md",
    "04-tuning-and-measuring.md",
    "05-precision-and-tests.md",
    "06-attention.md",
    "07-finding-a-race.md",
];

fn tutorial() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial")
}

/// Checks all blocks of a page in order; the commands run in one folder.
fn check(name: &str) {
    let Some(python) = workplace::python() else {
        return missing(Need::Python);
    };
    let path = tutorial().join(name);
    let mut page = Page::parse(&std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let work = Workplace::new(name, &python, &tutorial().join("code"));
    let mut wrong = Vec::new();
    for block in &mut page.blocks {
        if let Err(text) = check_block(block, &work) {
            wrong.push(format!("docs/tutorial/{name}:{}: {text}", block.line));
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, page.text()).unwrap();
    }
    let how = "UPDATE=1 cargo test -p rtc-cli --test tutorial";
    assert!(
        wrong.is_empty(),
        "{}\n\nwrite the output into the pages with `{how}`, and look at what changes",
        wrong.join("\n\n")
    );
}

/// Compares a block with its file or with the output of its commands; `UPDATE` replaces its text.
fn check_block(block: &mut Block, work: &Workplace) -> Result<(), String> {
    let update = std::env::var_os("UPDATE").is_some();
    let (key, value) = block.marker.clone().unwrap_or_default();
    match (block.language.as_str(), key.as_str()) {
        ("console", "" | "status" | "numbers") => {
            let status = if key == "status" { value.parse().map_err(|_| "a status is a number")? } else { 0 };
            let mut shown = String::new();
            let commands = page::commands(&block.body)?;
            for (at, command) in commands.iter().enumerate() {
                let (code, output) = work.run(&command.words);
                let expected = if at + 1 == commands.len() { status } else { 0 };
                if code != Some(expected) {
                    return Err(format!("`{}` ended with {code:?}, not {expected}:\n{output}", command.words));
                }
                let is_same = compare::is_same(&command.output, &output, key == "numbers");
                if !is_same && !update {
                    return Err(format!(
                        "`{}` prints\n{output}\nand the page shows\n{}",
                        command.words, command.output
                    ));
                }
                shown += &command.source;
                shown += if is_same { &command.output } else { &output };
            }
            block.body = shown;
            Ok(())
        }
        (_, "file") => {
            let content = work.file(&value)?;
            if block.body == content {
                return Ok(());
            }
            block.body = content;
            if update { Ok(()) } else { Err(format!("is not code/{value}")) }
        }
        (_, "part") => {
            let (lines, content) = (format!("\n{}", block.body), format!("\n{}", work.file(&value)?));
            let is_there = !block.body.trim().is_empty() && content.contains(&lines);
            if is_there { Ok(()) } else { Err(format!("code/{value} has no such lines")) }
        }
        // Tested by `scripts/examples`, as it builds a crate of its own.
        ("console", "crate") => {
            let script = std::fs::read_to_string(tutorial().join("../../scripts/examples")).unwrap();
            let is_run =
                script.contains(&format!("docs/tutorial/code/{value} &&")) && block.body.contains("cargo test");
            if is_run { Ok(()) } else { Err(format!("scripts/examples does not test code/{value}")) }
        }
        ("text", "measured") if value.contains("NVIDIA") && value.contains("20") => Ok(()),
        (language, _) => Err(format!("nothing tests this block of {language:?}: give it a marker")),
    }
}

#[test]
fn introduction() {
    check(PAGES[0]);
}

#[test]
fn vector_addition() {
    check(PAGES[1]);
}

#[test]
fn softmax() {
    check(PAGES[2]);
}

#[test]
fn matrix_multiplication() {
    check(PAGES[3]);
}

#[test]
fn tuning_and_measuring() {
    check(PAGES[4]);
}

#[test]
fn precision_and_tests() {
    check(PAGES[5]);
}

#[test]
fn attention() {
    check(PAGES[6]);
}

#[test]
fn finding_a_race() {
    check(PAGES[7]);
}

#[test]
fn every_page_is_tested_and_every_file_is_used() {
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let files = entries.filter(|entry| entry.path().is_file());
        files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let pages: Vec<String> = names(&tutorial());
    assert_eq!(pages.len(), PAGES.len(), "{pages:?}");
    let text: String = PAGES.iter().map(|name| std::fs::read_to_string(tutorial().join(name)).unwrap()).collect();
    for folder in ["code", "images"] {
        for name in names(&tutorial().join(folder)) {
            assert!(text.contains(&name), "no page names {folder}/{name}");
        }
    }
}
