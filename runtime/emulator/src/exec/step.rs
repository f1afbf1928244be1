//! The context of one operation of a warp, and the dispatch to its function.

use super::shared::Shared;
use super::warp::{Frame, Group, Next, Warp};
use super::{Launch, State};
use crate::alu::Lanes;
use crate::code::{AddressOperand, Kind, Reg, Src};
use crate::fault::FaultKind;

/// The context of one operation of a warp.
pub struct Step<'a, 's> {
    /// The warp.
    pub warp: &'a mut Warp,
    /// The part that all blocks share.
    pub launch: &'a Launch<'a>,
    /// The state of the launch.
    pub state: &'a mut State<'s>,
    /// The memory that the threads of the cluster share.
    pub shared: &'a mut Shared,
    /// The active lanes.
    pub group: &'a mut Group,
    /// Their activation.
    pub frame: Frame,
    /// The lanes that execute the operation.
    pub active: u32,
}

impl Step<'_, '_> {
    /// First register of the activation.
    pub(super) fn base(&self) -> usize {
        self.frame.registers as usize
    }

    /// The active lanes, one by one.
    pub(super) fn lanes(&self) -> impl Iterator<Item = u32> + use<> {
        let active = self.active;
        (0..32u32).filter(move |lane| active >> lane & 1 == 1)
    }

    /// The lanes of a source.
    pub(super) fn source(&self, source: Src) -> &Lanes {
        self.warp.source(self.launch.constants, self.base(), source)
    }

    /// The address of each lane.
    pub(super) fn addresses(&self, operand: AddressOperand) -> [u64; 32] {
        self.warp.addresses(self.launch, self.frame, operand)
    }

    /// Writes the active lanes of a register.
    pub(super) fn write(&mut self, to: Reg, values: &Lanes) {
        self.write_lanes(to, self.active, values);
    }

    /// Writes some lanes of a register.
    pub(super) fn write_lanes(&mut self, to: Reg, lanes: u32, values: &Lanes) {
        self.warp.write(self.frame.registers as usize, to, lanes, values);
    }

    /// Index of the warp in the cluster.
    pub(super) fn index(&self) -> u32 {
        self.warp.index(self.launch, self.shared)
    }

    /// Executes the operation.
    #[inline(never)]
    pub(super) fn execute(&mut self, kind: &Kind) -> Result<Next, (FaultKind, u32)> {
        let base = self.base();
        if !self.warp.wraps.is_empty() {
            self.warp.inspect_wraps(self.state, self.shared, base, self.active, kind, self.group.pc);
        }
        if self.warp.products.checked {
            self.warp.products.operation(self.launch, base, kind, self.active)?;
        }
        if self.warp.defined.is_some() {
            self.inspect_registers(kind);
        }
        if self.state.recorder.is_some() && self.active != 0 {
            self.record_operation(kind);
        }
        match kind {
            Kind::Alu(function, to, sources) => {
                self.warp.alu(self.launch.constants, base, self.active, *function, *to, sources);
            }
            Kind::Branch(target) => {
                if self.active == self.group.mask {
                    return Ok(Next::Jump(*target));
                }
                if self.active != 0 {
                    self.count_divergence();
                    self.warp.split(self.group, self.active, *target);
                    self.group.pc += 1;
                    return Ok(Next::Choose);
                }
            }
            Kind::BranchTable(index, table) => return self.branch_table(*index, table),
            Kind::Load(load) => self.load(load)?,
            Kind::Store(store) => self.store(store)?,
            Kind::Atomic(atomic) => self.atomic(atomic)?,
            Kind::Special(special, to) => {
                let values = self.special(*special);
                self.write(*to, &values);
            }
            Kind::FrameAddress(to, offset) => self.write(*to, &[u64::from(self.frame.local.wrapping_add(*offset)); 32]),
            Kind::IsSpace(window, to, source) => {
                let values = self.source(*source).map(|a| super::access::is_in(*window, a));
                self.write(*to, &values);
            }
            Kind::ActiveMask(to) => self.write(*to, &[self.active.into(); 32]),
            Kind::Call(call) => {
                if self.active != 0 {
                    return self.call(call);
                }
            }
            Kind::Return if self.group.frames.len() > 1 => {
                if self.active != 0 {
                    return Ok(self.return_from());
                }
            }
            Kind::Return | Kind::Exit => {
                self.warp.live &= !self.active;
                self.shared.own_mut().live -= self.active.count_ones();
                self.group.mask &= !self.active;
                if self.active != 0 {
                    self.group.pc += 1;
                    return Ok(Next::Choose);
                }
            }
            Kind::Trap => {
                if self.active != 0 {
                    return Err((FaultKind::Trap, self.active.trailing_zeros()));
                }
            }
            Kind::Barrier(barrier) => {
                if self.active != 0 {
                    return self.barrier(barrier);
                }
            }
            Kind::Warp(op, members) => {
                if self.active != 0 {
                    return self.together(op, *members);
                }
            }
            Kind::Mma(_)
            | Kind::LoadMatrix(..)
            | Kind::StoreMatrix(..)
            | Kind::Product(_)
            | Kind::ProductFence
            | Kind::ProductCommit
            | Kind::ProductWait(_)
            | Kind::TensormapCopy(..)
            | Kind::MaxRegisters => {
                if self.active != 0 {
                    return self.whole(kind);
                }
            }
            Kind::CopyAsync(copy) => self.copy_async(copy)?,
            Kind::CopyCommit => self.warp.copies.commit(self.active),
            Kind::CopyWait(groups) => self.copy_wait(*groups)?,
            Kind::MbarrierTest(test) => {
                if self.active != 0 {
                    return self.mbarrier_test(test);
                }
            }
            Kind::ClusterWait => {
                if self.active != 0 {
                    return self.cluster_wait();
                }
            }
            Kind::CopyArrive(..)
            | Kind::Mbarrier(_)
            | Kind::Tensor(_)
            | Kind::Bulk(_)
            | Kind::BulkCommit
            | Kind::BulkWait(..)
            | Kind::TensormapReplace(_)
            | Kind::TensormapAcquire(_)
            | Kind::Fence(_)
            | Kind::ClusterArrive(_)
            | Kind::MapShared(..)
            | Kind::RankOf(..) => self.asynchronous(kind)?,
            Kind::Pause => return Ok(Next::Yield),
            Kind::Nothing => {}
        }
        Ok(Next::Step)
    }
}
