//! A warp: 32 lanes in lock step, in groups where they diverge.
//!
//! A group is a set of lanes at the same operation with the same call stack. The group that is deepest in calls, then
//! lowest in the code, runs first, until it reaches another group's position, where both are merged. So lanes
//! reconverge at the earliest operation that both reach. At an instruction that needs lanes together (`shfl.sync`,
//! `bar.sync`, …) the group waits until all its lanes have come to the same instruction; this needs no reconvergence
//! analysis and works for any control flow. A group that runs long while others could run yields to them, so a lane
//! that waits for another lane's store makes progress.

use super::bulk::Bulk;
use super::product::Products;
use super::sanitize::Defined;
use super::shared::Shared;
use super::step::Step;
use super::wrap::Wraps;
use super::{Launch, State, Stop};
use crate::alu::{AluFn, Lanes};
use crate::code::{CONSTANT, Kind, NEGATED, NONE, Reg, Src};
use crate::exec::copy::Copies;
use crate::fault::FaultKind;
use crate::sanitize::Check;

/// Operations that a group runs while other groups of its warp could run too.
const GROUP_TURN: u32 = 2_000;

/// The next step of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Its turn is over.
    Running,
    /// All lanes left wait.
    Waiting,
    /// All lanes ended.
    Finished,
}

/// The object of a group's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing.
    No,
    /// The lanes of a mask, at the same instruction.
    Together {
        /// The lanes that must come.
        needed: u32,
    },
    /// A barrier of the block.
    Barrier(u32),
    /// A release of the cluster's barrier, by number.
    Cluster(u32),
    /// An mbarrier's phase; the completions seen so far.
    Poll(u64),
    /// Nothing any more: a wait on an mbarrier that gives up.
    Expired,
}

/// A function's activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// First register.
    pub registers: u32,
    /// First byte in local memory.
    pub local: u32,
    /// End of its local memory.
    pub top: u32,
    /// The call that made it.
    pub call: u32,
}

/// Lanes at the same place.
#[derive(Clone, Debug)]
pub struct Group {
    /// Next operation.
    pub pc: u32,
    /// Its lanes.
    pub mask: u32,
    /// Activations, the kernel's first.
    pub frames: Vec<Frame>,
    /// The object of its wait.
    pub wait: Wait,
}

impl Group {
    pub(super) fn frame(&self) -> Frame {
        *self.frames.last().expect("the kernel's frame is never popped")
    }
}

/// A warp of a block.
pub struct Warp {
    /// Index in the block.
    pub id: u32,
    /// Lanes that have not ended.
    pub live: u32,
    /// Registers of all frames.
    pub registers: Vec<Lanes>,
    /// Local memory of each lane.
    pub local: Vec<Vec<u8>>,
    /// Asynchronous copies in flight.
    pub copies: Copies,
    /// The allocation of the last global access.
    pub hint: usize,
    /// Registers that hold less than was computed.
    pub(super) wraps: Wraps,
    /// Bulk copies out of shared memory.
    pub(super) bulk: Bulk,
    /// `wgmma`s in flight.
    pub(super) products: Products,
    /// Registers that were written, where that is checked.
    pub(super) defined: Option<Box<Defined>>,
    /// Lanes that the warp has.
    pub(super) started: u32,
    /// Lanes that arrived at the cluster's barrier and did not wait yet.
    pub(super) cluster_arrived: u32,
    /// The phase of each lane's last arrival.
    pub(super) cluster_phase: [u32; 32],
    /// The operation being executed.
    pub(super) pc: u32,
    pub(super) groups: Vec<Group>,
    /// Lanes of the group that used up its turn.
    avoid: u32,
}

/// Why a group's turn ended.
pub(super) enum Next {
    /// At the next operation.
    Step,
    /// At another operation.
    Jump(u32),
    /// The group was split, waits, or ended: choose again.
    Choose,
    /// Like `Step`, and the rest of the turn is given up.
    Yield,
}

impl Warp {
    /// A warp at the start of the kernel.
    pub fn new(launch: &Launch<'_>, id: u32, threads: u32) -> Warp {
        let lanes = (threads - id * 32).min(32);
        let live = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
        let function = &launch.code.functions[launch.kernel];
        let top = function.frame_bytes;
        let frame = Frame { registers: 0, local: 0, top, call: 0 };
        let group = Group { pc: function.start, mask: live, frames: vec![frame], wait: Wait::No };
        Warp {
            id,
            live,
            registers: vec![[0; 32]; function.registers as usize],
            local: vec![vec![0; top as usize]; 32],
            copies: Copies::default(),
            hint: 0,
            wraps: Wraps::new(),
            bulk: Bulk::default(),
            products: Products::new(launch.code.products, function.registers),
            defined: launch.checks.has(Check::Init).then(Box::default),
            started: live,
            cluster_arrived: 0,
            cluster_phase: [0; 32],
            pc: 0,
            groups: vec![group],
            avoid: 0,
        }
    }

