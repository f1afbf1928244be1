//! The diagnostics: each `tests/filetests/diagnostics/NAME.rt` of the workspace breaks a rule, and its snapshot has the
//! kernel and the findings as they are rendered. A new case is a new file. Files `accepted_NAME.rt` break rules of
//! Triton that this compiler does not have: they have no findings.

mod kernels;

use std::path::{Path, PathBuf};

use kernels::{Outcome, compile_file};

fn files() -> Vec<(String, String)> {
    let root = folder();
    let entries = std::fs::read_dir(&root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("a directory entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|x| x == "rt"));
    paths.sort();
    let read = |p: PathBuf| {
        let name = p.file_name().expect("files have names").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&p).expect("the file is text"))
    };
    paths.into_iter().map(read).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/diagnostics")
}

#[test]
fn every_file_gives_its_findings() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let cases = files();
    assert!(cases.len() >= 60, "only {} cases", cases.len());
    settings.bind(|| {
        for (name, text) in cases {
            let Outcome { rendered, accepted, .. } = compile_file(&name, &text);
            assert_eq!(name.starts_with("accepted_"), rendered.is_empty(), "{name}");
            let verdict = if accepted { "accepted" } else { "refused" };
            let drawn = format!("{text}---- {verdict}\n{}", rendered.join("\n"));
            insta::assert_snapshot!(name, drawn);
        }
    });
}

#[test]
fn first_lines_are_one_plain_sentence() {
    let mut wrong = Vec::new();
    for (name, text) in files() {
        for drawn in compile_file(&name, &text).rendered {
            let line = drawn.lines().next().expect("a drawing has lines");
            let severities = ["error[", "warning[", "note["];
            let message = severities.iter().find_map(|severity| line.strip_prefix(severity));
            let message = message.and_then(|rest| rest.split_once("]: ")).map(|(_, message)| message);
            let plain = message.is_some_and(|m| {
                !m.is_empty()
                    && !m.ends_with('.')
                    && !m.contains("::")
                    && !m.contains("Some(")
                    && !line.contains("internal")
            });
            // Everything has a place in the user's file.
            if !plain || !drawn.contains(&format!("--> {name}:")) {
                wrong.push(format!("{name}: {drawn}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The kernels of a table: what each is, and its text on the lines that it has in the file.
fn parts(text: &str) -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("# ==== "), parts.last_mut()) {
            (Some(title), _) => parts.push((title.to_string(), "\n".repeat(number + 1))),
            (None, Some((_, part))) => {
                part.push_str(line);
                part.push('\n');
            }
            (None, None) => panic!("a table begins with `# ==== `"),
        }
    }
    parts
}

/// `tables/NAME.rt` has many small kernels, each after a line `# ==== title`, with one snapshot for all. They take a
/// pointer to fp32, an int32 and the constexpr 1024, unless they have a signature. A kernel whose title begins with
/// `accepted: ` has no findings; every other has one, and every error suggests a replacement.
#[test]
fn every_kernel_of_a_table_gives_its_findings() {
    let folder = folder().join("tables");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(&folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let entries = std::fs::read_dir(&folder).expect("the folder is readable").map(|e| e.expect("an entry").path());
    let mut paths: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|x| x == "rt")).collect();
    paths.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for path in paths {
        let name = path.file_name().expect("files have names").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("the file is text");
        let mut drawn = String::new();
        for (title, part) in parts(&text) {
            count += 1;
            let signature = if part.contains("# signature:") { "" } else { "# signature: *fp32:16, i32, 1024\n" };
            let rendered = compile_file(&name, &format!("{part}{signature}")).rendered;
            if title.starts_with("accepted: ") != rendered.is_empty() {
                wrong.push(format!("{name}: {title}: {}", rendered.join("\n")));
            }
            // The text of a `static_assert` is the user's.
            let has_remedy = |r: &str| r.contains("= help: ") || r.starts_with("error[static-assert]");
            for finding in rendered.iter().filter(|r| r.starts_with("error") && !has_remedy(r)) {
                wrong.push(format!("{name}: {title}: no remedy\n{finding}"));
            }
            drawn.push_str(&format!("# ==== {title}\n{}\n", part.trim()));
            if !rendered.is_empty() {
                drawn.push_str(&format!("----\n{}\n", rendered.join("\n").trim_end()));
            }
            drawn.push('\n');
        }
        settings.bind(|| insta::assert_snapshot!(name, drawn));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count >= 110, "only {count} kernels");
}
