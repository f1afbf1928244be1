//! The execution of a cluster: its blocks, whose warps run in turn.

use super::random::Random;
use super::shared::{BarrierState, Shared};
use super::warp::{Status, Wait, Warp};
use super::{Launch, State, Stop};
use crate::code::{BarrierReduce, Kind};
use crate::fault::FaultKind;

/// Operations that a warp runs before the next one.
const WARP_TURN: u32 = 20_000;
/// The number of consecutive failed waits on mbarriers after which the cluster counts as deadlocked.
const FRUITLESS: u32 = 1_000;

/// Blocks that share a cluster; without clusters each block is one.
pub struct Cluster {
    pub(super) shared: Shared,
    pub(super) warps: Vec<Warp>,
    /// Warps of a block.
    pub(super) each: usize,
    finished: Vec<bool>,
    /// [`Shared::events`] when waits last gave false, and how often they did since.
    fruitless: (u64, u32),
    /// Warp instructions so far.
    executed: u64,
}

impl Cluster {
    /// Blocks at the start of their kernel.
    pub fn new(launch: &Launch<'_>, indices: &[[u32; 3]], random: Option<Random>) -> Cluster {
        let threads: u32 = launch.block.iter().product();
        let each = threads.div_ceil(32);
        let warps: Vec<Warp> =
            indices.iter().flat_map(|_| (0..each).map(|id| Warp::new(launch, id, threads))).collect();
        Cluster {
            shared: Shared::new(launch, indices, random),
            finished: vec![false; warps.len()],
            warps,
            each: each as usize,
            fruitless: (0, 0),
            executed: 0,
        }
    }

    /// Warp instructions that it has executed.
    pub fn executed(&self) -> u64 {
        self.executed
    }

    /// Runs for about `turns` turns of each warp; true if the cluster ended. A fault comes with the block's index.
    pub fn run(&mut self, launch: &Launch<'_>, state: &mut State<'_>, turns: u32) -> Result<bool, (Stop, [u32; 3])> {
        let result = self.take_turns(launch, state, turns);
        if let Some(sanitizer) = &mut state.sanitizer {
            self.report_collected(sanitizer);
            if let Ok(true) = result {
                self.report_barriers(sanitizer);
            }
        }
        result.map_err(|stop| (stop, self.shared.own().index))
    }

    fn take_turns(&mut self, launch: &Launch<'_>, state: &mut State<'_>, turns: u32) -> Result<bool, Stop> {
        let mut order: Vec<usize> = (0..self.warps.len()).collect();
        for _ in 0..turns {
            let mut running = false;
            let mut finished = true;
            if let Some(random) = &mut self.shared.random {
                for i in (1..order.len()).rev() {
                    order.swap(i, random.below(i + 1));
                }
            }
            for i in order.iter().copied() {
                match self.turn(launch, state, i)? {
                    Status::Finished => {}
                    Status::Waiting => finished = false,
                    Status::Running => (running, finished) = (true, false),
                }
                running |= self.release(launch, state);
            }
            if finished {
                return self.check_end().map(|()| true);
            }
            if self.shared.random.as_mut().is_some_and(|random| random.once_in(4)) {
                running |= self.land_any(state)?;
            }
            if !running && !self.unblock(state)? {
                return Err(self.stuck(launch));
            }
        }
        // A copy must complete eventually, even if some warp never stops running.
        if !self.shared.jobs.is_empty() {
            self.land(state, 0)?;
        }
        Ok(false)
    }

    /// One turn of a warp.
    fn turn(&mut self, launch: &Launch<'_>, state: &mut State<'_>, i: usize) -> Result<Status, Stop> {
        if self.finished[i] {
            return Ok(Status::Finished);
        }
        let shared = &mut self.shared;
        shared.rank = i / self.each;
        let warp = &mut self.warps[i];
        warp.wake(shared.completions);
        let mut turn = WARP_TURN;
        if let Some(random) = &mut shared.random {
            let longest = 2 << random.below(8);
            turn = 1 + random.below(longest) as u32;
            if random.once_in(8) {
                warp.expire();
            }
        }
        let before = state.warp_instructions;
        let status = warp.run(launch, state, shared, turn)?;
        self.executed += state.warp_instructions - before;
        if let Some(sanitizer) = &mut state.sanitizer {
            self.report_collected(sanitizer);
        }
        let (shared, warp) = (&mut self.shared, &mut self.warps[i]);
        if status == Status::Finished {
            self.finished[i] = true;
            shared.events += 1;
            warp.finish(state)?;
        }
        if state.warp_instructions > launch.budget {
            let (pc, lane) = warp.position();
            let kind = FaultKind::BudgetExceeded { budget: launch.budget };
            return Err(Stop { kind, pc, warp: (i % self.each) as u32, lane });
        }
        if self.executed / self.shared.blocks.len() as u64 > launch.block_budget {
            let (pc, lane) = self.warps[i].position();
            let kind = FaultKind::BlockBudgetExceeded { budget: launch.block_budget };
            return Err(Stop { kind, pc, warp: (i % self.each) as u32, lane });
        }
        Ok(status)
    }

