//! Decides how many slots the rings of a loop have, and by how many iterations its copies are issued ahead of time.
//!
//! ```text
//! for_range .. {slots = 1} { .. }   →   for_range .. {slots = 3, ahead = 2} { .. }
//! ```
//!
//! `num_stages` of the loop or of the kernel says how many slots are wished for; more than the loop has iterations are never
//! filled, and none are made. A loop with one `wgmma` dot, whose accumulators nothing else uses, gets one more, so that a dot
//! can be in flight while the next iteration begins; if a SM then held fewer blocks, a second barrier in each iteration does
//! instead of it. The same barrier saves a slot of other loops where an SM then holds more blocks. Loops whose dots have few
//! rows or columns wait for memory, not for dots: of the slots that are wished for, they get as many as let an SM hold the most
//! blocks. A loop with `dot_buffers` gets fewer if it then holds more. Where shared memory does not hold all, the loop with the
//! largest rings gets fewer slots, until all fits.

use rtc_abi::{Plan, REGISTERS_PER_THREAD, SmLimits};
use rtc_ir::{DotKind, Kernel, LoopHints, Op, OpKind, Phase, Value, place_bytes, trip_count, view};
use rtc_layout::MmaShape;

use super::expand_loop::{self, mmas_in_flight};
use super::register_prefetch::{has_dots, most_slots};
use super::stages::copies;
use crate::place::split_conversions::{buffer_bytes, is_split, most_for_an_operation};
use crate::schedule::pipeline::stages::stages;
use crate::schedule::resources::fits_shared;
use crate::work::{Scope, estimate, words_of_tile};
use crate::{Pass, PassContext, PassError, matrix_unit};

/// The pass.
pub const PASS: Pass = Pass { name: "schedule-loop", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let loops: Vec<Op> = rtc_ir::walk(kernel).into_iter().filter(|op| slots(kernel, *op) == Some(1)).collect();
    if loops.is_empty() {
        return Ok(());
    }
    let registers = estimate(kernel, Scope::Kernel);
    for op in &loops {
        let registers = registers.saturating_sub(read_in_pieces(kernel, *op)).min(REGISTERS_PER_THREAD);
        let needs = (registers, bytes_beside_rings(kernel, *op));
        let blocks = |kernel: &Kernel, op: Op, slots: u32| blocks(kernel, cx, needs, op, slots);
        let trips = trip_count(kernel, *op).map_or(u32::MAX, |trips| trips.try_into().unwrap_or(u32::MAX)).max(1);
        let mut wished = stages(kernel, *op).min(trips);
        if !has_dots(kernel, kernel.op(*op).blocks[0]) {
            wished = wished.min(most_slots(kernel, copies(kernel, *op).into_iter()));
        }
        if let Some(plan) = given(kernel, *op, &cx.plan) {
            set_plan(kernel, *op, plan);
            continue;
        }
        let plan = if has_few_rows(kernel, *op) {
            most_blocks(wished, &|slots| blocks(kernel, *op, slots))
        } else {
            choose(kernel, *op, wished, trips, &|slots| blocks(kernel, *op, slots))
        };
        set_plan(kernel, *op, plan);
        // FMAs take so long that copies arrive within an iteration: more blocks are worth more than more slots.
        while let Some(slots) = slots(kernel, *op).filter(|slots| *slots > 2)
            && has_dots_of_threads(kernel, *op)
            && blocks(kernel, *op, slots - 1) > blocks(kernel, *op, slots)
        {
            set_plan(kernel, *op, RingPlan::plain(slots - 1));
        }
    }
    while !fits(kernel, cx)? {
        let most = loops.iter().filter(|op| slots(kernel, **op).is_some_and(|slots| slots > 1));
        let Some(op) = most.max_by_key(|op| ring_bytes(kernel, **op)).copied() else { break };
        let fewer = slots(kernel, op).unwrap_or(1) - 1;
        let plan = match mmas_in_flight(kernel, op) {
            Some(_) if fewer > 2 => RingPlan { slots: fewer, ahead: fewer - 1, pending: 1 },
            _ => RingPlan::plain(fewer),
        };
        set_plan(kernel, op, plan);
    }
    Ok(())
}

