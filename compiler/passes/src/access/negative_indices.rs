//! Boxes whose index may be negative, such as a block of keys whose number is loaded from memory.
//!
//! A tensor map has no elements before its first one, while a pointer may. So the map begins [`SHIFT`] elements earlier along
//! such a dimension, and all indices and sizes grow by as much. Nothing is read there unless an index is negative.
//!
//! ```text
//! map of `p`, coordinate `i`   →   map of `p - SHIFT * stride`, coordinate `i + SHIFT`
//! ```
//!
//! Coordinates have 32 bits, so indices must be less than 2^31 - `SHIFT`.

use rtc_ir::analysis::Poly;

/// How far before the tensor an index may be.
const SHIFT: i128 = 1 << 24;

/// Moves the start of a tensor to where an index is not negative, and with it the index and the sizes of its dimension; `None`
/// if a sum gets too long.
pub(super) fn shift(start: &mut Poly, index: &mut Poly, stride: &Poly, sizes: &mut [Poly]) -> Option<()> {
    *start = start.plus(stride, -SHIFT)?;
    for poly in sizes.iter_mut().chain([index]) {
        *poly = poly.plus(&Poly::constant(SHIFT), 1)?;
    }
    Some(())
}
