//! Copy-on-write memory: a launch writes to it without changing the underlying memory.

use std::collections::HashMap;

use super::{GlobalMemory, MemoryError, ReadState};

/// Bytes of a page.
const PAGE: usize = 64;

/// The writes of a launch, by page number: bytes, and which of them.
pub(super) type Pages = HashMap<u64, Page>;

/// A page of written bytes.
#[derive(Clone)]
pub(super) struct Page {
    bytes: [u8; PAGE],
    written: u64,
}

/// The underlying memory with the writes applied.
pub(super) struct Overlay<'m> {
    pub(super) under: &'m mut dyn GlobalMemory,
    pub(super) pages: Pages,
}

impl GlobalMemory for Overlay<'_> {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<ReadState, MemoryError> {
        let under = self.under.read(address, bytes)?;
        let mut all = true;
        for (at, byte) in (address..).zip(bytes) {
            match written(&self.pages, at) {
                Some(own) => *byte = own,
                None => all = false,
            }
        }
        Ok(if all { ReadState::Defined } else { under })
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        // Nothing is written below; a read says whether there is memory.
        self.under.read(address, &mut vec![0; bytes.len()])?;
        for (at, byte) in (address..).zip(bytes) {
            let page = self.pages.entry(at / PAGE as u64).or_insert(Page { bytes: [0; PAGE], written: 0 });
            page.bytes[at as usize % PAGE] = *byte;
            page.written |= 1 << (at as usize % PAGE);
        }
        Ok(())
    }
}

fn written(pages: &Pages, at: u64) -> Option<u8> {
    let page = pages.get(&(at / PAGE as u64))?;
    (page.written >> (at as usize % PAGE) & 1 == 1).then(|| page.bytes[at as usize % PAGE])
}

/// The first byte in which two launches on the same memory differ.
pub(super) fn difference(under: &mut dyn GlobalMemory, a: &Pages, b: &Pages) -> Option<u64> {
    let mut numbers: Vec<u64> = a.keys().chain(b.keys()).copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut below = |at| {
        let mut byte = [0];
        under.read(at, &mut byte).map_or(0, |_| byte[0])
    };
    let places = numbers.into_iter().flat_map(|page| (page * PAGE as u64..).take(PAGE));
    places.into_iter().find(|at| match (written(a, *at), written(b, *at)) {
        (None, None) => false,
        (a, b) => a.unwrap_or_else(|| below(*at)) != b.unwrap_or_else(|| below(*at)),
    })
}
