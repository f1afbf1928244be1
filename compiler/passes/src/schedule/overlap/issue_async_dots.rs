//! Keeps the dots of an iteration in flight while other operations of it are executed, if a loop has several dots that
//! do not all depend on each other.
//!
//! ```text
//! %s = mma %k, %q                      %s = mma_async %k, %q
//! %p = .. %s ..                        %d = mma_async %v, %o         needs nothing of %s, so it begins at once
//! %a = mma %p, %o, %a           →      mma_await (%s)
//! %d = mma %v, %o                      %p = .. %s ..
//! %e = .. %p .. %d ..                  %a = mma_async %p, %o, %a
//! %b = mma %e, %q, %b                  mma_await (%d)
//!                                      %e = .. %p .. %d ..
//!                                      %b = mma_async %e, %q, %b
//!                                      mma_await (%a, %b)
//! ```
//!
//! This is the case in attention backward. The loop is in a partition (`specialize_warps`), so that other warps load
//! the operands; slots are freed when the last dot of the iteration is complete. Dots that `pipeline_chained_dots` has
//! changed are left alone.

use std::collections::HashSet;

use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Phase, Position, Traits, Value, view};

use super::guarded_mma::is_view;
use super::{add_needed, loops_of_partitions, takes_few_more};
use crate::dependence::operands;
use crate::schedule::in_flight;
use crate::work::{Scope, estimate};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "issue-async-dots", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    if cx.plan.early == Some(false) {
        return Ok(());
    }
    for (of, registers) in loops_of_partitions(kernel) {
        let body = kernel.op(of).blocks[0];
        let Some(mmas) = mmas(kernel, body) else { continue };
        let early = independent(kernel, body, &mmas);
        if early.is_empty() {
            continue;
        }
        let mut made = kernel.clone();
        hoist(&mut made, mmas[0], &early);
        begin(&mut made, body, &mmas)?;
        // Accumulators that are spilled cost more than the overlap gains, unless nearly as many are spilled without it.
        let fits = || estimate(&made, Scope::Loop(of, &[])) <= registers || takes_few_more(kernel, &made, of);
        if cx.plan.early == Some(true) || fits() {
            *kernel = made;
        }
    }
    Ok(())
}

/// The dots of a loop's body, if there are several and nothing else in it works on operands in shared memory, but for
/// stores to buffers that only later dots of the iteration read.
pub(crate) fn mmas(kernel: &Kernel, body: Block) -> Option<Vec<Op>> {
    let all = rtc_ir::walk_block(kernel, body);
    let is_dot = |op: &Op| matches!(kernel.kind(*op), OpKind::Mma {});
    let mmas: Vec<Op> = kernel.ops(body).filter(is_dot).collect();
    let alone = all.iter().all(|op| match kernel.kind(*op) {
        OpKind::Mma {} => mmas.contains(op),
        OpKind::MmaAsync {} | OpKind::MmaAwait {} => false,
        OpKind::LocalStore {} => {
            let buffer = kernel.allocation(view::LocalStore::at(kernel, *op).buffer());
            let before = kernel.ops(body).take_while(|other| other != op);
            buffer.is_some() && before.filter(is_dot).all(|mma| !reads(kernel, mma, buffer))
        }
        _ => !in_flight::is_call(kernel, *op),
    });
    (alone && mmas.len() > 1 && mmas.iter().all(|mma| in_flight::can_be(kernel, *mma))).then_some(mmas)
}

/// Whether a dot has an operand in this allocation.
fn reads(kernel: &Kernel, mma: Op, buffer: Option<Op>) -> bool {
    (0..2).any(|place| kernel.allocation(kernel.operand(mma, place)) == buffer)
}

/// The dots after the first that are independent of the dots before them in the iteration, each with the operations
/// that have to move before it.
fn independent(kernel: &Kernel, body: Block, mmas: &[Op]) -> Vec<Vec<Op>> {
    let after_first: Vec<Op> = kernel.ops(body).skip_while(|op| *op != mmas[0]).skip(1).collect();
    let stored: HashSet<Op> =
        kernel.ops(body).filter_map(|op| kernel.allocation(view::LocalStore::of(kernel, op)?.buffer())).collect();
    let mut early = Vec::new();
    for mma in &mmas[1..] {
        // Its operand is not there before it is stored.
        if stored.iter().any(|buffer| reads(kernel, *mma, Some(*buffer))) {
            continue;
        }
        let before: Vec<Op> = after_first.iter().copied().take_while(|op| op != mma).collect();
        let mut needed: HashSet<Op> = HashSet::from([*mma]);
        add_needed(kernel, &before, &mut needed);
        let waits = before.iter().filter(|op| matches!(kernel.kind(**op), OpKind::BarrierWait {}));
        needed.extend(waits);
        let movable = |op: &Op| {
            let kind = kernel.kind(*op);
            let pure = kind.spec().traits.has(Traits::PURE) && kernel.op(*op).blocks.is_empty();
            op == mma || pure || is_view(kernel, *op) || matches!(kind, OpKind::BarrierWait {})
        };
        // The accumulators of the first dot are not there yet.
        let first = kernel.result(mmas[0], 0);
        let waits_for_first = needed.iter().any(|op| kernel.op(*op).operands.contains(&first));
        if !waits_for_first && needed.iter().all(movable) {
            early.push(after_first.iter().copied().filter(|op| needed.contains(op)).collect());
        }
    }
    early
}

/// Moves these operations right behind the first dot, in order.
fn hoist(kernel: &mut Kernel, first: Op, early: &[Vec<Op>]) {
    let mut at = first;
    let mut moved = HashSet::new();
    for op in early.iter().flatten() {
        if moved.insert(*op) {
            kernel.move_op(*op, Position::After(at));
            at = *op;
        }
    }
}

/// Begins the dots without waiting for them, and waits for each before its accumulators, or the registers of its
/// left operand, are used.
fn begin(kernel: &mut Kernel, body: Block, mmas: &[Op]) -> Result<(), PassError> {
    let mut under_way: Vec<(Op, Value)> = Vec::new();
    let mut frees = Vec::new();
    for op in kernel.ops(body).collect::<Vec<_>>() {
        if let OpKind::BarrierArrive { .. } = kernel.kind(op)
            && !under_way.is_empty()
        {
            frees.push(op);
        }
        let used: Vec<Value> = operands(kernel, op).collect();
        let waits_for = |(mma, acc): &(Op, Value)| used.contains(acc) || in_flight::shares_operand(kernel, op, *mma);
        if let Some(last) = under_way.iter().rposition(waits_for) {
            let complete: Vec<Value> = under_way.drain(..=last).map(|(_, acc)| acc).collect();
            in_flight::wait(Builder::before(kernel, op), &complete)?;
        }
        if mmas.contains(&op) {
            *kernel.kind_mut(op) = OpKind::MmaAsync {};
            under_way.push((op, kernel.result(op, 0)));
        }
    }
    let end = kernel.terminator(body).ok_or_else(|| PassError::Internal("a loop without a terminator".into()))?;
    if !under_way.is_empty() {
        let accs: Vec<Value> = under_way.into_iter().map(|(_, acc)| acc).collect();
        in_flight::wait(Builder::before(kernel, end), &accs)?;
    }
    for free in frees {
        kernel.move_op(free, Position::Before(end));
    }
    Ok(())
}