/// How a ring is used. A slot is free for copies once all threads have passed the next barrier after their dots, or the
/// one after that if a dot is still in flight there; with fewer slots than that takes, a second barrier in the iteration
/// says so earlier (`expand_loop.rs`).
struct RingPlan {
    slots: u32,
    ahead: u32,
    pending: u32,
}

impl RingPlan {
    /// One barrier in an iteration, no dot in flight.
    fn plain(slots: u32) -> RingPlan {
        RingPlan { slots, ahead: slots - 1, pending: 0 }
    }
}

/// The ring of a loop as a plan gives it, with what the plan leaves open as in rings with one barrier in an iteration. A slot
/// that a dot in flight reads is not filled, nor one that has not been read.
fn given(kernel: &Kernel, op: Op, plan: &Plan) -> Option<RingPlan> {
    if (plan.slots, plan.ahead, plan.in_flight) == (None, None, None) {
        return None;
    }
    let slots = plan.slots.or(plan.ahead.map(|ahead| ahead + 1)).unwrap_or_else(|| stages(kernel, op)).max(1);
    let pending = u32::from(plan.in_flight == Some(true) && slots > 1 && mmas_in_flight(kernel, op).is_some());
    let ahead = plan.ahead.unwrap_or(slots - 1).min(slots - pending);
    Some(if slots == 1 { RingPlan::plain(1) } else { RingPlan { slots, ahead, pending } })
}

/// The plan for a loop of `trips` iterations that is wished to have `wished` slots, if shared memory holds it. `held`: how many
/// blocks an SM holds with so many slots.
fn choose(kernel: &Kernel, op: Op, wished: u32, trips: u32, held: &dyn Fn(u32) -> u64) -> RingPlan {
    if wished < 2 {
        return RingPlan::plain(wished);
    }
    let mma = mmas_in_flight(kernel, op).is_some();
    // With a single slot no copy overlaps a dot of the same block.
    let least = if wished > 2 { held(wished) + 1 } else { 2 * held(wished).max(1) };
    let by_unit = !has_dots_of_threads(kernel, op);
    let saves_a_slot = by_unit && held(wished - 1) >= least;
    // Each iteration has a slot of its own, so that all copies are begun before the loop.
    let fills_once = wished == trips && by_unit;
    if fills_once && !saves_a_slot {
        return RingPlan { slots: trips, ahead: trips, pending: u32::from(mma) };
    }
    if mma && !fills_once {
        let slots = if held(wished + 1) >= held(wished) { wished + 1 } else { wished };
        return RingPlan { slots, ahead: wished - 1, pending: 1 };
    }
    if saves_a_slot {
        return RingPlan { slots: wished - 1, ahead: wished - 1, pending: 0 };
    }
    RingPlan::plain(wished)
}

/// The plan with which an SM holds the most blocks.
fn most_blocks(wished: u32, held: &dyn Fn(u32) -> u64) -> RingPlan {
    let most = (1..=wished).max_by_key(|slots| held(*slots)).unwrap_or(wished);
    if most < wished { RingPlan { slots: most, ahead: most, pending: 0 } } else { RingPlan::plain(wished) }
}

/// The slots of the rings that a loop copies into; `None` if it has none of its own.
fn slots(kernel: &Kernel, op: Op) -> Option<u32> {
    match kernel.kind(op) {
        OpKind::ForRange { hints: LoopHints { slots, .. }, .. } => *slots,
        _ => None,
    }
}

fn set_plan(kernel: &mut Kernel, op: Op, plan: RingPlan) {
    if let OpKind::ForRange { hints, .. } = kernel.kind_mut(op) {
        hints.slots = Some(plan.slots);
        hints.ahead = (plan.ahead > 0).then_some(plan.ahead);
        hints.pending = (plan.pending > 0).then_some(plan.pending);
    }
}

/// How many blocks an SM holds at the same time if the loop has so many slots; roughly, since the `registers` of a
/// thread are only an estimate before code is made. `beside` is how much shared memory the loop needs beside its rings.
fn blocks(kernel: &Kernel, cx: &PassContext, (registers, beside): (u32, u64), op: Op, slots: u32) -> u64 {
    let threads = 32 * kernel.group_of(op).warps;
    let by_registers = SmLimits::blocks_by_registers(registers, threads).max(1);
    let bytes = ring_bytes(kernel, op) / u64::from(slots_now(kernel, op)) * u64::from(slots) + beside;
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX / 2);
    by_registers.min(cx.target.sm.blocks_beside_registers(threads, bytes)).into()
}

