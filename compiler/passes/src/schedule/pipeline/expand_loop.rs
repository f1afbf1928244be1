//! Expands a loop into a pipeline, as `schedule_loop` has decided: the copies of the first iterations are issued in a
//! prologue, and each iteration issues those of the iteration at the prefetch distance.
//!
//! ```text
//! for_range .. {slots = 3, ahead = 2} {      copy_async of iterations 0 and 1, a group each: %s, %t
//!   barrier                                  for_range .. (%p = %s, %q = %t) {
//!   copy_async %p, %b                          %c = copy_await buffer = slot of iteration i, (%p)
//!   %t = copy_group                       →    copy_async of iteration i + 2
//!   %c = copy_await buffer = %b, (%t)          %r = copy_group
//!   .. %c ..                                   .. %c ..
//! }                                            yields (%q, %r)
//!                                            }
//!                                            copy_await of all
//! ```
//!
//! A loop with `ahead` and no slots loads the operands of its dots so many iterations ahead, into registers, or all of
//! its loads if it has no dots; a loop with slots loads its other small loads one iteration ahead
//! (`register_prefetch.rs`).
//!
//! The backward slice of addresses and masks is executed twice, once for the iteration and once for the prefetched one;
//! values carried for it get a second loop-carried value. Copies of iterations beyond the last have a false mask. One
//! barrier in each iteration is enough if there is a spare slot: after it the copies of the iteration are visible to
//! all threads, and all have read the slot that is filled next. It comes as late as it can where dots are `wgmma`: stores of a
//! state at the start of an iteration, as in chunked linear attention, need no copies. Without a spare slot, the copies are
//! issued after the dots, after a second barrier.

use std::collections::HashSet;

use rtc_ir::{
    Block, Builder, Elem, Kernel, Literal, Op, OpKind, Phase, Predicate, SharedType, Type, Value, trip_count,
};

use super::copy_groups;
use super::expander::{Ends, StagedLoop, expand};
use super::prefetch::prefetch;
use super::register_prefetch::{asked_for, beside_copies};
use super::stages::copies;
use crate::access::addresses::{Addresses, addresses, loads_of_dots};
use crate::pass::missing;
use crate::schedule::in_flight;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "expand-loop", needs: Phase::Laid, leaves: Phase::Laid, run };

pub(crate) fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    // A loop that is expanded has a new body, and so have the loops in it.
    while let Some((of, LoopPlan { ahead, ring })) =
        rtc_ir::walk(kernel).into_iter().find_map(|op| take_plan(kernel, op))
    {
        match ring {
            Some((slots, pending)) => {
                let prefetches = cx.plan.registers != Some(false);
                let copied = addresses(kernel, of, &roots(kernel, &copies(kernel, of)));
                let loads = match copied.filter(|_| prefetches) {
                    Some(copied) => beside_copies(kernel, of, &copied),
                    None => Vec::new(),
                };
                let of = prefetch(kernel, of, &loads, 1)?;
                CopyPipeline::of(kernel, of, slots, ahead, pending)?.expand(kernel)?;
            }
            None => {
                let loads = asked_for(kernel, of).unwrap_or_else(|| loads_of_dots(kernel, of));
                prefetch(kernel, of, &loads, ahead)?;
            }
        }
    }
    Ok(())
}

/// What is ahead in a loop.
struct LoopPlan {
    /// By how many iterations.
    ahead: u32,
    /// If it has copies: the slots of their rings, and the dots in flight when an iteration ends.
    ring: Option<(u32, u32)>,
}

/// Takes the plan from a loop, if it has one.
fn take_plan(kernel: &mut Kernel, op: Op) -> Option<(Op, LoopPlan)> {
    let OpKind::ForRange { hints, .. } = kernel.kind_mut(op) else { return None };
    let (slots, ahead, pending) = (hints.slots.take(), hints.ahead.take(), hints.pending.take());
    Some((op, LoopPlan { ahead: ahead?, ring: slots.map(|slots| (slots, pending.unwrap_or(0))) }))
}

/// The pointers and masks of copies.
pub(crate) fn roots(kernel: &Kernel, copies: &[Op]) -> Vec<Value> {
    copies.iter().flat_map(|op| [Some(kernel.operand(*op, 0)), kernel.mask(*op)]).flatten().collect()
}

