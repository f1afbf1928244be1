//! The integers of a kernel that the host can compute before a launch: polynomials of arguments.
//!
//! ```text
//! %rows = muli %Z, %H : i32    →    (Z * H + 2147483648) % 4294967296 - 2147483648
//! ```
//!
//! The host computes in 64 bits, so overflow in the kernel is reproduced.

use rtc_abi::{Expr, ParamType, ValueType};
use rtc_ir::analysis::{Poly, Symbol};
use rtc_ir::{Kernel, OpKind, Type, Value, constant_bits, greatest_common_divisor};

/// Chains of more operations are not looked through.
const MOST_STEPS: usize = 8;

/// The largest known divisor of an integer by promises; `None` if the host cannot compute it.
pub(crate) fn divisor(kernel: &Kernel, value: Value) -> Option<i128> {
    divisor_within(kernel, value, MOST_STEPS)
}

fn divisor_within(kernel: &Kernel, value: Value, steps: usize) -> Option<i128> {
    if let Some(param) = kernel.params.iter().find(|param| param.value == value) {
        let integer = matches!(&param.ty, ParamType::Value(ValueType::Scalar(dtype)) if dtype.is_integer());
        // Expressions name whole arguments; that sizes of descriptors are not computed with is `descriptors.rs`'s business.
        let whole = steps == MOST_STEPS || !param.name.contains('.');
        return (integer && whole && param.hidden.is_none()).then(|| param.divisible_by.into());
    }
    let (op, bits) = (kernel.def_op(value)?, integer_bits(kernel, value)?);
    if let Some(number) = constant_bits(kernel, value) {
        return Some(signed(number, bits).abs());
    }
    let operand = |place: usize| divisor_within(kernel, kernel.operand(op, place), steps.checked_sub(1)?);
    match kernel.kind(op) {
        OpKind::MulI {} => Some(operand(0)?.saturating_mul(operand(1)?)),
        OpKind::AddI {} | OpKind::SubI {} => common(operand(0)?, operand(1)?),
        OpKind::ExtSI { .. } | OpKind::TruncI { .. } => operand(0),
        _ => None,
    }
}

/// Whether a scalar is an argument divided by a constant. Alignment versioning uses such quotients
/// (`alignment_versioning.rs`).
pub(crate) fn is_quotient(kernel: &Kernel, value: Value) -> bool {
    let op = kernel.def_op(value).filter(|op| matches!(kernel.kind(*op), OpKind::DivSI {}));
    op.is_some_and(|op| (0..2).all(|place| divisor(kernel, kernel.operand(op, place)).is_some()))
}

/// An integer as an expression for the host.
fn text(kernel: &Kernel, value: Value) -> Option<String> {
    if let Some(param) = kernel.params.iter().find(|param| param.value == value) {
        return Some(param.name.clone());
    }
    let (op, bits) = (kernel.def_op(value)?, integer_bits(kernel, value)?);
    if let Some(number) = constant_bits(kernel, value) {
        return Some(format!("({})", signed(number, bits)));
    }
    let operand = |place: usize| text(kernel, kernel.operand(op, place));
    let plain = match kernel.kind(op) {
        OpKind::MulI {} => format!("{} * {}", operand(0)?, operand(1)?),
        OpKind::AddI {} => format!("{} + {}", operand(0)?, operand(1)?),
        OpKind::SubI {} => format!("{} - {}", operand(0)?, operand(1)?),
        OpKind::TruncI { .. } => operand(0)?,
        OpKind::ExtSI { .. } => return operand(0),
        _ => return None,
    };
    match bits {
        64 => Some(format!("({plain})")),
        bits => {
            let half = 1u64 << (bits - 1);
            Some(format!("(({plain} + {half}) % {} - {half})", 2 * half))
        }
    }
}

/// A sum over such integers as an expression for the host.
pub(crate) fn expression(kernel: &Kernel, poly: &Poly) -> Option<Expr> {
    let name = |symbol: Symbol| match symbol {
        Symbol::Scalar(value) => text(kernel, value).unwrap_or_default(),
        _ => String::new(),
    };
    poly.print(&name).parse().ok()
}

fn integer_bits(kernel: &Kernel, value: Value) -> Option<u32> {
    match kernel.value_type(value) {
        Type::Scalar(elem) if elem.is_int() => Some(elem.bits()),
        _ => None,
    }
}

fn signed(number: u64, bits: u32) -> i128 {
    let unused = 64 - bits;
    i128::from((number << unused) as i64 >> unused)
}

/// The greatest common divisor.
fn common(a: i128, b: i128) -> Option<i128> {
    greatest_common_divisor(a.unsigned_abs(), b.unsigned_abs()).try_into().ok()
}
