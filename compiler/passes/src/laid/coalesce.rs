//! Layouts for loads, stores and atomics, such that neighbouring lanes touch neighbouring addresses and each thread as
//! many bytes at once as alignment and mask allow.

use std::collections::HashMap;

use rtc_abi::{Feature, Target};
use rtc_ir::regions::Slot;
use rtc_ir::{Block, Elem, Kernel, Op, OpKind, RmwOp, Shape, Value, view};
use rtc_layout::Layout;

use rtc_ir::analysis::{Axis, AxisInfos, Steps};

use super::ties::tied;
use super::{cost, weight::weight};
use crate::access::vector_width::{MAX_ACCESS_BYTES, pointee_bytes, vector_width};
use crate::work::has_dot;

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

/// What memory operations with one layout have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Group {
    shape: Shape,
    order: Vec<u32>,
    warps: u32,
    version: Option<Block>,
    /// In kernels with dots, the least of the tiles that are computed element-wise from what is loaded or stored.
    data: Option<Value>,
}

/// The layouts of all memory operations on tiles. Operations of one shape and order on the same number of warps share a
/// layout, except those of other versions of the kernel, those with a dot between them, and stores of rows without
/// alignment: with the layout of wide accesses, a thread would store [`WIDE`] neighbours or more one by one, and each piece
/// goes to L2 as a whole sector.
pub fn access_layouts(
    kernel: &Kernel,
    infos: &AxisInfos,
    target: &Target,
    ops: &[Op],
    slots: &[Slot],
) -> HashMap<Op, Layout> {
    let mut groups: HashMap<Group, Vec<(Op, u64)>> = HashMap::new();
    let mut data = has_dot(kernel).then(|| tied(kernel, ops, slots, |value| is_data(kernel, value)));
    let steps = Steps::new(kernel, infos);
    let reduced = reduced_axes(kernel);
    for op in ops {
        let Some((shape, wish)) = wish(kernel, infos, &steps, target, &reduced, *op) else { continue };
        let (warps, version) = (kernel.group_of(*op).warps, version(kernel, *op));
        let moved = kernel.value_operand(*op).or(kernel.op(*op).results.first().copied());
        let data = data.as_mut().zip(moved).map(|(sets, value)| sets.of(value));
        groups.entry(Group { shape, order: wish.order, warps, version, data }).or_default().push((*op, wish.vector));
    }
    let mut layouts = HashMap::new();
    for (group, wishes) in groups {
        let with = |vector: u64| Layout::default_blocked(&group.shape, group.warps, &group.order, vector as u32);
        let per_thread = (group.shape.numel() / (u64::from(group.warps) * 32)).max(1);
        let shared = shared_vector(kernel, infos, &steps, &wishes, per_thread, with);
        for (op, vector) in wishes {
            let alone = vector == 1 && shared >= WIDE && matches!(kernel.kind(op), OpKind::Store { .. });
            layouts.insert(op, with(if alone { 1 } else { shared }));
        }
    }
    layouts
}

fn is_data(kernel: &Kernel, value: Value) -> bool {
    kernel.value_type(value).elem().is_some_and(|elem| !elem.is_ptr())
}

/// How many neighbours a thread has in the layout that operations share: as many as the widest access takes, or fewer where
/// lanes then store wider elements without gaps between them. On an H200, casts whose lanes store 16 of each 32 bytes at
/// once took 1.2 to 1.4 times as long as with neighbouring lanes, 16 of 64 bytes 2 to 3 times; loads with such gaps took no
/// longer. Stores outside of a loop with accesses do not count: a norm's gradients by rows, with those of its weights stored
/// at the end, took a third longer. In kernels with dots, where most tiles are copied to shared memory, always as many as the
/// widest takes.
fn shared_vector(
    kernel: &Kernel,
    infos: &AxisInfos,
    steps: &Steps<'_>,
    wishes: &[(Op, u64)],
    per_thread: u64,
    with: impl Fn(u64) -> Layout,
) -> u64 {
    let widest = wishes.iter().map(|(_, vector)| *vector).max().unwrap_or(1).min(per_thread);
    let most_often = wishes.iter().map(|(op, _)| weight(kernel, *op)).max();
    let is_full_store = |(op, vector): &&(Op, u64)| {
        let bytes = kernel.pointer(*op).map_or(0, |pointer| pointee_bytes(kernel, pointer));
        let is_store = matches!(kernel.kind(*op), OpKind::Store { .. }) && vector * bytes >= MAX_ACCESS_BYTES;
        is_store && Some(weight(kernel, *op)) == most_often
    };
    let least = wishes.iter().filter(is_full_store).map(|(_, vector)| *vector).min().unwrap_or(widest);
    if least >= widest || has_dot(kernel) {
        return widest;
    }
    let cost = |vector: &u64| -> u64 {
        let layout = with(*vector);
        wishes.iter().map(|(op, _)| weight(kernel, *op) * cost::access(kernel, infos, steps, *op, &layout)).sum()
    };
    let fewer =
        std::iter::successors(Some(widest), |vector| Some(vector / 2)).take_while(|vector| *vector >= least.max(1));
    fewer.min_by_key(cost).unwrap_or(widest)
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

/// The axes along which the kernel reduces or scans tiles of a shape, where more than one order starts with the same axis.
fn reduced_axes(kernel: &Kernel) -> HashMap<Shape, Vec<u32>> {
    let mut axes: HashMap<Shape, Vec<u32>> = HashMap::new();
    for op in rtc_ir::walk(kernel) {
        let (OpKind::Reduce { axis } | OpKind::Scan { axis, .. }) = kernel.kind(op) else { continue };
        let shape = kernel.variadic(op).first().and_then(|value| kernel.value_type(*value).shape());
        if let Some(shape) = shape.filter(|shape| shape.rank() > 2) {
            axes.entry(shape).or_default().push(*axis);
        }
    }
    axes
}

fn wish(
    kernel: &Kernel,
    infos: &AxisInfos,
    steps: &Steps<'_>,
    target: &Target,
    reduced: &HashMap<Shape, Vec<u32>>,
    op: Op,
) -> Option<(Shape, Wish)> {
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
    let blocked = |order: &Vec<u32>| Layout::default_blocked(&shape, warps, order, width(order).min(per_thread) as u32);
    let cost = |order: &Vec<u32>| cost::access(kernel, infos, steps, op, &blocked(order));
    // The first of those that cost the least.
    let mut orders = orders(kernel, infos, pointer, shape.rank());
    let mut order = if orders.len() == 1 { orders.pop()? } else { orders.into_iter().min_by_key(cost)? };
    if let Some(axes) = reduced.get(&shape) {
        let with_reductions = |order: &Vec<u32>| {
            let layout = blocked(order);
            let reductions: u64 = axes.iter().map(|axis| cost::reduction(&layout, *axis as usize)).sum();
            cost(order) + reductions
        };
        let mut other = order.clone();
        // What is reduced comes last: it is divided among as few threads as may be.
        other[1..].sort_by_key(|axis| axes.contains(axis));
        order = [order, other].into_iter().min_by_key(with_reductions)?;
    }
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
