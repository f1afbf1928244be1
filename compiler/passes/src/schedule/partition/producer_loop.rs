//! A loop whose copies a producer issues.

use std::collections::HashSet;

use rtc_ir::{Kernel, Op, OpKind, Value, view};

use super::config;
use super::operand_sources::sources_of;
use super::transfers::Transfer;
use crate::PassError;
use crate::access::box_access::BoxAccess;
use crate::access::refusal::Refusal;
use crate::dependence::DotDependences;
use crate::pass::missing;

/// A loop with copies for dots.
pub(crate) struct ProducerLoop {
    /// The loop.
    pub of: Op,
    /// The loops and branches around it and itself, from the outside in.
    pub path: Vec<Op>,
    /// What is copied for it: operands of its dots in program order, then what no dot takes its operand from.
    pub transfers: Vec<Transfer>,
}

impl ProducerLoop {
    /// Its dots, in program order.
    pub fn mmas(&self, kernel: &Kernel) -> Vec<Op> {
        let all = rtc_ir::walk_block(kernel, kernel.op(self.of).blocks[0]);
        all.into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::Mma {})).collect()
    }

    /// How its dots depend on each other.
    pub fn dependences(&self, kernel: &Kernel) -> DotDependences {
        DotDependences::of(kernel, kernel.op(self.of).blocks[0])
    }

    /// Checks that the loop does nothing but copy, compute dots on the copies, and arithmetic; operands can also be in shared
    /// memory since before the loop, and operand A in registers, or stored to shared memory by the warps that compute it.
    pub fn check_body(&self, kernel: &Kernel) -> Result<(), Refusal> {
        let body = kernel.op(self.of).blocks[0];
        let inside = rtc_ir::walk_block(kernel, body);
        let copied: HashSet<Value> = self.transfers.iter().map(|transfer| transfer.buffer).collect();
        let written =
            |op: &Op| view::LocalStore::of(kernel, *op).and_then(|store| config::buffer_of(kernel, store.buffer()));
        let stored: HashSet<Value> = inside.iter().filter_map(written).collect();
        let rights = self.mmas(kernel).into_iter().filter_map(|mma| config::buffer_of(kernel, kernel.operand(mma, 1)));
        let rights: HashSet<Value> = rights.collect();
        for op in &inside {
            match kernel.kind(*op) {
                OpKind::Mma {} => {
                    let buffer = |place: usize| config::buffer_of(kernel, kernel.operand(*op, place));
                    let in_registers = kernel.value_type(kernel.operand(*op, 0)).shape().is_some();
                    let before = |buffer: Value| kernel.def_op(buffer).is_some_and(|made| !inside.contains(&made));
                    let right = buffer(1).is_some_and(|buffer| copied.contains(&buffer) || before(buffer));
                    let left = buffer(0).is_some_and(|buffer| stored.contains(&buffer) || before(buffer));
                    if !right || !(in_registers || left) {
                        return Err(Refusal::ComputedOperand);
                    }
                }
                // A loaded operand, stored again in a layout that `wgmma` reads.
                OpKind::LocalStore {} if is_plain_copy(kernel, kernel.operand(*op, 0), &copied) => {
                    return Err(Refusal::BufferLayout);
                }
                OpKind::LocalStore {} if written(op).is_none_or(|buffer| rights.contains(&buffer)) => {
                    return Err(Refusal::ComputedOperand);
                }
                OpKind::MmaAsync {} | OpKind::Dot { .. } | OpKind::DotBuffers { .. } => {
                    return Err(Refusal::ComputedOperand);
                }
                _ => {}
            }
        }
        // An operand that threads store again belongs to no dot.
        let mmas = self.mmas(kernel);
        let mut operands = self.transfers.iter().filter(|transfer| transfer.is_operand());
        match operands.all(|transfer| first_reader(kernel, &mmas, transfer.buffer).is_some()) {
            true => Ok(()),
            false => Err(Refusal::ComputedOperand),
        }
    }

    /// Its boxes, with the buffers that they are copied to.
    pub fn boxes(&self) -> impl Iterator<Item = (Value, &BoxAccess)> {
        self.transfers.iter().filter_map(|transfer| Some((transfer.buffer, transfer.access()?)))
    }

    /// The groups of its operands, if it has such a body: those which the same dot is the first to read are one.
    pub fn groups(&self, kernel: &Kernel) -> Result<Vec<usize>, PassError> {
        let mmas = self.mmas(kernel);
        let mut heads: Vec<usize> = Vec::new();
        for buffer in self.transfers.iter().filter(|transfer| transfer.is_operand()).map(|transfer| transfer.buffer) {
            heads.push(first_reader(kernel, &mmas, buffer).ok_or_else(|| missing("the dot that a copy is for"))?);
        }
        let mut order = heads.clone();
        order.sort_unstable();
        order.dedup();
        Ok(heads.iter().filter_map(|head| order.iter().position(|other| other == head)).collect())
    }
}

/// The number of the first of these dots that has an operand from a buffer.
fn first_reader(kernel: &Kernel, mmas: &[Op], buffer: Value) -> Option<usize> {
    let reads = |mma: &Op| (0..2).any(|place| sources_of(kernel, kernel.operand(*mma, place)).contains(&buffer));
    mmas.iter().position(reads)
}

/// Whether a tile is read from one of these buffers and only changes its layout.
fn is_plain_copy(kernel: &Kernel, tile: Value, copied: &HashSet<Value>) -> bool {
    let read = kernel.source_through(tile, |kind| matches!(kind, OpKind::Trans { .. } | OpKind::ConvertLayout {}));
    let buffer = view::LocalLoad::defining(kernel, read).and_then(|load| config::buffer_of(kernel, load.buffer()));
    buffer.is_some_and(|buffer| copied.contains(&buffer))
}
