//! The operations that compute the addresses and masks of a loop's copies, and whether they can be executed ahead of
//! time.

use std::collections::HashSet;

use rtc_ir::effects::{EffectKind, Space};
use rtc_ir::{Block, Kernel, Op, OpKind, Scalar, Traits, Value, constant_bits, regions, view};

use super::in_place;
use crate::dependence::slice;

/// How many users of a value are followed.
const FAR: usize = 64;

/// The part of a loop's body that some of its values follow from.
pub(crate) struct Addresses {
    /// Its operations in program order.
    pub ops: Vec<Op>,
}

/// The backward slice of `roots` in the body of the loop `of`, loop-carried values included; `None` if a part of it
/// cannot be computed for later iterations.
pub(crate) fn addresses(kernel: &Kernel, of: Op, roots: &[Value]) -> Option<Addresses> {
    let body = kernel.op(of).blocks[0];
    let slice = slice(kernel, body, roots.to_vec());
    slice.iter().all(|op| is_repeatable(kernel, *op)).then_some(())?;
    let ops = kernel.ops(body).filter(|op| slice.contains(op)).collect();
    Some(Addresses { ops })
}

/// Whether an operation may be executed again, for a later iteration. The memory that a load reads must be unchanged,
/// too ([`is_unchanged`]).
fn is_repeatable(kernel: &Kernel, op: Op) -> bool {
    match kernel.kind(op) {
        OpKind::Load { volatile, .. } => !volatile,
        OpKind::ConvertLayout {} => true,
        _ => kernel.only_computes(op),
    }
}

/// Whether addresses are computed from a value, as from the entries of a block table.
pub(crate) fn is_part_of_address(kernel: &Kernel, value: Value) -> bool {
    let mut pending = vec![value];
    let mut seen = HashSet::new();
    while let Some(value) = pending.pop() {
        for user in kernel.users(value) {
            match kernel.kind(user) {
                OpKind::AddPtr {} => return true,
                OpKind::Broadcast {} | OpKind::ExpandDims { .. } | OpKind::Trans { .. } | OpKind::ConvertLayout {} => {}
                kind if kind.spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE)) => {}
                _ => continue,
            }
            if seen.len() < FAR && seen.insert(user) {
                pending.extend(kernel.op(user).results.iter());
            }
        }
    }
    false
}

/// Whether reads through `pointer` may be moved to earlier iterations of a loop: nothing in it orders accesses, and if it
/// writes, then to other memory, or to places that no later iteration reads.
pub(crate) fn is_unchanged(kernel: &Kernel, of: Op, pointer: Value) -> bool {
    is_unchanged_but_for(kernel, of, pointer, |_| false)
}

/// The same in a loop with copies: the waits for them order nothing else.
pub(crate) fn is_unchanged_beside_copies(kernel: &Kernel, of: Op, pointer: Value) -> bool {
    let waits = |kind: &OpKind| matches!(kind, OpKind::Barrier {} | OpKind::CopyGroup {} | OpKind::CopyAwait {});
    is_unchanged_but_for(kernel, of, pointer, waits)
}

fn is_unchanged_but_for(kernel: &Kernel, of: Op, pointer: Value, passed: impl Fn(&OpKind) -> bool) -> bool {
    let read = memory(kernel, pointer);
    rtc_ir::walk_nested(kernel, of).into_iter().all(|op| match kernel.kind(op) {
        kind if passed(kind) => true,
        OpKind::Print { .. } | OpKind::Assertion { .. } | OpKind::Assume {} | OpKind::SpecialRegister { .. } => true,
        OpKind::InlineAsm { pure: true, .. } => true,
        OpKind::Store { .. } => {
            let written = memory(kernel, kernel.operand(op, 0));
            let is_other = read.is_some() && written.is_some() && written != read;
            is_other || in_place::is_ahead_of(kernel, of, pointer, op)
        }
        // It releases what is before it at most: no thread learns what it has acquired.
        OpKind::AtomicRmw { .. } if !kernel.is_used(kernel.result(op, 0)) => {
            let written = memory(kernel, view::AtomicRmw::at(kernel, op).pointer());
            read.is_some() && written.is_some() && written != read
        }
        _ => kernel.effects(op).all(|(effect, _)| match effect.space {
            Space::Outside | Space::Barrier => false,
            Space::Global => effect.access == EffectKind::Read,
            Space::Shared => true,
        }),
    })
}

