//! Software-pipelines chained dots of a loop, as in attention: issues the first dot of the next iteration together with the
//! last dot of this one, which depends on the first. The operations between the two run under both. Several dots may come before
//! the last one, as where scores are those of two parts.
//! ```text
//! for_range 0, n {                 if_else 0 < n {
//!   %s = mma %q, k[i]                first(0)
//!   %p = .. %s ..            →       for_range 1, n {           i is that of the first dot
//!   %acc = mma %p, v[i], %acc          mma_await (%acc)            of the iteration before
//! }                                    %s = mma_async %q, k[i]
//!                                      %acc = mma_async %p, v[i - 1], %acc
//!                                      mma_await (%s)
//!                                      %p = .. %s ..
//!                                    }
//!                                    mma_await (%acc);  second(n - 1)
//!                                  }
//! ```
//!
//! The dots before the last one and what follows from them have stage 0, the last dot and what it alone needs have stage 1. Its
//! slot is free in stage 2, once the dot is complete (`pipeline/expander.rs`).
//!
//! The loop is in a partition (`specialize_warps`), so that other warps load the operands. The operand of the last dot, and
//! the values of its iteration that it needs, are carried to the next iteration. Casts of the operand stay with that dot:
//! before the previous dot is complete, their results would occupy registers that it may still read.

use std::collections::HashSet;

use rtc_abi::Plan;
use rtc_ir::{Builder, Kernel, Op, OpKind, Phase, Position, Value, view};

use super::guarded_mma::{GuardedMma, is_movable, is_view, reads_row};
use super::{add_makers, expand_with_dots, loops_of_partitions, registers_in_flight, rescale};
use crate::dependence::{DotDependences, operands};
use crate::pass::missing;
use crate::schedule::in_flight;
use crate::schedule::pipeline::expander::{Ends, StagedLoop};
use crate::work::words::words_of_tile;
use crate::work::{Scope, estimate};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "pipeline-chained-dots", needs: Phase::Laid, leaves: Phase::Laid, run };

/// Registers that the assembler needs beside accumulators in flight: with 160 of 168 it keeps dots in flight, with 128 of 128 it
/// spilled 136 bytes.
const SPARE: u32 = 8;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let pairs = pairs(kernel, cx.plan);
    let changed = !pairs.is_empty();
    for pair in pairs {
        pair.overlap(kernel)?;
    }
    if changed { crate::tile::dce::run(kernel, cx) } else { Ok(()) }
}

/// Whether the pass would do something for this kernel.
pub(crate) fn is_applicable(kernel: &Kernel, cx: &PassContext) -> bool {
    !pairs(kernel, cx.plan).is_empty()
}

/// The loops of partitions whose dots can overlap within their registers, or regardless of them if the plan asks for it.
fn pairs(kernel: &Kernel, plan: Plan) -> Vec<ChainedDots> {
    if plan.chained == Some(false) {
        return Vec::new();
    }
    let most = registers_in_flight(kernel);
    let fitting = loops_of_partitions(kernel).into_iter().filter_map(|(of, registers)| {
        let dots = ChainedDots::of(kernel, of)?;
        let operand = kernel.operand(dots.last.mma, 0);
        let fits = dots.registers(kernel) + SPARE <= most && estimate(kernel, Scope::Loop(of, &[operand])) <= registers;
        (plan.chained == Some(true) || fits).then_some(dots)
    });
    let mut found: Vec<ChainedDots> = fitting.collect();
    // Loops that mask scores run for the few blocks of keys at an edge, beside one without masks for the others. With both
    // overlapped, the assembler spills.
    if found.iter().any(|dots| !masks(kernel, dots.of)) {
        found.retain(|dots| !masks(kernel, dots.of));
    }
    found
}

/// Whether a loop chooses between elements of tiles of floats.
fn masks(kernel: &Kernel, of: Op) -> bool {
    let is_float = |op: Op| kernel.value_type(kernel.result(op, 0)).elem().is_some_and(rtc_ir::Elem::is_float);
    let is_tile = |op: Op| kernel.value_type(kernel.result(op, 0)).shape().is_some();
    let ops = rtc_ir::walk_block(kernel, kernel.op(of).blocks[0]);
    ops.into_iter().any(|op| matches!(kernel.kind(op), OpKind::Select {}) && is_tile(op) && is_float(op))
}

/// A loop with dots, the last of which depends on those before it.
struct ChainedDots {
    of: Op,
    /// The dots before the last one.
    first: Vec<GuardedMma>,
    last: GuardedMma,
    /// The results of the dots before the last one that other operations than dots use.
    results: Vec<Value>,
    /// The number of the carried value that the last dot adds to.
    acc: usize,
    /// What an iteration of the steady state executes, without the waits for dots.
    order: Vec<(Op, u32)>,
}

