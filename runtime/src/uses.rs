//! The order between streams: which work on an allocation the next work on it has to wait for.
//!
//! Work of one stream is in order by itself, and the driver orders the default stream with all that [`Device::stream`] makes.
//! So events are needed between two of the latter only: an allocation keeps the event of the work that wrote it last, and those
//! of the work that has read it since. A device with one such stream records no events; when a second one is made, it waits
//! for the work of the first.
//!
//! [`Device::stream`]: crate::Device::stream

use crate::Result;
use crate::backend::{BackendEvent, BackendStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The latest work on an allocation.
#[derive(Debug, Default)]
pub(crate) struct Uses(Mutex<Latest>);

#[derive(Debug, Default)]
struct Latest {
    write: Option<Use>,
    /// Since that write, at most one for each stream.
    reads: Vec<Use>,
}

/// The end of work on a stream.
#[derive(Clone, Debug)]
struct Use {
    stream: u64,
    event: Arc<dyn BackendEvent>,
}

impl Uses {
    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the stream wait for work of other streams: before a read for the last write, before a write for the reads, too.
    fn wait(&self, stream: u64, raw: &dyn BackendStream, writes: bool) -> Result<()> {
        let latest = self.lock();
        let reads = if writes { &latest.reads[..] } else { &[] };
        let mut others = latest.write.iter().chain(reads).filter(|used| used.stream != stream);
        others.try_for_each(|used| raw.wait(&*used.event))
    }

    /// Notes work that was given to the stream.
    fn note(&self, stream: u64, event: &Arc<dyn BackendEvent>, writes: bool) {
        let used = Use { stream, event: event.clone() };
        let mut latest = self.lock();
        if writes {
            *latest = Latest { write: Some(used), reads: Vec::new() };
        } else {
            latest.reads.retain(|read| read.stream != stream);
            latest.reads.push(used);
        }
    }
}

/// Gives `work` on these allocations to a stream, after the work of other streams that it depends on. The flag of each
/// allocation is whether the work writes it.
#[cold]
pub(crate) fn in_order<R>(
    stream: u64,
    raw: &dyn BackendStream,
    uses: &[(&Uses, bool)],
    work: impl FnOnce() -> Result<R>,
) -> Result<R> {
    uses.iter().try_for_each(|(used, writes)| used.wait(stream, raw, *writes))?;
    let given = work()?;
    if !uses.is_empty() {
        let event: Arc<dyn BackendEvent> = raw.mark()?.into();
        // An allocation may be given twice; where one of the two writes, that counts.
        let (written, read): (Vec<_>, Vec<_>) = uses.iter().partition(|(_, writes)| *writes);
        read.iter().chain(&written).for_each(|(used, writes)| used.note(stream, &event, *writes));
    }
    Ok(given)
}
