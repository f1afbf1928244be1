//! A loop over constants with one iteration is replaced by its operations.
//!
//! ```text
//! %r = for_range %zero, %one, %one, (%x) ^(%i, %a) { .. yields (%b) }   →   .., with %zero for %i, %x for %a, %b for %r
//! ```
//!
//! A loop with a dot stays: its operands are copied to shared memory like those of other loops.

use rtc_ir::{Kernel, Op, OpKind, Value, trip_count, view};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "single-iteration", starts_from, rewrite };

fn starts_from(kind: &OpKind) -> bool {
    matches!(kind, OpKind::ForRange { .. })
}

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let block = rewriter.op(op).blocks[0];
    if !runs_once(rewriter, op) {
        return Ok(false);
    }
    let given = [view::ForRange::at(rewriter, op).lower()].into_iter().chain(rewriter.variadic(op).iter().copied());
    let args: Vec<(Value, Value)> = rewriter.block(block).args.iter().copied().zip(given).collect();
    for (arg, value) in args {
        rewriter.replace_uses(arg, value);
    }
    Ok(rewriter.replace_by_block(op, block))
}

/// Whether a loop has one iteration, and no dot.
fn runs_once(kernel: &Kernel, op: Op) -> bool {
    let is_dot = |op: Op| matches!(kernel.kind(op), OpKind::Dot { .. });
    trip_count(kernel, op) == Some(1) && !kernel.ops(kernel.op(op).blocks[0]).any(is_dot)
}
