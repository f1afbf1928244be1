//! Every code that any crate or the Python package prints has a page for `rtc explain`.
//!
//! The compiler and the command line use constants of `rtc_source::Code`, so that the type checker finds codes without
//! a page. The emulator and the runtime do not depend on the compiler, and the package is Python: their sources are
//! searched for codes.

use rtc_source::CODES;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &Path, ending: &str, out: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            if !["tests", "target", "__pycache__"].iter().any(|name| path.ends_with(name)) {
                files(&path, ending, out);
            }
        } else if path.extension().is_some_and(|found| found == ending) {
            out.push(path);
        }
    }
}

/// The codes that follow `before` in a text and end at `after`.
fn between<'a>(text: &'a str, before: &str, after: char) -> Vec<&'a str> {
    let tails = text.split(before).skip(1).map(|tail| tail.trim_start().trim_start_matches('"'));
    let code = |tail: &'a str| tail.split_once(after).map(|(code, _)| code);
    let is_code = |code: &&str| !code.is_empty() && code.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    tails.filter_map(code).filter(is_code).collect()
}

/// All codes that occur in one of these forms in the files of a folder.
fn printed(folder: &str, ending: &str, forms: &[(&str, char)]) -> BTreeSet<String> {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), ending, &mut paths);
    let mut found = BTreeSet::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("readable");
        // Tests may invent codes.
        let text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or(&text);
        // A form may continue on the next line.
        let text: String = text.lines().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        found.extend(forms.iter().flat_map(|(before, after)| between(&text, before, *after)).map(str::to_owned));
    }
    found
}

fn without_page(codes: &BTreeSet<String>) -> Vec<&String> {
    codes.iter().filter(|code| !CODES.iter().any(|(known, _)| known.0 == code.as_str())).collect()
}

#[test]
fn every_code_that_is_printed_has_a_page() {
    let checks = ["Memory", "Init", "Race", "Sync", "Promise", "Open"].map(|check| format!("Check::{check}, "));
    let mut forms: Vec<(&str, char)> = checks.iter().map(|before| (before.as_str(), '"')).collect();
    forms.extend([("code: ", '"'), ("(kind, ", '"')]);
    let sanitizer: BTreeSet<String> =
        ["runtime/emulator/src", "runtime/src"].iter().flat_map(|folder| printed(folder, "rs", &forms)).collect();
    assert!(sanitizer.len() > 30, "{sanitizer:?}");
    assert_eq!(without_page(&sanitizer), [""; 0], "the sanitizer");

    let forms = [("\"error[", ']'), ("\"warning[", ']'), ("Code(\"", '"')];
    let texts: BTreeSet<String> =
        ["compiler", "runtime", "stdlib"].iter().flat_map(|folder| printed(folder, "rs", &forms)).collect();
    assert!(texts.contains("internal") && texts.contains("cache"), "{texts:?}");
    assert_eq!(without_page(&texts), [""; 0], "texts in Rust");

    let forms = [("Problem(", '"'), ("\"error[", ']'), ("\"warning[", ']'), ("(node.lineno, ", '"')];
    let python = printed("runtime/python/python/rtc", "py", &forms);
    assert!(python.len() > 15, "{python:?}");
    assert_eq!(without_page(&python), [""; 0], "the Python package");
}

#[test]
fn every_page_says_what_the_cause_is_and_what_to_do() {
    let (mut wrong, mut examples) = (Vec::new(), 0);
    for (code, page) in CODES {
        let (summary, rest) = page.split_once("\n\n").unwrap_or((page, ""));
        if summary.lines().count() != 1 || !summary.ends_with('.') {
            wrong.push(format!("{code}: the first line is no sentence"));
        }
        if rest.trim().len() < 60 {
            wrong.push(format!("{code}: neither a cause nor a remedy"));
        }
        if page.matches("```").count() % 2 == 1 {
            wrong.push(format!("{code}: a block of code has no end"));
        }
        examples += usize::from(page.contains("```text\n"));
    }
    assert_eq!(wrong, [""; 0]);
    assert!(examples * 2 > CODES.len(), "only {examples} pages of {} have an example", CODES.len());
}

#[test]
fn every_page_belongs_to_a_code() {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("compiler/source/src/codes"), "md", &mut paths);
    let stems: BTreeSet<String> =
        paths.iter().map(|p| p.file_stem().unwrap_or_default().to_string_lossy().into()).collect();
    assert_eq!(stems, CODES.iter().map(|(code, _)| code.0.to_owned()).collect());
}
