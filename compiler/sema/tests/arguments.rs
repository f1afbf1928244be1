//! Built-in functions and their declarations agree: the code of each function uses exactly the parameters that
//! `builtins/*.rt` declares.
//!
//! The code is analysed as text: arguments are taken by `args.METHOD("name")`, `args.METHOD(cx, "name")`, by passing
//! `args, "name"` or `args, &["name", ..]` on, or by passing `args` on as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rtc_sema::reference;

/// The arguments that a piece of code uses.
#[derive(Clone, Debug, Default)]
struct Asks {
    names: BTreeSet<String>,
    /// It takes all of them, in order.
    all: bool,
    /// It uses the first one, whatever its name.
    first: bool,
    /// Functions to which it passes the arguments on.
    callees: BTreeSet<String>,
}

impl Asks {
    fn of(code: &str) -> Asks {
        let mut asks = Asks::default();
        for (at, _) in code.match_indices("args") {
            let before = code[..at].trim_end_matches("cx, ").trim_end_matches("self, ");
            let after = &code[at + "args".len()..];
            if let Some(method) = after.strip_prefix('.') {
                let Some((name, rest)) = method.split_once('(').filter(|(name, _)| is_name(name)) else { continue };
                asks.all |= name == "all" || name == "all_but";
                asks.first |= name == "first";
                asks.literals(rest.trim_start_matches("cx, ").trim_start_matches("self, "));
            } else if after.starts_with([',', ')']) {
                if let Some(callee) = before.strip_suffix('(') {
                    let start = callee.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |i| i + 1);
                    asks.callees.insert(callee[start..].to_string());
                }
                asks.literals(after.trim_start_matches(", "));
            }
        }
        asks
    }

    /// The names at the beginning of a piece of code: `"x"` or `&["x", "y"]`.
    fn literals(&mut self, code: &str) {
        let list = code.strip_prefix("&[").map(|rest| rest.split(']').next().unwrap_or(rest));
        let names: Vec<&str> = match list {
            Some(list) => list.split(", ").collect(),
            None => code.split([',', ')']).take(1).collect(),
        };
        let unquoted = names.into_iter().filter_map(|word| word.trim().strip_prefix('"')?.strip_suffix('"'));
        self.names.extend(unquoted.filter(|name| is_name(name)).map(str::to_string));
    }
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The functions and the rows of one file.
#[derive(Default)]
struct File {
    functions: BTreeMap<String, Asks>,
    /// Table, name, code.
    rows: Vec<(String, String, Asks)>,
}

impl File {
    fn read(text: &str) -> File {
        let mut file = File::default();
        let lines: Vec<&str> = text.split("#[cfg(test)]").next().unwrap_or(text).lines().collect();
        let mut i = 0;
        while i < lines.len() {
            let indent = lines[i].len() - lines[i].trim_start().len();
            let words = lines[i].trim_start().trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ");
            let closing = format!("{}}}", " ".repeat(indent));
            if let Some(head) = words.strip_prefix("fn ") {
                let name: String = head.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let end =
                    (i..lines.len()).find(|j| lines[*j] == closing || lines[*j].starts_with(&format!("{closing} ")));
                let end = end.unwrap_or(lines.len() - 1);
                file.functions.insert(name, Asks::of(&lines[i..=end].join("\n")));
                i = end + 1;
            } else if let Some(head) =
                words.strip_prefix("const ").filter(|w| w.contains(": &[Row]") || w.contains(": Row"))
            {
                let table = head.split(':').next().unwrap_or(head).to_string();
                let last = |j: &usize| lines[*j].ends_with(';') && lines.get(j + 1).is_none_or(|next| next.is_empty());
                let end = (i..lines.len()).find(last).unwrap_or(i);
                let code = lines[i..=end].join("\n");
                for row in code.split("row(").skip(1) {
                    let Some((name, code)) = row.trim_start().trim_start_matches('"').split_once('"') else { continue };
                    let mut asks = Asks::of(code);
                    // A function as it is.
                    let word = code.trim_start_matches([',', ' ', '\n']).split([')', ',']).next().unwrap_or_default();
                    asks.callees.extend(word.rsplit("::").next().map(str::to_string));
                    file.rows.push((table.clone(), name.to_string(), asks));
                }
                i = end + 1;
            } else {
                i += 1;
            }
        }
        file
    }
}

