//! Operands A that dots of loops read from shared memory for a whole program, such as the rows of Q in attention: the
//! producer loads them for the next program while this one is computed.
//!
//! ```text
//! %q = load %p                producer:   wait(empty, phase ^ 1); expect(full, bytes); copies into %b
//! local_store %q, %b     →    consumer:   wait(full, phase)
//! for_range .. { mma %b, .. }             for_range .. { mma %b, .. }; arrive(empty) by each warp
//! ```
//!
//! The phase flips with each program. Only if there is a single such operand: several would take shared memory from the
//! rings, and their barriers registers. With one loop only if its dots are chained, so that the buffer is free before the last
//! one (`pipeline_chained_dots.rs`), or if threads would load less than 16 bytes at once, as through descriptors whose rows may
//! end anywhere: wide loads cost less than waiting until the loop has ended (full attention with heads of 128: 2 to 8 % slower
//! so, and 2 to 8 % faster with the early arrival). With several loops it is always done: 3 % faster.

use std::collections::{HashMap, HashSet};

use rtc_ir::{Block, Builder, Elem, Kernel, Literal, Op, OpKind, Position, Type, Value, view};

use super::rings::SlotBarriers;
use super::transfers::Copies;
use crate::PassError;
use crate::access::addresses::Memory;
use crate::access::box_access::BoxAccess;
use crate::access::box_analysis::BoxAnalysis;
use crate::dependence::DotDependences;
use crate::matrix_unit;
use crate::pass::missing;
use crate::schedule::tma::buffer_boxes::boxes_of;
use crate::schedule::tma::coordinates::Names;

/// The bytes that a thread loads at once at best.
const WIDE: u32 = 16;

/// An operand that is stored before the loops.
pub(crate) struct ResidentOperand {
    /// The store.
    store: Op,
    /// The buffer.
    pub buffer: Value,
    /// The access that fills it.
    pub access: BoxAccess,
}

/// The loads outside of these loops that give left operands of their dots, where they are of boxes; `asked` decides whether
/// producers copy them, if it is given.
pub(crate) fn find(known: &mut BoxAnalysis<'_>, loops: &[Op], asked: Option<bool>) -> HashMap<Op, BoxAccess> {
    let kernel = known.kernel;
    let inside: HashSet<Op> =
        loops.iter().flat_map(|of| rtc_ir::walk_block(kernel, kernel.op(*of).blocks[0])).collect();
    let mut found = HashMap::new();
    for op in &inside {
        let Some(dot) = view::Dot::of(kernel, *op).filter(|_| matrix_unit::is_async_dot(kernel.kind(*op))) else {
            continue;
        };
        let Some(load) = loaded(kernel, dot.lhs(), loops, asked).filter(|load| !inside.contains(load)) else {
            continue;
        };
        if let Some(access) = known.load(load).ok().filter(|access| !access.is_made) {
            found.insert(load, access);
        }
    }
    found
}

/// The load of a tile, perhaps behind a change of layout or a transposition, unless threads do it better.
fn loaded(kernel: &Kernel, tile: Value, loops: &[Op], asked: Option<bool>) -> Option<Op> {
    let value = kernel.source_through(tile, |kind| matches!(kind, OpKind::Trans { .. } | OpKind::ConvertLayout {}));
    let load = kernel.def_op(value)?;
    let &OpKind::Load { volatile: false, vector, .. } = kernel.kind(load) else { return None };
    let bytes = kernel.value_type(value).elem()?.bytes();
    let bodies = loops.iter().map(|of| kernel.op(*of).blocks[0]);
    let is_better = loops.len() > 1
        || vector.unwrap_or(1) * bytes < WIDE
        || bodies.into_iter().any(|body| DotDependences::of(kernel, body).are_chained());
    asked.unwrap_or(is_better).then_some(load)
}

