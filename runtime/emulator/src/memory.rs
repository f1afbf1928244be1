//! Global memory of the emulated device: named allocations with guard gaps between them.
//!
//! Addresses look like a GPU's (far from 0, aligned to 256 bytes or more) and are the same in every run. Every access
//! must be within one live allocation; gaps between allocations are unmapped, and freed ranges are remembered so that a
//! fault can name them.
//!
//! ```
//! use rtc_emulator::Memory;
//! let mut memory = Memory::new();
//! let x = memory.alloc(16, 16, "x");
//! memory.write(x, &1.5f32.to_le_bytes()).expect("in bounds");
//! assert_eq!(memory.read(x, 4).expect("in bounds"), 1.5f32.to_le_bytes());
//! assert!(memory.read(x + 16, 1).is_err());
//! ```

mod apart;
mod shape;
mod written;

use crate::fault::{Access, AccessError, Near};
use apart::{Data, Touched};
use shape::Shape;

/// Lowest address handed out by [`Memory::alloc`].
const FIRST_ADDRESS: u64 = 0x7_0000_0000;
/// Unmapped bytes between two allocations.
const GUARD_BYTES: u64 = 4096;
/// An allocation farther away than this says nothing about a bad address.
const NEAR_BYTES: u128 = 1 << 26;
/// Every allocation starts at a multiple of this, as `cuMemAlloc` promises.
const BASE_ALIGN: u64 = 256;

/// One range of global memory.
#[derive(Clone, Debug)]
struct Allocation {
    base: u64,
    data: Data,
    /// The requested length; `data` is emptied when the range is freed.
    bytes: u64,
    name: String,
    live: bool,
    writable: bool,
    /// Which bytes were written, where that is tracked: one bit each.
    written: Option<Vec<u64>>,
    /// The accessed bytes, in memory that is one of several.
    touched: Option<Box<Touched>>,
}

/// Global memory: the target of pointers in kernel arguments.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Sorted by base address.
    allocations: Vec<Allocation>,
    next: u64,
    poison: Option<u8>,
    tracks: bool,
    shapes: Vec<Shape>,
}

impl Memory {
    /// Empty memory whose new allocations are zero.
    pub fn new() -> Memory {
        Memory { next: FIRST_ADDRESS, ..Memory::default() }
    }

    /// Empty memory whose new allocations are filled with `byte`, so that reads before writes are noticeable.
    pub fn poisoned(byte: u8) -> Memory {
        Memory { poison: Some(byte), ..Memory::new() }
    }

    /// Allocates `bytes` bytes at a multiple of `align` (at least 256) under a name used in faults.
    pub fn alloc(&mut self, bytes: usize, align: usize, name: &str) -> u64 {
        let align = (align as u64).next_power_of_two().max(BASE_ALIGN);
        let base = self.next.max(FIRST_ADDRESS).next_multiple_of(align);
        self.next = base + bytes as u64 + self.guard();
        self.allocations.push(Allocation {
            base,
            data: Data::Own(vec![self.poison.unwrap_or(0); bytes]),
            bytes: bytes as u64,
            name: name.to_string(),
            live: true,
            writable: true,
            written: self.tracks.then(|| vec![0; bytes.div_ceil(64)]),
            touched: None,
        });
        base
    }

    /// Forbids writes by kernels to the allocation that starts at `base` (constant memory).
    pub(crate) fn protect(&mut self, base: u64) {
        if let Some(i) = self.starting_at(base) {
            self.allocations[i].writable = false;
        }
    }

    /// Frees the allocation that starts at `base`; false if there is no live one.
    pub fn free(&mut self, base: u64) -> bool {
        match self.starting_at(base) {
            Some(i) if self.allocations[i].live => {
                self.allocations[i].live = false;
                self.allocations[i].data = Data::Own(Vec::new());
                self.allocations[i].written = None;
                self.shapes.retain(|shape| shape.base != base);
                true
            }
            _ => false,
        }
    }

    /// Forgets the allocation that starts at `base` as if it had never been (variables of a module, after a launch).
    pub(crate) fn remove(&mut self, base: u64) {
        if let Some(i) = self.starting_at(base) {
            self.allocations.remove(i);
            let guard = self.guard();
            self.next = self.allocations.last().map_or(FIRST_ADDRESS, |a| a.base + a.bytes + guard);
        }
    }

    /// The `bytes` bytes at `address`, which must lie within one live allocation.
    pub fn read(&self, address: u64, bytes: usize) -> Result<&[u8], AccessError> {
        match self.find(address, bytes as u64) {
            Some(i) => {
                let allocation = &self.allocations[i];
                let start = (address - allocation.base) as usize;
                Ok(&allocation.data[start..start + bytes])
            }
            None => Err(self.error(Access::Read, address, bytes)),
        }
    }

