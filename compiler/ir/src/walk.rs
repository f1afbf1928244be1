//! Walks over a kernel.

use crate::{Block, Kernel, Op};

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

/// All operations nested in an operation, in print order.
pub fn walk_nested(kernel: &Kernel, op: Op) -> Vec<Op> {
    let mut out = Vec::new();
    for block in &kernel.op(op).blocks {
        visit(kernel, *block, &mut out);
    }
    out
}

/// An operation, and all nested in it.
pub fn walk_op(kernel: &Kernel, op: Op) -> Vec<Op> {
    let mut out = vec![op];
    for block in &kernel.op(op).blocks {
        visit(kernel, *block, &mut out);
    }
    out
}

fn visit(kernel: &Kernel, block: Block, out: &mut Vec<Op>) {
    for op in kernel.ops(block) {
        out.push(op);
        for nested in &kernel.op(op).blocks {
            visit(kernel, *nested, out);
        }
    }
}
