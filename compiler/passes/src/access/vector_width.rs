//! How many elements one instruction can access at a time.

use rtc_ir::analysis::AxisInfos;
use rtc_ir::{Kernel, Value};

/// The widest access of one thread.
pub(crate) const MAX_ACCESS_BYTES: u64 = 16;

/// The size of what a pointer or a tile of pointers points to.
pub(crate) fn pointee_bytes(kernel: &Kernel, pointer: Value) -> u64 {
    u64::from(kernel.value_type(pointer).elem().and_then(|e| e.pointee()).map_or(1, |s| s.bytes()))
}

/// How many elements along `axis` one thread may access at once.
pub(crate) fn vector_width(
    kernel: &Kernel,
    infos: &AxisInfos,
    pointer: Value,
    mask: Option<Value>,
    axis: usize,
) -> u64 {
    let along = infos.axis(pointer, axis);
    let ty = kernel.value_type(pointer);
    let bytes = pointee_bytes(kernel, pointer);
    let size = ty.shape().map_or(1, |s| u64::from(s[axis]));
    let aligned = (along.divisibility / bytes).max(1);
    let limit = mask.map_or(u64::MAX, |m| infos.axis(m, axis).constancy);
    along.contiguity.min(aligned).min(limit).min(MAX_ACCESS_BYTES / bytes).min(size).max(1)
}
