//! The definitions of a module's names, in the order in which its code runs.
//!
//! A name can be defined several times. Code that runs while the module is executed sees the definitions before it; a
//! kernel, which is compiled later, sees the last one of each name. Each definition therefore links to the one before it,
//! and the branches of an `if` each have a chain of their own from the point where they part.

use std::collections::HashMap;

use rtc_source::Span;
use rtc_syntax::ast::{self, Alias, ClassDef, Expr, ExprKind, FunctionDef, Operator, Stmt, StmtKind};

use crate::bound_names::{bound_names, walrus_targets};
use crate::modules::ModuleId;
use crate::values::Function;
use crate::world::function_of;

/// The kinds of definitions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Decl<'a> {
    Function(Function<'a>),
    Class(&'a ClassDef),
    /// `NAME = expr`.
    Value(&'a Expr),
    /// `target = value` with several names in the target.
    Unpacked {
        target: &'a Expr,
        value: &'a Expr,
    },
    /// `NAME op= value`.
    Augmented {
        target: &'a Expr,
        op: Operator,
        value: &'a Expr,
    },
    /// One of two definitions: by the condition of an `if`, or by what a `try` raises.
    Branch {
        test: Option<&'a Expr>,
        then: u32,
        otherwise: u32,
    },
    /// `import a.b as name`; without a name it binds the first part.
    Import(&'a str),
    /// `from ..module import name`, with the number of leading dots.
    ImportFrom(Path<'a>, &'a str),
    /// `from ..module import *`.
    Star(Path<'a>),
    /// `del NAME`.
    Deleted,
    /// A value that only running the module gives; the text completes "it ...".
    Unknown(&'static str),
}

/// A module as an import names it: leading dots, then a dotted name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    pub level: u32,
    pub name: &'a str,
}

/// A point in the execution of a module: after the definition with this index, or before the first.
pub(crate) type Moment = Option<u32>;

/// A definition of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Definition<'a> {
    /// The name; `*` for an import of all names.
    pub name: &'a str,
    pub decl: Decl<'a>,
    pub span: Span,
    /// The time at which its right-hand side is evaluated.
    pub moment: Moment,
    /// The definition before this one.
    before: Moment,
}

/// All definitions of a module.
#[derive(Default)]
pub(crate) struct Definitions<'a> {
    all: Vec<Definition<'a>>,
    /// After the last statement.
    end: Moment,
    /// The last definition of each name.
    last: HashMap<&'a str, u32>,
}

impl<'a> Definitions<'a> {
    pub(crate) fn new(module: &'a ast::Module) -> Definitions<'a> {
        let mut made = Definitions::default();
        made.collect(&module.body);
        let mut last = HashMap::new();
        for (index, definition) in made.back_from(made.end) {
            last.entry(definition.name).or_insert(index);
        }
        made.last = last;
        made
    }

    pub(crate) fn get(&self, index: u32) -> &Definition<'a> {
        &self.all[index as usize]
    }

    /// The names that are defined when the module has run.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.last.keys().copied().filter(|name| *name != "*")
    }

    /// The last definition of a name when the module has run.
    pub(crate) fn last(&self, name: &str) -> Option<&Definition<'a>> {
        self.last.get(name).map(|index| self.get(*index))
    }

    /// Definitions of the name and imports of all names, the latest first, as code sees them: at a moment, or when the
    /// module has run.
    pub(crate) fn of(&self, name: &str, at: Option<Moment>) -> Vec<(u32, Definition<'a>)> {
        if at.is_none() && !self.last.contains_key("*") {
            return self.last.get(name).map(|index| (*index, *self.get(*index))).into_iter().collect();
        }
        let found = self.back_from(at.unwrap_or(self.end)).filter(|(_, d)| d.name == name || d.name == "*");
        found.map(|(index, d)| (index, *d)).collect()
    }

    /// When a function was defined.
    pub(crate) fn moment_of(&self, def: &FunctionDef) -> Option<Moment> {
        let is_it = |d: &Definition<'_>| matches!(&d.decl, Decl::Function(f) if std::ptr::eq(f.def, def));
        self.all.iter().find(|d| is_it(d)).map(|d| d.moment)
    }

    /// When a class was defined.
    pub(crate) fn moment_of_class(&self, class: &ClassDef) -> Option<Moment> {
        let is_it = |d: &Definition<'_>| matches!(&d.decl, Decl::Class(c) if std::ptr::eq(*c, class));
        self.all.iter().find(|d| is_it(d)).map(|d| d.moment)
    }

    fn back_from(&self, from: Moment) -> impl Iterator<Item = (u32, &Definition<'a>)> {
        let mut at = from;
        std::iter::from_fn(move || {
            let index = at?;
            let definition = self.all.get(index as usize)?;
            at = definition.before;
            Some((index, definition))
        })
    }

    fn define(&mut self, name: &'a str, decl: Decl<'a>, span: Span) {
        let moment = self.end;
        self.link(Definition { name, decl, span, moment, before: moment });
    }

    /// Appends a definition behind the last one.
    fn link(&mut self, definition: Definition<'a>) {
        let index = self.all.len() as u32;
        self.all.push(Definition { before: self.end, ..definition });
        self.end = Some(index);
    }

    fn collect(&mut self, body: &'a [Stmt]) {
        for stmt in body {
            let mut walrus = Vec::new();
            walrus_targets(stmt, &mut walrus);
            self.unknown(walrus, "gets its value by `:=`");
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::FunctionDef(def) => {
                self.define(&def.name.text, Decl::Function(function_of(def, ModuleId(0))), def.name.span);
            }
            StmtKind::ClassDef(def) => self.define(&def.name.text, Decl::Class(def), def.name.span),
            StmtKind::Assign { targets, value } => targets.iter().for_each(|t| self.assign(t, t, value)),
            StmtKind::AnnAssign { target, value: Some(value), .. } => self.assign(target, target, value),
            StmtKind::AugAssign { target, op, value } => {
                if let ExprKind::Name(name) = &target.kind {
                    self.define(name, Decl::Augmented { target, op: *op, value }, stmt.span);
                }
            }
            StmtKind::If { test, body, orelse } => {
                let start = self.end;
                self.collect(body);
                let then = std::mem::replace(&mut self.end, start);
                self.collect(orelse);
                let otherwise = std::mem::replace(&mut self.end, start);
                self.join(Some(test), then, otherwise);
            }
            StmtKind::Try { body, handlers, orelse, finalbody } => {
                self.attempt(body, handlers, orelse);
                self.collect(finalbody);
            }
            StmtKind::With { items, body } => {
                let targets = items.iter().filter_map(|item| item.target.as_ref());
                let mut names = Vec::new();
                targets.for_each(|t| crate::bound_names::target_names(t, &mut names));
                self.unknown(names, "is bound by `with`");
                self.collect(body);
            }
            StmtKind::For { .. } | StmtKind::While { .. } => {
                let mut names = Vec::new();
                bound_names(std::slice::from_ref(stmt), &mut names);
                self.unknown(names, "gets its value in a loop");
            }
            StmtKind::Import { names } => names.iter().for_each(|n| self.import(n)),
            StmtKind::ImportFrom { module, names, level } => {
                let path = Path { level: *level, name: module.as_ref().map_or("", |m| &*m.text) };
                for alias in names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    match &*alias.name.text {
                        "*" => self.define("*", Decl::Star(path), alias.name.span),
                        item => self.define(&name.text, Decl::ImportFrom(path, item), name.span),
                    }
                }
            }
            StmtKind::Delete(targets) => {
                let mut names = Vec::new();
                targets.iter().for_each(|t| crate::bound_names::target_names(t, &mut names));
                names.into_iter().for_each(|(name, span)| self.define(name, Decl::Deleted, span));
            }
            StmtKind::Unreadable { names, .. } => {
                for name in names {
                    // A function, a class or a module that is mentioned there is most likely called or used only.
                    let known = self.back_from(self.end).find(|(_, d)| d.name == &*name.text).map(|(_, d)| d.decl);
                    if !known.is_some_and(|decl| decl.is_code()) {
                        self.define(&name.text, Decl::Unknown("may be changed by code that cannot be read"), name.span);
                    }
                }
            }
            _ => {}
        }
    }

    fn unknown(&mut self, names: Vec<(&'a str, Span)>, why: &'static str) {
        for (name, span) in names {
            self.define(name, Decl::Unknown(why), span);
        }
    }

    /// A `try`: its handlers start with the definitions before it, as any statement of its body can fail.
    fn attempt(&mut self, body: &'a [Stmt], handlers: &'a [ast::ExceptHandler], orelse: &'a [Stmt]) {
        let start = self.end;
        self.collect(body);
        self.collect(orelse);
        for handler in handlers {
            let done = std::mem::replace(&mut self.end, start);
            self.collect(&handler.body);
            let failed = std::mem::replace(&mut self.end, start);
            self.join(None, done, failed);
        }
    }

    /// Goes on after two ways, `then` and `otherwise`, that part at `self.end`: a name that both define, or one of them
    /// again, has one of two definitions.
    fn join(&mut self, test: Option<&'a Expr>, then: Moment, otherwise: Moment) {
        let start = self.end;
        let since = |made: &Self, end: Moment| -> Vec<(u32, &'a str)> {
            let new = made.back_from(end).take_while(|(index, _)| Some(*index) != start);
            new.map(|(index, d)| (index, d.name)).collect()
        };
        let (first, second) = (since(self, then), since(self, otherwise));
        let mut seen: Vec<&str> = Vec::new();
        for (_, name) in first.iter().rev().chain(second.iter().rev()) {
            if seen.contains(name) {
                continue;
            }
            seen.push(name);
            let before = self.back_from(start).find(|(_, d)| d.name == *name).map(|(index, _)| index);
            let find = |way: &[(u32, &str)]| way.iter().find(|(_, n)| n == name).map(|(index, _)| *index);
            match (find(&first).or(before), find(&second).or(before)) {
                (Some(a), Some(b)) if *name != "*" => {
                    let (one, other) = (*self.get(a), *self.get(b));
                    let span = if find(&first).is_some() { one.span } else { other.span };
                    let decl = Decl::Branch { test, then: a, otherwise: b };
                    self.link(Definition { name, decl, span, moment: start, before: start });
                }
                (Some(only), _) | (_, Some(only)) => self.link(*self.get(only)),
                (None, None) => {}
            }
        }
    }

    fn assign(&mut self, whole: &'a Expr, target: &'a Expr, value: &'a Expr) {
        match &target.kind {
            ExprKind::Name(name) if std::ptr::eq(whole, target) => self.define(name, Decl::Value(value), target.span),
            ExprKind::Tuple(_) | ExprKind::List(_) => {
                let mut names = Vec::new();
                crate::bound_names::target_names(target, &mut names);
                let moment = self.end;
                for (name, span) in names {
                    let decl = Decl::Unpacked { target, value };
                    self.link(Definition { name, decl, span, moment, before: moment });
                }
            }
            _ => {}
        }
    }

    fn import(&mut self, alias: &'a Alias) {
        let path = &*alias.name.text;
        match &alias.asname {
            Some(name) => self.define(&name.text, Decl::Import(path), name.span),
            None => {
                let first = path.split('.').next().unwrap_or(path);
                self.define(first, Decl::Import(first), alias.name.span);
            }
        }
    }
}

impl Decl<'_> {
    /// A function, a class or a module, and not a value.
    pub(crate) fn is_code(&self) -> bool {
        matches!(self, Decl::Function(_) | Decl::Class(_) | Decl::Import(_) | Decl::ImportFrom(..))
    }
}
