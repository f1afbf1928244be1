//! Removes pure operations without users, and values that loops and branches only pass to themselves.
//!
//! ```text
//! %a = addi %x, %x : i32        →   (nothing)
//! ```

use std::collections::HashSet;

use rtc_ir::effects::Effect;
use rtc_ir::{Kernel, Op, OpKind, Phase, Traits, Value, ValueDef, regions};

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

/// Whether an operation or one nested in it does more than give results.
pub(crate) fn has_effect(kernel: &Kernel, op: Op) -> bool {
    let kind = kernel.kind(op);
    let traits = kind.spec().traits;
    if traits.has(Traits::NESTED) {
        let nested = &kernel.op(op).blocks;
        let has_effect = |o: Op| !is_terminator(kernel, o) && has_effect(kernel, o);
        return regions::may_not_end(kind) || nested.iter().any(|b| kernel.ops(*b).any(has_effect));
    }
    matches!(kind, OpKind::Load { volatile: true, .. })
        || is_terminator(kernel, op)
        || kind.spec().effects.iter().any(Effect::lasts)
}

fn is_terminator(kernel: &Kernel, op: Op) -> bool {
    kernel.kind(op).spec().traits.has(Traits::TERMINATOR)
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
