//! The loads that loops prefetch into registers: one iteration ahead all operands of dots that store their operands to
//! shared memory themselves and have small accumulators; other loads of a pipelined loop, such as scales, if they are
//! small; and the loads of a loop without dots that has `num_stages` of its own and cannot use copies. A distance of
//! more than one iteration gains nothing in registers: tiles move from the registers of one iteration to those of the
//! next, and a move waits for the load.

use std::collections::HashSet;

use rtc_ir::{Block, Kernel, LoopHints, Op, OpKind, Value, trip_count};

use crate::access::addresses::{Addresses, addresses, is_unchanged, is_unchanged_beside_copies, loads_of_dots};
use crate::matrix_unit::is_dot;

/// Registers of a thread that tiles loaded ahead may take.
pub(crate) const MOST_AHEAD: u32 = 64;

/// With more accumulators than this in a thread, copies to shared memory were faster on an H200 than loads ahead.
const FEW_SUMS: u32 = 32;

/// Registers of a thread for prefetched loads in addition to copies.
const MOST_BESIDE: u32 = 16;

/// The loads in the body of a loop with copies that are worth prefetching: all that take few registers. Loads that the
/// addresses of the copies depend on are prefetched with them.
pub(crate) fn beside_copies(kernel: &Kernel, of: Op, copied: &Addresses) -> Vec<Op> {
    let is_free = |load: Op| {
        let Some(part) = addresses(kernel, of, &[kernel.result(load, 0)]) else { return false };
        let mut read = part.ops.iter().filter(|op| matches!(kernel.kind(**op), OpKind::Load { .. }));
        !copied.ops.contains(&load) && read.all(|op| is_unchanged_beside_copies(kernel, of, kernel.operand(*op, 0)))
    };
    let mut left = MOST_BESIDE;
    let mut loads = Vec::new();
    for load in kernel.ops(kernel.op(of).blocks[0]) {
        if !matches!(kernel.kind(load), OpKind::Load { .. }) || !is_free(load) {
            continue;
        }
        if let Some(rest) = left.checked_sub(words(kernel, load)) {
            left = rest;
            loads.push(load);
        }
    }
    loads
}

/// The loads of a loop without dots that are issued ahead because the loop has `num_stages` of its own.
pub(crate) fn asked_for(kernel: &Kernel, of: Op) -> Option<Vec<Op>> {
    let OpKind::ForRange { hints: LoopHints { num_stages: Some(2..), .. }, .. } = kernel.kind(of) else {
        return None;
    };
    let body = kernel.op(of).blocks[0];
    if has_dots(kernel, body) || trip_count(kernel, of).is_some_and(|trips| trips < 2) {
        return None;
    }
    let is_free = |load: &Op| {
        let Some(part) = addresses(kernel, of, &[kernel.result(*load, 0)]) else { return false };
        let mut read = part.ops.iter().filter(|op| matches!(kernel.kind(**op), OpKind::Load { .. }));
        read.all(|op| is_unchanged(kernel, of, kernel.operand(*op, 0)))
    };
    let all = kernel.ops(body).filter(|op| matches!(kernel.kind(*op), OpKind::Load { .. }));
    Some(all.filter(is_free).collect())
}

/// Whether registers hold what these loads give, an iteration ahead.
pub(crate) fn hold(kernel: &Kernel, loads: &[Op]) -> bool {
    let all: u32 = loads.iter().map(|load| words(kernel, *load)).sum();
    (1..=MOST_AHEAD).contains(&all)
}

/// How many slots the ring of a loop without dots has at most, if a thread copies so much to a slot: with more, the
/// copies of all blocks that registers admit would not fit.
pub(crate) fn most_slots(kernel: &Kernel, loads: impl Iterator<Item = Op>) -> u32 {
    let bytes: u32 = loads.map(|op| bytes_of_thread(kernel, op)).sum();
    (4 * MOST_AHEAD).checked_div(bytes).unwrap_or(0)
}

/// The bytes of a tile that a thread has of what an operation loads or copies.
fn bytes_of_thread(kernel: &Kernel, op: Op) -> u32 {
    let pointer = kernel.operand(op, 0);
    let elem = kernel.value_type(pointer).elem().and_then(|elem| elem.pointee());
    let elements = kernel.layout_of(pointer).map_or(1, |layout| layout.registers());
    elem.map_or(0, |elem| elem.bytes()) * elements
}

/// Whether a block has dots in it.
pub(crate) fn has_dots(kernel: &Kernel, body: Block) -> bool {
    rtc_ir::walk_block(kernel, body).into_iter().any(|op| is_dot(kernel.kind(op)))
}

/// Whether a loop does better without copies to shared memory, since its dots store their operands themselves; and if so,
/// whether these are to be loaded an iteration ahead.
pub(crate) fn without_copies(kernel: &Kernel, of: Op, direct: &HashSet<Op>) -> Option<bool> {
    let few = stored_operands(kernel, kernel.op(of).blocks[0], direct)? <= FEW_SUMS;
    let ahead = few && register_prefetch(kernel, of).is_some_and(|ahead| ahead <= MOST_AHEAD);
    (few || loaded_words(kernel, of) > MOST_AHEAD).then_some(ahead)
}

/// If all dots of a loop store their operands to shared memory themselves, unless all can read buffers: the most accumulators
/// of a thread.
fn stored_operands(kernel: &Kernel, body: Block, direct: &HashSet<Op>) -> Option<u32> {
    let dots = rtc_ir::walk_block(kernel, body).into_iter().filter_map(|op| match kernel.kind(op) {
        OpKind::Dot { kind, .. } => Some((op, *kind, kernel.layout_of(kernel.result(op, 0))?.registers())),
        _ => None,
    });
    let (mut most, mut all_direct) = (None, true);
    for (op, kind, accs) in dots {
        rtc_ir::multiplier(kind)?;
        most = most.max(Some(accs));
        all_direct &= direct.contains(&op);
    }
    most.filter(|_| !all_direct)
}

/// The registers of a thread that hold what the dots of a loop load, if it can be loaded an iteration ahead.
fn register_prefetch(kernel: &Kernel, of: Op) -> Option<u32> {
    let tiles: Vec<Value> = loads_of_dots(kernel, of).into_iter().map(|load| kernel.result(load, 0)).collect();
    let part = addresses(kernel, of, &tiles)?;
    let mut read = part.ops.iter().filter(|op| matches!(kernel.kind(**op), OpKind::Load { .. }));
    let free = !tiles.is_empty() && read.all(|op| is_unchanged(kernel, of, kernel.operand(*op, 0)));
    free.then(|| loaded_words(kernel, of))
}

/// The words of 32 bits in a thread of what the dots of a loop load.
fn loaded_words(kernel: &Kernel, of: Op) -> u32 {
    loads_of_dots(kernel, of).into_iter().map(|load| words(kernel, load)).sum()
}

/// The registers of a thread for what a load gives: elements that are loaded one by one do not share a register.
fn words(kernel: &Kernel, load: Op) -> u32 {
    let value = kernel.result(load, 0);
    let bytes = kernel.value_type(value).elem().map_or(0, |elem| elem.bytes());
    let OpKind::Load { vector, .. } = kernel.kind(load) else { return 0 };
    let at_once = vector.unwrap_or(1);
    let elements = kernel.layout_of(value).map_or(1, |layout| layout.registers());
    elements.div_ceil(at_once) * (at_once * bytes).div_ceil(4)
}
