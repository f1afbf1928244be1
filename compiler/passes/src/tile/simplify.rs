//! Folds constants, the laws of [`rules`], branches on constants, and loops that run once.
//!
//! ```text
//! %c = addi %two, %three : i32   →   %c = constant {value = 5} : i32
//! %d = muli %x, %one : i32       →   uses of %d become %x
//! ```
//!
//! A loop with a dot stays even then: its operands are copied to shared memory like those of other loops.

mod rules;

use rtc_ir::{Kernel, Op, OpKind, Phase, Position, Value, constant_bits, fold, trip_count, view};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "simplify", needs: Phase::Tile, leaves: Phase::Tile, run };

pub(super) fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let mut dead = Vec::new();
    for op in rtc_ir::walk(kernel) {
        // Operations inside of a removed branch have no block.
        if kernel.op(op).parent.is_none() {
            continue;
        }
        if let Some(literal) = fold(kernel, op) {
            kernel.make_constant(op, literal);
        } else if let Some(same) = rules::apply(kernel, op) {
            kernel.replace_uses(kernel.result(op, 0), same);
            dead.push(op);
        } else if matches!(kernel.kind(op), OpKind::IfElse {}) {
            take_known_branch(kernel, op);
        } else if runs_once(kernel, op) {
            take_only_iteration(kernel, op);
        } else {
            drop_full_mask(kernel, op);
        }
    }
    for op in dead {
        kernel.erase(op);
    }
    Ok(())
}

/// Takes a mask that holds everywhere off an access, and with it what a load gives elsewhere.
fn drop_full_mask(kernel: &mut Kernel, op: Op) {
    let optional = kernel.kind(op).spec().optional;
    let Some(index) = optional.iter().position(|name| *name == "mask") else { return };
    let Some(mask) = kernel.optional(op, index) else { return };
    if constant_bits(kernel, mask).is_none_or(|bits| bits == 0) {
        return;
    }
    kernel.clear_optional(op, index);
    if let Some(other) = optional.iter().position(|name| *name == "other") {
        kernel.clear_optional(op, other);
    }
}

/// Puts the operations of the branch that is taken in the place of the whole; they are walked later.
fn take_known_branch(kernel: &mut Kernel, op: Op) {
    let Some(bits) = constant_bits(kernel, view::IfElse::at(kernel, op).condition()) else { return };
    let taken = kernel.op(op).blocks[usize::from(bits == 0)];
    let Some(end) = kernel.terminator(taken) else { return };
    let values: Vec<Value> = kernel.variadic(end).to_vec();
    for inner in kernel.ops(taken).filter(|inner| *inner != end).collect::<Vec<_>>() {
        kernel.move_op(inner, Position::Before(op));
    }
    for (result, value) in kernel.op(op).results.clone().into_iter().zip(values) {
        kernel.replace_uses(result, value);
    }
    kernel.erase(op);
}

/// Whether an operation is a loop over constants with one iteration.
fn runs_once(kernel: &Kernel, op: Op) -> bool {
    let is_dot = |op: Op| matches!(kernel.kind(op), OpKind::Dot { .. });
    trip_count(kernel, op) == Some(1) && !kernel.ops(kernel.op(op).blocks[0]).any(is_dot)
}

/// Puts the operations of a loop in its place; they are walked later.
fn take_only_iteration(kernel: &mut Kernel, op: Op) {
    let block = kernel.op(op).blocks[0];
    let Some(end) = kernel.terminator(block) else { return };
    let given = [view::ForRange::at(kernel, op).lower()].into_iter().chain(kernel.variadic(op).iter().copied());
    let args: Vec<(Value, Value)> = kernel.block(block).args.iter().copied().zip(given).collect();
    for (arg, value) in args {
        kernel.replace_uses(arg, value);
    }
    let values: Vec<Value> = kernel.variadic(end).to_vec();
    for inner in kernel.ops(block).filter(|inner| *inner != end).collect::<Vec<_>>() {
        kernel.move_op(inner, Position::Before(op));
    }
    for (result, value) in kernel.op(op).results.clone().into_iter().zip(values) {
        kernel.replace_uses(result, value);
    }
    kernel.erase(op);
}
