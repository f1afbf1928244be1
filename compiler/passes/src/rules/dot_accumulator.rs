//! Fuses an addition to the result of a dot into the dot's accumulator.
//!
//! ```text
//! %d = dot %a, %b, %zeros            →   %s = dot %a, %b, %acc
//! %s = addf %acc, %d
//! ```
//!
//! MMA instructions add to an accumulator, so that a separate addition would cost an instruction and a second set of
//! registers. Not for dots that have to be accumulated outside of the tensor cores (`max_num_imprecise_acc`).

use rtc_ir::{Kernel, Op, OpKind, Value, constant_bits, view};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "dot-accumulator", starts_from, rewrite };

fn starts_from(kind: &OpKind) -> bool {
    matches!(kind, OpKind::AddF {} | OpKind::AddI {})
}

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let Some([lhs, rhs]) = rewriter.sides(op) else { return Ok(false) };
    for (result, other) in [(lhs, rhs), (rhs, lhs)] {
        if let Some(dot) = folds(rewriter, op, result, other) {
            rewriter.set_operand(dot, 2, other);
            rewriter.replace_op(op, result);
            return Ok(true);
        }
    }
    Ok(false)
}

/// The dot whose result is used by `sum` alone, if it can start from `other` instead of from zeros.
fn folds(kernel: &Kernel, sum: Op, result: Value, other: Value) -> Option<Op> {
    let dot = kernel.def_op(result)?;
    let OpKind::Dot { max_imprecise, .. } = kernel.kind(dot) else { return None };
    let alone = kernel.users(result) == [sum] && result != other && kernel.op(dot).parent == kernel.op(sum).parent;
    let from_zero = constant_bits(kernel, view::Dot::at(kernel, dot).acc()) == Some(0);
    // The addend must be defined before the dot.
    let ready = kernel.def_op(other).is_none_or(|made| {
        kernel.op(made).parent != kernel.op(dot).parent || (made != dot && kernel.is_before(made, dot))
    });
    (alone && from_zero && ready && max_imprecise.is_none()).then_some(dot)
}
