//! Boxes whose index may be negative, such as a block of keys whose number is loaded from memory.
//!
//! A tensor map has no elements before its first one, while a pointer may. So the map begins some elements earlier along such a
//! dimension, its *lead*, and all indices and sizes grow by as much. Nothing is read there unless an index is negative.
//!
//! ```text
//! map of `p`, coordinate `i`   →   map of `p - lead * stride`, coordinate `i + lead`
//! ```
//!
//! The lead is 2^24, but so short where strides are long that the map begins at most 2^38 elements before the tensor: that is
//! more than any memory of a GPU has, and less than what lies before an allocation in its address space. The host and the kernel
//! both compute it, from the stride:
//!
//! ```text
//! min(2^24, 2^29 / (stride / 512 * 2 + 1))     in integers; the divisor is odd, so never 0
//! ```
//!
//! Coordinates have 32 bits, so indices must be less than 2^31 - 2^24.

use rtc_ir::analysis::Poly;
use rtc_ir::{Builder, Elem, Kernel, Literal, Op, Type, Value};

use super::host_values::expression;
use crate::PassError;

/// The longest lead.
const LONGEST: i64 = 1 << 24;
/// The lead times the divisor.
const PRODUCT: i64 = 1 << 29;
/// Elements of a stride for which the divisor grows by two.
const UNIT: i64 = 512;
/// The largest divisor, so that it has 32 bits.
const LARGEST: i64 = 1 << 30;

/// The lead along a dimension with that stride, as an expression for the host.
pub(crate) fn host_lead(kernel: &Kernel, stride: &Poly) -> Option<String> {
    if let Some(lead) = constant_lead(stride) {
        return Some(lead.to_string());
    }
    let stride = expression(kernel, stride)?;
    Some(format!("min({LONGEST}, {PRODUCT} // min({LARGEST}, ({stride}) // {UNIT} * 2 + 1))"))
}

/// The lead if the stride is a constant.
pub(crate) fn constant_lead(stride: &Poly) -> Option<i64> {
    let divisor = i64::try_from(stride.value()?).ok()? / UNIT * 2 + 1;
    Some(LONGEST.min(PRODUCT / divisor.min(LARGEST)))
}

/// The lead along a dimension with that stride, an `i64` of the kernel, as an `i32` before an operation.
pub(crate) fn lead(kernel: &mut Kernel, before: Op, stride: Value) -> Result<Value, PassError> {
    let mut builder = Builder::before(kernel, before);
    let number =
        |builder: &mut Builder<'_>, number: i64, elem| builder.constant_of(Literal::Int(number), Type::Scalar(elem));
    let [unit, two, one, largest] = [UNIT, 2, 1, LARGEST].map(|n| number(&mut builder, n, Elem::I64));
    let units = builder.divsi(stride, unit?)?;
    let twice = builder.muli(units, two?)?;
    let odd = builder.addi(twice, one?)?;
    let divisor = builder.minsi(odd, largest?)?;
    let divisor = builder.trunci(divisor, Elem::I32)?;
    let [product, longest] = [PRODUCT, LONGEST].map(|n| number(&mut builder, n, Elem::I32));
    let lead = builder.divsi(product?, divisor)?;
    Ok(builder.minsi(lead, longest?)?)
}
