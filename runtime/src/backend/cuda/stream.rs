//! Streams, events, asynchronous copies and graphs.
#![allow(unsafe_code)]

use super::super::{Backend, BackendEvent, BackendGraph, BackendStream, PinnedMemory, downcast};
use super::pinned::Pinned;
use super::scratch::Scratch;
use super::{Context, check, without_memory};
use crate::{Error, Result};
use cudarc::driver::{result, sys};
use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An order of work on the device.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) context: Arc<Context>,
    pub(super) raw: sys::CUstream,
    /// Whether it was created here, so that it is destroyed here.
    owned: bool,
    /// Whether it counts among the streams of the context, which events put in order.
    counted: bool,
    /// What the handle belongs to, where that is another library.
    owner: Option<Arc<dyn Any + Send + Sync>>,
    /// Of the default stream, of which there are several values, the context has it.
    pub(super) scratch: Option<Scratch>,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// The default stream, which waits for all others.
    pub(super) fn default_of(context: &Arc<Context>) -> Stream {
        Stream {
            context: context.clone(),
            raw: std::ptr::null_mut(),
            owned: false,
            counted: false,
            owner: None,
            scratch: None,
        }
    }

    /// A stream of another library; the caller guarantees the handle.
    pub(super) fn adopt(context: &Arc<Context>, raw: u64) -> Stream {
        Stream {
            context: context.clone(),
            raw: std::ptr::with_exposed_provenance_mut(raw as usize),
            owned: false,
            counted: false,
            owner: None,
            scratch: (raw != 0).then(Scratch::default),
        }
    }

    /// A stream of cudarc, kept as long as this one.
    #[cfg(feature = "cudarc")]
    pub(crate) fn of_cudarc(context: &Arc<Context>, theirs: Arc<cudarc::driver::CudaStream>) -> Stream {
        let raw = theirs.cu_stream();
        let scratch = (!raw.is_null()).then(Scratch::default);
        Stream { context: context.clone(), raw, owned: false, counted: false, owner: Some(theirs), scratch }
    }

    /// A stream of its own; it still waits for copies on the default stream. Of the priorities, 0 is the least and others are
    /// above it, as far as the device has them.
    pub(super) fn create(context: &Arc<Context>, above_least: i32) -> Result<Stream> {
        context.bind()?;
        let (least, greatest) = check("cuCtxGetStreamPriorityRange", result::stream::get_priority_range())?;
        // Smaller numbers come first.
        let priority = least.saturating_sub(above_least).max(greatest);
        let kind = result::stream::StreamKind::Default;
        let raw = check("cuStreamCreateWithPriority", result::stream::create_with_priority(kind, priority))?;
        let (context, scratch) = (context.clone(), Some(Scratch::default()));
        let stream = Stream { context, raw, owned: true, counted: true, owner: None, scratch };
        if stream.context.streams.fetch_add(1, Ordering::Relaxed) == 1 {
            // No events were recorded for the work of the first. The default stream waits for it, and this one for that.
            let work = Event::with_flags(
                &Stream::default_of(&stream.context),
                sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING,
            )?;
            stream.wait(&work)?;
        }
        Ok(stream)
    }

    /// Whether what is put on the stream now is recorded, not run; also where the driver does not say.
    pub(super) fn is_capturing(&self) -> bool {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE;
        // SAFETY: the handle is live, and the place for the answer, too.
        let answer = unsafe { sys::cuStreamIsCapturing(self.raw, &mut status) };
        answer != sys::CUresult::CUDA_SUCCESS || status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    }

    /// Memory that lives on the stream until `free_async`; of a device without a pool, on all streams.
    pub(super) fn alloc_async(&self, bytes: usize) -> Result<u64> {
        if !self.context.has_pool {
            return self.context.alloc(bytes, "");
        }
        self.context.bind()?;
        // SAFETY: freed by `free_async`.
        let address = check("cuMemAllocAsync", unsafe { result::malloc_async(self.raw, bytes.max(1)) });
        address.map_err(|error| without_memory(error, bytes))
    }

    /// Frees memory of `alloc_async` once the stream gets there; of a device without a pool, after all work.
    pub(super) fn free_async(&self, address: u64) -> Result<()> {
        self.context.bind()?;
        if !self.context.has_pool {
            // SAFETY: the address comes from `alloc`.
            return check("cuMemFree", unsafe { result::free_sync(address) });
        }
        // SAFETY: the address comes from `alloc_async`, and this stream has waited for the work of others on it.
        check("cuMemFreeAsync", unsafe { result::free_async(address, self.raw) })
    }

    /// A stream whose work is recorded instead of run, until `end_capture`.
    pub(super) fn capturing(context: &Arc<Context>) -> Result<Stream> {
        context.bind()?;
        // One that the default stream does not wait for: otherwise copies of other threads would end the recording.
        let kind = result::stream::StreamKind::NonBlocking;
        let raw = check("cuStreamCreate", result::stream::create(kind))?;
        let stream = Stream { context: context.clone(), raw, owned: true, counted: false, owner: None, scratch: None };
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is live and not the default one.
        check("cuStreamBeginCapture", unsafe { result::stream::begin_capture(stream.raw, mode) })?;
        Ok(stream)
    }
}

