//! Decides how many slots the rings of a loop have, and by how many iterations its copies are begun ahead of time.
//!
//! ```text
//! for_range .. {slots = 1} { .. }   →   for_range .. {slots = 3, ahead = 2} { .. }
//! ```
//!
//! `num_stages` of the loop or of the kernel says how many slots are wished for. Where shared memory does not hold them,
//! the loop with the largest rings gets fewer, until all fits.

use rtc_ir::{Kernel, LoopHints, Op, OpKind, Phase, place_bytes};

use super::expand_loop::{self, copies};
use super::stage_operands::stages;
use crate::place::{allocate_shared, place_scratch, split_conversions};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "schedule-loop", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let loops: Vec<Op> = rtc_ir::walk(kernel).into_iter().filter(|op| slots(kernel, *op) == Some(1)).collect();
    for op in &loops {
        set_slots(kernel, *op, stages(kernel, *op));
    }
    while !fits(kernel, cx)? {
        let most = loops.iter().filter(|op| slots(kernel, **op).is_some_and(|slots| slots > 1));
        let Some(op) = most.max_by_key(|op| ring_bytes(kernel, **op)).copied() else { break };
        let fewer = slots(kernel, op).unwrap_or(1) - 1;
        set_slots(kernel, op, fewer);
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

fn set_slots(kernel: &mut Kernel, op: Op, slots: u32) {
    if let OpKind::ForRange { hints, .. } = kernel.kind_mut(op) {
        hints.slots = Some(slots);
        hints.ahead = (slots > 1).then_some(slots - 1);
    }
}

/// The bytes of the rings of a loop.
fn ring_bytes(kernel: &Kernel, op: Op) -> u64 {
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
