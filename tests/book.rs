//! Rules for the book under `docs/`: its summary, links, lists and quoted parts. `UPDATE=1` writes the quoted parts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folders whose pages are not checked: build outputs, tools, and texts that are inputs of tests.
const SKIPPED: &[&str] =
    &["target", "out", ".tools", ".git", "node_modules", "filetests", "codes", "contracts", "golden", "corpus"];

/// Names that begin like variables of the environment and are constants or macros.
const NO_VARIABLES: &[&str] = &["RTC_OPTION_NAMES", "RTC_STUB", "RTC_TENSOR"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below a folder with one of these endings.
fn files(folder: &Path, endings: &[&str], out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() {
            if !SKIPPED.contains(&name.as_str()) {
                files(&path, endings, out);
            }
        } else if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            out.push(path);
        }
    }
    out.sort();
}

fn pages(folder: &str) -> BTreeMap<PathBuf, String> {
    let mut paths = Vec::new();
    files(&root().join(folder), &["md"], &mut paths);
    paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// The lines of a page outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchor that the usual renderers give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().trim().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    prose(text).filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

/// The targets of the links and pictures of a page.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        for (at, _) in line.match_indices("](") {
            // Not in code: `kernel[grid](...)`.
            if line[..at].matches('`').count() % 2 == 0 {
                found.push(line[at + 2..].split([')', ' ']).next().unwrap_or_default().to_owned());
            }
        }
        for mark in ["src=\"", "srcset=\"", "href=\""] {
            found.extend(line.split(mark).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned));
        }
    }
    found
}

