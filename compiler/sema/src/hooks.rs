//! Hooks of configurations: functions that get the arguments of a launch in a dictionary before it.
//!
//! A hook is executed like any other host code, by the evaluator. Its effects on tensors are recorded instead of
//! executed: that it zeroes one, or sets the block that a descriptor moves. It can do nothing else to them.

use std::rc::Rc;

use rtc_source::{Code, Span};
use rtc_syntax::ast::{Expr, ExprKind, Symbol};

use crate::const_eval::as_int;
use crate::declared::{self, Namespace};
use crate::emitter::{HookEffects, R};
use crate::evaluator::Evaluator;
use crate::values::{Arg, CallArgs, Const, Tuple, Val};

/// The field of a host tensor that holds the name of the argument.
const NAME: &str = "<name>";
/// The field of a host descriptor.
const BLOCK_SHAPE: &str = "block_shape";

/// The allowed effects of hooks on an argument of that name.
pub(crate) fn fields<'a>(name: &str) -> Vec<(&'static str, Val<'a>)> {
    let method = |method: &'static str| {
        let function = declared::find(Namespace::Tuning, method);
        (method, function.map_or(Val::NONE, |f| Val::Method(Rc::new((Val::str(name), Val::Builtin(f))))))
    };
    vec![(NAME, Val::str(name)), method("zero_"), method("fill_")]
}

/// An argument of which only the name is known.
pub(crate) fn unknown<'a>(name: &str) -> Val<'a> {
    record(fields(name))
}

/// A value with these fields.
pub(crate) fn record<'a>(fields: Vec<(&str, Val<'a>)>) -> Val<'a> {
    let (names, items): (Vec<Symbol>, Vec<Val<'a>>) = fields.into_iter().map(|(n, v)| (Symbol::from(n), v)).unzip();
    Val::Tuple(Rc::new(Tuple { items, fields: Some(names.into()), class: None }))
}

/// The effects of a hook with these arguments.
pub(crate) fn effects<'a>(cx: &mut Evaluator<'a>, hook: &Arg<'a>, args: Val<'a>) -> R<HookEffects> {
    let call = CallArgs { positional: vec![Arg::new(args, hook.span)], ..CallArgs::default() };
    cx.emitter.hook = Some(HookEffects::default());
    let result = cx.call_value(&hook.val, hook.span, call, hook.span);
    let effects = cx.emitter.hook.take().unwrap_or_default();
    result.map(|_| effects)
}

/// Refuses values that are not functions.
pub(crate) fn check<'a>(cx: &mut Evaluator<'a>, hook: &Arg<'a>) -> R<()> {
    match &hook.val {
        Val::Lambda(_) | Val::Function(_) => Ok(()),
        other => {
            let text = other.describe();
            cx.error(Code::TYPE_MISMATCH, hook.span, format!("a hook is a function, not {text}"), "")
        }
    }
}

/// `nargs["desc"].block_shape = [..]` in a hook; false for anything else.
pub(crate) fn assign<'a>(cx: &mut Evaluator<'a>, target: &'a Expr, val: &Val<'a>, span: Span) -> R<bool> {
    let ExprKind::Attribute { value, attr } = &target.kind else { return Ok(false) };
    if cx.emitter.hook.is_none() {
        return Ok(false);
    }
    let object = cx.eval_arg(value)?;
    let Some(name) = name_of(&object.val) else { return Ok(false) };
    if &*attr.text != BLOCK_SHAPE {
        let message = format!("a hook cannot set `{}` of an argument", attr.text);
        return cx.error(Code::UNSUPPORTED, target.span, message, "it can set `block_shape` of a tensor descriptor");
    }
    let size = |val: &Val<'_>| match val {
        Val::Const(c) => as_int(c).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0),
        _ => None,
    };
    let sizes = match val {
        Val::Tuple(list) if !list.items.is_empty() => list.items.iter().map(size).collect::<Option<Vec<u32>>>(),
        _ => None,
    };
    let Some(sizes) = sizes else {
        let message = format!("the block of a descriptor is a list of sizes, not {}", val.describe());
        return cx.error(Code::TYPE_MISMATCH, span, message, "write `[BLOCK_M, BLOCK_K]`");
    };
    if let Some(effects) = &mut cx.emitter.hook {
        effects.blocks.retain(|(known, _)| *known != name);
        effects.blocks.push((name, sizes));
    }
    Ok(true)
}

/// The name of an argument of the launch.
pub(crate) fn name_of(val: &Val<'_>) -> Option<String> {
    let Val::Tuple(record) = val else { return None };
    let at = record.fields.as_ref()?.iter().position(|field| &**field == NAME)?;
    match record.items.get(at)? {
        Val::Const(Const::Str(name)) => Some(name.to_string()),
        _ => None,
    }
}
