//! Completion, and the signatures of calls.

use std::collections::BTreeMap;

use lsp_types::{
    CompletionItem, CompletionItemKind, Documentation, MarkupContent, MarkupKind, ParameterInformation, ParameterLabel,
    Position, SignatureHelp, SignatureInformation,
};
use rtc_sema::Refers;
use rtc_sema::reference::Entry;
use rtc_source::FileId;
use rtc_syntax::ast::FunctionDef;

use crate::analysis::Value;
use crate::calls::{Call, call_at};
use crate::hover::{dotted_at, word_at};
use crate::names::Kind;
use crate::reference;
use crate::session::Session;
use crate::uses::KEYWORDS;

/// Element types, as members of `tl`.
const DTYPES: &[&str] = &[
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8e4nv",
    "float8e5",
    "constexpr",
];

impl Session {
    /// The names that can come at a position.
    pub fn completion(&mut self, name: &str, position: Position) -> Vec<CompletionItem> {
        let Some(id) = self.id(name) else { return Vec::new() };
        let text = self.file(id).text.clone();
        let offset = self.file(id).lines.offset(&text, position);
        if in_comment_or_string(&text, offset) {
            return Vec::new();
        }
        let start = word_at(&text, offset).map_or(offset, |(start, _)| start.min(offset));
        let mut found = Items::default();
        match text[..start].strip_suffix('.') {
            Some(before) => self.members(id, &text, before.len(), &mut found),
            None => self.names_at(id, &text, offset, start, &mut found),
        }
        found.0.into_values().collect()
    }

    /// The members of the value or module before a dot.
    fn members(&mut self, id: FileId, text: &str, dot: usize, found: &mut Items) {
        let word = word_at(text, dot).filter(|(_, end)| *end == dot);
        let value = word.and_then(|word| dotted_at(text, word)).unwrap_or_default();
        let names = self.names(id);
        let module =
            names.at(dot).map(|o| &names.bindings[o.binding]).or_else(|| Some(&names.bindings[names.global(value)?]));
        let path = match module.map(|binding| &binding.kind) {
            Some(Kind::Import { module, item, .. }) => {
                item.as_ref().map_or(module.clone(), |item| format!("{module}.{item}"))
            }
            _ => value.to_owned(),
        };
        // The package `rtc` has the modules of `triton`.
        let path = match path.strip_prefix("rtc") {
            Some(rest) if rest.is_empty() || rest.starts_with('.') => format!("triton{rest}"),
            _ => path,
        };
        let namespace = match path.as_str() {
            "tl" | "triton.language" | "triton.tl" | "tl.math" | "triton.language.math" => Some("tl"),
            "libdevice" => Some("libdevice"),
            path if path.ends_with(".libdevice") => Some("libdevice"),
            "math" | "triton" | "triton_helpers" | "tl.extra.cuda" => Some(path.as_str()),
            _ => None,
        };
        match namespace {
            Some(namespace) => {
                let entries = reference::all().iter().filter(|e| e.namespace == namespace);
                entries.for_each(|entry| found.entry(entry, 0));
                if namespace == "tl" {
                    DTYPES.iter().for_each(|name| found.name(name, CompletionItemKind::CONSTANT, 1));
                }
                if namespace == "triton" {
                    ["jit", "autotune", "heuristics", "Config", "language"]
                        .iter()
                        .for_each(|name| found.name(name, CompletionItemKind::FUNCTION, 0));
                }
            }
            None => {
                // Of a value: attributes, and functions that are methods, too.
                let entries = reference::all().iter();
                entries.filter(|e| e.method || matches!(e.namespace.as_str(), "x" | "descriptor")).for_each(|entry| {
                    found.entry(entry, 0);
                });
                ["to", "dtype", "shape", "T"].iter().for_each(|name| found.name(name, CompletionItemKind::FIELD, 0));
                self.module_members(id, &path, found);
            }
        }
    }

