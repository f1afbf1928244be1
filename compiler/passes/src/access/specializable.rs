//! Whether warp specialization will likely be applicable, asked by passes long before it.

use rtc_ir::analysis::Ranges;
use rtc_ir::{Kernel, Op, OpKind};

use super::box_analysis::BoxAnalysis;
use super::clamped_rows;
use crate::{PassContext, PassError};

/// Whether these loads of dots, in a kernel without layouts, are of boxes, so that its warps will likely be divided.
pub(crate) fn may_specialize(kernel: &Kernel, cx: &PassContext, loads: &[Op]) -> Result<bool, PassError> {
    let rows = |op: &Op| match kernel.kind(*op) {
        OpKind::Dot { .. } => kernel.value_type(kernel.result(*op, 0)).shape().map(|shape| shape[shape.rank() - 2]),
        _ => None,
    };
    let tall = rtc_ir::walk(kernel).iter().filter_map(rows).all(|rows| rows >= 64);
    if !cx.specializes_warps() || !tall || !kernel.options.num_warps.is_multiple_of(4) {
        return Ok(false);
    }
    let mut trial = kernel.clone();
    clamped_rows::as_remainders(&mut trial)?;
    let ranges = Ranges::new(&trial);
    let mut known = BoxAnalysis::new(&trial, &ranges);
    Ok(loads.iter().all(|load| known.load(*load).is_ok()))
}
