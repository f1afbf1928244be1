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
//! all threads, and all have read the slot that is filled next. Without a spare slot, the copies are issued after the
//! dots, after a second barrier.

use rtc_ir::{
    Block, Builder, Elem, Kernel, Literal, Op, OpKind, Phase, Position, Predicate, SharedType, Type, Value, ValueMap,
    constant_bits, trip_count, view,
};

use super::copy_groups;
use super::prefetch::prefetch;
use super::register_prefetch::{asked_for, beside_copies};
use super::stages::copies;
use crate::access::addresses::{Addresses, addresses, loads_of_dots, small_step};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "expand-loop", needs: Phase::Laid, leaves: Phase::Laid, run };

pub(crate) fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    for op in rtc_ir::walk(kernel) {
        let OpKind::ForRange { hints, .. } = kernel.kind_mut(op) else { continue };
        let plan = (hints.slots.take(), hints.ahead.take(), hints.pending.take());
        match plan {
            (Some(slots), Some(ahead), pending) => {
                let prefetches = cx.plan.registers != Some(false);
                if let (true, Some(copied)) = (prefetches, addresses(kernel, op, &roots(kernel, &copies(kernel, op)))) {
                    let loads = beside_copies(kernel, op, &copied);
                    prefetch(kernel, op, &loads)?;
                }
                expand(kernel, op, &ExpansionPlan { slots, ahead, pending: pending.unwrap_or(0) })?;
            }
            (None, Some(ahead), _) => {
                let mut loads = asked_for(kernel, op).unwrap_or_else(|| loads_of_dots(kernel, op));
                for _ in 0..ahead {
                    loads = prefetch(kernel, op, &loads)?;
                }
            }
            (_, None, _) => {}
        }
    }
    Ok(())
}

/// The pointers and masks of copies.
pub(crate) fn roots(kernel: &Kernel, copies: &[Op]) -> Vec<Value> {
    copies.iter().flat_map(|op| [Some(kernel.operand(*op, 0)), kernel.mask(*op)]).flatten().collect()
}