    /// The groups, for messages.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// An operation and one of its lanes, for messages.
    pub fn position(&self) -> (u32, u32) {
        self.groups.first().map_or((0, 0), |g| (g.pc, g.mask.trailing_zeros()))
    }

    /// Runs up to `turn` operations.
    pub fn run(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &mut Shared,
        turn: u32,
    ) -> Result<Status, Stop> {
        let mut left = turn;
        while left > 0 {
            let Some(index) = self.choose() else {
                return Ok(if self.live == 0 { Status::Finished } else { Status::Waiting });
            };
            let group = self.groups.swap_remove(index);
            let used = self.run_group(launch, state, shared, group, left)?;
            left = left.saturating_sub(used.max(1));
        }
        Ok(Status::Running)
    }

    /// Its index in the cluster.
    pub(super) fn index(&self, launch: &Launch<'_>, shared: &Shared) -> u32 {
        shared.rank as u32 * launch.block.iter().product::<u32>().div_ceil(32) + self.id
    }

    /// Joins groups at the same place and picks the one to run; `None` if none can.
    fn choose(&mut self) -> Option<usize> {
        self.groups.retain(|g| g.mask != 0);
        let mut i = 0;
        while i < self.groups.len() {
            let mut j = i + 1;
            while j < self.groups.len() {
                let (a, b) = (&self.groups[i], &self.groups[j]);
                let joins = |g: &Group| !matches!(g.wait, Wait::Barrier(_) | Wait::Cluster(_) | Wait::Expired);
                if a.pc == b.pc && joins(a) && joins(b) && a.frames == b.frames {
                    let other = self.groups.swap_remove(j);
                    self.groups[i].mask |= other.mask;
                    self.groups[i].wait = Wait::No;
                } else {
                    j += 1;
                }
            }
            i += 1;
        }
        for group in &mut self.groups {
            if let Wait::Together { needed } = group.wait
                && needed & self.live & !group.mask == 0
            {
                group.wait = Wait::No;
            }
        }
        let avoid = std::mem::take(&mut self.avoid);
        let ready = |g: &&(usize, &Group)| matches!(g.1.wait, Wait::No | Wait::Expired);
        let order = |g: &(usize, &Group)| (g.1.mask == avoid, std::cmp::Reverse(g.1.frames.len()), g.1.pc);
        self.groups.iter().enumerate().filter(|g| ready(&g)).min_by_key(order).map(|(i, _)| i)
    }

    /// Runs one group until it has to stop; returns the operations used.
    fn run_group(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &mut Shared,
        mut group: Group,
        left: u32,
    ) -> Result<u32, Stop> {
        let others = self.groups.iter().filter(|g| g.wait == Wait::No);
        let diverged = others.clone().next().is_some();
        let depth = group.frames.len();
        let meet =
            others.filter(|g| g.frames.len() == depth && g.pc > group.pc).map(|g| g.pc).min().unwrap_or(u32::MAX);
        let turn = if diverged { left.min(GROUP_TURN) } else { left };
        let (mut steps, mut threads, mut instructions) = (0, 0u64, 0u64);
        let ops = launch.code.ops.as_slice();
        let base = group.frame().registers as usize;
        let checked = self.products.checked;
        let counts = state.counting.is_some();
        let records = state.recorder.as_ref().is_some_and(|recorder| recorder.watches(shared.id));
        let watched = checked || self.defined.is_some();
        let result = loop {
            if steps >= turn {
                self.avoid = group.mask;
                self.groups.push(group);
                break Ok(steps);
            }
            if group.pc >= meet {
                self.groups.push(group);
                break Ok(steps);
            }
            steps += 1;
            let op = &ops[group.pc as usize];
            let active = if op.guard == NONE { group.mask } else { group.mask & self.guard(base, op.guard) };
            if counts && active != 0 {
                state.counting.iter_mut().for_each(|counting| counting.executed(group.pc, active));
            }
            if records {
                self.record_issue(launch, state, shared, &group, active != 0);
            }
            instructions += u64::from(op.weight);
            threads += u64::from(op.weight * active.count_ones());
            if let Kind::Alu(function, to, sources) = &op.kind {
                match op.wrap {
                    Some(rule) => self.follow(launch.constants, base, active, (rule, group.pc), *to, sources),
                    None if self.wraps.is_empty() => {}
                    None => self.forget_wraps((base as u32).wrapping_add(*to), active),
                }
                if watched {
                    if checked && let Err((kind, lane)) = self.products.alu(launch, base, *to, sources, active) {
                        break Err(Stop { kind, pc: group.pc, warp: self.id, lane });
                    }
                    self.follow_defined(launch, base, op, active);
                }
                self.alu(launch.constants, base, active, *function, *to, sources);
                group.pc += 1;
                continue;
            }
            if launch.is_interrupted() {
                break Err(Stop { kind: FaultKind::Interrupted, pc: group.pc, warp: self.id, lane: 0 });
            }
            self.pc = group.pc;
            let frame = group.frame();
            let mut step = Step { warp: self, launch, state, shared, group: &mut group, frame, active };
            match step.execute(&op.kind) {
                Ok(Next::Step) => group.pc += 1,
                Ok(Next::Jump(pc)) => group.pc = pc,
                Ok(Next::Yield) => {
                    group.pc += 1;
                    self.avoid = group.mask;
                    self.groups.push(group);
                    break Ok(left);
                }
                Ok(Next::Choose) => {
                    self.groups.push(group);
                    break Ok(steps);
                }
                Err((kind, lane)) => break Err(Stop { kind, pc: group.pc, warp: self.id, lane }),
            }
        };
        state.warp_instructions += instructions;
        state.thread_instructions += threads;
        result
    }

