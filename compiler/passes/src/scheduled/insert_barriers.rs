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

use std::collections::{BTreeSet, HashMap, HashSet};

use rtc_ir::effects::Access;
use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Phase, place_bytes, regions};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "insert-barriers", needs: Phase::Laid, leaves: Phase::Scheduled, run };

/// Byte ranges that threads may still be reading: start and end.
type Pending = BTreeSet<(u32, u32)>;

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let mut visitor = Visitor { kernel, needed: HashSet::new(), known: HashMap::new() };
    visitor.visit(kernel.body(), Pending::new());
    let mut needed: Vec<Op> = visitor.needed.into_iter().collect();
    needed.sort_unstable();
    for op in needed {
        Builder::before(kernel, op).barrier()?;
    }
    Ok(())
}

/// Follows the pending reads through blocks.
struct Visitor<'k> {
    kernel: &'k Kernel,
    /// Operations that need a barrier before them.
    needed: HashSet<Op>,
    /// What is pending after an operation with nested blocks, by the operation and what is pending before it: nested
    /// loops would else be followed twice as often with each level.
    known: HashMap<(Op, Pending), Pending>,
}

impl Visitor<'_> {
    fn visit(&mut self, block: Block, mut pending: Pending) -> Pending {
        let kernel = self.kernel;
        for op in kernel.ops(block) {
            let kind = kernel.kind(op);
            if matches!(kind, OpKind::Barrier {}) {
                pending.clear();
            } else if !regions::flow(kind).is_empty() {
                pending = self.nested(op, pending);
            } else if let Some(own) = scratch_range(kernel, op) {
                if pending.iter().any(|(start, end)| *start < own.1 && own.0 < *end) {
                    self.needed.insert(op);
                }
                pending = Pending::from([own]);
            }
        }
        pending
    }

    fn nested(&mut self, op: Op, entry: Pending) -> Pending {
        if let Some(known) = self.known.get(&(op, entry.clone())) {
            return known.clone();
        }
        let kernel = self.kernel;
        let after = regions::follow(kernel, op, entry.clone(), merge, |block, pending| self.visit(block, pending));
        self.known.insert((op, entry), after.clone());
        after
    }
}

fn merge(into: &mut Pending, other: &Pending) {
    into.extend(other);
}

/// The bytes of the scratch buffer of an operation, if it has one.
fn scratch_range(kernel: &Kernel, op: Op) -> Option<(u32, u32)> {
    let exchanged = kernel.effects(op).find(|(effect, _)| effect.access == Access::Exchange)?;
    let buffer = kernel.allocation(exchanged.1?)?;
    let OpKind::AllocShared { offset: Some(offset), .. } = *kernel.kind(buffer) else { return None };
    let bytes = place_bytes(kernel.value_type(kernel.result(buffer, 0)));
    Some((offset, offset + bytes as u32))
}
