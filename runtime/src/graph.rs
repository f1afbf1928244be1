//! Graphs: work that is recorded once and launched many times.

use crate::buffer::Allocation;
use crate::kernel::Loaded;
use crate::slice::Place;
use crate::{Device, Error, Result, Stream, cuda};
use std::sync::Arc;

/// Recorded work: launches, copies and fills of one stream with their arguments, to be run as a whole. On a GPU that costs
/// the host one call, however many launches there are.
///
/// The graph keeps the buffers and kernels that were recorded; memory that was given as an address is kept by whoever
/// vouches for it, for as long as the graph is launched.
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
    device: Device,
    raw: Option<cuda::Graph>,
    recording: Recording,
}

/// What was given to a stream that is recorded.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    memory: Vec<Arc<Allocation>>,
    pub(crate) kernels: Vec<Arc<Loaded>>,
    /// What a device on the CPU does.
    pub(crate) nodes: Vec<Node>,
}

impl Recording {
    /// Keeps the memory for as long as the graph lives.
    pub(crate) fn keep(&mut self, places: &[Place<'_>]) {
        self.memory.extend(places.iter().filter_map(|place| Some(place.owner?.allocation())));
    }
}

/// A piece of work on the CPU.
#[derive(Debug)]
pub(crate) enum Node {
    Launch { kernel: Arc<Loaded>, grid: [u32; 3], params: Vec<u8>, scratch: Option<(usize, usize)> },
    Copy { to: u64, from: u64, bytes: usize },
    Zero { at: u64, bytes: usize },
}

impl Node {
    pub(crate) fn run(&self, device: &Device) -> Result<()> {
        match self {
            Node::Launch { kernel, grid, params, scratch } => kernel.run_on_host(*grid, &mut params.clone(), *scratch),
            Node::Copy { to, from, bytes } => {
                let mut data = vec![0; *bytes];
                if *bytes > 0 {
                    device.read_bytes(*from, &mut data)?;
                    device.write_bytes(*to, &data)?;
                }
                Ok(())
            }
            Node::Zero { at, bytes } if *bytes > 0 => device.write_bytes(*at, &vec![0; *bytes]),
            Node::Zero { .. } => Ok(()),
        }
    }
}

impl Stream {
    /// Records what `work` gives to the stream that it gets, without running it.
    ///
    /// The arguments are checked and recorded now; a launch of the graph takes the contents of the buffers as they are then.
    pub fn capture(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        let stream = Stream::to_record(self.device())?;
        let given = work(&stream);
        // The recording ends whether the work could be given or not.
        let recorded = stream.recorded();
        given?;
        let (raw, recording) = recorded?;
        Ok(Graph { device: self.device().clone(), raw, recording })
    }
}

impl Graph {
    /// Runs all of it, in the order of the stream.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        if !stream.device().is_same(&self.device) {
            let (memory, stream) = (self.device.to_string(), stream.device().to_string());
            return Err(Error::Elsewhere { memory, stream });
        }
        if stream.note(|_| {}) {
            return Err(Error::Recording { what: "a graph" });
        }
        match (&self.raw, stream.cuda()) {
            (Some(graph), Some(stream)) => graph.launch(stream),
            _ => self.recording.nodes.iter().try_for_each(|node| node.run(&self.device)),
        }
    }

    /// The device that it was recorded for.
    pub fn device(&self) -> &Device {
        &self.device
    }
}
