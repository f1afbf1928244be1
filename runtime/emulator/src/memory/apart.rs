//! Copy-on-write memories: several that start with the same content, each with its own writes; reads and writes are
//! merged afterwards.
//!
//! Blocks that run at the same time get one each. The merged result is that of running them one after the other, if
//! none of them read a byte that an earlier one wrote; that is checked when all have ended.

use std::ops::Deref;
use std::sync::Arc;

use super::Memory;
use crate::fault::Access;

/// The bytes of an allocation.
#[derive(Clone, Debug)]
pub enum Data {
    /// Its own.
    Own(Vec<u8>),
    /// Those of several memories, until one of them writes.
    Shared(Arc<Vec<u8>>),
}

impl Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Data::Own(bytes) => bytes,
            Data::Shared(bytes) => bytes,
        }
    }
}

impl Data {
    /// The bytes, to be written.
    pub fn to_mut(&mut self) -> &mut [u8] {
        if let Data::Shared(bytes) = self {
            *self = Data::Own(bytes.to_vec());
        }
        match self {
            Data::Own(bytes) => bytes,
            Data::Shared(_) => unreachable!("made its own just above"),
        }
    }

    fn share(&mut self) {
        if let Data::Own(bytes) = self {
            *self = Data::Shared(Arc::new(std::mem::take(bytes)));
        }
    }

    fn reclaim(&mut self) {
        if let Data::Shared(bytes) = self {
            let bytes = std::mem::take(bytes);
            *self = Data::Own(Arc::try_unwrap(bytes).unwrap_or_else(|bytes| bytes.to_vec()));
        }
    }
}

/// Which bytes of an allocation were read and written, one bit each; empty if none were.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    read: Vec<u64>,
    written: Vec<u64>,
}

impl Touched {
    /// Notes an access.
    pub fn note(&mut self, start: usize, bytes: usize, length: usize, access: Access) {
        if access != Access::Write {
            mark(&mut self.read, start, bytes, length);
        }
        if access != Access::Read {
            mark(&mut self.written, start, bytes, length);
        }
    }
}

fn mark(bits: &mut Vec<u64>, start: usize, bytes: usize, length: usize) {
    if bits.is_empty() {
        bits.resize(length.div_ceil(64), 0);
    }
    let (mut at, end) = (start, start + bytes);
    while at < end {
        let (word, bit) = (at / 64, at % 64);
        let count = (64 - bit).min(end - at);
        bits[word] |= (u64::MAX >> (64 - count)) << bit;
        at += count;
    }
}

impl Memory {
    /// So many memories with the content of this one.
    pub(crate) fn apart(&mut self, count: usize) -> Vec<Memory> {
        self.allocations.iter_mut().for_each(|allocation| allocation.data.share());
        let mut one = self.clone();
        one.allocations.iter_mut().for_each(|allocation| allocation.touched = Some(Box::default()));
        vec![one; count]
    }

    /// Merges the writes of memories made by [`Memory::apart`], in order; false, and no change, if one of them read a
    /// byte that an earlier one wrote.
    pub(crate) fn join(&mut self, parts: Option<Vec<Memory>>) -> bool {
        let parts = parts.filter(|parts| independent(parts));
        let joins = parts.is_some();
        let mut written: Vec<Vec<(Data, Vec<u64>)>> = Vec::new();
        for part in parts.into_iter().flatten() {
            let of = |allocation: super::Allocation| {
                let touched = allocation.touched.unwrap_or_default();
                // Drops pages that were only read.
                let data = if touched.written.is_empty() { Data::Own(Vec::new()) } else { allocation.data };
                (data, touched.written)
            };
            written.push(part.allocations.into_iter().map(of).collect());
        }
        self.allocations.iter_mut().for_each(|allocation| allocation.data.reclaim());
        for part in written {
            for (allocation, (data, bits)) in self.allocations.iter_mut().zip(part) {
                let to = allocation.data.to_mut();
                for (word, bits) in bits.iter().enumerate().filter(|(_, bits)| **bits != 0) {
                    let range = word * 64..(word * 64 + 64).min(data.len());
                    if *bits == u64::MAX {
                        to[range.clone()].copy_from_slice(&data[range]);
                        continue;
                    }
                    for at in range.filter(|at| bits >> (at % 64) & 1 == 1) {
                        to[at] = data[at];
                    }
                }
            }
        }
        joins
    }
}

/// Whether no memory was read where one before it was written.
fn independent(parts: &[Memory]) -> bool {
    let allocations = parts.first().map_or(0, |part| part.allocations.len());
    (0..allocations).all(|i| {
        let mut before: Vec<u64> = Vec::new();
        parts.iter().all(|part| {
            let Some(touched) = &part.allocations[i].touched else { return true };
            if before.iter().zip(&touched.read).any(|(written, read)| written & read != 0) {
                return false;
            }
            if before.is_empty() {
                before.clone_from(&touched.written);
            } else {
                before.iter_mut().zip(&touched.written).for_each(|(all, new)| *all |= new);
            }
            true
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_put_together_in_order() {
        let mut memory = Memory::new();
        let (x, y) = (memory.alloc(100, 16, "x"), memory.alloc(100, 16, "y"));
        memory.write(x, &[7; 100]).unwrap();
        let mut parts = memory.apart(2);
        for (i, part) in parts.iter_mut().enumerate() {
            let n = i as u8 + 1;
            assert_eq!(part.view(&mut 0, x + 3, 2).unwrap(), [7, 7]);
            part.bytes(&mut 0, y + 10 * u64::from(n), 15, Access::Write).unwrap().fill(n);
        }
        assert!(memory.join(Some(parts)));
        let bytes = memory.read(y, 40).unwrap();
        assert_eq!(bytes[..10], [0; 10]);
        assert_eq!(bytes[10..20], [1; 10]);
        assert_eq!(bytes[20..35], [2; 15]);
        assert_eq!(bytes[35..], [0; 5]);
    }

    #[test]
    fn a_read_of_what_another_wrote_forbids_it() {
        let mut memory = Memory::new();
        let x = memory.alloc(100, 16, "x");
        for (first, second) in [(0, 1), (1, 0)] {
            let mut parts = memory.apart(2);
            parts[first].bytes(&mut 0, x + 64, 4, Access::Write).unwrap().fill(9);
            assert_eq!(parts[second].view(&mut 0, x + 67, 1).unwrap(), [0]);
            // Only a later block can have read what an earlier one wrote.
            assert_eq!(memory.join(Some(parts)), first > second);
            memory.write(x, &[0; 100]).unwrap();
        }
    }
}
