//! Sets an upper bound of the registers per thread (`maxnreg`) for kernels whose dots need more than there are.
//!
//! ptxas chooses the number of registers by the occupancy that results. If no number is enough, it may choose a small
//! one: for a dot in fp64 with an accumulator of 128 elements per thread it spilled 14 kB with 32 registers, and the
//! results were wrong (CUDA 13.0 and 13.5, `sm_90a`); with the bound that the block's threads imply anyway it spills 2
//! kB, and the results are right. Kernels that fit are left alone, since ptxas chooses better without a bound, and so
//! are those without dots, whose elements are computed a few at a time.
//!
//! ```text
//! kernel @k(..) warps 2 ..   →   kernel @k(..) warps 2 maxnreg 255 ..
//! ```

use rtc_abi::SmLimits;
use rtc_ir::{Kernel, Phase};

use crate::work::{Scope, estimate, has_dot};
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "set-maxnreg", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let most = SmLimits::most_registers(kernel.options.num_warps * 32);
    let is_bound = kernel.options.maxnreg.is_some() || kernel.registers_at_start().is_some();
    if !is_bound && has_dot(kernel) && estimate(kernel, Scope::Kernel) > most {
        kernel.options.maxnreg = Some(most);
    }
    Ok(())
}