impl BackendStream for Stream {
    fn raw(&self) -> Option<u64> {
        Some(self.raw.expose_provenance() as u64)
    }

    fn synchronize(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the handle is live, or null for the default stream.
        check("cuStreamSynchronize", unsafe { result::stream::synchronize(self.raw) })
    }

    fn mark(&self) -> Result<Box<dyn BackendEvent>> {
        Ok(Box::new(Event::with_flags(self, sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING)?))
    }

    fn alloc(&self, bytes: usize) -> Result<Option<u64>> {
        if self.context.has_pool && self.keeps_handle() { self.alloc_async(bytes).map(Some) } else { Ok(None) }
    }

    fn free(&self, address: u64) {
        // An error here was caused by earlier work and is reported by the next call that can report it.
        let _ = self.free_async(address);
    }

    fn is_foreign(&self) -> bool {
        !self.owned && !self.raw.is_null()
    }

    fn keeps_handle(&self) -> bool {
        !self.is_foreign() || self.owner.is_some()
    }

    fn is_counted(&self) -> bool {
        self.counted
    }

    fn needs_events(&self) -> bool {
        self.context.streams.load(Ordering::Relaxed) > 1
    }

    fn wait(&self, event: &dyn BackendEvent) -> Result<()> {
        let event = downcast::<Event>(event)?;
        self.context.bind()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both handles are live.
        check("cuStreamWaitEvent", unsafe { result::stream::wait_event(self.raw, event.raw, flags) })
    }

    fn record(&self) -> Result<Box<dyn BackendEvent>> {
        Ok(Box::new(Event::record(self)?))
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.context.bind()?;
        // SAFETY: both ranges lie within memory of the device, which is freed only after its work.
        check("cuMemcpyDtoDAsync", unsafe { result::memcpy_dtod_async(to, from, bytes, self.raw) })
    }

    fn zero(&self, address: u64, bytes: usize) -> Result<()> {
        self.context.bind()?;
        // SAFETY: as above.
        check("cuMemsetD8Async", unsafe { result::memset_d8_async(address, 0, bytes, self.raw) })
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<()> {
        self.context.bind()?;
        let is_page_locked = is_known_to_driver(data);
        // SAFETY: the caller checked the range of the device. Pageable memory is read before the call returns, other memory
        // before the wait does.
        check("cuMemcpyHtoDAsync", unsafe { result::memcpy_htod_async(address, data, self.raw) })?;
        if is_page_locked { self.synchronize() } else { Ok(()) }
    }

    fn read(&self, address: u64, data: &mut [u8]) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the caller checked the range of the device, and the copy ends before the call does.
        let copied = check("cuMemcpyDtoHAsync", unsafe { result::memcpy_dtoh_async(data, address, self.raw) });
        copied.and(self.synchronize())
    }

    fn upload(&self, from: &dyn PinnedMemory, to: u64) -> Result<()> {
        downcast::<Pinned>(from)?.upload(self, to)
    }

    fn download(&self, from: u64, to: &mut dyn PinnedMemory) -> Result<()> {
        downcast::<Pinned>(to)?.download(self, from)
    }

