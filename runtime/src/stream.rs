//! Streams and events: the order of work and its time.
// Without a driver there is no stream to make.
#![cfg_attr(not(feature = "cuda"), allow(unreachable_code))]

use crate::device::Backend;
use crate::{Device, Result, cuda};
use std::time::{Duration, Instant};

/// An order of launches on a device.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    raw: Option<cuda::Stream>,
}

/// A point in a stream.
#[derive(Debug)]
pub struct Event {
    raw: EventKind,
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
        Stream { device: self.clone(), raw }
    }

    /// A further stream, whose work may run beside that of others.
    pub fn stream(&self) -> Result<Stream> {
        let raw = match self.backend() {
            Backend::Cuda(context) => Some(cuda::Stream::create(context)?),
            Backend::Emulator(_) | Backend::Interpreter(_) => None,
        };
        Ok(Stream { device: self.clone(), raw })
    }
}

impl Stream {
    /// The device that it belongs to.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits for all its work; reports what went wrong in it.
    pub fn synchronize(&self) -> Result<()> {
        self.raw.as_ref().map_or(Ok(()), cuda::Stream::synchronize)
    }

    /// Marks the present end of the stream.
    pub fn record(&self) -> Result<Event> {
        let raw = match &self.raw {
            Some(stream) => EventKind::Cuda(cuda::Event::record(stream)?),
            None => EventKind::Host(Instant::now()),
        };
        Ok(Event { raw })
    }

    pub(crate) fn cuda(&self) -> Option<&cuda::Stream> {
        self.raw.as_ref()
    }
}

impl Event {
    /// The time from `start` to this event; waits until it is reached. Zero for events of different kinds of devices.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        match (&start.raw, &self.raw) {
            (EventKind::Cuda(start), EventKind::Cuda(end)) => {
                let milliseconds = end.milliseconds_since(start)?;
                Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) * 1e-3))
            }
            (EventKind::Host(start), EventKind::Host(end)) => Ok(end.duration_since(*start)),
            _ => Ok(Duration::ZERO),
        }
    }
}
