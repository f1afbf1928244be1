//! Changes of a module's globals other than the definitions that its code executes in order: functions that declare
//! them `global`, objects that are changed in place, `globals()`, `exec`.
//!
//! The scan follows no calls and no values. It errs on one side only: it may report that a name can change which never
//! does.

use std::collections::{HashMap, HashSet};

use rtc_source::Span;
use rtc_syntax::ast::{Arg, Expr, ExprKind, FunctionDef, Param, Stmt, StmtKind, walk_children};

use crate::bound_names::{bound_names, target_names};

/// A place that may change a value, and how; the text completes "it ...".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub span: Span,
    pub how: &'static str,
    /// The place itself changes the object, as `L.append(x)` does. Otherwise it hands the object on, as `f(L)` does.
    pub is_certain: bool,
}

/// The possible changes of a module's globals. Names are dotted, as in `module.NAME`, if an attribute is changed.
#[derive(Default)]
pub(crate) struct Changes {
    /// Names that other code may bind again.
    pub rebound: HashMap<String, Change>,
    /// Names whose objects may be changed in place.
    pub mutated: HashMap<String, Change>,
    /// Names whose elements escape, which may be objects themselves.
    pub elements: HashMap<String, Change>,
    /// A place that may bind any name.
    pub anything: Option<Change>,
}

/// Functions of Python that leave their arguments as they are; they can return elements of them.
const PURE: &[&str] = &[
    "len",
    "print",
    "isinstance",
    "repr",
    "str",
    "sum",
    "min",
    "max",
    "sorted",
    "list",
    "tuple",
    "dict",
    "set",
    "frozenset",
    "range",
    "enumerate",
    "zip",
    "any",
    "all",
    "reversed",
    "hasattr",
    "getattr",
    "id",
    "type",
    "int",
    "float",
    "bool",
    "abs",
];
/// Methods that leave their object as it is.
const READING: &[&str] = &[
    "count",
    "index",
    "copy",
    "get",
    "items",
    "keys",
    "values",
    "format",
    "join",
    "split",
    "startswith",
    "endswith",
    "lower",
    "upper",
    "strip",
    "replace",
];

/// The use of an expression's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is read immediately.
    Read,
    /// It is kept or passed on, so that other code has the same object.
    HandedOn,
}

impl Changes {
    pub(crate) fn new(body: &[Stmt]) -> Changes {
        let mut scan = Scan { changes: Changes::default(), hidden: Vec::new() };
        scan.body(body);
        scan.changes
    }
}

struct Scan<'a> {
    changes: Changes,
    /// The local names of the functions around, which hide globals.
    hidden: Vec<HashSet<&'a str>>,
}

impl<'a> Scan<'a> {
    fn body(&mut self, body: &'a [Stmt]) {
        body.iter().for_each(|stmt| self.statement(stmt));
    }

