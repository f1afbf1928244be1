//! A mask that holds everywhere is taken off an access, and with it the value that a load gives elsewhere.
//!
//! ```text
//! %x = load %p, %true, %other    →   %x = load %p
//! ```

use rtc_ir::{Op, OpKind, constant_bits};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "full-mask", starts_from, rewrite };

fn starts_from(kind: &OpKind) -> bool {
    kind.spec().optional.contains(&"mask")
}

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let Some(mask) = rewriter.mask(op) else { return Ok(false) };
    if constant_bits(rewriter, mask).is_none_or(|bits| bits == 0) {
        return Ok(false);
    }
    let optional = rewriter.kind(op).spec().optional;
    for index in ["mask", "other"].into_iter().filter_map(|name| optional.iter().position(|other| *other == name)) {
        rewriter.clear_optional(op, index);
    }
    Ok(true)
}
