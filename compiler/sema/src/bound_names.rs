//! The names that code binds in its own scope: what Python calls local variables, or, at the level of a module, globals.

use rtc_source::Span;
use rtc_syntax::ast::{Expr, ExprKind, Stmt, StmtKind, walk_scope};

/// The names that statements bind in their scope, each with every place that binds it, in order. Bodies of functions and
/// classes have scopes of their own.
pub(crate) fn bound_names<'a>(body: &'a [Stmt], found: &mut Vec<(&'a str, Span)>) {
    for stmt in body {
        walrus_targets(stmt, found);
        match &stmt.kind {
            StmtKind::FunctionDef(def) => found.push((&def.name.text, def.name.span)),
            StmtKind::ClassDef(def) => found.push((&def.name.text, def.name.span)),
            StmtKind::Assign { targets, .. } | StmtKind::Delete(targets) => {
                targets.iter().for_each(|t| target_names(t, found));
            }
            StmtKind::AugAssign { target, .. } | StmtKind::AnnAssign { target, value: Some(_), .. } => {
                target_names(target, found);
            }
            StmtKind::If { body, orelse, .. } | StmtKind::While { body, orelse, .. } => {
                bound_names(body, found);
                bound_names(orelse, found);
            }
            StmtKind::For { target, body, orelse, .. } => {
                target_names(target, found);
                bound_names(body, found);
                bound_names(orelse, found);
            }
            StmtKind::With { items, body } => {
                items.iter().filter_map(|i| i.target.as_ref()).for_each(|t| target_names(t, found));
                bound_names(body, found);
            }
            StmtKind::Try { body, handlers, orelse, finalbody } => {
                bound_names(body, found);
                for handler in handlers {
                    found.extend(handler.name.as_ref().map(|name| (&*name.text, name.span)));
                    bound_names(&handler.body, found);
                }
                bound_names(orelse, found);
                bound_names(finalbody, found);
            }
            StmtKind::Import { names } => {
                for alias in names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    found.push((name.text.split('.').next().unwrap_or(&name.text), name.span));
                }
            }
            StmtKind::ImportFrom { names, .. } => {
                let names = names.iter().map(|alias| alias.asname.as_ref().unwrap_or(&alias.name));
                found.extend(names.map(|name| (&*name.text, name.span)));
            }
            StmtKind::Unreadable { names, .. } => found.extend(names.iter().map(|n| (&*n.text, n.span))),
            _ => {}
        }
    }
}

/// The names of a target of an assignment.
pub(crate) fn target_names<'a>(target: &'a Expr, found: &mut Vec<(&'a str, Span)>) {
    match &target.kind {
        ExprKind::Name(name) => found.push((name, target.span)),
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|t| target_names(t, found)),
        ExprKind::Starred(inner) => target_names(inner, found),
        _ => {}
    }
}

/// The names that `:=` binds in the expressions of a statement itself, not in those of statements inside of it.
pub(crate) fn walrus_targets<'a>(stmt: &'a Stmt, found: &mut Vec<(&'a str, Span)>) {
    walk_scope(stmt, &mut |expr| {
        if let ExprKind::NamedExpr { target, .. } = &expr.kind {
            found.push((&target.text, target.span));
        }
    });
}
