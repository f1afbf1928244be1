//! All expressions of a piece of code.

use super::{Arg, Comprehension, Expr, ExprKind, FStringPart, FunctionDef, Param, Stmt, StmtKind};

type Visit<'v, 'a> = &'v mut dyn FnMut(&'a Expr);

/// Calls `visit` with each expression in statements and with each that is nested in one, outer ones first.
pub fn walk_expressions<'a>(body: &'a [Stmt], visit: Visit<'_, 'a>) {
    for stmt in body {
        statement(stmt, visit);
    }
}

/// Calls `visit` with each expression of a statement itself, outer ones first: not with those of statements inside of it.
pub fn walk_scope<'a>(stmt: &'a Stmt, visit: Visit<'_, 'a>) {
    match &stmt.kind {
        StmtKind::FunctionDef(def) => {
            each(&def.decorators, visit);
            parameters(&def.params, visit);
            each(&def.returns, visit);
        }
        StmtKind::ClassDef(class) => {
            each(&class.decorators, visit);
            arguments(&class.args, visit);
        }
        StmtKind::For { target, iter, .. } => each([target, iter], visit),
        StmtKind::While { test, .. } | StmtKind::If { test, .. } => expression(test, visit),
        StmtKind::With { items, .. } => items.iter().for_each(|i| each(i.target.iter().chain([&i.context]), visit)),
        StmtKind::Try { handlers, .. } => each(handlers.iter().filter_map(|h| h.ty.as_ref()), visit),
        _ => statement(stmt, visit),
    }
}

fn statement<'a>(stmt: &'a Stmt, visit: Visit<'_, 'a>) {
    match &stmt.kind {
        StmtKind::FunctionDef(def) => function(def, visit),
        StmtKind::ClassDef(class) => {
            each(&class.decorators, visit);
            arguments(&class.args, visit);
            walk_expressions(&class.body, visit);
        }
        StmtKind::Return(value) => each(value, visit),
        StmtKind::Delete(targets) => each(targets, visit),
        StmtKind::Assign { targets, value } => {
            each(targets, visit);
            expression(value, visit);
        }
        StmtKind::AugAssign { target, value, .. } => each([target, value], visit),
        StmtKind::AnnAssign { target, annotation, value } => {
            each([target, annotation], visit);
            each(value, visit);
        }
        StmtKind::For { target, iter, body, orelse } => {
            each([target, iter], visit);
            walk_expressions(body, visit);
            walk_expressions(orelse, visit);
        }
        StmtKind::While { test, body, orelse } | StmtKind::If { test, body, orelse } => {
            expression(test, visit);
            walk_expressions(body, visit);
            walk_expressions(orelse, visit);
        }
        StmtKind::With { items, body } => {
            for item in items {
                expression(&item.context, visit);
                each(&item.target, visit);
            }
            walk_expressions(body, visit);
        }
        StmtKind::Raise { exc, cause } => each(exc.iter().chain(cause), visit),
        StmtKind::Try { body, handlers, orelse, finalbody } => {
            walk_expressions(body, visit);
            for handler in handlers {
                each(&handler.ty, visit);
                walk_expressions(&handler.body, visit);
            }
            walk_expressions(orelse, visit);
            walk_expressions(finalbody, visit);
        }
        StmtKind::Assert { test, msg } => {
            expression(test, visit);
            each(msg, visit);
        }
        StmtKind::Expr(value) => expression(value, visit),
        StmtKind::Import { .. } | StmtKind::ImportFrom { .. } | StmtKind::Global(_) | StmtKind::Nonlocal(_) => {}
        StmtKind::Pass | StmtKind::Break | StmtKind::Continue | StmtKind::Unreadable { .. } => {}
    }
}

fn function<'a>(def: &'a FunctionDef, visit: Visit<'_, 'a>) {
    each(&def.decorators, visit);
    parameters(&def.params, visit);
    each(&def.returns, visit);
    walk_expressions(&def.body, visit);
}

fn parameters<'a>(params: &'a [Param], visit: Visit<'_, 'a>) {
    for param in params {
        each(param.annotation.iter().chain(&param.default), visit);
    }
}

fn arguments<'a>(args: &'a [Arg], visit: Visit<'_, 'a>) {
    each(args.iter().map(|arg| &arg.value), visit);
}

fn each<'a>(exprs: impl IntoIterator<Item = &'a Expr>, visit: Visit<'_, 'a>) {
    for expr in exprs {
        expression(expr, visit);
    }
}

fn expression<'a>(expr: &'a Expr, visit: Visit<'_, 'a>) {
    visit(expr);
    walk_children(expr, &mut |child| expression(child, visit));
}

/// Calls `visit` with each expression that is directly inside of an expression.
pub fn walk_children<'a>(expr: &'a Expr, visit: Visit<'_, 'a>) {
    match &expr.kind {
        ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::BigInt(_) | ExprKind::Float(_) | ExprKind::Bool(_) => {}
        ExprKind::Str(_) | ExprKind::Bytes(_) | ExprKind::None | ExprKind::Ellipsis => {}
        ExprKind::FString(parts) => text_parts(parts, visit),
        ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Set(items) => direct(items, visit),
        ExprKind::BoolOp { values, .. } => direct(values, visit),
        ExprKind::Dict(entries) => {
            for (key, value) in entries {
                direct(key, visit);
                visit(value);
            }
        }
        ExprKind::BinOp { left, right, .. } => direct([&**left, right], visit),
        ExprKind::UnaryOp { operand, .. } => visit(operand),
        ExprKind::Compare { left, ops } => {
            visit(left);
            direct(ops.iter().map(|(_, right)| right), visit);
        }
        ExprKind::Call { func, args } => {
            visit(func);
            direct(args.iter().map(|arg| &arg.value), visit);
        }
        ExprKind::Attribute { value, .. } | ExprKind::Starred(value) | ExprKind::NamedExpr { value, .. } => {
            visit(value);
        }
        ExprKind::Await(value) | ExprKind::YieldFrom(value) => visit(value),
        ExprKind::Yield(value) => direct(value.as_deref(), visit),
        ExprKind::Subscript { value, index } => direct([&**value, index], visit),
        ExprKind::Slice { lower, upper, step } => {
            direct([lower, upper, step].into_iter().filter_map(|part| part.as_deref()), visit);
        }
        ExprKind::IfExp { test, body, orelse } => direct([&**test, body, orelse], visit),
        ExprKind::Lambda { params, body } => {
            direct(params.iter().flat_map(|p| p.annotation.iter().chain(&p.default)), visit);
            visit(body);
        }
        ExprKind::ListComp { element, generators }
        | ExprKind::SetComp { element, generators }
        | ExprKind::GeneratorExp { element, generators } => {
            visit(element);
            comprehensions(generators, visit);
        }
        ExprKind::DictComp { key, value, generators } => {
            direct([&**key, value], visit);
            comprehensions(generators, visit);
        }
    }
}

fn direct<'a>(exprs: impl IntoIterator<Item = &'a Expr>, visit: Visit<'_, 'a>) {
    exprs.into_iter().for_each(visit);
}

fn comprehensions<'a>(generators: &'a [Comprehension], visit: Visit<'_, 'a>) {
    for generator in generators {
        direct([&generator.target, &generator.iter], visit);
        direct(&generator.ifs, visit);
    }
}

fn text_parts<'a>(parts: &'a [FStringPart], visit: Visit<'_, 'a>) {
    for part in parts {
        if let FStringPart::Hole { value, format, .. } = part {
            visit(value);
            text_parts(format, visit);
        }
    }
}
