//! A difference that is a remainder is a remainder operation: fewer operations, and it is known not to be negative if the
//! dividend is not. Loops that start with a partial step begin like this.
//!
//! ```text
//! %q = divsi %x, %c                                 %r = remsi %x, %c
//! %p = muli %q, %c                            →
//! %r = subi %x, %p
//! ```

use rtc_ir::{Kernel, Op, OpKind, Value, constant_bits, view};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "raise-remainder", starts_from, rewrite };

fn starts_from(kind: &OpKind) -> bool {
    matches!(kind, OpKind::SubI {})
}

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let Some((signed, x, c)) = spelled(rewriter, op) else { return Ok(false) };
    let mut builder = rewriter.before(op);
    let remainder = if signed { builder.remsi(x, c)? } else { builder.remui(x, c)? };
    rewriter.replace_op(op, remainder);
    Ok(true)
}

/// `x` and `c` of `x - x / c * c`, and whether the quotient is signed.
fn spelled(kernel: &Kernel, op: Op) -> Option<(bool, Value, Value)> {
    let difference = view::SubI::of(kernel, op)?;
    let x = difference.lhs();
    let product = view::MulI::defining(kernel, difference.rhs())?;
    let sides = [product.lhs(), product.rhs()];
    [0, 1].into_iter().find_map(|place| {
        let (quotient, c) = (kernel.def_op(sides[place])?, sides[1 - place]);
        let signed = match kernel.kind(quotient) {
            OpKind::DivSI {} => true,
            OpKind::DivUI {} => false,
            _ => return None,
        };
        let [dividend, divisor] = kernel.sides(quotient)?;
        let of_same = dividend == x && are_same(kernel, divisor, c);
        of_same.then_some((signed, x, c))
    })
}

/// Whether both are one value, or the same constant.
fn are_same(kernel: &Kernel, a: Value, b: Value) -> bool {
    let constants = [a, b].map(|value| constant_bits(kernel, value));
    let types = [a, b].map(|value| kernel.value_type(value));
    a == b || types[0] == types[1] && constants[0].is_some() && constants[0] == constants[1]
}
