//! The stages that a loop is to have, and the copies that fill them.

use rtc_ir::{Kernel, LoopHints, Op, OpKind};

/// How deep the loop is to be pipelined.
pub(crate) fn stages(kernel: &Kernel, of: Op) -> u32 {
    match kernel.kind(of) {
        OpKind::ForRange { hints: LoopHints { num_stages: Some(stages), .. }, .. } => *stages,
        _ => kernel.options.num_stages,
    }
}

/// The copies of a loop's body, in program order.
pub(crate) fn copies(kernel: &Kernel, of: Op) -> Vec<Op> {
    let ops = kernel.ops(kernel.op(of).blocks[0]);
    ops.filter(|op| matches!(kernel.kind(*op), OpKind::CopyAsync { .. })).collect()
}
