//! Fuses an addition to the result of a dot into the dot's accumulator.
//!
//! ```text
//! %d = dot %a, %b, %zeros            →   %s = dot %a, %b, %acc
//! %s = addf %acc, %d
//! ```
//!
//! MMA instructions add to an accumulator, so that a separate addition would cost an instruction and a second set of
//! registers. Not for dots that have to be accumulated outside of the tensor cores (`max_num_imprecise_acc`).

use rtc_ir::{Kernel, Op, OpKind, Phase, Value, constant_bits, view};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "fuse-dot-accumulator", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    for op in rtc_ir::walk(kernel) {
        if !matches!(kernel.kind(op), OpKind::AddF {} | OpKind::AddI {}) {
            continue;
        }
        for (product, other) in [(0, 1), (1, 0)] {
            let (product, other) = (kernel.operand(op, product), kernel.operand(op, other));
            if let Some(dot) = folds(kernel, op, product, other) {
                kernel.set_operand(dot, 2, other);
                kernel.replace_op(op, product);
                break;
            }
        }
    }
    Ok(())
}

/// The dot whose result `product` is used by `sum` alone, if it can start from `other` instead of from zeros.
fn folds(kernel: &Kernel, sum: Op, product: Value, other: Value) -> Option<Op> {
    let dot = kernel.def_op(product)?;
    let OpKind::Dot { max_imprecise, .. } = kernel.kind(dot) else { return None };
    let alone = kernel.users(product) == [sum] && product != other && kernel.op(dot).parent == kernel.op(sum).parent;
    let from_zero = constant_bits(kernel, view::Dot::at(kernel, dot).acc()) == Some(0);
    // The addend must be defined before the dot.
    let ready = kernel.def_op(other).is_none_or(|made| {
        kernel.op(made).parent != kernel.op(dot).parent || (made != dot && kernel.is_before(made, dot))
    });
    (alone && from_zero && ready && max_imprecise.is_none()).then_some(dot)
}
