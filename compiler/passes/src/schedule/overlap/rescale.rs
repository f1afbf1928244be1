//! The product that rescales an accumulator to a new running maximum, as in attention: warps without a new maximum skip it.
//!
//! ```text
//! %m = maxnum %old, %row
//! %f = exp2 (%old - %m)
//! %x = mulf %acc, broadcast %f     →     %x = rescale %acc, broadcast %f
//! %s = mma %p, %v, %x
//! ```
//!
//! Where no row of a warp has a new maximum, its factors are one. Of `n` blocks of keys in any order a row's maximum changes in
//! about `ln n`, so that most iterations of long rows need no product. Only for products that a pass has put between the wait
//! for one dot and the next: where they can be mixed with other work, the branch costs more than it saves (5 to 14 % in loops
//! with `mma.sync`, or whose dots do not overlap).

use rtc_ir::{Kernel, Op, OpKind, Value, view};

use crate::work::words::words_of_tile;

/// The fewest elements of a thread. The branch costs as much as some ten products; with 32 elements causal attention of 4,096
/// keys took 1 % longer.
const LEAST: u32 = 64;

/// Lets warps skip the rescaling of the accumulator of a dot, if it has this form and is large.
pub(super) fn skip_where_one(kernel: &mut Kernel, mma: Op) {
    let acc = view::Mma::at(kernel, mma).acc();
    let Some(product) = kernel.def_op(acc) else { return };
    let Some(sides) = view::MulF::of(kernel, product) else { return };
    let (lhs, rhs) = (sides.lhs(), sides.rhs());
    let operands = match (is_rescale(kernel, lhs), is_rescale(kernel, rhs)) {
        (false, true) => [lhs, rhs],
        (true, false) => [rhs, lhs],
        _ => return,
    };
    if kernel.users(acc) == [mma] && words_of_tile(kernel, acc) >= LEAST {
        *kernel.kind_mut(product) = OpKind::Rescale {};
        for (index, operand) in operands.into_iter().enumerate() {
            kernel.set_operand(product, index, operand);
        }
    }
}

/// Whether a tile repeats an exponential of what a running maximum was less what it is.
fn is_rescale(kernel: &Kernel, mut value: Value) -> bool {
    while let Some(from) = kernel.def_op(value).and_then(|made| kernel.forwarded(made)) {
        value = from;
    }
    let Some(power) = view::Exp2::defining(kernel, value).map(|exponential| exponential.value()) else { return false };
    let factors = kernel.def_op(power).and_then(|made| view::MulF::of(kernel, made));
    let differences = factors.map_or([power; 2], |product| [product.lhs(), product.rhs()]);
    differences.into_iter().any(|value| {
        let difference = kernel.def_op(value).and_then(|made| view::SubF::of(kernel, made));
        difference.is_some_and(|sides| is_maximum_of(kernel, sides.rhs(), sides.lhs()))
    })
}

/// Whether a value is the maximum of `old` and something else, or that but for some elements, such as infinite ones.
fn is_maximum_of(kernel: &Kernel, value: Value, old: Value) -> bool {
    let Some(made) = kernel.def_op(value) else { return false };
    let operands = &kernel.op(made).operands;
    match kernel.kind(made) {
        OpKind::MaxNum {} | OpKind::Maximum {} => operands.contains(&old),
        OpKind::Select {} => operands[1..].iter().any(|arm| is_maximum_of(kernel, *arm, old)),
        _ => false,
    }
}
