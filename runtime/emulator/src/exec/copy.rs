//! `cp.async`: a copy happens when its thread waits for it, as late as it may, so a missing wait shows.

use super::State;
use super::access::aligned;
use super::bulk::{Job, Source, Target};
use super::hazard::clock::Epoch;
use super::hazard::shadow::How;
use super::hazard::{Agent, Touch};
use super::shared::Shared;
use super::step::Step;
use super::warp::{Warp, lanes_where, mask_of};
use crate::code::{AddressOperand, CopyAsync, Window};
use crate::fault::{Access, FaultKind};

/// Copies issued and not yet done.
#[derive(Default)]
pub struct Copies {
    pending: Vec<Copy>,
    /// Groups that each lane committed.
    committed: [u32; 32],
    /// The number of the last instruction that copied, where accesses are checked.
    issued: u32,
}

struct Copy {
    lane: u32,
    group: u32,
    /// The number of its instruction.
    issued: u32,
    to: usize,
    from: u64,
    bytes: u32,
    /// Bytes read; the rest is zero.
    size: u32,
}

impl Copies {
    /// Closes the present group of the lanes.
    pub fn commit(&mut self, active: u32) {
        for lane in (0..32).filter(|lane| active >> lane & 1 == 1) {
            self.committed[lane] += 1;
        }
    }
}

impl Step<'_, '_> {
    pub(super) fn copy_async(&mut self, copy: &CopyAsync) -> Result<(), (FaultKind, u32)> {
        let CopyAsync { to, from, bytes, size, ignore } = *copy;
        let (targets, sources) = (self.addresses(to), self.addresses(from));
        let sizes = size.map(|s| *self.source(s));
        let ignored = ignore.map_or(0, |s| mask_of(self.source(s)));
        let warp = self.index();
        let mut touch = None;
        if let Some(hazards) = &mut self.shared.hazards {
            let epoch = hazards.issue(warp, Agent::Copies(warp));
            self.warp.copies.issued = epoch.time;
            touch = Some(Touch { warp, epoch, how: How::Generic, pc: self.warp.pc, lane: 0, stride: 0 });
        }
        if self.state.counting.is_some() {
            let moved = |lane: u32| {
                let ignores = ignored >> lane & 1 == 1;
                let size = if ignores { 0 } else { sizes.map_or(bytes, |s| s[lane as usize] as u32) };
                (sources[lane as usize], size.into())
            };
            let ranges: Vec<(u64, u64)> = self.lanes().map(moved).collect();
            self.count_copy(&ranges, Access::Read);
        }
        for lane in self.lanes() {
            let i = lane as usize;
            let size = if ignored >> lane & 1 == 1 { 0 } else { sizes.map_or(bytes, |s| s[i] as u32) };
            if size > bytes {
                let text = format!("cp.async reads {size} bytes to write {bytes}");
                return Err((FaultKind::InvalidInstruction(text), lane));
            }
            aligned(Window::Shared, Access::Write, targets[i], bytes).map_err(|kind| (kind, lane))?;
            self.slot(Access::Write, (Window::Shared, targets[i]), bytes, lane)?;
            if size > 0 {
                aligned(Window::Global, Access::Read, sources[i], bytes).map_err(|kind| (kind, lane))?;
                self.read((Window::Global, sources[i]), size, lane)?;
                self.inspect_copy(lane, sources[i], size.into(), Access::Read);
            }
            let (group, issued) = (self.warp.copies.committed[i], self.warp.copies.issued);
            let to = targets[i] as usize;
            if let (Some(touch), Some(hazards)) = (touch, &mut self.shared.hazards) {
                let touch = Touch { lane, ..touch };
                let result = hazards.write(self.shared.rank, to..to + bytes as usize, touch, |_| false);
                self.launch.judged(result, Access::Write).map_err(|kind| (kind, lane))?;
            }
            self.warp.copies.pending.push(Copy { lane, group, issued, to, from: sources[i], bytes, size });
        }
        Ok(())
    }

    /// Does the copies of the lanes, except those of the last `groups` committed groups and of the open one; with
    /// `None`, all of them.
    pub(super) fn copy_wait(&mut self, groups: Option<u32>) -> Result<(), (FaultKind, u32)> {
        let committed = self.warp.copies.committed;
        self.warp.perform_copies(self.state, self.shared, |copy| {
            let old_enough = groups.is_none_or(|n| copy.group + n < committed[copy.lane as usize]);
            self.active >> copy.lane & 1 == 1 && old_enough
        })?;
        let warp = self.index();
        if let Some(hazards) = &mut self.shared.hazards {
            let open = self.warp.copies.pending.iter().map(|copy| copy.issued - 1).min();
            let agent = hazards.agents.number(Agent::Copies(warp));
            hazards.learn(warp, Epoch { agent, time: open.unwrap_or(self.warp.copies.issued) });
        }
        Ok(())
    }

    /// `cp.async.mbarrier.arrive`: an arrival of each lane once its copies so far are there.
    pub(super) fn copy_arrive(&mut self, (address, counted): (AddressOperand, bool)) -> Result<(), (FaultKind, u32)> {
        let addresses = self.addresses(address);
        let warp = self.index();
        let mut rest = self.active;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            let same = lanes_where(rest, |other| addresses[other] == addresses[lane as usize]);
            rest &= !same;
            let fail = |kind| (kind, lane);
            let barrier = self.shared.mbarrier_at(address.window, addresses[lane as usize]).map_err(fail)?;
            let state = self.shared.mbarrier(barrier, warp, self.launch).map_err(fail)?;
            if !counted {
                state.pending += same.count_ones();
            }
            let targets = vec![Target { to: barrier, bytes: 0, barrier }];
            let source = Source::Copies(same, self.warp.copies.issued);
            self.shared.jobs.push(Job { pc: self.warp.pc, warp, lane, source, targets });
            self.shared.events += 1;
        }
        Ok(())
    }
}

impl Warp {
    /// Does the copies of the lanes that were issued up to a number.
    pub(super) fn complete_copies(
        &mut self,
        state: &mut State<'_>,
        shared: &mut Shared,
        lanes: u32,
        issued: u32,
    ) -> Result<(), (FaultKind, u32)> {
        self.perform_copies(state, shared, |copy| lanes >> copy.lane & 1 == 1 && copy.issued <= issued)
    }

    fn perform_copies(
        &mut self,
        state: &mut State<'_>,
        shared: &mut Shared,
        due: impl Fn(&Copy) -> bool,
    ) -> Result<(), (FaultKind, u32)> {
        let (now, later): (Vec<Copy>, Vec<Copy>) = std::mem::take(&mut self.copies.pending).into_iter().partition(due);
        self.copies.pending = later;
        for copy in now {
            let target = &mut shared.own_mut().bytes[copy.to..copy.to + copy.bytes as usize];
            target.fill(0);
            if copy.size > 0 {
                let source = state.memory.view(&mut self.hint, copy.from, copy.size as usize);
                let source = source.map_err(|e| (FaultKind::InvalidInstruction(e.to_string()), copy.lane))?;
                target[..copy.size as usize].copy_from_slice(source);
            }
        }
        Ok(())
    }
}
