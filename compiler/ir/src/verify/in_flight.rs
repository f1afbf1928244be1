//! The rules of asynchronous operations: nothing uses what is not there yet.

use std::collections::HashSet;

use super::Verifier;
use crate::ops::effects::{EffectKind, Space};
use crate::{Kernel, Op, OpKind, Phase, Traits, Type, Value, regions, view, walk};

impl Verifier<'_> {
    /// Accumulators of dots in flight are for further dots, for waits, and to be carried. Buffers that a group of copies
    /// fills are read after a `copy_await` of that group.
    pub(super) fn in_flight(&mut self) {
        let kernel = self.kernel;
        let all = walk(kernel);
        let is_started = |op: &&Op| matches!(kernel.kind(**op), OpKind::MmaAsync {});
        let started: Vec<Value> = all.iter().filter(is_started).map(|op| kernel.result(*op, 0)).collect();
        for value in carried_to(kernel, started) {
            for user in kernel.users(value) {
                let places = (0..kernel.op(user).operands.len()).filter(|at| kernel.op(user).operands[*at] == value);
                if !places.into_iter().all(|at| may_use(kernel, user, at)) {
                    self.complain(user, "uses the accumulators of a dot in flight; `mma_await` waits for them");
                }
            }
        }
        if all.iter().any(|op| matches!(kernel.kind(*op), OpKind::CopyGroup {})) {
            self.copies_in_flight(&all);
        }
    }

    fn copies_in_flight(&mut self, all: &[Op]) {
        let kernel = self.kernel;
        let copies = all.iter().filter(|op| !arrives(kernel, **op)).filter_map(|op| view::CopyAsync::of(kernel, *op));
        let filled: HashSet<Op> = copies.filter_map(|copy| kernel.allocation(copy.buffer())).collect();
        for op in all {
            let reads = kernel.effects(*op).filter(|(effect, _)| {
                effect.space == Space::Shared && matches!(effect.access, EffectKind::Read | EffectKind::Exchange)
            });
            for buffer in reads.filter_map(|(_, value)| value) {
                let is_filled = kernel.allocation(buffer).is_some_and(|made| filled.contains(&made));
                if is_filled && !is_awaited(kernel, buffer) {
                    self.complain(*op, "reads a buffer that copies fill; `copy_await` gives it when it is full");
                }
            }
        }
    }

    /// Whether what an operation waits for is counted by now.
    pub(super) fn counted(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let is_token = |value: &Value| kernel.value_type(*value) == Type::Token;
        let mut values = data.operands.iter().chain(&data.results);
        if kernel.phase == Phase::Scheduled
            && (data.kind.spec().traits.has(Traits::BEFORE_WAITS) || values.any(is_token))
        {
            self.complain(op, "names what it waits for; `insert-waits` makes it count by phase `scheduled`");
        }
    }
}

/// Whether a copy says by a barrier in shared memory that it is complete, and is in no group.
fn arrives(kernel: &Kernel, copy: Op) -> bool {
    let mut next = kernel.next_op(copy);
    while let Some(op) = next {
        match kernel.kind(op) {
            OpKind::CopyArrive {} => return true,
            OpKind::CopyGroup {} => return false,
            _ => next = kernel.next_op(op),
        }
    }
    false
}

/// Whether operand `at` of an operation may be an accumulator in flight.
fn may_use(kernel: &Kernel, op: Op, at: usize) -> bool {
    match kernel.kind(op) {
        OpKind::MmaAsync {} => kernel.kind(op).spec().operands.get(at) == Some(&"acc"),
        OpKind::MmaWait { .. } | OpKind::MmaAwait {} => true,
        _ => regions::is_handed(kernel, op, at),
    }
}

/// These values, and those that they become by entering or leaving nested blocks.
fn carried_to(kernel: &Kernel, values: Vec<Value>) -> Vec<Value> {
    let mut seen: HashSet<Value> = values.iter().copied().collect();
    let mut all = values;
    let mut next = 0;
    while let Some(value) = all.get(next).copied() {
        next += 1;
        for user in kernel.users(value) {
            for at in (0..kernel.op(user).operands.len()).filter(|at| kernel.op(user).operands[*at] == value) {
                all.extend(regions::targets(kernel, user, at).into_iter().filter(|target| seen.insert(*target)));
            }
        }
    }
    all
}

/// Whether a buffer is a view of what a `copy_await` gives.
fn is_awaited(kernel: &Kernel, mut buffer: Value) -> bool {
    while let Some(op) = kernel.def_op(buffer) {
        if matches!(kernel.kind(op), OpKind::CopyAwait {}) {
            return true;
        }
        match kernel.op(op).operands.first() {
            Some(source) if kernel.value_type(*source).is_place() => buffer = *source,
            _ => return false,
        }
    }
    false
}
