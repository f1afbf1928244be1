//! Making the machine code of kernels ahead, in processes that only compile. These have no device; what is decided by registers is
//! decided by what the assembler says of them.

use super::assembled::{Found, good_assembler};
use super::occupancy::{is_better, limits, with_most};
use super::{driver_version, is_driver_there, parts};
use crate::backend::machine_code::{MachineCode, Variant};
use rtc_abi::{Metadata, Target};

/// Assembles the PTX of a kernel as it will be loaded. Nothing where there is no driver, whose machine this will run on, or no
/// assembler without known defects; the driver's own assembles the kernel then.
pub(crate) fn assemble(ptx: &str, metadata: &Metadata) -> Option<MachineCode> {
    let target = Target::named(&metadata.arch).ok()?;
    if ptx.contains("\n\t.section\t.debug_info") || !is_driver_there() {
        return None;
    }
    let Found { assembler, version } = good_assembler(target.name)?;
    if version.0 > parts(driver_version()).0 {
        return None;
    }
    let assembled = |ptx: &str| assembler.assemble_with_usage(ptx, &metadata.kernel, target.name).ok();
    let first = assembled(ptx)?;
    let mut variants = vec![Variant { registers: 0, remarks: first.remarks, cubin: first.cubin }];
    let (threads, shared) = (metadata.threads_per_block, metadata.shared_bytes);
    let usage = first.usage;
    let tried = limits(ptx, usage.registers, usage.spilled > 0, threads, shared, target.sm);
    for registers in tried.into_iter().flatten() {
        let Some(other) = with_most(ptx, registers).and_then(|ptx| assembled(&ptx)) else { break };
        let found = is_better(other.usage.registers, other.usage.spilled > 0, &other.remarks, registers);
        variants.push(Variant { registers, remarks: other.remarks, cubin: other.cubin });
        if found {
            break;
        }
    }
    Some(MachineCode { version, variants })
}
