//! Software-pipelines two chained dots of a loop, as in attention: issues the first dot of the next iteration together
//! with the second dot of this one, which depends on the first. The operations between the two run under both.
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
//! The first dot and what follows from it have stage 0, the second dot and what it alone needs have stage 1. Its slot is free
//! in stage 2, once the dot is complete (`pipeline/expander.rs`).
//!
//! The loop is in a partition (`specialize_warps`), so that other warps load the operands. The operand of the second
//! dot, and the values of its iteration that it needs, are carried to the next iteration. Casts of the operand stay
//! with the second dot: before the previous dot is complete, their results would occupy registers that it may still
//! read.

use std::collections::HashSet;

use rtc_abi::Plan;
use rtc_ir::{Builder, Kernel, Op, OpKind, Phase, view};

use super::guarded_mma::{GuardedMma, is_movable, is_view, reads_row};
use super::{add_makers, loops_of_partitions, registers_in_flight};
use crate::pass::missing;
use crate::schedule::pipeline::expander::{Ends, StagedLoop, expand};
use crate::work::pressure::words_of_tile;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "pipeline-chained-dots", needs: Phase::Laid, leaves: Phase::Laid, run };

/// The registers of a thread in addition to the accumulators of both dots and the operand of the second one.
const OTHER_REGISTERS: u32 = 40;

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
    let found = loops_of_partitions(kernel).into_iter().filter_map(|(of, registers)| {
        let dots = ChainedDots::of(kernel, of)?;
        let held = dots.registers(kernel);
        (plan.chained == Some(true) || held <= most && held + OTHER_REGISTERS <= registers).then_some(dots)
    });
    found.collect()
}

/// A loop with two dots, the second of which depends on the first.
struct ChainedDots {
    of: Op,
    first: GuardedMma,
    second: GuardedMma,
    /// The number of the carried value that the second dot adds to.
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
        let [first, second] = mmas[..] else { return None };
        let (first, second) = (GuardedMma::of(kernel, first)?, GuardedMma::of(kernel, second)?);
        // The operands of the first dot of the next iteration come while those of the second one are still read.
        (first.slots(kernel) > 1 && second.slots(kernel) > 1).then_some(())?;
        let wide = |product: &GuardedMma| {
            kernel.value_type(kernel.result(product.mma, 0)).elem().is_some_and(|elem| elem.bits() == 32)
        };
        if !wide(&first) || !wide(&second) || kernel.value_type(kernel.operand(second.mma, 0)).shape().is_none() {
            return None;
        }
        // The accumulator goes from iteration to iteration through the second dot alone.
        let total = kernel.result(second.mma, 0);
        let acc = kernel.variadic(end).iter().position(|value| *value == total)?;
        let carried = *kernel.block(body).args.get(acc + 1)?;
        if kernel.users(total) != [end] || kernel.variadic(end).iter().filter(|value| **value == total).count() != 1 {
            return None;
        }
        let mut late: HashSet<Op> = HashSet::from([second.mma]);
        for op in &ops {
            let takes = kernel.op(*op).operands.iter().any(|value| {
                *value == carried
                    || kernel.def_op(*value).is_some_and(|made| late.contains(&made) && made != second.mma)
            });
            if takes && *op != end && *op != second.mma {
                is_movable(kernel, *op).then_some(())?;
                late.insert(*op);
            }
        }
        let leaks = |op: &Op| {
            let mut users = kernel.op(*op).results.iter().flat_map(|value| kernel.users(*value));
            users.any(|user| !late.contains(&user) && !second.all().contains(&user))
        };
        if late.iter().any(|op| *op != second.mma && leaks(op)) {
            return None;
        }
        // Cheap operations for the second dot alone move with it; views of slots have to.
        late.extend(second.all());
        add_makers(kernel, &ops, &mut late, |op| is_cheap(kernel, op) || is_view(kernel, op));
        late.retain(|op| !second.all().contains(op));
        // The dot's operand must be computed after the wait for the previous dot, which may read the same registers.
        let operand = kernel.def_op(kernel.operand(second.mma, 0))?;
        late.contains(&operand).then_some(())?;
        for op in &ops {
            let stays = late.contains(op) || second.all().contains(op) || first.all().contains(op) || *op == end;
            (stays || is_movable(kernel, *op) || is_view(kernel, *op) || reads_row(kernel, *op)).then_some(())?;
        }
        // The second dot is complete an iteration later, and frees its slot then.
        let free = kernel.def_op(view::BarrierArrive::at(kernel, second.arrive).barrier())?;
        (kernel.op(free).parent == Some(body) && is_view(kernel, free)).then_some(())?;
        let mut order = vec![(free, 2), (second.arrive, 2)];
        order.extend(ops.iter().filter(|op| late.contains(op)).map(|op| (*op, 1)));
        for op in ops.into_iter().filter(|op| *op != end && !late.contains(op) && !second.all().contains(op)) {
            order.push((op, 0));
            if op == first.mma {
                order.extend([(second.wait, 1), (second.mma, 1)]);
            }
        }
        let is_valid = StagedLoop::new(kernel, of, order.clone(), Ends::Peeled)?.is_valid(kernel);
        is_valid.then_some(ChainedDots { of, first, second, acc, order })
    }

    /// The registers that both dots hold while they are in flight.
    fn registers(&self, kernel: &Kernel) -> u32 {
        let (first, second) = (self.first.mma, self.second.mma);
        let held = [kernel.result(first, 0), kernel.result(second, 0), kernel.operand(second, 0)];
        held.into_iter().map(|value| words_of_tile(kernel, value)).sum()
    }

    /// Begins both dots without waiting for them, and waits for the first behind the second, for the second in the next
    /// iteration.
    fn overlap(mut self, kernel: &mut Kernel) -> Result<(), PassError> {
        let (first, second) = (self.first.mma, self.second.mma);
        for mma in [first, second] {
            *kernel.kind_mut(mma) = OpKind::MmaAsync {};
        }
        let carried = kernel.block(kernel.op(self.of).blocks[0]).args[self.acc + 1];
        let start = kernel.first_op(kernel.op(self.of).blocks[0]).ok_or_else(|| missing("a loop"))?;
        let before = Builder::before(kernel, start).await_dots(&[carried])?;
        kernel.replace_uses_except(carried, kernel.result(before, 0), Some(before));
        self.order.insert(0, (before, 1));
        let scores = kernel.result(first, 0);
        let complete = Builder::after(kernel, first).await_dots(&[scores])?;
        kernel.replace_uses_except(scores, kernel.result(complete, 0), Some(complete));
        let place = self.order.iter().position(|(op, _)| *op == second).ok_or_else(|| missing("a dot"))?;
        self.order.insert(place + 1, (complete, 0));

        let staged = StagedLoop::new(kernel, self.of, self.order, Ends::Peeled).ok_or_else(|| missing("a loop"))?;
        let expanded = expand(kernel, staged)?;
        // Outside of the loop no dots overlap.
        for (op, copy) in expanded.before.into_iter().chain(expanded.after) {
            if op == first || op == second {
                *kernel.kind_mut(copy) = OpKind::Mma {};
            } else if op == complete {
                kernel.replace_op(copy, kernel.operand(copy, 0));
            }
        }
        Ok(())
    }
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
