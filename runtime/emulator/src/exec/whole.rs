//! Instructions of the whole warp, and what lets waiting groups go on.

use super::shared::Shared;
use super::warp::{Group, Next, Wait, Warp};
use super::{Launch, State};
use crate::alu::Lanes;
use crate::code::Kind;
use crate::fault::FaultKind;

impl Warp {
    /// Executes an instruction that all lanes take part in, or lets those that are here wait.
    pub(super) fn whole(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &mut Shared,
        group: &mut Group,
        active: u32,
        kind: &Kind,
    ) -> Result<Next, (FaultKind, u32)> {
        if let Some(next) = self.wait_for_all(group, active)? {
            return Ok(next);
        }
        let frame = group.frame();
        let base = frame.registers as usize;
        match kind {
            Kind::Product(product) => self.product(launch, shared, base, product)?,
            Kind::ProductFence => self.products.fence(),
            Kind::ProductCommit => self.product_commit(shared),
            Kind::ProductWait(groups) => {
                group.wait = Wait::No;
                if !self.product_wait(launch, shared, *groups) {
                    self.split_waiting(group, active, Wait::Poll(shared.completions));
                    group.pc += 1;
                    return Ok(Next::Choose);
                }
            }
            Kind::TensormapCopy(to, from) => self.tensormap_copy(launch, state, shared, frame, *to, *from)?,
            Kind::Mma(mma) => self.mma(launch, base, mma),
            Kind::LoadMatrix(to, address, transposed) => {
                self.load_matrix(launch, state, shared, frame, to, *address, *transposed)?
            }
            Kind::StoreMatrix(from, address, transposed) => {
                self.store_matrix(launch, state, shared, frame, from, *address, *transposed)?
            }
            _ => {}
        }
        Ok(Next::Step)
    }

    /// Lets the groups that wait for something go on; `visit` sees operation, registers and lanes of each. True if there
    /// were any.
    pub fn release(&mut self, wait: Wait, visit: impl Fn(u32, &mut [Lanes], u32)) -> bool {
        let mut any = false;
        for group in self.groups.iter_mut().filter(|g| g.wait == wait) {
            let start = group.frame().registers as usize;
            visit(group.pc, &mut self.registers[start..], group.mask);
            group.pc += 1;
            group.wait = Wait::No;
            any = true;
        }
        any
    }

    /// Whether a group waits on an mbarrier and a phase ended since it looked.
    pub fn sees_news(&self, completions: u64) -> bool {
        self.groups.iter().any(|g| matches!(g.wait, Wait::Poll(seen) if seen != completions))
    }

    /// Lets those groups look again.
    pub fn wake(&mut self, completions: u64) {
        for group in &mut self.groups {
            if matches!(group.wait, Wait::Poll(seen) if seen != completions) {
                group.wait = Wait::No;
            }
        }
    }

    /// Lets all waits on mbarriers give up; true if there were any.
    pub fn expire(&mut self) -> bool {
        let mut any = false;
        for group in &mut self.groups {
            if matches!(group.wait, Wait::Poll(_)) {
                group.wait = Wait::Expired;
                any = true;
            }
        }
        any
    }
}
