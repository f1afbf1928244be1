//! A branch on a constant is replaced by the operations of the side that is taken.
//!
//! ```text
//! %r = if_else %true ^() { .. yields (%a) } ^() { .. yields (%b) }   →   .., and uses of %r become %a
//! ```

use rtc_ir::{Op, OpKind, constant_bits, view};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "known-branch", starts_from, rewrite };

fn starts_from(kind: &OpKind) -> bool {
    matches!(kind, OpKind::IfElse {})
}

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let condition = view::IfElse::at(rewriter, op).condition();
    let Some(bits) = constant_bits(rewriter, condition) else { return Ok(false) };
    let taken = rewriter.op(op).blocks[usize::from(bits == 0)];
    Ok(rewriter.replace_by_block(op, taken))
}