/// Memory that a kernel reaches through its arguments. Different arguments count as different memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Memory {
    /// The memory behind a pointer argument.
    Of(Value),
    /// The memory behind addresses that are loaded through an argument.
    Behind(Value),
}

/// The memory that a pointer leads to.
pub(crate) fn memory(kernel: &Kernel, pointer: Value) -> Option<Memory> {
    if let Some(argument) = base(kernel, pointer) {
        return Some(Memory::Of(argument));
    }
    let mut value = pointer;
    loop {
        let op = kernel.def_op(value)?;
        match kernel.kind(op) {
            OpKind::Load { .. } => return base(kernel, kernel.operand(op, 0)).map(Memory::Behind),
            OpKind::IntToPtr { .. } | OpKind::AddPtr {} => value = kernel.operand(op, 0),
            kind if passes_pointer(kind) => value = kernel.operand(op, 0),
            _ => return None,
        }
    }
}

/// Whether a value is its first operand, perhaps in another shape or layout, or to elements of another type.
fn passes_pointer(kind: &OpKind) -> bool {
    kind.forwards().is_some() || matches!(kind, OpKind::Bitcast { .. })
}

/// The one argument of the kernel that a pointer is computed from.
pub(crate) fn base(kernel: &Kernel, pointer: Value) -> Option<Value> {
    let (mut found, mut seen, mut work) = (None, HashSet::new(), vec![pointer]);
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        if kernel.params.iter().any(|param| param.value == value) {
            if found.is_some_and(|other| other != value) {
                return None;
            }
            found = Some(value);
            continue;
        }
        if let Some(slot) = regions::slot_of(kernel, value) {
            work.extend(slot.values(kernel));
            continue;
        }
        let op = kernel.def_op(value)?;
        match kernel.kind(op) {
            OpKind::AddPtr {} => work.push(kernel.operand(op, 0)),
            kind if passes_pointer(kind) => work.push(kernel.operand(op, 0)),
            OpKind::Select {} => work.extend([kernel.operand(op, 1), kernel.operand(op, 2)]),
            _ => return None,
        }
    }
    found
}

/// The step of a loop, if it is a small positive number known beforehand.
pub(crate) fn small_step(kernel: &Kernel, of: Op) -> Option<i64> {
    let step = kernel.operand(of, 2);
    let index = kernel.value_type(step).elem()?.num()?;
    let step = i64::try_from(constant_bits(kernel, step)?).ok()?;
    (matches!(index, Scalar::I32 | Scalar::I64) && (1..=1 << 20).contains(&step)).then_some(step)
}

/// The loops whose operations run on tiles and that have no other loops in them.
pub(crate) fn innermost_loops(kernel: &Kernel) -> Vec<Op> {
    let is_plain = |op: &Op| {
        let OpKind::ForRange { .. } = kernel.kind(*op) else { return false };
        !has_loops(kernel, kernel.op(*op).blocks[0])
    };
    rtc_ir::walk(kernel).into_iter().filter(is_plain).collect()
}

fn has_loops(kernel: &Kernel, body: Block) -> bool {
    rtc_ir::walk_block(kernel, body)
        .into_iter()
        .any(|op| regions::is_loop(kernel.kind(op)) || regions::is_concurrent(kernel.kind(op)))
}

/// The loads in a loop's body from which operands of its dots are computed.
pub(crate) fn loads_of_dots(kernel: &Kernel, of: Op) -> Vec<Op> {
    let body = kernel.op(of).blocks[0];
    let (mut seen, mut work) = (HashSet::new(), Vec::new());
    for op in rtc_ir::walk_block(kernel, body) {
        if let OpKind::Dot { .. } = kernel.kind(op) {
            work.extend([kernel.operand(op, 0), kernel.operand(op, 1)]);
        }
    }
    while let Some(value) = work.pop() {
        let Some(op) = kernel.def_op(value).filter(|op| kernel.op(*op).parent == Some(body)) else { continue };
        let goes_on = kernel.kind(op).spec().traits.has(Traits::PURE) && !matches!(kernel.kind(op), OpKind::Dot { .. });
        if seen.insert(op) && goes_on {
            work.extend(&kernel.op(op).operands);
        }
    }
    kernel.ops(body).filter(|op| seen.contains(op) && matches!(kernel.kind(*op), OpKind::Load { .. })).collect()
}
