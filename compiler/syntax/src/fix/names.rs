//! The names and the text of a function.

use std::collections::HashSet;

use rtc_source::Span;

use super::calls::literal;
use super::scan::flat;
use crate::ast::{Expr, ExprKind, FunctionDef, StmtKind, walk_expressions};

/// The names in a function.
pub(super) struct Names<'a> {
    text: &'a str,
    /// All that occur.
    used: HashSet<String>,
    /// Those that are assigned in the function, parameters not included.
    assigned: HashSet<String>,
}

impl<'a> Names<'a> {
    pub fn of(text: &'a str, function: &FunctionDef) -> Names<'a> {
        let mut names = Names { text, used: HashSet::new(), assigned: HashSet::new() };
        names.used.extend(function.params.iter().map(|p| p.name.text.to_string()));
        walk_expressions(&function.body, &mut |e| match &e.kind {
            ExprKind::Name(name) => {
                names.used.insert(name.to_string());
            }
            ExprKind::NamedExpr { target, .. } => {
                names.used.insert(target.text.to_string());
                names.assigned.insert(target.text.to_string());
            }
            _ => {}
        });
        for stmt in flat(&function.body) {
            match &stmt.kind {
                StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| names.assign(t)),
                StmtKind::AugAssign { target, .. }
                | StmtKind::AnnAssign { target, .. }
                | StmtKind::For { target, .. } => names.assign(target),
                StmtKind::With { items, .. } => {
                    items.iter().filter_map(|item| item.target.as_ref()).for_each(|t| names.assign(t));
                }
                StmtKind::FunctionDef(inner) => {
                    names.assigned.insert(inner.name.text.to_string());
                }
                StmtKind::Global(list) | StmtKind::Nonlocal(list) => {
                    names.assigned.extend(list.iter().map(|n| n.text.to_string()));
                }
                StmtKind::Import { names: list } | StmtKind::ImportFrom { names: list, .. } => {
                    let bound = list.iter().map(|alias| alias.asname.as_ref().unwrap_or(&alias.name));
                    names.assigned.extend(bound.map(|n| n.text.to_string()));
                }
                _ => {}
            }
        }
        names
    }

    fn assign(&mut self, target: &Expr) {
        match &target.kind {
            ExprKind::Name(name) => {
                self.assigned.insert(name.to_string());
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|t| self.assign(t)),
            ExprKind::Starred(inner) => self.assign(inner),
            _ => {}
        }
    }

    /// A name that nothing else has.
    pub fn fresh(&mut self, wanted: String) -> String {
        let mut name = wanted;
        while !self.used.insert(name.clone()) {
            name.push('_');
        }
        name
    }

    /// Whether an expression has the same value wherever it is written in the function.
    pub fn is_fixed(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Name(name) => !self.assigned.contains(&**name),
            ExprKind::Int(_) => true,
            _ => false,
        }
    }

    /// The text of a part of the file.
    pub fn source(&self, span: Span) -> &'a str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// The text of an expression, as an operand.
    pub fn operand(&self, e: &Expr) -> String {
        let text = self.source(e.span);
        match e.kind {
            ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Tuple(_) => text.to_owned(),
            ExprKind::Call { .. } | ExprKind::Attribute { .. } | ExprKind::Subscript { .. } if !text.contains('\n') => {
                text.to_owned()
            }
            _ if literal(e).is_some() && !text.contains('\n') => text.to_owned(),
            _ => format!("({text})"),
        }
    }

    /// The text before a position in its line, if that is only space.
    pub fn indentation(&self, at: u32) -> Option<&'a str> {
        let before = self.text.get(..at as usize).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        line.bytes().all(|b| b == b' ' || b == b'\t').then_some(line)
    }

    /// The indentation of a position's line.
    pub fn line_indentation(&self, at: u32) -> &'a str {
        let before = self.text.get(..at as usize).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        &line[..line.len() - line.trim_start().len()]
    }

    /// How many characters come before a position in its line.
    pub fn column(&self, at: u32) -> usize {
        let before = self.text.get(..at as usize).unwrap_or_default();
        before.rsplit('\n').next().unwrap_or_default().chars().count()
    }

    /// The comments in a part of the file.
    pub fn comments(&self, span: Span) -> Vec<&'a str> {
        self.source(span).lines().filter_map(comment).collect()
    }
}

/// The comment of a line: the text after a `#` outside of strings.
fn comment(line: &str) -> Option<&str> {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return Some(line[at..].trim_end()),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    None
}
