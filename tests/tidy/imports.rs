//! Which module of a crate uses which: for rules about layers and circles inside of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{all, shown};

/// A module by its path, such as `["schedule", "tma", "coordinates"]`; the crate's root has none.
pub type Module = Vec<String>;

/// The modules of a crate, and those that each uses: by `use` declarations with any nesting of braces, and by paths in
/// expressions, that begin with `crate`, `self`, `super` or a module within. Test modules at the end of a file do not count.
pub fn imports(folder: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut sources = BTreeMap::new();
    for path in all(".rs") {
        let name = shown(&path);
        let Some(inside) = name.strip_prefix(folder).and_then(|name| name.strip_suffix(".rs")) else { continue };
        let mut module: Module = inside.trim_matches('/').split('/').map(String::from).collect();
        if module.last().is_some_and(|last| last == "mod" || last == "lib") {
            module.pop();
        }
        let text = fs::read_to_string(&path).expect("readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        let code: Vec<&str> = code.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
        sources.insert(module, code.join("\n"));
    }
    let modules: BTreeSet<Module> = sources.keys().cloned().collect();
    let used = |(module, text): (&Module, &String)| {
        let within = modules.iter().filter(|other| other.len() > 1 && other.starts_with(module));
        let within: BTreeSet<&str> = within.filter_map(|other| other.get(module.len()).map(String::as_str)).collect();
        let paths = paths(text, &within).into_iter().filter_map(|path| resolve(module, &path));
        let targets = paths.map(|path| deepest(&modules, path)).filter(|other| other != module && !other.is_empty());
        (module.clone(), targets.collect())
    };
    sources.iter().map(used).collect()
}

/// The paths in a text that begin with `crate`, `self`, `super` or one of these modules, with braces expanded.
fn paths(text: &str, within: &BTreeSet<&str>) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in within.iter().copied().chain(["crate", "self", "super"]) {
        for (at, _) in text.match_indices(&format!("{start}::")) {
            let before = text[..at].chars().next_back();
            if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') {
                expand(&mut text[at..].chars().peekable(), Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads one path, or a tree of paths in braces, after `prefix`.
fn expand(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, mut prefix: Vec<String>, found: &mut Vec<Vec<String>>) {
    loop {
        while rest.peek().is_some_and(|c| c.is_whitespace()) {
            rest.next();
        }
        if rest.peek() == Some(&'{') {
            rest.next();
            loop {
                expand(rest, prefix.clone(), found);
                while rest.peek().is_some_and(|c| c.is_whitespace()) {
                    rest.next();
                }
                match rest.next() {
                    Some(',') => {}
                    _ => return,
                }
            }
        }
        let mut word = String::new();
        while let Some(c) = rest.peek().copied().filter(|c| c.is_alphanumeric() || *c == '_') {
            word.push(c);
            rest.next();
        }
        if word.is_empty() {
            found.push(prefix);
            return;
        }
        prefix.push(word);
        let mut ahead = rest.clone();
        if (ahead.next(), ahead.next()) != (Some(':'), Some(':')) {
            found.push(prefix);
            return;
        }
        *rest = ahead;
    }
}

/// The path from the crate's root.
fn resolve(module: &Module, path: &[String]) -> Option<Module> {
    let mut out = module.clone();
    let mut rest = path.iter();
    match rest.next()?.as_str() {
        "crate" => out.clear(),
        "super" => drop(out.pop()?),
        "self" => {}
        within => out.push(within.to_owned()),
    }
    for name in rest {
        if name == "super" {
            out.pop()?;
        } else {
            out.push(name.clone());
        }
    }
    Some(out)
}

/// The module that a path leads into: without the item at its end.
fn deepest(modules: &BTreeSet<Module>, mut path: Module) -> Module {
    while !modules.contains(&path) {
        path.pop();
    }
    path
}

/// Circles of imports: groups of modules each of which reaches all others.
pub fn circles(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<Module>> {
    let reach = |from: &Module| {
        let (mut seen, mut work) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = work.pop() {
            for other in imports.get(&module).into_iter().flatten() {
                if seen.insert(other.clone()) {
                    work.push(other.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> = imports.keys().map(|module| (module, reach(module))).collect();
    let mut out: BTreeSet<Vec<Module>> = BTreeSet::new();
    for (module, others) in &reached {
        if others.contains(*module) {
            out.insert(others.iter().filter(|other| reached[*other].contains(*module)).cloned().collect());
        }
    }
    out.into_iter().collect()
}

#[test]
fn paths_are_read_with_their_braces() {
    let text =
        "use crate::{Pass, access::{self, alignment::is_multiple}};\nlet x = super::tma::boxes(1) + reads::of(2);";
    let shown: Vec<String> = paths(text, &["reads"].into()).iter().map(|path| path.join("/")).collect();
    let expected =
        ["reads/of", "crate/Pass", "crate/access/self", "crate/access/alignment/is_multiple", "super/tma/boxes"];
    assert_eq!(shown, expected);
}
