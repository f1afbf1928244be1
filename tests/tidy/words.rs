//! Words that `docs/glossary.md` replaces by those of the field do not come back: in code, documentation and messages.

use std::fs;

use super::{all, shown};

/// Words that are not used, and the replacement.
const REPLACED: &[(&str, &str)] = &[
    ("multiprocessor", "SM"),
    ("multiprocessors", "SMs"),
    ("multiply-add", "FMA"),
    ("multiply-adds", "FMAs"),
    ("product by wgmma", "wgmma dot"),
    ("products by wgmma", "wgmma dots"),
    ("role that copies", "producer"),
    ("role that computes", "consumer"),
    ("under way", "in flight"),
    ("begun ahead", "issued ahead"),
    ("goes round", "wraps around"),
    ("gone round", "wrapped around"),
    ("takes apart", "splits"),
    ("taken apart", "split"),
    ("dear ones", "expensive ones"),
    ("dearer", "more expensive"),
    ("dearest", "most expensive"),
    ("anew", "again"),
    ("what shows", "observable side effects"),
    ("vouch", "guarantee"),
    ("vouches", "guarantees"),
    ("nobody", "no user, no thread, ..."),
    ("somebody", "another thread, the caller, ..."),
    ("anybody", "any thread, ..."),
    ("whoever", "the caller, ..."),
];

/// The file with the list for people.
const GLOSSARY: &str = "docs/glossary.md";

/// Text in lower case with single spaces, without the marks of comments and code, so that words on two lines are found.
fn plain<'t>(lines: impl Iterator<Item = &'t str>) -> String {
    let lines = lines.map(|line| line.trim_start().trim_start_matches(['/', '!', '#']));
    let words = lines.flat_map(str::split_whitespace).map(|word| word.replace('`', "").to_lowercase());
    words.collect::<Vec<String>>().join(" ")
}

/// The comments and strings of Rust, line by line; the names of the code are left out.
fn prose(code: &str) -> impl Iterator<Item = &str> {
    code.lines().flat_map(|line| {
        let (code, comment) = line.split_at(line.find("//").unwrap_or(line.len()));
        code.split('"').skip(1).step_by(2).chain([comment])
    })
}

/// Whether the words are in a text that [`plain`] made, as whole words.
fn has(text: &str, words: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        // A call or a field in an example is code.
        let is_code = before.ends_with('.') || after.starts_with('(');
        !is_part(before.chars().next_back()) && !is_part(after.chars().next()) && !is_code
    })
}

#[test]
fn the_words_are_those_of_the_field() {
    let mut wrong = Vec::new();
    for ending in [".rs", ".md", ".py", ".rt", ".tir"] {
        for path in all(ending) {
            let name = shown(&path);
            if name.ends_with(GLOSSARY) || name == "tests/tidy/words.rs" {
                continue;
            }
            let text = fs::read_to_string(&path).expect("readable");
            let text = if ending == ".rs" { plain(prose(&text)) } else { plain(text.lines()) };
            let found = REPLACED.iter().filter(|(words, _)| has(&text, words));
            wrong.extend(found.map(|(words, instead)| format!("{name}: `{words}` (write: {instead})")));
        }
    }
    assert!(wrong.is_empty(), "{GLOSSARY} has the project's words\n{}", wrong.join("\n"));
}

#[test]
fn words_are_found_across_lines_and_as_whole_words() {
    assert!(has(&plain("# a product by `wgmma`".lines()), "product by wgmma"));
    assert!(!has(&plain("`blocks_per_multiprocessor`".lines()), "multiprocessor"));
    assert!(!has(&plain("`device.sm_count()`".lines()), "multiprocessors"));
    assert!(!has(&plain("(machine.sm_count, 1)".lines()), "multiprocessors"));
    let code = "let dearest = 1;\nfail(\"nobody\"); // Copies that are Under\n// way.";
    assert!(has(&plain(prose(code)), "under way") && has(&plain(prose(code)), "nobody"));
    assert!(!has(&plain(prose(code)), "dearest"));
}
