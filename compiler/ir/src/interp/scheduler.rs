//! The scheduling of warp groups.
//!
//! A program starts with one warp group, which runs the body of the kernel. An operation that starts others calls
//! [`Machine::start_groups`], and one that must wait calls [`Machine::wait_for`]. A turn ends when the group ends, has
//! to wait, or has run its budget of operations. Asynchronous copies complete as late as possible: one completes when
//! all groups wait, or when one has waited for long. When all wait and no copy is in flight, the launch ends with
//! [`FaultKind::Deadlock`].

use std::collections::VecDeque;

use super::copies::Pending;
use super::frame::{Exit, RunOutcome, WarpGroup};
use super::machine::{Machine, Stop};
use super::shared::{BarrierId, SharedMemory};
use super::{FaultKind, Waiting};
use crate::{Block, Op, Phase};

/// The order in which the warp groups of a program run. The result of a kernel without races does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// One after the other, all for equally many operations; the oldest copy arrives first.
    RoundRobin,
    /// As a generator of random numbers with this seed says.
    Random(u64),
}

/// The budget of operations of a turn.
const TURN: u64 = 64;
/// After so many turns a copy completes, if a group waits: a group that can run may be spinning on the other.
const PATIENCE: u32 = 64;

/// The other warp groups of a program, and which of them is next.
pub(crate) struct Turns {
    schedule: Schedule,
    /// The state of the generator.
    state: u64,
    /// In the order of their last turns.
    parked: VecDeque<WarpGroup>,
    /// How many the program has started, in addition to the first one.
    started: u32,
    /// The number of turns since a copy completed.
    since_arrival: u32,
}

impl Turns {
    pub(crate) fn new(schedule: Schedule) -> Turns {
        let state = if let Schedule::Random(seed) = schedule { seed } else { 0 };
        Turns { schedule, state, parked: VecDeque::new(), started: 0, since_arrival: 0 }
    }

    /// A number below `count`: the first, or a random one.
    pub(crate) fn pick(&mut self, count: usize) -> usize {
        match self.schedule {
            Schedule::RoundRobin => 0,
            Schedule::Random(_) => (self.random() % count.max(1) as u64) as usize,
        }
    }

    fn length(&mut self) -> u64 {
        match self.schedule {
            Schedule::RoundRobin => TURN,
            Schedule::Random(_) => 1 + self.random() % TURN,
        }
    }

    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The object of a warp group's wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// For these warp groups to end.
    Ended(Vec<u32>),
    /// For the phase of this parity of a barrier to complete.
    Phase {
        /// The barrier.
        barrier: BarrierId,
        /// 0 or 1.
        parity: u32,
    },
}

