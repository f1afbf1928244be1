//! Moves pure operations whose operands come from outside of a loop before it.
//!
//! ```text
//! for_range .. { %b = muli %x, %y .. }      →   %b = muli %x, %y
//!                                                for_range .. { .. }
//! ```

use std::collections::HashSet;

use rtc_ir::{Block, Kernel, Op, OpKind, Phase, Position, Traits, Value, regions};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "licm", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    // Inner loops first, so that hoisted operations can leave the outer ones too.
    for op in rtc_ir::walk(kernel).into_iter().rev() {
        if matches!(kernel.kind(op), OpKind::ForRange { hints, .. } if hints.disable_licm) {
            continue;
        }
        for (number, block) in kernel.op(op).blocks.clone().into_iter().enumerate() {
            if regions::repeats(kernel.kind(op), number) {
                hoist(kernel, op, block);
            }
        }
    }
    Ok(())
}

/// Moves what a block of the loop `of` computes in each iteration again before the loop.
pub(super) fn hoist(kernel: &mut Kernel, of: Op, body: Block) {
    let mut inside: HashSet<Value> = HashSet::new();
    values_in(kernel, body, &mut inside);
    for op in kernel.ops(body).collect::<Vec<_>>() {
        let data = kernel.op(op);
        let movable = data.kind.spec().traits.has(Traits::PURE)
            && !matches!(data.kind, OpKind::Dot { .. })
            && !data.operands.iter().any(|v| inside.contains(v))
            && data.blocks.iter().all(|b| closed(kernel, *b, &inside));
        if !movable {
            continue;
        }
        for result in &data.results {
            inside.remove(result);
        }
        kernel.move_op(op, Position::Before(of));
    }
}

/// Whether a nested block uses nothing of `inside` but what it defines itself.
fn closed(kernel: &Kernel, block: Block, inside: &HashSet<Value>) -> bool {
    let mut own = HashSet::new();
    values_in(kernel, block, &mut own);
    rtc_ir::walk_block(kernel, block)
        .into_iter()
        .all(|op| kernel.op(op).operands.iter().all(|v| own.contains(v) || !inside.contains(v)))
}

fn values_in(kernel: &Kernel, block: Block, out: &mut HashSet<Value>) {
    out.extend(&kernel.block(block).args);
    for op in kernel.ops(block) {
        out.extend(&kernel.op(op).results);
        for nested in &kernel.op(op).blocks {
            values_in(kernel, *nested, out);
        }
    }
}
