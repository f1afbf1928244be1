//! The rules of `warp_specialize`.

use super::Verifier;
use crate::effects::EffectKind;
use crate::{MAX_PARTITIONS, Op, warps_of_partition};

/// The most warps of a block.
const MAX_WARPS: u32 = 32;

impl Verifier<'_> {
    /// Checks place and numbers of a `warp_specialize`; gives whether it makes sense to look at its blocks.
    pub(super) fn specialization(&mut self, op: Op, warps: &[u32], registers: Option<&[u32]>) -> bool {
        let kernel = self.kernel;
        let before = self.errors.len();
        let data = kernel.op(op);
        if data.parent != Some(kernel.body()) {
            self.complain(op, "stands in a nested block, where not all warps of the block come by");
        } else if kernel.specialization() != Some(op) {
            self.complain(op, "the warps are divided a second time");
        }
        let partitions = data.blocks.len();
        if partitions > MAX_PARTITIONS {
            self.complain(op, format!("has {partitions} partitions, more than {MAX_PARTITIONS}"));
        }
        if warps.len() != partitions {
            self.complain(op, format!("has {partitions} partitions, and numbers of warps for {}", warps.len()));
        }
        for count in warps.iter().filter(|n| !n.is_power_of_two()) {
            self.complain(op, format!("{count} warps of a partition: not a power of two"));
        }
        let all = warps.iter().fold(0u32, |sum, n| sum.saturating_add(warps_of_partition(*n, registers)));
        if all > MAX_WARPS {
            self.complain(op, format!("{all} warps, more than {MAX_WARPS}"));
        }
        if data.blocks.iter().any(|block| !kernel.block(*block).args.is_empty()) {
            self.complain(op, "a partition takes no arguments");
        }
        if let Some(registers) = registers.filter(|_| self.errors.len() == before) {
            self.registers(op, warps, registers);
        }
        self.errors.len() == before
    }

    /// That an operation passes values from thread to thread through a buffer of the same warps.
    pub(super) fn scratch_of_group(&mut self, op: Op) {
        let kernel = self.kernel;
        let exchanged = kernel.effects(op).filter(|(effect, _)| effect.access == EffectKind::Exchange);
        let mut buffers = exchanged.filter_map(|(_, value)| kernel.allocation(value?));
        if buffers.any(|buffer| kernel.group_of(buffer) != self.group) {
            self.complain(op, "the scratch memory is that of other warps");
        }
    }

    fn registers(&mut self, op: Op, warps: &[u32], registers: &[u32]) {
        if registers.len() != warps.len() {
            let (partitions, given) = (warps.len(), registers.len());
            return self.complain(op, format!("has {partitions} partitions, and numbers of registers for {given}"));
        }
        let Some(start) = self.kernel.registers_at_start() else { return };
        let (mut all, mut sum) = (0u32, 0u32);
        for (count, wanted) in warps.iter().zip(registers) {
            let count = warps_of_partition(*count, Some(registers));
            let wanted = match wanted {
                0 => start,
                wanted => {
                    if !wanted.is_multiple_of(8) || !(24..=256).contains(wanted) {
                        self.complain(op, format!("{wanted} registers: not a multiple of 8 from 24 to 256"));
                    }
                    *wanted
                }
            };
            all += count;
            sum += count * wanted.min(1024);
        }
        let available = start * all;
        if sum > available {
            let message =
                format!("the partitions need {sum} registers for a lane of all warps, and start with {available}");
            self.complain(op, message);
        }
    }
}
