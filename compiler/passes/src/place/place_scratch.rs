//! Gives a buffer in shared memory to each operation that moves data between threads through it: dots by
//! FMAs, reductions and scans across warps, gathers, sorts, histograms, atomics whose result all threads need.
//!
//! ```text
//! %y = gather %x, %i {axis = 0} : tile<..>   →   %b = alloc_shared {align = 16} : shared<8192xi8>
//!                                                %y = gather %x, %i, scratch = %b {axis = 0} : tile<..>
//! ```

use rtc_ir::{Builder, Elem, Kernel, Phase, Shape, SharedType, scratch_align, scratch_bytes};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "place-scratch", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    for op in rtc_ir::walk(kernel) {
        let Some(slot) = kernel.kind(op).spec().optional.iter().position(|n| *n == "scratch") else { continue };
        if let Some(bytes) = scratch_bytes(kernel, op) {
            let Some(shape) = Shape::new(&[bytes]) else { continue };
            let align = scratch_align(kernel.kind(op));
            let buffer = Builder::before(kernel, op).buffer(SharedType::plain(Elem::I8, shape), align)?;
            kernel.set_optional(op, slot, buffer);
        }
    }
    Ok(())
}
