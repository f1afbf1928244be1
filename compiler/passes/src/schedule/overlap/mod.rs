//! Overlap of dots in flight with other work.

mod guarded_mma;
pub mod hide_conversions;
pub mod hide_operands;
pub mod hide_reductions;
pub mod hide_rows;
pub mod issue_async_dots;
pub mod overlap_promotion;
pub mod pipeline_chained_dots;
mod rescale;

use std::collections::HashSet;

use rtc_abi::REGISTERS_PER_THREAD;
use rtc_ir::{Builder, Kernel, Op, OpKind, Position};

use super::in_flight;
use super::pipeline::expander::{Ends, Expanded, StagedLoop, expand};
use crate::PassError;
use crate::pass::missing;
use crate::work::{Scope, estimate};

/// The allowed increase of registers per thread by operations that move under a dot.
const FEW_REGISTERS: u32 = 8;

/// The loops in the partitions of a kernel, each with the registers that a thread of its partition has.
fn loops_of_partitions(kernel: &Kernel) -> Vec<(Op, u32)> {
    let Some(division) = kernel.specialization() else { return Vec::new() };
    let mut loops = Vec::new();
    for (number, partition) in kernel.op(division).blocks.iter().enumerate() {
        let registers = match kernel.kind(division) {
            OpKind::WarpSpecialize { registers: Some(registers), .. } => registers[number],
            _ => REGISTERS_PER_THREAD,
        };
        let inside = rtc_ir::walk_block(kernel, *partition).into_iter();
        loops.extend(inside.filter(|op| matches!(kernel.kind(*op), OpKind::ForRange { .. })).map(|op| (op, registers)));
    }
    loops
}

/// The registers within which the accumulators of dots in flight have to fit: the assembler reserves those for them that a thread
/// has at the start, and otherwise serializes dots.
fn registers_in_flight(kernel: &Kernel) -> u32 {
    kernel.registers_at_start().unwrap_or(REGISTERS_PER_THREAD)
}

/// Adds to a set those of some operations, in program order, that only operations of the set use, if each `may` be added.
fn add_makers(kernel: &Kernel, ops: &[Op], set: &mut HashSet<Op>, may: impl Fn(Op) -> bool) {
    for op in ops.iter().rev().filter(|op| may(**op)) {
        let mut users = kernel.op(*op).results.iter().flat_map(|value| kernel.users(*value)).peekable();
        if users.peek().is_some() && users.all(|user| set.contains(&user)) {
            set.insert(*op);
        }
    }
}

/// Adds to a set those of some operations, in program order, whose results operations of the set use.
fn add_needed(kernel: &Kernel, ops: &[Op], set: &mut HashSet<Op>) {
    for op in ops.iter().rev() {
        let mut users = kernel.op(*op).results.iter().flat_map(|value| kernel.users(*value));
        if users.any(|user| set.contains(&user)) {
            set.insert(*op);
        }
    }
}

/// Whether an operation takes results of others.
fn takes_of(kernel: &Kernel, op: Op, others: &HashSet<Op>) -> bool {
    kernel.op(op).operands.iter().filter_map(|value| kernel.def_op(*value)).any(|made| others.contains(&made))
}

/// Those of some operations, in program order, that can be done before all that depends on a dot: the `wanted` ones, and what
/// these need. Each of them `may` move, and `ordered` ones stay in order.
fn independent(
    kernel: &Kernel,
    ops: &[Op],
    dot: HashSet<Op>,
    may: impl Fn(Op) -> bool,
    ordered: impl Fn(Op) -> bool,
    wanted: impl Fn(Op) -> bool,
) -> Vec<Op> {
    let mut stay = dot;
    let mut in_order = true;
    for op in ops {
        let is_ordered = ordered(*op);
        if takes_of(kernel, *op, &stay) || !may(*op) || is_ordered && !in_order {
            stay.insert(*op);
            in_order &= !is_ordered;
        }
    }
    let free: Vec<Op> = ops.iter().copied().filter(|op| !stay.contains(op)).collect();
    let mut moved: HashSet<Op> = free.iter().copied().filter(|op| wanted(*op)).collect();
    add_needed(kernel, &free, &mut moved);
    free.into_iter().filter(|op| moved.contains(op)).collect()
}

/// Expands a loop whose steady state begins these dots, and has these waits for them; outside of it no dots overlap.
fn expand_with_dots(
    kernel: &mut Kernel,
    of: Op,
    order: Vec<(Op, u32)>,
    mmas: &[Op],
    waits: &[Op],
) -> Result<Expanded, PassError> {
    for mma in mmas {
        *kernel.kind_mut(*mma) = OpKind::MmaAsync {};
    }
    let staged = StagedLoop::new(kernel, of, order, Ends::Peeled).ok_or_else(|| missing("a loop"))?;
    let expanded = expand(kernel, staged)?;
    for (op, copy) in expanded.before.iter().chain(&expanded.after) {
        if mmas.contains(op) {
            *kernel.kind_mut(*copy) = OpKind::Mma {};
        } else if waits.contains(op) {
            kernel.replace_op(*copy, kernel.operand(*copy, 0));
        }
    }
    Ok(expanded)
}

/// Executes operations while a dot is in flight: they move behind it in this order, and the wait for it follows them.
fn run_under(kernel: &mut Kernel, mma: Op, ops: impl IntoIterator<Item = Op>) -> Result<(), PassError> {
    let mut at = mma;
    for op in ops {
        kernel.move_op(op, Position::After(at));
        at = op;
    }
    *kernel.kind_mut(mma) = OpKind::MmaAsync {};
    let result = kernel.result(mma, 0);
    in_flight::wait(Builder::after(kernel, at), &[result])?;
    Ok(())
}

/// Whether a loop takes hardly more registers than in the kernel before.
fn takes_few_more(before: &Kernel, after: &Kernel, of: Op) -> bool {
    let registers = |kernel: &Kernel| estimate(kernel, Scope::Loop(of, &[]));
    registers(after) <= registers(before) + FEW_REGISTERS
}
