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

use std::ops::Range;

use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Phase};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "insert-barriers", needs: Phase::Laid, leaves: Phase::Scheduled, run };

type Pending = Vec<Range<u32>>;

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let mut needed = Vec::new();
    let mut pending = Pending::new();
    let body = kernel.body();
    visit(kernel, body, &mut pending, &mut needed);
    needed.sort_unstable();
    needed.dedup();
    for op in needed {
        Builder::before(kernel, op).barrier()?;
    }
    Ok(())
}

/// Follows the pending reads through a block; operations that need a barrier before them go to `needed`.
fn visit(kernel: &Kernel, block: Block, pending: &mut Pending, needed: &mut Vec<Op>) {
    for op in &kernel.block(block).ops {
        match kernel.kind(*op) {
            OpKind::ForRange { .. } | OpKind::WhileLoop {} => {
                // The second round starts with what the first left pending.
                let entry = pending.clone();
                for _ in 0..2 {
                    for nested in &kernel.op(*op).blocks {
                        visit(kernel, *nested, pending, needed);
                    }
                    merge(pending, &entry);
                }
            }
            OpKind::IfElse {} => {
                let entry = pending.clone();
                let mut out = Pending::new();
                for nested in &kernel.op(*op).blocks {
                    let mut side = entry.clone();
                    visit(kernel, *nested, &mut side, needed);
                    merge(&mut out, &side);
                }
                *pending = out;
            }
            OpKind::Barrier {} => pending.clear(),
            _ => {
                let Some(own) = scratch_range(kernel, *op) else { continue };
                if pending.iter().any(|r| r.start < own.end && own.start < r.end) {
                    needed.push(*op);
                }
                *pending = vec![own];
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
