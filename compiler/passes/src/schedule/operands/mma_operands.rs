//! Makes `mma`s of `wgmma` dots: their operands come from buffers, which other threads have filled or which a tile is
//! stored to where it is made; a left operand that is computed in the layout of the instruction comes from registers.

use rtc_ir::{AccumulatorForm, Builder, Kernel, Op, OpKind, SharedType, Value, ValueDef};
use rtc_layout::{MatrixDescriptor, SharedLayout};

use super::buffer_dots;
use super::operand_layouts::order;
use super::staged::StagedOperands;
use crate::PassError;

/// Whether the left operand of a `wgmma` dot is to come from registers.
pub(crate) fn in_registers(kernel: &Kernel, dot: Op) -> bool {
    let [lhs, acc] = [0, 2].map(|index| kernel.operand(dot, index));
    let (Some(layout), Some(sums)) = (kernel.layout_of(lhs), kernel.layout_of(acc)) else { return false };
    let bits = kernel.value_type(lhs).elem().map_or(0, |elem| elem.bits());
    matches!(bits, 16 | 32) && AccumulatorForm::of(sums).is_some_and(|form| form.takes(layout, bits))
}

/// Makes an `mma` of a `wgmma` dot.
pub(crate) fn stage_dot(kernel: &mut Kernel, op: Op, staged: &mut StagedOperands) -> Result<(), PassError> {
    let [lhs, rhs, acc] = [0, 1, 2].map(|index| kernel.operand(op, index));
    let late = are_loaded_together(kernel, op, staged);
    let lhs = if in_registers(kernel, op) { lhs } else { in_memory(kernel, op, lhs, 1, late, staged)? };
    let rhs = in_memory(kernel, op, rhs, 0, late, staged)?;
    let result = kernel.result(op, 0);
    let ty = kernel.value_type(result);
    let made = Builder::before(kernel, op).build(OpKind::Mma {}, &[lhs, rhs, acc], &[], &[], &[], &[ty])?;
    kernel.replace_op(op, kernel.result(made, 0));
    Ok(())
}

/// Whether both operands are loads before the dot that are still to be stored. They are stored after both: the second
/// load would else wait at the barrier before the first store, which waits for the first load.
fn are_loaded_together(kernel: &Kernel, op: Op, staged: &StagedOperands) -> bool {
    let is_load = |index: usize| {
        let (value, _) = buffer_dots::source(kernel, kernel.operand(op, index));
        let made = kernel.def_op(value).filter(|made| matches!(kernel.kind(*made), OpKind::Load { .. }));
        made.is_some_and(|made| kernel.op(made).parent == kernel.op(op).parent) && !staged.buffers.contains_key(&value)
    };
    !in_registers(kernel, op) && is_load(0) && is_load(1)
}

/// The buffer with an operand of a dot, whose axis `k_axis` is summed over, as a view if it lies there transposed. What
/// is not in memory is stored where it is made, or `late`, before the dot.
fn in_memory(
    kernel: &mut Kernel,
    op: Op,
    operand: Value,
    k_axis: usize,
    late: bool,
    staged: &mut StagedOperands,
) -> Result<Value, PassError> {
    let (value, transposed) = buffer_dots::source(kernel, operand);
    let bits = kernel.value_type(value).elem().map_or(0, |elem| elem.bits());
    let at = if transposed { 1 - k_axis } else { k_axis };
    let readable = |kernel: &Kernel, buffer: Value| {
        let ty = kernel.value_type(buffer).as_shared();
        ty.is_some_and(|ty| MatrixDescriptor::of(&kernel.slot_layout(ty), bits, at).is_some())
    };
    let known = staged.buffers.get(&value).copied().filter(|buffer| readable(kernel, *buffer));
    let buffer = match known {
        Some(buffer) => buffer,
        None => {
            let buffer = store(kernel, value, bits, at, late.then_some(op))?;
            staged.buffers.entry(value).or_insert(buffer);
            buffer
        }
    };
    if transposed { Ok(Builder::before(kernel, op).shared_trans_of(buffer, &[1, 0])?) } else { Ok(buffer) }
}

/// Stores a value where it is made, or before an operation, so that `wgmma` can sum over its axis `k_axis`.
fn store(kernel: &mut Kernel, value: Value, bits: u32, k_axis: usize, before: Option<Op>) -> Result<Value, PassError> {
    let none = || PassError::Internal("an operand that `wgmma` cannot read".into());
    let layout = kernel.layout_of(value).ok_or_else(none)?.clone();
    let forms = [order(&layout, 2).map_or(1, |order| order[0]), k_axis as u32].into_iter().filter_map(|inner| {
        let swizzle = SharedLayout::nvmma_swizzle(layout.shape()[inner as usize], bits);
        let shared = SharedLayout::nvmma(layout.shape(), bits, swizzle, &[inner, 1 - inner]);
        MatrixDescriptor::of(&shared, bits, k_axis).map(|form| (shared, form.align()))
    });
    let (shared, align) = forms.into_iter().next().ok_or_else(none)?;
    let elem = kernel.value_type(value).elem().ok_or_else(none)?;
    let ty: SharedType = kernel.shared_type(elem, &shared, 1).ok_or_else(none)?;
    let mut builder = match (before, kernel.value(value).def) {
        (Some(op), _) => Builder::before(kernel, op),
        (None, ValueDef::Result(op, _)) => Builder::after(kernel, op),
        (None, ValueDef::Arg(block, _)) => Builder::at_start(kernel, block),
    };
    let buffer = builder.buffer(ty, align)?;
    builder.local_store(value, buffer)?;
    Ok(buffer)
}
