//! How often an operation is executed, by the loops around it.

use rtc_ir::{Block, Kernel, Op, regions};

/// How often a loop runs, for lack of better knowledge.
const LOOP: u64 = 8;

/// The weight of an operation: how many times its cost counts.
pub fn weight(kernel: &Kernel, op: Op) -> u64 {
    kernel.op(op).parent.map_or(1, |block| often(loop_depth(kernel, block)))
}

/// The weight at a loop depth.
pub fn often(depth: u32) -> u64 {
    LOOP.pow(depth.min(8))
}

/// In how many loops a block is nested.
pub(crate) fn loop_depth(kernel: &Kernel, block: Block) -> u32 {
    let mut depth = 0;
    let mut block = Some(block);
    while let Some(op) = block.and_then(|b| kernel.block(b).parent) {
        depth += u32::from(regions::is_loop(kernel.kind(op)));
        block = kernel.op(op).parent;
    }
    depth
}
