//! Dots in flight: which can be, and the waits for them.

use rtc_ir::{Builder, Kernel, Op, OpKind, Value};

use super::pipeline::expander::{Ends, Expanded, StagedLoop, expand};
use crate::PassError;
use crate::pass::missing;

/// Whether a dot can be waited for later than it is begun: its accumulators have 32 bits.
pub(crate) fn can_be(kernel: &Kernel, mma: Op) -> bool {
    kernel.value_type(kernel.result(mma, 0)).elem().is_some_and(|elem| elem.bits() == 32)
}

/// Whether an operation becomes a call: the assembler lets no dot be in flight there.
pub(crate) fn is_call(kernel: &Kernel, op: Op) -> bool {
    matches!(kernel.kind(op), OpKind::Print { .. } | OpKind::Assertion { .. })
}

/// Waits for dots, and replaces all other uses of their accumulators by what the wait gives.
pub(crate) fn wait(mut at: Builder<'_>, accs: &[Value]) -> Result<Op, PassError> {
    let wait = at.await_dots(accs)?;
    let kernel = at.kernel_mut();
    for (number, acc) in accs.iter().enumerate() {
        kernel.replace_uses_except(*acc, kernel.result(wait, number), Some(wait));
    }
    Ok(wait)
}

/// Expands a loop whose steady state begins these dots, and has these waits for them; outside of it no dots overlap.
pub(crate) fn expand_with_dots(
    kernel: &mut Kernel,
    of: Op,
    order: Vec<(Op, u32)>,
    mmas: &[Op],
    waits: &[Op],
) -> Result<Expanded, PassError> {
    for mma in mmas {
        *kernel.kind_mut(*mma) = OpKind::MmaAsync {};
    }
    let staged = StagedLoop::new(kernel, of, order, Ends::Peeled).ok_or_else(|| missing("a loop"))?;
    let expanded = expand(kernel, staged)?;
    for (op, copy) in expanded.before.iter().chain(&expanded.after) {
        if mmas.contains(op) {
            *kernel.kind_mut(*copy) = OpKind::Mma {};
        } else if waits.contains(op) {
            kernel.replace_op(*copy, kernel.operand(*copy, 0));
        }
    }
    Ok(expanded)
}
