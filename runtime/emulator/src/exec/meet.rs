//! Where lanes part and meet: jumps by table, barriers of the block, instructions of the whole warp.

use super::Launch;
use super::mbarrier::published;
use super::shared::Shared;
use super::warp::{Group, Next, Wait, Warp, lanes_where, mask_of};
use crate::code::{BlockBarrier, Src};
use crate::fault::FaultKind;

impl Warp {
    pub(super) fn branch_table(
        &mut self,
        launch: &Launch<'_>,
        group: &mut Group,
        active: u32,
        index: Src,
        table: &[u32],
    ) -> Result<Next, (FaultKind, u32)> {
        let base = group.frame().registers as usize;
        let values = *self.source(launch.constants, base, index);
        let mut rest = active;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            let value = values[lane as usize];
            let Some(target) = table.get(value as usize) else {
                let text = format!("index {value} is beyond the {} labels of the table", table.len());
                return Err((FaultKind::InvalidInstruction(text), lane));
            };
            let same = lanes_where(rest, |lane| values[lane] == value);
            if same == group.mask {
                return Ok(Next::Jump(*target));
            }
            self.split(group, same, *target);
            rest &= !same;
        }
        group.pc += 1;
        Ok(Next::Choose)
    }

    pub(super) fn barrier(
        &mut self,
        launch: &Launch<'_>,
        shared: &mut Shared,
        group: &mut Group,
        active: u32,
        barrier: &BlockBarrier,
    ) -> Result<Next, (FaultKind, u32)> {
        if barrier.aligned && active != self.live {
            self.split_waiting(group, active, Wait::Together { needed: u32::MAX });
            group.pc += 1;
            return Ok(Next::Choose);
        }
        let base = group.frame().registers as usize;
        let lane = active.trailing_zeros();
        let value = |source: Src| self.source(launch.constants, base, source)[lane as usize] as u32;
        let id = value(barrier.id);
        if id > 15 {
            return Err((FaultKind::InvalidInstruction(format!("there is no barrier {id}")), lane));
        }
        let warp = self.index(launch, shared);
        let knowledge = published(&mut shared.hazards, warp, false);
        shared.events += 1;
        let state = &mut shared.own_mut().barriers[id as usize];
        state.knowledge.join(&knowledge);
        match barrier.count.map(value) {
            Some(count) if count == 0 || count % 32 != 0 => {
                let text = format!("the number of threads at a barrier must be a multiple of 32, not {count}");
                return Err((FaultKind::InvalidInstruction(text), lane));
            }
            Some(count) => {
                state.expected = Some(count);
                // A warp that comes as a whole counts as 32 threads, even if some of them ended.
                state.arrived += if active == self.live { 32 } else { active.count_ones() };
            }
            None => state.arrived += active.count_ones(),
        }
        if let Some((_, _, predicate)) = barrier.reduce {
            let held = mask_of(self.source(launch.constants, base, predicate)) & active;
            state.held += held.count_ones();
            state.failed += (active & !held).count_ones();
        }
        if barrier.arrive_only {
            return Ok(Next::Step);
        }
        self.split_waiting(group, active, Wait::Barrier(id));
        group.pc += 1;
        Ok(Next::Choose)
    }

    /// For instructions that the whole warp must execute together: how to wait, or `None` if all are here.
    pub(super) fn wait_for_all(&mut self, group: &mut Group, active: u32) -> Result<Option<Next>, (FaultKind, u32)> {
        if active != self.live {
            self.split_waiting(group, active, Wait::Together { needed: u32::MAX });
            group.pc += 1;
            return Ok(Some(Next::Choose));
        }
        if active != u32::MAX {
            let text = format!("all 32 lanes must take part, but only {active:#010x} do");
            return Err((FaultKind::InvalidInstruction(text), active.trailing_zeros()));
        }
        Ok(None)
    }
}
