//! Clamped rows: row indices beyond the last are replaced by row 0. Rewritten as rows modulo their number.
//!
//! ```text
//! where(offsets < M, offsets, 0)   →   offsets % M
//! ```
//!
//! Both are equal below `M`. The rows beyond do not matter if the remainders are dead once the loads are copies of
//! boxes, which the caller checks with [`are_gone`]. The kernel is a scratch copy of the caller.

use rtc_ir::{Builder, Kernel, Op, OpKind, Predicate, Value, constant_bits};

use crate::PassError;

/// Makes remainders of all such choices; gives the remainders.
pub(crate) fn as_remainders(kernel: &mut Kernel) -> Result<Vec<Op>, PassError> {
    let mut made = Vec::new();
    for op in rtc_ir::walk(kernel) {
        let OpKind::Select {} = kernel.kind(op) else { continue };
        let [condition, yes, no] = [0, 1, 2].map(|place| kernel.operand(op, place));
        let Some(compared) = kernel.def_op(unhinted(kernel, condition)) else { continue };
        let OpKind::CmpI { predicate: Predicate::Lt } = kernel.kind(compared) else { continue };
        let size = kernel.operand(compared, 1);
        let one_size = kernel.def_op(size).is_some_and(|op| matches!(kernel.kind(op), OpKind::Splat {}));
        if kernel.operand(compared, 0) != yes || !one_size || constant_bits(kernel, no) != Some(0) {
            continue;
        }
        let remainder = Builder::before(kernel, op).remsi(yes, size)?;
        kernel.replace_uses(kernel.result(op, 0), remainder);
        made.extend(kernel.def_op(remainder));
    }
    Ok(made)
}

/// A value behind hints.
fn unhinted(kernel: &Kernel, mut value: Value) -> Value {
    while let Some(op) = kernel.def_op(value).filter(|op| matches!(kernel.kind(*op), OpKind::Hint { .. })) {
        value = kernel.operand(op, 0);
    }
    value
}

/// Whether nothing of these is left in a kernel that was made of that with the remainders.
pub(crate) fn are_gone(kernel: &Kernel, remainders: &[Op]) -> bool {
    remainders.iter().all(|op| kernel.op(*op).parent.is_none())
}
