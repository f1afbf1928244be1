//! Operands A of `wgmma` dots that are computed where they are used, element by element from loads: unpacked and scaled
//! weights, products of loaded tiles, masked tiles.
//!
//! ```text
//! %w = load .. : tile<128x64xi8>
//! %h = sitofp %w : tile<128x64xf16>          reads of the instruction's fragments, conversions in registers
//! %a = mulf %h, %scale               →       and a dot that takes them from there, instead of a store to shared
//! %s = dot %a, %b, %acc                      memory and a barrier of all warps before each dot
//! ```
//!
//! Such an operand comes from registers. Each warp multiplies rows of its own, so no element is computed twice unless warps
//! divide the columns of the result, too: then the operand is computed once and goes through shared memory. So it does if
//! it is made of wider elements, or if a thread would have more registers of operand and accumulators than leave the
//! assembler room.

use std::collections::HashSet;

use rtc_ir::{Kernel, Op, OpKind, Traits, Value, view};

/// Operations between an operand and memory that are looked at.
const BUDGET: usize = 64;

/// Registers of a thread up to which accumulators and an operand, with what it is computed from, leave enough for the rest.
const MOST_REGISTERS: u64 = 192;

/// What operand A of a dot is computed from.
#[derive(Default)]
pub struct ComputedOperand {
    /// The loads of tiles, and whether the operand has their transposes.
    pub loads: Vec<(Op, bool)>,
    /// The tiles between the loads and the dot that nothing else uses, and whether the operand has their transposes.
    pub tiles: Vec<(Value, bool)>,
}

impl ComputedOperand {
    /// Of a dot; `None` if its operand is loaded as it is, if anything but loads and arithmetic on each element makes it, if a
    /// load has wider elements, or if that is done elsewhere than the dot.
    pub fn of(kernel: &Kernel, dot: Op) -> Option<ComputedOperand> {
        let lhs = view::Dot::at(kernel, dot).lhs();
        let size = kernel.value_type(lhs).shape()?.numel();
        let (mut seen, mut open) = (HashSet::new(), vec![(lhs, false)]);
        let (mut found, mut computes) = (ComputedOperand::default(), false);
        while let Some((value, transposed)) = open.pop() {
            // A splat, or rows of scales: nothing of this size.
            let Some(shape) = kernel.value_type(value).shape().filter(|shape| shape.numel() == size) else { continue };
            if !seen.insert((value, transposed)) {
                continue;
            }
            (seen.len() <= BUDGET && shape.rank() == 2).then_some(())?;
            let op = kernel.def_op(value)?;
            let data = kernel.op(op);
            match &data.kind {
                OpKind::Constant { .. } | OpKind::Splat {} | OpKind::Broadcast {} | OpKind::ExpandDims { .. } => {}
                OpKind::Load { .. } => {
                    (data.parent == kernel.op(dot).parent).then_some(())?;
                    // If the tile has to change its layout, that goes through shared memory, too.
                    (bits(kernel, value) <= bits(kernel, lhs)).then_some(())?;
                    found.loads.push((op, transposed));
                }
                OpKind::Trans { .. } => open.push((view::Trans::at(kernel, op).source(), !transposed)),
                OpKind::Hint { .. } => open.push((kernel.forwarded(op)?, transposed)),
                kind if is_on_elements(kind) => {
                    computes = true;
                    found.tiles.push((value, transposed));
                    open.extend(data.operands.iter().map(|operand| (*operand, transposed)));
                }
                _ => return None,
            }
        }
        let known: HashSet<Value> = seen.into_iter().map(|(value, _)| value).collect();
        let is_within = |user: Op| {
            let makes = || kernel.op(user).results.iter().any(|result| known.contains(result));
            matches!(kernel.kind(user), OpKind::Dot { .. }) || makes()
        };
        found.tiles.retain(|(value, _)| kernel.users(*value).into_iter().all(is_within));
        (computes && !found.loads.is_empty()).then_some(found)
    }
}

fn bits(kernel: &Kernel, tile: Value) -> u32 {
    kernel.value_type(tile).elem().map_or(32, |elem| elem.bits())
}

/// Whether an operation computes each element of its results of the same elements of its operands.
pub(crate) fn is_on_elements(kind: &OpKind) -> bool {
    kind.spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE))
}

/// Whether an operand A with elements of `bits` bits, computed in the loop of the dot, is to come from registers if `warps`
/// divide the result. All operands that a block computes for its dots are counted, as some are computed ahead.
pub fn suits_registers(kernel: &Kernel, dot: Op, bits: u32, warps: [u32; 2]) -> bool {
    let threads = 32 * u64::from(warps[0] * warps[1]);
    let words = |value: Value| {
        let ty = kernel.value_type(value);
        let bits = ty.elem().map_or(32, |elem| u64::from(elem.bits()));
        ty.shape().map_or(0, |shape| (shape.numel() * bits).div_ceil(32 * threads))
    };
    let beside = kernel.op(dot).parent.into_iter().flat_map(|block| kernel.ops(block));
    let dots: Vec<Op> = beside.filter(|op| matches!(kernel.kind(*op), OpKind::Dot { .. })).collect();
    let view = |op: Op| view::Dot::at(kernel, op);
    let is_sum = |value: Value| kernel.def_op(value).is_some_and(|made| dots.contains(&made));
    let accs: u64 = dots.iter().map(|op| view(*op).acc()).filter(|acc| !is_sum(*acc)).map(words).sum();
    let computed = dots.iter().filter(|op| ComputedOperand::of(kernel, **op).is_some());
    let operands: u64 = computed.map(|op| words(view(*op).lhs())).sum();
    matches!(bits, 16 | 32) && warps[1] == 1 && accs + operands + words(view(dot).lhs()) <= MOST_REGISTERS
}