/// Whether the slot that is filled in an iteration was still read in it, or by the dot in flight.
pub(crate) fn needs_second_barrier(slots: u32, ahead: u32, pending: u32) -> bool {
    slots < ahead + 1 + pending
}

/// The last operation of a loop's body that reads what the copies of the loop have filled, or that uses it in a dot.
fn last_reader(kernel: &Kernel, body: Block) -> Option<Op> {
    let filled: Vec<Op> = kernel
        .ops(body)
        .filter(|op| matches!(kernel.kind(*op), OpKind::CopyAsync { .. }))
        .filter_map(|op| kernel.allocation(kernel.operand(op, 1)))
        .collect();
    let reads = |op: Op| {
        let is_copy = matches!(kernel.kind(op), OpKind::CopyAsync { .. });
        let mut places = kernel.effects(op).filter_map(|(_, place)| kernel.allocation(place?));
        !is_copy && (matches!(kernel.kind(op), OpKind::Dot { .. }) || places.any(|made| filled.contains(&made)))
    };
    let ops: Vec<Op> = kernel.ops(body).collect();
    ops.into_iter().rev().find(|op| rtc_ir::walk_op(kernel, *op).into_iter().any(reads))
}

/// A loop whose copies are issued ahead.
struct CopyPipeline {
    of: Op,
    slots: u32,
    ahead: u32,
    /// Dots in flight when an iteration ends.
    pending: u32,
    /// The operations that compute the addresses of the copies.
    part: Addresses,
    copies: Vec<Op>,
    /// Whether all copies are issued before the loop.
    complete: bool,
}

impl CopyPipeline {
    fn of(kernel: &Kernel, of: Op, slots: u32, ahead: u32, pending: u32) -> Result<CopyPipeline, PassError> {
        let copies = copies(kernel, of);
        let part =
            addresses(kernel, of, &roots(kernel, &copies)).ok_or_else(|| missing("addresses that are repeatable"))?;
        let complete = trip_count(kernel, of).is_some_and(|trips| trips <= ahead.into());
        Ok(CopyPipeline { of, slots, ahead, pending, part, copies, complete })
    }

    fn expand(self, kernel: &mut Kernel) -> Result<(), PassError> {
        let CopyPipeline { of, slots, ahead, pending, complete, .. } = self;
        let body = kernel.op(of).blocks[0];
        let carrying = if pending > 0 { mmas_in_flight(kernel, of).unwrap_or_default() } else { Vec::new() };
        let rings = make_rings(kernel, of, &self.copies, slots)?;
        let all: Vec<Op> = kernel.ops(body).collect();
        copy_groups::remove(kernel, all.iter().copied());
        for op in all {
            if let OpKind::Barrier {} = kernel.kind(op) {
                kernel.erase(op);
            }
        }
        let first = kernel.first_op(body).ok_or_else(|| missing("a loop"))?;
        let zero = Builder::before(kernel, of).constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
        let (slot, _) = kernel.carry(of, zero).ok_or_else(|| missing("a loop"))?;
        kernel.name_value(slot, "slot");
        let reuses = !complete && needs_second_barrier(slots, ahead, pending);
        let last = if reuses { last_reader(kernel, body) } else { None };
        // The copies are begun while the first dot is in flight, or behind the last use of the slot that they fill.
        let by_unit = first_dot(kernel, body);
        let mma = by_unit.filter(|_| !reuses || pending > 0);
        let at = last.or(mma).and_then(|op| kernel.next_op(op)).unwrap_or(first);
        // The accumulators of the dots of the iteration before, where these stay in flight.
        let carried: Vec<Value> = carrying.iter().map(|(mma, _)| kernel.operand(*mma, 2)).collect();
        for mma in carrying.iter().map(|(mma, _)| *mma).chain(mma) {
            *kernel.kind_mut(mma) = OpKind::MmaAsync {};
        }
        if reuses {
            if !carried.is_empty() {
                Builder::before(kernel, at).await_dots(&carried)?;
            }
            Builder::before(kernel, at).barrier()?;
        }
        let (early, group) = self.fill_slots(kernel, at, &rings, slot)?;
        if let Some(mma) = mma.filter(|_| !reuses) {
            if pending == 0 {
                let own = kernel.result(mma, 0);
                in_flight::wait(Builder::before(kernel, at), &[own])?;
            } else {
                Builder::before(kernel, at).await_dots(&carried)?;
            }
        }
        // With `mma.sync` a wait between other work and the dots costs more than it gains: `ptxas` keeps fewer operands in registers.
        let reader = by_unit.and_then(|_| self.first_reader(kernel, &early));
        let start = reader.or(kernel.first_op(body)).unwrap_or(first);
        for (ring, buffer) in &rings {
            let full = Builder::before(kernel, start).slot(*ring, slot)?;
            let ready = Builder::before(kernel, start).await_copies(full, &[group])?;
            copy_groups::read_after(kernel, *buffer, ready);
        }

        let advance = advance(kernel, body, slot, slots)?;
        let order = self.order(kernel, &early, &advance);
        let staged = StagedLoop::new(kernel, of, order, Ends::Masked).ok_or_else(|| missing("a loop"))?;
        let expanded = expand(kernel, staged)?;
        let groups = expanded.in_flight(group);
        let accs: Vec<Value> = carrying.iter().map(|(_, number)| expanded.results[*number]).collect();
        let mut last = expanded.of;
        if !accs.is_empty() {
            last = in_flight::wait(Builder::after(kernel, last), &accs)?;
        }
        Builder::after(kernel, last).build(OpKind::CopyAwait {}, &[], &[None], &groups, &[], &[])?;
        Ok(())
    }

