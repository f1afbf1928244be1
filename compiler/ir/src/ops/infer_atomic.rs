//! Type rules of atomic operations.

use super::InferContext;
use super::infer::{Inferred, check_mask, elem, expect, is_arithmetic_float, one, pointee, store};
use crate::{Elem, MemSemantic, OpKind, RmwOp, Scalar, Type};

/// The value and the result have the pointee's type; the operation has the element type.
pub(super) fn atomic_rmw(cx: &InferContext<'_>) -> Inferred {
    let OpKind::AtomicRmw { op, .. } = cx.kind else { return Err("is not atomic_rmw".into()) };
    let wanted = pointee(cx.operands[0])?;
    expect(cx.operands[1] == wanted, || format!("the value is {}, not {wanted}", cx.operands[1]))?;
    check_mask(cx, cx.operands[0])?;
    check_rmw(*op, elem(wanted)?.num().unwrap_or(Scalar::I64))?;
    one(wanted)
}

/// Whether the machine has an atomic operation on elements of that type.
pub(super) fn check_rmw(op: RmwOp, scalar: Scalar) -> Result<(), String> {
    let fits = match op {
        RmwOp::FAdd => is_arithmetic_float(scalar.into()),
        RmwOp::FMax | RmwOp::FMin => matches!(scalar, Scalar::F16 | Scalar::BF16),
        RmwOp::Add | RmwOp::Max | RmwOp::Min | RmwOp::UMax | RmwOp::UMin => matches!(scalar, Scalar::I32 | Scalar::I64),
        RmwOp::And | RmwOp::Or | RmwOp::Xor | RmwOp::Xchg => scalar.bits() >= 32,
    };
    expect(fits, || format!("no atomic {op} on {scalar}"))
}

/// Both values and the result are what the pointers point to, of 16 bits or more.
pub(super) fn atomic_cas(cx: &InferContext<'_>) -> Inferred {
    let wanted = pointee(cx.operands[0])?;
    for ty in &cx.operands[1..3] {
        expect(*ty == wanted, || format!("an operand is {ty}, not {wanted}"))?;
    }
    expect(elem(wanted)?.bits() >= 16, || format!("no atomic_cas on {wanted}"))?;
    one(wanted)
}

/// Pointers give what they point to, of 8 bits or more.
pub(super) fn atomic_load(cx: &InferContext<'_>) -> Inferred {
    let OpKind::AtomicLoad { sem, .. } = cx.kind else { return Err("is not atomic_load".into()) };
    expect(matches!(sem, MemSemantic::Relaxed | MemSemantic::Acquire), || format!("a load cannot be {sem}"))?;
    let result = pointee(cx.operands[0])?;
    check_mask(cx, cx.operands[0])?;
    expect(elem(result)?.bits() >= 8, || format!("no atomic_load of {result}"))?;
    one(result)
}

/// The value is what the pointers point to, of 8 bits or more.
pub(super) fn atomic_store(cx: &InferContext<'_>) -> Inferred {
    let OpKind::AtomicStore { sem, .. } = cx.kind else { return Err("is not atomic_store".into()) };
    expect(matches!(sem, MemSemantic::Relaxed | MemSemantic::Release), || format!("a store cannot be {sem}"))?;
    expect(elem(cx.operands[1])?.bits() >= 8, || format!("no atomic_store of {}", cx.operands[1]))?;
    store(cx)
}

/// The expected integers are what the pointers point to, of 16 bits or more; a timeout is a scalar `i64`.
pub(super) fn atomic_poll(cx: &InferContext<'_>) -> Inferred {
    let OpKind::AtomicPoll { sem, .. } = cx.kind else { return Err("is not atomic_poll".into()) };
    expect(matches!(sem, MemSemantic::Relaxed | MemSemantic::Acquire), || format!("a load cannot be {sem}"))?;
    let wanted = pointee(cx.operands[0])?;
    expect(cx.operands[1] == wanted, || format!("the expected value is {}, not {wanted}", cx.operands[1]))?;
    let scalar = elem(wanted)?.num();
    let known = matches!(scalar, Some(Scalar::I16 | Scalar::I32 | Scalar::I64));
    expect(known, || format!("no atomic_poll of {wanted}"))?;
    if let Some(timeout) = cx.optional(1) {
        expect(timeout == Type::Scalar(Elem::Num(Scalar::I64)), || format!("the timeout is {timeout}, not i64"))?;
    }
    one(wanted.with_elem(Elem::Num(Scalar::I32)))
}