/// The bytes of shared memory that a loop needs beside its rings: other buffers that it uses, and what its operations need for
/// themselves. Buffers of other loops, as in another version of this one, do not count.
fn bytes_beside_rings(kernel: &Kernel, op: Op) -> u64 {
    let inside = rtc_ir::walk_op(kernel, op);
    let is_used = |alloc: &Op| kernel.users(kernel.result(*alloc, 0)).iter().any(|user| inside.contains(user));
    let mut buffers = rtc_ir::walk(kernel);
    buffers.retain(|alloc| matches!(kernel.kind(*alloc), OpKind::AllocShared { .. }) && is_used(alloc));
    let rings = ring_bytes(kernel, op);
    (buffer_bytes(kernel, &buffers) + most_for_an_operation(kernel, &inside)).saturating_sub(rings)
}

/// Whether threads load operands of the dots in a loop from buffers themselves.
fn has_dots_of_threads(kernel: &Kernel, op: Op) -> bool {
    let inside = rtc_ir::walk_block(kernel, kernel.op(op).blocks[0]);
    inside.into_iter().any(|op| matches!(kernel.kind(op), OpKind::DotBuffers { .. }))
}

/// Whether the dots of a loop leave rows or columns of the instruction unused: far fewer operations than bytes are copied.
fn has_few_rows(kernel: &Kernel, op: Op) -> bool {
    let inside = rtc_ir::walk_block(kernel, kernel.op(op).blocks[0]);
    let mut dots = inside.into_iter().filter(|op| matrix_unit::is_dot(kernel.kind(*op))).peekable();
    dots.peek().is_some() && dots.all(|dot| matrix_unit::is_partly_filled(kernel, dot))
}

/// The registers of the operands that the dots of a loop by `mma.sync` read from shared memory between its instructions, beyond
/// those of two steps along K; the estimate has all live together.
fn read_in_pieces(kernel: &Kernel, op: Op) -> u32 {
    let inside = rtc_ir::walk_block(kernel, kernel.op(op).blocks[0]);
    let is_dot = |op: &Op| matches!(kernel.kind(*op), OpKind::Dot { kind: DotKind::MmaV2, .. });
    let is_read = |value: &Value| {
        kernel.def_op(*value).is_some_and(|op| matches!(kernel.kind(op), OpKind::LocalLoad {}) || is_split(kernel, op))
    };
    let words = |dot: Op| {
        let [lhs, rhs, _] = kernel.dot_operands(dot)?;
        let (shape, bits) = (kernel.value_type(lhs).shape()?, kernel.value_type(lhs).elem()?.bits());
        let (all, live) = (shape[shape.rank() - 1], 2 * MmaShape::for_bits(bits).k);
        let read: u32 =
            [lhs, rhs].iter().filter(|value| is_read(value)).map(|value| words_of_tile(kernel, *value)).sum();
        Some(read - read * live.min(all) / all)
    };
    inside.into_iter().filter(is_dot).filter_map(words).max().unwrap_or(0)
}

fn slots_now(kernel: &Kernel, op: Op) -> u32 {
    slots(kernel, op).unwrap_or(1)
}

/// The bytes of the rings of a loop.
pub(crate) fn ring_bytes(kernel: &Kernel, op: Op) -> u64 {
    let buffers = copies(kernel, op)
        .into_iter()
        .map(|copy| place_bytes(kernel.value_type(view::CopyAsync::at(kernel, copy).buffer())));
    buffers.sum::<u64>() * u64::from(slots(kernel, op).unwrap_or(1))
}

/// Whether shared memory holds all that the kernel needs if the loops are expanded as decided.
fn fits(kernel: &Kernel, cx: &PassContext) -> Result<bool, PassError> {
    let mut trial = kernel.clone();
    expand_loop::run(&mut trial, cx)?;
    (crate::tile::dce_laid::PASS.run)(&mut trial, cx)?;
    fits_shared(&trial, cx, cx.target.shared_bytes_max)
}