    /// Writes `data` at `address`, which must lie within one live allocation.
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), AccessError> {
        match self.find(address, data.len() as u64) {
            Some(i) => {
                let allocation = &mut self.allocations[i];
                let start = (address - allocation.base) as usize;
                allocation.data.to_mut()[start..start + data.len()].copy_from_slice(data);
                allocation.mark(start, data.len());
                Ok(())
            }
            None => Err(self.error(Access::Write, address, data.len())),
        }
    }

    /// The bytes at `address` for a write by a kernel, trying the allocation of the last access first.
    pub(crate) fn bytes(
        &mut self,
        hint: &mut usize,
        address: u64,
        bytes: usize,
        access: Access,
    ) -> Result<&mut [u8], AccessError> {
        let (i, start) = self.accessed(hint, address, bytes, access)?;
        Ok(&mut self.allocations[i].data.to_mut()[start..start + bytes])
    }

    /// The same for a read.
    pub(crate) fn view(&mut self, hint: &mut usize, address: u64, bytes: usize) -> Result<&[u8], AccessError> {
        let (i, start) = self.accessed(hint, address, bytes, Access::Read)?;
        Ok(&self.allocations[i].data[start..start + bytes])
    }

    /// The allocation that a kernel may access there, and where in it.
    pub(crate) fn accessed(
        &mut self,
        hint: &mut usize,
        address: u64,
        bytes: usize,
        access: Access,
    ) -> Result<(usize, usize), AccessError> {
        match self.find_from(*hint, address, bytes as u64) {
            Some(i) if self.allocations[i].writable || access == Access::Read => {
                *hint = i;
                let allocation = &mut self.allocations[i];
                let start = (address - allocation.base) as usize;
                if let Some(touched) = &mut allocation.touched {
                    touched.note(start, bytes, allocation.bytes as usize, access);
                }
                Ok((i, start))
            }
            _ => Err(self.error(access, address, bytes)),
        }
    }

    /// The allocation that holds `address`, also one that was freed, or else the nearest live one, for messages.
    pub fn near(&self, address: u64) -> Option<Near> {
        let distance = |a: &Allocation| {
            if address < a.base { -((a.base - address) as i128) } else { address as i128 - (a.base + a.bytes) as i128 }
        };
        // A freed range that holds the address explains more than a live neighbour does.
        let holds = |a: &&Allocation| address >= a.base && address < a.base + a.bytes.max(1);
        let found = self.allocations.iter().find(holds).or_else(|| {
            let near = self.allocations.iter().filter(|a| a.live && distance(a).unsigned_abs() < NEAR_BYTES);
            near.min_by_key(|a| distance(a).unsigned_abs())
        })?;
        Some(Near {
            name: found.name.clone(),
            base: found.base,
            bytes: found.bytes,
            freed: !found.live,
            read_only: !found.writable,
        })
    }

    fn error(&self, access: Access, address: u64, bytes: usize) -> AccessError {
        AccessError { access, address, bytes: bytes as u32, near: self.near(address) }
    }

    fn starting_at(&self, base: u64) -> Option<usize> {
        self.allocations.binary_search_by_key(&base, |a| a.base).ok()
    }

    fn find_from(&self, hint: usize, address: u64, bytes: u64) -> Option<usize> {
        if let Some(a) = self.allocations.get(hint)
            && a.live
            && address >= a.base
            && (address - a.base).saturating_add(bytes) <= a.bytes
        {
            return Some(hint);
        }
        self.find(address, bytes)
    }

    fn find(&self, address: u64, bytes: u64) -> Option<usize> {
        let i = self.allocations.partition_point(|a| a.base <= address).checked_sub(1)?;
        let a = &self.allocations[i];
        (a.live && (address - a.base).saturating_add(bytes) <= a.bytes).then_some(i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_the_nearest_allocation() {
        let mut memory = Memory::new();
        let x = memory.alloc(100, 16, "x");
        let y = memory.alloc(10, 1024, "y");
        assert_eq!(y % 1024, 0);
        assert!(memory.read(x + 96, 4).is_ok());
        let error = memory.read(x + 98, 4).unwrap_err();
        assert_eq!(error.near.unwrap().name, "x");
        assert!(memory.write(y - 1, &[0]).is_err());
        assert!(memory.free(x));
        assert!(!memory.free(x));
        let error = memory.read(x + 4, 4).unwrap_err();
        assert!(error.near.unwrap().freed);
    }

    #[test]
    fn an_access_must_not_wrap_around() {
        let mut memory = Memory::new();
        memory.alloc(8, 8, "x");
        assert!(memory.read(u64::MAX - 1, 4).is_err());
        assert!(memory.read(0, 1).is_err());
    }
}
