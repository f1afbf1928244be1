//! Scratch memory of launches, kept for each stream.
//!
//! The launches of a stream run one after the other, so all may use the same memory. It grows with the largest of them, in the
//! order of the stream, and goes with the stream; that of the default stream goes with the context. What may overlap with the work before it
//! on its stream, or runs later as part of a graph, does not get this memory.
#![allow(unsafe_code)]

use super::{Context, Stream};
use crate::Result;
use cudarc::driver::result;
use std::sync::{Mutex, PoisonError};

/// Sizes are multiples of this.
const STEP: usize = 1 << 16;

/// The memory of one stream; none before the first launch that needs some.
#[derive(Debug, Default)]
pub(super) struct Scratch(Mutex<Held>);

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    address: u64,
    bytes: usize,
}

impl Stream {
    /// Gives `launch` the address of so many bytes, which it may use on this stream until it returns and in work that it gave to
    /// the stream.
    pub(super) fn with_scratch<R>(&self, bytes: usize, launch: impl FnOnce(u64) -> Result<R>) -> Result<R> {
        let scratch = self.scratch.as_ref().unwrap_or(&self.context.scratch);
        // Held until the launch is given: another thread could have the memory grow, which ends the life of the old one.
        let mut held = scratch.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.bytes < bytes {
            let old = std::mem::take(&mut *held);
            if old.bytes > 0 {
                self.free_async(old.address)?;
            }
            let bytes = bytes.next_multiple_of(STEP);
            *held = Held { address: self.alloc_async(bytes)?, bytes };
        }
        launch(held.address)
    }

    /// Gives the memory back once the stream gets there.
    pub(super) fn drop_scratch(&mut self) {
        if let Some(held) = self.scratch.as_mut().and_then(Scratch::take) {
            // An error here was caused by earlier work and is reported by the next call that can report it.
            let _ = self.free_async(held.address);
        }
    }
}

impl Context {
    /// Gives the memory of the default stream back, after its work.
    pub(super) fn drop_scratch(&mut self) {
        if let Some(held) = self.scratch.take()
            && self.bind().is_ok()
        {
            // SAFETY: the address comes from `alloc_async` on the default stream, and no launch is possible any more. Where there
            // is a pool, `cuMemFree` would not wait for those that were given.
            let _ = match self.has_pool {
                true => unsafe { result::free_async(held.address, std::ptr::null_mut()) },
                false => unsafe { result::free_sync(held.address) },
            };
        }
    }
}

impl Scratch {
    fn take(&mut self) -> Option<Held> {
        let held = std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
        (held.bytes > 0).then_some(held)
    }
}
