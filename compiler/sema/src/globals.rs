//! The values of globals: the definition that code sees, evaluated as far as it is a constant.
//!
//! Whatever other code may have changed is no constant; a kernel that uses it is refused with both places.

use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{Expr, ExprKind, Symbol};

use crate::changes::Change;
use crate::definitions::{Decl, Definition, Path};
use crate::emitter::{Fault, R};
use crate::evaluator::Evaluator;
use crate::expr::equal;
use crate::modules::{ModuleId, ModuleRef};
use crate::values::{Function, Val};

impl<'a> Evaluator<'a> {
    /// The value of a name in the current function; `None` if it has none.
    pub(crate) fn global(&mut self, module: ModuleId, name: &Symbol) -> R<Option<Val<'a>>> {
        let key = (module, name.clone(), self.moment_in(module));
        if let Some(val) = self.globals.get(&key) {
            return Ok(Some(val.clone()));
        }
        let found = match self.world.decl(module, name) {
            Some((home, Decl::Function(f), _)) => Some(Val::Function(Function { module: home, ..f })),
            _ => match self.global_of_file(module, name)? {
                Some(val) => Some(val),
                None => match self.implied(module, name)? {
                    Some(val) => Some(val),
                    None => self.unknown_star(module, name)?,
                },
            },
        };
        if let Some(val) = &found {
            self.globals.insert(key, val.clone());
        }
        Ok(found)
    }

    fn global_of_file(&mut self, module: ModuleId, name: &Symbol) -> R<Option<Val<'a>>> {
        let Some(file) = self.world.user_file(module) else { return Ok(None) };
        let mut found = file.definitions.of(name, self.moment_in(module));
        if found.iter().all(|(_, d)| d.name == "*") {
            // Not defined yet: Python would fail here. In modules that consist of parts, constants come later.
            found = file.definitions.of(name, None);
        }
        let mut star = None;
        for (index, definition) in found {
            if let Decl::Star(path) = definition.decl {
                match self.star_member(module, path, name, &mut vec![module])? {
                    Some(val) => return Ok(Some(val)),
                    None if self.star_module(module, path).is_none() => star = star.or(Some(definition.span)),
                    None => {}
                }
                continue;
            }
            if let Some(span) = star
                && !self.is_code(module, index)
                && !name.starts_with('_')
                && !self.reads_host
            {
                let change = Change { span, how: "may be replaced by this import", is_certain: false };
                return self.changed_global(name, Some(definition.span), change).map(Some);
            }
            return self.defined(module, name, index, &definition).map(Some);
        }
        Ok(None)
    }

    /// The module of an import of all names, if it is known.
    fn star_module(&self, module: ModuleId, path: Path<'a>) -> Option<ModuleRef> {
        match self.world.module(&self.world.absolute(module, path)) {
            ModuleRef::Unknown(_) => None,
            known => Some(known),
        }
    }

    /// The value of one name of an import of all names.
    fn star_member(
        &mut self,
        module: ModuleId,
        path: Path<'a>,
        name: &Symbol,
        visited: &mut Vec<ModuleId>,
    ) -> R<Option<Val<'a>>> {
        if name.starts_with('_') {
            return Ok(None);
        }
        let id = match self.star_module(module, path) {
            Some(ModuleRef::File(id)) => id,
            Some(known) => return self.member_of(&known, name),
            None => return Ok(None),
        };
        if visited.contains(&id) {
            return Ok(None);
        }
        visited.push(id);
        let definitions = self.world.user_file(id).map(|file| file.definitions.of(name, None)).unwrap_or_default();
        for (index, definition) in definitions {
            if let Decl::Star(path) = definition.decl {
                if let Some(val) = self.star_member(id, path, name, visited)? {
                    return Ok(Some(val));
                }
                continue;
            }
            return self.defined(id, name, index, &definition).map(Some);
        }
        Ok(None)
    }

    /// A name that is defined nowhere and that an import of all names of an unknown module may define.
    fn unknown_star(&mut self, module: ModuleId, name: &Symbol) -> R<Option<Val<'a>>> {
        let stars = self.world.user_file(module).map(|file| file.definitions.of("*", None)).unwrap_or_default();
        for (_, definition) in stars {
            if let Decl::Star(path) = definition.decl
                && self.star_module(module, path).is_none()
            {
                let star = self.world.module(&self.world.absolute(module, path));
                return self.member_of(&star, name);
            }
        }
        Ok(None)
    }

    /// Whether a definition is one of a function, a class or a module, or of two alternatives one of which is.
    fn is_code(&self, module: ModuleId, index: u32) -> bool {
        let Some(file) = self.world.user_file(module) else { return false };
        match file.definitions.get(index).decl {
            Decl::Branch { then, otherwise, .. } => self.is_code(module, then) || self.is_code(module, otherwise),
            decl => decl.is_code(),
        }
    }

    fn defined(&mut self, home: ModuleId, name: &Symbol, index: u32, definition: &Definition<'a>) -> R<Val<'a>> {
        let val = match definition.decl {
            Decl::Function(f) => Val::Function(Function { module: home, ..f }),
            Decl::Class(c) => Val::Class(c, home),
            Decl::Import(path) => return Ok(Val::Module(self.world.module(path))),
            Decl::ImportFrom(path, item) => return self.import(home, name, index, definition, path, item),
            Decl::Branch { test, then, otherwise } => {
                return self.one_of_two(home, name, definition, test, (then, otherwise));
            }
            Decl::Value(expr) => self.evaluated(home, name, index, definition, expr, |cx| cx.eval(expr))?,
            Decl::Unpacked { target, value } => self.evaluated(home, name, index, definition, value, |cx| {
                let val = cx.eval(value)?;
                cx.assign_target(target, val, value.span)?;
                cx.frame().scope.get(name).map(|binding| binding.val.clone()).ok_or(Fault)
            })?,
            Decl::Augmented { target, op, value } => {
                self.evaluated(home, name, index, definition, value, |cx| {
                    let (l, r) = (cx.eval_arg(target)?, cx.eval_arg(value)?);
                    match (&l.val, &r.val) {
                        (Val::Const(_), Val::Const(_)) => cx.cx().binary(op, &l, &r),
                        // A list would be changed in place.
                        _ => Err(Fault),
                    }
                })?
            }
            Decl::Deleted => {
                let d = Diagnostic::error(Code::UNDEFINED_NAME, self.span, format!("the global `{name}` is deleted"))
                    .primary("used in a kernel")
                    .label(definition.span, "deleted here")
                    .help("leave out the `del`: the kernel needs the value when it is launched");
                return self.fail(d);
            }
            Decl::Unknown(how) => {
                let change = Change { span: definition.span, how, is_certain: true };
                let file = self.world.user_file(home);
                let before = file.map(|f| f.definitions.of(name, Some(definition.moment))).unwrap_or_default();
                let before = before.iter().find(|(_, d)| d.name == &**name).map(|(_, d)| d.span);
                return self.changed_global(name, before, change);
            }
            Decl::Star(_) => return Err(Fault),
        };
        match self.change_of(home, name, definition, &val) {
            Some(change) => self.changed_global(name, Some(definition.span), change),
            None => Ok(val),
        }
    }

    /// The value of an imported name. If modules import the name from each other, or one from itself, it is the value
    /// of the name before the import, as in Python, where the module is half executed.
    fn import(
        &mut self,
        home: ModuleId,
        name: &Symbol,
        index: u32,
        definition: &Definition<'a>,
        path: Path<'a>,
        item: &str,
    ) -> R<Val<'a>> {
        let Some(first) = self.resolving.iter().position(|known| *known == (home, index)) else {
            self.resolving.push((home, index));
            let val = self.imported(&self.world.absolute(home, path), item);
            self.resolving.pop();
            return val;
        };
        let file = self.world.user_file(home);
        let before = file.map(|file| file.definitions.of(name, Some(definition.moment))).unwrap_or_default();
        if let Some((index, before)) = before.iter().find(|(_, d)| d.name == &**name) {
            return self.defined(home, name, *index, before);
        }
        let message = format!("`{name}` is imported in a circle");
        let mut d = Diagnostic::error(Code::UNDEFINED_NAME, self.span, message).primary("used in a kernel");
        for (module, index) in self.resolving[first..].iter().copied() {
            if let Some(file) = self.world.user_file(module) {
                d = d.label(file.definitions.get(index).span, "this import needs itself");
            }
        }
        self.fail(d.help("define the name in one of the modules, before it is imported there"))
    }

    /// Evaluates a definition in its module, as far as it is a constant.
    fn evaluated(
        &mut self,
        home: ModuleId,
        name: &Symbol,
        index: u32,
        definition: &Definition<'a>,
        value: &Expr,
        run: impl FnOnce(&mut Evaluator<'a>) -> R<Val<'a>>,
    ) -> R<Val<'a>> {
        if self.resolving.contains(&(home, index)) {
            let message = format!("`{name}` is defined by itself");
            return self.error(Code::UNDEFINED_NAME, definition.span, message, "");
        }
        self.resolving.push((home, index));
        let saved = self.span;
        self.push_host_frame(home, name.clone());
        self.frame_mut().moment = Some(definition.moment);
        let result = self.quietly(run);
        self.frames.pop();
        self.span = saved;
        self.resolving.pop();
        match result {
            Ok(val) if val.is_constant() => Ok(val),
            Ok(_) => self.not_constant(name, value, None),
            Err(why) => self.not_constant(name, value, why.map(|why| *why)),
        }
    }

    /// One of two definitions: the one that the condition selects, if it is known; either, if both are the same
    /// constant. Of functions and modules the first is used, as both have the same purpose.
    fn one_of_two(
        &mut self,
        home: ModuleId,
        name: &Symbol,
        definition: &Definition<'a>,
        test: Option<&'a Expr>,
        ways: (u32, u32),
    ) -> R<Val<'a>> {
        let Some(file) = self.world.user_file(home) else { return Err(Fault) };
        let chosen = test.and_then(|test| {
            let saved = self.span;
            self.push_host_frame(home, name.clone());
            self.frame_mut().moment = Some(definition.moment);
            let known = self.quietly(|cx| {
                let test = cx.eval_arg(test)?;
                cx.truth(&test.val, test.span)
            });
            self.frames.pop();
            self.span = saved;
            known.ok()
        });
        let (then, otherwise) = (*file.definitions.get(ways.0), *file.definitions.get(ways.1));
        let is_code = (self.is_code(home, ways.0), self.is_code(home, ways.1));
        match (chosen, is_code) {
            (Some(true), _) | (None, (true, _)) => return self.defined(home, name, ways.0, &then),
            (Some(false), _) | (None, (_, true)) => return self.defined(home, name, ways.1, &otherwise),
            _ => {}
        }
        let first = self.quietly(|cx| cx.defined(home, name, ways.0, &then));
        let second = self.quietly(|cx| cx.defined(home, name, ways.1, &otherwise));
        match (first, second) {
            (Ok(a), Ok(b)) if a.is_constant() && equal(&a, &b) && a.same_type(&b) => Ok(a),
            (Err(Some(why)), _) | (_, Err(Some(why))) if self.reads_host => self.fail(*why),
            (Ok(a), _) if self.reads_host => Ok(a),
            _ => {
                let d = Diagnostic::error(
                    Code::CHANGED_GLOBAL,
                    self.span,
                    format!("the global `{name}` has one of two values, which is not known while compiling"),
                )
                .primary("used in a kernel")
                .label(then.span, "one value")
                .label(otherwise.span, "the other")
                .help("pass the value to the kernel as an argument");
                let d = match test {
                    Some(test) => d.label(test.span, "this is evaluated on the host only"),
                    None => d.note("which statement of a `try` fails is known only when the module runs"),
                };
                self.fail(d)
            }
        }
    }

    /// The possible changes of a global after its definition.
    fn change_of(&self, home: ModuleId, name: &str, definition: &Definition<'a>, val: &Val<'a>) -> Option<Change> {
        let changes = &self.world.user_file(home)?.changes;
        let certain = |change: &&Change| change.is_certain || !self.reads_host;
        if let Some(change) = changes.rebound.get(name) {
            return Some(*change);
        }
        // A constexpr is an object whose value can be assigned.
        if let Some(change) = changes.rebound.get(&format!("{name}.value")) {
            return Some(*change);
        }
        if definition.decl.is_code() {
            return None;
        }
        if let Some(change) = changes.anything.filter(|_| !self.reads_host) {
            return Some(change);
        }
        let expr = match definition.decl {
            Decl::Value(expr) => Some(expr),
            _ => None,
        };
        if is_immutable(val, expr) {
            return None;
        }
        let nested = match val {
            Val::Tuple(t) => t.items.iter().any(is_container),
            Val::Dict(d) => d.iter().any(|(_, v)| is_container(v)),
            _ => false,
        };
        let elements = changes.elements.get(name).filter(|_| nested);
        changes.mutated.get(name).or(elements).filter(certain).copied()
    }

    pub(crate) fn changed_global(&mut self, name: &str, defined: Option<Span>, change: Change) -> R<Val<'a>> {
        let message = format!("the global `{name}` may have another value when the kernel is launched");
        let mut d = Diagnostic::error(Code::CHANGED_GLOBAL, self.span, message).primary("used in a kernel");
        if let Some(defined) = defined {
            d = d.label(defined, "defined here");
        }
        d = d.label(change.span, format!("it {}", change.how));
        self.fail(d.help("assign the name once (a tuple, not a list), or pass the value to the kernel as an argument"))
    }

    /// Reports a global that is no compile-time constant.
    fn not_constant(&mut self, name: &Symbol, expr: &Expr, why: Option<Diagnostic>) -> R<Val<'a>> {
        if self.reads_host
            && let Some(why) = why
        {
            return self.fail(why);
        }
        if let Some(why) = &why
            && matches!(why.code, Code::CHANGED_GLOBAL)
        {
            let mut d = Diagnostic::error(why.code, self.span, why.message.clone()).primary("used in a kernel");
            d.labels.extend(why.labels.iter().cloned().map(|mut label| {
                if label.primary {
                    (label.primary, label.text) = (false, format!("`{name}` is computed from it here"));
                }
                label
            }));
            d.help = why.help.clone();
            return self.fail(d);
        }
        let mut d = Diagnostic::error(
            Code::EXPECTED_CONSTEXPR,
            self.span,
            format!("the global `{name}` is not a compile-time constant"),
        )
        .primary("used in a kernel")
        .label(expr.span, "this is evaluated on the host only")
        .help(format!("pass it to the kernel as an argument, or define `{name} = tl.constexpr(...)` of a plain value"));
        if let Some(why) = why {
            d = d.note(why.message);
        }
        self.fail(d)
    }
}

fn is_container(val: &Val<'_>) -> bool {
    match val {
        // A tuple and a list look the same here.
        Val::Tuple(t) => t.class.is_none() && t.fields.is_none(),
        Val::Dict(_) => true,
        _ => false,
    }
}

/// Whether a value is certainly an object that cannot change: a number, or a tuple that is written as one, of such.
fn is_immutable(val: &Val<'_>, expr: Option<&Expr>) -> bool {
    match val {
        Val::Dict(_) => false,
        Val::Tuple(t) if t.class.is_some() || t.fields.is_some() => t.items.iter().all(|item| is_immutable(item, None)),
        Val::Tuple(t) => match expr.map(|e| &e.kind) {
            Some(ExprKind::Tuple(items)) if items.len() == t.items.len() => {
                items.iter().zip(&t.items).all(|(e, v)| is_immutable(v, Some(e)))
            }
            Some(ExprKind::Call { func, args }) if func.dotted_name().is_some_and(|n| n.ends_with("constexpr")) => {
                args.first().is_some_and(|arg| is_immutable(val, Some(&arg.value)))
            }
            _ => false,
        },
        _ => true,
    }
}