fn files() -> BTreeMap<String, File> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/builtins");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|e| e.expect("a directory entry").path());
    let sources = paths.filter(|p| p.extension().is_some_and(|x| x == "rs"));
    let read = |p: std::path::PathBuf| {
        let stem = p.file_stem().expect("files have names").to_string_lossy().into_owned();
        (stem, File::read(&std::fs::read_to_string(&p).expect("the file is text")))
    };
    sources.map(read).filter(|(stem, _)| stem != "args").collect()
}

/// All arguments that some code uses, including those of the functions that it calls.
fn closure(files: &BTreeMap<String, File>, home: &str, asks: &Asks) -> Asks {
    let mut total = asks.clone();
    let mut seen = BTreeSet::new();
    while let Some(callee) = total.callees.pop_first() {
        if !seen.insert(callee.clone()) {
            continue;
        }
        let here = files[home].functions.get(&callee);
        let Some(found) = here.or_else(|| files.values().find_map(|f| f.functions.get(&callee))) else { continue };
        total.names.extend(found.names.iter().cloned());
        total.all |= found.all;
        total.first |= found.first;
        total.callees.extend(found.callees.iter().filter(|c| !seen.contains(*c)).cloned());
    }
    total
}

/// The namespace of a table.
fn namespace(file: &str, table: &str) -> &'static str {
    match (file, table) {
        ("descriptor", "METHODS") => "descriptor",
        ("python", "TYPE_METHODS") => "type",
        ("python", "CONSTANT") => "constant",
        ("python", "TRITON") => "triton",
        ("python", "MATH") => "math",
        ("python", _) | ("host", "LOOPS") => "python",
        ("host", _) | ("tuning", "HOST") => "host",
        ("tuning", _) => "tuning",
        ("cuda", "TABLE") => "tl.extra.cuda",
        ("cuda", _) => "tl.target_info",
        ("named_tuple", _) => "named tuple",
        ("prim", _) => "prim",
        _ => "tl",
    }
}

#[test]
fn functions_ask_for_the_declared_parameters() {
    let files = files();
    let declared = reference::built_in();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (home, file) in &files {
        for (table, name, asks) in &file.rows {
            let space = namespace(home, table);
            let Some((.., parameters, _)) = declared.iter().find(|(n, d, ..)| *n == space && *d == name) else {
                wrong.push(format!("`{space}.{name}` is not declared"));
                continue;
            };
            let mut asks = closure(&files, home, asks);
            let parameters: Vec<String> = parameters.iter().map(|p| p.trim_matches(['*', '?']).to_string()).collect();
            asks.names.extend(parameters.first().filter(|_| asks.first).cloned());
            let parameters: BTreeSet<String> = parameters.into_iter().collect();
            for other in asks.names.difference(&parameters) {
                wrong.push(format!("{home}.rs: `{space}.{name}` asks for `{other}`, which is not declared"));
            }
            for unused in parameters.difference(&asks.names).filter(|_| !asks.all) {
                wrong.push(format!("{home}.rs: `{space}.{name}` never asks for `{unused}`, which is declared"));
            }
            checked += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 220, "only {checked} functions");
}

#[test]
fn the_reading_finds_what_code_asks_for() {
    let text = "const TABLE: &[Row] = &[\n    row(\"a\", f),\n    row(\"b\", |cx, args| g(cx, args, &[\"x\", \"y\"])),\n];\n\n\
                fn f<'a>(cx: &mut Cx<'a>, args: &Args<'a>) {\n    args.int(cx, \"n\");\n    h(args, \"m\")\n}\n\n\
                fn h(args: &Args) {\n    args.arg(\"z\")\n}\n";
    let files = BTreeMap::from([("t".to_string(), File::read(text))]);
    let names = |i: usize| {
        let asks = closure(&files, "t", &files["t"].rows[i].2);
        asks.names.into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!((names(0), names(1)), ("m n z".to_string(), "x y".to_string()));
}
