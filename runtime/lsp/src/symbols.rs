//! The symbols of a file, and its names by their meaning for highlighting.

use lsp_types::{DocumentSymbol, SemanticToken, SemanticTokenModifier, SemanticTokenType, SymbolKind};
use rtc_source::Span;
use rtc_syntax::ast::{ExprKind, FunctionDef, Param, Stmt, StmtKind, walk_expressions};

use crate::names::Kind;
use crate::reference;
use crate::session::{File, Session};

/// The kinds of names; the index is the number in the protocol.
pub const TOKEN_TYPES: [SemanticTokenType; 8] = [
    SemanticTokenType::NAMESPACE,
    SemanticTokenType::TYPE,
    SemanticTokenType::CLASS,
    SemanticTokenType::FUNCTION,
    SemanticTokenType::METHOD,
    SemanticTokenType::PARAMETER,
    SemanticTokenType::VARIABLE,
    SemanticTokenType::PROPERTY,
];

/// Properties of names; bits in this order.
pub const TOKEN_MODIFIERS: [SemanticTokenModifier; 3] =
    [SemanticTokenModifier::DECLARATION, SemanticTokenModifier::READONLY, SemanticTokenModifier::DEFAULT_LIBRARY];

const DECLARATION: u32 = 1;
const READONLY: u32 = 2;
const LIBRARY: u32 = 4;

impl Session {
    /// The functions, classes and globals of a file.
    pub fn symbols(&mut self, name: &str) -> Vec<DocumentSymbol> {
        let Some(id) = self.id(name) else { return Vec::new() };
        let file = self.file(id);
        let mut found = Vec::new();
        symbols_of(file, &file.tree.body, &mut found);
        found
    }

    /// The names of a file with their meaning, as the protocol encodes them.
    pub fn semantic_tokens(&mut self, name: &str) -> Vec<SemanticToken> {
        let Some(id) = self.id(name) else { return Vec::new() };
        let names = self.names(id);
        let file = self.file(id);
        let mut tokens: Vec<(Span, u32, u32)> = Vec::new();
        for place in &names.occurrences {
            let (kind, mut modifiers) = match &names.bindings[place.binding].kind {
                Kind::Import { .. } => (0, 0),
                Kind::Class => (2, 0),
                Kind::Function { .. } => (3, 0),
                Kind::Parameter { constexpr } => (5, if *constexpr { READONLY } else { 0 }),
                Kind::Local | Kind::Global => (6, 0),
            };
            if place.is_definition {
                modifiers |= DECLARATION;
            }
            tokens.push((place.span, kind, modifiers));
        }
        // Attributes: members of modules are functions and types, those of values are methods and properties.
        walk_expressions(&file.tree.body, &mut |expr| {
            let ExprKind::Attribute { attr, .. } = &expr.kind else { return };
            let entry = expr.dotted_name().as_deref().and_then(reference::by_path);
            let is_type = rtc_abi::ValueType::parse(&attr.text).is_some() || &*attr.text == "constexpr";
            tokens.push(match entry {
                _ if is_type => (attr.span, 1, LIBRARY),
                Some(entry) if reference::is_function(entry) => (attr.span, 3, LIBRARY),
                Some(_) => (attr.span, 7, LIBRARY),
                None => (attr.span, 7, 0),
            });
        });
        tokens.sort_by_key(|(span, ..)| span.start);
        tokens.dedup_by_key(|(span, ..)| span.start);
        encoded(file, &tokens)
    }
}

/// Tokens relative to each other, with lengths in UTF-16 units.
fn encoded(file: &File, tokens: &[(Span, u32, u32)]) -> Vec<SemanticToken> {
    let (mut line, mut column) = (0, 0);
    let mut out = Vec::with_capacity(tokens.len());
    for (span, kind, modifiers) in tokens {
        let range = file.lines.of_span(&file.text, *span);
        // A name has one line.
        if range.start.line != range.end.line || range.end.character <= range.start.character {
            continue;
        }
        let same_line = range.start.line == line;
        out.push(SemanticToken {
            delta_line: range.start.line - line,
            delta_start: if same_line { range.start.character - column } else { range.start.character },
            length: range.end.character - range.start.character,
            token_type: *kind,
            token_modifiers_bitset: *modifiers,
        });
        (line, column) = (range.start.line, range.start.character);
    }
    out
}

fn symbols_of(file: &File, body: &[Stmt], out: &mut Vec<DocumentSymbol>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::FunctionDef(def) => {
                let mut symbol = symbol(file, &def.name.text, SymbolKind::FUNCTION, stmt.span, def.name.span);
                symbol.detail = Some(detail(file, def));
                out.push(symbol);
            }
            StmtKind::ClassDef(class) => {
                let mut children = Vec::new();
                symbols_of(file, &class.body, &mut children);
                let symbol = symbol(file, &class.name.text, SymbolKind::CLASS, stmt.span, class.name.span);
                out.push(DocumentSymbol { children: Some(children), ..symbol });
            }
            StmtKind::Assign { targets, .. } => {
                for target in targets {
                    if let ExprKind::Name(name) = &target.kind {
                        out.push(symbol(file, name, SymbolKind::VARIABLE, stmt.span, target.span));
                    }
                }
            }
            StmtKind::AnnAssign { target, .. } => {
                if let ExprKind::Name(name) = &target.kind {
                    out.push(symbol(file, name, SymbolKind::VARIABLE, stmt.span, target.span));
                }
            }
            StmtKind::If { body, orelse, .. } => {
                symbols_of(file, body, out);
                symbols_of(file, orelse, out);
            }
            StmtKind::Try { body, .. } | StmtKind::With { body, .. } => symbols_of(file, body, out),
            _ => {}
        }
    }
}

/// The parameters, and whether it is a kernel.
fn detail(file: &File, def: &FunctionDef) -> String {
    let written = |param: &Param| file.text.get(param.span.start as usize..param.span.end as usize).unwrap_or_default();
    let params: Vec<&str> = def.params.iter().map(written).collect();
    let mark = if def.is_jit() { "kernel " } else { "" };
    format!("{mark}({})", params.join(", "))
}

#[allow(deprecated)] // A field that clients no longer read, and that has no default.
fn symbol(file: &File, name: &str, kind: SymbolKind, whole: Span, name_span: Span) -> DocumentSymbol {
    DocumentSymbol {
        name: name.to_owned(),
        detail: None,
        kind,
        tags: None,
        deprecated: None,
        range: file.lines.of_span(&file.text, whole),
        selection_range: file.lines.of_span(&file.text, name_span),
        children: None,
    }
}
