//! Executes operations that the last dot of an iteration does not depend on while it is in flight, in loops of
//! partitions that have several dots, each of which is waited for.
//!
//! ```text
//! %s = mma %q, %k                        %s = mma %q, %k
//! %p = .. %s ..                          barrier_wait ..
//! %l = reduce %p                         %p = .. %s ..
//! barrier_wait ..              →         %acc = mma_async %p, %v, %acc
//! %acc = mma %p, %v, %acc                %l = reduce %p
//! barrier_arrive ..                      mma_await (%acc)
//!                                        barrier_arrive ..
//! ```
//!
//! The wait for the dot's operands moves to where the previous dot is complete: a warp waits there anyway, and the
//! computation of the operands is not interrupted.

use std::collections::HashSet;

use rtc_ir::{Builder, Kernel, Op, OpKind, Phase, Position, Traits};

use super::{add_makers, issue_async_dots, loops_of_partitions};
use crate::schedule::in_flight;
use crate::schedule::resources::holds;
use crate::work::Scope;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "hide-reductions", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    if cx.plan.reductions == Some(false) {
        return Ok(());
    }
    for (of, registers) in loops_of_partitions(kernel) {
        let Some(last) = LastMma::of(kernel, of) else { continue };
        let mut moved = kernel.clone();
        last.begin(&mut moved)?;
        // Moved operations extend the live ranges of their operands.
        if cx.plan.reductions == Some(true) || holds(&moved, Scope::Loop(of, &[]), registers) {
            *kernel = moved;
        }
    }
    Ok(())
}

/// The last dot of a loop's body, and the operations that move.
struct LastMma {
    mma: Op,
    /// The waits for what it reads, and the operation that they go before.
    waits: Vec<Op>,
    after_other: Op,
    /// The operations executed under it, in program order.
    under: Vec<Op>,
    /// The operations that free its operands.
    frees: Vec<Op>,
    end: Op,
}

impl LastMma {
    fn of(kernel: &Kernel, of: Op) -> Option<LastMma> {
        let body = kernel.op(of).blocks[0];
        let mmas = issue_async_dots::mmas(kernel, body)?;
        let [.., other, mma] = mmas[..] else { return None };
        let end = kernel.terminator(body)?;
        (kernel.users(kernel.result(mma, 0)) == [end]).then_some(())?;
        let ops: Vec<Op> = kernel.ops(body).collect();
        let place = |op: Op| ops.iter().position(|other| *other == op);
        let (first, last) = (place(other)? + 1, place(mma)?);
        let after_other = ops[first..].iter().copied().find(|op| !is_arrival(kernel, *op))?;
        let (between, after) = (&ops[first..last], &ops[last + 1..]);
        let waits = between.iter().copied().filter(|op| matches!(kernel.kind(*op), OpKind::BarrierWait {})).collect();
        let frees = after.iter().copied().filter(|op| is_arrival(kernel, *op)).collect();
        // From the last one on: all that is used behind the dot only.
        let mut later: HashSet<Op> = after.iter().copied().chain([end]).collect();
        add_makers(kernel, between, &mut later, |op| {
            is_pure(kernel, op) && !in_flight::shares_operand(kernel, op, mma)
        });
        let under: Vec<Op> = between.iter().copied().filter(|op| later.contains(op)).collect();
        under.iter().any(|op| matches!(kernel.kind(*op), OpKind::Reduce { .. })).then_some(())?;
        Some(LastMma { mma, waits, after_other, under, frees, end })
    }

    fn begin(&self, kernel: &mut Kernel) -> Result<(), PassError> {
        // Before the operation that they go to moves itself.
        for op in self.waits.iter().filter(|op| **op != self.after_other) {
            kernel.move_op(*op, Position::Before(self.after_other));
        }
        let mut at = self.mma;
        for op in &self.under {
            kernel.move_op(*op, Position::After(at));
            at = *op;
        }
        *kernel.kind_mut(self.mma) = OpKind::MmaAsync {};
        let result = kernel.result(self.mma, 0);
        in_flight::wait(Builder::before(kernel, self.end), &[result])?;
        for op in &self.frees {
            kernel.move_op(*op, Position::Before(self.end));
        }
        Ok(())
    }
}

fn is_arrival(kernel: &Kernel, op: Op) -> bool {
    matches!(kernel.kind(op), OpKind::BarrierArrive { .. })
}

/// Whether an operation, with those in its blocks, only computes.
fn is_pure(kernel: &Kernel, op: Op) -> bool {
    let pure = |op: Op| {
        let traits = kernel.kind(op).spec().traits;
        traits.has(Traits::PURE) || traits.has(Traits::TERMINATOR)
    };
    let combines = matches!(kernel.kind(op), OpKind::Reduce { .. });
    (combines || pure(op)) && rtc_ir::walk_nested(kernel, op).into_iter().all(pure)
}
