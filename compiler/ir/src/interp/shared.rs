//! Shared memory of a program: ring buffers of elements, barriers, and the asynchronous copies in flight.
//!
//! Elements are stored by their position in a slot, not by address: layouts map elements to threads. Each element
//! records whether it was written and which operation in flight uses it, so that a missing wait is a fault and not just
//! a wrong result:
//!
//! | | uninitialized | written | a copy to it is in flight | a copy from it is in flight |
//! | --- | --- | --- | --- | --- |
//! | load | finding | the bits | fault | the bits |
//! | store, or the start of a copy to it | allowed | allowed | fault | fault |
//!
//! A copy reads its bits when it starts, and its writes become visible when it completes. That is as late as possible:
//! when an operation waits for that copy, or when no warp group can run without it.

use std::collections::HashMap;
use std::fmt;

use rtc_source::Span;

use super::machine::{Machine, Stop};
use super::mbarrier::{Barrier, BarrierError};
use super::{FaultKind, FindingKind};
use crate::{Op, Type};

/// A buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferId(usize);

/// One slot of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId {
    buffer: BufferId,
    slot: usize,
}

/// A ring of barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierRing {
    first: usize,
    slots: usize,
}

impl BarrierRing {
    /// The ring that consists of barrier `index` alone.
    pub(crate) fn one(self, index: i64) -> Result<BarrierRing, SharedError> {
        Ok(BarrierRing { first: self.first + within(index, self.slots)?, slots: 1 })
    }
}

/// One barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierId(usize);

/// An asynchronous copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyId(u64);

/// The operation that started a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its mnemonic.
    pub op: &'static str,
    /// Where it comes from.
    pub span: Option<Span>,
}

/// A use of shared memory that has no defined result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedError {
    /// A load of what a copy has yet to write.
    ReadInFlight(Start),
    /// A store, or another copy, to what a copy has yet to write.
    WriteInFlight(Start),
    /// A store or copy to what an asynchronous operation still reads.
    WriteUnderRead(Start),
    /// A dot or a tile copy reads writes of threads without a fence in between.
    Unfenced,
    /// A sum is used before the dot is complete that it belongs to.
    SumUnderWay,
    /// There is no such slot.
    Slot {
        /// Its index.
        index: i64,
        /// How many there are.
        slots: usize,
    },
    /// A barrier is misused.
    Barrier(BarrierError),
    /// A completed copy misuses its barrier.
    Arrival(Start, BarrierError),
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharedError::ReadInFlight(start) => {
                write!(f, "shared memory is read before the copy of `{}` to it is complete", start.op)
            }
            SharedError::WriteInFlight(start) => {
                write!(f, "shared memory is written before the copy of `{}` to it is complete", start.op)
            }
            SharedError::WriteUnderRead(start) => {
                write!(f, "shared memory is written while `{}` still reads it", start.op)
            }
            SharedError::Unfenced => f.write_str("shared memory is read without `fence_async` after threads wrote it"),
            SharedError::SumUnderWay => f.write_str(
                "the result of a product is used before `mma_wait` has waited for it, or not as that gives it",
            ),
            SharedError::Slot { index, slots } => write!(f, "slot {index} of a buffer with {slots} slots"),
            SharedError::Barrier(error) => error.fmt(f),
            SharedError::Arrival(start, error) => write!(f, "when the copy of `{}` is complete: {error}", start.op),
        }
    }
}

/// An error, and which of the elements accessed has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) error: SharedError,
    pub(crate) position: usize,
}

/// The result of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// The bits of the elements.
    pub(crate) bits: Vec<u64>,
    /// The first uninitialized element.
    pub(crate) unwritten: Option<usize>,
}

#[derive(Clone, Debug)]
struct Buffer {
    /// Elements of a slot.
    size: usize,
    /// The slots; one that was never accessed is empty.
    slots: Vec<Vec<Element>>,
}

#[derive(Clone, Debug)]
struct Element {
    bits: u64,
    state: State,
    /// How many copies read it.
    readers: u32,
    /// How many fences there were when a thread wrote it; `None` if it was written otherwise.
    stored: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unwritten,
    Written,
    /// This copy will write it.
    InFlight(CopyId),
}