/// The decision of `schedule_loop`.
struct ExpansionPlan {
    slots: u32,
    ahead: u32,
    pending: u32,
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

fn expand(kernel: &mut Kernel, of: Op, plan: &ExpansionPlan) -> Result<(), PassError> {
    let ExpansionPlan { slots, ahead, pending } = *plan;
    let body = kernel.op(of).blocks[0];
    let copies = copies(kernel, of);
    let part = addresses(kernel, of, &roots(kernel, &copies));
    let (Some(part), Some(step), Some(first)) = (part, small_step(kernel, of), kernel.first_op(body)) else {
        return Err(PassError::Internal("a loop that cannot be expanded was chosen".into()));
    };
    let end = kernel.terminator(body).ok_or_else(|| PassError::Internal("a loop without a terminator".into()))?;

    let accs = if pending > 0 { mma_in_flight(kernel, of) } else { None };
    let trips = trip_count(kernel, of);
    let rings = make_rings(kernel, of, &copies, slots)?;
    let all: Vec<Op> = kernel.ops(body).collect();
    copy_groups::remove(kernel, all.iter().copied());
    for op in all {
        if let OpKind::Barrier {} = kernel.kind(op) {
            kernel.erase(op);
        }
    }
    let first = if kernel.op(first).parent.is_some() { first } else { kernel.first_op(body).unwrap_or(end) };

    // Before the loop.
    let early = Early { part, copies, rings };
    let body_args = kernel.block(body).args.clone();
    let mut carried: Vec<Value> = early.part.carried.iter().map(|index| kernel.variadic(of)[*index]).collect();
    let mut groups: Vec<Value> = Vec::new();
    let lower = view::ForRange::at(kernel, of).lower();
    for iteration in 0..ahead {
        let mut map = ValueMap::new();
        let index = ahead_of(kernel, of, of, lower, i64::from(iteration) * step)?;
        map.insert(body_args[0], index);
        for (number, value) in early.part.carried.iter().zip(&carried) {
            map.insert(body_args[number + 1], *value);
        }
        let is_sure = trips.is_some_and(|trips| trips > iteration.into());
        let runs = if is_sure { None } else { is_run(kernel, of, of, lower, i64::from(iteration) * step, true)? };
        let slot = constant(kernel, of, iteration.into())?;
        groups.push(early.copy(kernel, of, &mut map, runs, slot)?);
        carried = early.part.carried.iter().map(|number| moved(&map, kernel.variadic(end)[*number])).collect();
    }

    // Their loop-carried values.
    let zero = constant(kernel, of, 0)?;
    let start = constant(kernel, of, (ahead % slots).into())?;
    let mut names: Vec<Option<String>> =
        early.part.carried.iter().map(|number| kernel.value(body_args[number + 1]).name.clone()).collect();
    names.extend([Some("read".to_owned()), Some("filled".to_owned())]);
    names.extend(groups.iter().map(|_| Some("group".to_owned())));
    let (mut new_args, mut results) = (Vec::new(), Vec::new());
    for (value, name) in carried.iter().copied().chain([zero, start]).chain(groups).zip(names) {
        let Some((within, after)) = kernel.carry(of, value) else { continue };
        for target in [within, after] {
            kernel.name_value(target, name.as_deref().unwrap_or("ahead"));
        }
        new_args.push(within);
        results.push(after);
    }
    let (state, [read, write, groups @ ..]) = new_args.split_at(carried.len()) else {
        return Err(PassError::Internal("the slots of the ring are missing".into()));
    };

    // In the loop.
    let complete = trips.is_some_and(|trips| trips <= ahead.into());
    let reuses = !complete && needs_second_barrier(slots, ahead, pending);
    let last = if reuses { last_reader(kernel, body) } else { None };
    for (ring, buffer) in &early.rings {
        let slot = Builder::before(kernel, first).slot(*ring, *read)?;
        let ready = Builder::before(kernel, first).await_copies(slot, &groups[..1])?;
        copy_groups::read_after(kernel, *buffer, ready);
    }
    let mut map = ValueMap::new();
    // The copies are begun while the first dot is in flight, or behind the last use of the slot that they fill.
    let mma = if reuses && pending == 0 { None } else { first_dot(kernel, body) };
    let at = last.or(mma).and_then(|op| kernel.next_op(op)).unwrap_or(first);
    if let (true, Some(mma)) = (reuses, mma) {
        *kernel.kind_mut(mma) = OpKind::MmaAsync {};
        let before = kernel.operand(mma, 2);
        Builder::before(kernel, at).await_dots(&[before])?;
    }
    if reuses {
        Builder::before(kernel, at).barrier()?;
    }
    let index = ahead_of(kernel, of, at, body_args[0], i64::from(ahead) * step)?;
    map.insert(body_args[0], index);
    for (number, value) in early.part.carried.iter().zip(state) {
        map.insert(body_args[number + 1], *value);
    }
    let group = if complete {
        // No iteration is left to copy for; the groups are counted as in other loops.
        Builder::before(kernel, at).copy_group()?
    } else {
        let runs = is_run(kernel, of, at, body_args[0], i64::from(ahead) * step, false)?;
        early.copy(kernel, at, &mut map, runs, *write)?
    };
    if let Some(mma) = mma.filter(|_| !reuses) {
        *kernel.kind_mut(mma) = OpKind::MmaAsync {};
        // The dot of the iteration before, where this one stays in flight.
        let acc = if pending == 0 { kernel.result(mma, 0) } else { kernel.operand(mma, 2) };
        let wait = Builder::before(kernel, at).await_dots(&[acc])?;
        if pending == 0 {
            kernel.replace_uses_except(acc, kernel.result(wait, 0), Some(wait));
        }
    }
    let mut next: Vec<Value> = if complete {
        state.to_vec()
    } else {
        early.part.carried.iter().map(|number| moved(&map, kernel.variadic(end)[*number])).collect()
    };
    next.push(next_slot(kernel, end, *read, slots)?);
    next.push(next_slot(kernel, end, *write, slots)?);
    next.extend(groups[1..].iter().copied().chain([group]));
    let handed = kernel.op(end).operands.len() - next.len();
    for (index, value) in next.into_iter().enumerate() {
        kernel.set_operand(end, handed + index, value);
    }
    for op in early.copies {
        kernel.erase(op);
    }
    let groups = results.split_off(results.len() - groups.len());
    let mut after = Builder::after(kernel, of);
    let wait = match accs {
        Some((_, acc)) => Some((acc, after.await_dots(&[acc])?)),
        None => None,
    };
    after.build(OpKind::CopyAwait {}, &[], &[None], &groups, &[], &[])?;
    if let Some((acc, wait)) = wait {
        kernel.replace_uses_except(acc, kernel.result(wait, 0), Some(wait));
    }
    Ok(())
}

/// The first dot of a loop's body, if it can be waited for later than it is begun.
fn first_dot(kernel: &Kernel, body: Block) -> Option<Op> {
    let mma = kernel.ops(body).find(|op| matches!(kernel.kind(*op), OpKind::Mma {} | OpKind::MmaAsync {}))?;
    (kernel.value_type(kernel.result(mma, 0)).elem()?.bits() == 32).then_some(mma)
}

/// The one dot of a loop, if nothing in the loop uses its accumulators but the dot itself in the next iteration and its
/// operands outlast the iteration, so none is in registers; and what the loop gives for the accumulators.
pub(crate) fn mma_in_flight(kernel: &Kernel, of: Op) -> Option<(Op, Value)> {
    let body = kernel.op(of).blocks[0];
    let is_dot = |op: &Op| matches!(kernel.kind(*op), OpKind::Mma {} | OpKind::MmaAsync {});
    let all: Vec<Op> = rtc_ir::walk_block(kernel, body).into_iter().filter(is_dot).collect();
    let mma = first_dot(kernel, body).filter(|mma| all == [*mma])?;
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
    // ptxas lets no dot be in flight at a call.
    let calls = rtc_ir::walk_block(kernel, body)
        .into_iter()
        .any(|op| matches!(kernel.kind(op), OpKind::Print { .. } | OpKind::Assertion { .. }));
    let in_memory = kernel.value_type(kernel.operand(mma, 0)).shape().is_none();
    (carried && alone && once && in_memory && !is_stored && !calls).then(|| (mma, kernel.result(of, number)))
}

/// The operations executed ahead of time.
struct Early {
    part: Addresses,
    copies: Vec<Op>,
    /// Each ring, and the single buffer that it replaces.
    rings: Vec<(Value, Value)>,
}

impl Early {
    /// The copies of one iteration; nothing is read unless it `runs`. Gives the token of their group.
    fn copy(
        &self,
        kernel: &mut Kernel,
        before: Op,
        map: &mut ValueMap,
        runs: Option<Value>,
        slot: Value,
    ) -> Result<Value, PassError> {
        repeat(kernel, before, &self.part, map, runs)?;
        for op in &self.copies {
            let OpKind::CopyAsync { vector } = *kernel.kind(*op) else { continue };
            let buffer = kernel.operand(*op, 1);
            let Some((ring, _)) = self.rings.iter().find(|(_, single)| *single == buffer) else { continue };
            let pointer = moved(map, kernel.operand(*op, 0));
            let mut mask = kernel.mask(*op).map(|mask| moved(map, mask));
            let into = Builder::before(kernel, before).slot(*ring, slot)?;
            if let Some(runs) = runs {
                mask = Some(mask_of(kernel, before, pointer, mask, runs)?);
            }
            let loc = kernel.op(*op).loc;
            let mut builder = Builder::before(kernel, before);
            builder.set_loc(loc);
            let kind = OpKind::CopyAsync { vector };
            builder.build(kind, &[pointer, into], &[mask], &[], &[], &[])?;
        }
        Ok(Builder::before(kernel, before).copy_group()?)
    }
}

/// Inserts the address computation of an iteration. Loads are executed, and divisors unchanged, only if the iteration
/// `runs`: a division by zero is undefined even if the quotient is unused.
pub(crate) fn repeat(
    kernel: &mut Kernel,
    before: Op,
    part: &Addresses,
    map: &mut ValueMap,
    runs: Option<Value>,
) -> Result<(), PassError> {
    for op in &part.ops {
        let mut operands: Vec<Value> = kernel.op(*op).operands.iter().map(|v| moved(map, *v)).collect();
        if let (true, Some(runs)) = (may_divide_by_zero(kernel, *op), runs) {
            let ty = kernel.value_type(operands[1]);
            let mut builder = Builder::before(kernel, before);
            let one = builder.constant_of(Literal::Int(1), ty)?;
            let runs = if ty.shape().is_some() { builder.splat_to(runs, ty.with_elem(Elem::I1))? } else { runs };
            operands[1] = builder.select(runs, operands[1], one)?;
        }
        let results = kernel.op(*op).results.clone();
        let types: Vec<Type> = results.iter().map(|value| kernel.value_type(*value)).collect();
        let copy = kernel.clone_op(*op, &operands, &types);
        kernel.insert_op(copy, Position::Before(before));
        if let (OpKind::Load { .. }, Some(runs)) = (kernel.kind(copy), runs) {
            let mask = mask_of(kernel, copy, kernel.operand(copy, 0), kernel.mask(copy), runs)?;
            kernel.set_optional(copy, 0, mask);
        }
        for (index, result) in results.iter().enumerate() {
            let made = kernel.result(copy, index);
            if let Some(name) = kernel.value(*result).name.clone() {
                kernel.name_value(made, &name);
            }
            map.insert(*result, made);
        }
    }
    Ok(())
}

fn may_divide_by_zero(kernel: &Kernel, op: Op) -> bool {
    let divides = matches!(kernel.kind(op), OpKind::DivSI {} | OpKind::DivUI {} | OpKind::RemSI {} | OpKind::RemUI {});
    divides && constant_bits(kernel, kernel.operand(op, 1)).is_none_or(|bits| bits == 0)
}

/// The value in a clone.
pub(crate) fn moved(map: &ValueMap, value: Value) -> Value {
    map.get(&value).copied().unwrap_or(value)
}

/// `mask` of an access through `pointer` where it `runs`, else false.
fn mask_of(
    kernel: &mut Kernel,
    before: Op,
    pointer: Value,
    mask: Option<Value>,
    runs: Value,
) -> Result<Value, PassError> {
    let ty = kernel.value_type(pointer).with_elem(Elem::I1);
    let mut builder = Builder::before(kernel, before);
    let everywhere = if ty.shape().is_some() { builder.splat_to(runs, ty)? } else { runs };
    Ok(match mask {
        Some(mask) => builder.andi(mask, everywhere)?,
        None => everywhere,
    })
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

fn constant(kernel: &mut Kernel, before: Op, value: i64) -> Result<Value, PassError> {
    Ok(Builder::before(kernel, before).constant_of(Literal::Int(value), Type::Scalar(Elem::I32))?)
}

/// `index` and so much more.
pub(crate) fn ahead_of(kernel: &mut Kernel, of: Op, before: Op, index: Value, more: i64) -> Result<Value, PassError> {
    if more == 0 {
        return Ok(index);
    }
    let ty = kernel.value_type(view::ForRange::at(kernel, of).step());
    let more = Builder::before(kernel, of).constant_of(Literal::Int(more), ty)?;
    Ok(Builder::before(kernel, before).addi(index, more)?)
}

/// Whether the loop has an iteration `more` beyond `index`; `None` if it is sure to. The accumulator itself might overflow. Before the
/// loop `index` need not be one that it runs for.
pub(crate) fn is_run(
    kernel: &mut Kernel,
    of: Op,
    before: Op,
    index: Value,
    more: i64,
    outside: bool,
) -> Result<Option<Value>, PassError> {
    let upper = view::ForRange::at(kernel, of).upper();
    let OpKind::ForRange { unsigned, .. } = *kernel.kind(of) else { return Ok(None) };
    let less = if unsigned { Predicate::Ult } else { Predicate::Lt };
    let ty = kernel.value_type(index);
    let more = (more > 0).then(|| Builder::before(kernel, of).constant_of(Literal::Int(more), ty)).transpose()?;
    let mut builder = Builder::before(kernel, before);
    let begins = if outside { Some(builder.cmpi(index, upper, less)?) } else { None };
    let Some(more) = more else { return Ok(begins) };
    let left = builder.subi(upper, index)?;
    let goes_on = builder.cmpi(left, more, Predicate::Ugt)?;
    Ok(Some(match begins {
        Some(begins) => builder.andi(begins, goes_on)?,
        None => goes_on,
    }))
}

/// The slot after `slot` in a ring.
fn next_slot(kernel: &mut Kernel, before: Op, slot: Value, slots: u32) -> Result<Value, PassError> {
    let mut builder = Builder::before(kernel, before);
    let number =
        |builder: &mut Builder<'_>, value: i64| builder.constant_of(Literal::Int(value), Type::Scalar(Elem::I32));
    let (zero, one, last) =
        (number(&mut builder, 0)?, number(&mut builder, 1)?, number(&mut builder, i64::from(slots) - 1)?);
    let next = builder.addi(slot, one)?;
    let is_last = builder.cmpi(slot, last, Predicate::Eq)?;
    Ok(builder.select(is_last, zero, next)?)
}
