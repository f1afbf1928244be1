//! Lets a launch begin while the one before it on the stream ends.
//!
//! Between two launches of a stream a GPU is idle for about a microsecond: the first one's results must be where the
//! second one sees them before its blocks are sent out. From Hopper on a launch may ask for less (programmatic dependent
//! launch): its blocks are sent out when those of the launch before have ended, and each waits by itself, at
//! `grid_dependency`, until the results are there. This pass puts that wait first, so that a kernel sees what it would
//! see without it, and the metadata asks for such launches (`launch_pdl`). A kernel that has
//! `gdc_wait` or `gdc_launch_dependents` in its source, or whose launch says `launch_pdl` itself, is left alone. Nothing is won
//! by a later place: arithmetic before the wait takes registers (16 more a thread in paged attention).
//!
//! ```text
//! %i = arange .. : tile<64xi32, #l0>     →   grid_dependency {wait = true}
//! %x = load ..                               %i = arange ..
//!                                            %x = load ..
//! ```

use rtc_abi::Feature;
use rtc_ir::{Builder, Kernel, OpKind, Phase};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "insert-pdl-waits", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let asks = rtc_ir::walk(kernel).into_iter().any(|op| matches!(kernel.kind(op), OpKind::GridDependency { .. }));
    if asks || !cx.overlap_launches || !cx.target.has(Feature::DependentLaunch) {
        return Ok(());
    }
    let first = kernel.ops(kernel.body()).next();
    if let Some(first) = first.filter(|_| kernel.first_access().is_some()) {
        Builder::before(kernel, first).grid_dependency(true)?;
    }
    Ok(())
}
