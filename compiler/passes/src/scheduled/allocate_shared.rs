//! Places buffers in shared memory and says how much the kernel needs.
//!
//! A scratch buffer lives for one operation, so one place would do for all. Neighbours in program order get different
//! places all the same while that is cheap: then the barrier between two operations that use the same bytes falls away.
//!
//! ```text
//! %b = alloc_shared {bytes = 8192, align = 16}   →   %b = alloc_shared {bytes = 8192, align = 16, offset = 0}
//! ```

use rtc_ir::{Kernel, OpKind, Phase};
use rtc_source::{Code, Diagnostic};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "allocate-shared", needs: Phase::Laid, leaves: Phase::Laid, run };

/// Up to this many bytes neighbours are kept apart; above it space counts more than a barrier.
const ROOMY: u32 = 48 * 1024;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let mut previous = 0..0u32;
    let mut total = 0;
    for op in rtc_ir::walk(kernel) {
        let OpKind::AllocShared { bytes, align, .. } = *kernel.kind(op) else { continue };
        let after = previous.end.next_multiple_of(align);
        let before_fits = bytes <= previous.start;
        let start = if before_fits {
            0
        } else if after + bytes <= ROOMY.max(total) {
            after
        } else {
            0
        };
        previous = start..start + bytes;
        total = total.max(previous.end);
        if let OpKind::AllocShared { offset, .. } = kernel.kind_mut(op) {
            *offset = Some(start);
        }
        if previous.end > cx.target.shared_bytes_max {
            let span = kernel.loc(kernel.op(op).loc).span.unwrap_or_default();
            let message = format!(
                "the kernel needs {} bytes of shared memory, the target has {} for a block",
                previous.end, cx.target.shared_bytes_max
            );
            let diagnostic = Diagnostic::error(Code::OUT_OF_RESOURCES, span, message)
                .primary("this tile goes through shared memory")
                .help("use smaller blocks, or fewer stages");
            return Err(PassError::Diagnostic(Box::new(diagnostic)));
        }
    }
    kernel.shared_bytes = total;
    Ok(())
}
