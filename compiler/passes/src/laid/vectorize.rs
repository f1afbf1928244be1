//! Sets how many consecutive registers of a load, store or atomic make one access.
//!
//! ```text
//! %x = load %p, mask = %m : tile<1024xf32, #l0>   →   %x = load %p, mask = %m {vector = 4} : tile<1024xf32, #l0>
//! ```

use rtc_ir::{Kernel, Op, OpKind, Phase};

use super::coalesce::most_at_once;
use crate::access::vector_width::vector_width;
use crate::{Pass, PassContext, PassError};
use rtc_ir::analysis::{AxisInfos, axis_info};

/// The pass.
pub const PASS: Pass = Pass { name: "vectorize", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let infos = axis_info(kernel);
    for op in rtc_ir::walk(kernel) {
        if !matches!(kernel.kind(op), OpKind::Load { .. } | OpKind::Store { .. } | OpKind::AtomicRmw { .. }) {
            continue;
        }
        let width = width(kernel, &infos, op).min(most_at_once(kernel, cx.target, op) as u32);
        if let OpKind::Load { vector, .. } | OpKind::Store { vector, .. } | OpKind::AtomicRmw { vector, .. } =
            kernel.kind_mut(op)
        {
            *vector = (width > 1).then_some(width);
        }
    }
    Ok(())
}

/// The best axis decides; most tiles have one along which both registers and addresses run.
fn width(kernel: &Kernel, infos: &AxisInfos, op: Op) -> u32 {
    let Some(pointer) = kernel.pointer(op) else { return 1 };
    let Some(layout) = kernel.layout_of(pointer) else { return 1 };
    (0..layout.rank())
        .map(|axis| {
            let addresses = vector_width(kernel, infos, pointer, kernel.mask(op), axis);
            layout.contiguity(axis).min(addresses as u32)
        })
        .max()
        .unwrap_or(1)
}
