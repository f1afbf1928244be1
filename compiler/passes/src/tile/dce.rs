//! Removes pure operations without users, and values that loops and branches only pass to themselves.
//!
//! ```text
//! %a = addi %x, %x : i32        →   (nothing)
//! ```

use std::collections::HashSet;

use rtc_ir::{Kernel, Op, Phase, Value, ValueDef, regions};

use crate::rewrite::dead::{has_effect, is_terminator};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "dce", needs: Phase::Tile, leaves: Phase::Tile, run };

pub(crate) fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let live = live_values(kernel);
    let ops = rtc_ir::walk(kernel);
    let is_dead = |op: &Op| !has_effect(kernel, *op) && kernel.op(*op).results.iter().all(|v| !live.contains(v));
    let (dead, kept): (Vec<Op>, Vec<Op>) = ops.into_iter().partition(|op| is_dead(op) && !is_terminator(kernel, *op));
    for op in dead {
        kernel.erase(op);
    }
    for op in kept {
        // From the last to the first, since those after a removed slot move up.
        for slot in regions::slots(kernel, op).into_iter().rev() {
            if !slot.targets.iter().any(|target| live.contains(target)) {
                kernel.remove_slot(&slot);
            }
        }
    }
    Ok(())
}

/// All values that some effect depends on. A block argument is live only if it has a use other than being passed on.
fn live_values(kernel: &Kernel) -> HashSet<Value> {
    let mut live = HashSet::new();
    let mut work: Vec<Value> = Vec::new();
    // Operations nested in an operation without effects are needed only if its results are.
    let mut blocks = vec![kernel.body()];
    while let Some(block) = blocks.pop() {
        for op in kernel.ops(block).filter(|op| has_effect(kernel, *op)) {
            work.extend(own_operands(kernel, op));
            blocks.extend(&kernel.op(op).blocks);
        }
    }
    while let Some(value) = work.pop() {
        if !live.insert(value) {
            continue;
        }
        work.extend(regions::sources(kernel, value));
        match kernel.value(value).def {
            ValueDef::Result(op, _) => {
                work.extend(own_operands(kernel, op));
                let ends = kernel.op(op).blocks.iter().filter_map(|block| kernel.terminator(*block));
                work.extend(ends.flat_map(|end| own_operands(kernel, end)));
            }
            ValueDef::Arg(block, _) => {
                if let Some(around) = kernel.block(block).parent {
                    work.extend(own_operands(kernel, around));
                }
            }
        }
    }
    live
}

/// The operands that the operation itself needs: bounds, conditions, and all others that are not passed to or by a
/// nested block.
fn own_operands(kernel: &Kernel, op: Op) -> impl Iterator<Item = Value> {
    let operands = kernel.op(op).operands.iter().enumerate();
    operands.filter(move |(index, _)| !regions::is_handed(kernel, op, *index)).map(|(_, value)| *value)
}
