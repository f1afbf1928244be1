//! Where lanes part and meet: jumps by table, barriers of the block, instructions of the whole warp.

use super::mbarrier::published;
use super::step::Step;
use super::warp::{Next, Wait, lanes_where, mask_of};
use crate::code::{BlockBarrier, Src};
use crate::fault::FaultKind;

impl Step<'_, '_> {
    pub(super) fn branch_table(&mut self, index: Src, table: &[u32]) -> Result<Next, (FaultKind, u32)> {
        let values = *self.source(index);
        let mut rest = self.active;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            let value = values[lane as usize];
            let Some(target) = table.get(value as usize) else {
                let text = format!("index {value} is beyond the {} labels of the table", table.len());
                return Err((FaultKind::InvalidInstruction(text), lane));
            };
            let same = lanes_where(rest, |lane| values[lane] == value);
            if same == self.group.mask {
                return Ok(Next::Jump(*target));
            }
            self.warp.split(self.group, same, *target);
            rest &= !same;
        }
        self.group.pc += 1;
        Ok(Next::Choose)
    }

    pub(super) fn barrier(&mut self, barrier: &BlockBarrier) -> Result<Next, (FaultKind, u32)> {
        if barrier.aligned && self.active != self.warp.live {
            self.warp.split_waiting(self.group, self.active, Wait::Together { needed: u32::MAX });
            self.group.pc += 1;
            return Ok(Next::Choose);
        }
        let lane = self.active.trailing_zeros();
        let value = |source: Src| self.source(source)[lane as usize] as u32;
        let id = value(barrier.id);
        if id > 15 {
            return Err((FaultKind::InvalidInstruction(format!("there is no barrier {id}")), lane));
        }
        let count = barrier.count.map(value);
        let held = barrier.reduce.map(|(_, _, predicate)| mask_of(self.source(predicate)) & self.active);
        let warp = self.index();
        let knowledge = published(&mut self.shared.hazards, warp, false);
        self.shared.events += 1;
        if self.state.sanitizer.is_some() {
            let before = &self.shared.own().barriers[id as usize];
            self.inspect_barrier(id, (before.arrived, before.expected), count);
        }
        if self.state.recorder.is_some() {
            self.record_barrier(id, barrier.arrive_only);
        }
        let last = (self.group.pc, self.warp.id);
        let state = &mut self.shared.own_mut().barriers[id as usize];
        state.last = last;
        state.knowledge.join(&knowledge);
        match count {
            Some(count) if count == 0 || count % 32 != 0 => {
                let text = format!("the number of threads at a barrier must be a multiple of 32, not {count}");
                return Err((FaultKind::InvalidInstruction(text), lane));
            }
            Some(count) => {
                state.expected = Some(count);
                // A warp that comes as a whole counts as 32 threads, even if some of them ended.
                state.arrived += if self.active == self.warp.live { 32 } else { self.active.count_ones() };
            }
            None => state.arrived += self.active.count_ones(),
        }
        if let Some(held) = held {
            state.held += held.count_ones();
            state.failed += (self.active & !held).count_ones();
        }
        if barrier.arrive_only {
            return Ok(Next::Step);
        }
        self.warp.split_waiting(self.group, self.active, Wait::Barrier(id));
        self.group.pc += 1;
        Ok(Next::Choose)
    }

    /// For instructions that the whole warp must execute together: how to wait, or `None` if all are here.
    pub(super) fn wait_for_all(&mut self) -> Result<Option<Next>, (FaultKind, u32)> {
        if self.active != self.warp.live {
            self.warp.split_waiting(self.group, self.active, Wait::Together { needed: u32::MAX });
            self.group.pc += 1;
            return Ok(Some(Next::Choose));
        }
        if self.active != u32::MAX {
            let text = format!("all 32 lanes must take part, but only {:#010x} do", self.active);
            return Err((FaultKind::InvalidInstruction(text), self.active.trailing_zeros()));
        }
        Ok(None)
    }
}
