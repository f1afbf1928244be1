//! Constants that are added one after the other are one: addresses keep what is known of their alignment.
//!
//! ```text
//! %a = addi %x, 3;  %b = subi %a, 4     →     %b = addi %x, -1
//! ```

use rtc_ir::{Kernel, Literal, Op, OpKind, Value, constant_int};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "add-constants", starts_from, rewrite };

fn starts_from(kind: &OpKind) -> bool {
    matches!(kind, OpKind::AddI {} | OpKind::SubI {})
}

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let Some((inner, outer)) = added(rewriter, rewriter.result(op, 0)) else { return Ok(false) };
    let Some((x, first)) = added(rewriter, inner) else { return Ok(false) };
    let ty = rewriter.value_type(x);
    let bits = ty.elem().map_or(0, |elem| elem.bits());
    // A sum that wraps around would look like an overflow of the address.
    let fits = |sum: &i64| bits > 1 && *sum >= -1 << (bits - 1) && *sum <= i64::MAX >> (64 - bits);
    let Some(sum) = first.checked_add(outer).filter(fits) else { return Ok(false) };
    let new = if sum == 0 {
        x
    } else {
        let mut builder = rewriter.before(op);
        let constant = builder.constant_of(Literal::Int(sum), ty)?;
        builder.addi(x, constant)?
    };
    rewriter.replace_op(op, new);
    Ok(true)
}

/// What a value is the sum of, if it is one of something and a constant.
fn added(kernel: &Kernel, value: Value) -> Option<(Value, i64)> {
    let op = kernel.def_op(value)?;
    let [left, right] = kernel.sides(op)?;
    let [of_left, of_right] = [left, right].map(|side| constant_int(kernel, side));
    match (kernel.kind(op), of_left, of_right) {
        (OpKind::AddI {}, None, Some(constant)) => Some((left, constant)),
        (OpKind::AddI {}, Some(constant), None) => Some((right, constant)),
        (OpKind::SubI {}, None, Some(constant)) => Some((left, constant.checked_neg()?)),
        _ => None,
    }
}
