//! Walks over a kernel.

use crate::{Block, Kernel, Op};

/// A place between operations: before operation number `index` of `block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The block.
    pub block: Block,
    /// Index of the operation after the place.
    pub index: usize,
}

/// All operations in print order: an operation before those nested in it.
pub fn walk(kernel: &Kernel) -> Vec<Op> {
    walk_block(kernel, kernel.body())
}

/// All operations of a block and of those nested in it, in print order.
pub fn walk_block(kernel: &Kernel, block: Block) -> Vec<Op> {
    let mut out = Vec::new();
    visit(kernel, block, &mut out);
    out
}

fn visit(kernel: &Kernel, block: Block, out: &mut Vec<Op>) {
    for op in &kernel.block(block).ops {
        out.push(*op);
        for nested in &kernel.op(*op).blocks {
            visit(kernel, *nested, out);
        }
    }
}
