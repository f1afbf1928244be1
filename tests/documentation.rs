//! Rules for what users read: every public item of the crates for users is shown in an example, and every fault that is told
//! of has the test that provokes it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates that programs use, by the folders of their sources.
const CRATES: &[&str] = &[
    "compiler/abi/src",
    "runtime/cache/src",
    "runtime/build/src",
    "runtime/testing/src",
    "runtime/tune/src",
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

/// The words of a text, as identifiers.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The name that a line declares for others.
fn declared(line: &str) -> Option<&str> {
    let mut rest = line.trim_start().strip_prefix("pub ")?;
    for word in ["const ", "unsafe ", "async "] {
        // `pub const fn`, but `pub const NAME`.
        match rest.strip_prefix(word) {
            Some(after) if ["fn ", "unsafe "].iter().any(|next| after.starts_with(next)) => rest = after,
            _ => {}
        }
    }
    let kinds = ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "static ", "union "];
    words(kinds.iter().find_map(|kind| rest.strip_prefix(kind))?).next()
}

#[test]
fn every_public_item_is_shown_in_an_example() {
    let mut missing = Vec::new();
    for folder in CRATES {
        let (mut paths, mut shown, mut items) = (Vec::new(), BTreeSet::new(), Vec::new());
        files(&root().join(folder), &mut paths);
        for path in paths {
            let text = fs::read_to_string(&path).expect("readable");
            let text = text.split("\n#[cfg(test)]\n").next().unwrap_or(&text);
            let text = text.split("\n#[cfg(all(test").next().unwrap_or(text);
            let (mut is_code, mut is_hidden) = (false, None);
            for (number, line) in text.lines().enumerate() {
                let indent = line.len() - line.trim_start().len();
                if let Some(doc) = line.trim_start().strip_prefix("///").or(line.trim_start().strip_prefix("//!")) {
                    if doc.trim_start().starts_with("```") {
                        is_code = !is_code;
                    } else if is_code {
                        shown.extend(words(doc).map(str::to_owned));
                    }
                    continue;
                }
                // What stands in a module for this crate alone is no item for others.
                if line.trim_start().starts_with("pub(crate) mod ") || line.trim_start().starts_with("mod ") {
                    is_hidden = line.ends_with('{').then_some(indent);
                } else if is_hidden == Some(indent) && line.trim() == "}" {
                    is_hidden = None;
                }
                if let Some(name) = declared(line).filter(|_| is_hidden.is_none()) {
                    items.push((path.clone(), number + 1, name.to_owned()));
                }
            }
        }
        assert!(items.len() > 20, "{folder}");
        items.retain(|(.., name)| !shown.contains(name));
        missing.extend(items);
    }
    let list: Vec<String> = missing
        .iter()
        .map(|(path, line, name)| format!("{}:{line} `{name}`", path.strip_prefix(root()).unwrap_or(path).display()))
        .collect();
    assert!(list.is_empty(), "no example of its crate shows\n{}", list.join("\n"));
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
