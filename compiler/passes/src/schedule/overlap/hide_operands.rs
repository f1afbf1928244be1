//! Computes an operand of a dot in registers while the dots before it, which add to the same accumulators, are in flight.
//!
//! ```text
//! %l = .. %w .. ; %h = .. %w ..           %l = .. %w ..
//! %s = mma %l, %a, %acc                   %s = mma_async %l, %a, %acc
//! barrier_arrive %free_a           →      %h = .. %w ..
//! %t = mma %h, %b, %s                     %t = mma_async %h, %b, %s
//! barrier_arrive %free_b                  mma_await (%t)
//!                                         barrier_arrive %free_a
//!                                         barrier_arrive %free_b
//! ```
//!
//! Dots that add to the same accumulators follow each other in the matrix unit without a wait.

use std::collections::HashSet;

use rtc_abi::REGISTERS_PER_THREAD;
use rtc_ir::{Builder, Kernel, Op, OpKind, Phase, Position, Value};

use super::{add_makers, loops_of_partitions};
use crate::schedule::in_flight;
use crate::work::{Scope, estimate};
use crate::{Pass, PassContext, PassError, matrix_unit};

/// The pass.
pub const PASS: Pass = Pass { name: "hide-operands", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    if cx.plan.conversions == Some(false) {
        return Ok(());
    }
    let partitions = loops_of_partitions(kernel);
    for of in rtc_ir::walk(kernel) {
        let Some(run) = DotRun::of(kernel, of) else { continue };
        let registers = partitions.iter().find(|(known, _)| *known == of).map_or(REGISTERS_PER_THREAD, |(_, own)| *own);
        let mut moved = kernel.clone();
        run.begin(&mut moved)?;
        if cx.plan.conversions == Some(true) || estimate(&moved, Scope::Loop(of, &[])) <= registers {
            *kernel = moved;
        }
    }
    Ok(())
}

/// A dot of a loop's body, which waits itself or is waited for before the next one.
#[derive(Clone, Copy)]
struct WaitedDot {
    of: Op,
    wait: Option<Op>,
}

impl WaitedDot {
    fn of(kernel: &Kernel, op: Op) -> Option<WaitedDot> {
        let result = kernel.result(op, 0);
        match kernel.kind(op) {
            OpKind::Mma {} => Some(WaitedDot { of: op, wait: None }),
            OpKind::MmaAsync {} => {
                let [wait] = kernel.users(result)[..] else { return None };
                let alone = matches!(kernel.kind(wait), OpKind::MmaAwait {}) && kernel.variadic(wait) == [result];
                alone.then_some(WaitedDot { of: op, wait: Some(wait) })
            }
            _ => None,
        }
    }

    /// Its accumulators when it is complete.
    fn acc(self, kernel: &Kernel) -> Value {
        kernel.result(self.wait.unwrap_or(self.of), 0)
    }
}

/// The dots of a loop's body, each of which adds to the accumulators of the one before.
struct DotRun {
    dots: Vec<WaitedDot>,
    /// What is computed before the first of them for others alone, in program order.
    late: Vec<Op>,
    /// The operations that free operands of dots before the last one.
    frees: Vec<Op>,
}

impl DotRun {
    fn of(kernel: &Kernel, of: Op) -> Option<DotRun> {
        let OpKind::ForRange { .. } = kernel.kind(of) else { return None };
        let body = kernel.op(of).blocks[0];
        let is_dot = |op: &Op| matrix_unit::is_dot(kernel.kind(*op));
        let is_wait = |op: &Op| matches!(kernel.kind(*op), OpKind::MmaAwait {});
        let all = rtc_ir::walk_block(kernel, body);
        let dots: Option<Vec<WaitedDot>> =
            all.iter().copied().filter(is_dot).map(|op| WaitedDot::of(kernel, op)).collect();
        let dots = dots?;
        let (first, last) = (*dots.first()?, *dots.last()?);
        let waits: Vec<Op> = dots.iter().filter_map(|dot| dot.wait).collect();
        let known = all.iter().filter(|op| is_wait(op)).all(|wait| waits.contains(wait));
        let inside = dots.iter().map(|dot| dot.of).chain(waits).all(|op| kernel.op(op).parent == Some(body));
        (dots.len() > 1 && known && inside && last.wait.is_none()).then_some(())?;
        let wide = |dot: &WaitedDot| in_flight::can_be(kernel, dot.of);
        let follows = |pair: &[WaitedDot]| {
            let acc = pair[0].acc(kernel);
            kernel.operand(pair[1].of, 2) == acc && kernel.users(acc) == [pair[1].of]
        };
        let in_registers = |dot: &WaitedDot| kernel.value_type(kernel.operand(dot.of, 0)).shape().is_some();
        let alike = dots.iter().all(wide) && dots.windows(2).all(follows) && dots[1..].iter().any(in_registers);
        alike.then_some(())?;

        let ops: Vec<Op> = kernel.ops(body).collect();
        let place = |op: Op| ops.iter().position(|other| *other == op);
        let (from, to) = (place(first.of)?, place(last.of)?);
        let between = &ops[from + 1..to];
        // The assembler lets no dot be in flight at a call, and what others write to may be what a dot still reads.
        let forbids = |op: &Op| {
            matches!(kernel.kind(*op), OpKind::LocalStore {} | OpKind::Barrier {})
                || in_flight::is_call(kernel, *op)
                || !kernel.op(*op).blocks.is_empty()
        };
        (!between.iter().any(forbids)).then_some(())?;
        let mut later: HashSet<Op> = ops[from + 1..=to].iter().copied().collect();
        let is_tile = |op: Op| kernel.op(op).results.iter().any(|value| kernel.value_type(*value).shape().is_some());
        add_makers(kernel, &ops[..from], &mut later, |op| kernel.only_computes(op) && is_tile(op));
        let late: Vec<Op> = ops[..from].iter().copied().filter(|op| later.contains(op)).collect();
        let shares = |op: &Op| dots.iter().any(|dot| in_flight::shares_operand(kernel, *op, dot.of));
        (!between.iter().chain(&late).any(shares)).then_some(())?;
        let is_free = |op: &Op| matches!(kernel.kind(*op), OpKind::BarrierArrive { .. });
        Some(DotRun { dots, late, frees: between.iter().copied().filter(is_free).collect() })
    }

    fn begin(&self, kernel: &mut Kernel) -> Result<(), PassError> {
        let mut at = self.dots[0].of;
        for op in &self.late {
            kernel.move_op(*op, Position::After(at));
            at = *op;
        }
        for dot in &self.dots {
            *kernel.kind_mut(dot.of) = OpKind::MmaAsync {};
            if let Some(wait) = dot.wait {
                kernel.replace_op(wait, kernel.result(dot.of, 0));
            }
        }
        let last = self.dots[self.dots.len() - 1].of;
        let acc = kernel.result(last, 0);
        let mut at = in_flight::wait(Builder::after(kernel, last), &[acc])?;
        for free in &self.frees {
            kernel.move_op(*free, Position::After(at));
            at = *free;
        }
        Ok(())
    }
}
