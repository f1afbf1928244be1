//! Decides how many slots the rings of a loop have, and by how many iterations its copies are begun ahead of time.
//!
//! ```text
//! for_range .. {slots = 1} { .. }   →   for_range .. {slots = 3, ahead = 2} { .. }
//! ```
//!
//! `num_stages` of the loop or of the kernel says how many slots are wished for. A loop with one product by `wgmma`, whose
//! sums nothing else uses, gets one more, so that a product can be under way while the next iteration begins; not if a
//! multiprocessor then held fewer blocks. A loop with `dot_buffers` gets fewer if it then holds more. Where shared memory does not hold all, the loop with the largest rings gets
//! fewer slots, until all fits.

use rtc_ir::{Kernel, LoopHints, Op, OpKind, Phase, place_bytes};

use super::expand_loop::{self, copies, under_way};
use super::stage_operands::stages;
use crate::place::{allocate_shared, place_scratch, split_conversions};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "schedule-loop", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let loops: Vec<Op> = rtc_ir::walk(kernel).into_iter().filter(|op| slots(kernel, *op) == Some(1)).collect();
    if loops.is_empty() {
        return Ok(());
    }
    for op in &loops {
        let wished = stages(kernel, *op);
        let more =
            under_way(kernel, *op).is_some() && blocks(kernel, cx, *op, wished + 1) >= blocks(kernel, cx, *op, wished);
        if more && wished > 1 {
            set_plan(kernel, *op, wished + 1, 1)
        } else {
            set_plan(kernel, *op, wished, 0)
        }
        // Multiply-adds take so long that copies arrive within an iteration: more blocks are worth more than more slots.
        while let Some(slots) = slots(kernel, *op).filter(|slots| *slots > 2)
            && sums_of_threads(kernel, *op).is_some()
            && blocks(kernel, cx, *op, slots - 1) > blocks(kernel, cx, *op, slots)
        {
            set_plan(kernel, *op, slots - 1, 0);
        }
    }
    while !fits(kernel, cx)? {
        let most = loops.iter().filter(|op| slots(kernel, **op).is_some_and(|slots| slots > 1));
        let Some(op) = most.max_by_key(|op| ring_bytes(kernel, **op)).copied() else { break };
        let fewer = slots(kernel, op).unwrap_or(1) - 1;
        // One product under way is worth an iteration of copies.
        let pending = u32::from(under_way(kernel, op).is_some() && fewer > 3);
        set_plan(kernel, op, fewer, pending);
    }
    Ok(())
}

/// The slots of the rings that a loop copies into; `None` if it has none of its own.
fn slots(kernel: &Kernel, op: Op) -> Option<u32> {
    match kernel.kind(op) {
        OpKind::ForRange { hints: LoopHints { slots, .. }, .. } => *slots,
        _ => None,
    }
}

/// A slot is free for copies once all threads have passed the next barrier after their products, or the one after that if
/// a product is still under way there.
fn set_plan(kernel: &mut Kernel, op: Op, slots: u32, pending: u32) {
    if let OpKind::ForRange { hints, .. } = kernel.kind_mut(op) {
        hints.slots = Some(slots);
        hints.ahead = (slots > 1).then_some(slots - 1 - pending);
        hints.pending = (pending > 0).then_some(pending);
    }
}

/// How many blocks a multiprocessor holds at the same time if the loop has so many slots; roughly, since the registers of a
/// thread are not known before code is made.
fn blocks(kernel: &Kernel, cx: &PassContext, op: Op, slots: u32) -> u64 {
    let threads = 32 * u64::from(kernel.group_of(op).warps);
    let by_wgmma = under_way(kernel, op).and_then(|(_, sums)| kernel.layout_of(sums)).map(|layout| layout.registers());
    let sums = by_wgmma.or_else(|| sums_of_threads(kernel, op)).unwrap_or(0);
    let by_registers = REGISTERS / ((u64::from(sums) + OTHER_REGISTERS).min(255) * threads);
    let bytes = ring_bytes(kernel, op) / u64::from(slots_now(kernel, op)) * u64::from(slots);
    let by_memory = u64::from(cx.target.shared_bytes_max) / bytes.max(1);
    by_registers.max(1).min(by_memory)
}

/// The registers of a thread for sums of products in a loop that threads load from buffers, if it has such.
fn sums_of_threads(kernel: &Kernel, op: Op) -> Option<u32> {
    let products = rtc_ir::walk_block(kernel, kernel.op(op).blocks[0]).into_iter();
    let sums = products.filter(|op| matches!(kernel.kind(*op), OpKind::DotBuffers { .. })).map(|op| {
        let sum = kernel.result(op, 0);
        let words = kernel.value_type(sum).elem().map_or(1, |elem| elem.bytes().div_ceil(4));
        kernel.layout_of(sum).map_or(0, |layout| layout.registers() * words)
    });
    sums.max()
}

/// Registers of a multiprocessor.
const REGISTERS: u64 = 65536;
/// What a thread needs beside its sums.
const OTHER_REGISTERS: u64 = 56;

fn slots_now(kernel: &Kernel, op: Op) -> u32 {
    slots(kernel, op).unwrap_or(1)
}

/// The bytes of the rings of a loop.
pub(super) fn ring_bytes(kernel: &Kernel, op: Op) -> u64 {
    let buffers = copies(kernel, op).into_iter().map(|copy| place_bytes(kernel.value_type(kernel.operand(copy, 1))));
    buffers.sum::<u64>() * u64::from(slots(kernel, op).unwrap_or(1))
}

/// Whether shared memory holds all that the kernel needs if the loops are expanded as decided.
fn fits(kernel: &Kernel, cx: &PassContext) -> Result<bool, PassError> {
    let mut trial = kernel.clone();
    expand_loop::run(&mut trial, cx)?;
    for pass in [crate::tile::dce_laid::PASS, split_conversions::PASS, place_scratch::PASS, allocate_shared::PASS] {
        match (pass.run)(&mut trial, cx) {
            Ok(()) => {}
            Err(PassError::Diagnostic(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
