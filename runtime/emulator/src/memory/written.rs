//! Which bytes of global memory were written, for the sanitizer.

use super::{Allocation, GUARD_BYTES, Memory};

/// Bytes between allocations of memory that is tracked: an offset that overflowed 32 bits does not reach the next one.
const WIDE_GUARD: u64 = 1 << 33;

impl Memory {
    /// From now on allocations remember which of their bytes were written, and lie far apart.
    pub fn track(&mut self) {
        self.tracks = true;
    }

    pub(super) fn guard(&self) -> u64 {
        if self.tracks { WIDE_GUARD } else { GUARD_BYTES }
    }

    /// Bytes that were written by something that is not tracked.
    pub(crate) fn mark_all(&mut self) {
        for allocation in &mut self.allocations {
            let bytes = allocation.data.len();
            allocation.mark(0, bytes);
        }
    }

    /// Notes a write.
    pub(crate) fn mark_written(&mut self, address: u64, bytes: u64) {
        if let Some(i) = self.find(address, bytes) {
            let start = (address - self.allocations[i].base) as usize;
            self.allocations[i].mark(start, bytes as usize);
        }
    }

    /// The first uninitialized byte of a range, and its location as text.
    pub(crate) fn unwritten(&self, address: u64, bytes: u64) -> Option<(u64, String)> {
        let allocation = &self.allocations[self.find(address, bytes)?];
        let written = allocation.written.as_ref()?;
        let start = (address - allocation.base) as usize;
        let missing = (start..start + bytes as usize).find(|at| written[at / 64] >> (at % 64) & 1 == 0)?;
        let text = format!("{missing} bytes into `{}` ({} bytes)", allocation.name, allocation.bytes);
        Some((allocation.base + missing as u64, text))
    }

    /// Where an address is: ` (12 bytes into `x`)`.
    pub(crate) fn describe(&self, address: u64) -> String {
        let found = self.find(address, 1).map(|i| &self.allocations[i]);
        found.map_or(String::new(), |a| format!(" ({} bytes into `{}`)", address - a.base, a.name))
    }
}

impl Allocation {
    /// Notes that bytes were written.
    pub(super) fn mark(&mut self, start: usize, bytes: usize) {
        let Some(written) = &mut self.written else { return };
        let mut at = start;
        while at < start + bytes {
            let (word, bit) = (at / 64, at % 64);
            let count = (64 - bit).min(start + bytes - at);
            let ones = if count == 64 { u64::MAX } else { (1 << count) - 1 };
            written[word] |= ones << bit;
            at += count;
        }
    }
}
