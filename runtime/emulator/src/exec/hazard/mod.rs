//! Order in shared memory: whether accesses are separated by a barrier, a wait or a fence.
//!
//! Each warp has a vector clock of completed events: accesses of other warps (through `bar.sync`, mbarriers, cluster
//! barriers), copies and dots that run asynchronously (through the waits that PTX requires). An access whose
//! predecessor is not complete according to the clock is a fault, regardless of their order in this schedule. A second
//! clock has the events before a `fence.proxy.async`: bulk stores and `wgmma` must not read ordinary writes that are
//! not in it. Lanes of one warp count as ordered among themselves.
//!
//! This is done for programs with asynchronous instructions, where a conflict is a fault, and for the sanitizer, which
//! collects the requested findings and continues.

pub mod clock;
pub mod collected;
pub mod shadow;

use std::ops::Range;

use clock::{Clock, Epoch, Knowledge};
use collected::{Collected, Policy};
use shadow::{Cell, How, Read, ReadSets};

/// Time of an asynchronous write that did not arrive yet.
pub const PENDING: u32 = u32::MAX;

/// The meaning of an agent's number in a cluster of so many warps.
#[derive(Clone, Copy, Debug)]
pub struct Agents(pub u32);

/// A kind of agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// A warp, in the order of its program.
    Warp(u32),
    /// Its `cp.async`s.
    Copies(u32),
    /// Its bulk copies from shared memory, as far as they read.
    Stores(u32),
    /// Its `wgmma`s.
    Products(u32),
    /// Work that completes at an mbarrier; its time is the number of phases.
    Barrier(u32),
}

impl Agents {
    /// The number of an agent.
    pub fn number(self, agent: Agent) -> u32 {
        match agent {
            Agent::Warp(w) => w,
            Agent::Copies(w) => self.0 + w,
            Agent::Stores(w) => 2 * self.0 + w,
            Agent::Products(w) => 3 * self.0 + w,
            Agent::Barrier(b) => 4 * self.0 + b,
        }
    }

    /// The agent of a number.
    pub fn agent(self, number: u32) -> Agent {
        let w = number % self.0;
        match number / self.0 {
            0 => Agent::Warp(w),
            1 => Agent::Copies(w),
            2 => Agent::Stores(w),
            3 => Agent::Products(w),
            _ => Agent::Barrier(number - 4 * self.0),
        }
    }
}

/// The conflict of an access; the number is the operation on the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// An asynchronous copy writes these bytes without a wait; true if it has completed.
    NotArrived(u32, bool),
    /// An asynchronous operation still reads these bytes, or there was no wait for it.
    StillRead(u32),
    /// No barrier between this and another warp's write (true) or read.
    Unordered(u32, bool),
    /// These bytes are uninitialized.
    Unwritten,
    /// No `fence.proxy.async` between a write and this asynchronous read.
    Unfenced(u32),
}

/// One access as seen from the checks.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    /// The warp that issued it, in the cluster.
    pub warp: u32,
    /// Under which agent and time it is remembered.
    pub epoch: Epoch,
    /// How it writes; `Bulk` for asynchronous reads.
    pub how: How,
    /// Its operation.
    pub pc: u32,
    /// The lane that accesses the first byte.
    pub lane: u32,
    /// Bytes of each lane, if lanes one after the other access the bytes; else 0.
    pub stride: u32,
}

/// The clocks of one warp.
#[derive(Debug, Default)]
struct WarpState {
    known: Knowledge,
    /// Its clock at its last fence, which a relaxed arrival releases.
    fence: Knowledge,
    /// Clocks acquired by relaxed reads: effective after the next fence.
    observed: Knowledge,
    /// Asynchronous operations issued so far.
    issued: u32,
}

/// The order in the shared memory of a cluster.
#[derive(Debug)]
pub struct Hazards {
    /// Numbers of agents.
    pub agents: Agents,
    warps: Vec<WarpState>,
    blocks: Vec<Vec<Cell>>,
    sets: ReadSets,
    /// Bytes of a cell as a power of two.
    shift: u32,
    barriers: u32,
    /// The reaction to conflicts of two warps.
    race: Policy,
    /// The reaction to reads of uninitialized memory.
    init: Policy,
    /// Conflicts for reports.
    pub collected: Vec<Collected>,
}

