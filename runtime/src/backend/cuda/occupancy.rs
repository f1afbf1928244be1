//! Fewer registers where another block then fits on an SM. The driver's assembler takes as many registers as it
//! likes, although with a few less, and without spilling any, one more block would run beside the others and hide the time
//! that these wait. Whether it can is asked by compiling once more; what it says decides.

use super::few_blocks::FewBlocks;
use super::{Context, Image, Module, ahead};
use crate::Result;
use rtc_abi::SmLimits;
use std::sync::Arc;

/// Compiling longer text twice takes longer than it is worth.
const LONGEST: usize = 256 * 1024;

/// With so many warps on an SM the time that one waits is hidden by the others.
const ENOUGH_WARPS: u32 = 16;

/// With so many no further block is worth registers.
const MOST_WARPS: u32 = 32;

/// With fewer than this, many registers are given up for another block, else no more than a sixth.
const FEW_WARPS: u32 = 12;

/// What stands before the number of threads of a block.
const THREADS: &str = "\n.reqntid ";

/// How often it is tried.
const ATTEMPTS: usize = 2;

/// The kernel that was compiled from an image, or the same with fewer registers where more blocks of so many threads and so
/// many bytes of shared memory then run at a time. Text that says itself how many registers there are is left as it is.
pub(super) fn more_blocks(module: Module, context: &Arc<Context>, image: &Image<'_>) -> Result<Module> {
    let (threads, shared) = (image.metadata.threads_per_block, image.metadata.shared_bytes + module.static_shared);
    let (taken, spills) = (module.registers, module.local_bytes > 0);
    let Some(limits) = limits(image.ptx, taken, spills, threads, shared, context.sm_limits()) else {
        return Ok(module);
    };
    let mut module = module;
    for registers in limits {
        let Ok((mut other, said)) = ahead::load_limited(context, image, registers) else { continue };
        if is_better(other.registers, other.local_bytes > 0, &said, registers) {
            other.few_blocks = Some(Box::new(FewBlocks::compiled(context, module, threads)));
            return Ok(other);
        }
    }
    let symbol = &image.metadata.symbol;
    module.few_blocks = FewBlocks::of(context, image.ptx, symbol, module.registers, threads).map(Box::new);
    Ok(module)
}

/// The numbers of registers that are tried for a kernel that takes `taken`, in this order. Nothing where the text says itself
/// how many there are, where some are spilled, and for text that takes long to compile.
pub(super) fn limits(
    ptx: &str,
    taken: u32,
    spills: bool,
    threads: u32,
    shared_bytes: u32,
    sm: SmLimits,
) -> Option<impl Iterator<Item = u32>> {
    let says_so = [".maxnreg", "setmaxnreg", ".minnctapersm"].iter().any(|word| ptx.contains(word));
    let is_tried = !says_so && !spills && ptx.len() <= LONGEST && has_one_size(ptx);
    let most = sm.blocks_beside_registers(threads, shared_bytes);
    is_tried.then(|| fewer(taken, threads, most).into_iter().take(ATTEMPTS))
}

/// Whether a kernel that was assembled with at most `limit` registers is the better one. Dots that the assembler makes wait for
/// each other cost more than a block gives.
pub(super) fn is_better(taken: u32, spills: bool, remarks: &str, limit: u32) -> bool {
    !spills && taken <= limit && !remarks.contains("serialized")
}

/// The text with a most number of registers. The option of the driver does not do it: it is passed over where the text says how
/// many threads a block has.
pub(super) fn with_most(ptx: &str, registers: u32) -> Option<String> {
    has_one_size(ptx).then(|| ptx.replacen(THREADS, &format!("\n.maxnreg {registers}{THREADS}"), 1))
}

/// Whether the text says once how many threads a block has.
fn has_one_size(ptx: &str) -> bool {
    ptx.matches(THREADS).count() == 1
}

/// Numbers of registers less than `taken` with which more blocks fit, up to `most`, the most blocks first.
fn fewer(taken: u32, threads: u32, most: u32) -> Vec<u32> {
    let (now, warps) = (SmLimits::blocks_by_registers(taken, threads), threads.div_ceil(32));
    let is_worth = |count: &u32| {
        let left = SmLimits::registers_for(*count, threads);
        let few = now * warps < FEW_WARPS && count * warps <= ENOUGH_WARPS && left * 2 >= taken;
        left < taken && now * warps < MOST_WARPS && (few || left * 6 >= taken * 5)
    };
    let mut counts: Vec<u32> =
        (now + 1..=most).rev().filter(is_worth).map(|count| SmLimits::registers_for(count, threads)).collect();
    counts.dedup();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_registers_are_given_up_and_many_where_few_warps_run() {
        // 146 registers: three blocks of four warps; with 128 there are four.
        assert_eq!(fewer(146, 128, 8), [128]);
        // Shared memory does not hold a fourth.
        assert_eq!(fewer(146, 128, 3), [0; 0]);
        // Eight warps: up to sixteen.
        assert_eq!(fewer(255, 128, 8), [128, 168]);
        assert_eq!(fewer(152, 128, 8), [128]);
        // Twelve run already, and the next step is far away.
        assert_eq!(fewer(160, 128, 8), [0; 0]);
        assert_eq!(fewer(32, 128, 16), [0; 0]);
    }

    #[test]
    fn the_text_of_a_kernel_gets_a_most_number() {
        let ptx = ".visible .entry k(\n)\n.reqntid 128\n{\n";
        assert_eq!(with_most(ptx, 96).as_deref(), Some(".visible .entry k(\n)\n.maxnreg 96\n.reqntid 128\n{\n"));
        assert_eq!(with_most(".visible .entry k()\n{\n", 96), None);
    }
}
