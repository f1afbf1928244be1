//! The names that statements bind in their scope.

use rtc_syntax::ast::{Expr, ExprKind, FunctionDef, Stmt, StmtKind, Symbol, walk_scope};

use super::{Kind, Names};

/// Binds the names of statements in a scope: those of nested functions and comprehensions have scopes of their own.
pub(super) fn declare(names: &mut Names, scope: usize, variable: &Kind, body: &[Stmt]) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::FunctionDef(def) => {
                names.bind(scope, &def.name.text, Kind::Function { jit: is_kernel_code(def) });
            }
            StmtKind::ClassDef(class) => {
                names.bind(scope, &class.name.text, Kind::Class);
            }
            StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| target(names, scope, variable, t)),
            StmtKind::AugAssign { target: to, .. } | StmtKind::AnnAssign { target: to, .. } => {
                target(names, scope, variable, to);
            }
            StmtKind::For { target: to, body, orelse, .. } => {
                target(names, scope, variable, to);
                declare(names, scope, variable, body);
                declare(names, scope, variable, orelse);
            }
            StmtKind::If { body, orelse, .. } | StmtKind::While { body, orelse, .. } => {
                declare(names, scope, variable, body);
                declare(names, scope, variable, orelse);
            }
            StmtKind::With { items, body } => {
                items.iter().filter_map(|i| i.target.as_ref()).for_each(|t| target(names, scope, variable, t));
                declare(names, scope, variable, body);
            }
            StmtKind::Try { body, handlers, orelse, finalbody } => {
                declare(names, scope, variable, body);
                for handler in handlers {
                    if let Some(name) = &handler.name {
                        names.bind(scope, &name.text, variable.clone());
                    }
                    declare(names, scope, variable, &handler.body);
                }
                declare(names, scope, variable, orelse);
                declare(names, scope, variable, finalbody);
            }
            StmtKind::Import { names: aliases } => {
                for alias in aliases {
                    let whole = alias.name.text.to_string();
                    let (name, module): (Symbol, String) = match &alias.asname {
                        Some(name) => (name.text.clone(), whole),
                        None => {
                            let first = whole.split('.').next().unwrap_or_default();
                            (first.into(), first.to_owned())
                        }
                    };
                    names.bind(scope, &name, Kind::Import { module, level: 0, item: None });
                }
            }
            StmtKind::ImportFrom { module, level, names: aliases } => {
                let module = module.as_ref().map_or(String::new(), |m| m.text.to_string());
                for alias in aliases.iter().filter(|a| &*a.name.text != "*") {
                    let name = &alias.asname.as_ref().unwrap_or(&alias.name).text;
                    let item = Some(alias.name.text.to_string());
                    names.bind(scope, name, Kind::Import { module: module.clone(), level: *level, item });
                }
            }
            StmtKind::Global(idents) => {
                // The name is that of the module from here on.
                for ident in idents {
                    let global = names.bind(0, &ident.text, Kind::Global);
                    names.scopes[scope].names.insert(ident.text.clone(), global);
                }
            }
            StmtKind::Unreadable { names: bound, .. } => {
                for ident in bound {
                    names.bind(scope, &ident.text, variable.clone());
                }
            }
            _ => {}
        }
        walk_scope(stmt, &mut |expr| {
            if let ExprKind::NamedExpr { target, .. } = &expr.kind {
                names.bind(scope, &target.text, variable.clone());
            }
        });
    }
}

/// Binds the names of an assignment's target.
pub(super) fn target(names: &mut Names, scope: usize, variable: &Kind, expr: &Expr) {
    match &expr.kind {
        ExprKind::Name(name) => {
            names.bind(scope, name, variable.clone());
        }
        ExprKind::Tuple(items) | ExprKind::List(items) => {
            items.iter().for_each(|item| target(names, scope, variable, item));
        }
        ExprKind::Starred(inner) => target(names, scope, variable, inner),
        _ => {}
    }
}

/// Whether a function is compiled: a kernel, or a function of constants.
pub(crate) fn is_kernel_code(def: &FunctionDef) -> bool {
    def.is_jit()
        || def.decorators.iter().any(|decorator| {
            let name = match &decorator.kind {
                ExprKind::Call { func, .. } => func.dotted_name(),
                _ => decorator.dotted_name(),
            };
            name.is_some_and(|name| name.ends_with("constexpr_function"))
        })
}
