//! The stub of the Python package, and the pages under `docs/`: written by hand or made from the declarations, with examples that are run. The test fails
//! where a page is not what it would be written as today; `UPDATE=1` writes the pages.

#[path = "../kernels/mod.rs"]
mod kernels;

mod differences;
mod entries;
mod examples;
mod pages;
mod probe;
mod stub;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rtc_sema::reference;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_row_is_declared_and_every_declaration_has_a_row() {
    let mut wrong: Vec<String> = reference::undeclared().iter().map(|row| format!("`{row}` is not declared")).collect();
    let entries = reference::entries();
    for (namespace, name, names, has_code) in reference::built_in() {
        // `x.to` goes by `tl.cast`.
        if !has_code && namespace != "constant" {
            wrong.push(format!("`{namespace}.{name}` is declared, but there is no such row"));
        }
        // The reference reads the declarations by the parser.
        let same = |e: &&reference::Entry| e.namespace == namespace && e.name == name && !is_attribute(e);
        if let Some(e) = entries.iter().find(same).filter(|e| e.names != names) {
            wrong.push(format!("`{namespace}.{name}` is read as {names:?}, the parser sees {:?}", e.names));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_attribute(e: &reference::Entry) -> bool {
    e.kind == reference::EntryKind::Attribute
}

#[test]
fn everything_is_documented() {
    let codes: BTreeSet<&str> = rtc_source::CODES.iter().map(|(code, _)| code.0).collect();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for e in reference::entries() {
        let path = e.path();
        let mut say = |what: &str| wrong.push(format!("`{path}` {what}"));
        if !e.doc.summary.ends_with('.') {
            say("has no sentence");
        }
        if e.doc.examples.is_empty() {
            say("has no example: add a line `>>> ...` to its docstring");
        }
        for code in e.doc.errors.iter().filter(|c| !codes.contains(c.as_str())) {
            say(&format!("names the code `{code}`, which does not exist"));
        }
        let explained: BTreeSet<&str> = e.doc.params.iter().map(|(name, _)| name.as_str()).collect();
        for name in e.names.iter().map(|n| n.trim_matches(['*', '?'])).filter(|n| *n != "self") {
            // Element-wise functions are tried with every type instead.
            if !explained.contains(name) && !entries::is_elementwise(&e) {
                say(&format!("does not say what `{name}` takes"));
            }
        }
        if !seen.insert(path.clone()) {
            say("has two entries");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.len() >= 350, "only {} entries", seen.len());
}

#[test]
fn pages_are_up_to_date() {
    let update = std::env::var_os("UPDATE").is_some();
    let (mut stale, mut wrong) = (Vec::new(), Vec::new());
    for (name, text) in pages::all(&root()) {
        let path = root().join("docs").join(&name);
        let text = examples::fill(&name, &text, &mut wrong);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if update {
            std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        } else {
            let old = std::fs::read_to_string(&path).unwrap_or_default();
            let first = old.lines().zip(text.lines()).find(|(a, b)| a != b);
            stale.push(format!("docs/{name}: first difference: {first:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let how = "UPDATE=1 cargo test -p rtc-sema --test reference";
    assert!(stale.is_empty(), "write the pages with `{how}`, and look at what changes:\n{}", stale.join("\n"));
}

#[test]
fn the_stub_for_python_is_up_to_date() {
    let (path, text) = (root().join(stub::PATH), stub::text());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let first = old.lines().zip(text.lines()).find(|(a, b)| a != b);
    let how = "UPDATE=1 cargo test -p rtc-sema --test reference";
    assert!(old == text, "{}: first difference: {first:?}; write it with `{how}`", stub::PATH);
}
