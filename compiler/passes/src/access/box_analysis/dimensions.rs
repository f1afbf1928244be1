//! The dimensions of a tensor that an access has a place in: those of its tile, and others in which it has a single index.

use rtc_ir::Kernel;
use rtc_ir::analysis::{Address, Bound, BoundSide, Interval, Mask, Poly, Symbol, Term, Wraps};

use super::BoxAnalysis;
use crate::access::box_access::BoxAxis;
use crate::access::descriptors;
use crate::access::host_values::divisor;
use crate::access::refusal::Refusal;

/// The largest number of dimensions of a tensor in addition to those of a tile.
const MOST_OUTER: usize = 3;

impl BoxAnalysis<'_> {
    /// The offset that belongs to no dimension of the tile, as a start that the host computes and dimensions in which
    /// the access has a single index: `batch * stride` is index `batch` of one.
    pub(super) fn outer(&self, rest: &Poly) -> Result<(Poly, Vec<BoxAxis>), Refusal> {
        let give_up = Refusal::IndexRange;
        let (mut start, mut outer) = (Poly::default(), Vec::<BoxAxis>::new());
        for term in rest.terms() {
            let (of_arguments, others): (Vec<Symbol>, Vec<Symbol>) = term
                .symbols
                .iter()
                .partition(|s| matches!(s, Symbol::Scalar(value) if divisor(self.kernel, *value).is_some()));
            let by = |symbols: Vec<Symbol>, factor: i128| Poly::term(Term { symbols: symbols.into(), factor });
            if others.is_empty() {
                start = start.plus(&Poly::term(term.clone()), 1).ok_or(give_up)?;
                continue;
            }
            if term.factor < 0 {
                return Err(Refusal::StrideNegative);
            }
            let (stride, index) = (by(of_arguments, term.factor), by(others, 1));
            match outer.iter_mut().find(|outer| outer.stride == stride) {
                Some(outer) => outer.index = outer.index.plus(&index, 1).ok_or(give_up)?,
                None => outer.push(BoxAxis::single(index, stride)),
            }
        }
        if outer.len() > MOST_OUTER {
            return Err(Refusal::Rank);
        }
        Ok((start, outer))
    }

    /// The dimensions in which the access has a single index, with the bounds from conditions on the whole tile.
    pub(super) fn bounded(&self, mut outer: Vec<BoxAxis>, mask: &Mask) -> Result<Vec<BoxAxis>, Refusal> {
        for outer in &mut outer {
            outer.from_zero = self.coordinate(&outer.index)?.low >= 0;
        }
        for bound in mask.bounds.iter().filter(|bound| bound.axis.is_none()) {
            // Each dimension has a size of its own, where several have the same index.
            let fits = |outer: &BoxAxis| outer.index == bound.offset;
            let is_open = |outer: &BoxAxis| fits(outer) && outer.sizes.is_empty();
            let at = outer.iter().position(is_open).or_else(|| outer.iter().position(fits));
            let at = at.ok_or(Refusal::MaskForm)?;
            match bound.side {
                _ if bound.wraps == Wraps::Possible => return Err(Refusal::MaskOverflow),
                BoundSide::AtLeast if bound.bound.value() == Some(0) => outer[at].from_zero = true,
                BoundSide::AtLeast => return Err(Refusal::MaskBound),
                BoundSide::Below if !self.is_known(&bound.bound, None) => {
                    return Err(Refusal::SizeUnknown);
                }
                BoundSide::Below => outer[at].sizes.push(bound.bound.clone()),
            }
        }
        Ok(outer)
    }

    /// The range of a sum that is computed in 32 bits as a coordinate of a box.
    pub(super) fn coordinate(&self, index: &Poly) -> Result<Interval, Refusal> {
        let is_coordinate = |symbol: Symbol| match symbol {
            Symbol::Scalar(_) | Symbol::Program(_) | Symbol::Programs(_) | Symbol::Round(_) => true,
            Symbol::Dim(_) | Symbol::Rounds(_) | Symbol::Wrap(_) => false,
        };
        let range = index.interval(|symbol| self.expected(symbol));
        let narrow = |symbol: Symbol| match symbol {
            Symbol::Scalar(value) => self.kernel.value_type(value).elem().is_some_and(|elem| elem.bits() <= 32),
            _ => true,
        };
        let fits = range.fits(32) || !index.mentions(|symbol| !narrow(symbol));
        let factors = index.terms().iter().all(|term| i32::try_from(term.factor).is_ok());
        if index.mentions(|symbol| !is_coordinate(symbol)) || !fits || !factors {
            return Err(Refusal::IndexRange);
        }
        Ok(range)
    }

    /// The sizes of the tensor along a dimension, and whether indices are known to be at least 0; element 0 of the tile has
    /// the index `start`.
    pub(super) fn sizes(
        &self,
        start: &Poly,
        axis: usize,
        mask: &Mask,
        modulus: Option<&Poly>,
    ) -> Result<(Vec<Poly>, bool), Refusal> {
        let mut sizes: Vec<Poly> = modulus.into_iter().cloned().collect();
        let mut from_zero = self.coordinate(start)?.low >= 0;
        for bound in mask.along(axis) {
            let size = size_of(bound, axis, start).ok_or(Refusal::MaskOfOther)?;
            if bound.wraps == Wraps::Possible {
                return Err(Refusal::MaskOverflow);
            }
            match bound.side {
                BoundSide::AtLeast if size.value() == Some(0) => from_zero = true,
                BoundSide::AtLeast => return Err(Refusal::MaskBound),
                BoundSide::Below if sizes.contains(&size) => {}
                BoundSide::Below => sizes.push(size),
            }
        }
        if modulus.is_some() && sizes.len() > 1 {
            return Err(Refusal::MaskAndModulus);
        }
        Ok((sizes, from_zero))
    }

    pub(super) fn expected(&self, symbol: Symbol) -> Interval {
        match symbol {
            Symbol::Scalar(value) => self.ranges.expected(value),
            symbol => self.affine.range(symbol),
        }
    }
}

/// The outer dimension that a 1 × N tile indexes. It is found among the dimensions that are not the tile's, and is
/// removed from `outer`.
pub(super) fn lone_row(kernel: &Kernel, address: &Address, inner: usize, outer: &mut Vec<BoxAxis>) -> Option<BoxAxis> {
    let row = &address.axes[1 - inner];
    if row.size != 1 || row.stride.value() != Some(0) {
        return None;
    }
    let at = descriptors::row(kernel, address.pointer, outer).or(outer.len().checked_sub(1))?;
    Some(outer.remove(at))
}

/// The size of the tensor that a bound implies.
fn size_of(bound: &Bound, axis: usize, start: &Poly) -> Option<Poly> {
    let (by, offset) = bound.offset.split(Symbol::Dim(axis as u8))?;
    (by.value() == Some(1)).then_some(())?;
    bound.bound.plus(start, 1)?.plus(&offset, -1)
}
