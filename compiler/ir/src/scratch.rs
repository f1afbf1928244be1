//! The scratch memory of an operation.
//!
//! Operations that move values between warps use a buffer of their own, the `scratch` operand. Allocation and lowering
//! must agree on when it is needed and on its size, so both use these functions. Buffers of several operands follow
//! each other, each aligned to [`SCRATCH_ALIGN`].

use rtc_layout::{InputBit, Layout, Multiplier, operand_plan, reduce_plan};

use crate::{DotKind, Elem, Kernel, Op, OpKind, Value, view};

/// The alignment of a scratch buffer and of each part of it, in bytes.
pub const SCRATCH_ALIGN: u32 = 16;

/// The bytes and the alignment of a tensor map.
pub const MAP_BYTES: u32 = 128;

/// The alignment of an operation's scratch buffer.
pub fn scratch_align(kind: &OpKind) -> u32 {
    match kind {
        OpKind::MakeMap { .. } => MAP_BYTES,
        _ => SCRATCH_ALIGN,
    }
}

/// The bytes of scratch memory that an operation of phase `Laid` needs; `None` if it needs none.
pub fn scratch_bytes(kernel: &Kernel, op: Op) -> Option<u32> {
    let data = kernel.op(op);
    let first = |values: &[Value]| values.first().and_then(|value| kernel.layout_of(*value));
    match &data.kind {
        OpKind::Reduce { axis } => {
            let operands = kernel.variadic(op);
            let step = reduce_plan(first(operands)?, *axis as usize).warp_step?;
            Some(parts(kernel, operands, step.partial.elements()))
        }
        OpKind::Scan { axis, .. } => {
            let operands = kernel.variadic(op);
            let count = scan_partials(first(operands)?, *axis as usize)?;
            Some(parts(kernel, operands, count))
        }
        OpKind::AtomicRmw { .. } | OpKind::AtomicCas { .. } | OpKind::AtomicLoad { .. } | OpKind::AtomicPoll { .. } => {
            let result = data.results[0];
            let held_once = kernel.layout_of(result).is_some_and(|layout| {
                let copies = layout.copies();
                copies.lanes == 0 && copies.warps == 0
            });
            let used = kernel.is_used(result);
            (used && !held_once).then(|| tile_bytes(kernel, result))
        }
        OpKind::Gather { .. } => Some(tile_bytes(kernel, view::Gather::at(kernel, op).source())),
        OpKind::Sort { .. } => {
            // Partners in registers and lanes are combined by shuffles. An unused buffer would be wrong, not only
            // wasteful: an operation with a buffer is assumed to contain a barrier.
            let source = view::Sort::at(kernel, op).source();
            let layout = kernel.layout_of(source)?;
            let crosses = |bit: &InputBit| !matches!(bit, InputBit::Register(_) | InputBit::Lane(_));
            let needed = layout.axis_bits(layout.rank() - 1).is_none_or(|bits| bits.iter().any(crosses));
            needed.then(|| tile_bytes(kernel, source))
        }
        OpKind::Dot { kind, .. } => {
            let multiplier = multiplier(*kind)?;
            // Operands are widened to the elements of the sums before they are stored.
            let dot = view::Dot::at(kernel, op);
            let bits = kernel.value_type(dot.acc()).elem()?.bytes() * 8;
            let bytes = |index: u32, operand: Value| {
                let source = kernel.layout_of(operand)?;
                Some(operand_plan(source, kernel.layout_of(dot.acc())?, index, bits, multiplier).bytes())
            };
            Some(bytes(0, dot.lhs())? + bytes(1, dot.rhs())?)
        }
        OpKind::Histogram { bins } => Some(bins * 4),
        OpKind::MakeMap { .. } => Some(MAP_BYTES),
        _ => None,
    }
}

/// The multiplier of a dot whose operands come from shared memory; `None` for other dots.
pub fn multiplier(kind: DotKind) -> Option<Multiplier> {
    match kind {
        DotKind::FmaShared => Some(Multiplier::Threads),
        DotKind::MmaF64 => Some(Multiplier::MmaF64),
        DotKind::Unset | DotKind::Fma | DotKind::MmaV2 | DotKind::Wgmma => None,
    }
}

/// How many partial results per operand a scan along `axis` exchanges between warps; `None` if it stays within warps.
pub fn scan_partials(layout: &Layout, axis: usize) -> Option<u32> {
    let bits = layout.axis_bits(axis)?;
    let warps = bits.iter().filter(|bit| matches!(bit, InputBit::Warp(_))).count();
    if warps == 0 {
        return None;
    }
    let last = bits.iter().rposition(|bit| matches!(bit, InputBit::Warp(_))).unwrap_or(0);
    let chunks = bits.len() - last - 1;
    let others = layout.elements() / layout.shape()[axis];
    Some(others << (warps + chunks))
}

/// The bytes of `count` elements of an operand's type, rounded up to [`SCRATCH_ALIGN`].
pub fn part_bytes(elem: Elem, count: u32) -> u32 {
    (count * elem.bytes()).next_multiple_of(SCRATCH_ALIGN)
}

fn parts(kernel: &Kernel, operands: &[Value], count: u32) -> u32 {
    operands.iter().filter_map(|value| kernel.value_type(*value).elem()).map(|elem| part_bytes(elem, count)).sum()
}

fn tile_bytes(kernel: &Kernel, value: Value) -> u32 {
    let ty = kernel.value_type(value);
    let count = ty.shape().map_or(1, |shape| shape.numel() as u32);
    part_bytes(ty.elem().unwrap_or(Elem::I64), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_exchange_one_partial_per_row_and_warp() {
        let within = Layout::blocked(&[128], &[4], &[32], &[1], &[0]);
        assert_eq!(scan_partials(&within, 0), None);
        let across = Layout::blocked(&[1024], &[2], &[32], &[4], &[0]);
        assert_eq!(scan_partials(&across, 0), Some(4 * 4));
        let rows = Layout::blocked(&[8, 256], &[1, 2], &[2, 16], &[1, 4], &[1, 0]);
        assert_eq!(scan_partials(&rows, 1), Some(8 * 4 * 2));
    }

    #[test]
    fn parts_are_aligned() {
        assert_eq!(part_bytes(Elem::F16, 3), 16);
        assert_eq!(part_bytes(Elem::F64, 3), 32);
    }
}
