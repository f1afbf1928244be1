//! Bulk copies: linear ones and boxes of tensors, into shared memory (completing at an mbarrier) and out of it (in
//! groups of their thread). Everything happens as late as possible: data arrives when no warp can run without it,
//! leaves shared memory at the wait for its group's reads, and reaches global memory at the wait for the group or at
//! the thread's end.

use super::access::{aligned, from_bytes};
use super::atomics::{Unit, combine};
use super::cluster::Cluster;
use super::hazard::clock::{Epoch, Knowledge};
use super::hazard::shadow::How;
use super::hazard::{Agent, PENDING, Touch};
use super::shared::Shared;
use super::step::Step;
use super::tensor_copy::{Ends, TensorBox, read_box, rows, write_swizzled};
use super::warp::Warp;
use super::{State, Stop};
use crate::code::{AtomicOp, Window};
use crate::fault::{Access, FaultKind};
use crate::tensor_map::ElementType;
use rtc_ptx::Modifier;

/// A copy that completes at an mbarrier.
pub struct Job {
    /// Its operation.
    pub pc: u32,
    /// The warp that issued it, in the cluster.
    pub warp: u32,
    /// The lane.
    pub lane: u32,
    /// The data.
    pub source: Source,
    /// Where to; several for a multicast.
    pub targets: Vec<Target>,
}

/// The source of a copy into shared memory.
pub enum Source {
    /// A box of a tensor.
    Tensor(TensorBox),
    /// Global memory from an address.
    Global(u64),
    /// Shared memory of a block.
    Shared(usize, u32),
    /// The `cp.async`s of some lanes, as many as were issued by then.
    Copies(u32, u32),
}

/// Where a copy goes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Block and address.
    pub to: (usize, u32),
    /// Bytes.
    pub bytes: u32,
    /// The mbarrier.
    pub barrier: (usize, u32),
}

/// A copy out of shared memory that its thread did not wait for yet.
pub struct Outgoing {
    pub lane: u32,
    group: u32,
    epoch: Epoch,
    pub pc: u32,
    from: u32,
    bytes: u32,
    to: Destination,
    reduce: Option<(AtomicOp, Modifier)>,
    /// The data, once it was read.
    pub data: Option<Vec<u8>>,
}

/// Where a copy out of shared memory goes.
pub enum Destination {
    /// A box of a tensor.
    Tensor(TensorBox),
    /// Global memory from an address.
    Global(u64),
}

/// The copies out of shared memory of a warp.
#[derive(Default)]
pub struct Bulk {
    pub outgoing: Vec<Outgoing>,
    /// Groups that each lane committed.
    committed: [u32; 32],
}

impl Bulk {
    /// Closes the present group of the lanes.
    pub fn commit(&mut self, active: u32) {
        for lane in (0..32).filter(|lane| active >> lane & 1 == 1) {
            self.committed[lane] += 1;
        }
    }
}

/// A range of shared memory that must exist.
pub fn inside(shared: &Shared, (block, at): (usize, u32), bytes: u32, access: Access) -> Result<(), FaultKind> {
    let length = shared.blocks[block].bytes.len();
    super::access::within(Window::Shared, access, at.into(), bytes, length).map(|_| ())
}

impl Step<'_, '_> {
    /// Starts a copy into shared memory, after all checks that can be made now. Gives when it is over.
    pub(super) fn start_incoming(
        &mut self,
        lane: u32,
        source: Source,
        targets: Vec<Target>,
        align: u32,
    ) -> Result<Epoch, FaultKind> {
        let warp = self.index();
        let mut over = Epoch::default();
        for target in &targets {
            aligned(Window::Shared, Access::Write, target.to.1.into(), align)?;
            inside(self.shared, target.to, target.bytes, Access::Write)?;
            let barrier = self.shared.mbarrier(target.barrier, warp, self.launch)?;
            let (number, unseen) = (barrier.number, barrier.unseen_init());
            if let Some(init) = unseen {
                self.inspect_init(lane, target.barrier.1, init);
            }
            let phase = self.shared.blocks[target.barrier.0].mbarriers[&target.barrier.1].phase;
            let Some(hazards) = &mut self.shared.hazards else { continue };
            let agent = hazards.agents.number(Agent::Barrier(number));
            over = Epoch { agent, time: phase + 1 };
            let (epoch, pc) = (Epoch { agent, time: PENDING }, self.warp.pc);
            let touch = Touch { warp, epoch, how: How::Bulk, pc, lane, stride: 0 };
            let (block, start) = (target.to.0, target.to.1 as usize);
            let result = hazards.write(block, start..start + target.bytes as usize, touch, |_| false);
            self.launch.judged(result, Access::Write)?;
            if let Source::Shared(block, from) = source {
                let touch = Touch { epoch: over, ..touch };
                let result = hazards.read(block, from as usize..(from + target.bytes) as usize, touch);
                self.launch.judged(result, Access::Read)?;
            }
        }
        self.shared.events += 1;
        self.shared.jobs.push(Job { pc: self.warp.pc, warp, lane, source, targets });
        Ok(over)
    }

