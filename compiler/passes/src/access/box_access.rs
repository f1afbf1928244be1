//! An access to a box of a tensor, as TMA needs it.

use rtc_abi::Expr;
use rtc_ir::analysis::Poly;
use rtc_ir::{Kernel, Value};

use super::descriptors::Descriptor;
use super::host_values::expression;
use super::negative_indices::host_lead;
use super::refusal::Refusal;

/// The size of a dimension that no mask bounds.
pub(crate) const UNBOUNDED: i64 = (1 << 31) - 1;

/// An access to a box of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct BoxAccess {
    /// The pointer that the tensor lies behind: an argument, unless the kernel makes the map.
    pub base: Value,
    /// From there to its first element.
    pub start: Poly,
    /// Dimensions of the tensor in which a tile has a single index, such as that of a batch.
    pub outer: Vec<BoxAxis>,
    /// By the dimensions of the tile.
    pub axes: Vec<BoxAxis>,
    /// The dimension of the tile that is innermost in memory.
    pub inner: usize,
    /// The value where the mask is false.
    pub fill: Fill,
    /// The descriptor among the arguments whose tensor it is.
    pub descriptor: Option<Descriptor>,
    /// Whether the kernel makes the map, from values that the host cannot compute.
    pub is_made: bool,
}

impl BoxAccess {
    /// Whether an index may be negative, so that the map has to begin before the tensor (`negative_indices.rs`).
    pub fn may_begin_before(&self) -> bool {
        self.dimensions().any(|axis| !axis.from_zero)
    }

    /// The dimensions of the tensor.
    pub fn dimensions(&self) -> impl Iterator<Item = &BoxAxis> {
        self.outer.iter().chain(&self.axes)
    }

    /// Refuses indices that may be negative, unless the map may begin before the tensor.
    pub(super) fn check_signs(&self, may_begin_before: bool) -> Result<(), Refusal> {
        let wraps = |axis: &BoxAxis| !axis.from_zero && axis.modulus.is_some();
        let is_refused = !may_begin_before || self.axes.iter().any(wraps);
        if self.may_begin_before() && is_refused { Err(Refusal::NegativeIndex) } else { Ok(()) }
    }
}

/// The value outside of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Zeros.
    Zero,
    /// NaN.
    Nan,
    /// NaN if an argument of the kernel is true, else zeros.
    Either(Value),
}

/// One dimension of the tensor.
#[derive(Clone, Debug)]
pub(crate) struct BoxAxis {
    /// The place of the box in the tensor.
    pub index: Poly,
    /// From one element to the next.
    pub stride: Poly,
    /// The tensor ends at the least of these; at none if there are none.
    pub sizes: Vec<Poly>,
    /// Places count modulo this, which is the only size then.
    pub modulus: Option<Poly>,
    /// Whether the index is known to be at least 0.
    pub from_zero: bool,
}

impl BoxAxis {
    /// A dimension in which an access has a single index, without what is known of that.
    pub fn single(index: Poly, stride: Poly) -> BoxAxis {
        BoxAxis { index, stride, sizes: Vec::new(), modulus: None, from_zero: false }
    }
}

/// The size of a dimension in a map as an expression for the host: the least of its sizes, and what lies before the tensor.
pub(crate) fn size_in_map(kernel: &Kernel, axis: &BoxAxis) -> Option<Expr> {
    let all: Option<Vec<String>> =
        axis.sizes.iter().map(|size| expression(kernel, size).map(|expr| expr.to_string())).collect();
    let Some(least) = all?.into_iter().reduce(|all, next| format!("min({all}, {next})")) else {
        return Some(UNBOUNDED.into());
    };
    let text = if axis.from_zero { least } else { format!("{least} + {}", host_lead(kernel, &axis.stride)?) };
    text.parse().ok()
}
