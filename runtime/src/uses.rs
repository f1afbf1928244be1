//! The order between streams: which work on an allocation the next work on it has to wait for.
//!
//! Work of one stream is in order by itself, and the driver orders the default stream with all that [`Device::stream`] makes.
//! So events are needed between two of the latter only: an allocation keeps the event of the work that wrote it last, and those
//! of the work that has read it since. A device with one such stream records no events; when a second one is made, it waits
//! for the work of the first, and when the second goes, the first waits for its work.
//!
//! Streams of other libraries are in order with nothing. That is left to the caller, but for memory that a stream allocated
//! ([`Stream::alloc`]): there it must not be used before its allocation, nor after it was freed, so these streams wait and
//! record events for it, too.
//!
//! [`Device::stream`]: crate::Device::stream

use crate::backend::BackendEvent;
use crate::{Device, Result, Stream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The latest work on an allocation.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    latest: Mutex<Latest>,
    /// Of memory of a pool: the stream that allocated it.
    allocated_on: Option<Stream>,
    /// Whether other libraries may have work on it, of which nothing is known here.
    is_shared: AtomicBool,
}

#[derive(Debug, Default)]
struct Latest {
    write: Option<Use>,
    /// Since that write, at most one for each stream.
    reads: Vec<Use>,
    /// Of memory of a pool: the stream of the last of these whose handle is kept.
    stream: Option<Stream>,
}

/// The end of work on a stream.
#[derive(Clone, Debug)]
struct Use {
    stream: u64,
    event: Arc<dyn BackendEvent>,
}

impl Use {
    /// The present end of the stream.
    fn at_the_end_of(stream: &Stream) -> Result<Use> {
        Ok(Use { stream: stream.number(), event: stream.raw_stream().mark()?.into() })
    }
}

impl Uses {
    /// Those of memory that the stream allocates.
    pub(crate) fn of_stream(stream: &Stream) -> Uses {
        Uses { allocated_on: Some(stream.clone()), ..Uses::default() }
    }

    /// The stream that allocated the memory, if it is memory of a pool.
    pub(crate) fn allocated_on(&self) -> Option<&Stream> {
        self.allocated_on.as_ref()
    }

    /// Notes that other libraries get the memory.
    #[cfg(feature = "dlpack")]
    pub(crate) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the stream wait for work of other streams: before a read for the last write, before a write for the reads, too.
    fn wait(&self, stream: &Stream, writes: bool) -> Result<()> {
        let mut latest = self.lock();
        if let Some(first) = &self.allocated_on
            && stream.is_foreign()
            && latest.write.is_none()
            && first.number() != stream.number()
        {
            // No event was recorded for the allocation.
            latest.write = Some(Use::at_the_end_of(first)?);
        }
        let reads = if writes { &latest.reads[..] } else { &[] };
        wait_for(stream, latest.write.iter().chain(reads))
    }

    /// Notes work that was given to the stream.
    fn note(&self, stream: &Stream, used: &Use, writes: bool) {
        let mut latest = self.lock();
        if writes {
            latest.write = Some(used.clone());
            latest.reads.clear();
        } else {
            latest.reads.retain(|read| read.stream != used.stream);
            latest.reads.push(used.clone());
        }
        if self.allocated_on.is_some() && stream.raw_stream().keeps_handle() {
            latest.stream = Some(stream.clone());
        }
    }

    /// Frees memory of a pool that `first` allocated, on the stream that used it last, after the work of others on it.
    #[cold]
    pub(crate) fn free(&self, device: &Device, first: &Stream, address: u64) {
        let latest = self.lock();
        let stream = latest.stream.as_ref().unwrap_or(first);
        let waits = || {
            wait_for(stream, latest.write.iter().chain(&latest.reads))?;
            match stream.is_foreign() {
                // Work of the default stream and of a single other one is not noted.
                true => stream.raw_stream().wait(&*device.default_stream().raw_stream().mark()?),
                false => Ok(()),
            }
        };
        if waits().is_err() || self.is_shared.load(Ordering::Relaxed) {
            // An error here was caused by earlier work and is reported by the next call that can report it.
            let _ = device.synchronize();
        }
        stream.raw_stream().free(address);
    }
}

/// Has the stream wait for those of these that are of other streams.
fn wait_for<'u>(stream: &Stream, uses: impl Iterator<Item = &'u Use>) -> Result<()> {
    let mut others = uses.filter(|used| used.stream != stream.number());
    others.try_for_each(|used| stream.raw_stream().wait(&*used.event))
}

/// Gives `work` on these allocations to a stream, after the work of other streams that it depends on. The flag of each
/// allocation is whether the work writes it.
#[cold]
pub(crate) fn in_order<R>(stream: &Stream, uses: &[(&Uses, bool)], work: impl FnOnce() -> Result<R>) -> Result<R> {
    uses.iter().try_for_each(|(used, writes)| used.wait(stream, *writes))?;
    let given = work()?;
    if !uses.is_empty() {
        let end = Use::at_the_end_of(stream)?;
        // An allocation may be given twice; where one of the two writes, that counts.
        let (written, read): (Vec<_>, Vec<_>) = uses.iter().partition(|(_, writes)| *writes);
        read.iter().chain(&written).for_each(|(used, writes)| used.note(stream, &end, *writes));
    }
    Ok(given)
}
