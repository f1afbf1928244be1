//! Removes pure operations whose results nobody uses, and values that loops carry for themselves alone.
//!
//! ```text
//! %a = addi %x, %x : i32        →   (nothing)
//! ```

use std::collections::HashSet;

use rtc_ir::{Block, Kernel, Op, OpKind, Phase, Traits, Value};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "dce", needs: Phase::Tile, leaves: Phase::Tile, run };

pub(crate) fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let live = live_values(kernel);
    remove_dead_carried(kernel, &live);
    let live = live_values(kernel);
    let mut dead = rtc_ir::walk(kernel);
    dead.retain(|op| !has_effect(kernel, *op) && kernel.op(*op).results.iter().all(|v| !live.contains(v)));
    kernel.detach_ops(&dead);
    Ok(())
}

/// Whether an operation or one nested in it does more than give results.
pub(crate) fn has_effect(kernel: &Kernel, op: Op) -> bool {
    let traits = kernel.kind(op).spec().traits;
    if traits.has(Traits::NESTED) {
        let nested = &kernel.op(op).blocks;
        // A `while` may never end, which is an effect.
        return matches!(kernel.kind(op), OpKind::WhileLoop {})
            || nested
                .iter()
                .any(|b| kernel.block(*b).ops.iter().any(|o| !is_end(kernel, *o) && has_effect(kernel, *o)));
    }
    if matches!(kernel.kind(op), OpKind::Load { volatile: false, .. } | OpKind::AllocShared { .. }) {
        return false;
    }
    !traits.has(Traits::PURE)
}

fn is_end(kernel: &Kernel, op: Op) -> bool {
    kernel.kind(op).spec().traits.has(Traits::TERMINATOR)
}

/// All values that some effect depends on. What a loop carries lives only if its result does, or if it is used for
/// something else than carrying itself.
fn live_values(kernel: &Kernel) -> HashSet<Value> {
    let mut live = HashSet::new();
    let mut work: Vec<Value> = Vec::new();
    for op in rtc_ir::walk(kernel) {
        let data = kernel.op(op);
        let ends = is_end(kernel, op);
        if ends {
            // A combine block's results and a loop's condition are always needed.
            let around = data.parent.and_then(|b| kernel.block(b).parent).map(|o| kernel.kind(o));
            match (&data.kind, around) {
                // A `while` keeps all that it carries.
                (OpKind::Condition {}, _) => work.extend(data.operands.iter()),
                (
                    _,
                    Some(OpKind::Reduce { .. } | OpKind::Scan { .. } | OpKind::MapElements {} | OpKind::WhileLoop {}),
                ) => {
                    work.extend(data.operands.iter());
                }
                _ => {}
            }
        } else if data.kind.spec().traits.has(Traits::NESTED) {
            if matches!(data.kind, OpKind::WhileLoop {}) {
                work.extend(data.operands.iter());
            } else if has_effect(kernel, op) {
                // Bounds and conditions; carried values follow their own liveness.
                work.extend(data.operands.iter().take(data.kind.spec().operands.len()));
            }
        } else if has_effect(kernel, op) {
            work.extend(data.operands.iter());
        }
    }
    while let Some(value) = work.pop() {
        if live.insert(value) {
            depends_on(kernel, value, &mut work);
        }
    }
    live
}

/// The values that `value` is made of.
fn depends_on(kernel: &Kernel, value: Value, out: &mut Vec<Value>) {
    match kernel.value(value).def {
        rtc_ir::ValueDef::Result(op, index) => {
            let data = kernel.op(op);
            let named = data.kind.spec().operands.len();
            match &data.kind {
                OpKind::ForRange { .. } | OpKind::WhileLoop {} | OpKind::IfElse {} => {
                    out.extend(data.operands.iter().take(named));
                    carried_sources(kernel, op, index as usize, out);
                }
                _ => out.extend(data.operands.iter()),
            }
        }
        rtc_ir::ValueDef::Arg(block, index) => {
            let Some(op) = kernel.block(block).parent else { return };
            let data = kernel.op(op);
            match &data.kind {
                OpKind::ForRange { .. } => {
                    out.extend(data.operands.iter().take(3));
                    if index > 0 {
                        carried_sources(kernel, op, index as usize - 1, out);
                    }
                }
                OpKind::WhileLoop {} => {
                    let slot = index as usize;
                    if block == data.blocks[0] {
                        out.extend(kernel.variadic(op).get(slot));
                        out.extend(end_value(kernel, data.blocks[1], slot));
                    } else {
                        out.extend(end_value(kernel, data.blocks[0], slot));
                    }
                }
                _ => out.extend(data.operands.iter()),
            }
        }
    }
}

fn end_value(kernel: &Kernel, block: Block, slot: usize) -> Option<Value> {
    kernel.terminator(block).and_then(|t| kernel.variadic(t).get(slot).copied())
}

fn carried_sources(kernel: &Kernel, op: Op, slot: usize, out: &mut Vec<Value>) {
    let data = kernel.op(op);
    match &data.kind {
        OpKind::ForRange { .. } => {
            out.extend(kernel.variadic(op).get(slot));
            out.extend(end_value(kernel, data.blocks[0], slot));
            out.extend(kernel.block(data.blocks[0]).args.get(slot + 1));
        }
        OpKind::WhileLoop {} => out.extend(end_value(kernel, data.blocks[0], slot)),
        _ => data.blocks.iter().for_each(|b| out.extend(end_value(kernel, *b, slot))),
    }
}

/// Takes dead carried values out of `for` loops and branches.
fn remove_dead_carried(kernel: &mut Kernel, live: &HashSet<Value>) {
    for op in rtc_ir::walk(kernel) {
        let is_for = matches!(kernel.kind(op), OpKind::ForRange { .. });
        if !is_for && !matches!(kernel.kind(op), OpKind::IfElse {}) {
            continue;
        }
        let blocks = kernel.op(op).blocks.clone();
        for slot in (0..kernel.op(op).results.len()).rev() {
            let arg = is_for.then(|| kernel.block(blocks[0]).args[slot + 1]);
            if live.contains(&kernel.result(op, slot)) || arg.is_some_and(|a| live.contains(&a)) {
                continue;
            }
            for block in &blocks {
                if let Some(end) = kernel.terminator(*block) {
                    kernel.op_mut(end).operands.remove(slot);
                }
            }
            if let Some(arg) = arg {
                // Dead users of the argument inside the body go with the rest of the dead code.
                let init = kernel.variadic(op)[slot];
                kernel.replace_uses(arg, init);
                let at = kernel.op(op).operands.len() - kernel.variadic(op).len() + slot;
                kernel.op_mut(op).operands.remove(at);
                kernel.remove_arg(blocks[0], slot + 1);
            }
            kernel.remove_result(op, slot);
        }
    }
}