impl Hazards {
    /// Nothing happened yet; `granule` is the width of the narrowest access in bytes.
    pub fn new((warps, blocks): (usize, usize), bytes: usize, granule: u32, (race, init): (Policy, Policy)) -> Hazards {
        let shift = granule.trailing_zeros();
        let start = |w: usize| {
            let mut state = WarpState::default();
            state.known.seen.raise(w as u32, 1);
            state
        };
        Hazards {
            agents: Agents(warps as u32),
            warps: (0..warps).map(start).collect(),
            blocks: vec![vec![Cell::default(); bytes.div_ceil(1 << shift)]; blocks],
            sets: ReadSets::new(),
            shift,
            barriers: 0,
            race,
            init,
            collected: Vec::new(),
        }
    }

    /// The clock of a warp.
    pub fn known(&self, warp: u32) -> &Clock {
        &self.warps[warp as usize].known.seen
    }

    /// All clocks of a warp.
    pub fn knowledge(&self, warp: u32) -> &Knowledge {
        &self.warps[warp as usize].known
    }

    /// The clock that a relaxed write of a warp releases: that of its last fence.
    pub fn at_fence(&self, warp: u32) -> &Knowledge {
        &self.warps[warp as usize].fence
    }

    /// The clock that a relaxed read acquires, after the next fence.
    pub fn observe(&mut self, warp: u32, knowledge: &Knowledge) {
        self.warps[warp as usize].observed.join(knowledge);
    }

    /// The present moment of a warp.
    pub fn now(&self, warp: u32) -> Epoch {
        Epoch { agent: warp, time: self.known(warp).get(warp) }
    }

    /// A number for a new mbarrier.
    pub fn new_barrier(&mut self) -> u32 {
        self.barriers += 1;
        self.barriers - 1
    }

    /// The moment of the next asynchronous operation of a warp.
    pub fn issue(&mut self, warp: u32, agent: Agent) -> Epoch {
        let state = &mut self.warps[warp as usize];
        state.issued += 1;
        Epoch { agent: self.agents.number(agent), time: state.issued }
    }

    /// The clock that an arrival of a warp releases; later events are not part of it.
    pub fn publish(&mut self, warp: u32, relaxed: bool) -> Knowledge {
        let state = &mut self.warps[warp as usize];
        if relaxed {
            return state.fence.clone();
        }
        let all = state.known.clone();
        let time = all.seen.get(warp);
        state.known.seen.raise(warp, time + 1);
        all
    }

    /// A warp learns something at a barrier.
    pub fn acquire(&mut self, warp: u32, knowledge: &Knowledge) {
        self.warps[warp as usize].known.join(knowledge);
    }

    /// A warp waited until an agent reached a time.
    pub fn learn(&mut self, warp: u32, epoch: Epoch) {
        self.warps[warp as usize].known.seen.raise(epoch.agent, epoch.time);
    }

    /// `fence.acq_rel` and its like.
    pub fn fence(&mut self, warp: u32) {
        let state = &mut self.warps[warp as usize];
        let observed = std::mem::take(&mut state.observed);
        state.known.join(&observed);
        state.fence = state.known.clone();
        let time = state.known.seen.get(warp);
        state.known.seen.raise(warp, time + 1);
    }

    /// `fence.proxy.async`: the events in the warp's clock become visible to asynchronous reads.
    pub fn proxy_fence(&mut self, warp: u32) {
        let state = &mut self.warps[warp as usize];
        let seen = state.known.seen.clone();
        state.known.fenced.join(&seen);
        let time = seen.get(warp);
        state.known.seen.raise(warp, time + 1);
    }

    fn cells(&self, bytes: &Range<usize>) -> Range<usize> {
        bytes.start >> self.shift..((bytes.end + (1 << self.shift) - 1) >> self.shift)
    }

