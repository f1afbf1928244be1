//! More registers for launches so small that all blocks are resident at once.
//!
//! The driver's assembler often stops at a register count with which one more block fits on an SM, and orders instructions to
//! stay below it instead of to hide latency. On an H100 vLLM's `_fwd_kv_reduce` takes 369 µs with the 166 registers that it gets
//! so, and 137 µs with 254. A launch with fewer blocks than fit anyway gains nothing from the free room. The grid is known at
//! the launch, so the second version is compiled at the first launch that needs it.

use super::super::Backend;
use super::occupancy::with_most;
use super::{Context, Module, Stream};
use rtc_abi::{REGISTERS_PER_THREAD, SmLimits};
use std::sync::{Arc, OnceLock};

/// Kernels that need fewer registers are not limited by a step of occupancy.
const LEAST_REGISTERS: u32 = 96;

/// Within so many registers below a step of occupancy the step may have been the limit.
const NEAR: u32 = 8;

/// A version of a kernel with more registers.
#[derive(Debug)]
pub(super) struct FewBlocks {
    /// The PTX of the version and the kernel's name, while it is not compiled.
    source: Option<(String, String)>,
    threads: u32,
    /// The largest grid for which it is used, in blocks.
    most_blocks: u64,
    module: OnceLock<Option<Module>>,
}

impl FewBlocks {
    /// The version to compile for a kernel that takes `taken` registers, where a step of occupancy limited these.
    pub(super) fn of(context: &Context, ptx: &str, symbol: &str, taken: u32, threads: u32) -> Option<FewBlocks> {
        is_held_back(taken, threads).then(|| with_most(ptx, SmLimits::most_registers(threads))).flatten().map(|ptx| {
            FewBlocks {
                source: Some((ptx, symbol.to_owned())),
                threads,
                most_blocks: at_once(context, SmLimits::most_registers(threads), threads),
                module: OnceLock::new(),
            }
        })
    }

    /// A version that is compiled already.
    pub(super) fn compiled(context: &Context, module: Module, threads: u32) -> FewBlocks {
        let most_blocks = at_once(context, module.registers, threads);
        FewBlocks { source: None, threads, most_blocks, module: OnceLock::from(Some(module)) }
    }

    /// The version, if it is compiled.
    pub(super) fn get(&self) -> Option<&Module> {
        self.module.get().and_then(Option::as_ref)
    }

    /// The version, if a launch of so many blocks should use it. While a stream records a graph nothing is compiled, as some
    /// drivers refuse to load modules then.
    pub(super) fn for_launch(
        &self,
        context: &Arc<Context>,
        blocks: u64,
        stream: &Stream,
        like: &Module,
    ) -> Option<&Module> {
        if blocks > self.most_blocks {
            return None;
        }
        if self.module.get().is_none() && stream.is_capturing() {
            return None;
        }
        self.module.get_or_init(|| self.compile(context, like)).as_ref()
    }

    fn compile(&self, context: &Arc<Context>, like: &Module) -> Option<Module> {
        let (ptx, symbol) = self.source.as_ref()?;
        let (module, remarks) = Module::load_with_remarks(context, ptx, symbol).ok()?;
        let is_better = module.local_bytes == 0 && module.registers > like.registers && !remarks.contains("serialized");
        let holds = at_once(context, module.registers, self.threads) >= self.most_blocks;
        let (shared_bytes, cluster) = *like.prepared.get()?;
        (is_better && holds && module.prepare(shared_bytes, cluster).is_ok()).then_some(module)
    }
}

/// Whether the next step of occupancy may have limited the registers of a kernel.
fn is_held_back(taken: u32, threads: u32) -> bool {
    let step = SmLimits::registers_for(SmLimits::blocks_by_registers(taken, threads).max(1), threads)
        .min(REGISTERS_PER_THREAD);
    taken >= LEAST_REGISTERS && taken + NEAR > step && taken + NEAR < SmLimits::most_registers(threads)
}

/// The blocks that are resident on all SMs, as far as registers limit them.
fn at_once(context: &Context, registers: u32, threads: u32) -> u64 {
    u64::from(context.sm_count()) * u64::from(SmLimits::blocks_by_registers(registers, threads))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_at_a_step_of_occupancy_were_held_back() {
        assert!(is_held_back(128, 128) && is_held_back(166, 128) && is_held_back(128, 256));
        // Far below the step; small; at the end; a block that cannot have more.
        assert!(
            !is_held_back(134, 128) && !is_held_back(64, 128) && !is_held_back(255, 128) && !is_held_back(128, 512)
        );
    }

    #[test]
    fn a_thread_has_up_to_255_registers() {
        assert_eq!([128, 256, 512, 1024].map(SmLimits::most_registers), [255, 255, 128, 64]);
    }
}
