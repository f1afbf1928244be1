//! Sets an upper bound of the registers per thread (`maxnreg`) where ptxas would choose too few for what the kernel does.
//!
//! ptxas chooses the number of registers by the occupancy that results.
//!
//! - If no number is enough, as for dots that need more than there are, it may choose a small one: for a dot in fp64 with
//!   an accumulator of 128 elements per thread it spilled 14 kB with 32 registers, and the results were wrong (CUDA 13.0
//!   and 13.5, `sm_90a`); with the bound that the block's threads imply anyway it spills 2 kB, and the results are right.
//! - A loop that loads through what it has loaded, such as a table's entry for each of several indices, waits for two
//!   loads in each iteration. To stay at 32 registers, ptxas waits for the entries of the first indices before it loads
//!   the next indices, so that an iteration waits up to eight times; with a bound, whichever, it loads all indices first,
//!   then all entries. The bound leaves half of the warps.
//!
//! Others are left alone, since ptxas chooses better without a bound, and so are kernels without dots that need more than
//! there are, whose elements are computed a few at a time.
//!
//! ```text
//! kernel @k(..) warps 2 ..   →   kernel @k(..) warps 2 maxnreg 255 ..
//! ```

use rtc_abi::SmLimits;
use rtc_ir::{Kernel, Op, OpKind, Phase, regions};

use crate::dependence::slice;
use crate::work::{Scope, estimate, has_dot};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "set-maxnreg", needs: Phase::Laid, leaves: Phase::Laid, run };

/// The bound for loads in flight: that of half of the threads that an SM can have.
const FOR_LOADS: u32 = 64;
/// So many accesses of a load have an address in registers each. With two, a sparse product took a fifth longer with the bound.
const MANY: u32 = 4;
/// Kernels with a higher estimate may need more than that bound.
const MOST_FOR_LOADS: u32 = 48;

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    if kernel.options.maxnreg.is_some() || kernel.registers_at_start().is_some() {
        return Ok(());
    }
    let most = SmLimits::most_registers(kernel.options.num_warps * 32);
    let bound = if has_dot(kernel) {
        (estimate(kernel, Scope::Kernel) > most).then_some(most)
    } else {
        let loads = rtc_ir::walk(kernel).into_iter().any(|op| loads_through_loaded(kernel, op));
        (loads && estimate(kernel, Scope::Kernel) <= MOST_FOR_LOADS).then_some(FOR_LOADS.min(most))
    };
    if bound.is_some() {
        kernel.options.maxnreg = bound;
    }
    Ok(())
}

/// Whether an operation in a loop makes many loads, at addresses or under masks that follow from what the loop loads.
fn loads_through_loaded(kernel: &Kernel, op: Op) -> bool {
    let OpKind::Load { vector, .. } = kernel.kind(op) else { return false };
    let registers = kernel.layout_of(kernel.result(op, 0)).map_or(1, |layout| layout.registers());
    let body = kernel.op(op).parent.filter(|_| registers >= MANY * vector.unwrap_or(1));
    let (Some(body), Some(of)) = (body, regions::loop_around(kernel, op)) else { return false };
    let roots = kernel.pointer(op).into_iter().chain(kernel.mask(op)).collect();
    kernel.op(of).blocks.contains(&body)
        && slice(kernel, body, roots).into_iter().any(|from| matches!(kernel.kind(from), OpKind::Load { .. }))
}
