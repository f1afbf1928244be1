//! Promotes what a dot gives under the dot of the next iteration, where a loop does more with it than let the matrix unit
//! add it to its sums.
//!
//! ```text
//! for_range 0, n {                     if_else 0 < n {
//!   %d = mma %a[i], %b[i], 0             %d = mma of iteration 0;  %s = local_load scales[0]
//!   %s = local_load scales[i]     →      for_range 1, n, (%e = %d, %r = %s) {
//!   %acc = %acc + %d * %s                  %d = mma_async %a[i], %b[i], 0
//! }                                        %acc = %acc + %e * %r
//!                                          barrier_wait ..;  %s = local_load scales[i]
//!                                          mma_await (%d)
//!                                          yields %d, %s
//!                                        }
//!                                        %acc = %acc + %e * %r
//!                                      }
//! ```
//!
//! All that follows from a dot, and what else can wait, has stage 1, the rest stage 0 (`pipeline/expander.rs`). The assembler
//! would move the promotion behind the wait for the dot if they were in one basic block. The wait for rows that another warp
//! copies lies between them: it is a loop. Two iterations are taken at a time, or results would be moved to other registers in
//! each. The loop is in a partition (`specialize_warps`), so that other warps load the operands.

use std::collections::HashSet;

use rtc_abi::Plan;
use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Phase, Value, constant_bits, regions};

use super::guarded_mma::{GuardedMma, is_movable, is_view, reads_row};
use super::{expand_with_dots, loops_of_partitions, registers_in_flight};
use crate::dependence::{operands, slice};
use crate::schedule::in_flight;
use crate::schedule::pipeline::expander::{Ends, StagedLoop};
use crate::tile::split_loops;
use crate::work::words::words_of_tile;
use crate::work::{Scope, estimate};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "overlap-promotion", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let loops = loops(kernel, cx.plan);
    let changed = !loops.is_empty();
    for of in loops {
        of.overlap(kernel)?;
    }
    if changed { crate::tile::dce::run(kernel, cx) } else { Ok(()) }
}

/// Whether a consumer with so many registers can hold the results of a loop's dots twice.
pub(crate) fn fits(kernel: &Kernel, of: Op, registers: u32) -> bool {
    results(kernel, of).is_some_and(|results| estimate(kernel, Scope::Consumer(of, &results)) <= registers)
}

/// The loops of partitions for which the registers suffice, or all if the plan asks for it.
fn loops(kernel: &Kernel, plan: Plan) -> Vec<PromotingLoop> {
    if plan.chained == Some(false) {
        return Vec::new();
    }
    let most = registers_in_flight(kernel);
    let suffices = |(of, registers): (Op, u32)| {
        let in_flight: u32 = results(kernel, of)?.iter().map(|value| words_of_tile(kernel, *value)).sum();
        (plan.chained == Some(true) || in_flight <= most && fits(kernel, of, registers)).then_some(of)
    };
    let loops = loops_of_partitions(kernel).into_iter();
    loops.filter_map(suffices).filter_map(|of| PromotingLoop::of(kernel, of)).collect()
}

/// The results of a loop's dots, if none is added to what the loop carries.
fn results(kernel: &Kernel, of: Op) -> Option<Vec<Value>> {
    let body = kernel.op(of).blocks[0];
    let all = rtc_ir::walk_block(kernel, body);
    let mmas: Vec<Op> = all.into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::Mma {})).collect();
    let is_plain = |mma: &Op| {
        let acc = kernel.operand(*mma, 2);
        let is_new = constant_bits(kernel, acc).is_some() || regions::is_outside(kernel, acc, of);
        kernel.op(*mma).parent == Some(body) && in_flight::can_be(kernel, *mma) && is_new
    };
    (!mmas.is_empty() && mmas.iter().all(is_plain)).then(|| mmas.iter().map(|mma| kernel.result(*mma, 0)).collect())
}

/// The operations of a loop's body that follow from these values.
fn promotions(kernel: &Kernel, body: Block, results: &[Value]) -> HashSet<Op> {
    let end = kernel.terminator(body);
    let mut values: HashSet<Value> = results.iter().copied().collect();
    let mut promotions = HashSet::new();
    for op in kernel.ops(body).filter(|op| Some(*op) != end) {
        if operands(kernel, op).any(|value| values.contains(&value)) {
            promotions.insert(op);
            values.extend(&kernel.op(op).results);
        }
    }
    promotions
}