    /// The first operation of the body that reads what the copies bring, or that fills the next slot. What comes before it needs
    /// no wait for copies.
    fn first_reader(&self, kernel: &Kernel, early: &HashSet<Op>) -> Option<Op> {
        let buffers: Vec<Value> = self.copies.iter().map(|copy| kernel.operand(*copy, 1)).collect();
        let uses = |op: Op| kernel.op(op).operands.iter().any(|operand| buffers.contains(operand));
        let is_reader = |op: &Op| {
            let is_copy = self.copies.contains(op);
            early.contains(op) || !is_copy && rtc_ir::walk_op(kernel, *op).into_iter().any(uses)
        };
        kernel.ops(kernel.op(self.of).blocks[0]).find(is_reader)
    }

    /// Puts copies into slots of the rings before `at`; gives their operations, and the token of their group.
    fn fill_slots(
        &self,
        kernel: &mut Kernel,
        at: Op,
        rings: &[(Value, Value)],
        slot: Value,
    ) -> Result<(HashSet<Op>, Value), PassError> {
        let mut early = HashSet::new();
        for copy in &self.copies {
            let buffer = kernel.operand(*copy, 1);
            let ring = rings.iter().find(|(_, single)| *single == buffer).ok_or_else(|| missing("a ring"))?;
            let (kind, pointer, mask) = (kernel.kind(*copy).clone(), kernel.operand(*copy, 0), kernel.mask(*copy));
            let loc = kernel.op(*copy).loc;
            let into = Builder::before(kernel, at).slot(ring.0, slot)?;
            early.extend(kernel.def_op(into));
            let mut builder = Builder::before(kernel, at);
            builder.set_loc(loc);
            early.insert(builder.build(kind, &[pointer, into], &[mask], &[], &[], &[])?);
        }
        let group = Builder::before(kernel, at).copy_group()?;
        kernel.name_value(group, "group");
        early.extend(kernel.def_op(group));
        Ok((early, group))
    }

    /// The order of the steady state: copies have stage 0, addresses and numbers of slots are computed for the copies and for
    /// the rest.
    fn order(&self, kernel: &Kernel, early: &HashSet<Op>, advance: &[Op]) -> Vec<(Op, u32)> {
        let body = kernel.op(self.of).blocks[0];
        let end = kernel.terminator(body);
        let mut order = Vec::new();
        let mut addresses = self.part.ops.iter().map(|op| (*op, 0));
        for op in kernel.ops(body).filter(|op| Some(*op) != end && !self.copies.contains(op)) {
            if early.contains(&op) {
                order.extend(addresses.by_ref());
                order.push((op, 0));
            } else {
                order.push((op, self.ahead));
            }
        }
        order.extend(advance.iter().map(|op| (*op, 0)));
        order
    }
}

