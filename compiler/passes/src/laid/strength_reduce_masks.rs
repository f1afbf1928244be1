//! Compares differences with constants where each thread has many of the compared indices, as in a causal mask.
//!
//! ```text
//! %keys = addi %at, %i : tile<128xi32, #l0>      %own = andi %i, 6                   what the lane decides
//! ..                                             %rest = andi %i, 121                what the register decides: constants
//! %m = cmpi %rows, %keys {predicate = ge}   →    %keys = addi %at, %own
//!                                                %d = subi %rows, %keys
//!                                                %m = cmpi %d, %rest {predicate = ge}
//! ```
//!
//! A thread of a `wgmma` layout has 32 of 128 keys. They are the sums of one number and 32 constants, which LLVM
//! computes before the loop: 32 registers throughout it, or 32 additions in each iteration. There is one difference per
//! row, and the constants become immediates of the comparisons. Keys must be at least 0 in launches of expected size,
//! otherwise the kernel is unchanged; the other side may be anything, since a value below -1 compares like -1, and no
//! difference overflows. Masks of memory accesses and of clamped rows are left alone: later passes analyse them.

use std::collections::HashSet;

use rtc_ir::analysis::Ranges;
use rtc_ir::{Builder, Kernel, Literal, Op, OpKind, Phase, Predicate, Scalar, Value, regions, view};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "strength-reduce-masks", needs: Phase::Laid, leaves: Phase::Laid, run };

/// With fewer constants the differences are not profitable.
const LEAST_CONSTANTS: u32 = 8;

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let ops = rtc_ir::walk(kernel);
    let mut candidates: Vec<IndexCompare> = ops.into_iter().filter_map(|op| IndexCompare::of(kernel, op)).collect();
    if candidates.is_empty() {
        return Ok(());
    }
    let ranges = Ranges::new(kernel);
    candidates.retain(|found| {
        let keys = kernel.operand(found.compare, found.side);
        ranges.expected(keys).low >= 0 && !is_of_unknown_sign(kernel, &ranges, keys)
    });
    let low: Vec<bool> = candidates
        .iter()
        .map(|found| ranges.expected(kernel.operand(found.compare, 1 - found.side)).low < -1)
        .collect();
    drop(ranges);
    for (found, may_be_low) in candidates.into_iter().zip(low) {
        found.apply(kernel, may_be_low)?;
    }
    Ok(())
}

/// A comparison that is to be replaced.
struct IndexCompare {
    compare: Op,
    /// Which operand is the sum of an index.
    side: usize,
    /// The index.
    index: Value,
    /// The bits of it that the register determines.
    of_register: u32,
}

impl IndexCompare {
    fn of(kernel: &Kernel, compare: Op) -> Option<IndexCompare> {
        let OpKind::CmpI { predicate: Predicate::Lt | Predicate::Le | Predicate::Gt | Predicate::Ge } =
            kernel.kind(compare)
        else {
            return None;
        };
        if regions::loop_around(kernel, compare).is_none() || !chooses_only(kernel, kernel.result(compare, 0), compare)
        {
            return None;
        }
        (0..2).find_map(|side| {
            let (index, axis) = index_of(kernel, kernel.operand(compare, side))?;
            let of_register = bits_of_register(kernel, index)?;
            let other = kernel.operand(compare, 1 - side);
            (1 << of_register.count_ones() >= LEAST_CONSTANTS && is_equal_along(kernel, other, axis))
                .then_some(IndexCompare { compare, side, index, of_register })
        })
    }

    fn apply(&self, kernel: &mut Kernel, may_be_low: bool) -> Result<(), PassError> {
        let IndexCompare { compare, side, index, of_register } = *self;
        let (sum, mut other) = (kernel.operand(compare, side), kernel.operand(compare, 1 - side));
        let ty = kernel.value_type(index);
        let made = kernel.def_op(index).ok_or_else(|| PassError::Internal("an index that nothing makes".into()))?;
        let mut builder = Builder::after(kernel, made);
        let bits = builder.constant_of(Literal::Int(of_register.into()), ty)?;
        let rest = builder.andi(index, bits)?;
        let bits = builder.constant_of(Literal::Int((!of_register as i32).into()), ty)?;
        let own = builder.andi(index, bits)?;
        let mut builder = Builder::before(kernel, compare);
        let own = with_index(&mut builder, sum, index, own, true)?;
        let rest = with_index(&mut builder, sum, index, rest, false)?;
        if may_be_low {
            let ty = builder.kernel().value_type(other);
            let low = builder.constant_of(Literal::Int(-1), ty)?;
            other = builder.maxsi(other, low)?;
        }
        let difference = builder.subi(other, own)?;
        kernel.set_operand(compare, side, rest);
        kernel.set_operand(compare, 1 - side, difference);
        Ok(())
    }
}