/// Those of the loads that are stored to shared memory for dots outside of the loops, in program order.
pub(crate) fn stored(
    kernel: &Kernel,
    loads: &HashMap<Op, BoxAccess>,
    loops: &[Op],
    written: &HashSet<Memory>,
    asked: Option<bool>,
) -> Vec<ResidentOperand> {
    let body = kernel.body();
    let beside = loops.iter().all(|of| kernel.op(*of).parent == Some(body));
    let mut found = Vec::new();
    for store in kernel.ops(body).filter(|op| beside && matches!(kernel.kind(*op), OpKind::LocalStore {})) {
        let (value, buffer) = (kernel.operand(store, 0), kernel.operand(store, 1));
        let Some(access) = loaded(kernel, value, loops, asked).and_then(|load| loads.get(&load)) else { continue };
        let straight = kernel.def_op(value).is_some_and(|op| !matches!(kernel.kind(op), OpKind::Trans { .. }));
        let first = loops.iter().all(|of| kernel.is_before(store, *of));
        let once =
            kernel.users(buffer).into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::LocalStore {})).count()
                == 1;
        let fits = access.axes.iter().all(|axis| axis.modulus.is_none()) && boxes_of(kernel, buffer, access).is_some();
        if straight && first && once && fits && !written.contains(&Memory::Of(access.base)) {
            found.push(ResidentOperand { store, buffer, access: access.clone() });
        }
    }
    if found.len() > 1 { Vec::new() } else { found }
}

/// An operand on its way into the partitions.
pub(crate) struct ResidentCopy<'b> {
    before: &'b ResidentOperand,
    copies: &'b Copies<'b>,
    barriers: SlotBarriers,
}

impl<'b> ResidentCopy<'b> {
    /// Puts the buffer and its barriers before `at`, where both partitions see them.
    pub fn share(
        kernel: &mut Kernel,
        at: Op,
        before: &'b ResidentOperand,
        copies: &'b Copies<'b>,
        warps: u32,
    ) -> Result<ResidentCopy<'b>, PassError> {
        let made = kernel.def_op(before.buffer).ok_or_else(|| missing("a buffer"))?;
        kernel.move_op(made, Position::Before(at));
        let mut builder = Builder::before(kernel, at);
        let (full, empty) = (builder.barriers(1, 1)?, builder.barriers(1, warps)?);
        let barriers = SlotBarriers { full, empty, by_threads: false };
        Ok(ResidentCopy { before, copies, barriers })
    }

    /// The copies of the producer, before its first loop `at`.
    pub fn producer(&self, kernel: &mut Kernel, at: Op, names: &Names<'_>, phase: Value) -> Result<(), PassError> {
        let (copies, buffer) = (self.copies, self.before.buffer);
        let bytes = copies.bytes(kernel, buffer);
        let mut builder = Builder::before(kernel, at);
        let zero = builder.constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
        let full = self.barriers.begin(builder, zero, phase, (bytes, None))?;
        copies.issue(kernel, at, names, (buffer, full), None)
    }

    /// The consumer's replacement of the store, and its arrival after the last loop, or what reads the operand behind it.
    pub fn consumer(&self, kernel: &mut Kernel, last: Op, phase: Value) -> Result<(), PassError> {
        let store = self.before.store;
        let mut builder = Builder::before(kernel, store);
        let zero = builder.constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
        let [full, empty] = self.barriers.at(&mut builder, zero)?;
        builder.barrier_wait(full, phase)?;
        kernel.erase(store);
        let last = self.last_reader(kernel, last);
        Builder::after(kernel, last).barrier_arrive(empty)?;
        Ok(())
    }

    /// The last operation that reads the buffer, of those behind the last loop and this itself.
    fn last_reader(&self, kernel: &Kernel, last: Op) -> Op {
        let made = kernel.allocation(self.before.buffer);
        let reads = |op: Op| kernel.op(op).operands.iter().any(|value| kernel.allocation(*value) == made);
        let behind = kernel.op(last).parent.into_iter().flat_map(|block| kernel.ops(block));
        let behind = behind.skip_while(|op| *op != last);
        behind.filter(|op| rtc_ir::walk_op(kernel, *op).into_iter().any(reads)).last().unwrap_or(last)
    }
}

/// Carries a phase, which flips with each program, through the loop over programs.
pub(crate) fn phase(kernel: &mut Kernel, programs: Op, zero: Value) -> Result<Value, PassError> {
    let body: Block = kernel.op(programs).blocks[0];
    let (phase, _) = kernel.carry(programs, zero).ok_or_else(|| missing("a loop"))?;
    kernel.name_value(phase, "turn");
    let end = kernel.terminator(body).ok_or_else(|| missing("an end"))?;
    let mut builder = Builder::before(kernel, end);
    let one = builder.constant_of(Literal::Int(1), Type::Scalar(Elem::I32))?;
    let turned = builder.xori(phase, one)?;
    kernel.set_operand(end, kernel.op(end).operands.len() - 1, turned);
    Ok(phase)
}
