//! Streams and events: the order of work and its time.
// Without a driver there is no stream to make.
#![cfg_attr(not(feature = "cuda"), allow(unreachable_code))]

use crate::device::Backend;
use crate::graph::{Node, Recording};
use crate::slice::Place;
use crate::{AnyBits, Device, Element, Error, PinnedBuffer, Result, Slice, SliceMut, cuda};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An order of work on a device: what is given to a stream runs one after the other, what is given to several may run at the
/// same time.
///
/// Calls return before their work is done. Work of two streams on the same memory is put in order by an [`Event`]: without
/// one, which of them comes first is not defined.
///
/// ```
/// use rtc_runtime::Device;
/// let device = Device::auto();
/// let (copies, work) = (device.stream()?, device.stream()?);
/// assert!(work.device().is_same(&device));
/// let x = device.upload(&[1.0f32; 64])?;
/// let mut y = device.alloc::<f32>(64)?;
/// copies.copy(&x, &mut y)?;
/// work.wait(&copies.record()?)?; // what follows on `work` finds `y` written
/// work.synchronize()?;
/// assert_eq!(y.to_vec()?, [1.0; 64]);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    device: Device,
    raw: Option<cuda::Stream>,
    /// Of a stream whose work is recorded: what was given to it.
    recording: Option<Mutex<Recording>>,
}

/// A point in a stream: to wait for, or to take the time of ([`Event::since`]).
///
/// ```
/// let stream = rtc_runtime::Device::auto().stream_with_priority(1)?;
/// assert_ne!(stream.raw(), Some(0)); // it is not the default stream, where there is a driver
/// let point: rtc_runtime::Event = stream.record()?;
/// point.synchronize()?;
/// assert!(point.is_reached()?);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct Event {
    device: Device,
    raw: EventKind,
    /// Whether it lies in work that was recorded, not run.
    recorded: bool,
}

#[derive(Debug)]
enum EventKind {
    Cuda(cuda::Event),
    Host(Instant),
}

impl Device {
    /// The default stream.
    pub fn default_stream(&self) -> Stream {
        let raw = match self.backend() {
            Backend::Cuda(context) => Some(cuda::Stream::default_of(context)),
            Backend::Emulator(_) | Backend::Interpreter(_) => None,
        };
        Stream::of(self, raw)
    }

    /// A further stream, whose work may run beside that of others. It waits for copies of the host, which are made on the
    /// default stream.
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with_priority(0)
    }

    /// A further stream. Blocks of a stream with a higher priority start before those of others that are waiting; 0 is the
    /// lowest, which [`Device::stream`] has, and numbers above the device's range mean its highest.
    pub fn stream_with_priority(&self, priority: u8) -> Result<Stream> {
        let raw = match self.backend() {
            Backend::Cuda(context) => Some(cuda::Stream::create(context, priority.into())?),
            Backend::Emulator(_) | Backend::Interpreter(_) => None,
        };
        Ok(Stream::of(self, raw))
    }
}

impl Stream {
    pub(crate) fn of(device: &Device, raw: Option<cuda::Stream>) -> Stream {
        Stream { device: device.clone(), raw, recording: None }
    }

    /// A stream of its own whose work is recorded.
    pub(crate) fn to_record(device: &Device) -> Result<Stream> {
        let raw = match device.backend() {
            Backend::Cuda(context) => Some(cuda::Stream::capturing(context)?),
            Backend::Emulator(_) | Backend::Interpreter(_) => None,
        };
        Ok(Stream { recording: Some(Mutex::default()), ..Stream::of(device, raw) })
    }