impl ChainedDots {
    fn of(kernel: &Kernel, of: Op) -> Option<ChainedDots> {
        let body = kernel.op(of).blocks[0];
        let ops: Vec<Op> = kernel.ops(body).collect();
        let end = *ops.last()?;
        let mmas: Vec<Op> = ops.iter().copied().filter(|op| matches!(kernel.kind(*op), OpKind::Mma {})).collect();
        DotDependences::of(kernel, body).are_chained().then_some(())?;
        let guarded = mmas.iter().map(|mma| GuardedMma::of(kernel, *mma));
        let mut first = guarded.collect::<Option<Vec<GuardedMma>>>()?;
        let last = first.pop()?;
        let dots: Vec<Op> = first.iter().flat_map(GuardedMma::all).collect();
        let overlaps = |dot: &GuardedMma| {
            // The operands of the dots of the next iteration come while those of the last one are still read.
            in_flight::can_be(kernel, dot.mma) && dot.slots(kernel) > 1
        };
        if !first.iter().chain([&last]).all(overlaps)
            || kernel.value_type(kernel.operand(last.mma, 0)).shape().is_none()
        {
            return None;
        }
        let results = used_later(kernel, &ops, &first)?;
        // The accumulator goes from iteration to iteration through the last dot alone.
        let total = kernel.result(last.mma, 0);
        let acc = kernel.variadic(end).iter().position(|value| *value == total)?;
        let carried = *kernel.block(body).args.get(acc + 1)?;
        if kernel.users(total) != [end] || kernel.variadic(end).iter().filter(|value| **value == total).count() != 1 {
            return None;
        }
        let late = needed_by_last(kernel, &ops, &last, carried)?;
        // The dot's operand must be computed after the wait for the previous dot, which may read the same registers.
        let operand = kernel.def_op(in_flight::registers_of(kernel, kernel.operand(last.mma, 0)))?;
        late.contains(&operand).then_some(())?;
        for op in &ops {
            let stays = late.contains(op) || last.all().contains(op) || dots.contains(op) || *op == end;
            (stays || is_movable(kernel, *op) || is_view(kernel, *op) || reads_row(kernel, *op)).then_some(())?;
        }
        // The last dot is complete an iteration later, and frees its slot then.
        let free = kernel.def_op(view::BarrierArrive::at(kernel, last.arrive).barrier())?;
        (kernel.op(free).parent == Some(body) && is_view(kernel, free)).then_some(())?;
        let mut order = vec![(free, 2), (last.arrive, 2)];
        order.extend(ops.iter().filter(|op| late.contains(op)).map(|op| (*op, 1)));
        // The slots of the dots before the last one are free once all of them are complete.
        let is_arrival = |op: &Op| first.iter().any(|dot| dot.arrive == *op);
        let begun = first.last()?.mma;
        for op in ops.into_iter().filter(|op| *op != end && !late.contains(op) && !last.all().contains(op)) {
            if is_arrival(&op) {
                continue;
            }
            order.push((op, 0));
            if op == begun {
                order.extend([(last.wait, 1), (last.mma, 1)]);
                order.extend(first.iter().map(|dot| (dot.arrive, 0)));
            }
        }
        let is_valid = StagedLoop::new(kernel, of, order.clone(), Ends::Peeled)?.is_valid(kernel);
        is_valid.then_some(ChainedDots { of, first, last, results, acc, order })
    }

    /// The registers of the accumulators that are in flight together. The assembler reserves none for operands.
    fn registers(&self, kernel: &Kernel) -> u32 {
        let last = [kernel.result(self.last.mma, 0)];
        self.results.iter().chain(&last).map(|value| words_of_tile(kernel, *value)).sum()
    }

    /// Begins the dots without waiting for them, and waits for those before the last one behind it, for the last one in the
    /// next iteration.
    fn overlap(mut self, kernel: &mut Kernel) -> Result<(), PassError> {
        let mmas: Vec<Op> = self.first.iter().chain([&self.last]).map(|dot| dot.mma).collect();
        let carried = kernel.block(kernel.op(self.of).blocks[0]).args[self.acc + 1];
        let start = kernel.first_op(kernel.op(self.of).blocks[0]).ok_or_else(|| missing("a loop"))?;
        let before = in_flight::wait(Builder::before(kernel, start), &[carried])?;
        self.order.insert(0, (before, 1));
        let last = self.last.mma;
        let own = kernel.allocation(view::BarrierArrive::at(kernel, self.last.arrive).barrier());
        rescale::skip_where_one(kernel, last);
        let begun = self.first.last().ok_or_else(|| missing("a dot"))?.mma;
        let mut waits = Vec::new();
        for result in &self.results {
            waits.push(in_flight::wait(Builder::after(kernel, begun), &[*result])?);
        }
        let place = self.order.iter().position(|(op, _)| *op == last).ok_or_else(|| missing("a dot"))? + 1;
        self.order.splice(place..place, waits.iter().map(|wait| (*wait, 0)));
        let expanded = expand_with_dots(kernel, self.of, self.order, &mmas, &waits)?;
        arrive_before_epilogue(kernel, expanded.of, own)
    }
}

