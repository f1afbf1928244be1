//! Page-locked memory of the host, and the copies between it and a device.
#![allow(unsafe_code)]

use super::super::{BackendEvent, BackendStream, PinnedMemory};
use super::stream::Event;
use super::{Context, Stream, check};
use crate::Result;
use cudarc::driver::{result, sys};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory that the driver allocated and a device copies by itself.
#[derive(Debug)]
pub(super) struct Pinned {
    context: Arc<Context>,
    data: NonNull<u8>,
    bytes: usize,
    /// Copies that may still run.
    pending: Mutex<Vec<Event>>,
}

// SAFETY: the memory belongs to this value alone, and bytes may be sent and shared.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// So many bytes, all zero.
    pub(super) fn alloc(context: &Arc<Context>, bytes: usize) -> Result<Pinned> {
        context.bind()?;
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: freed in `Drop`.
        let data = check("cuMemHostAlloc", unsafe { result::malloc_host(bytes.max(1), flags) })?.cast::<u8>();
        // SAFETY: so many bytes were just allocated.
        unsafe { data.write_bytes(0, bytes) };
        let data = NonNull::new(data).unwrap_or(NonNull::dangling());
        Ok(Pinned { context: context.clone(), data, bytes, pending: Mutex::default() })
    }

    fn finish(&self) -> Result<()> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        for event in pending.iter() {
            event.synchronize()?;
        }
        pending.clear();
        Ok(())
    }

    fn note(&self, stream: &Stream) -> Result<()> {
        let event = Event::record(stream);
        let event = event.inspect_err(|_| {
            // A copy without an event for later waits is waited for now.
            let _ = stream.synchronize();
        })?;
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.retain(|event| !event.is_complete().unwrap_or(false));
        pending.push(event);
        Ok(())
    }

    /// Copies all of it to the device once the stream gets there; the caller checked that the range is as long.
    pub(super) fn upload(&self, stream: &Stream, to: u64) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the memory is freed, and lent for writing, only after `finish`.
        let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to, self.data.as_ptr().cast(), self.bytes, stream.raw) };
        check("cuMemcpyHtoDAsync", status.result())?;
        self.note(stream)
    }

    /// Fills all of it from the device once the stream gets there; the caller checked that the range is as long.
    pub(super) fn download(&self, stream: &Stream, from: u64) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the memory is freed, and lent, only after `finish`.
        let status = unsafe { sys::cuMemcpyDtoHAsync_v2(self.data.as_ptr().cast(), from, self.bytes, stream.raw) };
        check("cuMemcpyDtoHAsync", status.result())?;
        self.note(stream)
    }
}

impl PinnedMemory for Pinned {
    fn bytes(&self) -> Result<&[u8]> {
        self.finish()?;
        // SAFETY: so many bytes were allocated and filled, and none are written: a copy into them needs `&mut self`, and those
        // that were begun before are over.
        Ok(unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.bytes) })
    }

    fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        self.finish()?;
        // SAFETY: as above, and `&mut self` is the only reference.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.bytes) })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // If the wait fails, a copy may still run: then the memory is better lost than given away.
        if self.finish().is_ok() && self.context.bind().is_ok() {
            // SAFETY: allocated in `alloc`; no copy uses it any more.
            let _ = unsafe { result::free_host(self.data.as_ptr().cast::<c_void>()) };
        }
    }
}
