//! Overlaps the start of a launch with the end of the previous one on the stream.
//!
//! Between two launches of a stream a GPU is idle for about a microsecond: the results of the first must be visible
//! before the blocks of the second start. From Hopper on a launch may relax this (programmatic dependent launch): its
//! blocks start when those of the previous launch have ended, and each waits at `grid_dependency` until the results are
//! visible. This pass puts that wait first, so that the kernel's semantics do not change, and the metadata requests
//! such launches (`launch_pdl`). A kernel with `gdc_wait` or `gdc_launch_dependents` in its source, or with
//! `launch_pdl` set, is left alone. A later position gains nothing: arithmetic before the wait takes registers (16 more
//! per thread in paged attention).
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