    /// Ends the recording.
    pub(crate) fn recorded(self) -> Result<(Option<cuda::Graph>, Recording)> {
        let graph = self.raw.as_ref().map(cuda::Stream::end_capture).transpose()?;
        let recording = self.recording.unwrap_or_default();
        Ok((graph, recording.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Notes something for a stream that is recorded; false if it is not.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Recording)) -> bool {
        let Some(recording) = &self.recording else { return false };
        note(&mut recording.lock().unwrap_or_else(PoisonError::into_inner));
        true
    }

    /// The device that it belongs to.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The handle of the driver (`CUstream`) for other libraries, 0 for the default stream; `None` where there is no driver.
    pub fn raw(&self) -> Option<u64> {
        self.raw.as_ref().map(cuda::Stream::raw)
    }

    /// Waits for all its work; reports what went wrong in it.
    pub fn synchronize(&self) -> Result<()> {
        self.refuse_recording("a wait of the host")?;
        self.raw.as_ref().map_or(Ok(()), cuda::Stream::synchronize)
    }

    /// Marks the present end of the stream.
    pub fn record(&self) -> Result<Event> {
        let raw = match &self.raw {
            Some(stream) => EventKind::Cuda(cuda::Event::record(stream)?),
            None => EventKind::Host(Instant::now()),
        };
        Ok(Event { device: self.device.clone(), raw, recorded: self.recording.is_some() })
    }

    /// Has all that is given to this stream later wait until `event` is reached; the host does not wait. The event may be one
    /// of another GPU; other devices do not wait for each other, which is an error.
    pub fn wait(&self, event: &Event) -> Result<()> {
        if event.recorded != self.recording.is_some() {
            return Err(Error::Recording { what: "an event of work outside of it, or outside an event of its work," });
        }
        match (&self.raw, &event.raw) {
            (Some(stream), EventKind::Cuda(event)) => stream.wait(event),
            // Work on the CPU is over when the call that gives it returns.
            (None, EventKind::Host(_)) if event.device.is_same(&self.device) => Ok(()),
            _ => Err(event.elsewhere(&self.device)),
        }
    }

    /// Copies within the device, in the order of the stream.
    pub fn copy<'a, T: Element>(&self, from: impl Into<Slice<'a, T>>, to: impl Into<SliceMut<'a, T>>) -> Result<()> {
        let (from, to) = (from.into(), to.into());
        same_length(from.len(), to.len())?;
        let (from, to) = (from.place(), to.place());
        self.on_device(&from)?;
        self.on_device(&to)?;
        self.note(|recording| recording.keep(&[from, to]));
        match &self.raw {
            Some(stream) if from.bytes > 0 => stream.copy(to.address, from.address, from.bytes as usize),
            _ => self.node(Node::Copy { to: to.address, from: from.address, bytes: from.bytes as usize }),
        }
    }

    /// Writes zeros, in the order of the stream.
    pub fn zero<'a, T: Element>(&self, to: impl Into<SliceMut<'a, T>>) -> Result<()> {
        let to = to.into().place();
        self.on_device(&to)?;
        self.note(|recording| recording.keep(&[to]));
        match &self.raw {
            Some(stream) if to.bytes > 0 => stream.zero(to.address, to.bytes as usize),
            _ => self.node(Node::Zero { at: to.address, bytes: to.bytes as usize }),
        }
    }

    /// Copies page-locked memory of the host to the device, in the order of the stream and beside other work. Lengths must
    /// be equal.
    pub fn upload<'a, T: AnyBits>(&self, from: &PinnedBuffer<T>, to: impl Into<SliceMut<'a, T>>) -> Result<()> {
        self.refuse_recording("a copy from the host")?;
        let to = to.into();
        same_length(from.len(), to.len())?;
        self.on_device(&to.place())?;
        from.upload(self.raw.as_ref(), to)
    }

    /// Copies from the device to page-locked memory of the host, in the order of the stream and beside other work. Lengths
    /// must be equal. Reading the memory waits for the copy.
    ///
    /// ```
    /// let device = rtc_runtime::Device::auto();
    /// let (x, mut host) = (device.upload(&[1i32, 2])?, device.pinned(2)?);
    /// device.default_stream().download(&x, &mut host)?;
    /// assert_eq!(host.as_slice()?, [1, 2]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub fn download<'a, T: AnyBits>(&self, from: impl Into<Slice<'a, T>>, to: &mut PinnedBuffer<T>) -> Result<()> {
        self.refuse_recording("a copy to the host")?;
        let from = from.into();
        same_length(from.len(), to.len())?;
        self.on_device(&from.place())?;
        to.download(self.raw.as_ref(), from)
    }

    /// Work on the CPU: done now, or later where it is recorded.
    fn node(&self, node: Node) -> Result<()> {
        match &self.recording {
            Some(recording) => {
                recording.lock().unwrap_or_else(PoisonError::into_inner).nodes.push(node);
                Ok(())
            }
            None => node.run(&self.device),
        }
    }

    fn on_device(&self, place: &Place<'_>) -> Result<()> {
        match place.device {
            Some(device) if device.is_same(&self.device) => Ok(()),
            Some(device) => Err(Error::Elsewhere { memory: device.to_string(), stream: self.device.to_string() }),
            None => Ok(()),
        }
    }

    pub(crate) fn refuse_recording(&self, what: &'static str) -> Result<()> {
        if self.recording.is_some() { Err(Error::Recording { what }) } else { Ok(()) }
    }

    pub(crate) fn cuda(&self) -> Option<&cuda::Stream> {
        self.raw.as_ref()
    }
}

fn same_length(from: usize, to: usize) -> Result<()> {
    if from == to { Ok(()) } else { Err(Error::CopyLength { from: from as u64, to: to as u64 }) }
}

impl Event {
    /// Waits until it is reached; reports what went wrong before it.
    pub fn synchronize(&self) -> Result<()> {
        match &self.raw {
            EventKind::Cuda(_) if self.recorded => Err(Error::Recording { what: "a wait of the host" }),
            EventKind::Cuda(event) => event.synchronize(),
            EventKind::Host(_) => Ok(()),
        }
    }

