//! Whether boxes start where TMA can read and write them.
//!
//! The start address of a box, its offset in the row included, must be a multiple of 16 bytes: otherwise the
//! instruction is illegal, even if the base and the strides are such multiples. So the offset must be known to be a
//! multiple, from steps of loops, from constants and from promises:
//!
//! ```text
//! %n = program_id(1) * 128         begins at multiples of 256 bytes of f16
//! %n = program_id(1) * 130         need not: threads load it
//! %k = for_range 3 .. by 64        does not
//! ```

use std::cell::OnceCell;

use rtc_ir::analysis::{AxisInfos, Poly, Symbol, axis_info};
use rtc_ir::{Kernel, Scalar, Value};

use super::box_analysis::ALIGN;

/// The known divisors of the kernel's scalars, computed on demand.
#[derive(Default)]
pub(crate) struct Alignment(OnceCell<AxisInfos>);

impl Alignment {
    /// Whether so many elements are a multiple of 16 bytes, wherever they are counted.
    pub fn is_multiple(&self, kernel: &Kernel, poly: &Poly, elem: Scalar) -> bool {
        let divisor = |value| self.0.get_or_init(|| axis_info(kernel)).axis(value, 0).divisibility.into();
        is_multiple(poly, elem, divisor)
    }
}

/// Whether so many elements are a multiple of 16 bytes, by the divisors of scalars.
pub(crate) fn is_multiple(poly: &Poly, elem: Scalar, divisor: impl Fn(Value) -> i128) -> bool {
    let bytes = i128::from(elem.bytes());
    poly.terms().iter().all(|term| {
        let factors = term.symbols.iter().map(|symbol| match symbol {
            Symbol::Scalar(value) => divisor(*value),
            _ => 1,
        });
        // Only the low bits count, which numbers that wrap keep.
        factors.fold(term.factor % ALIGN * bytes, |product, factor| product * (factor % ALIGN) % ALIGN) % ALIGN == 0
    })
}
