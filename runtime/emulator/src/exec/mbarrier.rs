//! mbarriers: barriers in shared memory that count arrivals and the bytes of asynchronous copies.
//!
//! A phase is complete when no arrival and no byte is outstanding. A wait for an incomplete phase suspends its lanes
//! until a phase of some mbarrier completes, or until no other warp of the cluster can run: then copies complete, one
//! by one, and when there are none left the wait returns false, like the hardware's after its time limit.

use super::access::{aligned, resolve, within};
use super::hazard::clock::{Epoch, Knowledge};
use super::hazard::{Agent, Hazards};
use super::shared::Shared;
use super::step::Step;
use super::warp::{Next, Wait, lanes_where};
use super::{Launch, place};
use crate::code::{MbarrierAction, MbarrierOp, MbarrierTest, NONE, Window};
use crate::fault::{Access, FaultKind};

/// Most arrivals, and most bytes, that an mbarrier counts.
const LIMIT: i64 = (1 << 20) - 1;

/// One mbarrier.
pub struct Mbarrier {
    /// Its number among the agents of the cluster.
    pub number: u32,
    /// Arrivals that a phase needs.
    pub expected: u32,
    /// Arrivals outstanding.
    pub pending: u32,
    /// Bytes outstanding; negative if more arrived than were announced so far.
    pub bytes: i64,
    /// Phases that are over.
    pub phase: u32,
    /// When it was initialised.
    init: Epoch,
    /// The operation that did.
    init_pc: u32,
    /// Whether asynchronous copies see it.
    fenced: bool,
    /// The joined clocks of the arrivals in this phase.
    gathering: Knowledge,
    /// The same of the phases that are over.
    done: Knowledge,
}

impl Mbarrier {
    /// The initialization, if no fence has made it visible to asynchronous copies.
    pub fn unseen_init(&self) -> Option<u32> {
        (!self.fenced).then_some(self.init_pc)
    }

    /// Whether the phase with a parity is over.
    pub fn is_over(&self, parity: u32) -> bool {
        self.phase & 1 != parity & 1
    }

    /// Its state, for messages.
    pub fn describe(&self, address: u32) -> String {
        format!(
            "mbarrier {address:#x}: phase {}, {} of {} arrivals and {} bytes outstanding",
            self.phase, self.pending, self.expected, self.bytes
        )
    }
}

impl Shared {
    /// The block and the address in it of an mbarrier operand.
    pub(super) fn mbarrier_at(&self, window: Window, address: u64) -> Result<(usize, u32), FaultKind> {
        aligned(window, Access::Atomic, address, 8)?;
        let (window, at) = resolve(window, address);
        if window != Window::Shared {
            let text = format!("{address:#x} is not an address in shared memory, where mbarriers are");
            return Err(FaultKind::InvalidInstruction(text));
        }
        let (block, at) = self.locate(at);
        let start = within(window, Access::Atomic, at, 8, self.blocks[block].bytes.len())?;
        Ok((block, start as u32))
    }

    /// An mbarrier that a warp uses.
    pub fn mbarrier(
        &mut self,
        (block, address): (usize, u32),
        warp: u32,
        launch: &Launch<'_>,
    ) -> Result<&mut Mbarrier, FaultKind> {
        let Shared { blocks, hazards, .. } = self;
        let Some(barrier) = blocks[block].mbarriers.get_mut(&address) else {
            return Err(FaultKind::NotInitialized { address: address.into() });
        };
        if let Some(hazards) = hazards
            && !hazards.known(warp).covers(barrier.init)
        {
            let init = place(launch.code, barrier.init_pc);
            return Err(FaultKind::InitNotVisible { address: address.into(), init, fence: false });
        }
        Ok(barrier)
    }

    /// Arrivals at an mbarrier, with their clocks.
    pub fn arrive(&mut self, at: (usize, u32), count: u32, knowledge: &Knowledge) -> Result<(), FaultKind> {
        self.events += 1;
        let Some(barrier) = self.blocks[at.0].mbarriers.get_mut(&at.1) else { return Ok(()) };
        if count > barrier.pending {
            let message = format!(
                "{count} arrivals where {} of {} are outstanding in phase {}",
                barrier.pending, barrier.expected, barrier.phase
            );
            return Err(FaultKind::MbarrierMisuse { address: at.1.into(), message });
        }
        barrier.pending -= count;
        barrier.gathering.join(knowledge);
        self.complete(at);
        Ok(())
    }

