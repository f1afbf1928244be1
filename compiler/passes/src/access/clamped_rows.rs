//! Clamped rows: row indices beyond the last are replaced by row 0. Rewritten as rows modulo their number.
//!
//! ```text
//! where(offsets < M, offsets, 0)   →   offsets % M
//! ```
//!
//! Both are equal below `M`. The rows beyond do not matter to loads that become copies of boxes. What else uses the
//! remainders once they have, such as the address of a store, gets the choices again from [`restore`]. The kernel is a scratch
//! copy of the caller.

use rtc_ir::{Builder, Kernel, Literal, Op, OpKind, Predicate, Value, constant_bits};

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

/// Makes choices again of those of the remainders that are left.
pub(crate) fn restore(kernel: &mut Kernel, remainders: &[Op]) -> Result<(), PassError> {
    let left: Vec<Op> = remainders.iter().copied().filter(|op| kernel.op(*op).parent.is_some()).collect();
    for op in left {
        let [yes, size] = [0, 1].map(|place| kernel.operand(op, place));
        let ty = kernel.value_type(yes);
        let mut builder = Builder::before(kernel, op);
        let condition = builder.cmpi(yes, size, Predicate::Lt)?;
        let no = builder.constant_of(Literal::Int(0), ty)?;
        let choice = builder.select(condition, yes, no)?;
        kernel.replace_op(op, choice);
    }
    Ok(())
}