    fn statement(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::FunctionDef(def) => self.function(def),
            StmtKind::ClassDef(class) => {
                class.decorators.iter().for_each(|d| self.expr(d, Use::Read));
                self.arguments(&class.args, Use::HandedOn);
                self.globals_of(&class.body);
                self.body(&class.body);
            }
            StmtKind::Assign { targets, value } => {
                self.expr(value, Use::HandedOn);
                targets.iter().for_each(|t| self.target(t, stmt.span));
            }
            StmtKind::AnnAssign { target, value, .. } => {
                value.iter().for_each(|v| self.expr(v, Use::HandedOn));
                self.target(target, stmt.span);
            }
            StmtKind::AugAssign { target, value, .. } => {
                self.expr(value, Use::Read);
                self.elements_of(value);
                // `L += [x]` changes the list.
                if let Some(name) = self.path(target) {
                    self.mutated(name, stmt.span, "is changed in place");
                }
                self.target(target, stmt.span);
            }
            StmtKind::Delete(targets) => targets.iter().for_each(|t| self.target(t, stmt.span)),
            StmtKind::For { target, iter, body, orelse } => {
                self.expr(iter, Use::Read);
                self.elements_of(iter);
                self.target(target, stmt.span);
                self.body(body);
                self.body(orelse);
            }
            StmtKind::While { test, body, orelse } | StmtKind::If { test, body, orelse } => {
                self.expr(test, Use::Read);
                self.body(body);
                self.body(orelse);
            }
            StmtKind::With { items, body } => {
                for item in items {
                    self.expr(&item.context, Use::HandedOn);
                    item.target.iter().for_each(|t| self.target(t, stmt.span));
                }
                self.body(body);
            }
            StmtKind::Try { body, handlers, orelse, finalbody } => {
                self.body(body);
                handlers.iter().for_each(|h| self.body(&h.body));
                self.body(orelse);
                self.body(finalbody);
            }
            StmtKind::Return(value) => value.iter().for_each(|v| self.expr(v, Use::HandedOn)),
            StmtKind::Expr(value) => self.expr(value, Use::Read),
            StmtKind::Assert { test, msg } => [test].into_iter().chain(msg).for_each(|e| self.expr(e, Use::Read)),
            StmtKind::Raise { exc, cause } => exc.iter().chain(cause).for_each(|e| self.expr(e, Use::HandedOn)),
            StmtKind::Unreadable { names, .. } => {
                for name in names {
                    self.mutated(name.text.to_string(), name.span, "may be changed by code that cannot be read");
                }
            }
            _ => {}
        }
    }

    /// A function. Kernels change nothing: assignments to globals and to elements are errors there.
    fn function(&mut self, def: &'a FunctionDef) {
        def.decorators.iter().for_each(|d| self.expr(d, Use::Read));
        self.defaults(&def.params);
        if def.is_jit() {
            return;
        }
        let declared = self.globals_of(&def.body);
        let mut bound = Vec::new();
        bound_names(&def.body, &mut bound);
        let mut local: HashSet<&str> = bound.into_iter().map(|(name, _)| name).collect();
        local.extend(def.params.iter().map(|p| &*p.name.text));
        local.retain(|name| !declared.contains(name));
        self.hidden.push(local);
        self.body(&def.body);
        self.hidden.pop();
    }

    /// The names that a body declares `global`; what it binds of them may be bound again whenever it runs.
    fn globals_of(&mut self, body: &'a [Stmt]) -> HashSet<&'a str> {
        let mut declared = HashSet::new();
        global_names(body, &mut declared);
        let mut bound = Vec::new();
        if !declared.is_empty() {
            bound_names(body, &mut bound);
        }
        for (name, span) in bound.into_iter().filter(|(name, _)| declared.contains(name)) {
            self.rebound(name.into(), span, "may be changed by a function that declares it `global`");
        }
        declared
    }

    fn defaults(&mut self, params: &'a [Param]) {
        params.iter().filter_map(|p| p.default.as_ref()).for_each(|d| self.expr(d, Use::HandedOn));
    }

    fn arguments(&mut self, args: &'a [Arg], way: Use) {
        for arg in args {
            self.expr(&arg.value, way);
            self.elements_of(&arg.value);
        }
    }

    /// The object that an assignment changes: that of `object[i]` or `object.name`.
    fn target(&mut self, target: &'a Expr, span: Span) {
        match &target.kind {
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|t| self.target(t, span)),
            ExprKind::Starred(inner) => self.target(inner, span),
            ExprKind::Subscript { value, index } => {
                self.expr(index, Use::Read);
                match (self.path(target), is_globals(value)) {
                    (Some(name), true) => self.rebound(name, span, "is bound again through `globals()`"),
                    (None, true) => self.anything(span, "may be bound again through `globals()`"),
                    _ => self.changed(value, span, "is changed in place"),
                }
            }
            ExprKind::Attribute { value, attr } => {
                match (self.path(target), is_this_module(value)) {
                    (_, true) => {
                        self.rebound(attr.text.to_string(), span, "is bound again as an attribute of the module")
                    }
                    (Some(path), _) => self.rebound(path, span, "is assigned as an attribute"),
                    _ => {}
                }
                self.changed(value, span, "has an attribute assigned");
            }
            _ => {}
        }
    }

    /// The object that an expression reaches into is changed.
    fn changed(&mut self, object: &'a Expr, span: Span, how: &'static str) {
        if let Some(name) = self.path(object) {
            return self.mutated(name, span, how);
        }
        match &object.kind {
            ExprKind::Subscript { value, .. } | ExprKind::Attribute { value, .. } => self.changed(value, span, how),
            _ => self.expr(object, Use::HandedOn),
        }
    }

    fn expr(&mut self, expr: &'a Expr, way: Use) {
        if let Some(name) = self.path(expr) {
            if way == Use::HandedOn {
                self.handed_on(name, expr.span);
            }
            return;
        }
        match &expr.kind {
            ExprKind::Name(_) => {}
            ExprKind::Call { func, args } => self.call(func, args, expr.span),
            ExprKind::Subscript { value, index } => {
                if way == Use::HandedOn {
                    self.elements_of(value);
                    if is_this_module(expr) {
                        self.anything(expr.span, "may be bound again through the module object");
                    }
                }
                self.expr(value, Use::Read);
                self.expr(index, Use::Read);
            }
            ExprKind::Tuple(_)
            | ExprKind::List(_)
            | ExprKind::Set(_)
            | ExprKind::Dict(_)
            | ExprKind::NamedExpr { .. } => {
                walk_children(expr, &mut |child| self.expr(child, Use::HandedOn));
            }
            ExprKind::Await(_) | ExprKind::Yield(_) | ExprKind::YieldFrom(_) => {
                walk_children(expr, &mut |child| self.expr(child, Use::HandedOn));
            }
            ExprKind::IfExp { test, body, orelse } => {
                self.expr(test, Use::Read);
                self.expr(body, way);
                self.expr(orelse, way);
            }
            ExprKind::BoolOp { values, .. } => values.iter().for_each(|v| self.expr(v, way)),
            ExprKind::Starred(value) => {
                self.elements_of(value);
                self.expr(value, Use::Read);
            }
            ExprKind::BinOp { left, right, .. } => {
                for side in [left, right] {
                    self.elements_of(side);
                    self.expr(side, Use::Read);
                }
            }
            ExprKind::Lambda { params, body } => {
                self.defaults(params);
                self.hidden.push(params.iter().map(|p| &*p.name.text).collect());
                self.expr(body, Use::HandedOn);
                self.hidden.pop();
            }
            ExprKind::ListComp { generators, .. }
            | ExprKind::SetComp { generators, .. }
            | ExprKind::GeneratorExp { generators, .. }
            | ExprKind::DictComp { generators, .. } => {
                let mut names = Vec::new();
                generators.iter().for_each(|g| target_names(&g.target, &mut names));
                generators.iter().for_each(|g| self.elements_of(&g.iter));
                let iterated: Vec<&Expr> = generators.iter().map(|g| &g.iter).collect();
                self.hidden.push(names.into_iter().map(|(name, _)| name).collect());
                walk_children(expr, &mut |child| {
                    let is_iterated = iterated.iter().any(|iter| std::ptr::eq(*iter, child));
                    self.expr(child, if is_iterated { Use::Read } else { Use::HandedOn });
                });
                self.hidden.pop();
            }
            _ => walk_children(expr, &mut |child| self.expr(child, Use::Read)),
        }
    }

    fn call(&mut self, func: &'a Expr, args: &'a [Arg], span: Span) {
        if let ExprKind::Attribute { value, attr } = &func.kind {
            let name = &*attr.text;
            if is_globals(value) && !READING.contains(&name) {
                self.anything(span, "may be bound again through `globals()`");
            } else if READING.contains(&name) {
                self.expr(value, Use::Read);
                self.elements_of(value);
            } else {
                self.changed(value, span, "may be changed by this call of its method");
            }
            return self.arguments(args, Use::HandedOn);
        }
        let name = func.as_name().map_or("", |name| name);
        match (name, args) {
            ("exec", [_]) => self.anything(span, "may be bound again by `exec`"),
            ("setattr", [object, attribute, ..]) => match (&object.value.as_name(), &attribute.value.kind) {
                (_, ExprKind::Str(text)) if is_this_module(&object.value) => {
                    self.rebound(text.to_string(), span, "is bound again by `setattr`");
                }
                (Some(object), ExprKind::Str(text)) => {
                    self.rebound(format!("{object}.{text}"), span, "is assigned by `setattr`");
                }
                _ => {}
            },
            _ => {}
        }
        let is_launch = matches!(&func.kind, ExprKind::Subscript { value, .. } if value.as_name().is_some());
        let reads = PURE.contains(&name) || is_launch;
        for arg in args {
            if is_globals(&arg.value) && !reads {
                self.anything(arg.span, "may be bound again through `globals()`");
            }
            let at_module_level = self.hidden.is_empty() && matches!(name, "vars" | "locals");
            if at_module_level {
                self.anything(span, "may be bound again through the names of the module");
            }
        }
        self.expr(func, Use::Read);
        self.arguments(args, if reads { Use::Read } else { Use::HandedOn });
    }

    /// The global that an expression names: `NAME`, `module.NAME`, `globals()["NAME"]`.
    fn path(&self, expr: &Expr) -> Option<String> {
        if let ExprKind::Subscript { value, index } = &expr.kind
            && is_globals(value)
            && let ExprKind::Str(name) = &index.kind
        {
            return Some(name.to_string());
        }
        let path = expr.dotted_name()?;
        let root = path.split('.').next().unwrap_or(&path);
        if self.hidden.iter().any(|names| names.contains(root)) { None } else { Some(path) }
    }

    fn elements_of(&mut self, expr: &Expr) {
        if let Some(name) = self.path(expr) {
            let change =
                Change { span: expr.span, how: "has elements that may be changed from here", is_certain: false };
            self.changes.elements.entry(name).or_insert(change);
        }
    }

    fn handed_on(&mut self, name: String, span: Span) {
        let change = Change { span, how: "is handed on here, so other code may change it", is_certain: false };
        self.changes.mutated.entry(name).or_insert(change);
    }

    fn mutated(&mut self, name: String, span: Span, how: &'static str) {
        let change = Change { span, how, is_certain: true };
        let known = self.changes.mutated.entry(name).or_insert(change);
        if !known.is_certain {
            *known = change;
        }
    }

    fn rebound(&mut self, name: String, span: Span, how: &'static str) {
        self.changes.rebound.entry(name).or_insert(Change { span, how, is_certain: true });
    }

    fn anything(&mut self, span: Span, how: &'static str) {
        self.changes.anything.get_or_insert(Change { span, how, is_certain: true });
    }
}

/// The names that a body declares `global`, not those of functions inside of it.
fn global_names<'a>(body: &'a [Stmt], found: &mut HashSet<&'a str>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Global(names) => found.extend(names.iter().map(|name| &*name.text)),
            StmtKind::If { body, orelse, .. }
            | StmtKind::For { body, orelse, .. }
            | StmtKind::While { body, orelse, .. } => {
                global_names(body, found);
                global_names(orelse, found);
            }
            StmtKind::With { body, .. } => global_names(body, found),
            StmtKind::Try { body, handlers, orelse, finalbody } => {
                global_names(body, found);
                handlers.iter().for_each(|h| global_names(&h.body, found));
                global_names(orelse, found);
                global_names(finalbody, found);
            }
            _ => {}
        }
    }
}

/// `globals()`.
fn is_globals(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Call { func, args } if args.is_empty() && func.as_name().is_some_and(|n| &**n == "globals"))
}

/// `sys.modules[__name__]`.
fn is_this_module(expr: &Expr) -> bool {
    let ExprKind::Subscript { value, index } = &expr.kind else { return false };
    value.dotted_name().is_some_and(|name| name == "sys.modules" || name == "modules")
        && index.as_name().is_some_and(|name| &**name == "__name__")
}