/// A loop whose dots can overlap what becomes of those of the iteration before.
struct PromotingLoop {
    of: Op,
    mmas: Vec<GuardedMma>,
    /// What an iteration of the steady state executes, without the waits for dots; the arrivals after these are last.
    order: Vec<(Op, u32)>,
}

impl PromotingLoop {
    fn of(kernel: &Kernel, of: Op) -> Option<PromotingLoop> {
        let body = kernel.op(of).blocks[0];
        let results = results(kernel, of)?;
        let mmas = results.iter().map(|result| GuardedMma::of(kernel, kernel.def_op(*result)?));
        let mmas = mmas.collect::<Option<Vec<GuardedMma>>>()?;
        let end = kernel.terminator(body)?;
        let ops: Vec<Op> = kernel.ops(body).filter(|op| *op != end).collect();
        // The operands of the next dots come while those of the last ones are still read.
        mmas.iter().all(|mma| mma.slots(kernel) > 1).then_some(())?;

        let guarded: HashSet<Op> = mmas.iter().flat_map(GuardedMma::all).collect();
        let can_wait = |op: &Op| {
            let is_load = matches!(kernel.kind(*op), OpKind::Load { .. });
            !is_load && (is_movable(kernel, *op) || is_view(kernel, *op) || reads_row(kernel, *op))
        };
        let is_first = |op: &Op| guarded.contains(op) || !can_wait(op);
        let early = needed(kernel, body, ops.iter().copied().filter(is_first).collect());
        let is_row = |op: &Op| !guarded.contains(op) && reads_row(kernel, *op);
        let rows = needed(kernel, body, ops.iter().copied().filter(is_row).collect());
        ops.iter().any(|op| is_row(op) && matches!(kernel.kind(*op), OpKind::BarrierWait {})).then_some(())?;
        // Rows are read behind the wait for them, which does not come to the front.
        (!early.iter().any(is_row)).then_some(())?;
        let shares = |op: &Op| mmas.iter().any(|mma| in_flight::shares_operand(kernel, *op, mma.mma));
        (!ops.iter().any(shares)).then_some(())?;
        // No dot needs another one, and all of a promotion can wait.
        let promotions = promotions(kernel, body, &results);
        let is_handed_on = results.iter().any(|result| kernel.users(*result).contains(&end));
        (!promotions.is_empty() && promotions.is_disjoint(&early) && promotions.is_disjoint(&rows) && !is_handed_on)
            .then_some(())?;
        let is_end = |op: &Op| mmas.iter().any(|mma| mma.arrive == *op);
        let is_early = |op: &&Op| early.contains(op) && !is_end(op);
        let is_row = |op: &&Op| rows.contains(op) && !early.contains(op);
        let is_late = |op: &&Op| !early.contains(op) && !rows.contains(op);
        let mut order: Vec<(Op, u32)> = ops.iter().filter(is_early).map(|op| (*op, 0)).collect();
        order.extend(ops.iter().filter(is_late).map(|op| (*op, 1)));
        order.extend(ops.iter().filter(is_row).map(|op| (*op, 0)));
        order.extend(ops.iter().filter(|op| is_end(op)).map(|op| (*op, 0)));
        let is_valid = StagedLoop::new(kernel, of, order.clone(), Ends::Peeled)?.is_valid(kernel);
        is_valid.then_some(PromotingLoop { of, mmas, order })
    }

    /// Begins the dots without waiting for them, and waits behind the promotion of those of the iteration before.
    fn overlap(mut self, kernel: &mut Kernel) -> Result<(), PassError> {
        let end = self.order.len() - self.mmas.len();
        let mmas: Vec<Op> = self.mmas.iter().map(|guarded| guarded.mma).collect();
        let mut waits = Vec::new();
        for mma in &mmas {
            let result = kernel.result(*mma, 0);
            waits.push(in_flight::wait(Builder::after(kernel, *mma), &[result])?);
        }
        self.order.splice(end..end, waits.iter().map(|wait| (*wait, 0)));
        let expanded = expand_with_dots(kernel, self.of, self.order, &mmas, &waits)?;
        split_loops::unroll(kernel, expanded.of, 2)?;
        Ok(())
    }
}

/// The operations of a loop's body that these need, themselves among them.
fn needed(kernel: &Kernel, body: Block, first: Vec<Op>) -> HashSet<Op> {
    let mut needed = slice(kernel, body, first.iter().flat_map(|op| operands(kernel, *op)).collect());
    needed.extend(first);
    needed
}
