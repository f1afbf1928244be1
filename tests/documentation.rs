//! Rules for the documentation: every public item of the crates for users is shown in an example, and every documented
//! fault has the test that provokes it.

#[path = "documentation/shown.rs"]
mod shown;

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that programs use, by the folders of their sources.
const CRATES: &[&str] = &[
    "compiler/abi/src",
    "runtime/cache/src",
    "runtime/build/src",
    "runtime/testing/src",
    "runtime/tune/src",
    "runtime/assembler/src",
    "runtime/src",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn every_public_item_is_shown_in_an_example() {
    let mut missing = Vec::new();
    for folder in CRATES {
        let (mut paths, mut read) = (Vec::new(), shown::Crate::default());
        files(&root().join(folder), &mut paths);
        for path in paths {
            read.read(&path, &fs::read_to_string(&path).expect("readable"));
        }
        assert!(read.items.len() > 10, "{folder}");
        missing.extend(read.missing().map(|item| item.place(root())));
    }
    assert!(missing.is_empty(), "no example of its crate shows\n{}", missing.join("\n"));
}

#[test]
fn every_fault_has_its_test() {
    let text = fs::read_to_string(root().join("docs/correctness/faults.md")).expect("readable");
    // - F: `runtime/tests/faults.rs`
    let letters = text.lines().filter_map(|line| {
        let (letter, rest) = line.strip_prefix("- ")?.split_once(": `")?;
        Some((letter, rest.split('`').next()?))
    });
    let letters: Vec<(&str, String)> = letters
        .map(|(letter, file)| (letter, fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))))
        .collect();
    let mut tests = 0;
    for row in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---")) {
        let last = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        if last == "test" {
            continue;
        }
        for named in last.split(", ") {
            let (letter, name) = named.split_once(' ').unwrap_or_else(|| panic!("no test: {row}"));
            let (_, source) = letters.iter().find(|(l, _)| *l == letter).unwrap_or_else(|| panic!("no file: {named}"));
            let name = name.trim_matches('`');
            let is_there = source.contains(&format!("fn {name}()")) || source.contains(&format!("def {name}(self)"));
            assert!(is_there, "there is no test {named}");
            tests += 1;
        }
    }
    assert!(tests > 20, "{tests}");
}
