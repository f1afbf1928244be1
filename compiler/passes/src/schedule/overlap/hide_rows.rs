//! Reads the rows of an iteration (`partition/transfers/rows`), and what else is loaded beside the operands of a dot, while the
//! dot is in flight, in loops of partitions.
//!
//! ```text
//! barrier_wait %tiles                    barrier_wait %tiles
//! %s = mma %a, %b, %zero                 %s = mma_async %a, %b, %zero
//! barrier_arrive %free_tiles             barrier_wait %rows
//! barrier_wait %rows              →      %r = local_load %row
//! %r = local_load %row                   barrier_arrive %free_rows
//! barrier_arrive %free_rows              mma_await (%s)
//! %scaled = mulf %s, %r                  barrier_arrive %free_tiles
//!                                        %scaled = mulf %s, %r
//! ```
//!
//! Reads before the dot move behind its issue if nothing before it uses them. Waits, reads and releases of rows keep their order.

use std::collections::HashSet;

use rtc_ir::effects::Space;
use rtc_ir::{Kernel, Op, OpKind, Phase};

use super::guarded_mma::{is_movable, is_view, reads_row};
use super::{independent, loops_of_partitions, run_under, takes_few_more};
use crate::schedule::in_flight::{changes_place, is_call};
use crate::{Pass, PassContext, PassError, matrix_unit};

/// The pass.
pub const PASS: Pass = Pass { name: "hide-rows", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    if cx.plan.conversions == Some(false) {
        return Ok(());
    }
    for (of, _) in loops_of_partitions(kernel) {
        let Some(hidden) = HiddenReads::of(kernel, of) else { continue };
        let mut moved = kernel.clone();
        run_under(&mut moved, hidden.mma, hidden.before.into_iter().chain(hidden.after))?;
        if cx.plan.conversions == Some(true) || takes_few_more(kernel, &moved, of) {
            *kernel = moved;
        }
    }
    Ok(())
}

/// The last dot of a loop's body, and the operations that move under it, in program order.
struct HiddenReads {
    mma: Op,
    before: Vec<Op>,
    after: Vec<Op>,
}

impl HiddenReads {
    fn of(kernel: &Kernel, of: Op) -> Option<HiddenReads> {
        let body = kernel.op(of).blocks[0];
        let ops: Vec<Op> = kernel.ops(body).collect();
        // Dots in flight already have been given what runs under them; the assembler lets none be in flight at a call.
        let keeps = |op: &Op| match kernel.kind(*op) {
            OpKind::MmaAsync {} => true,
            kind => is_call(kernel, *op) || matrix_unit::is_dot(kind) && kernel.op(*op).parent != Some(body),
        };
        let all = rtc_ir::walk_block(kernel, body);
        (!all.iter().any(keeps)).then_some(())?;
        let dots: Vec<usize> = (0..ops.len()).filter(|at| matches!(kernel.kind(ops[*at]), OpKind::Mma {})).collect();
        let place = *dots.last()?;
        let mma = ops[place];
        (!changes_place(kernel, mma)).then_some(())?;
        // The wait for the operands is the last one before the dot, and what frees them is right behind it.
        let is_wait = |op: &Op| matches!(kernel.kind(*op), OpKind::BarrierWait {});
        let guard = ops[..place].iter().rposition(is_wait)?;
        is_release(kernel, *ops.get(place + 1)?).then_some(())?;
        let first =
            dots.iter().rev().nth(1).map_or(0, |other| {
                other + 1 + ops[other + 1..].iter().take_while(|op| is_release(kernel, **op)).count()
            });
        let stores = |op: &Op| kernel.effects(*op).any(|(effect, _)| effect.space == Space::Global && effect.lasts());
        let writes = all.iter().any(stores);
        let can_move = |op: Op| (is_movable(kernel, op) || is_view(kernel, op)) && !(writes && is_load(kernel, op));

        let behind: Vec<Op> = ops[place + 1..].iter().skip_while(|op| is_release(kernel, **op)).copied().collect();
        let row = |op: Op| reads_row(kernel, op);
        let reads = |op: Op| row(op) || is_load(kernel, op);
        let after = independent(kernel, &behind, HashSet::from([mma]), |op| can_move(op) || row(op), row, reads);
        let before = if first <= guard { delayed(kernel, &ops, first..guard, place, &can_move) } else { Vec::new() };
        let gives = |op: &Op| matches!(kernel.kind(*op), OpKind::LocalLoad {}) || is_load(kernel, *op);
        before.iter().chain(&after).any(gives).then_some(HiddenReads { mma, before, after })
    }
}

/// Whether an operation frees a slot.
fn is_release(kernel: &Kernel, op: Op) -> bool {
    matches!(kernel.kind(op), OpKind::BarrierArrive {})
}

/// Whether an operation loads from global memory.
fn is_load(kernel: &Kernel, op: Op) -> bool {
    matches!(kernel.kind(op), OpKind::Load { .. })
}

/// The reads of rows in part of a loop's body before a dot that only operations behind it use, in program order.
fn delayed(
    kernel: &Kernel,
    ops: &[Op],
    within: std::ops::Range<usize>,
    dot: usize,
    can_move: &dyn Fn(Op) -> bool,
) -> Vec<Op> {
    let mut late: HashSet<Op> = ops[dot + 1..].iter().copied().collect();
    let mut in_order = true;
    for op in ops[within.clone()].iter().rev() {
        let used_late =
            kernel.op(*op).results.iter().flat_map(|value| kernel.users(*value)).all(|user| late.contains(&user));
        let row = reads_row(kernel, *op);
        if used_late && (row && in_order || !row && can_move(*op) && !kernel.op(*op).results.is_empty()) {
            late.insert(*op);
        } else {
            in_order &= !row;
        }
    }
    ops[within].iter().copied().filter(|op| late.contains(op)).collect()
}
