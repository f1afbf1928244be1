//! Python's sequence functions, on tuples: for constexpr functions, which are plain Python, and some for kernels, too.

use rtc_source::Code;
use rtc_syntax::ast::Operator;

use super::{Row, row};
use crate::const_eval::{as_float, as_int};
use crate::cx::Cx;
use crate::emitter::R;
use crate::values::{Arg, Const, Val};

/// Functions for loops over tuples; kernels can call them.
pub(super) const LOOPS: &[Row] = &[
    row("enumerate", |cx, args| {
        let start = args.int(cx, "start")?;
        let items = items(cx, &args.arg("items"))?;
        let pair = |(i, item)| Val::tuple(vec![Val::int(start + i as i128), item]);
        Ok(Val::tuple(items.into_iter().enumerate().map(pair).collect()))
    }),
    row("zip", |cx, args| {
        let mut lists = Vec::new();
        for arg in args.rest("items") {
            lists.push(items(cx, arg)?);
        }
        let count = lists.iter().map(Vec::len).min().unwrap_or(0);
        let at = |i: usize| Val::tuple(lists.iter().map(|list| list[i].clone()).collect());
        Ok(Val::tuple((0..count).map(at).collect()))
    }),
];

/// Functions that only constexpr functions can call.
pub(super) const TABLE: &[Row] = &[
    row("reversed", |cx, args| {
        let mut items = items(cx, &args.arg("items"))?;
        items.reverse();
        Ok(Val::tuple(items))
    }),
    row("sorted", |cx, args| {
        let mut items = items(cx, &args.arg("items"))?;
        let key = |val: &Val<'_>| match val {
            Val::Const(c) => as_float(c),
            _ => None,
        };
        if items.iter().any(|item| key(item).is_none()) {
            return cx.error(Code::TYPE_MISMATCH, args.span, "`sorted` works on numbers", "");
        }
        items.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
        if args.bool(cx, "reverse")? {
            items.reverse();
        }
        Ok(Val::tuple(items))
    }),
    row("sum", |cx, args| {
        let mut total = args.given("start").map_or(Val::int(0), |a| a.val);
        for item in items(cx, &args.arg("items"))? {
            total = cx.binary(Operator::Add, &Arg::new(total, args.span), &Arg::new(item, args.span))?;
        }
        Ok(total)
    }),
    row("any", |cx, args| {
        for item in items(cx, &args.arg("items"))? {
            if cx.truth(&item, args.span)? {
                return Ok(Val::bool(true));
            }
        }
        Ok(Val::bool(false))
    }),
    row("all", |cx, args| {
        for item in items(cx, &args.arg("items"))? {
            if !cx.truth(&item, args.span)? {
                return Ok(Val::bool(false));
            }
        }
        Ok(Val::bool(true))
    }),
    row("pow", |cx, args| cx.binary(Operator::Pow, &args.arg("base"), &args.arg("exponent"))),
    row("round", |cx, args| {
        let c = args.constant(cx, "x")?;
        match (as_int(&c), as_float(&c)) {
            (Some(i), _) => Ok(Val::int(i)),
            (None, Some(x)) if x.is_finite() => Ok(Val::int(x.round_ties_even() as i128)),
            _ => cx.error(Code::BAD_VALUE, args.arg("x").span, "`round` cannot convert this", ""),
        }
    }),
];

/// The items of a tuple, a range or a string.
pub(super) fn items<'a>(cx: &mut Cx<'a>, arg: &Arg<'a>) -> R<Vec<Val<'a>>> {
    match &arg.val {
        Val::Tuple(t) => Ok(t.items.clone()),
        Val::Range(r) => cx.range_items(r, arg.span),
        Val::Dict(d) => Ok(d.iter().map(|(key, _)| key.clone()).collect()),
        Val::Const(Const::Str(s)) => Ok(s.chars().map(|c| Val::str(&c.to_string())).collect()),
        other => cx.not_iterable(other, arg.span),
    }
}