/// Computes the number of the next slot at the end of a loop's body, for its last loop-carried value; gives the operations.
fn advance(kernel: &mut Kernel, body: Block, slot: Value, slots: u32) -> Result<Vec<Op>, PassError> {
    let number = |builder: &mut Builder<'_>, value: u32| {
        builder.constant_of(Literal::Int(value.into()), Type::Scalar(Elem::I32))
    };
    let end = kernel.terminator(body).ok_or_else(|| missing("an end"))?;
    let mut builder = Builder::before(kernel, end);
    let (zero, one, last) = (number(&mut builder, 0)?, number(&mut builder, 1)?, number(&mut builder, slots - 1)?);
    let next = builder.addi(slot, one)?;
    let is_last = builder.cmpi(slot, last, Predicate::Eq)?;
    let next_slot = builder.select(is_last, zero, next)?;
    kernel.set_operand(end, kernel.op(end).operands.len() - 1, next_slot);
    Ok([zero, one, last, next, is_last, next_slot].into_iter().filter_map(|value| kernel.def_op(value)).collect())
}

/// The first dot of a loop's body, if it can be waited for later than it is begun.
fn first_dot(kernel: &Kernel, body: Block) -> Option<Op> {
    let mma = kernel.ops(body).find(|op| matches!(kernel.kind(*op), OpKind::Mma {} | OpKind::MmaAsync {}))?;
    in_flight::can_be(kernel, mma).then_some(mma)
}

/// The dots of a loop, if each can stay in flight in the next iteration; and the numbers of the results of the loop that
/// their accumulators are.
pub(crate) fn mmas_in_flight(kernel: &Kernel, of: Op) -> Option<Vec<(Op, usize)>> {
    let body = kernel.op(of).blocks[0];
    let is_dot = |op: &Op| matches!(kernel.kind(*op), OpKind::Mma {} | OpKind::MmaAsync {});
    let all: Vec<Op> = rtc_ir::walk_block(kernel, body).into_iter().filter(is_dot).collect();
    if all.is_empty() || rtc_ir::walk_block(kernel, body).into_iter().any(|op| in_flight::is_call(kernel, op)) {
        return None;
    }
    all.into_iter().map(|mma| Some((mma, carried_acc(kernel, body, mma)?))).collect()
}

/// The number of the result of the loop that the accumulators of a dot are, if nothing in the loop uses these but the dot
/// itself in the next iteration and its operands outlast the iteration, so none is in registers.
fn carried_acc(kernel: &Kernel, body: Block, mma: Op) -> Option<usize> {
    (kernel.op(mma).parent == Some(body) && in_flight::can_be(kernel, mma)).then_some(())?;
    let (acc, before, end) = (kernel.result(mma, 0), kernel.operand(mma, 2), kernel.terminator(body)?);
    let number = kernel.variadic(end).iter().position(|value| *value == acc)?;
    let carried = kernel.block(body).args.get(number + 1) == Some(&before);
    let alone = kernel.users(acc) == [end] && kernel.users(before) == [mma];
    let once = kernel.variadic(end).iter().filter(|value| **value == acc).count() == 1;
    // Stores by threads in the loop would be overwritten in the next iteration.
    let read: Vec<Op> = kernel.effects(mma).filter_map(|(_, place)| kernel.allocation(place?)).collect();
    let is_stored = rtc_ir::walk_block(kernel, body).into_iter().any(|op| {
        matches!(kernel.kind(op), OpKind::LocalStore {})
            && kernel.allocation(kernel.operand(op, 1)).is_some_and(|made| read.contains(&made))
    });
    let in_memory = kernel.value_type(kernel.operand(mma, 0)).shape().is_none();
    (carried && alone && once && in_memory && !is_stored).then_some(number)
}

/// Rings in place of the buffers that the copies fill.
fn make_rings(kernel: &mut Kernel, of: Op, copies: &[Op], slots: u32) -> Result<Vec<(Value, Value)>, PassError> {
    let mut rings: Vec<(Value, Value)> = Vec::new();
    for op in copies {
        let single = kernel.operand(*op, 1);
        if rings.iter().any(|(_, known)| *known == single) {
            continue;
        }
        let made = kernel.def_op(single).ok_or_else(|| PassError::Internal("a buffer without an allocation".into()))?;
        let (Some(ty), &OpKind::AllocShared { align, .. }) = (kernel.value_type(single).as_shared(), kernel.kind(made))
        else {
            return Err(PassError::Internal("a copy into a part of a buffer cannot be issued ahead".into()));
        };
        let ring = Builder::before(kernel, of).buffer(SharedType { slots, ..ty }, align)?;
        rings.push((ring, single));
    }
    Ok(rings)
}
