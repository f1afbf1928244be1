//! Places buffers in shared memory and says how much the kernel needs.
//!
//! A scratch buffer lives for one operation, so one place would do for all. Neighbours in program order get different
//! places all the same while that is cheap: then the barrier between two operations that use the same bytes falls away.
//! Buffers that several operations use, and barriers, have places of their own below those.
//!
//! ```text
//! %b = alloc_shared {align = 16}   →   %b = alloc_shared {align = 16, offset = 0}
//! ```

use std::ops::Range;

use rtc_ir::effects::Access;
use rtc_ir::{BARRIER_BYTES, Kernel, Op, OpKind, Phase, SCRATCH_ALIGN, place_bytes};
use rtc_source::{Code, Diagnostic};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "allocate-shared", needs: Phase::Laid, leaves: Phase::Laid, run };

/// Up to this many bytes neighbours are kept apart; above it space counts more than a barrier.
const ROOMY: u32 = 48 * 1024;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let allocations: Vec<Op> = rtc_ir::walk(kernel).into_iter().filter(|op| alignment(kernel, *op).is_some()).collect();
    let (scratch, kept): (Vec<Op>, Vec<Op>) = allocations.into_iter().partition(|op| is_scratch(kernel, *op));
    let mut bottom = 0;
    for op in kept {
        bottom = place(kernel, cx, op, bottom)?.end;
    }
    let bottom = bottom.next_multiple_of(SCRATCH_ALIGN);
    let mut previous = bottom..bottom;
    let mut total = bottom;
    for op in scratch {
        let bytes = place_bytes(kernel.value_type(kernel.result(op, 0))) as u32;
        let after = previous.end.next_multiple_of(SCRATCH_ALIGN);
        let before_fits = bottom + bytes <= previous.start;
        let start = if !before_fits && after + bytes <= ROOMY.max(total) { after } else { bottom };
        previous = place(kernel, cx, op, start)?;
        total = total.max(previous.end);
    }
    kernel.shared_bytes = total;
    Ok(())
}

/// Gives a buffer the first aligned place from `from` on.
fn place(kernel: &mut Kernel, cx: &PassContext, op: Op, from: u32) -> Result<Range<u32>, PassError> {
    let bytes = place_bytes(kernel.value_type(kernel.result(op, 0))) as u32;
    let start = from.next_multiple_of(alignment(kernel, op).unwrap_or(1));
    if let OpKind::AllocShared { offset, .. } | OpKind::AllocBarriers { offset, .. } = kernel.kind_mut(op) {
        *offset = Some(start);
    }
    let end = start + bytes;
    if end <= cx.target.shared_bytes_max {
        return Ok(start..end);
    }
    let span = kernel.loc(kernel.op(op).loc).span.unwrap_or_default();
    let message = format!(
        "the kernel needs {end} bytes of shared memory, the target has {} for a block",
        cx.target.shared_bytes_max
    );
    let diagnostic = Diagnostic::error(Code::OUT_OF_RESOURCES, span, message)
        .primary("this tile goes through shared memory")
        .help("use smaller blocks, or fewer stages");
    Err(PassError::Diagnostic(Box::new(diagnostic)))
}

fn alignment(kernel: &Kernel, op: Op) -> Option<u32> {
    match kernel.kind(op) {
        OpKind::AllocShared { align, .. } => Some(*align),
        OpKind::AllocBarriers { .. } => Some(BARRIER_BYTES),
        _ => None,
    }
}

/// Whether a buffer is used by operations that pass values from thread to thread, and by nothing else.
fn is_scratch(kernel: &Kernel, op: Op) -> bool {
    let buffer = kernel.result(op, 0);
    kernel
        .users(buffer)
        .into_iter()
        .all(|user| kernel.effects(user).any(|(effect, on)| effect.access == Access::Exchange && on == Some(buffer)))
}
