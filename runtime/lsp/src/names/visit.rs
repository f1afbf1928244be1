//! The occurrences of names in statements and expressions.

use rtc_source::Span;
use rtc_syntax::ast::{Arg, Comprehension, Expr, ExprKind, FStringPart, FunctionDef, Ident, Param, Stmt, StmtKind};

use super::declare::{declare, target};
use super::{Keyword, Kind, Member, Names, Occurrence};

/// Enters a file.
pub(super) fn visit(names: &mut Names, module: usize, body: &[Stmt]) {
    let mut visitor = Visitor { names, keywords: Vec::new() };
    declare(visitor.names, module, &Kind::Global, body);
    visitor.statements(module, body);
    visitor.finish();
}

struct Visitor<'n> {
    names: &'n mut Names,
    keywords: Vec<Keyword>,
}

impl Visitor<'_> {
    fn occurs(&mut self, scope: usize, name: &str, span: Span, is_definition: bool) {
        if let Some(binding) = self.names.lookup(scope, name) {
            self.names.occurrences.push(Occurrence { span, binding, is_definition });
        }
    }

    /// The names of arguments are parameters of the called function.
    fn finish(&mut self) {
        for keyword in std::mem::take(&mut self.keywords) {
            let (function, member) = &keyword.callee;
            if matches!(self.names.bindings[*function].kind, Kind::Import { .. }) {
                self.names.keywords.push(keyword);
            } else if member.is_none()
                && let Some(binding) = self.names.parameter(*function, &keyword.name.text)
            {
                self.names.occurrences.push(Occurrence { span: keyword.name.span, binding, is_definition: false });
            }
        }
    }

    fn statements(&mut self, scope: usize, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.statement(scope, stmt));
    }

    fn statement(&mut self, scope: usize, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::FunctionDef(def) => self.function(scope, def, stmt.span),
            StmtKind::ClassDef(class) => {
                self.occurs(scope, &class.name.text, class.name.span, true);
                self.each(scope, &class.decorators);
                self.arguments(scope, None, &class.args);
                let inner = self.names.scope(Some(scope), true, stmt.span);
                declare(self.names, inner, &Kind::Global, &class.body);
                self.statements(inner, &class.body);
            }
            StmtKind::Assign { targets, value } => {
                self.expr(scope, value);
                targets.iter().for_each(|target| self.target(scope, target));
            }
            StmtKind::AugAssign { target, value, .. } => {
                self.expr(scope, value);
                self.target(scope, target);
            }
            StmtKind::AnnAssign { target, annotation, value } => {
                self.expr(scope, annotation);
                self.each(scope, value);
                self.target(scope, target);
            }
            StmtKind::Expr(value) => self.expr(scope, value),
            StmtKind::Return(value) => self.each(scope, value),
            StmtKind::Delete(targets) => self.each(scope, targets),
            StmtKind::If { test, body, orelse } | StmtKind::While { test, body, orelse } => {
                self.expr(scope, test);
                self.statements(scope, body);
                self.statements(scope, orelse);
            }
            StmtKind::For { target, iter, body, orelse } => {
                self.expr(scope, iter);
                self.target(scope, target);
                self.statements(scope, body);
                self.statements(scope, orelse);
            }
            StmtKind::With { items, body } => {
                for item in items {
                    self.expr(scope, &item.context);
                    item.target.iter().for_each(|target| self.target(scope, target));
                }
                self.statements(scope, body);
            }
            StmtKind::Assert { test, msg } => {
                self.expr(scope, test);
                self.each(scope, msg);
            }
            StmtKind::Raise { exc, cause } => {
                self.each(scope, exc);
                self.each(scope, cause);
            }
            StmtKind::Try { body, handlers, orelse, finalbody } => {
                self.statements(scope, body);
                for handler in handlers {
                    self.each(scope, &handler.ty);
                    if let Some(name) = &handler.name {
                        self.occurs(scope, &name.text, name.span, true);
                    }
                    self.statements(scope, &handler.body);
                }
                self.statements(scope, orelse);
                self.statements(scope, finalbody);
            }
            StmtKind::Import { names } | StmtKind::ImportFrom { names, .. } => {
                let from = match &stmt.kind {
                    StmtKind::ImportFrom { module, level, .. } => Some((module.as_ref(), *level)),
                    _ => None,
                };
                for alias in names {
                    if let Some((module, level)) = from.filter(|_| &*alias.name.text == "*") {
                        let module = module.map_or(String::new(), |module| module.text.to_string());
                        self.names.stars.push((module, level));
                        continue;
                    }
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    // `import a.b` binds `a`.
                    let first = name.text.split('.').next().unwrap_or(&name.text).to_owned();
                    let span = Span { end: name.span.start + first.len() as u32, ..name.span };
                    self.occurs(scope, &first, span, true);
                    if let (Some(_), Some(binding)) =
                        (from.and(alias.asname.as_ref()), self.names.lookup(scope, &first))
                    {
                        self.names.renamed.push((binding, alias.name.clone()));
                    }
                }
            }
            StmtKind::Global(idents) | StmtKind::Nonlocal(idents) => {
                idents.iter().for_each(|ident| self.occurs(scope, &ident.text, ident.span, false));
            }
            StmtKind::Pass | StmtKind::Break | StmtKind::Continue | StmtKind::Unreadable { .. } => {}
        }
    }

    fn function(&mut self, scope: usize, def: &FunctionDef, span: Span) {
        self.occurs(scope, &def.name.text, def.name.span, true);
        self.each(scope, &def.decorators);
        self.each(scope, &def.returns);
        self.outer_parts(scope, &def.params);
        let inner = self.names.scope(Some(scope), false, span);
        if let Some(binding) = self.names.lookup(scope, &def.name.text) {
            self.names.bodies.insert(binding, inner);
        }
        self.parameters(inner, &def.params);
        declare(self.names, inner, &Kind::Local, &def.body);
        self.statements(inner, &def.body);
    }

    /// Annotations and defaults, which are evaluated outside of the function.
    fn outer_parts(&mut self, scope: usize, params: &[Param]) {
        for param in params {
            self.each(scope, &param.annotation);
            self.each(scope, &param.default);
        }
    }

    fn parameters(&mut self, scope: usize, params: &[Param]) {
        for param in params {
            let constexpr = param.annotation.as_ref().is_some_and(|annotation| match &annotation.kind {
                ExprKind::Str(text) => text.contains("constexpr"),
                _ => annotation.dotted_name().is_some_and(|name| name.ends_with("constexpr")),
            });
            self.names.bind(scope, &param.name.text, Kind::Parameter { constexpr });
            self.occurs(scope, &param.name.text, param.name.span, true);
        }
    }

    /// The target of an assignment.
    fn target(&mut self, scope: usize, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(name) => self.occurs(scope, name, expr.span, true),
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                items.iter().for_each(|item| self.target(scope, item));
            }
            ExprKind::Starred(inner) => self.target(scope, inner),
            _ => self.expr(scope, expr),
        }
    }

    fn each<'e>(&mut self, scope: usize, exprs: impl IntoIterator<Item = &'e Expr>) {
        exprs.into_iter().for_each(|expr| self.expr(scope, expr));
    }

    fn arguments(&mut self, scope: usize, callee: Option<(usize, Option<Ident>)>, args: &[Arg]) {
        for arg in args {
            if let (Some(name), Some(callee)) = (&arg.name, &callee) {
                self.keywords.push(Keyword { callee: callee.clone(), name: name.clone() });
            }
            self.expr(scope, &arg.value);
        }
    }

    fn expr(&mut self, scope: usize, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(name) => self.occurs(scope, name, expr.span, false),
            ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Set(items) => self.each(scope, items),
            ExprKind::Dict(entries) => {
                for (key, value) in entries {
                    self.each(scope, key);
                    self.expr(scope, value);
                }
            }
            ExprKind::BinOp { left, right, .. } => self.each(scope, [&**left, &**right]),
            ExprKind::UnaryOp { operand, .. } => self.expr(scope, operand),
            ExprKind::BoolOp { values, .. } => self.each(scope, values),
            ExprKind::Compare { left, ops } => {
                self.expr(scope, left);
                self.each(scope, ops.iter().map(|(_, right)| right));
            }
            ExprKind::Call { func, args } => {
                self.expr(scope, func);
                // `kernel[grid](...)` calls the kernel.
                let callee = match &func.kind {
                    ExprKind::Subscript { value, .. } => value,
                    _ => func,
                };
                let (name, member) = match &callee.kind {
                    ExprKind::Attribute { value, attr } => (value.as_name(), Some(attr.clone())),
                    _ => (callee.as_name(), None),
                };
                let callee = name.and_then(|name| self.names.lookup(scope, name)).map(|binding| (binding, member));
                self.arguments(scope, callee, args);
            }
            ExprKind::Attribute { value, attr } => {
                self.expr(scope, value);
                if let Some(binding) = value.as_name().and_then(|name| self.names.lookup(scope, name)) {
                    self.names.members.push(Member { binding, attr: attr.clone() });
                }
            }
            ExprKind::Subscript { value, index } => self.each(scope, [&**value, &**index]),
            ExprKind::Slice { lower, upper, step } => {
                [lower, upper, step].into_iter().flatten().for_each(|part| self.expr(scope, part));
            }
            ExprKind::IfExp { test, body, orelse } => self.each(scope, [&**test, &**body, &**orelse]),
            ExprKind::Lambda { params, body } => {
                self.outer_parts(scope, params);
                let inner = self.names.scope(Some(scope), false, expr.span);
                self.parameters(inner, params);
                self.expr(inner, body);
            }
            ExprKind::ListComp { element, generators }
            | ExprKind::SetComp { element, generators }
            | ExprKind::GeneratorExp { element, generators } => {
                let inner = self.generators(scope, generators, expr.span);
                self.expr(inner, element);
            }
            ExprKind::DictComp { key, value, generators } => {
                let inner = self.generators(scope, generators, expr.span);
                self.each(inner, [&**key, &**value]);
            }
            ExprKind::NamedExpr { target, value } => {
                self.expr(scope, value);
                self.occurs(scope, &target.text, target.span, true);
            }
            ExprKind::Starred(inner) | ExprKind::Await(inner) | ExprKind::YieldFrom(inner) => self.expr(scope, inner),
            ExprKind::Yield(value) => value.iter().for_each(|value| self.expr(scope, value)),
            ExprKind::FString(parts) => self.f_string(scope, parts),
            ExprKind::Int(_)
            | ExprKind::BigInt(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Bytes(_)
            | ExprKind::Bool(_)
            | ExprKind::None
            | ExprKind::Ellipsis => {}
        }
    }

    /// The scope of a comprehension; its first iterable belongs to the scope around it.
    fn generators(&mut self, scope: usize, generators: &[Comprehension], span: Span) -> usize {
        let inner = self.names.scope(Some(scope), false, span);
        for (index, generator) in generators.iter().enumerate() {
            self.expr(if index == 0 { scope } else { inner }, &generator.iter);
            target(self.names, inner, &Kind::Local, &generator.target);
            self.target(inner, &generator.target);
            self.each(inner, &generator.ifs);
        }
        inner
    }

    fn f_string(&mut self, scope: usize, parts: &[FStringPart]) {
        for part in parts {
            if let FStringPart::Hole { value, format, .. } = part {
                self.expr(scope, value);
                self.f_string(scope, format);
            }
        }
    }
}