    /// Checks and remembers a read of bytes of a block's shared memory; the address is the first byte at fault.
    pub fn read(&mut self, block: usize, bytes: Range<usize>, touch: Touch) -> Result<(), (Conflict, usize)> {
        let range = self.cells(&bytes);
        let Hazards { agents, warps, blocks, sets, shift, race, init, collected, .. } = self;
        if sets.is_large() {
            sets.compact(blocks.iter_mut().flatten());
        }
        let known = &warps[touch.warp as usize].known;
        let mut last: Option<(Cell, u32)> = None;
        for (i, cell) in range.clone().zip(&mut blocks[block][range]) {
            if let Some((same, reads)) = last
                && same == *cell
            {
                cell.reads = reads;
                continue;
            }
            let before = *cell;
            let at = (i << *shift).max(bytes.start);
            let atomics = touch.how == How::Atomic && cell.how == How::Atomic;
            let keep = |conflict, other| Collected::new(conflict, other, (block, at), bytes.start, touch, false);
            if cell.write.time == 0 && *init == Policy::Collect {
                collected.push(keep(Conflict::Unwritten, None));
            }
            if !atomics && !known.seen.covers(cell.write) {
                match (written(*agents, cell), *race) {
                    (Conflict::Unordered(..), Policy::Ignore) => {}
                    (conflict @ Conflict::Unordered(..), Policy::Collect) => {
                        collected.push(keep(conflict, Some(cell.write.agent)));
                    }
                    (conflict, _) => return Err((conflict, at)),
                }
            }
            if touch.how == How::Bulk && cell.how != How::Bulk && !known.fenced.covers(cell.write) {
                return Err((Conflict::Unfenced(cell.pc), at));
            }
            if touch.how != How::Atomic {
                cell.reads = sets.with(cell.reads, Read { epoch: touch.epoch, pc: touch.pc }, &known.seen);
            }
            last = Some((before, cell.reads));
        }
        Ok(())
    }

    /// Checks and remembers a write. Two writes of the same bytes need no order: `is_there` says whether memory has what is
    /// written already.
    pub fn write(
        &mut self,
        block: usize,
        bytes: Range<usize>,
        touch: Touch,
        is_there: impl Fn(Range<usize>) -> bool,
    ) -> Result<(), (Conflict, usize)> {
        let range = self.cells(&bytes);
        let Hazards { agents, warps, blocks, sets, shift, race, init, collected, .. } = self;
        let known = &warps[touch.warp as usize].known.seen;
        let mut last: Option<Cell> = None;
        for (i, cell) in range.clone().zip(&mut blocks[block][range]) {
            let new = Cell { write: touch.epoch, pc: touch.pc, how: touch.how, reads: 0 };
            if last != Some(*cell) {
                last = Some(*cell);
                let at = (i << *shift).max(bytes.start);
                let atomics = touch.how == How::Atomic && cell.how == How::Atomic;
                let keep = |conflict, other| Collected::new(conflict, other, (block, at), bytes.start, touch, true);
                if touch.how == How::Atomic && cell.write.time == 0 && *init == Policy::Collect {
                    collected.push(keep(Conflict::Unwritten, None));
                }
                if !atomics && !known.covers(cell.write) {
                    match (written(*agents, cell), *race) {
                        (Conflict::Unordered(..), Policy::Ignore) => {}
                        // The next cell, written by the same two, may differ.
                        (Conflict::Unordered(..), _) if is_there(at..((i + 1) << *shift).min(bytes.end)) => last = None,
                        (conflict @ Conflict::Unordered(..), Policy::Collect) => {
                            collected.push(keep(conflict, Some(cell.write.agent)));
                        }
                        (conflict, _) => return Err((conflict, at)),
                    }
                }
                if let Some(read) = sets.get(cell.reads).iter().find(|r| !known.covers(r.epoch)) {
                    let conflict = match agents.agent(read.epoch.agent) {
                        Agent::Warp(_) => Conflict::Unordered(read.pc, false),
                        _ => Conflict::StillRead(read.pc),
                    };
                    match (conflict, *race) {
                        (Conflict::Unordered(..), Policy::Ignore) => {}
                        (Conflict::Unordered(..), Policy::Collect) => {
                            collected.push(keep(conflict, Some(read.epoch.agent)));
                        }
                        _ => return Err((conflict, at)),
                    }
                }
            }
            *cell = new;
        }
        Ok(())
    }

    /// A bulk copy completed: its bytes are visible to warps with this phase of its barrier in their clock.
    pub fn arrive(&mut self, block: usize, bytes: Range<usize>, epoch: Epoch) {
        let range = self.cells(&bytes);
        for cell in &mut self.blocks[block][range] {
            if cell.write == (Epoch { time: PENDING, ..epoch }) {
                cell.write = epoch;
            }
        }
    }
}

/// The conflict of an access after a write that is not complete.
fn written(agents: Agents, cell: &Cell) -> Conflict {
    match agents.agent(cell.write.agent) {
        Agent::Warp(_) => Conflict::Unordered(cell.pc, true),
        Agent::Barrier(_) => Conflict::NotArrived(cell.pc, cell.write.time != PENDING),
        _ => Conflict::NotArrived(cell.pc, false),
    }
}
