//! A block: its warps, shared memory and barriers.

use super::warp::{Status, Wait, Warp};
use super::{Launch, State, Stop};
use crate::code::{BarrierReduce, Kind};
use crate::fault::FaultKind;

/// Operations that a warp runs before the next one gets its turn.
const WARP_TURN: u32 = 20_000;

/// What threads of a block share.
pub struct Shared {
    /// Index of the block.
    pub index: [u32; 3],
    /// Shared memory, static and dynamic.
    pub bytes: Vec<u8>,
    /// The 16 barriers.
    pub barriers: [BarrierState; 16],
    /// Threads that have not ended.
    pub live: u32,
}

/// A barrier that threads arrive at.
#[derive(Clone, Copy, Default)]
pub struct BarrierState {
    /// Threads that arrived since the last release.
    pub arrived: u32,
    /// Threads needed, if told by an arrival.
    pub expected: Option<u32>,
    /// Predicates that were true.
    pub held: u32,
    /// Predicates that were false.
    pub failed: u32,
}

/// One block in execution.
pub struct Block {
    shared: Shared,
    warps: Vec<Warp>,
}

impl Block {
    /// A block at the start of its kernel.
    pub fn new(launch: &Launch<'_>, index: [u32; 3]) -> Block {
        let threads: u32 = launch.block.iter().product();
        let bytes = launch.code.static_shared + launch.dynamic_shared;
        let shared =
            Shared { index, bytes: vec![0; bytes as usize], barriers: [BarrierState::default(); 16], live: threads };
        let warps = (0..threads.div_ceil(32)).map(|id| Warp::new(launch, id, threads)).collect();
        Block { shared, warps }
    }

    /// Index of the block in the grid.
    pub fn index(&self) -> [u32; 3] {
        self.shared.index
    }

    /// Runs for about `turns` turns of each warp; true if the block ended.
    pub fn run(&mut self, launch: &Launch<'_>, state: &mut State<'_>, turns: u32) -> Result<bool, Stop> {
        for _ in 0..turns {
            let mut running = false;
            let mut finished = true;
            for i in 0..self.warps.len() {
                let warp = &mut self.warps[i];
                match warp.run(launch, state, &mut self.shared, WARP_TURN)? {
                    Status::Finished => {}
                    Status::Waiting => finished = false,
                    Status::Running => (running, finished) = (true, false),
                }
                if state.warp_instructions > launch.budget {
                    let (pc, lane) = self.warps[i].position();
                    let kind = FaultKind::BudgetExceeded { budget: launch.budget };
                    return Err(Stop { kind, pc, warp: i as u32, lane });
                }
                running |= self.release(launch);
            }
            if finished {
                return Ok(true);
            }
            if !running {
                return Err(self.stuck(launch));
            }
        }
        Ok(false)
    }

    /// Lets the threads of complete barriers go on; true if there were any.
    fn release(&mut self, launch: &Launch<'_>) -> bool {
        let mut released = false;
        for id in 0..16 {
            let barrier = self.shared.barriers[id];
            let expected = barrier.expected.unwrap_or(self.shared.live);
            if barrier.arrived == 0 || barrier.arrived < expected {
                continue;
            }
            self.shared.barriers[id] = BarrierState::default();
            released = true;
            for warp in &mut self.warps {
                warp.release(id as u32, |pc, registers, mask| {
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
            }
        }
        released
    }

    /// The fault of a block in which nobody can go on.
    fn stuck(&self, launch: &Launch<'_>) -> Stop {
        let code = launch.code;
        let describe = |pc: u32| {
            let origin = code.origins[pc as usize];
            format!("`{}` at PTX line {}", code.instructions[origin.instruction as usize], origin.line)
        };
        let mut first = None;
        let mut divergent = false;
        let mut parts = Vec::new();
        for (i, warp) in self.warps.iter().enumerate() {
            for group in warp.groups() {
                let place = (group.pc, i as u32, group.mask.trailing_zeros());
                let within = matches!(group.wait, Wait::Together { .. });
                if within && !divergent {
                    divergent = true;
                    first = Some(place);
                }
                first.get_or_insert(place);
                let lanes =
                    if group.mask == u32::MAX { "all lanes".into() } else { format!("lanes {:#010x}", group.mask) };
                parts.push(format!("warp {i}, {lanes}: {}", describe(group.pc)));
            }
        }
        let more = parts.len().saturating_sub(8);
        parts.truncate(8);
        let mut waiting = parts.join("; ");
        if more > 0 {
            waiting.push_str(&format!("; and {more} more"));
        }
        let (pc, warp, lane) = first.unwrap_or((0, 0, 0));
        let kind = if divergent { FaultKind::DivergentBarrier { waiting } } else { FaultKind::Deadlock { waiting } };
        Stop { kind, pc, warp, lane }
    }
}
