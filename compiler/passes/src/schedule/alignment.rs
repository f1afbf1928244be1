//! Whether boxes begin where TMA can read and write them.
//!
//! The address at which a box begins must be a multiple of 16 bytes, its place in the row included: else the instruction is
//! an illegal one, although the base and the strides are such multiples. So the place must be known to be one, from steps of
//! loops, from constants and from promises:
//!
//! ```text
//! %n = program_id(1) * 128         begins at multiples of 256 bytes of f16
//! %n = program_id(1) * 130         need not: threads load it
//! %k = for_range 3 .. by 64        does not
//! ```

use std::cell::OnceCell;

use rtc_ir::analysis::{AxisInfos, Poly, Symbol, axis_info};
use rtc_ir::{Kernel, Scalar};

use super::boxes::ALIGN;

/// What is known of the scalars of a kernel; found out when it is asked for.
#[derive(Default)]
pub(super) struct Alignment(OnceCell<AxisInfos>);

impl Alignment {
    /// Whether so many elements are a multiple of 16 bytes, wherever they are counted.
    pub fn is_multiple(&self, kernel: &Kernel, poly: &Poly, elem: Scalar) -> bool {
        let bytes = i128::from(elem.bytes());
        poly.terms().iter().all(|term| {
            // Only the low bits count, which numbers that wrap keep.
            let factors = term.symbols.iter().map(|symbol| self.divisor(kernel, *symbol) % ALIGN);
            factors.fold(term.factor % ALIGN * bytes, |product, factor| product * factor % ALIGN) % ALIGN == 0
        })
    }

    fn divisor(&self, kernel: &Kernel, symbol: Symbol) -> i128 {
        match symbol {
            Symbol::Scalar(value) => self.0.get_or_init(|| axis_info(kernel)).axis(value, 0).divisibility.into(),
            _ => 1,
        }
    }
}
