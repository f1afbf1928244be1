//! 32-bit overflow in the computation of addresses.
//!
//! When a 32-bit sum or product leaves the signed range, the exact value of the lane is kept in addition to the
//! register. Later sums and products use exact values, so a result that returns to the range is fine; all other
//! operations (masks, shifts to the right, hashes, comparisons) start from the register's value. At the extension to 64
//! bits a lane counts as overflowed if its exact value is lost; 64-bit arithmetic propagates that. An access of global
//! memory through such an address is a finding. Only operations from which an address is computed are tracked
//! (`decode/addresses.rs`).

use std::collections::HashMap;

use super::shared::Shared;
use super::warp::Warp;
use super::{RawFinding, State};
use crate::alu::Lanes;
use crate::code::{AddressOperand, CONSTANT, Kind, Reg, Src, Window, WrapRule};

/// Registers, by index in the warp, with lanes whose exact value the register does not hold.
pub type Wraps = HashMap<u32, Wrapped>;

/// The lanes of one register.
#[derive(Clone, Debug)]
pub struct Wrapped {
    /// Lanes concerned.
    lanes: u32,
    /// Their exact values, as long as they are 32-bit.
    exact: [i64; 32],
    /// The operation in which each left the range, and the value there.
    origin: [(u32, i64); 32],
}

impl Wrapped {
    fn at(&self, lane: usize) -> Option<(i64, (u32, i64))> {
        (self.lanes >> lane & 1 == 1).then(|| (self.exact[lane], self.origin[lane]))
    }
}

fn fits_signed(x: i64) -> bool {
    i32::try_from(x).is_ok()
}

/// Whether zero extension keeps a value: one that may be meant as unsigned, too.
fn fits_either(x: i64) -> bool {
    fits_signed(x) || u32::try_from(x).is_ok()
}

impl Warp {
    /// Follows one operation, before it is executed.
    pub(super) fn follow(
        &mut self,
        constants: &[Lanes],
        base: usize,
        active: u32,
        (rule, pc): (WrapRule, u32),
        to: Reg,
        sources: &[Src; 4],
    ) {
        let empty = self.wraps.is_empty();
        if empty && !rule.can_wrap() {
            return;
        }
        let mut found = Wrapped { lanes: 0, exact: [0; 32], origin: [(0, 0); 32] };
        let values = sources.map(|s| self.source(constants, base, s));
        let known = sources.map(|s| match s & CONSTANT {
            0 if !empty => self.wraps.get(&(base as u32 + s)),
            _ => None,
        });
        let mut rest = active;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let at = |i: usize| known[i].and_then(|w| w.at(lane));
            let exact = |i: usize| at(i).map_or(i64::from(values[i][lane] as i32), |(exact, _)| exact);
            let origin = |n: usize| (0..n).find_map(|i| at(i).map(|(_, origin)| origin));
            let mut keep = |exact: i64, origin: (u32, i64)| {
                found.lanes |= 1 << lane;
                found.exact[lane] = exact;
                found.origin[lane] = origin;
            };
            let computed = match rule {
                WrapRule::Add => Some(exact(0).saturating_add(exact(1))),
                WrapRule::Sub => Some(exact(0).saturating_sub(exact(1))),
                WrapRule::Neg => Some(exact(0).saturating_neg()),
                WrapRule::Mul => Some(exact(0).saturating_mul(exact(1))),
                WrapRule::Mad => Some(exact(0).saturating_mul(exact(1)).saturating_add(exact(2))),
                WrapRule::Shl => (values[1][lane] < 32).then(|| exact(0).saturating_mul(1 << values[1][lane])),
                WrapRule::Or => (values[0][lane] & values[1][lane] == 0).then(|| exact(0).saturating_add(exact(1))),
                _ => None,
            };
            if rule.can_wrap() {
                if let Some(value) = computed.filter(|value| !fits_signed(*value)) {
                    keep(value, origin(3).unwrap_or((pc, value)));
                }
                continue;
            }
            let carried = match rule {
                WrapRule::Move => at(0),
                WrapRule::Select => at(if values[2][lane] & 1 == 1 { 0 } else { 1 }),
                WrapRule::ExtendSigned => at(0).or(at(1)),
                WrapRule::ExtendUnsigned => at(0).or(at(1)).filter(|(exact, _)| !fits_either(*exact)),
                _ => origin(3).map(|origin| (0, origin)),
            };
            // The addend of a widening multiplication is 64 bits wide already.
            let carried = match rule {
                WrapRule::ExtendSigned | WrapRule::ExtendUnsigned => carried.or(at(2)),
                _ => carried,
            };
            if let Some((exact, origin)) = carried {
                keep(exact, origin);
            }
        }
        self.keep_wraps(base as u32 + to, active, &found);
    }

    fn keep_wraps(&mut self, register: u32, active: u32, found: &Wrapped) {
        if found.lanes == 0 {
            self.forget_wraps(register, active);
            return;
        }
        let kept = self.wraps.entry(register).or_insert_with(|| found.clone());
        kept.lanes = kept.lanes & !active | found.lanes;
        for lane in (0..32).filter(|lane| found.lanes >> lane & 1 == 1) {
            kept.exact[lane] = found.exact[lane];
            kept.origin[lane] = found.origin[lane];
        }
    }

    /// The lanes of a register got new values that did not wrap.
    pub(super) fn forget_wraps(&mut self, register: u32, active: u32) {
        if let Some(kept) = self.wraps.get_mut(&register) {
            kept.lanes &= !active;
            if kept.lanes == 0 {
                self.wraps.remove(&register);
            }
        }
    }

    /// Looks at an operation that is no arithmetic: accesses through wrapped addresses are findings, results are new.
    pub(super) fn inspect_wraps(
        &mut self,
        state: &mut State<'_>,
        shared: &Shared,
        base: usize,
        active: u32,
        kind: &Kind,
        pc: u32,
    ) {
        let address = match kind {
            Kind::Load(load) => load.address,
            Kind::Store(store) => store.address,
            Kind::Atomic(atomic) => atomic.address,
            Kind::CopyAsync(copy) => copy.from,
            // Frames of callees reuse registers.
            Kind::Call(_) | Kind::Return => return self.wraps.clear(),
            _ => return,
        };
        self.inspect_address(state, shared, base, active, address, pc);
        let written: &[Reg] = match kind {
            Kind::Load(load) => &load.registers,
            Kind::Atomic(atomic) => &atomic.registers,
            _ => &[],
        };
        for register in written {
            self.forget_wraps((base as u32).wrapping_add(*register), active);
        }
    }

    fn inspect_address(
        &self,
        state: &mut State<'_>,
        shared: &Shared,
        base: usize,
        active: u32,
        address: AddressOperand,
        pc: u32,
    ) {
        if !matches!(address.window, Window::Global | Window::Generic) || address.base & CONSTANT != 0 {
            return;
        }
        let Some(wrapped) = self.wraps.get(&(base as u32 + address.base)) else { return };
        let lanes = wrapped.lanes & active;
        if lanes == 0 {
            return;
        }
        let lane = lanes.trailing_zeros();
        let (origin, value) = wrapped.origin[lane as usize];
        if state.findings.iter().all(|f| f.origin != origin) {
            let block = shared.own().index;
            state.findings.push(RawFinding { origin, access: pc, value, block, warp: self.id, lane });
        }
    }
}
