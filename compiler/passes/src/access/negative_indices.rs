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

use super::box_analysis::BoxAccess;
use super::refusal::Refusal;

/// How far before the tensor an index may be.
const SHIFT: i128 = 1 << 24;

/// Moves the start of the tensor of an access to where no index is negative, if that is allowed.
pub(super) fn shift(access: &mut BoxAccess, is_allowed: bool) -> Result<(), Refusal> {
    let BoxAccess { start, outer, axes, .. } = access;
    let outer = outer.iter_mut().map(|outer| (&mut outer.index, &outer.stride, &mut outer.sizes, outer.from_zero));
    let axes = axes.iter_mut().map(|axis| {
        let from_zero = axis.from_zero;
        (&mut axis.index, &axis.stride, &mut axis.sizes, from_zero, axis.modulus.is_some())
    });
    let outer = outer.map(|(index, stride, sizes, from_zero)| (index, stride, sizes, from_zero, false));
    for (index, stride, sizes, from_zero, wraps) in outer.chain(axes) {
        if from_zero {
            continue;
        }
        if !is_allowed || wraps {
            return Err(Refusal::NegativeIndex);
        }
        let moved = |poly: &Poly| poly.plus(&Poly::constant(SHIFT), 1).ok_or(Refusal::IndexRange);
        *start = start.plus(stride, -SHIFT).ok_or(Refusal::IndexRange)?;
        *index = moved(index)?;
        *sizes = sizes.iter().map(moved).collect::<Result<_, Refusal>>()?;
    }
    Ok(())
}
