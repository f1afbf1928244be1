//! Classes of named tuples that calls make: `collections.namedtuple` and `typing.NamedTuple`, at module level.

use std::rc::Rc;

use rtc_source::{Code, Span};
use rtc_syntax::ast::{Ident, Symbol};

use super::{Args, Row, row};
use crate::call::CallArgs;
use crate::cx::{Cx, R};
use crate::values::{Const, Record, Tuple, Val};

pub(super) const TABLE: &[Row] = &[
    row("namedtuple", |cx, args| {
        args.ignore("rename");
        args.ignore("module");
        let names = field_names(cx, args, "field_names")?;
        let mut defaults = vec![None; names.len()];
        if let Some(given) = args.given("defaults") {
            let Val::Tuple(t) = &given.val else { return cx.not_iterable(&given.val, given.span) };
            for (slot, val) in defaults.iter_mut().rev().zip(t.items.iter().rev()) {
                *slot = Some(val.clone());
            }
        }
        class(cx, args, names, defaults)
    }),
    row("NamedTuple", |cx, args| {
        let names = field_names(cx, args, "fields")?;
        let defaults = vec![None; names.len()];
        class(cx, args, names, defaults)
    }),
];

/// `"a b"`, `"a, b"`, `["a", "b"]` or `[("a", int), ("b", int)]`.
fn field_names<'a>(cx: &mut Cx<'a>, args: &Args<'a>, name: &'static str) -> R<Vec<Symbol>> {
    let arg = args.arg(name);
    let words = |text: &str| text.replace(',', " ").split_whitespace().map(Symbol::from).collect();
    let field = |val: &Val<'a>| match val {
        Val::Const(Const::Str(s)) => Some(s.clone()),
        Val::Tuple(t) => match t.items.first() {
            Some(Val::Const(Const::Str(s))) => Some(s.clone()),
            _ => None,
        },
        _ => None,
    };
    let names: Option<Vec<Symbol>> = match &arg.val {
        Val::Const(Const::Str(text)) => Some(words(text)),
        Val::Tuple(t) => t.items.iter().map(field).collect(),
        _ => None,
    };
    match names {
        Some(names) => Ok(names),
        None => {
            let message = format!("{} must be the names of the fields", args.what(name));
            cx.error(Code::TYPE_MISMATCH, arg.span, message, "write them in a list: `[\"ptr\", \"shape\"]`")
        }
    }
}

fn class<'a>(cx: &mut Cx<'a>, args: &Args<'a>, names: Vec<Symbol>, defaults: Vec<Option<Val<'a>>>) -> R<Val<'a>> {
    let Const::Str(name) = args.constant(cx, "typename")? else {
        let message = format!("{} must be a string", args.what("typename"));
        return cx.error(Code::TYPE_MISMATCH, args.arg("typename").span, message, "");
    };
    Ok(Val::Record(Rc::new(Record { name, fields: names.into(), defaults })))
}

impl<'a> Cx<'a> {
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
}