    /// The functions and globals of an imported file.
    fn module_members(&mut self, id: FileId, module: &str, found: &mut Items) {
        let file = self.with_imports(id).into_iter().find(|(name, _)| name == module).map(|(_, file)| file);
        if let Some(file) = file {
            let names = self.names(file);
            let globals = names.bindings.iter().filter(|b| b.scope == 0 && !matches!(b.kind, Kind::Import { .. }));
            globals.for_each(|binding| found.name(&binding.name, kind_of(&binding.kind), 0));
        }
    }

    /// The names that are visible, and those of the arguments of a call.
    fn names_at(&mut self, id: FileId, text: &str, offset: usize, start: usize, found: &mut Items) {
        if let Some(call) = call_at(text, start).filter(|call| call.keyword.is_none()) {
            for name in self.parameters(id, &call).unwrap_or_default() {
                let bare = name.split(['=', ':']).next().unwrap_or(&name).trim().to_owned();
                if !bare.starts_with('*') && !matches!(bare.as_str(), "self" | "/") {
                    let insert = format!("{bare}=");
                    found.0.insert(
                        insert.clone(),
                        CompletionItem {
                            label: insert,
                            kind: Some(CompletionItemKind::PROPERTY),
                            detail: Some(name),
                            sort_text: Some(format!("0{bare}")),
                            ..CompletionItem::default()
                        },
                    );
                }
            }
        }
        let names = self.names(id);
        let analysis = self.analysis(id);
        for index in names.visible(offset) {
            let binding = &names.bindings[index];
            let known = names.defined_at(index).and_then(|span| analysis.of(span));
            let detail = known.and_then(|known| match known.values.first()? {
                Value::Tensor { language, .. } => Some(language.clone()),
                Value::Constant(text) => Some(text.clone()),
                Value::Other(_) => None,
            });
            found.with_detail(&binding.name, kind_of(&binding.kind), 1, detail);
        }
        // A function that cannot be parsed now has no names; its words are the next best thing.
        for word in words(function_around(text, offset)) {
            if word.1 != start && !KEYWORDS.contains(&word.0) {
                found.name(word.0, CompletionItemKind::TEXT, 2);
            }
        }
        for entry in reference::all().iter().filter(|e| e.namespace == "python") {
            found.entry(entry, 3);
        }
        ["tl", "triton", "math"].iter().for_each(|name| found.name(name, CompletionItemKind::MODULE, 3));
        KEYWORDS.iter().for_each(|word| found.name(word, CompletionItemKind::KEYWORD, 4));
    }

    /// The parameters of the call at a position, with the one that is being given.
    pub fn signature_help(&mut self, name: &str, position: Position) -> Option<SignatureHelp> {
        let id = self.id(name)?;
        let text = self.file(id).text.clone();
        let offset = self.file(id).lines.offset(&text, position);
        let call = call_at(&text, offset)?;
        let entry = self.entry_of(id, &call);
        let mut params = self.parameters(id, &call)?;
        params.retain(|param| param != "self");
        let bare = |param: &String| param.split(['=', ':']).next().unwrap_or_default().trim().to_owned();
        let active = match call.keyword {
            Some(keyword) => params.iter().position(|param| bare(param) == keyword),
            None => Some(call.index).filter(|index| *index < params.len()),
        };
        let label = format!("{}({})", call.callee, params.join(", "));
        let markdown =
            |value: String| Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value });
        let docs = |param: &String| {
            let docs = &entry?.doc.params;
            docs.iter().find(|(name, _)| *name == bare(param)).map(|(_, text)| markdown(text.clone()))
        };
        let parameters = params.iter().map(|param| ParameterInformation {
            label: ParameterLabel::Simple(param.clone()),
            documentation: docs(param),
        });
        Some(SignatureHelp {
            signatures: vec![SignatureInformation {
                label,
                documentation: entry.map(|entry| markdown(entry.doc.summary.clone())),
                parameters: Some(parameters.collect()),
                active_parameter: active.map(|index| index as u32),
            }],
            active_signature: Some(0),
            active_parameter: active.map(|index| index as u32),
        })
    }

    fn entry_of(&mut self, id: FileId, call: &Call<'_>) -> Option<&'static Entry> {
        let analysis = self.analysis(id);
        let known = analysis.at(call.callee_end).filter(|fact| fact.span.end as usize == call.callee_end);
        let refers = known.filter_map(|fact| fact.refers.clone()).next();
        match refers.as_deref() {
            Some(Refers::Entry(namespace, name)) => reference::entry(namespace, name),
            Some(Refers::Definition(_)) => None,
            None => reference::by_path(call.callee).filter(|entry| reference::is_function(entry)),
        }
    }

    /// The parameters of a called function, as they are written.
    fn parameters(&mut self, id: FileId, call: &Call<'_>) -> Option<Vec<String>> {
        if let Some(entry) = self.entry_of(id, call) {
            return Some(entry.params.clone());
        }
        let name = call.callee.rsplit('.').next().unwrap_or(call.callee);
        let modules = self.with_imports(id);
        modules.iter().find_map(|(_, file)| {
            let file = self.file(*file);
            let functions = file.tree.functions();
            let function: &FunctionDef = functions.into_iter().rev().find(|f| *f.name.text == *name)?;
            let written = |span: rtc_source::Span| file.text.get(span.start as usize..span.end as usize);
            Some(function.params.iter().map(|p| written(p.span).unwrap_or_default().to_owned()).collect())
        })
    }
}

