//! Dispatch of asynchronous operations, fences, the cluster's barrier, addresses in other blocks.

use super::access::resolve;
use super::mbarrier::published;
use super::shared::{BLOCK_SHIFT, Shared};
use super::warp::{Frame, Group, Next, Wait, Warp, lanes_where};
use super::{Launch, State};
use crate::code::{FenceKind, Kind, MbarrierTest, SHARED_WINDOW, Window};
use crate::fault::FaultKind;

impl Warp {
    /// Operations that no other lanes are needed for.
    pub(super) fn asynchronous(
        &mut self,
        launch: &Launch<'_>,
        state: &mut State<'_>,
        shared: &mut Shared,
        frame: Frame,
        active: u32,
        kind: &Kind,
    ) -> Result<(), (FaultKind, u32)> {
        if active == 0 {
            return Ok(());
        }
        let base = frame.registers as usize;
        match kind {
            Kind::CopyArrive(address, counted) => {
                self.copy_arrive(launch, shared, frame, active, (*address, *counted))?
            }
            Kind::Mbarrier(op) => self.mbarrier(launch, shared, frame, active, op)?,
            Kind::Tensor(copy) => self.tensor_copy(launch, state, shared, frame, active, copy)?,
            Kind::Bulk(copy) => self.bulk_copy(launch, state, shared, frame, active, copy)?,
            Kind::BulkCommit => self.bulk.commit(active),
            Kind::BulkWait(groups, read) => self.bulk_wait(launch, state, shared, active, (*groups, *read))?,
            Kind::TensormapReplace(replace) => self.tensormap_replace(launch, state, shared, frame, active, replace)?,
            Kind::Fence(kind) => self.fence(launch, shared, *kind),
            Kind::ClusterArrive(relaxed) => self.cluster_arrive(launch, shared, active, *relaxed)?,
            Kind::MapShared(to, address, rank, generic) => {
                let (addresses, ranks) =
                    (*self.source(launch.constants, base, *address), *self.source(launch.constants, base, *rank));
                let mut values = [0; 32];
                for lane in (0..32).filter(|lane| active >> lane & 1 == 1) {
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
                self.write(base, *to, active, &values);
            }
            Kind::RankOf(to, address, generic) => {
                let addresses = *self.source(launch.constants, base, *address);
                let values = addresses.map(|a| {
                    let at = if *generic { resolve(Window::Generic, a).1 } else { a };
                    shared.locate(at).0 as u64
                });
                self.write(base, *to, active, &values);
            }
            _ => {}
        }
        Ok(())
    }

    fn fence(&self, launch: &Launch<'_>, shared: &mut Shared, kind: FenceKind) {
        let warp = self.index(launch, shared);
        if kind != FenceKind::Ordinary {
            shared.show_mbarriers(warp);
        }
        let Some(hazards) = &mut shared.hazards else { return };
        match kind {
            FenceKind::Proxy => hazards.proxy_fence(warp),
            FenceKind::Ordinary | FenceKind::MbarrierInit => hazards.fence(warp),
        }
    }

    fn cluster_arrive(
        &mut self,
        launch: &Launch<'_>,
        shared: &mut Shared,
        active: u32,
        relaxed: bool,
    ) -> Result<(), (FaultKind, u32)> {
        let again = self.cluster_arrived & active;
        if again != 0 {
            let text = "a thread arrives at the cluster's barrier again without a wait in between";
            return Err((FaultKind::InvalidInstruction(text.into()), again.trailing_zeros()));
        }
        self.cluster_arrived |= active;
        for lane in (0..32).filter(|lane| active >> lane & 1 == 1) {
            self.cluster_phase[lane] = shared.cluster.phase;
        }
        let warp = self.index(launch, shared);
        let knowledge = published(&mut shared.hazards, warp, relaxed);
        shared.cluster.gathering.join(&knowledge);
        shared.cluster.arrived += active.count_ones();
        shared.events += 1;
        Ok(())
    }

    pub(super) fn cluster_wait(
        &mut self,
        launch: &Launch<'_>,
        shared: &mut Shared,
        group: &mut Group,
        active: u32,
    ) -> Result<Next, (FaultKind, u32)> {
        let stray = active & !self.cluster_arrived;
        if stray != 0 {
            let text = "a thread waits at the cluster's barrier without having arrived";
            return Err((FaultKind::InvalidInstruction(text.into()), stray.trailing_zeros()));
        }
        self.cluster_arrived &= !active;
        let phase = shared.cluster.phase;
        let open = lanes_where(active, |lane| self.cluster_phase[lane] == phase);
        if open != active {
            let warp = self.index(launch, shared);
            if let Some(hazards) = &mut shared.hazards {
                hazards.acquire(warp, &shared.cluster.done);
            }
        }
        if open == 0 {
            return Ok(Next::Step);
        }
        self.split_waiting(group, open, Wait::Cluster(phase + 1));
        group.pc += 1;
        Ok(Next::Choose)
    }

    /// The mbarriers that a group waits on, for messages.
    pub(super) fn waited_mbarrier(&self, launch: &Launch<'_>, shared: &Shared, group: &Group) -> Option<String> {
        let Kind::MbarrierTest(test) = &launch.code.ops[group.pc as usize].kind else { return None };
        let MbarrierTest { address, value, parity, .. } = &**test;
        let lane = group.mask.trailing_zeros() as usize & 31;
        let at =
            self.mbarrier_at(shared, address.window, self.addresses(launch, group.frame(), *address)[lane]).ok()?;
        let value = self.source(launch.constants, group.frame().registers as usize, *value)[lane];
        let waits = if *parity { format!("waits for parity {}, ", value & 1) } else { String::new() };
        Some(format!("{waits}{}", shared.blocks[at.0].mbarriers.get(&at.1)?.describe(at.1)))
    }
}
