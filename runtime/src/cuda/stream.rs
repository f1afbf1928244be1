//! Streams and events.
#![allow(unsafe_code)]

use super::{Context, check};
use crate::Result;
use cudarc::driver::{result, sys};
use std::sync::Arc;

/// An order of work on the device.
#[derive(Debug)]
pub(crate) struct Stream {
    context: Arc<Context>,
    pub(super) raw: sys::CUstream,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// The default stream, which waits for all others.
    pub(crate) fn default_of(context: &Arc<Context>) -> Stream {
        Stream { context: context.clone(), raw: std::ptr::null_mut() }
    }

    /// A stream of its own; it still waits for copies on the default stream.
    pub(crate) fn create(context: &Arc<Context>) -> Result<Stream> {
        context.bind()?;
        let raw = check("cuStreamCreate", result::stream::create(result::stream::StreamKind::Default))?;
        Ok(Stream { context: context.clone(), raw })
    }

    /// Waits for all work on the stream; reports what went wrong in it.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the handle is live, or null for the default stream.
        check("cuStreamSynchronize", unsafe { result::stream::synchronize(self.raw) })
    }

    /// Memory that lives on the stream until `free_async`.
    pub(crate) fn alloc_async(&self, bytes: usize) -> Result<u64> {
        self.context.bind()?;
        // SAFETY: freed by `free_async` on the same stream.
        check("cuMemAllocAsync", unsafe { result::malloc_async(self.raw, bytes) })
    }

    /// Frees memory of `alloc_async` once the stream gets there.
    pub(crate) fn free_async(&self, address: u64) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the address comes from `alloc_async` on this stream.
        check("cuMemFreeAsync", unsafe { result::free_async(address, self.raw) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.raw.is_null() && self.context.bind().is_ok() {
            // SAFETY: created in `create`; the driver finishes pending work first.
            let _ = unsafe { result::stream::destroy(self.raw) };
        }
    }
}

/// A point on a stream, with its time.
#[derive(Debug)]
pub(crate) struct Event {
    context: Arc<Context>,
    raw: sys::CUevent,
}

// SAFETY: event handles may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Marks the present end of the stream.
    pub(crate) fn record(stream: &Stream) -> Result<Event> {
        stream.context.bind()?;
        let raw = check("cuEventCreate", result::event::create(sys::CUevent_flags_enum::CU_EVENT_DEFAULT))?;
        let event = Event { context: stream.context.clone(), raw };
        // SAFETY: event and stream are live handles of one context.
        check("cuEventRecord", unsafe { result::event::record(event.raw, stream.raw) })?;
        Ok(event)
    }

    /// Milliseconds from `start` to this event; waits until it is reached.
    pub(crate) fn milliseconds_since(&self, start: &Event) -> Result<f32> {
        self.context.bind()?;
        // SAFETY: both events are live and recorded.
        unsafe {
            check("cuEventSynchronize", result::event::synchronize(self.raw))?;
            check("cuEventElapsedTime", result::event::elapsed(start.raw, self.raw))
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: created in `record`.
            let _ = unsafe { result::event::destroy(self.raw) };
        }
    }
}
