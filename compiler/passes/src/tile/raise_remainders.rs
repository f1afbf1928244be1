//! Raises differences that are remainders to remainder operations, and folds those that are zero.
//!
//! ```text
//! %q = divsi %x, %c                                 %r = remsi %x, %c
//! %p = muli %q, %c                            →
//! %r = subi %x, %p
//!
//! %x = muli %pid, 128;  %r = remsi %x, 32     →     %r = 0
//! ```
//!
//! A remainder is known not to be negative if the dividend is not. Loops that start with a partial step begin like
//! this.

use rtc_ir::analysis::axis_info;
use rtc_ir::{Builder, Kernel, Literal, Op, OpKind, Phase, Value, constant_bits, view};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "raise-remainders", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    for op in rtc_ir::walk(kernel) {
        let Some((signed, x, c)) = spelled(kernel, op) else { continue };
        let mut builder = Builder::before(kernel, op);
        let remainder = if signed { builder.remsi(x, c)? } else { builder.remui(x, c)? };
        kernel.replace_op(op, remainder);
    }
    let zeros = zeros(kernel);
    for op in zeros {
        kernel.make_constant(op, Literal::Int(0));
    }
    Ok(())
}

/// `x` and `c` of `x - x / c * c`, and whether the quotient is signed.
fn spelled(kernel: &Kernel, op: Op) -> Option<(bool, Value, Value)> {
    let difference = view::SubI::of(kernel, op)?;
    let x = difference.lhs();
    let product = view::MulI::defining(kernel, difference.rhs())?;
    let sides = [product.lhs(), product.rhs()];
    [0, 1].into_iter().find_map(|place| {
        let (quotient, c) = (kernel.def_op(sides[place])?, sides[1 - place]);
        let signed = match kernel.kind(quotient) {
            OpKind::DivSI {} => true,
            OpKind::DivUI {} => false,
            _ => return None,
        };
        let [dividend, divisor] = kernel.sides(quotient)?;
        let of_same = dividend == x && are_same(kernel, divisor, c);
        of_same.then_some((signed, x, c))
    })
}

/// Whether both are one value, or the same constant.
fn are_same(kernel: &Kernel, a: Value, b: Value) -> bool {
    let constants = [a, b].map(|value| constant_bits(kernel, value));
    let types = [a, b].map(|value| kernel.value_type(value));
    a == b || types[0] == types[1] && constants[0].is_some() && constants[0] == constants[1]
}

/// The remainders of scalars that are multiples of the divisor, and all by one.
fn zeros(kernel: &Kernel) -> Vec<Op> {
    let of_scalars = |op: &Op| {
        let is_scalar = || kernel.value_type(kernel.result(*op, 0)).shape().is_none();
        matches!(kernel.kind(*op), OpKind::RemSI {} | OpKind::RemUI {})
            && kernel
                .sides(*op)
                .and_then(|[_, divisor]| constant_bits(kernel, divisor))
                .is_some_and(|divisor| divisor == 1 || divisor.is_power_of_two() && is_scalar())
    };
    let remainders: Vec<Op> = rtc_ir::walk(kernel).into_iter().filter(of_scalars).collect();
    if remainders.is_empty() {
        return remainders;
    }
    let infos = axis_info(kernel);
    let is_multiple = |op: &Op| {
        let Some([dividend, divisor]) = kernel.sides(*op) else { return false };
        let divisor = constant_bits(kernel, divisor).unwrap_or(0);
        divisor == 1 || infos.axis(dividend, 0).divisibility >= divisor
    };
    remainders.into_iter().filter(is_multiple).collect()
}
