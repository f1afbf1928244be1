//! The generated parts of the page of differences.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The table of extensions, from the list that the conformance tests check.
pub fn extensions(root: &Path) -> String {
    let path = root.join("tests/filetests/conformance/extensions.txt");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut out = String::from("| written | gives | why |\n| --- | --- | --- |\n");
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (expression, rest) = line.rsplit_once(" -> ").unwrap_or_else(|| panic!("no ` -> ` in `{line}`"));
        let (result, reason) = rest.split_once(" | ").unwrap_or_else(|| panic!("no reason in `{line}`"));
        let cell = |text: &str| text.replace('|', "\\|");
        writeln!(out, "| `{}` | `{result}` | {} |", cell(expression), cell(reason)).expect("writes to memory");
    }
    out
}

/// The table of what whole files show to be accepted: `# extension: WHAT | WHY` in their first line.
pub fn accepted_files(root: &Path) -> String {
    let folder = root.join("tests/filetests/diagnostics");
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries.map(|e| e.expect("a directory entry").path()).collect();
    files.sort();
    let mut out = String::from("| written | why |\n| --- | --- |\n");
    for path in files.iter().filter(|p| p.extension().is_some_and(|x| x == "rt")) {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let Some(line) = text.lines().find_map(|l| l.strip_prefix("# extension: ")) else { continue };
        let (what, why) = line.rsplit_once(" | ").unwrap_or_else(|| panic!("{}: no reason", path.display()));
        writeln!(out, "| {what} | {why} |").expect("writes to memory");
    }
    out
}
