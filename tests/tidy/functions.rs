//! Functions are short where schedules are made.

use std::fs;

use super::{files, root, shown};

/// The folders, and the lines that a function there may have.
const FOLDERS: &[&str] = &["compiler/passes/src/schedule", "compiler/passes/src/access", "compiler/passes/src/work"];
const MOST: usize = 80;

/// The functions of a source file as `cargo fmt` writes it, with their lines from `fn` to the closing brace.
fn lengths(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let (before, Some(rest)) = code.split_once("fn ").map_or((code, None), |(before, rest)| (before, Some(rest)))
        else {
            continue;
        };
        let is_item =
            before.is_empty() || before.starts_with("pub") || before.starts_with("const") && !before.contains('=');
        if !is_item {
            continue;
        }
        let indent = &line[..line.len() - code.len()];
        let end = lines[at..].iter().position(|end| end.strip_prefix(indent) == Some("}"));
        let is_whole = line.ends_with('}') || line.ends_with(';');
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        found.push((name, if is_whole { 1 } else { end.map_or(1, |end| end + 1) }));
    }
    found
}

#[test]
fn functions_are_short() {
    let text = "fn a() {\n    1\n}\n\nimpl B {\n    pub fn c(\n        x: u32,\n    ) -> u32 {\n        x\n    }\n}\nfn d() {}\n";
    assert_eq!(lengths(text), [("a", 3), ("c", 5), ("d", 1)]);
    for folder in FOLDERS {
        let mut found = Vec::new();
        files(&root().join(folder), ".rs", &mut found);
        assert!(!found.is_empty(), "{folder} has no files");
        for path in found {
            let text = fs::read_to_string(&path).expect("readable");
            for (name, lines) in lengths(&text) {
                assert!(lines <= MOST, "{}: `{name}` has {lines} lines", shown(&path));
            }
        }
    }
}