    /// Whether it is reached; does not wait.
    pub fn is_reached(&self) -> Result<bool> {
        match &self.raw {
            EventKind::Cuda(_) if self.recorded => Err(Error::Recording { what: "a question of the host" }),
            EventKind::Cuda(event) => event.is_reached(),
            EventKind::Host(_) => Ok(true),
        }
    }

    /// The time from `start` to this event; waits until it is reached.
    ///
    /// ```
    /// use rtc_runtime::Device;
    /// let device = Device::auto();
    /// let stream = device.stream()?;
    /// let mut x = device.alloc::<f32>(1 << 16)?;
    /// let start = stream.record()?;
    /// stream.zero(&mut x)?;
    /// let time = stream.record()?.since(&start)?;
    /// assert!(time.as_secs() < 10);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// An error for events of different devices.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        if !start.device.is_same(&self.device) {
            return Err(start.elsewhere(&self.device));
        }
        if self.recorded || start.recorded {
            return Err(Error::Recording { what: "the time of an event" });
        }
        match (&start.raw, &self.raw) {
            (EventKind::Cuda(start), EventKind::Cuda(end)) => {
                let milliseconds = end.milliseconds_since(start)?;
                Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) * 1e-3))
            }
            (EventKind::Host(start), EventKind::Host(end)) => Ok(end.duration_since(*start)),
            _ => Err(start.elsewhere(&self.device)),
        }
    }

    fn elsewhere(&self, other: &Device) -> Error {
        Error::EventElsewhere { event: self.device.to_string(), other: other.to_string() }
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;

    #[test]
    fn copies_and_zeros_in_order() {
        for device in [Device::emulator(), Device::auto()] {
            let stream = device.stream_with_priority(200).unwrap();
            let x = device.upload(&(0..8).collect::<Vec<i32>>()).unwrap();
            let mut y = device.alloc::<i32>(8).unwrap();
            stream.copy(&x, &mut y).unwrap();
            stream.zero(y.slice_mut(2..4)).unwrap();
            let (start, end) = (stream.record().unwrap(), stream.record().unwrap());
            device.default_stream().wait(&end).unwrap();
            end.synchronize().unwrap();
            assert!(end.is_reached().unwrap() && end.since(&start).unwrap() < Duration::from_secs(10));
            assert_eq!(y.to_vec().unwrap(), [0, 1, 0, 0, 4, 5, 6, 7]);
            // Nothing to do is no mistake.
            stream.copy(x.slice(8..), y.slice_mut(..0)).unwrap();
        }
    }

    #[test]
    fn lengths_and_devices_are_checked() {
        let device = Device::emulator();
        let stream = device.default_stream();
        let x = device.zeros::<f32>(4).unwrap();
        let mut y = device.zeros::<f32>(5).unwrap();
        insta::assert_snapshot!(stream.copy(&x, &mut y).unwrap_err(), @"a copy of 4 elements to 5; the lengths must be equal: copy a slice");
        let mut elsewhere = Device::emulator().zeros::<f32>(4).unwrap();
        insta::assert_snapshot!(stream.copy(&x, &mut elsewhere).unwrap_err(), @"the memory lies on emulator, the stream belongs to emulator; copy through the host");
    }

    #[test]
    fn events_of_other_devices_are_errors() {
        let (device, other) = (Device::emulator(), Device::emulator());
        let (own, foreign) = (device.default_stream().record().unwrap(), other.default_stream().record().unwrap());
        let said = own.since(&foreign).unwrap_err();
        insta::assert_snapshot!(said, @"the event was recorded on emulator, it is used with one of emulator; wait for it by `Event::synchronize`");
        assert_eq!(device.default_stream().wait(&foreign).unwrap_err(), said);
        device.default_stream().wait(&own).unwrap();
        if let Ok(gpu) = Device::cuda(0) {
            let there = gpu.default_stream().record().unwrap();
            assert!(device.default_stream().wait(&there).is_err() && gpu.default_stream().wait(&own).is_err());
            assert!(there.since(&own).is_err() && own.since(&there).is_err());
        }
    }

    #[test]
    fn pinned_memory_goes_there_and_back() {
        for device in [Device::emulator(), Device::auto()] {
            let stream = device.stream().unwrap();
            let mut host = device.pinned::<f32>(1000).unwrap();
            assert_eq!(host.as_slice().unwrap(), [0.0; 1000]);
            for (i, value) in host.as_mut_slice().unwrap().iter_mut().enumerate() {
                *value = i as f32;
            }
            let mut x = device.alloc::<f32>(1000).unwrap();
            stream.upload(&host, &mut x).unwrap();
            host.as_mut_slice().unwrap().fill(-1.0);
            stream.download(&x, &mut host).unwrap();
            assert!(host.as_slice().unwrap().iter().enumerate().all(|(i, value)| *value == i as f32));
            assert!(stream.upload(&host, x.slice_mut(1..)).is_err());
        }
    }
}
