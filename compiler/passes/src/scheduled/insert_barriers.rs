//! Puts a barrier between operations that touch the same bytes of shared memory.
//!
//! An operation with a scratch buffer writes it, waits for all threads, reads it. So before it begins nobody may still be
//! reading those bytes; after it, its own reads are pending, and all earlier ones are done, since its inner barrier came
//! after them.
//!
//! ```text
//! %y = convert_layout %x, scratch = %b0 ..
//! %z = convert_layout %w, scratch = %b1 ..       →   barrier before the second, if %b0 and %b1 overlap
//! ```

use std::collections::HashMap;
use std::ops::Range;

use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Phase};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "insert-barriers", needs: Phase::Laid, leaves: Phase::Scheduled, run };

type Pending = Vec<Range<u32>>;

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let mut visitor = Visitor { kernel, needed: Vec::new(), loops: HashMap::new() };
    visitor.visit(kernel.body(), &mut Pending::new());
    let mut needed = visitor.needed;
    needed.sort_unstable();
    needed.dedup();
    for op in needed {
        Builder::before(kernel, op).barrier()?;
    }
    Ok(())
}

/// Follows the pending reads through blocks.
struct Visitor<'k> {
    kernel: &'k Kernel,
    /// Operations that need a barrier before them.
    needed: Vec<Op>,
    /// What is pending after a loop, by the loop and what is pending before it: nested loops would else be followed
    /// twice as often with each level.
    loops: HashMap<(Op, Pending), Pending>,
}

impl Visitor<'_> {
    fn visit(&mut self, block: Block, pending: &mut Pending) {
        let kernel = self.kernel;
        for op in &kernel.block(block).ops {
            match kernel.kind(*op) {
                OpKind::ForRange { .. } | OpKind::WhileLoop {} => {
                    let entry = pending.clone();
                    if let Some(known) = self.loops.get(&(*op, entry.clone())) {
                        pending.clone_from(known);
                        continue;
                    }
                    // The second round starts with what the first left pending.
                    for _ in 0..2 {
                        for nested in &kernel.op(*op).blocks {
                            self.visit(*nested, pending);
                        }
                        merge(pending, &entry);
                    }
                    self.loops.insert((*op, entry), pending.clone());
                }
                OpKind::IfElse {} => {
                    let entry = pending.clone();
                    let mut out = Pending::new();
                    for nested in &kernel.op(*op).blocks {
                        let mut side = entry.clone();
                        self.visit(*nested, &mut side);
                        merge(&mut out, &side);
                    }
                    *pending = out;
                }
                OpKind::Barrier {} => pending.clear(),
                _ => {
                    let Some(own) = scratch_range(kernel, *op) else { continue };
                    if pending.iter().any(|r| r.start < own.end && own.start < r.end) {
                        self.needed.push(*op);
                    }
                    *pending = vec![own];
                }
            }
        }
    }
}

fn merge(into: &mut Pending, other: &Pending) {
    for range in other {
        if !into.contains(range) {
            into.push(range.clone());
        }
    }
}

/// The bytes of the scratch buffer of an operation, if it has one.
fn scratch_range(kernel: &Kernel, op: Op) -> Option<Range<u32>> {
    let slot = kernel.kind(op).spec().optional.iter().position(|n| *n == "scratch")?;
    let buffer = kernel.def_op(kernel.optional(op, slot)?)?;
    match kernel.kind(buffer) {
        OpKind::AllocShared { bytes, offset: Some(offset), .. } => Some(*offset..offset + bytes),
        _ => None,
    }
}
