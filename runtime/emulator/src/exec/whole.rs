//! Instructions of the whole warp, and the resumption of waiting groups.

use super::step::Step;
use super::warp::{Next, Wait, Warp};
use crate::alu::Lanes;
use crate::code::Kind;
use crate::fault::FaultKind;

impl Step<'_, '_> {
    /// Executes an instruction that all lanes take part in, or lets those that are here wait.
    pub(super) fn whole(&mut self, kind: &Kind) -> Result<Next, (FaultKind, u32)> {
        if let Some(next) = self.wait_for_all()? {
            return Ok(next);
        }
        let records = self.state.recorder.is_some();
        if records && !matches!(kind, Kind::ProductWait(_)) {
            self.record_whole(kind);
        }
        match kind {
            Kind::Product(product) => self.product(product)?,
            Kind::ProductFence => self.warp.products.fence(),
            Kind::ProductCommit => self.product_commit(),
            Kind::ProductWait(groups) => {
                self.group.wait = Wait::No;
                if !self.product_wait(*groups) {
                    self.warp.split_waiting(self.group, self.active, Wait::Poll(self.shared.completions));
                    self.group.pc += 1;
                    return Ok(Next::Choose);
                }
                if records {
                    self.record_whole(kind);
                }
            }
            Kind::TensormapCopy(to, from) => self.tensormap_copy(*to, *from)?,
            Kind::Mma(mma) => self.mma(mma),
            Kind::LoadMatrix(to, address, transposed) => self.load_matrix(to, *address, *transposed)?,
            Kind::StoreMatrix(from, address, transposed) => self.store_matrix(from, *address, *transposed)?,
            _ => {}
        }
        Ok(Next::Step)
    }
}

impl Warp {
    /// Resumes the waiting groups; `visit` gets operation, registers and lanes of each. True if there were any.
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

    /// Makes those groups check again.
    pub fn wake(&mut self, completions: u64) {
        for group in &mut self.groups {
            if matches!(group.wait, Wait::Poll(seen) if seen != completions) {
                group.wait = Wait::No;
            }
        }
    }

    /// Makes all waits on mbarriers time out; true if there were any.
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
