//! The matrix unit that takes operands from shared memory by itself, asynchronously: `wgmma` of sm_90a. Passes ask here, so that
//! another unit of that kind is another row of targets and another kind of dot.

use rtc_abi::{Feature, Target};
use rtc_ir::{DotKind, OpKind};

/// Whether a target has such a unit.
pub(crate) fn has_async(target: &Target) -> bool {
    target.has(Feature::Wgmma)
}

/// Whether an operation is a dot, before its operands are staged or after.
pub(crate) fn is_dot(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Dot { .. } | OpKind::DotBuffers { .. } | OpKind::Mma {} | OpKind::MmaAsync {})
}

/// Whether a dot is for such a unit: `stage_operands` makes it an `mma`.
pub(crate) fn is_async_dot(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Dot { kind: DotKind::Wgmma, .. })
}
