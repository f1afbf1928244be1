//! Values of classes: named tuples and aggregates.

use std::rc::Rc;

use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{self, ClassDef, ExprKind, Ident, StmtKind, Symbol};

use crate::emitter::R;
use crate::evaluator::Evaluator;
use crate::modules::ModuleId;
use crate::stmt::Todo;
use crate::values::{Arg, CallArgs, Record, Tuple, Val, is_aggregate, is_constexpr};

impl<'a> Evaluator<'a> {
    /// Builds a value of a class of named tuples.
    pub(crate) fn construct_record(&mut self, record: &Record<'a>, args: CallArgs<'a>, span: Span) -> R<Val<'a>> {
        let name = record.name.clone();
        let mut items = vec![None; record.fields.len()];
        for (i, arg) in args.positional.into_iter().enumerate() {
            match items.get_mut(i) {
                Some(slot) => *slot = Some(arg.val),
                None => {
                    let message = format!("`{name}` has {} fields", record.fields.len());
                    return self.error(Code::WRONG_ARGUMENTS, arg.span, message, "");
                }
            }
        }
        for (Ident { text: key, span: key_span }, arg) in args.named {
            match record.fields.iter().position(|n| *n == key) {
                Some(i) if items[i].is_none() => items[i] = Some(arg.val),
                Some(_) => {
                    let message = format!("`{name}` got the field `{key}` twice");
                    return self.error(
                        Code::WRONG_ARGUMENTS,
                        key_span,
                        message,
                        "pass it by position or by name, not both",
                    );
                }
                None => {
                    let message = format!("`{name}` has no field `{key}`");
                    return self.error(Code::WRONG_ARGUMENTS, key_span, message, "");
                }
            }
        }
        let mut all = Vec::with_capacity(items.len());
        for ((item, default), field) in items.into_iter().zip(&record.defaults).zip(record.fields.iter()) {
            match item.or_else(|| default.clone()) {
                Some(val) => all.push(val),
                None => {
                    let message = format!("`{name}` needs the field `{field}`");
                    return self.error(Code::WRONG_ARGUMENTS, span, message, "");
                }
            }
        }
        Ok(Val::Tuple(Rc::new(Tuple { items: all, fields: Some(record.fields.clone()), class: None })))
    }

    /// Builds a value of a named tuple or of an aggregate class.
    pub(crate) fn construct(
        &mut self,
        class: &'a ClassDef,
        module: ModuleId,
        args: CallArgs<'a>,
        span: Span,
    ) -> R<Val<'a>> {
        let is_tuple = class.args.iter().any(|a| match &a.value.kind {
            ExprKind::Name(n) => &**n == "NamedTuple",
            ExprKind::Attribute { attr, .. } => &*attr.text == "NamedTuple",
            _ => false,
        });
        let aggregate = is_aggregate(class);
        if !is_tuple && !aggregate {
            let d = Diagnostic::error(
                Code::NOT_CALLABLE,
                span,
                format!("values of the class `{}` cannot be made in a kernel", class.name.text),
            )
            .label(class.name.span, "defined here")
            .help("derive it from `typing.NamedTuple`");
            return self.fail(d);
        }
        let moment = self.world.moment_of_class(module, class);
        let mut names: Vec<Symbol> = Vec::new();
        let mut constant = Vec::new();
        let mut items: Vec<Option<Val<'a>>> = Vec::new();
        let mut init = None;
        for stmt in &class.body {
            match &stmt.kind {
                StmtKind::AnnAssign { target, value, annotation } => {
                    if let Some(name) = target.as_name() {
                        names.push(name.clone());
                        constant.push(!aggregate || is_constexpr(annotation));
                        items.push(match value {
                            Some(default) => Some(self.eval_at(module, moment, default)?),
                            None => None,
                        });
                    }
                }
                StmtKind::FunctionDef(def) if &*def.name.text == "__init__" => init = Some(def),
                _ => {}
            }
        }
        if let Some(def) = init {
            return self.construct_by_init(class, module, def, (&names, &constant), args, span);
        }
        for (i, arg) in args.positional.into_iter().enumerate() {
            match items.get_mut(i) {
                Some(slot) => *slot = Some(arg.val),
                None => {
                    let message = format!("`{}` has {} fields", class.name.text, names.len());
                    return self.error(Code::WRONG_ARGUMENTS, arg.span, message, "");
                }
            }
        }
        for (Ident { text: key, span: key_span }, arg) in args.named {
            match names.iter().position(|n| *n == key) {
                Some(i) => items[i] = Some(arg.val),
                None => {
                    let message = format!("`{}` has no field `{key}`", class.name.text);
                    return self.error(Code::WRONG_ARGUMENTS, key_span, message, "");
                }
            }
        }
        let mut all = Vec::with_capacity(items.len());
        for ((item, name), constant) in items.into_iter().zip(&names).zip(&constant) {
            match item {
                Some(val) => all.push(self.field(val, *constant, span)?),
                None => {
                    let message = format!("`{}` needs the field `{name}`", class.name.text);
                    return self.error(Code::WRONG_ARGUMENTS, span, message, "");
                }
            }
        }
        Ok(Val::Tuple(Rc::new(Tuple { items: all, fields: Some(names.into()), class: Some((class, module)) })))
    }

    /// The value of a field: a number becomes a run-time value, unless the field is declared as a constant.
    fn field(&mut self, val: Val<'a>, constant: bool, span: Span) -> R<Val<'a>> {
        if constant || self.host() { Ok(val) } else { self.decay(val, span) }
    }

    /// A constructor with statements `self.field = expr`, as aggregates have.
    fn construct_by_init(
        &mut self,
        class: &'a ClassDef,
        module: ModuleId,
        def: &'a ast::FunctionDef,
        (names, constant): (&[Symbol], &[bool]),
        mut args: CallArgs<'a>,
        span: Span,
    ) -> R<Val<'a>> {
        args.positional.insert(0, Arg::new(Val::Opaque("self".into()), span));
        let moment = self.world.moment_of_class(module, class);
        let bound =
            self.bind_arguments(&class.name.text, class.name.span, &def.params, (module, moment), args, span)?;
        self.push_host_frame(module, class.name.text.clone());
        for (name, arg) in bound {
            self.bind(&name, arg.val, arg.span);
        }
        let mut items: Vec<Option<Val<'a>>> = vec![None; names.len()];
        let mut result = Ok(());
        for stmt in &def.body {
            let field = match &stmt.kind {
                StmtKind::Assign { targets, value } if targets.len() == 1 => match &targets[0].kind {
                    ExprKind::Attribute { attr, .. } => Some((attr, value)),
                    _ => None,
                },
                _ => None,
            };
            match field {
                Some((attr, value)) => match self.eval(value) {
                    Ok(val) => match names.iter().position(|n| *n == attr.text) {
                        Some(i) => items[i] = Some(val),
                        None => {
                            let message = format!("`{}` has no field `{}`", class.name.text, attr.text);
                            result = self.error(Code::WRONG_ARGUMENTS, attr.span, message, "");
                        }
                    },
                    Err(e) => result = Err(e),
                },
                None => {
                    self.exec(Todo::new(std::slice::from_ref(stmt)), false);
                }
            }
        }
        self.frames.pop();
        self.span = span;
        result?;
        let missing = items.iter().zip(names).find(|(i, _)| i.is_none()).map(|(_, n)| n.clone());
        if let Some(name) = missing {
            let message = format!("the constructor of `{}` does not set `{name}`", class.name.text);
            return self.error(Code::WRONG_ARGUMENTS, span, message, "");
        }
        let mut all = Vec::with_capacity(items.len());
        for (val, constant) in items.into_iter().flatten().zip(constant) {
            all.push(self.field(val, *constant, span)?);
        }
        let items = all;
        Ok(Val::Tuple(Rc::new(Tuple { items, fields: Some(names.into()), class: Some((class, module)) })))
    }
}