/// A copy that is on its way.
#[derive(Clone, Debug)]
struct Copy {
    id: CopyId,
    slot: SlotId,
    at: Vec<u32>,
    /// The values that it writes; `None` if it reads.
    bits: Option<Vec<u64>>,
    /// The barrier that it signals, and the number of bytes.
    arrival: Option<(BarrierId, u32)>,
    /// Whether threads write, as far as fences are concerned, and not a unit of its own.
    by_threads: bool,
    start: Start,
}

/// The content of uninitialized elements.
const POISON: u64 = 0xcbcb_cbcb_cbcb_cbcb;

/// Shared memory of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedMemory {
    buffers: Vec<Buffer>,
    /// The buffer of each operation that makes one.
    made: HashMap<Op, BufferId>,
    barriers: Vec<Option<Barrier>>,
    /// Oldest first.
    copies: Vec<Copy>,
    started: u64,
    /// How many fences there were between writes of threads and asynchronous reads.
    fences: u64,
    /// Fences are not there yet: they are assumed wherever one is missing.
    assumes_fences: bool,
}

impl SharedMemory {
    /// Empty; before `insert-waits` a kernel need not have fences.
    pub(crate) fn new(assumes_fences: bool) -> SharedMemory {
        SharedMemory { assumes_fences, ..SharedMemory::default() }
    }

