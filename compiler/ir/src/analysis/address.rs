//! Tiles of addresses: from one pointer, a stride and a start along each dimension.
//!
//! ```text
//! a + (pid * 64 + arange(0, 64))[:, None] * stride + (32 * round + arange(0, 32))[None, :]
//!     from %a: d0 from 64*program(0) by %stride; d1 from 32*round by 1
//! ```

use super::affine::{Affine, AffineForm};
use super::bounds::Mask;
use super::poly::{Poly, Symbol, Term};
use super::ranges::Wraps;
use crate::Value;

/// How addresses run along one dimension of a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressAxis {
    /// How many there are.
    pub size: u32,
    /// From one place to the next, in elements; 0 where all are the same.
    pub stride: Poly,
    /// The index of the first place: the address of place `d` is that of index `start + d`.
    pub start: Poly,
    /// The index is taken modulo this: the address of place `d` is that of index `(start + d) % modulus`, with the sign of
    /// `start + d`.
    pub modulus: Option<AffineForm>,
}

/// A tile of addresses: `pointer + rest + sum over the axes of (start + place) * stride`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// An argument of the kernel or another scalar pointer.
    pub pointer: Value,
    /// In the order of the dimensions.
    pub axes: Vec<AddressAxis>,
    /// The offset that belongs to no dimension, in elements.
    pub rest: Poly,
    /// Whether the offsets can wrap around on their way; that is a mistake of the kernel, which the interpreter reports.
    pub wraps: Wraps,
}

/// The most elements of a row of unknown length by which programs are taken to be apart within it.
const LONGEST_ROW: i128 = 1 << 16;

impl Affine<'_> {
    /// The address of a pointer or a tile of pointers, if it is affine in the indices of each dimension. The mask of
    /// the access assigns the offsets that it compares to dimensions; an offset with the stride of a dimension belongs
    /// to that dimension; an ambiguous offset (a product of arguments and a stride of one) belongs to none.
    pub fn address(&mut self, pointer: Value, mask: Option<&Mask>) -> Option<Address> {
        let form = self.of(pointer)?;
        let shape = self.kernel.value_type(pointer).shape();
        let sizes: Vec<u32> = shape.map_or(Vec::new(), |s| s.to_vec());
        let mut axes = Vec::new();
        let mut rest = form.poly.clone();
        for (number, size) in sizes.iter().enumerate() {
            let (stride, others) = rest.split(Symbol::Dim(number as u8))?;
            rest = others;
            axes.push(AddressAxis { size: *size, stride, start: Poly::default(), modulus: None });
        }
        let wraps = self.take_remainders(&mut axes, &mut rest)?.max(form.wraps);
        let local = |poly: &Poly| !self.axes_of(poly).is_empty();
        if local(&rest) || axes.iter().any(|axis| local(&axis.stride)) {
            return None;
        }
        if let Some(mask) = mask {
            take_compared(&mut axes, &mut rest, mask);
        }
        self.take_multiples(&mut axes, &mut rest);
        Some(Address { pointer: form.pointer?, axes, rest, wraps })
    }

    /// Assigns remainders to the dimension along which they change, and reports whether their dividends can overflow.
    fn take_remainders(&self, axes: &mut [AddressAxis], rest: &mut Poly) -> Option<Wraps> {
        let mut numbers: Vec<u32> = Vec::new();
        for symbol in rest.terms().iter().flat_map(|t| &t.symbols) {
            match symbol {
                Symbol::Wrap(number) if !numbers.contains(number) => numbers.push(*number),
                _ => {}
            }
        }
        let mut wraps = Wraps::Never;
        for number in numbers {
            let wrap = self.wrap(number);
            let negative = |form: &AffineForm| form.poly.interval(|symbol| self.range(symbol)).low < 0;
            if !wrap.signed && (negative(&wrap.dividend) || negative(&wrap.divisor)) {
                return None;
            }
            wraps = wraps.max(wrap.dividend.wraps).max(wrap.divisor.wraps);
            let [along] = self.axes_of(&wrap.dividend.poly)[..] else { return None };
            let (by, start) = wrap.dividend.poly.split(Symbol::Dim(along as u8))?;
            let (stride, others) = rest.split(Symbol::Wrap(number))?;
            let axis = axes.get_mut(along)?;
            if by.value() != Some(1) || !axis.stride.terms().is_empty() || !self.axes_of(&start).is_empty() {
                return None;
            }
            *rest = others;
            *axis = AddressAxis { size: axis.size, stride, start, modulus: Some(wrap.divisor.clone()) };
        }
        Some(wraps)
    }

    /// Gives each dimension the offsets that its stride divides, the longest strides first.
    fn take_multiples(&self, axes: &mut [AddressAxis], rest: &mut Poly) {
        let mut order: Vec<usize> = (0..axes.len()).filter(|i| axes[*i].modulus.is_none()).collect();
        let length =
            |axis: &AddressAxis| axis.stride.terms().first().map_or((0, 0), |t| (t.symbols.len(), t.factor.abs()));
        order.sort_by_key(|i| std::cmp::Reverse(length(&axes[*i])));
        let constant = |axis: &AddressAxis| axis.stride.value().filter(|stride| *stride > 1);
        let row = axes.iter().filter_map(constant).min().unwrap_or(LONGEST_ROW);
        let mut left = Poly::default();
        for term in rest.terms() {
            let taken = order.iter().find_map(|i| {
                let [stride] = axes[*i].stride.terms() else { return None };
                let index = term.divided(stride)?;
                // Longer than a row: the stride of another dimension, which may be more than a coordinate has bits for.
                if stride.factor == 1 && stride.symbols.is_empty() && index.factor.abs() > row {
                    return None;
                }
                // Next to a constant stride the stride of another dimension looks like a number of elements.
                let known = !stride.symbols.is_empty() || !index.symbols.iter().any(|s| self.is_argument(*s));
                known.then(|| axes[*i].start.plus(&Poly::term(index), 1)).flatten().map(|start| (*i, start))
            });
            match taken {
                Some((i, start)) => axes[i].start = start,
                None => left = left.plus(&Poly::term(term.clone()), 1).unwrap_or_default(),
            }
        }
        *rest = left;
    }

    fn is_argument(&self, symbol: Symbol) -> bool {
        matches!(symbol, Symbol::Scalar(value) if self.kernel.params.iter().any(|p| p.value == value))
    }
}