    fn end_capture(&self) -> Result<Box<dyn BackendGraph>> {
        self.context.bind()?;
        // SAFETY: `begin_capture` was called on this stream.
        let graph = check("cuStreamEndCapture", unsafe { result::stream::end_capture(self.raw) })?;
        if graph.is_null() {
            return Err(Error::Recording { what: "work that ended the recording" });
        }
        // SAFETY: the graph is live; the flags have the value for none.
        let instance = check("cuGraphInstantiate", unsafe {
            let mut instance = std::ptr::null_mut();
            sys::cuGraphInstantiateWithFlags(&mut instance, graph, 0).result().map(|()| instance)
        });
        // SAFETY: the instance does not need the graph that it was made of.
        let _ = unsafe { result::graph::destroy(graph) };
        Ok(Box::new(Graph { context: self.context.clone(), raw: Mutex::new(Executable(instance?)) }))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.counted && self.context.streams.fetch_sub(1, Ordering::Relaxed) == 2 {
            // The stream that is left waits for no events from now on, so it waits for this work here.
            let _ = self.mark().and_then(|work| Stream::default_of(&self.context).wait(&*work));
        }
        self.drop_scratch();
        if self.owned && self.context.bind().is_ok() {
            // SAFETY: created in `create`; the driver finishes pending work first.
            let _ = unsafe { result::stream::destroy(self.raw) };
        }
    }
}

/// Whether the driver has the memory of the host page-locked, so that it copies from it after the call returns.
fn is_known_to_driver(data: &[u8]) -> bool {
    let mut kind: std::ffi::c_uint = 0;
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    let address = data.as_ptr().addr() as u64;
    // SAFETY: the attribute is an `unsigned`, which the driver writes; it only looks the address up.
    let status = unsafe { sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, address) };
    status == sys::CUresult::CUDA_SUCCESS
}

/// Recorded work, ready to run again.
#[derive(Debug)]
struct Graph {
    context: Arc<Context>,
    /// The driver does not synchronize accesses to a graph: one thread at a time launches it.
    raw: Mutex<Executable>,
}

#[derive(Debug)]
struct Executable(sys::CUgraphExec);

// SAFETY: the driver binds no handle to a thread; every use makes the context current first.
unsafe impl Send for Executable {}

impl BackendGraph for Graph {
    fn launch(&self, stream: &dyn BackendStream) -> Result<()> {
        let stream = downcast::<Stream>(stream)?;
        self.context.bind()?;
        let raw = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both handles are live, and no other thread uses that of the graph; what the work uses is kept by the owner
        // of this.
        check("cuGraphLaunch", unsafe { result::graph::launch(raw.0, stream.raw) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let raw = self.raw.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Waiting for the whole device would break recordings of other threads, and is not needed.
        if self.context.bind().is_ok() {
            // SAFETY: instantiated in `end_capture`; a graph that still runs is destroyed by the driver when it has ended, and
            // the memory that it uses is freed after it, which waits for the work of the device.
            let _ = unsafe { result::graph::exec_destroy(raw.0) };
        }
    }
}

/// A point on a stream, with its time.
#[derive(Debug)]
pub(super) struct Event {
    context: Arc<Context>,
    raw: sys::CUevent,
}

// SAFETY: event handles may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Marks the present end of the stream.
    pub(super) fn record(stream: &Stream) -> Result<Event> {
        Event::with_flags(stream, sys::CUevent_flags_enum::CU_EVENT_DEFAULT)
    }

    fn with_flags(stream: &Stream, flags: sys::CUevent_flags_enum) -> Result<Event> {
        stream.context.bind()?;
        let raw = check("cuEventCreate", result::event::create(flags))?;
        let event = Event { context: stream.context.clone(), raw };
        // SAFETY: event and stream are live handles of one context.
        check("cuEventRecord", unsafe { result::event::record(event.raw, stream.raw) })?;
        Ok(event)
    }
}

impl BackendEvent for Event {
    fn synchronize(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the event is live and recorded.
        check("cuEventSynchronize", unsafe { result::event::synchronize(self.raw) })
    }

    fn is_complete(&self) -> Result<bool> {
        self.context.bind()?;
        // SAFETY: the event is live and recorded.
        match unsafe { sys::cuEventQuery(self.raw) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => check("cuEventQuery", status.result()).map(|()| true),
        }
    }

    fn elapsed_since(&self, start: &dyn BackendEvent) -> Result<Duration> {
        let start = downcast::<Event>(start)?;
        self.synchronize()?;
        // SAFETY: both events are live and recorded.
        let milliseconds = check("cuEventElapsedTime", unsafe { result::event::elapsed(start.raw, self.raw) })?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) * 1e-3))
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
