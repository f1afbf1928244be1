//! Uses of block pointers that are not rewritten.

use std::collections::HashSet;

use rtc_source::Span;

use super::access::PointerAccess;
use super::calls::{Result, refuse};
use super::handed::{PassedPointer, items};
use super::scan::{Scan, What, flat};
use crate::ast::{Expr, ExprKind, StmtKind, walk_expressions};

/// Refuses a use of one of the variables that is none of those that are rewritten.
pub(super) fn all_uses_known(
    scan: &Scan<'_>,
    variables: &HashSet<&str>,
    accesses: &[PointerAccess<'_>],
    handed: &[PassedPointer<'_>],
) -> Result<()> {
    let body = &scan.function.body;
    let inner: Vec<Span> = flat(body)
        .into_iter()
        .filter(|stmt| matches!(stmt.kind, StmtKind::FunctionDef(_) | StmtKind::ClassDef(_)))
        .map(|stmt| stmt.span)
        .collect();
    let returned: Vec<Span> = scan.returned.iter().flat_map(|value| items(value)).map(|(_, item)| item.span).collect();
    let mut unknown: Option<&Expr> = None;
    walk_expressions(body, &mut |e| {
        let ExprKind::Name(name) = &e.kind else { return };
        if unknown.is_some() || !variables.contains(&**name) {
            return;
        }
        let inside = |outer: &Span| outer.start <= e.span.start && e.span.end <= outer.end;
        let is_bound = scan.bindings.iter().filter(|b| variables.contains(b.target)).any(|b| match b.what {
            What::Given { .. } => b.at == e.span,
            _ => inside(&b.stmt),
        });
        let is_handed = handed.iter().any(|h| h.arg.value.span == e.span);
        let is_known =
            is_bound || is_handed || accesses.iter().any(|a| a.pointer == e.span) || returned.contains(&e.span);
        if !is_known || inner.iter().any(inside) {
            unknown = Some(e);
        }
    });
    unknown.map_or(Ok(()), |e| refuse(e.span, reason(scan, e)))
}

/// The manual change that such a use needs.
fn reason(scan: &Scan<'_>, e: &Expr) -> String {
    let mut reason = None;
    let is_own = |other: &Expr| other.span == e.span;
    walk_expressions(&scan.function.body, &mut |outer| match &outer.kind {
        ExprKind::Tuple(list) | ExprKind::List(list) if list.iter().any(is_own) => {
            reason = Some(
                "the block pointer is put in a tuple here: keep each block pointer in a variable of its own, and name that where \
                 it is used"
                    .to_owned(),
            );
        }
        ExprKind::Call { func, args } if args.iter().any(|arg| is_own(&arg.value)) => {
            let name = func.dotted_name().unwrap_or_else(|| "a function".to_owned());
            let is_advance = name.ends_with(".advance");
            reason = Some(match is_advance {
                true => "what `advance` gives is not assigned to a variable by a statement of its own".to_owned(),
                false => format!(
                    "the block pointer is handed to `{name}`, which is no function of this file that could be changed with it: hand \
                 over base, shape, strides and offsets, and let that function compute addresses and mask"
                ),
            });
        }
        _ => {}
    });
    reason.unwrap_or_else(|| {
        "the block pointer is used here in another way than by `load`, `store` and `advance`, as an argument or as a result"
            .to_owned()
    })
}
