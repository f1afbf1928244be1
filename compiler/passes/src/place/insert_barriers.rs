//! Inserts a barrier of the block between accesses of different threads to the same bytes of shared memory if one of
//! them is a write. `pending.rs` finds where one is needed; the offsets of buffers are known here.
//!
//! Within a partition of `warp_specialize` a barrier is one of the partition's threads.
//!
//! ```text
//! local_store %x, %b                         local_store %x, %b
//! %y = local_load %b : tile<..>       →      barrier
//!                                            %y = local_load %b : tile<..>
//! ```

use rtc_ir::{Builder, Kernel, Op, OpKind, Phase};

use super::pending::{self, BufferPart};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "insert-barriers", needs: Phase::Laid, leaves: Phase::Scheduled, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let meet = |a: &BufferPart, b: &BufferPart| {
        let (at, other) = (place(kernel, a.of), place(kernel, b.of));
        at + a.start < other + b.end && other + b.start < at + a.end
    };
    for op in pending::needed(kernel, &meet, &mut |_, _| {}) {
        Builder::before(kernel, op).barrier()?;
    }
    Ok(())
}

fn place(kernel: &Kernel, allocation: Op) -> u64 {
    match kernel.kind(allocation) {
        OpKind::AllocShared { offset, .. } => offset.unwrap_or(0).into(),
        _ => 0,
    }
}