    /// The copies in flight that complete on their own, because they signal a barrier, oldest first. The others
    /// complete at the operation that waits for them.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = CopyId> {
        self.copies.iter().filter(|copy| copy.arrival.is_some()).map(|copy| copy.id)
    }

    /// Completes a copy: its writes become visible, its source may be written, its barrier is signalled. Completing it
    /// again has no effect.
    pub(crate) fn complete(&mut self, id: CopyId) -> Result<(), SharedError> {
        let Some(index) = self.copies.iter().position(|copy| copy.id == id) else { return Ok(()) };
        let copy = self.copies.remove(index);
        let stored = copy.by_threads.then_some(self.fences);
        for (i, at) in copy.at.iter().enumerate() {
            let element = self.element(copy.slot, *at);
            match &copy.bits {
                Some(bits) => (element.bits, element.state, element.stored) = (bits[i], State::Written, stored),
                None => element.readers -= 1,
            }
        }
        let Some((barrier, bytes)) = copy.arrival else { return Ok(()) };
        self.with_barrier(barrier, |b| b.complete(bytes)).map_err(|error| SharedError::Arrival(copy.start, error))
    }

    /// See [`Barrier::try_wait`].
    pub(crate) fn try_wait(&self, barrier: BarrierId, parity: u32) -> Result<bool, SharedError> {
        match &self.barriers[barrier.0] {
            Some(barrier) => Ok(barrier.try_wait(parity)),
            None => Err(SharedError::Barrier(BarrierError::NotInitialized)),
        }
    }

    /// The object of a wait, as text.
    pub(crate) fn describe(&self, barrier: BarrierId, parity: u32) -> String {
        let state = self.barriers[barrier.0].as_ref().map_or("not initialized".into(), ToString::to_string);
        format!("a phase of parity {parity} of barrier {}, which is {state}", barrier.0)
    }

    fn with_barrier(
        &mut self,
        barrier: BarrierId,
        change: impl FnOnce(&mut Barrier) -> Result<(), BarrierError>,
    ) -> Result<(), BarrierError> {
        change(self.barriers[barrier.0].as_mut().ok_or(BarrierError::NotInitialized)?)
    }

    fn element(&mut self, slot: SlotId, at: u32) -> &mut Element {
        let buffer = &mut self.buffers[slot.buffer.0];
        let elements = &mut buffer.slots[slot.slot];
        if elements.is_empty() {
            *elements = vec![Element { bits: POISON, state: State::Unwritten, readers: 0, stored: None }; buffer.size];
        }
        &mut elements[at as usize]
    }

    /// An uninitialized buffer of `slots` times `size` elements.
    pub(crate) fn alloc(&mut self, size: usize, slots: usize) -> BufferId {
        self.buffers.push(Buffer { size, slots: vec![Vec::new(); slots] });
        BufferId(self.buffers.len() - 1)
    }

    /// The buffer that an operation allocates: the same each time, but uninitialized again.
    pub(crate) fn alloc_for(&mut self, op: Op, size: usize, slots: usize) -> BufferId {
        let Some(buffer) = self.made.get(&op).copied() else {
            let buffer = self.alloc(size, slots);
            self.made.insert(op, buffer);
            return buffer;
        };
        for element in self.buffers[buffer.0].slots.iter_mut().flatten() {
            if element.state == State::Written {
                (element.bits, element.state) = (POISON, State::Unwritten);
            }
        }
        buffer
    }

    /// Slot `index` of a buffer.
    pub(crate) fn slot(&self, buffer: BufferId, index: i64) -> Result<SlotId, SharedError> {
        Ok(SlotId { buffer, slot: within(index, self.buffers[buffer.0].slots.len())? })
    }

    /// Writes elements of a slot.
    pub(crate) fn store(&mut self, slot: SlotId, at: &[u32], bits: &[u64]) -> Result<(), Refused> {
        self.check_write(slot, at)?;
        let fences = self.fences;
        for (at, bits) in at.iter().zip(bits) {
            let element = self.element(slot, *at);
            (element.bits, element.state, element.stored) = (*bits, State::Written, Some(fences));
        }
        Ok(())
    }

    /// Makes earlier writes of threads visible to asynchronous reads.
    pub(crate) fn fence(&mut self) {
        self.fences += 1;
    }

    /// Reads elements of a slot as dots and copies of tiles do, not as threads.
    pub(crate) fn load_async(&mut self, slot: SlotId, at: &[u32]) -> Result<Loaded, Refused> {
        let loaded = self.load(slot, at)?;
        if self.assumes_fences {
            return Ok(loaded);
        }
        let fences = self.fences;
        match at.iter().position(|at| self.element(slot, *at).stored.is_some_and(|stored| stored == fences)) {
            Some(position) => Err(Refused { error: SharedError::Unfenced, position }),
            None => Ok(loaded),
        }
    }

    /// Reads elements of a slot.
    pub(crate) fn load(&mut self, slot: SlotId, at: &[u32]) -> Result<Loaded, Refused> {
        let mut loaded = Loaded { bits: Vec::with_capacity(at.len()), unwritten: None };
        for (position, at) in at.iter().enumerate() {
            let element = self.element(slot, *at);
            loaded.bits.push(element.bits);
            match element.state {
                State::Written => {}
                State::Unwritten => loaded.unwritten = loaded.unwritten.or(Some(position)),
                State::InFlight(copy) => {
                    return Err(Refused {
                        error: SharedError::ReadInFlight(self.start_of(|c| c.id == copy)),
                        position,
                    });
                }
            }
        }
        Ok(loaded)
    }

    /// A ring of barriers; each must be given its count before it is used.
    pub(crate) fn alloc_barriers(&mut self, slots: usize) -> BarrierRing {
        let first = self.barriers.len();
        self.barriers.resize(first + slots, None);
        BarrierRing { first, slots }
    }

    /// Barrier `index` of a ring.
    pub(crate) fn barrier(&self, ring: BarrierRing, index: i64) -> Result<BarrierId, SharedError> {
        Ok(BarrierId(ring.first + within(index, ring.slots)?))
    }

    /// See [`Barrier::init`].
    pub(crate) fn init(&mut self, barrier: BarrierId, count: u32) -> Result<(), SharedError> {
        self.barriers[barrier.0] = Some(Barrier::init(count).map_err(SharedError::Barrier)?);
        Ok(())
    }

    /// The operation that started the oldest copy of this kind.
    fn start_of(&self, which: impl Fn(&Copy) -> bool) -> Start {
        self.copies.iter().find(|copy| which(copy)).map_or(Start { op: "copy", span: None }, |copy| copy.start)
    }

    /// Whether nothing is on its way to or from these elements.
    fn check_write(&mut self, slot: SlotId, at: &[u32]) -> Result<(), Refused> {
        for (position, at) in at.iter().enumerate() {
            let element = self.element(slot, *at);
            let error = match (element.state, element.readers) {
                (State::InFlight(copy), _) => SharedError::WriteInFlight(self.start_of(|c| c.id == copy)),
                (_, 0) => continue,
                _ => SharedError::WriteUnderRead(
                    self.start_of(|c| c.bits.is_none() && c.slot == slot && c.at.contains(at)),
                ),
            };
            return Err(Refused { error, position });
        }
        Ok(())
    }
}

