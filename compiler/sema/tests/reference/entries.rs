//! Entries as Markdown.

use std::fmt::Write as _;

use rtc_sema::reference::{Entry, EntryKind};

use crate::{pages::anchor, probe};

/// Whether the function is applied to each element, so that the types it takes can be tried.
pub fn is_elementwise(e: &Entry) -> bool {
    if e.kind == EntryKind::Attribute || !e.doc.params.is_empty() {
        return e.kind == EntryKind::Attribute;
    }
    matches!(e.namespace.as_str(), "libdevice" | "math") || (e.namespace == "tl" && !e.names.is_empty())
}

/// The entries of some modules, group by group in the order of their first entries.
pub fn groups<'a>(entries: &'a [Entry], namespaces: &[&str]) -> Vec<(&'a str, Vec<&'a Entry>)> {
    let mut titles: Vec<(&str, Vec<&Entry>)> = Vec::new();
    for e in entries.iter().filter(|e| namespaces.contains(&e.namespace.as_str())) {
        match titles.iter_mut().find(|(title, _)| *title == e.group) {
            Some((_, list)) => list.push(e),
            None => titles.push((&e.group, vec![e])),
        }
    }
    titles
}

/// One item of an index: the title of a group and its names, with links.
pub fn index(out: &mut String, title: &str, target: &str, list: &[&Entry], link: impl Fn(&str) -> String) {
    let names: Vec<String> = list.iter().map(|e| format!("[`{}`]({})", e.path(), link(&e.path()))).collect();
    writeln!(out, "- [{title}]({target}): {}", names.join(",\n  ")).expect("writes to memory");
}

/// An entry under a heading of the given level.
pub fn entry(out: &mut String, e: &Entry, level: &str) {
    let mut line = |text: String| writeln!(out, "{text}").expect("writes to memory");
    line(format!("\n{level} `{}`\n", e.path()));
    if e.kind == EntryKind::Function {
        line(format!("```text\n{}\n```\n", e.usage()));
    }
    line(e.doc.summary.clone());
    e.doc.text.iter().for_each(|paragraph| line(format!("\n{paragraph}")));
    let mut facts: Vec<String> = Vec::new();
    // Parameters with the same text are grouped.
    let mut params: Vec<(Vec<String>, &str)> = Vec::new();
    for (name, text) in &e.doc.params {
        match params.last_mut() {
            Some((names, last)) if last == text => names.push(format!("`{name}`")),
            _ => params.push((vec![format!("`{name}`")], text)),
        }
    }
    facts.extend(params.iter().map(|(names, text)| format!("- {}: {text}", names.join(", "))));
    let mut errors = e.doc.errors.clone();
    if is_elementwise(e) && e.kind == EntryKind::Function && e.namespace != "math" && !e.names.is_empty() {
        let accepted = probe::accepted(e);
        assert!(!accepted.forms.is_empty(), "`{}` takes no type: {:?}", e.path(), accepted.errors);
        let which = if e.names.len() == 1 { format!("`{}`", e.names[0]) } else { "arguments".to_string() };
        let described = accepted.describe();
        facts.push(format!("- {which}: blocks or scalars of {described}"));
        if e.doc.returns.is_empty() {
            let shape = if e.names.len() == 1 { "the same shape" } else { "the common shape" };
            let ty =
                if described.contains('→') { "the type after the arrow, else the same" } else { "the same type" };
            facts.push(format!("- returns: {shape}, {ty}"));
        }
        for code in accepted.errors {
            if !errors.contains(&code) {
                errors.push(code);
            }
        }
    }
    if !e.doc.returns.is_empty() {
        facts.push(format!("- returns: {}", e.doc.returns));
    }
    if !errors.is_empty() {
        let links: Vec<String> = errors.iter().map(|c| format!("[`{c}`](diagnostics.md#{})", anchor(c))).collect();
        facts.push(format!("- errors: {}", links.join(", ")));
    }
    if e.method {
        facts.push(format!("- also a method: `x.{}`", e.name));
    }
    if !facts.is_empty() {
        line(format!("\n{}", facts.join("\n")));
    }
    if !e.doc.examples.is_empty() {
        let examples: Vec<String> =
            e.doc.examples.iter().map(|lines| lines.iter().map(|l| format!(">>> {l}\n")).collect()).collect();
        line(format!("\n```python\n{}```", examples.join("---\n")));
    }
}