    /// Starts a copy out of the block's shared memory. Gives when its source, and its tensor map, have been read.
    pub(super) fn start_outgoing(
        &mut self,
        lane: u32,
        (from, bytes): (u32, u32),
        to: Destination,
        reduce: Option<(AtomicOp, Modifier)>,
        align: u32,
    ) -> Result<Epoch, FaultKind> {
        let warp = self.index();
        aligned(Window::Shared, Access::Read, from.into(), align)?;
        inside(self.shared, (self.shared.rank, from), bytes, Access::Read)?;
        let mut epoch = Epoch::default();
        if let Some(hazards) = &mut self.shared.hazards {
            epoch = hazards.issue(warp, Agent::Stores(warp));
            let touch = Touch { warp, epoch, how: How::Bulk, pc: self.warp.pc, lane, stride: 0 };
            let result = hazards.read(self.shared.rank, from as usize..(from + bytes) as usize, touch);
            self.launch.judged(result, Access::Read)?;
        }
        let group = self.warp.bulk.committed[lane as usize];
        self.warp.bulk.outgoing.push(Outgoing {
            lane,
            group,
            epoch,
            pc: self.warp.pc,
            from,
            bytes,
            to,
            reduce,
            data: None,
        });
        Ok(epoch)
    }

    /// `cp.async.bulk.wait_group`: all but the last `groups` groups of the lanes; with `read` only their reads.
    pub(super) fn bulk_wait(&mut self, (groups, read): (u32, bool)) -> Result<(), (FaultKind, u32)> {
        let warp = self.index();
        let committed = self.warp.bulk.committed;
        let mut unread = u32::MAX;
        let mut latest = 0;
        let mut kept = Vec::new();
        for mut copy in std::mem::take(&mut self.warp.bulk.outgoing) {
            let due = self.active >> copy.lane & 1 == 1 && copy.group + groups < committed[copy.lane as usize];
            if due && copy.data.is_none() {
                copy.read(self.shared);
            }
            match copy.data {
                Some(_) => latest = latest.max(copy.epoch.time),
                None => unread = unread.min(copy.epoch.time),
            }
            if due && !read {
                self.warp.write_out(self.state, &copy)?;
            } else {
                kept.push(copy);
            }
        }
        self.warp.bulk.outgoing = kept;
        if let Some(hazards) = &mut self.shared.hazards {
            let agent = hazards.agents.number(Agent::Stores(warp));
            hazards.learn(warp, Epoch { agent, time: latest.min(unread - 1) });
        }
        Ok(())
    }
}

impl Warp {
    /// Writes data that was read to global memory.
    fn write_out(&mut self, state: &mut State<'_>, copy: &Outgoing) -> Result<(), (FaultKind, u32)> {
        let Some(data) = &copy.data else { return Ok(()) };
        let mut pieces = Vec::new();
        let by = match &copy.to {
            Destination::Tensor(tensor) if tensor.map.ty == ElementType::F32Ftz => Unit::Cache,
            _ => Unit::Bulk,
        };
        match &copy.to {
            Destination::Global(to) => pieces.push((*to, 0..data.len())),
            Destination::Tensor(tensor) => rows(tensor, Ends::Whole, |offset, inside| {
                if let Some((address, range)) = inside {
                    pieces.push((address, offset + range.start..offset + range.end));
                }
            }),
        }
        for (address, range) in pieces {
            let new = &data[range];
            let found = state.memory.bytes(&mut self.hint, address, new.len(), Access::Write);
            let old = found.map_err(|e| (FaultKind::InvalidInstruction(e.to_string()), copy.lane))?;
            match copy.reduce {
                None => old.copy_from_slice(new),
                Some((op, ty)) => {
                    let size = rtc_ptx::types::bits(ty).unwrap_or(32) as usize / 8;
                    for (old, new) in old.chunks_exact_mut(size).zip(new.chunks_exact(size)) {
                        let value = combine(op, ty, from_bytes(old), from_bytes(new), by);
                        old.copy_from_slice(&value.to_le_bytes()[..size]);
                    }
                }
            }
        }
        Ok(())
    }

