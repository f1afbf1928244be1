//! The resources of an SM, and how many blocks of a kernel fit on it.

/// The resources of an SM, and its limits on blocks and threads.
///
/// ```
/// use rtc_abi::{REGISTER_STEP, REGISTERS, REGISTERS_PER_THREAD, SmLimits, Target};
/// let sm = Target::named("sm_90a").unwrap().sm;
/// // Four warps with 168 registers per thread and 64 KiB of shared memory.
/// assert_eq!(sm.occupancy(128, 168, 64 << 10), 3);
/// assert_eq!((SmLimits::blocks_by_registers(168, 128), sm.blocks_beside_registers(128, 64 << 10)), (3, 3));
/// assert_eq!((SmLimits::registers_for(3, 128), SmLimits::most_registers(512)), (168, 128));
/// assert_eq!((sm, sm.shared_for(2)), (SmLimits::HOPPER, 113 << 10));
/// // A block of 512 threads alone on an SM, and one of 32.
/// assert_eq!(SmLimits::most_registers(512), REGISTERS / 512 / REGISTER_STEP * REGISTER_STEP);
/// assert_eq!(SmLimits::most_registers(32), REGISTERS_PER_THREAD);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmLimits {
    /// Threads at a time.
    pub threads: u32,
    /// Blocks at a time.
    pub blocks: u32,
    /// Shared memory in bytes.
    pub shared_bytes: u32,
    /// Bytes of it that each block takes in addition to its own.
    pub reserved_bytes: u32,
}

/// 32-bit registers of an SM, on every target.
pub const REGISTERS: u32 = 65_536;
/// The most registers of a thread, on every target.
pub const REGISTERS_PER_THREAD: u32 = 255;
/// The number of registers of a thread is rounded up to a multiple of this.
pub const REGISTER_STEP: u32 = 8;
/// Parts of an SM, each with its own registers and warps.
const PARTS: u32 = 4;

const WARP: u32 = 32;

impl SmLimits {
    /// An SM of Hopper, which the large Blackwell has, too.
    pub const HOPPER: SmLimits = SmLimits { threads: 2048, blocks: 32, shared_bytes: 228 << 10, reserved_bytes: 1024 };

    /// How many blocks run on the SM at a time: blocks of `threads` threads with `registers` registers each and
    /// `shared_bytes` of shared memory. 0 if not even one fits.
    pub fn occupancy(self, threads: u32, registers: u32, shared_bytes: u32) -> u32 {
        SmLimits::blocks_by_registers(registers, threads).min(self.blocks_beside_registers(threads, shared_bytes))
    }

    /// How many blocks of `threads` threads fit by their registers.
    pub fn blocks_by_registers(registers: u32, threads: u32) -> u32 {
        let warp = registers.max(1).next_multiple_of(REGISTER_STEP) * WARP;
        REGISTERS / PARTS / warp * PARTS / threads.div_ceil(WARP).max(1)
    }

    /// How many fit by everything else.
    pub fn blocks_beside_registers(self, threads: u32, shared_bytes: u32) -> u32 {
        let by_shared = self.shared_bytes / (shared_bytes + self.reserved_bytes).max(1);
        by_shared.min(self.threads / threads.max(1)).min(self.blocks)
    }

    /// The most registers per thread with which `blocks` blocks of `threads` threads fit; may be more than a thread can
    /// have.
    pub fn registers_for(blocks: u32, threads: u32) -> u32 {
        let warps = (blocks * threads.div_ceil(WARP)).div_ceil(PARTS).max(1);
        REGISTERS / PARTS / warps / WARP / REGISTER_STEP * REGISTER_STEP
    }

    /// The most registers that a thread of such a block can have.
    pub fn most_registers(threads: u32) -> u32 {
        SmLimits::registers_for(1, threads).min(REGISTERS_PER_THREAD)
    }

    /// The most shared memory of each block if `blocks` run at a time, in bytes.
    pub fn shared_for(self, blocks: u32) -> u32 {
        (self.shared_bytes / blocks.max(1)).saturating_sub(self.reserved_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_follow_from_registers() {
        assert_eq!(SmLimits::blocks_by_registers(128, 128), 4);
        assert_eq!(SmLimits::blocks_by_registers(129, 128), 3);
        assert_eq!(SmLimits::blocks_by_registers(255, 128), 2);
        assert_eq!(SmLimits::blocks_by_registers(255, 256), 1);
        for (count, threads) in [(1, 128), (3, 128), (4, 128), (2, 256), (7, 64), (16, 32)] {
            let most = SmLimits::registers_for(count, threads);
            let [fit, more] = [most, most + 1].map(|registers| SmLimits::blocks_by_registers(registers, threads));
            assert!(fit >= count && more < count, "{count} {threads}: {most}");
        }
    }

    #[test]
    fn shared_memory_threads_and_blocks_limit_too() {
        assert_eq!(SmLimits::HOPPER.blocks_beside_registers(128, 0), 16);
        assert_eq!(SmLimits::HOPPER.blocks_beside_registers(32, 0), 32);
        assert_eq!(SmLimits::HOPPER.blocks_beside_registers(128, 48 * 1024), 4);
        assert_eq!(SmLimits::HOPPER.shared_for(1), 227 << 10);
        for blocks in 1..=8 {
            assert!(SmLimits::HOPPER.blocks_beside_registers(64, SmLimits::HOPPER.shared_for(blocks)) >= blocks);
            assert!(SmLimits::HOPPER.blocks_beside_registers(64, SmLimits::HOPPER.shared_for(blocks) + 1) < blocks);
        }
    }

    #[test]
    fn every_target_has_the_shared_memory_of_its_sm() {
        for target in crate::TARGETS {
            assert_eq!(target.sm.shared_for(1), target.shared_bytes_max, "{}", target.name);
        }
    }
}