    /// Announces bytes (or, negative, that they are there).
    pub fn count_bytes(&mut self, at: (usize, u32), bytes: i64) -> Result<(), FaultKind> {
        self.events += 1;
        let Some(barrier) = self.blocks[at.0].mbarriers.get_mut(&at.1) else { return Ok(()) };
        barrier.bytes += bytes;
        if barrier.bytes.abs() > LIMIT {
            let message = format!("{} bytes outstanding are more than an mbarrier counts", barrier.bytes);
            return Err(FaultKind::MbarrierMisuse { address: at.1.into(), message });
        }
        Ok(())
    }

    /// Ends the phase of an mbarrier if nothing is outstanding.
    pub fn complete(&mut self, at: (usize, u32)) {
        let Shared { blocks, hazards, completions, .. } = self;
        let Some(barrier) = blocks[at.0].mbarriers.get_mut(&at.1) else { return };
        if barrier.pending != 0 || barrier.bytes != 0 {
            return;
        }
        barrier.phase += 1;
        barrier.pending = barrier.expected;
        *completions += 1;
        let gathered = std::mem::take(&mut barrier.gathering);
        barrier.done.join(&gathered);
        if let Some(hazards) = hazards {
            let agent = hazards.agents.number(Agent::Barrier(barrier.number));
            barrier.done.seen.raise(agent, barrier.phase);
        }
    }

    /// A fence after which asynchronous copies see the initialized mbarriers in a warp's clock.
    pub fn show_mbarriers(&mut self, warp: u32) {
        let Some(hazards) = &self.hazards else { return };
        for barrier in self.blocks.iter_mut().flat_map(|block| block.mbarriers.values_mut()) {
            barrier.fenced |= hazards.known(warp).covers(barrier.init);
        }
    }
}

/// Knowledge of a warp that arrives.
pub fn published(hazards: &mut Option<Box<Hazards>>, warp: u32, relaxed: bool) -> Knowledge {
    hazards.as_mut().map(|h| h.publish(warp, relaxed)).unwrap_or_default()
}

impl Step<'_, '_> {
    pub(super) fn mbarrier(&mut self, op: &MbarrierOp) -> Result<(), (FaultKind, u32)> {
        let addresses = self.addresses(op.address);
        let counts = op.count.map(|s| *self.source(s));
        let bytes = op.bytes.map(|s| *self.source(s));
        let mut states = [0; 32];
        let warp = self.index();
        let mut knowledge = None;
        for lane in self.lanes() {
            let i = lane as usize;
            let fail = |kind| (kind, lane);
            let at = self.shared.mbarrier_at(op.address.window, addresses[i]).map_err(fail)?;
            let count = counts.map_or(1, |c| c[i] as u32);
            if op.action == MbarrierAction::Init {
                self.init_mbarrier(at, warp, count).map_err(fail)?;
                continue;
            }
            let misuse = |message: String| fail(FaultKind::MbarrierMisuse { address: at.1.into(), message });
            let barrier = self.shared.mbarrier(at, warp, self.launch).map_err(fail)?;
            states[i] = u64::from(barrier.phase) << 32 | u64::from(barrier.pending);
            let (pending, expected, phase) = (barrier.pending, barrier.expected, barrier.phase);
            if let Some(bytes) = bytes {
                let bytes = i64::from(bytes[i] as u32);
                let sign = if op.action == MbarrierAction::CompleteTx { -1 } else { 1 };
                self.shared.count_bytes(at, sign * bytes).map_err(fail)?;
            }
            match op.action {
                MbarrierAction::Inval => {
                    self.shared.blocks[at.0].mbarriers.remove(&at.1);
                }
                MbarrierAction::CompleteTx => self.shared.complete(at),
                MbarrierAction::Arrive | MbarrierAction::ArriveDrop => {
                    if op.no_complete && count >= pending {
                        return Err(misuse(format!(
                            "`.noComplete` ends phase {phase}: {pending} arrivals outstanding"
                        )));
                    }
                    if op.action == MbarrierAction::ArriveDrop {
                        if count > expected {
                            return Err(misuse(format!("{count} arrivals are dropped, a phase has only {expected}")));
                        }
                        if let Some(barrier) = self.shared.blocks[at.0].mbarriers.get_mut(&at.1) {
                            barrier.expected -= count;
                        }
                    }
                    let known = knowledge.get_or_insert_with(|| published(&mut self.shared.hazards, warp, op.relaxed));
                    self.shared.arrive(at, count, known).map_err(fail)?;
                }
                MbarrierAction::Init | MbarrierAction::ExpectTx => {}
            }
        }
        if op.state != NONE {
            self.write(op.state, &states);
        }
        Ok(())
    }

