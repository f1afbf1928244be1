//! Dispatch of asynchronous operations, fences, the cluster's barrier, addresses in other blocks.

use super::Launch;
use super::access::resolve;
use super::mbarrier::published;
use super::shared::{BLOCK_SHIFT, Shared};
use super::step::Step;
use super::warp::{Group, Next, Wait, Warp, lanes_where};
use crate::code::{FenceKind, Kind, MbarrierTest, SHARED_WINDOW, Window};
use crate::fault::FaultKind;

impl Step<'_, '_> {
    /// Operations that no other lanes are needed for.
    pub(super) fn asynchronous(&mut self, kind: &Kind) -> Result<(), (FaultKind, u32)> {
        if self.active == 0 {
            return Ok(());
        }
        match kind {
            Kind::CopyArrive(address, counted) => self.copy_arrive((*address, *counted))?,
            Kind::Mbarrier(op) => self.mbarrier(op)?,
            Kind::Tensor(copy) => self.tensor_copy(copy)?,
            Kind::Bulk(copy) => self.bulk_copy(copy)?,
            Kind::BulkCommit => self.warp.bulk.commit(self.active),
            Kind::BulkWait(groups, read) => self.bulk_wait((*groups, *read))?,
            Kind::TensormapReplace(replace) => self.tensormap_replace(replace)?,
            Kind::TensormapAcquire(map) => self.acquire_maps(*map),
            Kind::Fence(kind) => self.fence(*kind),
            Kind::ClusterArrive(relaxed) => self.cluster_arrive(*relaxed)?,
            Kind::MapShared(to, address, rank, generic) => {
                let (addresses, ranks) = (*self.source(*address), *self.source(*rank));
                let mut values = [0; 32];
                for lane in (0..32).filter(|lane| self.active >> lane & 1 == 1) {
                    let (window, at) = if *generic {
                        resolve(Window::Generic, addresses[lane])
                    } else {
                        (Window::Shared, addresses[lane])
                    };
                    if window != Window::Shared {
                        let text = format!("{:#x} is not an address in shared memory", addresses[lane]);
                        return Err((FaultKind::InvalidInstruction(text), lane as u32));
                    }
                    // A rank beyond the cluster gives an address that no access finds.
                    let at = (ranks[lane] + 1) << BLOCK_SHIFT & 0xffff_ffff | at & ((1 << BLOCK_SHIFT) - 1);
                    values[lane] = if *generic { SHARED_WINDOW + at } else { at };
                }
                self.write(*to, &values);
            }
            Kind::RankOf(to, address, generic) => {
                let addresses = *self.source(*address);
                let values = addresses.map(|a| {
                    let at = if *generic { resolve(Window::Generic, a).1 } else { a };
                    self.shared.locate(at).0 as u64
                });
                self.write(*to, &values);
            }
            _ => {}
        }
        Ok(())
    }

    fn fence(&mut self, kind: FenceKind) {
        let warp = self.index();
        if kind != FenceKind::Ordinary {
            self.shared.show_mbarriers(warp);
        }
        let Some(hazards) = &mut self.shared.hazards else { return };
        match kind {
            FenceKind::Proxy => hazards.proxy_fence(warp),
            FenceKind::Ordinary | FenceKind::MbarrierInit => hazards.fence(warp),
        }
    }

    fn cluster_arrive(&mut self, relaxed: bool) -> Result<(), (FaultKind, u32)> {
        let again = self.warp.cluster_arrived & self.active;
        if again != 0 {
            let text = "a thread arrives at the cluster's barrier again without a wait in between";
            return Err((FaultKind::InvalidInstruction(text.into()), again.trailing_zeros()));
        }
        self.warp.cluster_arrived |= self.active;
        for lane in (0..32).filter(|lane| self.active >> lane & 1 == 1) {
            self.warp.cluster_phase[lane] = self.shared.cluster.phase;
        }
        let warp = self.index();
        let knowledge = published(&mut self.shared.hazards, warp, relaxed);
        self.shared.cluster.gathering.join(&knowledge);
        self.shared.cluster.arrived += self.active.count_ones();
        self.shared.events += 1;
        Ok(())
    }

    pub(super) fn cluster_wait(&mut self) -> Result<Next, (FaultKind, u32)> {
        let stray = self.active & !self.warp.cluster_arrived;
        if stray != 0 {
            let text = "a thread waits at the cluster's barrier without having arrived";
            return Err((FaultKind::InvalidInstruction(text.into()), stray.trailing_zeros()));
        }
        self.warp.cluster_arrived &= !self.active;
        let phase = self.shared.cluster.phase;
        let open = lanes_where(self.active, |lane| self.warp.cluster_phase[lane] == phase);
        if open != self.active {
            let warp = self.index();
            if let Some(hazards) = &mut self.shared.hazards {
                hazards.acquire(warp, &self.shared.cluster.done);
            }
        }
        if open == 0 {
            return Ok(Next::Step);
        }
        self.warp.split_waiting(self.group, open, Wait::Cluster(phase + 1));
        self.group.pc += 1;
        Ok(Next::Choose)
    }
}

impl Warp {
    /// The mbarriers that a group waits on, for messages.
    pub(super) fn waited_mbarrier(&self, launch: &Launch<'_>, shared: &Shared, group: &Group) -> Option<String> {
        let Kind::MbarrierTest(test) = &launch.code.ops[group.pc as usize].kind else { return None };
        let MbarrierTest { address, value, parity, .. } = &**test;
        let lane = group.mask.trailing_zeros() as usize & 31;
        let at = shared.mbarrier_at(address.window, self.addresses(launch, group.frame(), *address)[lane]).ok()?;
        let value = self.source(launch.constants, group.frame().registers as usize, *value)[lane];
        let waits = if *parity { format!("waits for parity {}, ", value & 1) } else { String::new() };
        Some(format!("{waits}{}", shared.blocks[at.0].mbarriers.get(&at.1)?.describe(at.1)))
    }
}
