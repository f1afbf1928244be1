//! Loop-carried values that never change are replaced by their initial values, and results of branches that yield the same
//! value on both sides by that value. Bases, shapes and strides of block pointers are such values; constants among them
//! become visible.
//!
//! ```text
//! %r = for_range .., (%x) ^(%i: i32, %a: i32) { .. yields (%a) }   →   uses of %a and %r become %x
//! ```

use rtc_ir::{Kernel, Op, OpKind, Value, regions};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "invariant-iter-args", starts_from, rewrite };

fn starts_from(kind: &OpKind) -> bool {
    !regions::flow(kind).is_empty()
}

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let mut changed = false;
    // The slots themselves go with the dead code.
    for slot in regions::slots(rewriter, op) {
        let Some(value) = only_source(rewriter, &slot) else { continue };
        if !regions::is_outside(rewriter, value, op) {
            continue;
        }
        for target in slot.targets {
            if rewriter.is_used(target) {
                rewriter.replace_uses(target, value);
                changed = true;
            }
        }
    }
    Ok(changed)
}

/// The one value that comes into a slot from elsewhere.
fn only_source(kernel: &Kernel, slot: &regions::Slot) -> Option<Value> {
    let mut from_elsewhere = slot.values(kernel).filter(|value| !slot.targets.contains(value));
    let first = from_elsewhere.next()?;
    from_elsewhere.all(|value| value == first).then_some(first)
}