/// Moves arrivals behind the loop in front of its epilogue: what the epilogue reads of shared memory has a barrier of its own,
/// `own`, so that what else was read, such as the rows of Q, is read no more. A producer can then bring that for the next
/// program under the last dot.
fn arrive_before_epilogue(kernel: &mut Kernel, steady: Op, own: Option<Op>) -> Result<(), PassError> {
    let around =
        kernel.op(steady).parent.and_then(|block| kernel.block(block).parent).ok_or_else(|| missing("a branch"))?;
    let behind = kernel.op(around).parent.into_iter().flat_map(|block| kernel.ops(block));
    let behind = behind.skip_while(|op| *op != around).skip(1);
    let is_arrival = |op: &Op| view::BarrierArrive::of(kernel, *op).is_some();
    let arrivals = behind.take_while(|op| is_arrival(op) || kernel.only_computes(*op)).filter(is_arrival);
    let arrivals: Vec<Op> = arrivals.collect();
    for arrival in arrivals {
        let barrier = view::BarrierArrive::at(kernel, arrival).barrier();
        if kernel.allocation(barrier) == own || !is_before(kernel, barrier, around) {
            continue;
        }
        let none = kernel.op(around).blocks[1];
        let end = kernel.terminator(none).ok_or_else(|| missing("an end"))?;
        Builder::before(kernel, end).barrier_arrive(barrier)?;
        kernel.move_op(arrival, Position::After(steady));
    }
    Ok(())
}

/// Whether a value is there before an operation of the same or an inner block.
fn is_before(kernel: &Kernel, value: Value, op: Op) -> bool {
    kernel.def_op(value).is_none_or(|made| kernel.op(made).parent != kernel.op(op).parent || kernel.is_before(made, op))
}

/// The results of the dots before the last one that other operations than dots use, if these come after all of them. One that
/// another dot adds to is not used otherwise.
fn used_later(kernel: &Kernel, ops: &[Op], first: &[GuardedMma]) -> Option<Vec<Value>> {
    let mmas: Vec<Op> = first.iter().map(|dot| dot.mma).collect();
    let uses = |op: Op| operands(kernel, op).any(|value| kernel.def_op(value).is_some_and(|made| mmas.contains(&made)));
    let last = *mmas.last()?;
    let mut between = ops.iter().take_while(|op| **op != last).filter(|op| !mmas.contains(op));
    if between.any(|op| uses(*op)) {
        return None;
    }
    let mut results = Vec::new();
    for mma in &mmas {
        let result = kernel.result(*mma, 0);
        let users = kernel.users(result);
        let sums = users.iter().filter(|user| mmas.contains(user)).count();
        match sums {
            0 => results.push(result),
            _ if sums == users.len() => {}
            _ => return None,
        }
    }
    Some(results)
}

/// The operations that only the last dot needs, which adds to `carried`, if they can be executed with it.
fn needed_by_last(kernel: &Kernel, ops: &[Op], last: &GuardedMma, carried: Value) -> Option<HashSet<Op>> {
    let end = *ops.last()?;
    let mut late: HashSet<Op> = HashSet::from([last.mma]);
    for op in ops {
        let takes = kernel.op(*op).operands.iter().any(|value| {
            *value == carried || kernel.def_op(*value).is_some_and(|made| late.contains(&made) && made != last.mma)
        });
        if takes && *op != end && *op != last.mma {
            is_movable(kernel, *op).then_some(())?;
            late.insert(*op);
        }
    }
    let leaks = |op: &Op| {
        let mut users = kernel.op(*op).results.iter().flat_map(|value| kernel.users(*value));
        users.any(|user| !late.contains(&user) && !last.all().contains(&user))
    };
    if late.iter().any(|op| *op != last.mma && leaks(op)) {
        return None;
    }
    // Cheap operations for the last dot alone move with it; views of slots have to.
    late.extend(last.all());
    add_makers(kernel, ops, &mut late, |op| is_cheap(kernel, op) || is_view(kernel, op));
    late.retain(|op| !last.all().contains(op));
    Some(late)
}

/// Whether it is better to execute an operation late than to carry its result: conversions of the operand to the form
/// that the dot needs, and operations as cheap as reading their results.
fn is_cheap(kernel: &Kernel, op: Op) -> bool {
    matches!(
        kernel.kind(op),
        OpKind::CastF { .. }
            | OpKind::ConvertLayout {}
            | OpKind::Broadcast {}
            | OpKind::ExpandDims { .. }
            | OpKind::Splat {}
            | OpKind::Constant { .. }
    )
}
