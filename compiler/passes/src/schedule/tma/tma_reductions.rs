//! The atomic operations that TMA can do: those that combine a box of a tensor with a tile, with unobservable time,
//! order and old value.
//!
//! TMA reductions are relaxed, like the atomics of a descriptor, and asynchronous. So the kernel may access their
//! memory only by atomics of the same kind, and may not order accesses at all: another program must not be able to
//! observe that they are complete.

use rtc_abi::{DType, ParamType, ValueType};
use rtc_ir::effects::{EffectKind as Kind, On, Space};
use rtc_ir::{Elem, Kernel, MemScope, MemSemantic, Op, OpKind, RmwOp, Scalar};

use crate::access::addresses::memory;
use crate::access::box_access::BoxAccess;
use crate::access::box_analysis::BoxAnalysis;
use crate::access::refusal::Refusal;

/// How an atomic operation combines; `None` for other operations.
pub(crate) fn operation(kernel: &Kernel, op: Op) -> Option<RmwOp> {
    match kernel.kind(op) {
        OpKind::AtomicRmw { op, .. } => Some(*op),
        _ => None,
    }
}

/// The box that an atomic operation combines with a tile, if a copy can do it.
pub(crate) fn access(known: &mut BoxAnalysis<'_>, op: Op) -> Result<BoxAccess, Refusal> {
    let kernel = known.kernel;
    let OpKind::AtomicRmw { op: by, sem, scope, .. } = *kernel.kind(op) else { return Err(Refusal::AtomicType) };
    if is_ordered(sem, scope) || kernel.is_used(kernel.result(op, 0)) {
        return Err(Refusal::AtomicOrder);
    }
    let elem = kernel.value_type(kernel.operand(op, 1)).elem().and_then(Elem::num).ok_or(Refusal::AtomicType)?;
    if !by.has_copies(elem) {
        return Err(Refusal::AtomicType);
    }
    if shows(kernel, op, by) {
        return Err(Refusal::AtomicShared);
    }
    let access = known.stored(op)?;
    if !begins_inside(known, op, elem, &access) {
        return Err(Refusal::AtomicStart);
    }
    let signed = match &access.descriptor {
        Some(_) => pointee(kernel, &access).map(DType::is_signed),
        // Maps that the kernel makes are of unsigned integers.
        None => access.is_made.then_some(false),
    };
    match (by.signed(elem), signed) {
        (Some(wanted), Some(given)) if wanted != given => Err(Refusal::AtomicSign),
        _ => Ok(access),
    }
}

/// Whether copies that combine can begin where an access does: an H200 takes places before the tensor, and in a row those
/// that are no multiples of 16 bytes, for illegal instructions.
fn begins_inside(known: &BoxAnalysis<'_>, op: Op, elem: Scalar, access: &BoxAccess) -> bool {
    known.begins_inside(access).is_ok_and(|inside| inside)
        && known.is_multiple_at(&access.axes[access.inner].index, elem, Some(op))
}

/// The type of the elements as the descriptor among the arguments says it.
fn pointee(kernel: &Kernel, access: &BoxAccess) -> Option<DType> {
    let param = kernel.params.iter().find(|param| param.value == access.base)?;
    match &param.ty {
        ParamType::Value(ValueType::Pointer { pointee, .. }) => Some(*pointee),
        _ => None,
    }
}

fn is_ordered(sem: MemSemantic, scope: MemScope) -> bool {
    sem != MemSemantic::Relaxed || scope == MemScope::Sys
}

/// Whether an operation in the kernel can observe when the reduction by `by` happens.
fn shows(kernel: &Kernel, op: Op, by: RmwOp) -> bool {
    let Some(own) = memory(kernel, kernel.operand(op, 0)) else { return true };
    let meets = |other: Op| memory(kernel, kernel.operand(other, 0)).is_none_or(|memory| memory == own);
    rtc_ir::walk(kernel).into_iter().any(|other| match kernel.kind(other) {
        OpKind::Load { volatile, .. } => *volatile || meets(other),
        OpKind::Store { .. } | OpKind::CopyAsync { .. } => meets(other),
        OpKind::AtomicRmw { op: rmw, sem, scope, .. } => {
            let same = *rmw == by && !kernel.is_used(kernel.result(other, 0));
            is_ordered(*sem, *scope) || !same && meets(other)
        }
        OpKind::CopyGroup {} | OpKind::CopyAwait {} | OpKind::Barrier {} => false,
        OpKind::MmaAsync {} | OpKind::MmaAwait {} | OpKind::InlineAsm { pure: true, .. } => false,
        OpKind::Print { .. } | OpKind::Assertion { .. } | OpKind::Assume {} | OpKind::SpecialRegister { .. } => false,
        _ => kernel.effects(other).any(|(effect, _)| match effect.space {
            Space::Global => effect.access != Kind::Read || effect.on == On::Anything,
            Space::Outside | Space::Barrier => true,
            Space::Shared => false,
        }),
    })
}