/// Gives dimensions the offsets that a mask compares along them.
fn take_compared(axes: &mut [AddressAxis], rest: &mut Poly, mask: &Mask) {
    for (number, axis) in axes.iter_mut().enumerate().filter(|(_, axis)| axis.modulus.is_none()) {
        let start = mask.along(number).find_map(|bound| {
            let (by, start) = bound.offset.split(Symbol::Dim(number as u8))?;
            (by.value() == Some(1)).then_some(start)
        });
        let Some(start) = start else { continue };
        let Some(offset) = start.times(&axis.stride) else { continue };
        let part = |term: &Term| rest.terms().iter().any(|t| t == term);
        if offset.terms().iter().all(part)
            && let Some(others) = rest.plus(&offset, -1)
        {
            *rest = others;
            axis.start = start;
        }
    }
}

impl Address {
    /// The text.
    pub fn print(&self, affine: &Affine<'_>, name: &dyn Fn(Value) -> String) -> String {
        let text = |poly: &Poly| affine.poly_text(poly, name);
        let rest = if self.rest.terms().is_empty() { String::new() } else { format!(" + {}", text(&self.rest)) };
        let mut parts = vec![format!("from {}{rest}", name(self.pointer))];
        for (number, axis) in self.axes.iter().enumerate() {
            let modulus =
                axis.modulus.as_ref().map_or(String::new(), |m| format!(" modulo {}", affine.form_text(m, name)));
            parts.push(format!("d{number} from {}{modulus} by {}", text(&axis.start), text(&axis.stride)));
        }
        parts.join(", ") + super::affine::wraps_text(self.wraps)
    }
}
