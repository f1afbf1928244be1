//! Calls that have to do with block pointers, and their arguments.

use rtc_source::Span;

use crate::ast::{Arg, Expr, ExprKind, Star, UnaryOp};

/// The parameters of `make_block_ptr`.
pub(super) const MAKE: &[&str] = &["base", "shape", "strides", "offsets", "block_shape", "order"];
/// The parameters of `advance`.
pub(super) const ADVANCE: &[&str] = &["base", "offsets"];
/// The parameters of `load`.
pub(super) const LOAD: &[&str] =
    &["pointer", "mask", "other", "boundary_check", "padding_option", "cache_modifier", "eviction_policy", "volatile"];
/// The parameters of `store`.
pub(super) const STORE: &[&str] = &["pointer", "value", "mask", "boundary_check", "cache_modifier", "eviction_policy"];

/// Why something stays as it is, and where the reason lies.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub at: Span,
    pub reason: String,
}

pub(super) type Result<T> = std::result::Result<T, Refused>;

pub(super) fn refuse<T>(at: Span, reason: impl Into<String>) -> Result<T> {
    Err(Refused { at, reason: reason.into() })
}

/// The module and the name of `module.name`, where the module is a name or has dots.
pub(super) fn member(func: &Expr) -> Option<(&Expr, &str)> {
    match &func.kind {
        ExprKind::Attribute { value, attr } if value.dotted_name().is_some() => Some((value, &attr.text)),
        _ => None,
    }
}

/// Whether a call is of no use without block pointers.
pub(super) fn is_block_pointer_call(func: &Expr, args: &[Arg]) -> bool {
    let name = match &func.kind {
        ExprKind::Name(name) => &**name,
        ExprKind::Attribute { attr, .. } => &*attr.text,
        _ => return false,
    };
    let names = |wanted: &[&str]| args.iter().any(|a| a.name.as_ref().is_some_and(|n| wanted.contains(&&*n.text)));
    match name {
        "make_block_ptr" => true,
        "advance" => args.len() <= 2 && (args.iter().any(|a| is_sequence(&a.value)) || names(&["offsets"])),
        "load" | "store" => names(&["boundary_check", "padding_option"]),
        _ => false,
    }
}

fn is_sequence(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Tuple(_) | ExprKind::List(_))
}

/// Arguments by the names of parameters.
pub(super) fn bind<'a>(args: &'a [Arg], parameters: &[&'static str]) -> Result<Vec<(&'static str, &'a Arg)>> {
    let mut bound: Vec<(&'static str, &Arg)> = Vec::new();
    for (place, arg) in args.iter().enumerate() {
        if arg.star != Star::None {
            return refuse(arg.span, "arguments are unpacked here");
        }
        let parameter = match &arg.name {
            Some(name) => parameters.iter().find(|p| **p == &*name.text),
            None => parameters.get(place),
        };
        match parameter {
            Some(p) if bound.iter().all(|(known, _)| known != p) => bound.push((p, arg)),
            _ => return refuse(arg.span, "no parameter fits this argument"),
        }
    }
    Ok(bound)
}

/// The argument for a parameter.
pub(super) fn given<'a>(bound: &[(&'static str, &'a Arg)], name: &str) -> Option<&'a Arg> {
    bound.iter().find(|(known, _)| *known == name).map(|(_, arg)| *arg)
}

/// The argument for a parameter that has no default.
pub(super) fn needed<'a>(bound: &[(&'static str, &'a Arg)], name: &str, call: Span) -> Result<&'a Arg> {
    match given(bound, name) {
        Some(arg) => Ok(arg),
        None => refuse(call, format!("the argument `{name}` is missing")),
    }
}

/// The elements of a tuple or list that is written out.
pub(super) fn elements<'a>(arg: &'a Arg, what: &str) -> Result<&'a [Expr]> {
    match &arg.value.kind {
        ExprKind::Tuple(items) | ExprKind::List(items) => {
            match items.iter().find(|e| matches!(e.kind, ExprKind::Starred(_))) {
                Some(starred) => refuse(starred.span, "elements are unpacked here"),
                None => Ok(items),
            }
        }
        _ => refuse(arg.span, format!("{what} is not written out as a tuple or a list")),
    }
}

/// The dimensions of `boundary_check`.
pub(super) fn dimensions(arg: Option<&Arg>, rank: usize) -> Result<Vec<usize>> {
    let Some(arg) = arg else { return Ok(Vec::new()) };
    let items = match &arg.value.kind {
        ExprKind::Int(_) => std::slice::from_ref(&arg.value),
        ExprKind::None => &[],
        _ => elements(arg, "`boundary_check`")?,
    };
    let mut checked = Vec::new();
    for item in items {
        match literal(item).and_then(|n| usize::try_from(n).ok()) {
            Some(n) if n < rank => checked.push(n),
            _ => return refuse(item.span, format!("this is no number of one of {rank} dimensions")),
        }
    }
    checked.sort_unstable();
    checked.dedup();
    Ok(checked)
}

/// The value of a number that is written out.
pub(super) fn literal(e: &Expr) -> Option<i128> {
    match &e.kind {
        ExprKind::Int(n) => Some(*n),
        ExprKind::UnaryOp { op: UnaryOp::USub, operand } => literal(operand).map(|n| -n),
        _ => None,
    }
}
