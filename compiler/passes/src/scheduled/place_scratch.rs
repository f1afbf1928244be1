//! Gives a buffer in shared memory to each operation that moves data between threads through it: conversions that cross
//! warps, reductions and scans across warps, gathers, sorts, histograms, atomics whose result all threads need.
//!
//! ```text
//! %y = convert_layout %x : tile<..>   →   %b = alloc_shared {bytes = 8192, align = 16} : shared<8192xi8>
//!                                         %y = convert_layout %x, scratch = %b : tile<..>
//! ```

use rtc_ir::{Builder, Elem, Kernel, Op, OpKind, Phase, Value};
use rtc_layout::{Conversion, Layout, MatrixInstructions, conversion, reduce_plan, shared_plan};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "place-scratch", needs: Phase::Laid, leaves: Phase::Laid, run };

/// Scratch buffers hold vectors of up to 16 bytes.
const ALIGN: u32 = 16;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let uses = kernel.uses();
    for op in rtc_ir::walk(kernel) {
        let Some(slot) = kernel.kind(op).spec().optional.iter().position(|n| *n == "scratch") else { continue };
        let result_used = kernel.op(op).results.iter().any(|v| !uses[*v].is_empty());
        let bytes = scratch_bytes(kernel, cx, op, result_used);
        if bytes > 0 {
            let buffer = Builder::before(kernel, op).alloc_shared(bytes, ALIGN, None)?;
            kernel.set_optional(op, slot, buffer);
        }
    }
    Ok(())
}

/// Width of an element in shared memory: truth values take a byte.
fn stored_bytes(elem: Option<Elem>) -> u32 {
    elem.map_or(0, Elem::bytes)
}

/// The matrix load and store instructions of the target.
pub fn matrix_instructions(capability: u32) -> MatrixInstructions {
    MatrixInstructions { load: capability >= 75, store: capability >= 90 }
}

fn scratch_bytes(kernel: &Kernel, cx: &PassContext, op: Op, result_used: bool) -> u32 {
    let data = kernel.op(op);
    let tile_bytes = |value: Value| {
        let ty = kernel.value_type(value);
        ty.shape().map_or(1, |s| s.numel() as u32) * stored_bytes(ty.elem())
    };
    match &data.kind {
        OpKind::ConvertLayout {} => {
            let (source, result) = (data.operands[0], data.results[0]);
            let (Some(from), Some(to)) = (kernel.layout_of(source), kernel.layout_of(result)) else { return 0 };
            match conversion(from, to) {
                Conversion::Shared => {
                    let bits = stored_bytes(kernel.value_type(result).elem()) * 8;
                    shared_plan(from, to, bits, matrix_instructions(cx.capability)).bytes()
                }
                Conversion::Identity | Conversion::Registers(_) | Conversion::Shuffles(_) => 0,
            }
        }
        OpKind::Reduce { axis } => {
            let operands = kernel.variadic(op);
            let Some(step) = kernel.layout_of(operands[0]).and_then(|l| reduce_plan(l, *axis as usize).warp_step)
            else {
                return 0;
            };
            let elements = step.partial.elements();
            operands
                .iter()
                .map(|v| (elements * stored_bytes(kernel.value_type(*v).elem())).next_multiple_of(ALIGN))
                .sum()
        }
        OpKind::Scan { axis, .. } => {
            let operands = kernel.variadic(op);
            let within_warps = kernel.layout_of(operands[0]).is_some_and(|l| scans_within_warps(l, *axis as usize));
            if within_warps { 0 } else { operands.iter().map(|v| tile_bytes(*v).next_multiple_of(ALIGN)).sum() }
        }
        OpKind::Gather { .. } | OpKind::Sort { .. } => tile_bytes(data.operands[0]),
        OpKind::Histogram { .. } => tile_bytes(data.results[0]),
        OpKind::AtomicRmw { .. } | OpKind::AtomicCas { .. } if result_used => {
            let result = data.results[0];
            let alone = kernel.layout_of(result).is_some_and(|l| {
                let copies = l.copies();
                copies.lanes == 0 && copies.warps == 0
            });
            if alone { 0 } else { tile_bytes(result) }
        }
        _ => 0,
    }
}

/// Whether a scan along `axis` needs registers and shuffles only.
pub fn scans_within_warps(layout: &Layout, axis: usize) -> bool {
    layout.is_scan_order(axis)
        && layout.axis_bits(axis).is_some_and(|bits| {
            bits.iter().all(|b| !matches!(b, rtc_layout::InputBit::Warp(_) | rtc_layout::InputBit::Block(_)))
        })
}
