//! The commands of the README and the book: each `rtc` line of a block of `sh` ends with status 0, in a folder that has
//! the examples and the files that the pages show. The pictures are output of this executable.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Commands that need a Python with the package; the tests of the package run them.
const OF_PYTHON: &[&str] = &["verify", "bench", "precision"];
/// Needs a kernel with configurations and its launch; the tests of the tutorial and `tests/tune.rs` run it.
const ELSEWHERE: &[&str] = &["tune"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<(PathBuf, String)> {
    let mut paths = vec![root().join("README.md")];
    for folder in ["start", "tools", "formats", "correctness"] {
        paths.extend(fs::read_dir(root().join("docs").join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The words of a line of a shell, as far as the pages need it: quotes, and a comment at the end.
fn words(line: &str) -> Vec<String> {
    let (mut out, mut quote, mut is_open) = (vec![String::new()], None, false);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => (quote, is_open) = (Some(c), true),
            ('#', None) if out.last().is_some_and(String::is_empty) => break,
            (' ', None) => {
                if is_open || !out.last().unwrap().is_empty() {
                    out.push(String::new());
                }
                is_open = false;
            }
            (c, _) => out.last_mut().unwrap().push(c),
        }
    }
    out.retain(|word| !word.is_empty());
    out
}

fn rtc(folder: &Path, arguments: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtc"));
    command.args(arguments).current_dir(folder).env("RTC_CACHE_DIR", folder.join("cache"));
    command.env_remove("RTC_CACHE_REMOTE").output().unwrap()
}

#[test]
fn commands_of_the_pages_end_well() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    let _ = fs::remove_dir_all(&folder);
    for example in ["softmax", "matmul"] {
        let (from, to) = (root().join("examples").join(example), folder.join("examples").join(example));
        fs::create_dir_all(&to).unwrap();
        for file in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
        }
    }
    let (mut wrong, mut ran) = (Vec::new(), 0);
    for (path, text) in pages() {
        // <!-- file: NAME --> comes before a block that is a file.
        for shown in text.split("<!-- file: ").skip(1) {
            let (name, rest) = shown.split_once(" -->").unwrap();
            let block = rest.split_once("```").unwrap().1.split_once('\n').unwrap().1.split("```").next().unwrap();
            fs::write(folder.join(name), block).unwrap();
        }
        for block in text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
            // A line that ends with a backslash goes on in the next one.
            for line in block.replace("\\\n", " ").lines().filter(|line| line.starts_with("rtc ")) {
                let arguments = words(line.trim_start_matches("rtc "));
                let command = arguments[0].as_str();
                if OF_PYTHON.contains(&command) || ELSEWHERE.contains(&command) || arguments.iter().any(|a| a == "..") {
                    continue;
                }
                let output = rtc(&folder, &arguments);
                ran += 1;
                if !output.status.success() {
                    let text = String::from_utf8_lossy(&output.stderr).into_owned();
                    wrong.push(format!("{}: {line}: {}\n{text}", path.display(), output.status));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran >= 20, "{ran}");
}

#[test]
fn pictures_are_up_to_date() {
    let output = Command::new("python3")
        .arg(root().join("scripts/pictures.py"))
        .arg("--check")
        .env("RTC", env!("CARGO_BIN_EXE_rtc"))
        .output()
        .expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
