//! Moves operations whose results are only used after a loop behind the loop, so that they hold no registers in it.
//!
//! ```text
//! %rows = addi %first, %places : tile<..>        for_range .. { .. }
//! for_range .. { .. }                       →    %rows = addi %first, %places : tile<..>
//! store .. %rows ..                              store .. %rows ..
//! ```
//!
//! Addresses and masks of results are typical: a source computes them early, or CSE merged them with something early.
//! An operation stays if its operands would hold more registers across the loop than its result does.

use rtc_ir::{Block, Kernel, Op, Phase, Position, Type, Value, regions};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "sink", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let mut blocks = vec![kernel.body()];
    blocks.extend(rtc_ir::walk(kernel).into_iter().flat_map(|op| kernel.op(op).blocks.clone()));
    for block in blocks {
        let ops: Vec<Op> = kernel.ops(block).collect();
        let loops: Vec<Op> = ops.iter().copied().filter(|op| has_loop(kernel, *op)).collect();
        if loops.is_empty() {
            continue;
        }
        // From last to first, so that operations that define operands may follow.
        for op in ops.into_iter().rev() {
            if let Some(user) = later_user(kernel, block, op, &loops) {
                kernel.move_op(op, Position::Before(user));
            }
        }
    }
    Ok(())
}

fn has_loop(kernel: &Kernel, op: Op) -> bool {
    regions::is_loop(kernel.kind(op)) || regions::has_loops(kernel, op)
}

/// The first operation of the block that needs the result of one, if there is a loop before it that does better without.
fn later_user(kernel: &Kernel, block: Block, op: Op, loops: &[Op]) -> Option<Op> {
    let data = kernel.op(op);
    let [result] = data.results[..] else { return None };
    (kernel.only_computes(op) && registers(kernel, result) > 0).then_some(())?;
    let first = first_user(kernel, block, result)?;
    let passed = loops.iter().rfind(|of| kernel.is_before(op, **of) && kernel.is_before(**of, first))?;
    // The registers that would be held across the loop instead.
    let held = |value: &Value| {
        let made = kernel.def_op(*value).filter(|made| kernel.op(*made).parent == Some(block));
        let alone = made.is_some() && kernel.users(*value) == [op];
        let anyway = made.is_none()
            || kernel.users(*value).iter().any(|user| {
                *user != op && within(kernel, block, *user).is_some_and(|user| kernel.is_before(*passed, user))
            });
        if alone || anyway { 0 } else { registers(kernel, *value) }
    };
    let mut operands = data.operands.to_vec();
    operands.sort_unstable();
    operands.dedup();
    (operands.iter().map(held).sum::<u32>() < registers(kernel, result)).then_some(first)
}

/// The registers of a thread that a tile takes.
fn registers(kernel: &Kernel, value: Value) -> u32 {
    let Type::Tile(_) = kernel.value_type(value) else { return 0 };
    let words = kernel.value_type(value).elem().map_or(1, |elem| elem.bytes().div_ceil(4));
    kernel.layout_of(value).map_or(0, |layout| layout.registers() * words)
}

/// The first operation of the block that uses a value, or contains a use of it.
fn first_user(kernel: &Kernel, block: Block, value: Value) -> Option<Op> {
    let users = kernel.users(value).into_iter().map(|user| within(kernel, block, user));
    let users = users.collect::<Option<Vec<Op>>>()?;
    users.into_iter().reduce(|first, user| if kernel.is_before(user, first) { user } else { first })
}

/// The operation of the block that is that one or has it in it.
fn within(kernel: &Kernel, block: Block, mut op: Op) -> Option<Op> {
    while kernel.op(op).parent != Some(block) {
        op = kernel.op(op).parent.and_then(|around| kernel.block(around).parent)?;
    }
    Some(op)
}
