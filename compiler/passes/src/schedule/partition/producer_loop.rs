//! A loop whose copies a producer issues.

use std::collections::HashSet;

use rtc_ir::{Kernel, Op, OpKind, Value, view};

use super::config;
use super::row_vectors;
use crate::PassError;
use crate::access::box_analysis::BoxAccess;
use crate::access::refusal::Refusal;
use crate::pass::missing;

/// A loop with copies for dots.
pub(crate) struct ProducerLoop {
    /// The loop.
    pub of: Op,
    /// The loops and branches around it and itself, from the outside in.
    pub path: Vec<Op>,
    /// Its copies, in program order.
    pub copies: Vec<(Op, BoxAccess)>,
    /// For each copy the number of the group that it belongs to: those which the same dot is the first to read. A group
    /// has barriers of its own.
    pub groups: Vec<usize>,
    /// Its rows, by the buffers that it reads them from.
    pub rows: Vec<row_vectors::StagedRow>,
}

impl ProducerLoop {
    /// Its dots, in program order.
    pub fn mmas(&self, kernel: &Kernel) -> Vec<Op> {
        let all = rtc_ir::walk_block(kernel, kernel.op(self.of).blocks[0]);
        all.into_iter().filter(|op| matches!(kernel.kind(*op), OpKind::Mma {})).collect()
    }

    /// Checks that the loop does nothing but copy, compute dots on the copies, and arithmetic; operand A can also be in
    /// registers, or in shared memory since before the loop.
    pub fn check_body(&self, kernel: &Kernel) -> Result<(), Refusal> {
        let body = kernel.op(self.of).blocks[0];
        let inside = rtc_ir::walk_block(kernel, body);
        let copied: HashSet<Value> = self.copies.iter().map(|(op, _)| kernel.operand(*op, 1)).collect();
        for op in &inside {
            match kernel.kind(*op) {
                OpKind::Mma {} => {
                    let buffer = |place: usize| config::buffer_of(kernel, kernel.operand(*op, place));
                    let in_registers = kernel.value_type(kernel.operand(*op, 0)).shape().is_some();
                    let before =
                        buffer(0).and_then(|made| kernel.def_op(made)).is_some_and(|made| !inside.contains(&made));
                    let right = buffer(1).is_some_and(|buffer| copied.contains(&buffer));
                    if !right || !(in_registers || before) {
                        return Err(Refusal::ComputedOperand);
                    }
                }
                // A loaded operand, stored again in a layout that `wgmma` reads.
                OpKind::LocalStore {} if is_plain_copy(kernel, kernel.operand(*op, 0), &copied) => {
                    return Err(Refusal::BufferLayout);
                }
                OpKind::LocalStore {} | OpKind::MmaAsync {} | OpKind::Dot { .. } | OpKind::DotBuffers { .. } => {
                    return Err(Refusal::ComputedOperand);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Finds the groups of a loop with such a body.
    pub fn find_groups(&mut self, kernel: &Kernel) -> Result<(), PassError> {
        let mmas = self.mmas(kernel);
        let mut heads: Vec<usize> = Vec::new();
        for (copy, _) in &self.copies {
            let copied = Some(view::CopyAsync::at(kernel, *copy).buffer());
            let reads = |mma: &Op| (0..2).any(|n| source_of(kernel, kernel.operand(*mma, n)) == copied);
            let first = mmas.iter().position(reads).ok_or_else(|| missing("the dot that a copy is for"))?;
            heads.push(first);
        }
        let mut order = heads.clone();
        order.sort_unstable();
        order.dedup();
        self.groups = heads.iter().filter_map(|head| order.iter().position(|other| other == head)).collect();
        Ok(())
    }
}

/// Whether a tile is read from one of these buffers and only changes its layout.
fn is_plain_copy(kernel: &Kernel, mut tile: Value, copied: &HashSet<Value>) -> bool {
    while let Some(op) = kernel.def_op(tile) {
        match kernel.kind(op) {
            OpKind::LocalLoad {} => {
                return config::buffer_of(kernel, kernel.operand(op, 0)).is_some_and(|buffer| copied.contains(&buffer));
            }
            OpKind::Trans { .. } | OpKind::ConvertLayout {} => tile = kernel.operand(op, 0),
            _ => return false,
        }
    }
    false
}

/// The buffer that an operand of a dot is, or is read from.
fn source_of(kernel: &Kernel, mut operand: Value) -> Option<Value> {
    while let Some(op) = kernel.def_op(operand) {
        match kernel.kind(op) {
            OpKind::LocalLoad {} | OpKind::Trans { .. } | OpKind::ConvertLayout {} => {}
            kind if kind.is_unary() => {}
            _ => break,
        }
        operand = kernel.operand(op, 0);
    }
    config::buffer_of(kernel, operand)
}
