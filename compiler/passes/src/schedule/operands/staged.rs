//! Which loads can be copies to shared memory, and which operands are there.

use std::collections::{HashMap, HashSet};

use rtc_ir::{Kernel, Op, OpKind, Value, constant_bits, view};

/// The operands that are staged.
#[derive(Default)]
pub(crate) struct StagedOperands {
    /// The buffers that hold values.
    pub buffers: HashMap<Value, Value>,
    /// Loads that have become copies.
    pub loads: Vec<Op>,
    /// The loops that they are in.
    pub loops: Vec<Op>,
    /// Dots by FMAs or on `f64` that read buffers.
    pub direct: HashSet<Op>,
}

/// How many elements a load of a matrix can be copied at a time; `None` if it cannot.
pub(crate) fn copied_width(kernel: &Kernel, load: Op) -> Option<u32> {
    let is_matrix = || kernel.layout_of(kernel.result(load, 0)).is_some_and(|layout| layout.rank() == 2);
    width_of_copies(kernel, load).filter(|_| is_matrix())
}

/// The same for tiles of any number of dimensions.
pub(crate) fn width_of_copies(kernel: &Kernel, load: Op) -> Option<u32> {
    let OpKind::Load { volatile: false, vector, .. } = kernel.kind(load) else { return None };
    let (ty, layout) = (kernel.value_type(kernel.result(load, 0)), kernel.layout_of(kernel.result(load, 0))?);
    let width = vector.unwrap_or(1);
    let bytes = width * ty.elem().filter(|elem| !elem.is_ptr())?.bytes();
    let other = view::Load::at(kernel, load).other();
    let zeros = other.is_none_or(|other| constant_bits(kernel, other) == Some(0));
    (matches!(bytes, 4 | 8 | 16) && zeros && layout.copies().none()).then_some(width)
}
