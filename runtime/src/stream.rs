//! Streams and events: the order of work and its time.
use crate::backend::{Backend, BackendEvent, BackendGraph, BackendStream, DeviceKind};
use crate::device::id_of;
use crate::recording::Recording;
use crate::uses::{self, Uses};
use crate::{Device, Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An order of work on a device: what is given to a stream runs one after the other, what is given to several may run at the
/// same time.
///
/// Cloning gives another handle of the same stream. Calls return before their work is done.
///
/// Work of several streams on one [`Buffer`](crate::Buffer) is in order, as far as one of the two writes: what is given later
/// begins when what was given before has ended. That holds for launches, copies, fills and graphs on streams of the
/// [`Device`]; events are recorded for it while there are two or more besides the default stream. Streams and memory of other
/// libraries ([`Stream::from_raw`], [`DeviceAddress`](crate::DeviceAddress), `interop`) are not known to it: there an
/// [`Event`] puts work in order. A buffer of [`Stream::alloc`] is
/// used after its allocation and freed after its use on those, too.
///
/// ```
/// use rtc_runtime::Device;
/// let device = Device::auto();
/// let (copies, work) = (device.stream()?, device.stream()?);
/// assert!(work.device().is_same(&device));
/// let x = device.upload(&[1.0f32; 64])?;
/// let mut y = device.alloc::<f32>(64)?;
/// let mut z = device.alloc::<f32>(64)?;
/// copies.copy(&x, &mut y)?;
/// work.copy(&y, &mut z)?; // begins when `y` is written
/// work.synchronize()?;
/// assert_eq!(z.to_vec()?, [1.0; 64]);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    backend: Arc<dyn Backend>,
    /// That of the device.
    id: usize,
    raw: Arc<dyn BackendStream>,
    /// Whether the device counts it among the streams that may need events; the default stream and recordings never do.
    is_counted: bool,
    /// Whether it belongs to another library, so that nothing puts it in order with the default stream.
    is_foreign: bool,
    /// A number that tells streams apart.
    number: u64,
    /// Of a stream whose work is recorded: what that uses.
    recording: Option<Arc<Mutex<Recording>>>,
}

/// A point in a stream: to wait for, or to take the time of ([`Event::elapsed_since`]).
///
/// ```
/// let stream = rtc_runtime::Device::auto().stream_with_priority(1)?;
/// assert_ne!(stream.as_raw(), Some(0)); // it is not the default stream, where there is a driver
/// let point: rtc_runtime::Event = stream.record()?;
/// point.synchronize()?;
/// assert!(point.is_complete()?);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct Event {
    backend: Arc<dyn Backend>,
    /// That of the device.
    id: usize,
    raw: Box<dyn BackendEvent>,
    /// Whether it lies in work that was recorded, not run.
    recorded: bool,
}

impl Stream {
    pub(crate) fn of(backend: &Arc<dyn Backend>, raw: Box<dyn BackendStream>) -> Stream {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Stream {
            backend: backend.clone(),
            id: id_of(backend),
            is_counted: raw.is_counted(),
            is_foreign: raw.is_foreign(),
            raw: raw.into(),
            number,
            recording: None,
        }
    }

    /// A stream of its own whose work is recorded.
    pub(crate) fn recorder(&self) -> Result<Stream> {
        let raw = self.backend.clone().capturing()?;
        Ok(Stream { recording: Some(Arc::default()), ..Stream::of(&self.backend, raw) })
    }

    /// Ends the recording.
    pub(crate) fn recorded(self) -> Result<(Box<dyn BackendGraph>, Recording)> {
        let graph = self.raw.end_capture()?;
        let mut recording = Recording::default();
        self.note(|all| recording = std::mem::take(all));
        Ok((graph, recording))
    }