    fn guard(&self, base: usize, guard: u32) -> u32 {
        let negated = guard & NEGATED != 0;
        let mask = mask_of(&self.registers[base + (guard & !NEGATED) as usize]);
        if negated { !mask } else { mask }
    }

    /// The lanes of a source.
    pub(super) fn source<'a>(&'a self, constants: &'a [Lanes], base: usize, source: Src) -> &'a Lanes {
        if source & CONSTANT != 0 {
            &constants[(source & !CONSTANT) as usize]
        } else {
            &self.registers[base + source as usize]
        }
    }

    #[inline]
    pub(super) fn alu(
        &mut self,
        constants: &[Lanes],
        base: usize,
        active: u32,
        function: AluFn,
        to: Reg,
        sources: &[Src; 4],
    ) {
        let mut result = [0; 32];
        let all = sources.map(|source| self.source(constants, base, source));
        function(&all, &mut result);
        self.write(base, to, active, &result);
    }

    /// Writes the active lanes of a register; nothing for [`NONE`].
    pub(super) fn write(&mut self, base: usize, to: Reg, active: u32, values: &Lanes) {
        if to == NONE {
            return;
        }
        let register = &mut self.registers[base + to as usize];
        if active == u32::MAX {
            *register = *values;
        } else {
            for lane in 0..32 {
                if active >> lane & 1 == 1 {
                    register[lane] = values[lane];
                }
            }
        }
    }

    /// A register to be written in all lanes; none for [`NONE`].
    pub(super) fn register(&mut self, frame: Frame, to: Reg) -> Option<&mut Lanes> {
        if to == NONE {
            return None;
        }
        Some(&mut self.registers[frame.registers as usize + to as usize])
    }

    /// Takes `lanes` out of the group and puts them at `pc`.
    pub(super) fn split(&mut self, group: &mut Group, lanes: u32, pc: u32) {
        group.mask &= !lanes;
        self.groups.push(Group { pc, mask: lanes, frames: group.frames.clone(), wait: Wait::No });
    }

    /// Adds a group.
    pub(super) fn push_group(&mut self, group: Group) {
        self.groups.push(group);
    }

    /// As [`Warp::split`], waiting.
    pub(super) fn split_waiting(&mut self, group: &mut Group, lanes: u32, wait: Wait) {
        group.mask &= !lanes;
        self.groups.push(Group { pc: group.pc, mask: lanes, frames: group.frames.clone(), wait });
    }
}

/// The lanes in which a predicate register is true.
pub fn mask_of(lanes: &Lanes) -> u32 {
    let mut mask = 0;
    for (i, value) in lanes.iter().enumerate() {
        mask |= ((*value & 1) as u32) << i;
    }
    mask
}

/// The lanes of `mask` that fulfil a condition.
pub fn lanes_where(mask: u32, condition: impl Fn(usize) -> bool) -> u32 {
    (0..32).filter(|lane| mask >> lane & 1 == 1 && condition(*lane)).fold(0, |all, lane| all | 1 << lane)
}