/// Whether a value follows from a quotient or a remainder whose divisor may be negative: the expected range does not know that.
fn is_of_unknown_sign(kernel: &Kernel, ranges: &Ranges<'_>, value: Value) -> bool {
    let (mut open, mut seen) = (vec![value], HashSet::new());
    while let Some(value) = open.pop() {
        let Some(op) = kernel.def_op(value).filter(|op| seen.insert(*op)) else { continue };
        let divisor = match kernel.kind(op) {
            OpKind::DivSI {} => Some(view::DivSI::at(kernel, op).rhs()),
            OpKind::RemSI {} => Some(view::RemSI::at(kernel, op).rhs()),
            _ => None,
        };
        if divisor.is_some_and(|divisor| ranges.of(divisor).low < 1) {
            return true;
        }
        open.extend(&kernel.op(op).operands);
    }
    false
}

/// Whether a mask does nothing but choose between values, none of which it compares: clamped rows are recognized later
/// (`clamped_rows.rs`).
fn chooses_only(kernel: &Kernel, mask: Value, compare: Op) -> bool {
    let is_compared = |value: &Value| kernel.op(compare).operands.contains(value);
    kernel.users(mask).into_iter().all(|user| match kernel.kind(user) {
        OpKind::Select {} => !kernel.op(user).operands.iter().any(is_compared),
        OpKind::AndI {} | OpKind::OrI {} | OpKind::XorI {} | OpKind::Hint { .. } | OpKind::Broadcast {} => {
            chooses_only(kernel, kernel.result(user, 0), compare)
        }
        _ => false,
    })
}

/// The index that a tile is the sum of, with something that is the same everywhere, and the dimension along which it runs.
fn index_of(kernel: &Kernel, value: Value) -> Option<(Value, usize)> {
    let op = kernel.def_op(value)?;
    let operand = |index: usize| kernel.operand(op, index);
    match kernel.kind(op) {
        OpKind::Arange { start, .. } => {
            let size = kernel.value_type(value).shape()?[0];
            let is_aligned = start % i64::from(size) == 0;
            (is_aligned && kernel.value_type(value).elem()?.num()? == Scalar::I32).then_some((value, 0))
        }
        OpKind::Broadcast {} | OpKind::Hint { .. } => index_of(kernel, operand(0)),
        OpKind::ExpandDims { axis } => {
            let (index, along) = index_of(kernel, operand(0))?;
            Some((index, along + usize::from(*axis as usize <= along)))
        }
        OpKind::AddI {} => (0..2).find_map(|side| {
            let (index, axis) = index_of(kernel, operand(side))?;
            is_equal_along(kernel, operand(1 - side), axis).then_some((index, axis))
        }),
        _ => None,
    }
}

/// Whether a tile is known to be the same along a dimension.
fn is_equal_along(kernel: &Kernel, value: Value, axis: usize) -> bool {
    let Some(op) = kernel.def_op(value) else { return false };
    let shape = |value: Value| kernel.value_type(value).shape();
    match kernel.kind(op) {
        OpKind::Splat {} | OpKind::Constant { .. } => true,
        OpKind::Broadcast {} => {
            let from = view::Broadcast::at(kernel, op).source();
            shape(from).is_some_and(|shape| shape[axis] == 1) || is_equal_along(kernel, from, axis)
        }
        OpKind::ExpandDims { axis: new } => {
            let (source, new) = (view::ExpandDims::at(kernel, op).source(), *new as usize);
            new == axis || is_equal_along(kernel, source, axis - usize::from(new < axis))
        }
        OpKind::AddI {} | OpKind::SubI {} | OpKind::MulI {} => {
            (0..2).all(|side| is_equal_along(kernel, kernel.operand(op, side), axis))
        }
        _ => false,
    }
}

/// The bits of an index that registers decide and nothing else does.
fn bits_of_register(kernel: &Kernel, index: Value) -> Option<u32> {
    let layout = kernel.layout_of(index)?;
    let (mut own, mut others) = (0, 0);
    let bases = layout.bases();
    bases.register.iter().for_each(|base| own |= base[0]);
    bases.lane.iter().chain(&bases.warp).chain(&bases.block).for_each(|base| others |= base[0]);
    (own & others == 0).then_some(own)
}

/// The sum with another index in place of its own; without the other terms unless `whole`.
fn with_index(
    builder: &mut Builder<'_>,
    sum: Value,
    index: Value,
    other: Value,
    whole: bool,
) -> Result<Value, PassError> {
    if sum == index {
        return Ok(other);
    }
    let kernel = builder.kernel();
    let missing = || PassError::Internal("the index of a comparison".into());
    let op = kernel.def_op(sum).ok_or_else(missing)?;
    let (kind, ty) = (kernel.kind(op).clone(), kernel.value_type(sum));
    let mut operands = kernel.op(op).operands.to_vec();
    let side = operands.iter().position(|from| index_of(kernel, *from).is_some_and(|found| found.0 == index));
    let side = side.ok_or_else(missing)?;
    operands[side] = with_index(builder, operands[side], index, other, whole)?;
    // A hint about the index need not hold for a part of it.
    if !whole && matches!(kind, OpKind::AddI {}) || matches!(kind, OpKind::Hint { .. }) {
        return Ok(operands[side]);
    }
    let made = builder.build(kind, &operands, &[], &[], &[], &[ty])?;
    Ok(builder.kernel().result(made, 0))
}