/// A path without `..` in it.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[test]
fn links_lead_somewhere() {
    let pages = pages("");
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (path, text) in &pages {
        for target in targets(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let there = if file.is_empty() { path.clone() } else { normal(&path.parent().unwrap_or(path).join(file)) };
            let is_known = match pages.get(&there) {
                Some(text) => heading.is_empty() || anchors(text).contains(heading),
                None => there.exists() && (heading.is_empty() || !file.ends_with(".md")),
            };
            checked += 1;
            if !is_known {
                wrong.push(format!("{}: {target}", path.strip_prefix(root()).unwrap_or(path).display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
    assert!(checked > 1000, "{checked}");
}

#[test]
fn the_summary_has_every_page_once() {
    let docs = root().join("docs");
    let summary = read(&docs.join("SUMMARY.md"));
    let mut listed: Vec<PathBuf> = targets(&summary).iter().map(|target| docs.join(target)).collect();
    listed.sort();
    let mut pages: Vec<PathBuf> = pages("docs").into_keys().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    pages.sort();
    let shown = |list: &[PathBuf], other: &[PathBuf]| -> Vec<String> {
        list.iter().filter(|page| !other.contains(page)).map(|page| page.display().to_string()).collect()
    };
    assert!(listed == pages, "not in SUMMARY.md: {:?}; no such page or twice: {:?}", shown(&pages, &listed), {
        let mut seen = BTreeSet::new();
        let twice = listed.iter().filter(|page| !seen.insert(*page));
        (shown(&listed, &pages), twice.collect::<Vec<_>>())
    });
}

/// The page of each command quotes its help, which a test of the executable keeps as a snapshot.
#[test]
fn pages_of_commands_quote_their_help() {
    let snapshots = root().join("runtime/cli/tests/snapshots");
    let mut commands = 0;
    for (path, text) in pages("docs/tools") {
        let Some((before, rest)) = text.split_once("<!-- help: ") else { continue };
        let (name, rest) = rest.split_once(" -->").expect("a mark has an end");
        let (_, after) = rest.split_once("<!-- end -->").expect("a quotation has an end");
        let snapshot = read(&snapshots.join(format!("cli__help_{name}_help.snap")));
        // Two lines of dashes enclose the head of a snapshot.
        let help = snapshot.splitn(3, "---\n").nth(2).expect("a snapshot has a head");
        let help: Vec<&str> = help.trim().lines().map(str::trim_end).collect();
        let written =
            format!("{before}<!-- help: {name} -->\n\n```text\n{}\n```\n\n<!-- end -->{after}", help.join("\n"));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &written).expect("writable");
        } else {
            assert!(written == text, "{}: write it with UPDATE=1", path.display());
        }
        commands += 1;
    }
    let visible = read(&root().join("runtime/cli/src/arguments.rs"));
    assert!(commands >= 11 && visible.contains("enum Command"), "{commands} commands have a page");
}

/// Words such as `RTC_CACHE_DIR` in a text.
fn variables(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
    words.filter(|word| word.starts_with("RTC_") && word.len() > 4).map(str::to_owned).collect()
}

#[test]
fn environment_variables_are_listed() {
    let page = read(&root().join("docs/formats/environment.md"));
    let listed = variables(&page);
    let mut paths = Vec::new();
    for folder in ["compiler", "runtime", "benches", "tests", "scripts", "examples", "stdlib"] {
        files(&root().join(folder), &["rs", "py", "c", "toml", ""], &mut paths);
    }
    let scripts = fs::read_dir(root().join("scripts")).expect("readable").flatten().map(|entry| entry.path());
    paths.extend(scripts.filter(|path| path.is_file()).chain([root().join("Makefile")]));
    let mut used = BTreeSet::new();
    for path in paths.iter().filter(|path| !path.ends_with("tests/book.rs")) {
        used.extend(variables(&String::from_utf8_lossy(&fs::read(path).expect("readable"))));
    }
    for name in NO_VARIABLES {
        used.remove(*name);
    }
    let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
    let missing: BTreeSet<String> = used.difference(&listed).cloned().collect();
    let unused: BTreeSet<String> = listed.difference(&used).cloned().collect();
    assert!(missing.is_empty(), "docs/formats/environment.md does not list {}", names(&missing));
    assert!(unused.is_empty(), "docs/formats/environment.md lists {}, which nothing reads", names(&unused));
    assert!(listed.len() > 20, "{}", listed.len());
}

#[test]
fn launch_options_are_listed() {
    let source = read(&root().join("compiler/program/src/spec.rs"));
    let list = source.split_once("OPTION_NAMES: &[&str] = &[").and_then(|(_, rest)| rest.split("];").next());
    let names: Vec<&str> = list.expect("a list").split('"').skip(1).step_by(2).collect();
    let page = read(&root().join("docs/formats/spec.md"));
    let missing: Vec<&&str> = names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty() && names.len() > 20, "docs/formats/spec.md does not list {missing:?}");
}

/// Every block of Rust in the README and the guides is a part of an example or of its tests, line for line.
#[test]
fn blocks_of_rust_are_parts_of_examples() {
    let mut paths = Vec::new();
    files(&root().join("examples"), &["rs", "toml"], &mut paths);
    paths.push(root().join(".cargo/config.toml"));
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned() + "\n").collect::<String>();
    let tested: Vec<String> = paths.iter().map(|path| lines(&read(path))).collect();
    let mut guides = pages("docs/rust");
    let readme = root().join("README.md");
    guides.insert(readme.clone(), read(&readme));
    let mut shown = 0;
    for (path, text) in guides {
        for kind in ["```rust\n", "```toml\n"] {
            for block in text.split(kind).skip(1) {
                // A block may omit lines: `// ...` in their place.
                let program = block.split("```").next().unwrap_or_default();
                for part in program.split("// ...\n") {
                    let part = lines(part.trim());
                    let is_there = tested.iter().any(|test| test.contains(&part));
                    assert!(is_there, "{}: no example has this:\n{part}", path.display());
                    shown += 1;
                }
            }
        }
    }
    assert!(shown >= 6, "{shown}");
}

/// Files that the internals name in code are there: a whole path, or the end of one.
#[test]
fn the_internals_name_files_that_exist() {
    let mut paths = Vec::new();
    files(root(), &["rs", "py", "txt", "tir", "lalrpop"], &mut paths);
    // Inputs of tests lie in folders that are not searched for pages.
    files(&root().join("tests/filetests"), &["py", "tir"], &mut paths);
    let known: Vec<String> = paths.iter().map(|path| path.to_string_lossy().replace("/src/", "/")).collect();
    let mut pages = pages("docs/internals");
    let map = root().join("compiler/ARCHITECTURE.md");
    pages.insert(map.clone(), read(&map));
    let (mut missing, mut named) = (Vec::new(), 0);
    for (path, text) in pages {
        for word in text.split('`').skip(1).step_by(2) {
            let is_file = [".rs", ".py", ".tir"].iter().any(|ending| word.ends_with(ending));
            if !is_file || word.starts_with('.') || word.contains("NAME") || word.contains(' ') {
                continue;
            }
            named += 1;
            let end = format!("/{word}").replace("/src/", "/");
            if !known.iter().any(|path| path.ends_with(&end)) {
                missing.push(format!("{}: {word}", path.strip_prefix(root()).unwrap_or(&path).display()));
            }
        }
    }
    assert!(missing.is_empty(), "no such files:\n{}", missing.join("\n"));
    assert!(named > 100, "{named}");
}

#[test]
fn the_readme_is_short_and_the_map_readable() {
    let readme = read(&root().join("README.md"));
    assert!(readme.len() <= 6 * 1024, "README.md has {} bytes", readme.len());
    let map = read(&root().join("compiler/ARCHITECTURE.md"));
    assert!(map.lines().count() <= 200, "ARCHITECTURE.md has {} lines", map.lines().count());
    let mut long = Vec::new();
    for (path, text) in pages("docs/internals").into_iter().chain([(root().join("compiler/ARCHITECTURE.md"), map)]) {
        let text: String = prose(&text).map(|line| line.to_owned() + "\n").collect();
        let is_item = |line: &str| line.starts_with("- ") || line.starts_with(|c: char| c.is_ascii_digit());
        let (mut first, mut words) = ("", 0);
        for line in text.lines().chain([""]) {
            if line.trim().is_empty() || is_item(line) || line.starts_with('|') {
                if words > 120 {
                    long.push(format!("{}: {first}", path.display()));
                }
                (first, words) = (line, 0);
            }
            words += line.split_whitespace().count();
        }
    }
    assert!(long.is_empty(), "paragraphs of more than 120 words:\n{}", long.join("\n"));
}

/// A picture in the book has a light and a dark form, and each is used.
#[test]
fn pictures_are_light_and_dark() {
    let mut pictures = Vec::new();
    files(&root().join("docs/images"), &["svg"], &mut pictures);
    let used: BTreeSet<PathBuf> = pages("")
        .iter()
        .flat_map(|(path, text)| {
            targets(text).into_iter().map(|target| normal(&path.parent().unwrap_or(path).join(target)))
        })
        .collect();
    for picture in &pictures {
        let name = picture.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let twin = match (name.strip_suffix("-light.svg"), name.strip_suffix("-dark.svg")) {
            (Some(stem), _) => format!("{stem}-dark.svg"),
            (_, Some(stem)) => format!("{stem}-light.svg"),
            _ => panic!("{name} is neither light nor dark"),
        };
        assert!(picture.with_file_name(&twin).exists(), "{twin} is missing");
        assert!(used.contains(picture), "no page shows {name}");
    }
    assert!(pictures.len() >= 4, "{}", pictures.len());
}

/// The page of the refusals that `-v` reports is written from their table.
#[test]
fn the_page_of_refusals_is_that_of_the_table() {
    let path = root().join("docs/tools/refusals.md");
    let head = "# Why warps are not specialized\n\n`rtc build -v` reports for each loop with dots on Hopper whether its warps are \
                specialized and its operands copied by TMA, and if not, why, with one of the codes below; `rtc explain CODE` \
                prints the same. Where a change was tried and helps, `-v` names that change instead of the general one here.\n";
    let section = |refusal: &rtc_passes::Refusal| {
        format!("\n## `{}`\n\nReason: {}.\n\nTo change it, {}.\n", refusal.code(), refusal.message(), refusal.help())
    };
    let text: String = std::iter::once(head.to_owned()).chain(rtc_passes::Refusal::ALL.iter().map(section)).collect();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).expect("writable");
    }
    assert_eq!(read(&path), text, "UPDATE=1 writes the page");
}
