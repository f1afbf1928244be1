//! `cp.async`: a copy happens when its thread waits for it, as late as it may, so a missing wait shows.

use super::access::aligned;
use super::bulk::{Job, Source, Target};
use super::hazard::clock::Epoch;
use super::hazard::shadow::How;
use super::hazard::{Agent, Touch};
use super::shared::Shared;
use super::warp::{Frame, Warp, lanes_where, mask_of};
use super::{Launch, State};
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

impl Warp {
    pub(super) fn copy_async(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &mut Shared,
        frame: Frame,
        active: u32,
        copy: &CopyAsync,
    ) -> Result<(), (FaultKind, u32)> {
        let CopyAsync { to, from, bytes, size, ignore } = *copy;
        let base = frame.registers as usize;
        let (targets, sources) = (self.addresses(launch, frame, to), self.addresses(launch, frame, from));
        let sizes = size.map(|s| *self.source(launch.constants, base, s));
        let ignored = ignore.map_or(0, |s| mask_of(self.source(launch.constants, base, s)));
        let warp = self.index(launch, shared);
        let mut touch = None;
        if let Some(hazards) = &mut shared.hazards {
            let epoch = hazards.issue(warp, Agent::Copies(warp));
            self.copies.issued = epoch.time;
            touch = Some(Touch { warp, epoch, how: How::Generic, pc: self.pc });
        }
        for lane in (0..32u32).filter(|lane| active >> lane & 1 == 1) {
            let i = lane as usize;
            let size = if ignored >> lane & 1 == 1 { 0 } else { sizes.map_or(bytes, |s| s[i] as u32) };
            if size > bytes {
                let text = format!("cp.async reads {size} bytes to write {bytes}");
                return Err((FaultKind::InvalidInstruction(text), lane));
            }
            aligned(Window::Shared, Access::Write, targets[i], bytes).map_err(|kind| (kind, lane))?;
            self.slot(state, shared, frame, Access::Write, (Window::Shared, targets[i]), bytes, lane)?;
            if size > 0 {
                aligned(Window::Global, Access::Read, sources[i], bytes).map_err(|kind| (kind, lane))?;
                self.read(launch, state, shared, frame, (Window::Global, sources[i]), size, lane)?;
            }
            let (group, issued) = (self.copies.committed[i], self.copies.issued);
            let to = targets[i] as usize;
            if let (Some(touch), Some(hazards)) = (touch, &mut shared.hazards) {
                let result = hazards.write(shared.rank, to..to + bytes as usize, touch);
                self.judged(launch, result, Access::Write).map_err(|kind| (kind, lane))?;
            }
            self.copies.pending.push(Copy { lane, group, issued, to, from: sources[i], bytes, size });
        }
        Ok(())
    }

    /// Does the copies of the lanes, except those of the last `groups` committed groups and of the open one; with
    /// `None`, all of them.
    pub(super) fn copy_wait(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &mut Shared,
        active: u32,
        groups: Option<u32>,
    ) -> Result<(), (FaultKind, u32)> {
        let committed = self.copies.committed;
        self.perform_copies(state, shared, |copy| {
            let old_enough = groups.is_none_or(|n| copy.group + n < committed[copy.lane as usize]);
            active >> copy.lane & 1 == 1 && old_enough
        })?;
        let warp = self.index(launch, shared);
        if let Some(hazards) = &mut shared.hazards {
            let open = self.copies.pending.iter().map(|copy| copy.issued - 1).min();
            let agent = hazards.agents.number(Agent::Copies(warp));
            hazards.learn(warp, Epoch { agent, time: open.unwrap_or(self.copies.issued) });
        }
        Ok(())
    }

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
                let source = state.memory.bytes(&mut self.hint, copy.from, copy.size as usize, Access::Read);
                let source = source.map_err(|e| (FaultKind::InvalidInstruction(e.to_string()), copy.lane))?;
                target[..copy.size as usize].copy_from_slice(source);
            }
        }
        Ok(())
    }

    /// `cp.async.mbarrier.arrive`: an arrival of each lane once its copies so far are there.
    pub(super) fn copy_arrive(
        &mut self,
        launch: &Launch<'_>,
        shared: &mut Shared,
        frame: Frame,
        active: u32,
        (address, counted): (AddressOperand, bool),
    ) -> Result<(), (FaultKind, u32)> {
        let addresses = self.addresses(launch, frame, address);
        let warp = self.index(launch, shared);
        let mut rest = active;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            let same = lanes_where(rest, |other| addresses[other] == addresses[lane as usize]);
            rest &= !same;
            let fail = |kind| (kind, lane);
            let barrier = self.mbarrier_at(shared, address.window, addresses[lane as usize]).map_err(fail)?;
            let state = shared.mbarrier(barrier, warp, false, launch).map_err(fail)?;
            if !counted {
                state.pending += same.count_ones();
            }
            let targets = vec![Target { to: barrier, bytes: 0, barrier }];
            let source = Source::Copies(same, self.copies.issued);
            shared.jobs.push(Job { pc: self.pc, warp, lane, source, targets });
            shared.events += 1;
        }
        Ok(())
    }
}
