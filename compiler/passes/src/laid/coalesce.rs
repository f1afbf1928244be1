//! Layouts for loads, stores and atomics, such that neighbouring lanes touch neighbouring addresses and each thread as
//! many bytes at once as alignment and mask allow.

use std::collections::HashMap;

use rtc_abi::{Feature, Target};
use rtc_ir::{Block, Elem, Kernel, Op, OpKind, RmwOp, Shape, Value, view};
use rtc_layout::Layout;

use rtc_ir::analysis::{Axis, AxisInfos, Steps};

use super::cost;
use crate::access::vector_width::{MAX_ACCESS_BYTES, pointee_bytes, vector_width};

/// Elements that are fewer bytes apart lie near each other: two lanes or more of a warp touch the same line.
const NEAR: u64 = 128;

/// See [`access_layouts`].
const WIDE: u64 = 4;

/// The preferred layout of a memory operation's tiles.
#[derive(Clone, Debug)]
struct Wish {
    /// Axes, fastest first.
    order: Vec<u32>,
    /// Elements per thread in one access.
    vector: u64,
}

/// The layouts of all memory operations on tiles. Operations of one shape and order on the same number of warps share a
/// layout, except those of other versions of the kernel, and stores of rows without alignment: with the layout of wide
/// accesses, a thread would store [`WIDE`] neighbours or more one by one, and each piece goes to L2 as a whole sector.
pub fn access_layouts(kernel: &Kernel, infos: &AxisInfos, target: &Target, ops: &[Op]) -> HashMap<Op, Layout> {
    let mut widest: HashMap<(Shape, Vec<u32>, u32, Option<Block>), u64> = HashMap::new();
    let mut wishes = Vec::new();
    let steps = Steps::new(kernel, infos);
    for op in ops {
        let Some((shape, wish)) = wish(kernel, infos, &steps, target, *op) else { continue };
        let warps = kernel.group_of(*op).warps;
        let version = version(kernel, *op);
        let slot = widest.entry((shape, wish.order.clone(), warps, version)).or_insert(1);
        *slot = (*slot).max(wish.vector);
        let alone = wish.vector == 1 && matches!(kernel.kind(*op), OpKind::Store { .. });
        wishes.push((*op, shape, wish.order, warps, version, alone));
    }
    wishes
        .into_iter()
        .map(|(op, shape, order, warps, version, alone)| {
            let threads = u64::from(warps) * 32;
            let per_thread = (shape.numel() / threads).max(1);
            let shared = widest[&(shape, order.clone(), warps, version)].min(per_thread);
            let vector = if alone && shared >= WIDE { 1 } else { shared };
            (op, Layout::default_blocked(&shape, warps, &order, vector as u32))
        })
        .collect()
}

/// How many elements a memory operation can access at once, disregarding its addresses.
pub fn most_at_once(kernel: &Kernel, target: &Target, op: Op) -> u64 {
    match kernel.kind(op) {
        OpKind::Load { .. } | OpKind::Store { .. } => MAX_ACCESS_BYTES,
        OpKind::AtomicRmw { op: RmwOp::FAdd, .. } => {
            match kernel.value_type(view::AtomicRmw::at(kernel, op).value()).elem() {
                Some(Elem::F32) if target.has(Feature::VectorAtomics) => 4,
                Some(Elem::F16 | Elem::BF16) if target.has(Feature::VectorAtomics) => 8,
                // A pair in a word.
                Some(Elem::F16) => 2,
                _ => 1,
            }
        }
        _ => 1,
    }
}

/// The outermost block around an operation that is one of several paths through the kernel and yields no values.
fn version(kernel: &Kernel, op: Op) -> Option<Block> {
    let mut block = kernel.op(op).parent?;
    loop {
        let around = kernel.block(block).parent?;
        let outer = kernel.op(around).parent?;
        if outer == kernel.body() {
            let is_way = matches!(kernel.kind(around), OpKind::IfElse {}) && kernel.op(around).results.is_empty();
            return is_way.then_some(block);
        }
        block = outer;
    }
}

fn wish(kernel: &Kernel, infos: &AxisInfos, steps: &Steps<'_>, target: &Target, op: Op) -> Option<(Shape, Wish)> {
    let (OpKind::Load { .. }
    | OpKind::Store { .. }
    | OpKind::AtomicRmw { .. }
    | OpKind::AtomicLoad { .. }
    | OpKind::AtomicStore { .. }
    | OpKind::AtomicCas { .. }
    | OpKind::AtomicPoll { .. }) = kernel.kind(op)
    else {
        return None;
    };
    let (pointer, mask) = (kernel.pointer(op)?, kernel.mask(op));
    let shape = kernel.value_type(pointer).shape()?;
    let width = |order: &[u32]| {
        vector_width(kernel, infos, pointer, mask, order[0] as usize).min(most_at_once(kernel, target, op))
    };
    let warps = kernel.group_of(op).warps;
    let per_thread = (shape.numel() / (u64::from(warps) * 32)).max(1);
    let cost = |order: &Vec<u32>| {
        let layout = Layout::default_blocked(&shape, warps, order, width(order).min(per_thread) as u32);
        cost::access(kernel, infos, steps, op, &layout)
    };
    // The first of those that cost the least.
    let mut orders = orders(kernel, infos, pointer, shape.rank());
    let order = if orders.len() == 1 { orders.pop()? } else { orders.into_iter().min_by_key(cost)? };
    let vector = width(&order);
    Some((shape, Wish { order, vector }))
}

/// Orders in which the lanes may run along the axes. The first is by contiguity, then by the distance of elements, then
/// the last axis first; each of the others starts with another axis.
fn orders(kernel: &Kernel, infos: &AxisInfos, pointer: Value, rank: usize) -> Vec<Vec<u32>> {
    let bytes = pointee_bytes(kernel, pointer);
    let mut order: Vec<u32> = (0..rank as u32).rev().collect();
    order.sort_by_key(|axis| {
        let along = infos.axis(pointer, *axis as usize);
        std::cmp::Reverse((along.contiguity, near(&along, bytes)))
    });
    let first = |index: usize| {
        let mut moved = order.clone();
        moved[..=index].rotate_right(1);
        moved
    };
    (0..rank).map(first).collect()
}

/// How many elements of so many bytes follow each other at small steps that are not one.
fn near(along: &Axis, bytes: u64) -> u64 {
    if along.strided.step.unsigned_abs().saturating_mul(bytes) < NEAR { along.strided.run } else { 1 }
}