    fn init_mbarrier(&mut self, at: (usize, u32), warp: u32, count: u32) -> Result<(), FaultKind> {
        let misuse = |message: String| FaultKind::MbarrierMisuse { address: at.1.into(), message };
        if count == 0 || i64::from(count) > LIMIT {
            return Err(misuse(format!("{count} arrivals are not in 1 to {LIMIT}")));
        }
        let near = self.shared.blocks[at.0].mbarriers.range(at.1.saturating_sub(7)..at.1 + 8).next();
        if near.is_some() {
            return Err(misuse("initialised again without `mbarrier.inval`".into()));
        }
        let hazards = self.shared.hazards.as_mut();
        let (number, init) = hazards.map_or((0, Epoch::default()), |h| (h.new_barrier(), h.now(warp)));
        let barrier = Mbarrier {
            number,
            expected: count,
            pending: count,
            bytes: 0,
            phase: 0,
            init,
            init_pc: self.warp.pc,
            fenced: false,
            gathering: Knowledge::default(),
            done: Knowledge::default(),
        };
        self.shared.blocks[at.0].mbarriers.insert(at.1, barrier);
        self.shared.events += 1;
        Ok(())
    }

    /// `test_wait` and `try_wait`.
    pub(super) fn mbarrier_test(&mut self, test: &MbarrierTest) -> Result<Next, (FaultKind, u32)> {
        let addresses = self.addresses(test.address);
        let values = *self.source(test.value);
        let warp = self.index();
        let mut over = [0; 32];
        for lane in self.lanes() {
            let i = lane as usize;
            let fail = |kind| (kind, lane);
            let at = self.shared.mbarrier_at(test.address.window, addresses[i]).map_err(fail)?;
            if at.0 != self.shared.rank {
                let text = "an mbarrier of another block cannot be waited for";
                return Err(fail(FaultKind::InvalidInstruction(text.into())));
            }
            let barrier = self.shared.mbarrier(at, warp, self.launch).map_err(fail)?;
            let is_over =
                if test.parity { barrier.is_over(values[i] as u32) } else { barrier.phase != (values[i] >> 32) as u32 };
            over[i] = u64::from(is_over);
        }
        let open = lanes_where(self.active, |lane| over[lane] == 0);
        if open != 0 && self.group.wait != Wait::Expired {
            self.warp.split_waiting(self.group, self.active, Wait::Poll(self.shared.completions));
            self.group.pc += 1;
            return Ok(Next::Choose);
        }
        self.group.wait = Wait::No;
        if open == 0 && self.state.recorder.is_some() {
            self.record_wait(test.address.window, addresses);
        }
        for lane in (0..32).filter(|lane| !test.relaxed && (self.active & !open) >> lane & 1 == 1) {
            let (_, at) = resolve(test.address.window, addresses[lane]);
            let Shared { blocks, hazards, rank, .. } = &mut *self.shared;
            if let (Some(hazards), Some(barrier)) = (hazards, blocks[*rank].mbarriers.get(&(at as u32))) {
                hazards.acquire(warp, &barrier.done);
            }
        }
        self.write(test.to, &over);
        Ok(Next::Step)
    }
}
