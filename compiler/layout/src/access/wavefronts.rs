//! How often an instruction passes over the banks of shared memory.

use super::AccessKind;
use crate::linear::{LANE_BITS, LANES};

/// Banks of shared memory, each of words of 4 bytes.
const BANKS: usize = 32;

/// Which lanes access what, in the first warp.
pub(super) struct Wavefronts {
    /// Bytes of a lane.
    bytes: u32,
    /// Lanes that the hardware serves together.
    together: u32,
    /// Lanes that supply addresses.
    lanes: u32,
    lane: [u32; LANE_BITS],
    /// Bits of lanes that a store skips: they hold copies.
    skipped: u32,
}

impl Wavefronts {
    pub(super) fn of(
        kind: AccessKind,
        (width, bits): (u32, u32),
        matrices: u32,
        lane: [u32; LANE_BITS],
        store: bool,
        copies: u32,
    ) -> Wavefronts {
        let (together, lanes) = match kind {
            AccessKind::Vector => ((128 * 8 / (width * bits).max(8)).min(LANES), LANES),
            AccessKind::Matrix { .. } => (8, 8 * matrices),
        };
        let skipped = if store && kind == AccessKind::Vector { copies } else { 0 };
        Wavefronts { bytes: (width * bits / 8).max(1), together, lanes, lane, skipped }
    }

    /// The wavefronts of an instruction at `offset`, in elements; `place` takes offsets to addresses in bytes.
    pub(super) fn count(&self, offset: u32, place: impl Fn(u32) -> u32) -> u32 {
        let mut addresses = [offset; LANES as usize];
        for lane in 1..LANES as usize {
            addresses[lane] = addresses[lane & (lane - 1)] ^ self.lane[lane.trailing_zeros() as usize];
        }
        let conflicts = |first| self.conflicts(self.served(first).map(|lane| place(addresses[lane as usize])));
        self.phases().map(|first| conflicts(first).max(1)).sum()
    }

    /// The wavefronts without conflicts.
    pub(super) fn minimum(&self) -> u32 {
        self.phases().count() as u32
    }

    /// The first lane of each group that the hardware serves together.
    fn phases(&self) -> impl Iterator<Item = u32> {
        (0..self.lanes / self.together)
            .map(|phase| phase * self.together)
            .filter(|first| self.served(*first).count() > 0)
    }

    /// The lanes of a group, without those that a store skips.
    fn served(&self, first: u32) -> impl Iterator<Item = u32> {
        (first..first + self.together).filter(|lane| lane & self.skipped == 0)
    }

    /// The greatest number of different words in one bank.
    fn conflicts(&self, addresses: impl Iterator<Item = u32>) -> u32 {
        let mut words = Vec::with_capacity(2 * BANKS);
        for first in addresses {
            words.extend(first / 4..=(first + self.bytes - 1) / 4);
        }
        words.sort_unstable();
        words.dedup();
        let mut banks = [0; BANKS];
        for word in words {
            banks[word as usize % BANKS] += 1;
        }
        banks.into_iter().max().unwrap_or(0)
    }
}