impl Machine<'_> {
    /// Runs the body of the kernel as a program, whose parameters are set.
    pub(crate) fn run_program(&mut self) -> Result<(), Stop> {
        self.shared = SharedMemory::new(self.kernel.phase != Phase::Scheduled);
        self.turns.started = 0;
        self.turns.since_arrival = 0;
        self.group.pending = Pending::default();
        self.group.push(self.kernel, self.kernel.body(), Exit::Return);
        self.run_groups()
    }

    /// Runs all warp groups until they have ended.
    fn run_groups(&mut self) -> Result<(), Stop> {
        loop {
            // One that is alone need not stop for others.
            let alone = self.turns.parked.is_empty();
            let length = if alone { u64::MAX } else { self.turns.length() };
            let turn = self.turn(length)?;
            if turn == RunOutcome::Done {
                self.end_copies()?;
            }
            match turn {
                RunOutcome::Done if alone => return Ok(()),
                RunOutcome::Done => {}
                RunOutcome::Blocked | RunOutcome::Paused => self.park(),
            }
            self.resume()?;
        }
    }

    /// Ends the turn of the running warp group.
    fn park(&mut self) {
        let idle = WarpGroup::new(self.group.id, Vec::new());
        self.turns.parked.push_back(std::mem::replace(&mut self.group, idle));
    }

    /// Resumes a parked warp group that can run.
    fn resume(&mut self) -> Result<(), Stop> {
        loop {
            let able: Vec<usize> = (0..self.turns.parked.len()).filter(|i| self.can_go_on(*i)).collect();
            let overdue = self.turns.since_arrival >= PATIENCE && able.len() < self.turns.parked.len();
            let choice = able.get(self.turns.pick(able.len()));
            if let Some(group) = choice.filter(|_| !overdue).and_then(|i| self.turns.parked.remove(*i)) {
                self.turns.since_arrival += 1;
                self.group = group;
                self.group.wait = None;
                return Ok(());
            }
            self.turns.since_arrival = 0;
            let which = self.turns.pick(self.shared.in_flight().count());
            let copy = self.shared.in_flight().nth(which);
            match copy {
                Some(copy) => {
                    if let Err(error) = self.shared.complete(copy) {
                        self.show_first();
                        return Err(self.stop(FaultKind::Shared(error)));
                    }
                }
                None if able.is_empty() => return Err(self.deadlock()),
                None => {}
            }
        }
    }

    /// Whether a parked warp group does not wait, or no longer.
    fn can_go_on(&self, index: usize) -> bool {
        match &self.turns.parked[index].wait {
            None => true,
            Some(Wait::Ended(groups)) => !self.turns.parked.iter().any(|g| groups.contains(&g.id)),
            Some(Wait::Phase { barrier, parity }) => self.shared.try_wait(*barrier, *parity) == Ok(true),
        }
    }

    /// The fault when all warp groups wait: at the first one, with what each waits for.
    fn deadlock(&mut self) -> Stop {
        self.turns.parked.make_contiguous().sort_by_key(|g| g.id);
        let waiting = self.turns.parked.iter().map(|g| self.waiting(g)).collect();
        self.show_first();
        self.stop(FaultKind::Deadlock(waiting))
    }

    /// Makes a parked warp group the running one, so that a fault is shown at its operation.
    fn show_first(&mut self) {
        if let Some(first) = self.turns.parked.pop_front() {
            self.group = first;
        }
    }

    fn waiting(&self, group: &WarpGroup) -> Waiting {
        let data = group.current.map(|op| self.kernel.op(op));
        let reason = match &group.wait {
            None => String::new(),
            Some(Wait::Ended(groups)) => {
                let partitions: Vec<String> = groups.iter().map(|id| id.saturating_sub(1).to_string()).collect();
                format!("partitions {} to end", partitions.join(", "))
            }
            Some(Wait::Phase { barrier, parity }) => self.shared.describe(*barrier, *parity),
        };
        Waiting {
            group: group.id,
            op: data.map_or("kernel", |d| d.kind.spec().mnemonic),
            span: data.and_then(|d| self.spans(d.loc).first().copied()),
            reason,
        }
    }
}

impl Machine<'_> {
    /// Runs the partitions of a `warp_specialize`, each as a warp group, and waits until they have ended.
    pub(crate) fn run_partitions(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let groups = self.start_groups(&kernel.op(op).blocks);
        self.wait_for(Wait::Ended(groups));
        self.tick(1)
    }

    /// Starts a warp group on each block, with the values of the running one; returns their numbers. They first run
    /// after the running group's turn has ended.
    fn start_groups(&mut self, blocks: &[Block]) -> Vec<u32> {
        let start = |block: &Block| {
            self.turns.started += 1;
            let mut group = WarpGroup::new(self.turns.started, self.group.values.clone());
            group.push(self.kernel, *block, Exit::Return);
            self.turns.parked.push_back(group);
            self.turns.started
        };
        blocks.iter().map(start).collect()
    }

    /// Ends the turn of the running warp group after the operation; it resumes once the wait is over.
    pub(crate) fn wait_for(&mut self, wait: Wait) {
        self.group.wait = Some(wait);
    }
}

#[cfg(test)]
mod tests;
