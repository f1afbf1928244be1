//! Page-locked memory of the host, and the copies between it and a device.
#![allow(unsafe_code)]

use super::{Context, Event, Stream, check};
use crate::{AnyBits, Result};
use cudarc::driver::{result, sys};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory that the driver allocated and a device copies by itself.
#[derive(Debug)]
pub(crate) struct Pinned<T: AnyBits> {
    context: Arc<Context>,
    data: NonNull<T>,
    len: usize,
    /// Copies that may still run.
    pending: Mutex<Vec<Event>>,
    elements: PhantomData<T>,
}

// SAFETY: the memory belongs to this value alone, and elements may be sent and shared.
unsafe impl<T: AnyBits> Send for Pinned<T> {}
// SAFETY: as above.
unsafe impl<T: AnyBits> Sync for Pinned<T> {}

impl<T: AnyBits> Pinned<T> {
    /// `len` elements that are all zero.
    pub(crate) fn alloc(context: &Arc<Context>, len: usize) -> Result<Pinned<T>> {
        context.bind()?;
        let bytes = len.saturating_mul(size_of::<T>()).max(1);
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: freed in `Drop`.
        let data = check("cuMemHostAlloc", unsafe { result::malloc_host(bytes, flags) })?;
        // SAFETY: so many bytes were just allocated.
        unsafe { data.cast::<u8>().write_bytes(0, bytes) };
        let data = NonNull::new(data.cast::<T>()).unwrap_or(NonNull::dangling());
        Ok(Pinned { context: context.clone(), data, len, pending: Mutex::default(), elements: PhantomData })
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
            // A copy that nobody could wait for later is waited for now.
            let _ = stream.synchronize();
        })?;
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.retain(|event| !event.is_reached().unwrap_or(false));
        pending.push(event);
        Ok(())
    }

    /// The elements, once no copy writes them any more.
    pub(crate) fn as_slice(&self) -> Result<&[T]> {
        self.finish()?;
        // SAFETY: so many elements were allocated and filled, any bits are a value, and nobody writes them: a copy into
        // them needs `&mut self`, and those that were begun before are over.
        Ok(unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) })
    }

    /// The elements, once no copy reads or writes them any more.
    pub(crate) fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        self.finish()?;
        // SAFETY: as above, and nobody else has them.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) })
    }

    /// Copies all of it to the device once the stream gets there; the caller checked that the range is as long.
    pub(crate) fn upload(&self, stream: &Stream, to: u64) -> Result<()> {
        self.context.bind()?;
        let bytes = self.len * size_of::<T>();
        // SAFETY: the memory is freed, and lent for writing, only after `finish`.
        let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to, self.data.as_ptr().cast(), bytes, stream.raw) };
        check("cuMemcpyHtoDAsync", status.result())?;
        self.note(stream)
    }

    /// Fills all of it from the device once the stream gets there; the caller checked that the range is as long.
    pub(crate) fn download(&mut self, stream: &Stream, from: u64) -> Result<()> {
        self.context.bind()?;
        let bytes = self.len * size_of::<T>();
        // SAFETY: the memory is freed, and lent, only after `finish`.
        let status = unsafe { sys::cuMemcpyDtoHAsync_v2(self.data.as_ptr().cast(), from, bytes, stream.raw) };
        check("cuMemcpyDtoHAsync", status.result())?;
        self.note(stream)
    }
}

impl<T: AnyBits> Drop for Pinned<T> {
    fn drop(&mut self) {
        // If the wait fails, a copy may still run: then the memory is better lost than given away.
        if self.finish().is_ok() && self.context.bind().is_ok() {
            // SAFETY: allocated in `alloc`; no copy uses it any more.
            let _ = unsafe { result::free_host(self.data.as_ptr().cast::<c_void>()) };
        }
    }
}
