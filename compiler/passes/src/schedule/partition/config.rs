//! The form that warp specialization gives a kernel, and what identifies its buffers.

use rtc_ir::{Kernel, Op, OpKind, Value};

/// Warps that copy.
pub(crate) const PRODUCER_WARPS: u32 = 1;

/// The numbers of the new form.
pub(crate) struct PartitionConfig {
    /// Registers of a thread that copies, and of one that computes.
    pub registers: [u32; 2],
    /// Registers that each starts with.
    pub at_start: u32,
    /// Blocks on an SM.
    pub blocks: u32,
    /// Slots of the rings.
    pub slots: u32,
    /// Bytes of results that are stored to shared memory at a time, to be copied from there; `None`: they are stored
    /// directly.
    pub stored: Option<u32>,
    /// Whether that waits for the next program.
    pub deferred: bool,
}

/// The buffer behind a view of one.
pub(crate) fn buffer_of(kernel: &Kernel, mut value: Value) -> Option<Value> {
    while let Some(op) = kernel.def_op(value) {
        match kernel.kind(op) {
            OpKind::SharedTrans { .. } | OpKind::CopyAwait {} => value = kernel.operand(op, 0),
            OpKind::AllocShared { .. } => return Some(value),
            _ => return None,
        }
    }
    None
}

/// Whether a buffer is a ring that copies fill.
pub(crate) fn is_ring(kernel: &Kernel, alloc: Op) -> bool {
    let fills = |op: Op| {
        matches!(kernel.kind(op), OpKind::CopyDesc {}) && kernel.allocation(kernel.operand(op, 1)) == Some(alloc)
    };
    matches!(kernel.kind(alloc), OpKind::AllocShared { .. }) && rtc_ir::walk(kernel).into_iter().any(fills)
}