    /// Resumes the threads of complete barriers; true if there were any.
    fn release(&mut self, launch: &Launch<'_>, state: &mut State<'_>) -> bool {
        let rank = self.shared.rank;
        let mut released = self.release_cluster();
        let (first, last) = (rank * self.each, (rank + 1) * self.each);
        for id in 0..16 {
            let block = &mut self.shared.blocks[rank];
            let barrier = &mut block.barriers[id];
            let expected = barrier.expected.unwrap_or(block.live);
            if barrier.arrived == 0 || barrier.arrived < expected {
                continue;
            }
            let barrier: BarrierState = std::mem::take(barrier);
            released = true;
            self.shared.events += 1;
            if let Some(recorder) = &mut state.recorder {
                recorder.released(self.shared.id, rank, id as u32);
            }
            for (i, warp) in self.warps[first..last].iter_mut().enumerate() {
                let waited = warp.release(Wait::Barrier(id as u32), |pc, registers, mask| {
                    let Kind::Barrier(op) = &launch.code.ops[pc as usize].kind else { return };
                    let Some((reduce, to, _)) = op.reduce else { return };
                    let value = match reduce {
                        BarrierReduce::Count => barrier.held,
                        BarrierReduce::And => u32::from(barrier.failed == 0),
                        BarrierReduce::Or => u32::from(barrier.held > 0),
                    };
                    for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
                        registers[to as usize][lane] = value.into();
                    }
                });
                if let (true, Some(hazards)) = (waited, &mut self.shared.hazards) {
                    hazards.acquire((first + i) as u32, &barrier.knowledge);
                }
            }
        }
        released
    }

    /// The same for `barrier.cluster`.
    fn release_cluster(&mut self) -> bool {
        let live = self.shared.live();
        let cluster = &mut self.shared.cluster;
        if cluster.arrived == 0 || cluster.arrived < live {
            return false;
        }
        cluster.arrived = 0;
        cluster.phase += 1;
        cluster.done = std::mem::take(&mut cluster.gathering);
        let phase = cluster.phase;
        self.shared.events += 1;
        for (i, warp) in self.warps.iter_mut().enumerate() {
            let waited = warp.release(Wait::Cluster(phase), |_, _, _| {});
            if let (true, Some(hazards)) = (waited, &mut self.shared.hazards) {
                hazards.acquire(i as u32, &self.shared.cluster.done);
            }
        }
        true
    }

    /// If no warp can run: the oldest copy completes, otherwise waits on mbarriers return false; false if neither is
    /// possible.
    fn unblock(&mut self, state: &mut State<'_>) -> Result<bool, Stop> {
        if self.warps.iter().any(|warp| warp.sees_news(self.shared.completions)) {
            return Ok(true);
        }
        if !self.shared.jobs.is_empty() {
            self.land(state, 0)?;
            return Ok(true);
        }
        if self.fruitless.0 != self.shared.events {
            self.fruitless = (self.shared.events, 0);
        }
        self.fruitless.1 += 1;
        if self.fruitless.1 > FRUITLESS {
            return Ok(false);
        }
        let mut any = false;
        for warp in &mut self.warps {
            any |= warp.expire();
        }
        Ok(any)
    }

    fn land_any(&mut self, state: &mut State<'_>) -> Result<bool, Stop> {
        let jobs = self.shared.jobs.len();
        let Some(random) = &mut self.shared.random else { return Ok(false) };
        if jobs == 0 {
            return Ok(false);
        }
        let which = random.below(jobs);
        self.land(state, which)?;
        Ok(true)
    }

    /// Work that must not be in flight when the cluster ends.
    fn check_end(&mut self) -> Result<(), Stop> {
        let Some(job) = self.shared.jobs.first() else { return Ok(()) };
        let warp = job.warp as usize;
        self.shared.rank = warp / self.each;
        let kind = FaultKind::PendingAtEnd { writes: true };
        Err(Stop { kind, pc: job.pc, warp: (warp % self.each) as u32, lane: job.lane })
    }

    /// The fault of a deadlocked cluster.
    fn stuck(&mut self, launch: &Launch<'_>) -> Stop {
        let code = launch.code;
        let mut first = None;
        let mut divergent = false;
        let mut parts = Vec::new();
        let clustered = self.shared.blocks.len() > 1;
        for (i, warp) in self.warps.iter().enumerate() {
            let (rank, id) = (i / self.each, i % self.each);
            for group in warp.groups() {
                let place = (group.pc, i, group.mask.trailing_zeros());
                let within = matches!(group.wait, Wait::Together { .. });
                if within && !divergent {
                    divergent = true;
                    first = Some(place);
                }
                first.get_or_insert(place);
                let lanes =
                    if group.mask == u32::MAX { "all lanes".into() } else { format!("lanes {:#010x}", group.mask) };
                let block = if clustered { format!("block {rank} of the cluster, ") } else { String::new() };
                let mut text = format!("{block}warp {id}, {lanes}: {}", super::place(code, group.pc));
                self.shared.rank = rank;
                if let Some(barrier) = warp.waited_mbarrier(launch, &self.shared, group) {
                    text.push_str(&format!(" ({barrier})"));
                }
                parts.push(text);
            }
        }
        let more = parts.len().saturating_sub(8);
        parts.truncate(8);
        let mut waiting = parts.join("; ");
        if more > 0 {
            waiting.push_str(&format!("; and {more} more"));
        }
        let (pc, warp, lane) = first.unwrap_or((0, 0, 0));
        self.shared.rank = warp / self.each;
        let kind = if divergent { FaultKind::DivergentBarrier { waiting } } else { FaultKind::Deadlock { waiting } };
        Stop { kind, pc, warp: (warp % self.each) as u32, lane }
    }
}