    /// Notes something for a stream that is recorded; false if it is not.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Recording)) -> bool {
        let Some(recording) = &self.recording else { return false };
        note(&mut recording.lock().unwrap_or_else(PoisonError::into_inner));
        true
    }

    /// The device that it belongs to.
    pub fn device(&self) -> Device {
        Device::of(self.backend.clone())
    }

    /// The handle of the driver (`CUstream`) for other libraries, 0 for the default stream; `None` where there is no driver.
    pub fn as_raw(&self) -> Option<u64> {
        self.raw.raw()
    }

    /// Waits for all its work.
    ///
    /// # Errors
    ///
    /// [`Error::Recording`] where the stream is recorded, [`Error::Cuda`] for a failure of its work.
    pub fn synchronize(&self) -> Result<()> {
        self.refuse_recording("a wait of the host")?;
        self.raw.synchronize()
    }

    /// Marks the present end of the stream.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver fails.
    pub fn record(&self) -> Result<Event> {
        let (backend, id, recorded) = (self.backend.clone(), self.id, self.recording.is_some());
        Ok(Event { backend, id, raw: self.raw.record()?, recorded })
    }

    /// Has all that is given to this stream later wait until `event` is reached; the host does not wait. The event may be one
    /// of another GPU; other devices do not wait for each other.
    ///
    /// ```
    /// use rtc_runtime::{Device, Event, Stream};
    /// let device = Device::auto();
    /// let (first, second): (Stream, Stream) = (device.stream()?, device.stream()?);
    /// let end: Event = first.record()?;
    /// second.wait(&end)?; // what is given to `second` now begins after what was given to `first`
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::EventElsewhere`] for an event of another device unless both are GPUs, [`Error::Recording`] if only one of the
    /// two belongs to recorded work, [`Error::Cuda`] if the driver fails.
    pub fn wait(&self, event: &Event) -> Result<()> {
        if event.recorded != self.recording.is_some() {
            return Err(Error::Recording { what: "an event of work outside of it, or outside an event of its work," });
        }
        let is_cuda = |backend: &Arc<dyn Backend>| matches!(backend.kind(), DeviceKind::Cuda(_));
        if event.id != self.id && !(is_cuda(&self.backend) && is_cuda(&event.backend)) {
            return Err(event.elsewhere(&self.backend));
        }
        self.raw.wait(&*event.raw)
    }

    pub(crate) fn refuse_recording(&self, what: &'static str) -> Result<()> {
        if self.recording.is_some() { Err(Error::Recording { what }) } else { Ok(()) }
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// The number that tells its device from others.
    #[inline]
    pub(crate) fn id(&self) -> usize {
        self.id
    }

    /// Whether events must put its work in order with that of other streams.
    #[inline]
    pub(crate) fn needs_events(&self) -> bool {
        self.is_foreign || (self.is_counted && self.raw.needs_events())
    }

    /// Whether it belongs to another library.
    pub(crate) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// The number that tells it from others.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Gives work to the stream, after work of other streams on the same memory; the flag of each allocation is whether the
    /// work writes it.
    #[inline]
    pub(crate) fn in_order<'u, R>(
        &self,
        uses: impl Iterator<Item = (&'u Arc<Uses>, bool)>,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        if !self.needs_events() {
            return work();
        }
        let uses: Vec<(&Uses, bool)> = uses
            .map(|(used, writes)| (&**used, writes))
            .filter(|(used, _)| !self.is_foreign || used.allocated_on().is_some())
            .collect();
        uses::in_order(self, &uses, work)
    }

    #[inline]
    pub(crate) fn raw_stream(&self) -> &dyn BackendStream {
        &*self.raw
    }
}

impl Event {
    /// Waits until it is reached.
    ///
    /// # Errors
    ///
    /// [`Error::Recording`] for an event of recorded work on a GPU, [`Error::Cuda`] for a failure of the work before it.
    pub fn synchronize(&self) -> Result<()> {
        self.refuse_recorded("a wait of the host")?;
        self.raw.synchronize()
    }

    /// Whether it is reached; does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Recording`] for an event of recorded work on a GPU, [`Error::Cuda`] for a failure of the work before it.
    pub fn is_complete(&self) -> Result<bool> {
        self.refuse_recorded("a question of the host")?;
        self.raw.is_complete()
    }

    /// Refuses what work that has not run cannot give. On the CPU an event is complete when it is recorded.
    fn refuse_recorded(&self, what: &'static str) -> Result<()> {
        let runs_later = self.recorded && matches!(self.backend.kind(), DeviceKind::Cuda(_));
        if runs_later { Err(Error::Recording { what }) } else { Ok(()) }
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
    /// let time = stream.record()?.elapsed_since(&start)?;
    /// assert!(time.as_secs() < 10);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::EventElsewhere`] for events of different devices, [`Error::Recording`] for events of recorded work,
    /// [`Error::Cuda`] for a failure of the work before them.
    pub fn elapsed_since(&self, start: &Event) -> Result<Duration> {
        if start.id != self.id {
            return Err(start.elsewhere(&self.backend));
        }
        if self.recorded || start.recorded {
            return Err(Error::Recording { what: "the time of an event" });
        }
        self.raw.elapsed_since(&*start.raw)
    }

    fn elsewhere(&self, other: &Arc<dyn Backend>) -> Error {
        Error::EventElsewhere { event: self.backend.name(), other: other.name() }
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;

    #[test]
    fn events_of_other_devices_are_errors() {
        let (device, other) = (Device::emulator(), Device::emulator());
        let (own, foreign) = (device.default_stream().record().unwrap(), other.default_stream().record().unwrap());
        let said = own.elapsed_since(&foreign).unwrap_err();
        insta::assert_snapshot!(said, @"the event was recorded on emulator, it is used with one of emulator; wait for it by `Event::synchronize`");
        assert_eq!(device.default_stream().wait(&foreign).unwrap_err(), said);
        device.default_stream().wait(&own).unwrap();
        if let Ok(gpu) = Device::cuda(0) {
            let there = gpu.default_stream().record().unwrap();
            assert!(device.default_stream().wait(&there).is_err() && gpu.default_stream().wait(&own).is_err());
            assert!(there.elapsed_since(&own).is_err() && own.elapsed_since(&there).is_err());
        }
    }
}
