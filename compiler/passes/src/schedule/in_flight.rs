//! Dots in flight: which can be, and the waits for them.

use rtc_ir::{Builder, Kernel, Op, OpKind, Value};

use crate::PassError;

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