    /// The end of the warp: what it sent reaches global memory. Shared memory must have been read by now.
    pub(super) fn finish(&mut self, state: &mut State<'_>) -> Result<(), Stop> {
        if let Some(pc) = self.products.unfinished() {
            return Err(Stop { kind: FaultKind::PendingAtEnd { writes: false }, pc, warp: self.id, lane: 0 });
        }
        for copy in std::mem::take(&mut self.bulk.outgoing) {
            let stop = |kind| Stop { kind, pc: copy.pc, warp: self.id, lane: copy.lane };
            if copy.data.is_none() {
                return Err(stop(FaultKind::PendingAtEnd { writes: false }));
            }
            let (id, pc) = (self.id, copy.pc);
            self.write_out(state, &copy).map_err(|(kind, lane)| Stop { kind, pc, warp: id, lane })?;
        }
        Ok(())
    }
}

impl Outgoing {
    fn read(&mut self, shared: &Shared) {
        let bytes = &shared.own().bytes;
        let swizzle = match &self.to {
            Destination::Tensor(tensor) => tensor.map.swizzle,
            Destination::Global(_) => 0,
        };
        self.data = Some(super::tensor_copy::read_swizzled(bytes, self.from, self.bytes, swizzle));
    }
}

impl Cluster {
    /// Completes a copy.
    pub(super) fn land(&mut self, state: &mut State<'_>, which: usize) -> Result<(), Stop> {
        let job = self.shared.jobs.remove(which);
        let warp = job.warp as usize;
        let (id, pc, lane) = ((warp % self.each) as u32, job.pc, job.lane);
        let rank = std::mem::replace(&mut self.shared.rank, warp / self.each);
        let fail = |kind| Stop { kind, pc, warp: id, lane };
        self.shared.events += 1;
        let mut swizzle = 0;
        let data = match &job.source {
            Source::Tensor(tensor) => {
                swizzle = tensor.map.swizzle;
                read_box(state.memory, tensor)
            }
            Source::Global(from) => {
                let bytes = job.targets.first().map_or(0, |t| t.bytes);
                state.memory.read(*from, bytes as usize).map(<[u8]>::to_vec)
            }
            Source::Shared(block, from) => {
                let bytes = job.targets.first().map_or(0, |t| t.bytes);
                Ok(self.shared.blocks[*block].bytes[*from as usize..(*from + bytes) as usize].to_vec())
            }
            Source::Copies(lanes, issued) => {
                self.warps[warp].complete_copies(state, &mut self.shared, *lanes, *issued).map_err(|e| fail(e.0))?;
                let mut knowledge = Knowledge::default();
                if let Some(hazards) = &self.shared.hazards {
                    knowledge.seen.raise(hazards.agents.number(Agent::Copies(job.warp)), *issued);
                }
                for target in &job.targets {
                    self.shared.arrive(target.barrier, lanes.count_ones(), &knowledge).map_err(fail)?;
                }
                self.shared.rank = rank;
                return Ok(());
            }
        };
        // Freed since the copy began.
        let data = data.map_err(|e| fail(FaultKind::InvalidInstruction(e.to_string())))?;
        for target in &job.targets {
            let Shared { blocks, hazards, .. } = &mut self.shared;
            write_swizzled(&mut blocks[target.to.0].bytes, target.to.1, &data, swizzle);
            if let (Some(hazards), Some(barrier)) = (hazards, blocks[target.barrier.0].mbarriers.get(&target.barrier.1))
            {
                let epoch =
                    Epoch { agent: hazards.agents.number(Agent::Barrier(barrier.number)), time: barrier.phase + 1 };
                let start = target.to.1 as usize;
                hazards.arrive(target.to.0, start..start + target.bytes as usize, epoch);
            }
            self.shared.count_bytes(target.barrier, -i64::from(target.bytes)).map_err(fail)?;
            self.shared.complete(target.barrier);
        }
        self.shared.rank = rank;
        Ok(())
    }
}
