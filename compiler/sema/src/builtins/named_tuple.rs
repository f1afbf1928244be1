//! Classes of named tuples that calls make: `collections.namedtuple` and `typing.NamedTuple`, at module level.

use std::rc::Rc;

use rtc_source::Code;
use rtc_syntax::ast::Symbol;

use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::R;
use crate::values::{Const, Record, Val};

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