impl SharedMemory {
    /// Starts a copy to elements of a slot; on completion it signals that many bytes to a barrier, if one is given.
    pub(crate) fn start_write(
        &mut self,
        (slot, at): (SlotId, Vec<u32>),
        bits: Vec<u64>,
        arrival: Option<(BarrierId, u32)>,
        start: Start,
    ) -> Result<CopyId, Refused> {
        self.check_write(slot, &at)?;
        let id = self.next_copy();
        for at in &at {
            self.element(slot, *at).state = State::InFlight(id);
        }
        self.copies.push(Copy { id, slot, at, bits: Some(bits), arrival, by_threads: arrival.is_none(), start });
        Ok(id)
    }

    /// Starts a read of elements of a slot by a dot or a copy of a tile: they may not be written until it is complete.
    pub(crate) fn start_read_async(
        &mut self,
        (slot, at): (SlotId, Vec<u32>),
        start: Start,
    ) -> Result<(CopyId, Loaded), Refused> {
        let loaded = self.load_async(slot, &at)?;
        let id = self.next_copy();
        for at in &at {
            self.element(slot, *at).readers += 1;
        }
        self.copies.push(Copy { id, slot, at, bits: None, arrival: None, by_threads: false, start });
        Ok((id, loaded))
    }

    /// Makes the phase of a barrier wait for these copies too.
    pub(crate) fn announce(&mut self, copies: &[CopyId], barrier: BarrierId) -> Result<(), SharedError> {
        let mut announced = 0;
        for copy in self.copies.iter_mut().filter(|copy| copies.contains(&copy.id)) {
            copy.arrival = Some((barrier, 1));
            announced += 1;
        }
        self.expect_tx(barrier, announced)
    }

    /// See [`Barrier::expect_tx`].
    pub(crate) fn expect_tx(&mut self, barrier: BarrierId, bytes: u32) -> Result<(), SharedError> {
        self.with_barrier(barrier, |b| b.expect_tx(bytes)).map_err(SharedError::Barrier)
    }

    /// See [`Barrier::arrive`].
    pub(crate) fn arrive(&mut self, barrier: BarrierId, count: u32) -> Result<(), SharedError> {
        self.with_barrier(barrier, |b| b.arrive(count)).map_err(SharedError::Barrier)
    }

    fn next_copy(&mut self) -> CopyId {
        self.started += 1;
        CopyId(self.started)
    }
}

fn within(index: i64, slots: usize) -> Result<usize, SharedError> {
    let slot = usize::try_from(index).ok().filter(|i| *i < slots);
    slot.ok_or(SharedError::Slot { index, slots })
}

impl Machine<'_> {
    /// Reads a tile of type `ty` for `op`, in row-major order; uninitialized elements are recorded.
    pub(crate) fn load_shared(&mut self, op: Op, ty: Type, slot: SlotId, at: &[u32]) -> Result<Vec<u64>, Stop> {
        let loaded = self.shared.load(slot, at).map_err(|refused| self.refuse(ty, refused))?;
        if let Some(position) = loaded.unwritten {
            let slot = self.owners(ty)[position] as usize;
            self.find(op, FindingKind::UnwrittenShared, ty, slot);
        }
        Ok(loaded.bits)
    }

    /// Writes a tile of type `ty`, given in row-major order.
    pub(crate) fn store_shared(&mut self, ty: Type, slot: SlotId, at: &[u32], bits: &[u64]) -> Result<(), Stop> {
        self.shared.store(slot, at, bits).map_err(|refused| self.refuse(ty, refused))
    }

    /// The fault of an access to shared memory, with the element of the tile.
    pub(crate) fn refuse(&mut self, ty: Type, refused: Refused) -> Stop {
        let slot = self.owners(ty)[refused.position] as usize;
        Stop { kind: FaultKind::Shared(refused.error), element: self.coordinate(ty, slot) }
    }
}

#[cfg(test)]
mod tests;
