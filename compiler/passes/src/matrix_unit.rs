//! The matrix unit that takes operands from shared memory by itself, asynchronously: `wgmma` of sm_90a. Passes ask here, so that
//! another unit of that kind is another row of targets and another kind of dot.

use rtc_abi::{Feature, Target};
use rtc_ir::{DotKind, Kernel, Op, OpKind};
use rtc_layout::MmaShape;

/// The warps that an instruction of `wgmma` takes together.
pub(crate) const GROUP_WARPS: u32 = 4;

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

/// Whether a dot by `mma.sync` has fewer rows or columns than the instruction, which computes copies of them.
pub(crate) fn is_partly_filled(kernel: &Kernel, dot: Op) -> bool {
    let (OpKind::Dot { kind: DotKind::MmaV2, .. }, Some([lhs, _, acc])) = (kernel.kind(dot), kernel.dot_operands(dot))
    else {
        return false;
    };
    let (Some(bits), Some(shape)) =
        (kernel.value_type(lhs).elem().map(|elem| elem.bits()), kernel.value_type(acc).shape())
    else {
        return false;
    };
    let instruction = MmaShape::for_bits(bits);
    shape[shape.rank() - 2] < instruction.m || shape[shape.rank() - 1] < instruction.n
}
