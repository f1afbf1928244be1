//! Global memory as the interpreter sees it, and a simple one of named allocations.

use std::fmt;

/// Memory that a kernel reads and writes by address.
pub trait GlobalMemory {
    /// Fills `bytes` from `address` on.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<ReadState, MemoryError>;
    /// Writes `bytes` from `address` on.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError>;
}

/// The state of memory that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    /// Initialized bytes.
    Defined,
    /// At least one uninitialized byte.
    Undefined,
}

/// Why memory refuses an access.
#[derive(Clone, Debug, PartialEq)]
pub enum MemoryError {
    /// It lies in no allocation; the nearest one, if there are any.
    OutOfBounds(Option<Nearest>),
    /// It may only be read.
    ReadOnly,
}

/// An allocation close to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Its name.
    pub name: String,
    /// Its first address.
    pub base: u64,
    /// Its size in bytes.
    pub size: u64,
}

impl Nearest {
    /// How `address` lies to the allocation, in words.
    pub(crate) fn relation(&self, address: u64) -> impl fmt::Display {
        let Nearest { name, base, size } = self;
        match address.checked_sub(*base) {
            Some(offset) if offset >= *size => {
                format!("{} bytes after the end of `{name}` ({size} bytes)", offset - size)
            }
            Some(offset) => format!("it starts {offset} bytes into `{name}` ({size} bytes) and reaches beyond its end"),
            None => format!("{} bytes before `{name}` ({size} bytes)", base - address),
        }
    }
}

/// Named allocations, each at a multiple of 256, with unmapped gaps between them.
/// ```
/// use rtc_ir::interp::{GlobalMemory, HostMemory};
/// let mut memory = HostMemory::new();
/// let x = memory.alloc("x", vec![1, 2, 3, 4]);
/// let mut byte = [0];
/// assert!(memory.read(x + 3, &mut byte).is_ok());
/// assert!(memory.read(x + 4, &mut byte).is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct HostMemory {
    /// Ascending by base.
    allocations: Vec<Allocation>,
}

#[derive(Clone, Debug)]
struct Allocation {
    name: String,
    base: u64,
    bytes: Vec<u8>,
    /// Which bytes were written; `None` if all are.
    written: Option<Vec<bool>>,
}

/// Address of the first allocation.
const FIRST: u64 = 0x7f00_0000_0000;
/// Least number of bytes between two allocations.
const GAP: u64 = 4096;
/// The content of uninitialized bytes.
const POISON: u8 = 0xcb;

impl HostMemory {
    /// No allocations.
    pub fn new() -> HostMemory {
        HostMemory::default()
    }

    /// An allocation with this content; gives its address.
    pub fn alloc(&mut self, name: impl Into<String>, bytes: Vec<u8>) -> u64 {
        self.add(name.into(), bytes, None)
    }

    /// An uninitialized allocation; reads of it are recorded.
    pub fn alloc_uninit(&mut self, name: impl Into<String>, size: usize) -> u64 {
        self.add(name.into(), vec![POISON; size], Some(vec![false; size]))
    }

    /// The content of the allocation at `base`.
    pub fn bytes(&self, base: u64) -> Option<&[u8]> {
        let index = self.allocations.binary_search_by_key(&base, |a| a.base).ok()?;
        Some(&self.allocations[index].bytes)
    }

    fn add(&mut self, name: String, bytes: Vec<u8>, written: Option<Vec<bool>>) -> u64 {
        let base = match self.allocations.last() {
            Some(last) => (last.base + last.bytes.len() as u64 + GAP).next_multiple_of(256),
            None => FIRST,
        };
        self.allocations.push(Allocation { name, base, bytes, written });
        base
    }

    /// The allocation that holds all of `address..address + size`, and the offset in it.
    fn find(&self, address: u64, size: usize) -> Result<(usize, usize), MemoryError> {
        let after = self.allocations.partition_point(|a| a.base <= address);
        if let Some(index) = after.checked_sub(1) {
            let allocation = &self.allocations[index];
            let offset = address - allocation.base;
            if offset.checked_add(size as u64).is_some_and(|end| end <= allocation.bytes.len() as u64) {
                return Ok((index, offset as usize));
            }
        }
        let distance = |a: &&Allocation| {
            let end = a.base + a.bytes.len() as u64;
            if address < a.base { a.base - address } else { address.saturating_sub(end) }
        };
        let around = after.saturating_sub(1)..(after + 1).min(self.allocations.len());
        let nearest = self.allocations[around].iter().min_by_key(distance);
        Err(MemoryError::OutOfBounds(nearest.map(|a| Nearest {
            name: a.name.clone(),
            base: a.base,
            size: a.bytes.len() as u64,
        })))
    }
}

impl GlobalMemory for HostMemory {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<ReadState, MemoryError> {
        let (index, offset) = self.find(address, bytes.len())?;
        let allocation = &self.allocations[index];
        let range = offset..offset + bytes.len();
        bytes.copy_from_slice(&allocation.bytes[range.clone()]);
        let undefined = allocation.written.as_ref().is_some_and(|w| w[range].contains(&false));
        Ok(if undefined { ReadState::Undefined } else { ReadState::Defined })
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let (index, offset) = self.find(address, bytes.len())?;
        let allocation = &mut self.allocations[index];
        let range = offset..offset + bytes.len();
        allocation.bytes[range.clone()].copy_from_slice(bytes);
        if let Some(written) = &mut allocation.written {
            written[range].fill(true);
        }
        Ok(())
    }
}
