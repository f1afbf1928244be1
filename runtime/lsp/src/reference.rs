//! The functions of the language with their documentation, as the reference pages have them.

use std::collections::HashMap;
use std::sync::OnceLock;

use rtc_sema::reference::{Entry, EntryKind, entries};

/// All entries.
pub(crate) fn all() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(entries)
}

/// The entry of a name in a namespace. Functions of `tl` are also found in `libdevice`, as the language has them in both.
pub(crate) fn entry(namespace: &str, name: &str) -> Option<&'static Entry> {
    static BY_NAME: OnceLock<HashMap<(&'static str, &'static str), &'static Entry>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let key = |entry: &'static Entry| ((entry.namespace.as_str(), entry.name.as_str()), entry);
        all().iter().map(key).collect()
    });
    let namespaces: &[&str] = match namespace {
        "tl" => &["tl", "libdevice"],
        "libdevice" => &["libdevice", "tl"],
        other => &[other],
    };
    namespaces.iter().find_map(|namespace| by_name.get(&(*namespace, name)).copied())
}

/// The entry that a dotted name most likely means, by the usual names of the modules.
pub(crate) fn by_path(path: &str) -> Option<&'static Entry> {
    let (module, name) = match path.rsplit_once('.') {
        Some((module, name)) => (module, name),
        None => return entry("python", path),
    };
    let namespace = match module {
        "tl" | "triton.language" | "tl.math" | "tl.core" | "tl.standard" | "tl.random" | "language" => "tl",
        "libdevice" | "tl.extra.libdevice" | "tl.extra.cuda.libdevice" => "libdevice",
        other => other,
    };
    entry(namespace, name)
}

/// The documentation of an entry as Markdown.
pub(crate) fn markdown(entry: &Entry) -> String {
    let doc = &entry.doc;
    let mut out = format!("```python\n{}\n```\n", entry.usage());
    let mut paragraph = |text: &str| {
        if !text.is_empty() {
            out.push_str(&format!("\n{text}\n"));
        }
    };
    paragraph(&doc.summary);
    let params: Vec<String> = doc.params.iter().map(|(name, text)| format!("- `{name}`: {text}")).collect();
    paragraph(&params.join("\n"));
    if !doc.returns.is_empty() {
        paragraph(&format!("Returns {}", doc.returns));
    }
    doc.text.iter().for_each(|text| paragraph(text));
    for example in &doc.examples {
        paragraph(&format!("```python\n{}\n```", example.join("\n")));
    }
    out
}

/// Whether an entry is a function.
pub(crate) fn is_function(entry: &Entry) -> bool {
    entry.kind == EntryKind::Function
}
