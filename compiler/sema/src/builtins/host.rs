//! Python's functions of sequences, on tuples: in constexpr functions, which are plain Python, and some in kernels, too.

use rtc_source::Code;
use rtc_syntax::ast::Operator;

use super::{Builtin, row};
use crate::const_eval::{as_float, as_int};
use crate::cx::{Arg, Cx, R};
use crate::values::{Const, Val};

/// What loops over tuples need; kernels can call it.
pub(super) const LOOPS: &[Builtin] = &[
    row("enumerate", &["items", "start?"], |cx, args| {
        let start = cx.int_arg(args, 1, 0)?;
        let items = items(cx, &args.arg(0))?;
        let pair = |(i, item)| Val::tuple(vec![Val::int(start + i as i128), item]);
        Ok(Val::tuple(items.into_iter().enumerate().map(pair).collect()))
    }),
    row("zip", &["*items"], |cx, args| {
        let mut lists = Vec::new();
        for arg in &args.rest {
            lists.push(items(cx, arg)?);
        }
        let count = lists.iter().map(Vec::len).min().unwrap_or(0);
        let at = |i: usize| Val::tuple(lists.iter().map(|list| list[i].clone()).collect());
        Ok(Val::tuple((0..count).map(at).collect()))
    }),
];

/// What only constexpr functions can call.
pub(super) const TABLE: &[Builtin] = &[
    row("reversed", &["items"], |cx, args| {
        let mut items = items(cx, &args.arg(0))?;
        items.reverse();
        Ok(Val::tuple(items))
    }),
    row("sorted", &["items", "reverse?"], |cx, args| {
        let mut items = items(cx, &args.arg(0))?;
        let key = |val: &Val<'_>| match val {
            Val::Const(c) => as_float(c),
            _ => None,
        };
        if items.iter().any(|item| key(item).is_none()) {
            return cx.error(Code::TYPE_MISMATCH, args.span, "`sorted` works on numbers", "");
        }
        items.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
        if cx.bool_arg(args, 1, false)? {
            items.reverse();
        }
        Ok(Val::tuple(items))
    }),
    row("sum", &["items", "start?"], |cx, args| {
        let mut total = args.given(1).map_or(Val::int(0), |a| a.val);
        for item in items(cx, &args.arg(0))? {
            total = cx.binary(Operator::Add, &Arg::new(total, args.span), &Arg::new(item, args.span))?;
        }
        Ok(total)
    }),
    row("any", &["items"], |cx, args| {
        for item in items(cx, &args.arg(0))? {
            if cx.truth(&item, args.span)? {
                return Ok(Val::bool(true));
            }
        }
        Ok(Val::bool(false))
    }),
    row("all", &["items"], |cx, args| {
        for item in items(cx, &args.arg(0))? {
            if !cx.truth(&item, args.span)? {
                return Ok(Val::bool(false));
            }
        }
        Ok(Val::bool(true))
    }),
    row("pow", &["base", "exponent"], |cx, args| cx.binary(Operator::Pow, &args.arg(0), &args.arg(1))),
    row("round", &["x"], |cx, args| {
        let c = cx.const_arg(&args.arg(0), &args.what(0))?;
        match (as_int(&c), as_float(&c)) {
            (Some(i), _) => Ok(Val::int(i)),
            (None, Some(x)) if x.is_finite() => Ok(Val::int(x.round_ties_even() as i128)),
            _ => cx.error(Code::BAD_VALUE, args.arg(0).span, "`round` cannot convert this", ""),
        }
    }),
];

/// The items of a tuple, a range or a string.
fn items<'a>(cx: &mut Cx<'a>, arg: &Arg<'a>) -> R<Vec<Val<'a>>> {
    match &arg.val {
        Val::Tuple(t) => Ok(t.items.clone()),
        Val::Range(r) => cx.range_items(r, arg.span),
        Val::Const(Const::Str(s)) => Ok(s.chars().map(|c| Val::str(&c.to_string())).collect()),
        other => cx.not_iterable(other, arg.span),
    }
}
