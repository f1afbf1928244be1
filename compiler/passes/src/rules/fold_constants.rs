//! Exact operations on constants are constants.
//!
//! ```text
//! %c = addi %two, %three : i32   →   %c = constant {value = 5} : i32
//! ```

use rtc_ir::{Evaluate, Op, OpKind, Traits, fold};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "fold-constants", starts_from, rewrite };

fn starts_from(kind: &OpKind) -> bool {
    let spec = kind.spec();
    spec.traits.has(Traits::EXACT) && matches!(spec.eval, Evaluate::Each(_))
}

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let Some(literal) = fold(rewriter, op) else { return Ok(false) };
    rewriter.make_constant(op, literal);
    Ok(true)
}
