//! Bases, strides and sizes of tensors: who computes them, and whether they are promised to be multiples of 16 bytes.

use rtc_ir::analysis::{Address, Poly, Symbol};
use rtc_ir::{Op, Scalar, Value};

use super::{ALIGN, BoxAnalysis};
use crate::access::alignment;
use crate::access::box_access::BoxAccess;
use crate::access::host_values::{divisor, is_quotient};
use crate::access::promises::{self, is_settled, promised};

impl BoxAnalysis<'_> {
    /// Whether the host can compute it or, for an access whose map the kernel makes, the kernel before its loops.
    pub(super) fn is_known(&self, poly: &Poly, made: Option<Op>) -> bool {
        !poly.mentions(|symbol| match symbol {
            Symbol::Scalar(value) if made.is_some() => !is_settled(self.kernel, value),
            Symbol::Scalar(value) => divisor(self.kernel, value).is_none(),
            _ => true,
        })
    }

    /// Whether it is computed from arguments, some of whose divisors are checked in the kernel (alignment versioning),
    /// which is done if strides are not promised to be multiples.
    pub(super) fn is_found_out(&self, poly: &Poly) -> bool {
        let of_argument = |value| divisor(self.kernel, value).is_some() || is_quotient(self.kernel, value);
        let other = |symbol| !matches!(symbol, Symbol::Scalar(value) if of_argument(value));
        poly.value().is_none() && !poly.mentions(other)
    }

    /// Whether a hint promises, wherever `at` is executed, that so many elements after `base` is a multiple of 16 bytes.
    pub(super) fn is_hinted(&mut self, base: Value, start: &Poly, elem: Scalar, at: Op) -> bool {
        promises::promised_pointers(self.kernel, at, ALIGN).into_iter().any(|pointer| {
            let form = self.affine.of(pointer).filter(|form| form.pointer == Some(base));
            let rest = form.and_then(|form| start.plus(&form.poly, -1));
            rest.is_some_and(|rest| self.is_multiple_at(&rest, elem, Some(at)))
        })
    }

    /// Whether `base` is an argument promised to be a multiple of 16 bytes, and so many elements are one where `at` is executed.
    pub(super) fn is_promised_argument(&self, base: Value, start: &Poly, elem: Scalar, at: Op) -> bool {
        let mut arguments = self.kernel.params.iter().filter(|param| param.value == base && param.hidden.is_none());
        arguments.any(|param| i128::from(param.divisible_by) % ALIGN == 0) && self.is_multiple_at(start, elem, Some(at))
    }

    /// Whether a promise about the addresses themselves says that the rows of the tensor begin at multiples of 16 bytes: rows of
    /// the box do, and it begins at such a multiple in them.
    pub(super) fn begin_whole(&self, op: Op, address: &Address, inner: usize, elem: Scalar) -> bool {
        let [outer, inner_axis] = [1 - inner, inner].map(|axis| &address.axes[axis]);
        promises::promises_rows(self.kernel, op, inner, ALIGN)
            && outer.size > 1
            && outer.modulus.is_none()
            && inner_axis.modulus.is_none()
            && self.is_multiple_at(&inner_axis.start, elem, Some(op))
    }

    /// Whether a sum is what it is if it is computed in 32 bits.
    pub(super) fn is_size(&self, poly: &Poly) -> bool {
        let one = matches!(poly.terms(), [term] if term.factor == 1 && term.symbols.len() == 1);
        let narrow = |symbol: Symbol| match symbol {
            Symbol::Scalar(value) => self.kernel.value_type(value).elem().is_some_and(|elem| elem.bits() <= 32),
            _ => false,
        };
        one && !poly.mentions(|symbol| !narrow(symbol)) || poly.interval(|symbol| self.expected(symbol)).fits(32)
    }

    /// Whether rows of the tensor end at multiples of 16 bytes: a copy to global memory writes the last 16 bytes of a
    /// row as a whole, including bytes beyond the end.
    pub(super) fn ends_whole(&self, store: Op, access: &BoxAccess) -> bool {
        let elem = self.kernel.value_type(self.kernel.operand(store, 0)).elem().and_then(|elem| elem.pointee());
        let sizes = &access.axes[access.inner].sizes;
        let made = if access.is_made { Some(store) } else { None };
        elem.is_some_and(|elem| sizes.iter().all(|size| self.is_multiple_at(size, elem, made)))
    }

    /// Whether so many elements are a multiple of 16 bytes wherever the kernel computes them.
    pub fn is_aligned(&self, poly: &Poly, elem: Scalar) -> bool {
        self.alignment.is_multiple(self.kernel, poly, elem)
    }

    /// Whether the signature promises so many elements to be a multiple of 16 bytes or, where the kernel makes the map for an
    /// access, whether the kernel promises it there.
    pub fn is_multiple_at(&self, poly: &Poly, elem: Scalar, made: Option<Op>) -> bool {
        alignment::is_multiple(poly, elem, |value| match made {
            Some(at) => promised(self.kernel, value, at),
            None => divisor(self.kernel, value).unwrap_or(1),
        })
    }
}
