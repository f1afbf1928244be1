//! Whether an operation is dead: nothing uses its results, and it has no effect.

use rtc_ir::effects::Effect;
use rtc_ir::{Kernel, Op, OpKind, Traits, regions};

/// Whether an operation has no effect, and no user.
pub(crate) fn is_dead(kernel: &Kernel, op: Op) -> bool {
    !kernel.op(op).results.iter().any(|result| kernel.is_used(*result)) && !has_effect(kernel, op)
}

/// Whether an operation or one nested in it does more than give results.
pub(crate) fn has_effect(kernel: &Kernel, op: Op) -> bool {
    let kind = kernel.kind(op);
    let traits = kind.spec().traits;
    if traits.has(Traits::NESTED) {
        let nested = &kernel.op(op).blocks;
        let has_effect = |o: Op| !is_terminator(kernel, o) && has_effect(kernel, o);
        return regions::may_not_end(kind) || nested.iter().any(|b| kernel.ops(*b).any(has_effect));
    }
    matches!(kind, OpKind::Load { volatile: true, .. })
        || is_terminator(kernel, op)
        || kind.spec().effects.iter().any(Effect::lasts)
}

/// Whether an operation ends a block.
pub(crate) fn is_terminator(kernel: &Kernel, op: Op) -> bool {
    kernel.kind(op).spec().traits.has(Traits::TERMINATOR)
}
