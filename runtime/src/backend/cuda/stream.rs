//! Streams, events, asynchronous copies and graphs.
#![allow(unsafe_code)]

use super::super::{BackendEvent, BackendGraph, BackendStream, PinnedMemory, downcast};
use super::pinned::Pinned;
use super::scratch::Scratch;
use super::{Context, check};
use crate::{Error, Result};
use cudarc::driver::{CudaStream, result, sys};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An order of work on the device.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) context: Arc<Context>,
    pub(super) raw: sys::CUstream,
    /// Whether it was created here, so that it is destroyed here.
    owned: bool,
    /// The stream of cudarc whose handle it is.
    _theirs: Option<Arc<CudaStream>>,
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
        Stream { context: context.clone(), raw: std::ptr::null_mut(), owned: false, _theirs: None, scratch: None }
    }

    /// A stream of another library; the caller vouches for the handle.
    pub(super) fn adopt(context: &Arc<Context>, raw: u64) -> Stream {
        Stream {
            context: context.clone(),
            raw: std::ptr::with_exposed_provenance_mut(raw as usize),
            owned: false,
            _theirs: None,
            scratch: (raw != 0).then(Scratch::default),
        }
    }

    /// A stream of cudarc, kept as long as this one.
    pub(crate) fn of_cudarc(context: &Arc<Context>, theirs: Arc<CudaStream>) -> Stream {
        let raw = theirs.cu_stream();
        let scratch = (!raw.is_null()).then(Scratch::default);
        Stream { context: context.clone(), raw, owned: false, _theirs: Some(theirs), scratch }
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
        Ok(Stream { context: context.clone(), raw, owned: true, _theirs: None, scratch: Some(Scratch::default()) })
    }

    /// Whether what is put on the stream now is recorded, not run; also where the driver does not say.
    pub(super) fn is_capturing(&self) -> bool {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE;
        // SAFETY: the handle is live, and the place for the answer, too.
        let answer = unsafe { sys::cuStreamIsCapturing(self.raw, &mut status) };
        answer != sys::CUresult::CUDA_SUCCESS || status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    }

    /// Memory that lives on the stream until `free_async`.
    pub(super) fn alloc_async(&self, bytes: usize) -> Result<u64> {
        self.context.bind()?;
        // SAFETY: freed by `free_async` on the same stream.
        check("cuMemAllocAsync", unsafe { result::malloc_async(self.raw, bytes) })
    }

    /// Frees memory of `alloc_async` once the stream gets there.
    pub(super) fn free_async(&self, address: u64) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the address comes from `alloc_async` on this stream.
        check("cuMemFreeAsync", unsafe { result::free_async(address, self.raw) })
    }

    /// A stream whose work is recorded instead of run, until `end_capture`.
    pub(super) fn capturing(context: &Arc<Context>) -> Result<Stream> {
        context.bind()?;
        // One that the default stream does not wait for: otherwise copies of other threads would end the recording.
        let kind = result::stream::StreamKind::NonBlocking;
        let raw = check("cuStreamCreate", result::stream::create(kind))?;
        let stream = Stream { context: context.clone(), raw, owned: true, _theirs: None, scratch: None };
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
        self.drop_scratch();
        if self.owned && self.context.bind().is_ok() {
            // SAFETY: created in `create`; the driver finishes pending work first.
            let _ = unsafe { result::stream::destroy(self.raw) };
        }
    }
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
        stream.context.bind()?;
        let raw = check("cuEventCreate", result::event::create(sys::CUevent_flags_enum::CU_EVENT_DEFAULT))?;
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
