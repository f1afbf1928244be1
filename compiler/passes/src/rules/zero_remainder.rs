//! The remainder of a multiple of the divisor is zero. So is that by one, of tiles too.
//!
//! ```text
//! %x = muli %pid, 128;  %r = remsi %x, 32     →     %r = 0
//! ```

use rtc_ir::{Literal, Op, OpKind, constant_bits};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "zero-remainder", starts_from, rewrite };

fn starts_from(kind: &OpKind) -> bool {
    matches!(kind, OpKind::RemSI {} | OpKind::RemUI {})
}

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let Some([dividend, divisor]) = rewriter.sides(op) else { return Ok(false) };
    let Some(divisor) = constant_bits(rewriter, divisor) else { return Ok(false) };
    let is_scalar = rewriter.value_type(dividend).shape().is_none();
    // The divisibility of a tile is that of the first values of its runs alone.
    let is_multiple = divisor == 1
        || is_scalar && divisor.is_power_of_two() && rewriter.axis_infos().axis(dividend, 0).divisibility >= divisor;
    if is_multiple {
        rewriter.make_constant(op, Literal::Int(0));
    }
    Ok(is_multiple)
}
