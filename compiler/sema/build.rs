//! Reads the declarations of the built-in functions, `src/builtins/*.rt`, into a table for `src/declared.rs`. Primitives of
//! the standard library are declared in the comment at the head of their code.
//!
//! A declaration is plain enough to do without the parser of the language; the tests of the reference compare both.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// The namespaces of sections, with the variants of `Namespace`, in their order.
const NAMESPACES: &[(&str, &str)] = &[
    ("tl", "Language"),
    ("descriptor", "Descriptor"),
    ("type", "Type"),
    ("constant", "Constant"),
    ("python", "Python"),
    ("host", "Host"),
    ("triton", "Triton"),
    ("math", "PyMath"),
    ("tl.extra.cuda", "Cuda"),
    ("tl.target_info", "TargetInfo"),
    ("named tuple", "NamedTuple"),
    ("tuning", "Tuning"),
    ("prim", "Prim"),
];

fn main() {
    println!("cargo::rerun-if-changed=src/builtins");
    let mut paths: Vec<_> = fs::read_dir("src/builtins")
        .expect("the folder of the declarations")
        .map(|entry| entry.expect("a directory entry").path())
        .collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let mut text = fs::read_to_string(&path).expect("the file is text");
        if path.extension().is_some_and(|x| x == "rs") {
            // Of code, what the comment at its head declares.
            let head = text.lines().map_while(|line| line.strip_prefix("//!"));
            text = head.map(|line| format!("{}\n", line.trim_start())).collect();
        }
        for section in text.split("\n#: ").skip(1) {
            functions(section, &mut found);
        }
    }
    let order = |namespace: &str| NAMESPACES.iter().position(|(_, variant)| *variant == namespace);
    found.sort_by(|a, b| (order(a.0), &a.1).cmp(&(order(b.0), &b.1)));
    let mut out = String::from("&[\n");
    for (index, (namespace, name, parameters)) in found.iter().enumerate() {
        writeln!(
            out,
            "Builtin {{ namespace: Namespace::{namespace}, name: {name:?}, index: {index}, signature: Signature {{ \
             parameters: Cow::Borrowed(&[{parameters}]) }} }},"
        )
        .expect("writes to memory");
    }
    out.push_str("]\n");
    let folder = env::var("OUT_DIR").expect("cargo names a folder");
    fs::write(Path::new(&folder).join("declared.rs"), out).expect("writes the table");
}

/// The functions of a section; attributes are declared for the reference only.
fn functions(section: &str, found: &mut Vec<(&'static str, String, String)>) {
    let end = section.find('\n').unwrap_or(section.len());
    let (head, text) = section.split_at(end);
    let head = head.split(" | ").next().unwrap_or(head);
    let Some((_, namespace)) = NAMESPACES.iter().find(|(name, _)| *name == head) else { return };
    for (at, _) in text.match_indices("\ndef ").filter(|(at, _)| !text[..*at].ends_with("@property")) {
        let definition = &text[at + "\ndef ".len()..];
        let (name, rest) = definition.split_once('(').expect("a function has parameters");
        let (inside, _) = rest.split_once("):\n").expect("the parameters stand in one line");
        let parts = inside.split(", ").map(str::trim).filter(|part| !part.is_empty());
        let parameters: Vec<String> = parts.map(parameter).collect();
        found.push((namespace, name.into(), parameters.join(", ")));
    }
}

fn parameter(text: &str) -> String {
    let (declared, default) = match text.split_once('=') {
        Some((declared, default)) => (declared, format!("Some({})", self::default(default.trim()))),
        None => (text, "None".into()),
    };
    let name = declared.split(':').next().unwrap_or(declared).trim();
    let is_rest = name.starts_with('*');
    let name = name.trim_start_matches('*');
    format!("Parameter {{ name: {name:?}, is_rest: {is_rest}, default: {default} }}")
}

fn default(text: &str) -> String {
    match text {
        "None" => "Default::None".into(),
        "True" => "Default::Bool(true)".into(),
        "False" => "Default::Bool(false)".into(),
        _ if text.starts_with('"') => format!("Default::Str({text})"),
        _ if text.parse::<i64>().is_ok() => format!("Default::Int({text})"),
        _ if text.parse::<f64>().is_ok() => format!("Default::Float({text})"),
        _ => "Default::Described".into(),
    }
}
