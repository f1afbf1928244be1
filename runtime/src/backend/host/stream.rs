//! Streams, events, graphs and page-locked memory of devices on the CPU.

use super::super::{BackendEvent, BackendGraph, BackendStream, PinnedMemory, downcast, foreign};
use super::HostMemory;
use crate::Result;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

/// A piece of recorded work.
type Work = Box<dyn Fn(&HostMemory) -> Result<()> + Send + Sync>;

/// A stream: work runs when it is given, or is kept where it is recorded.
pub(crate) struct HostStream {
    memory: Arc<HostMemory>,
    recording: Option<Mutex<Vec<Work>>>,
}

impl fmt::Debug for HostStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostStream").field("is_recorded", &self.recording.is_some()).finish_non_exhaustive()
    }
}

impl HostStream {
    pub(super) fn new(memory: &Arc<HostMemory>) -> HostStream {
        HostStream { memory: memory.clone(), recording: None }
    }

    pub(super) fn capturing(memory: &Arc<HostMemory>) -> HostStream {
        HostStream { recording: Some(Mutex::default()), ..HostStream::new(memory) }
    }

    pub(crate) fn memory(&self) -> &HostMemory {
        &self.memory
    }

    /// Does the work, or keeps it for the graph.
    pub(super) fn submit(&self, work: impl Fn(&HostMemory) -> Result<()> + Send + Sync + 'static) -> Result<()> {
        match &self.recording {
            Some(recording) => {
                recording.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(work));
                Ok(())
            }
            None => work(&self.memory),
        }
    }
}

impl BackendStream for HostStream {
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn record(&self) -> Result<Box<dyn BackendEvent>> {
        Ok(Box::new(HostEvent(Instant::now())))
    }

    fn wait(&self, event: &dyn BackendEvent) -> Result<()> {
        // Work on the CPU is over when the call that gives it returns.
        downcast::<HostEvent>(event).map(|_| ())
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.submit(move |memory| memory.copy(to, from, bytes))
    }

    fn zero(&self, address: u64, bytes: usize) -> Result<()> {
        self.submit(move |memory| memory.write(address, &vec![0; bytes]))
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<()> {
        self.memory.write(address, data)
    }

    fn read(&self, address: u64, data: &mut [u8]) -> Result<()> {
        self.memory.read(address, data)
    }

    fn upload(&self, from: &dyn PinnedMemory, to: u64) -> Result<()> {
        self.memory.write(to, from.bytes()?)
    }

    fn download(&self, from: u64, to: &mut dyn PinnedMemory) -> Result<()> {
        self.memory.read(from, to.bytes_mut()?)
    }

    fn end_capture(&self) -> Result<Box<dyn BackendGraph>> {
        let Some(recording) = &self.recording else { return Err(foreign()) };
        let work = std::mem::take(&mut *recording.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Box::new(HostGraph { memory: self.memory.clone(), work }))
    }
}

/// The time when a stream was marked.
#[derive(Debug)]
struct HostEvent(Instant);

impl BackendEvent for HostEvent {
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn is_complete(&self) -> Result<bool> {
        Ok(true)
    }

    fn elapsed_since(&self, start: &dyn BackendEvent) -> Result<Duration> {
        Ok(self.0.duration_since(downcast::<HostEvent>(start)?.0))
    }
}

/// Recorded work, in its order.
struct HostGraph {
    memory: Arc<HostMemory>,
    work: Vec<Work>,
}

impl fmt::Debug for HostGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostGraph").field("nodes", &self.work.len()).finish_non_exhaustive()
    }
}

impl BackendGraph for HostGraph {
    fn launch(&self, _stream: &dyn BackendStream) -> Result<()> {
        self.work.iter().try_for_each(|work| work(&self.memory))
    }
}

/// Memory of the host like any other: copies are over when they return.
#[derive(Debug)]
pub(super) struct HostPinned {
    /// Words, because they are aligned for every element type.
    words: Vec<u64>,
    bytes: usize,
}

impl HostPinned {
    pub(super) fn new(bytes: usize) -> HostPinned {
        HostPinned { words: vec![0; bytes.div_ceil(8)], bytes }
    }
}

impl PinnedMemory for HostPinned {
    fn bytes(&self) -> Result<&[u8]> {
        Ok(&self.words.as_bytes()[..self.bytes])
    }

    fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        Ok(&mut self.words.as_mut_bytes()[..self.bytes])
    }
}
