//! Row vectors that a loop reads in addition to the operands of its dots, such as the one that attention backward
//! subtracts from the columns of a block: the producer copies them, so that the consumer does not wait for memory
//! between two dots.
//!
//! ```text
//! %m = load %p : tile<64xf32, #l>   →   producer:   copy_bulk from %base + at, into a slot of a ring
//!                                       consumer:   %m = local_load of the slot
//! ```
//!
//! The elements must be contiguous, and start at a multiple of 16 bytes.

use rtc_ir::analysis::{Poly, Symbol};
use rtc_ir::{Op, OpKind, Value, view};

use super::BUFFER_ALIGN;
use crate::access::box_analysis::BoxAnalysis;

/// The alignment of starts and of sizes.
const ALIGN: u32 = BUFFER_ALIGN;
/// Longer rows come as they did.
const MOST_BYTES: u32 = 4096;

/// Elements that lie side by side behind an argument.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The argument.
    pub base: Value,
    /// The index of the first element.
    pub at: Poly,
}

/// The row that an operation loads, if it is one.
pub(super) fn row(known: &mut BoxAnalysis<'_>, load: Op) -> Option<Row> {
    let kernel = known.kernel;
    let OpKind::Load { volatile: false, .. } = kernel.kind(load) else { return None };
    if kernel.mask(load).is_some() {
        return None;
    }
    let (pointer, ty) = (view::Load::at(kernel, load).pointer(), kernel.value_type(kernel.result(load, 0)));
    let (shape, elem) = (ty.shape()?, ty.elem()?.num()?);
    let bytes = shape.numel() as u32 * elem.bytes();
    (shape.rank() == 1 && elem.bits() >= 8 && bytes <= MOST_BYTES && bytes.is_multiple_of(ALIGN)).then_some(())?;
    let address = known.affine.address(pointer, None)?;
    let param = kernel.params.iter().find(|param| param.value == address.pointer && param.hidden.is_none())?;
    let [axis] = &address.axes[..] else { return None };
    (axis.stride.value() == Some(1) && axis.modulus.is_none()).then_some(())?;
    let at = address.rest.plus(&axis.start, 1)?;
    let is_index = |symbol: Symbol| {
        matches!(symbol, Symbol::Scalar(_) | Symbol::Program(_) | Symbol::Programs(_) | Symbol::Round(_))
    };
    let aligned = param.divisible_by.is_multiple_of(ALIGN) && known.is_aligned(&at, elem);
    (aligned && !at.mentions(|symbol| !is_index(symbol))).then(|| Row { base: param.value, at })
}