/// Completions by label; the first of a label counts.
#[derive(Default)]
struct Items(BTreeMap<String, CompletionItem>);

impl Items {
    fn name(&mut self, name: &str, kind: CompletionItemKind, rank: u32) {
        self.with_detail(name, kind, rank, None);
    }

    fn with_detail(&mut self, name: &str, kind: CompletionItemKind, rank: u32, detail: Option<String>) {
        self.0.entry(name.to_owned()).or_insert_with(|| CompletionItem {
            label: name.to_owned(),
            kind: Some(kind),
            detail,
            sort_text: Some(format!("{rank}{name}")),
            ..CompletionItem::default()
        });
    }

    fn entry(&mut self, entry: &Entry, rank: u32) {
        let is_function = reference::is_function(entry);
        let kind = if is_function { CompletionItemKind::FUNCTION } else { CompletionItemKind::FIELD };
        self.0.entry(entry.name.clone()).or_insert_with(|| CompletionItem {
            label: entry.name.clone(),
            kind: Some(kind),
            detail: Some(entry.usage()),
            documentation: Some(Documentation::String(entry.doc.summary.clone())),
            sort_text: Some(format!("{rank}{}", entry.name)),
            ..CompletionItem::default()
        });
    }
}

fn kind_of(kind: &Kind) -> CompletionItemKind {
    match kind {
        Kind::Parameter { constexpr: true } => CompletionItemKind::CONSTANT,
        Kind::Parameter { .. } | Kind::Local | Kind::Global => CompletionItemKind::VARIABLE,
        Kind::Function { .. } => CompletionItemKind::FUNCTION,
        Kind::Class => CompletionItemKind::CLASS,
        Kind::Import { .. } => CompletionItemKind::MODULE,
    }
}

/// The text of the function around a byte: from the last line without indentation that begins a statement.
fn function_around(text: &str, offset: usize) -> &str {
    let begins = |line: &str| line.starts_with(|c: char| c.is_alphabetic() || c == '@');
    let start = text[..offset].rmatch_indices('\n').map(|(at, _)| at + 1).chain([0]).find(|at| begins(&text[*at..]));
    &text[start.unwrap_or(0)..offset]
}

/// The words of a text, with their places, outside of comments.
fn words(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let lines = text.split('\n').map(|line| line.split('#').next().unwrap_or_default());
    lines.flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '_'))).filter_map(move |word| {
        let is_name = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
        is_name.then(|| (word, word.as_ptr() as usize - text.as_ptr() as usize))
    })
}

/// Whether a byte is in a comment or in a string of one line.
fn in_comment_or_string(text: &str, offset: usize) -> bool {
    let line = text[..offset].rsplit('\n').next().unwrap_or_default();
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '#') => return true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(q), c) if c == q => quote = None,
            _ => {}
        }
    }
    quote.is_some()
}
