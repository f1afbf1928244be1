//! Graphs: work that is recorded once and launched many times.

use crate::backend::{Backend, BackendGraph};
use crate::recording::Recording;
use crate::{Device, Error, Result, Stream};
use std::sync::Arc;

/// Recorded work: launches, copies and fills of one stream with their arguments, to be run as a whole. On a GPU that costs
/// the host one call, however many launches there are.
///
/// The graph keeps the buffers and kernels that were recorded; memory that was given as an address is kept by the caller, who
/// guarantees it, for as long as the graph is launched.
///
/// ```
/// use rtc_runtime::Device;
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let x = device.upload(&[3.0f32; 64])?;
/// let mut y = device.zeros::<f32>(64)?;
/// let graph: rtc_runtime::Graph = stream.capture(|s| s.copy(&x, &mut y))?;
/// assert_eq!(y.to_vec()?, [0.0; 64]); // nothing has run yet
/// assert!(graph.device().is_same(&device));
/// graph.launch(&stream)?;
/// assert_eq!(y.to_vec()?, [3.0; 64]);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct Graph {
    backend: Arc<dyn Backend>,
    id: usize,
    raw: Box<dyn BackendGraph>,
    /// Dropped after the work.
    recording: Recording,
}

impl Stream {
    /// Records what `work` gives to the stream that it gets, without running it.
    ///
    /// The arguments are checked and recorded now; a launch of the graph takes the contents of the buffers as they are then.
    ///
    /// # Errors
    ///
    /// Errors of `work`, which include [`Error::Recording`] for what cannot be recorded; [`Error::Cuda`] if the driver makes
    /// no graph of it.
    pub fn capture(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        let stream = self.recorder()?;
        let given = work(&stream);
        // The recording ends whether the work could be given or not.
        let recorded = stream.recorded();
        given?;
        let (raw, recording) = recorded?;
        Ok(Graph { backend: self.backend().clone(), id: self.id(), raw, recording })
    }
}

impl Graph {
    /// Runs all of it, in the order of the stream.
    ///
    /// # Errors
    ///
    /// [`Error::Elsewhere`] for a stream of another device, [`Error::Recording`] for a stream that is recorded,
    /// [`Error::Cuda`] if the driver fails. On the CPU the errors of the recorded launches, too.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        if stream.id() != self.id {
            let (memory, stream) = (self.backend.name(), stream.backend().name());
            return Err(Error::Elsewhere { memory, stream });
        }
        if stream.note(|_| {}) {
            return Err(Error::Recording { what: "a graph" });
        }
        let uses = self.recording.uses.iter().map(|(uses, writes)| (uses, *writes));
        stream.in_order(uses, || self.raw.launch(stream.raw_stream()))
    }

    /// The device that it was recorded for.
    pub fn device(&self) -> Device {
        Device::of(self.backend.clone())
    }
}
