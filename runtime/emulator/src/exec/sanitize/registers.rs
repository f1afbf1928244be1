//! Registers that were never written: arithmetic hands them on bit by bit, and a use that others see is reported.

use std::collections::HashMap;

use super::Actor;
use crate::alu::{AluFn, Lanes};
use crate::code::{CONSTANT, Kind, MatrixA, NEGATED, NONE, Op, Reg, Src};
use crate::exec::Launch;
use crate::exec::register_use::visit;
use crate::exec::step::Step;
use crate::exec::warp::{Warp, mask_of};
use crate::numeric::convert::mask;
use crate::sanitize::Check;

/// The initialized bits of a warp's registers.
#[derive(Default)]
pub struct Defined {
    /// For each register the lanes in which all its bits were written.
    whole: Vec<u32>,
    /// The unwritten bits of partially written registers.
    missing: HashMap<usize, Box<Lanes>>,
}

impl Defined {
    /// The lanes in which a source has all its bits.
    fn lanes(&self, base: usize, source: Src) -> u32 {
        if source & CONSTANT != 0 {
            return u32::MAX;
        }
        self.whole.get(base + source as usize).copied().unwrap_or(0)
    }

    /// The uninitialized bits of a source, in a lane.
    fn bits(&self, base: usize, source: Src, lane: usize) -> u64 {
        if self.lanes(base, source) >> lane & 1 == 1 {
            return 0;
        }
        self.missing.get(&(base + source as usize)).map_or(u64::MAX, |bits| bits[lane])
    }

    /// Some lanes of a register are written.
    fn write(&mut self, base: usize, to: Reg, lanes: u32) {
        if to == NONE {
            return;
        }
        let index = base + to as usize;
        if self.whole.len() <= index {
            self.whole.resize(index + 1, 0);
        }
        self.whole[index] |= lanes;
        if self.whole[index] == u32::MAX {
            self.missing.remove(&index);
        }
    }

    /// Some lanes of a register get uninitialized bits.
    fn write_missing(&mut self, base: usize, to: Reg, lanes: u32, bits: &Lanes) {
        self.write(base, to, lanes);
        if to == NONE {
            return;
        }
        let index = base + to as usize;
        let kept = self.missing.entry(index).or_insert_with(|| Box::new([u64::MAX; 32]));
        for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
            kept[lane] = bits[lane];
            if bits[lane] != 0 {
                self.whole[index] &= !(1 << lane);
            }
        }
    }
}

impl Warp {
    /// Follows an arithmetic operation: its result is defined where its sources are.
    pub(in crate::exec) fn follow_defined(&mut self, launch: &Launch<'_>, base: usize, op: &Op, active: u32) {
        let Kind::Alu(function, to, sources) = &op.kind else { return };
        let Some(mut defined) = self.defined.take() else { return };
        let all = sources.iter().fold(u32::MAX, |all, source| all & defined.lanes(base, *source));
        if active & !all == 0 {
            defined.write(base, *to, active);
        } else {
            let bits = self.undefined_bits(launch, base, &defined, *function, sources);
            defined.write_missing(base, *to, active, &bits);
        }
        self.defined = Some(defined);
    }

    /// The bits of a result that depend on uninitialized bits of its sources.
    fn undefined_bits(
        &self,
        launch: &Launch<'_>,
        base: usize,
        defined: &Defined,
        function: AluFn,
        sources: &[Src; 4],
    ) -> Lanes {
        let with = |change: fn(u64, u64) -> u64| {
            let changed = sources.map(|source| {
                let values = self.source(launch.constants, base, source);
                let lane = |lane: usize| change(values[lane], defined.bits(base, source, lane));
                std::array::from_fn(lane)
            });
            let mut result: Lanes = [0; 32];
            function(&changed.each_ref(), &mut result);
            result
        };
        let (zeros, ones) = (with(|value, missing| value & !missing), with(|value, missing| value | missing));
        let mixed = with(|value, missing| value & !missing | 0x5a5a_5a5a_5a5a_5a5a & missing);
        std::array::from_fn(|lane| (zeros[lane] ^ ones[lane]) | (zeros[lane] ^ mixed[lane]))
    }
}

impl Step<'_, '_> {
    /// Looks at the registers of an operation that is not arithmetic.
    pub(in crate::exec) fn inspect_registers(&mut self, kind: &Kind) {
        let Some(mut defined) = self.warp.defined.take() else { return };
        let (base, active) = (self.base(), self.active);
        let mut undefined = None;
        let mut written = Vec::new();
        let guard = self.launch.code.ops[self.group.pc as usize].guard;
        let mut uses = vec![(guard & !NEGATED, 1)];
        uses.retain(|_| guard != NONE);
        let stored = match kind {
            Kind::Store(store) => mask(8 * store.bytes),
            _ => u64::MAX,
        };
        visit(kind, &mut |register, write| {
            if write {
                written.push(register);
            } else {
                let is_address = matches!(kind, Kind::Store(store) if !store.sources.contains(&register));
                uses.push((register, if is_address { u64::MAX } else { stored }));
            }
        });
        if let Kind::Product(product) = kind {
            if let MatrixA::Registers(list) = &product.a {
                uses.extend(list.iter().map(|register| (*register, u64::MAX)));
            }
            if mask_of(self.source(product.scale_d)) & active != 0 {
                uses.extend(product.d.iter().map(|register| (*register, u64::MAX)));
            }
            written.extend(&product.d);
        }
        for (register, used) in uses {
            let lanes = if register == guard & !NEGATED { self.group.mask } else { active };
            let mut open = lanes & !defined.lanes(base, register);
            if open != 0 {
                open = (0..32)
                    .filter(|lane| open >> lane & 1 == 1)
                    .fold(0, |all, lane| all | u32::from(defined.bits(base, register, lane) & used != 0) << lane);
            }
            if open != 0 {
                undefined = Some((register, open));
                break;
            }
        }
        for register in written {
            defined.write(base, register, active);
        }
        if let Some((register, lanes)) = undefined {
            // It is reported here, and not again where its value goes.
            defined.write(base, register, lanes);
            let name = self.register_name(register);
            let actor = self.actor(lanes.trailing_zeros());
            self.record((Check::Init, "uninitialized-register"), actor, None, || {
                format!("register {name} is used here and was not written in this lane")
            });
        }
        self.warp.defined = Some(defined);
    }

    /// A lane at this operation.
    pub(in crate::exec) fn actor(&self, lane: u32) -> Actor {
        Actor { pc: self.group.pc, block: self.shared.own().index, warp: self.warp.id, lane: Some(lane) }
    }

    /// Reports something if the sanitizer is on.
    pub(in crate::exec) fn record(
        &mut self,
        what: (Check, &'static str),
        at: Actor,
        other: Option<(&'static str, Actor)>,
        message: impl FnOnce() -> String,
    ) {
        if let Some(sanitizer) = &mut self.state.sanitizer
            && sanitizer.checks.has(what.0)
        {
            sanitizer.record(what, at, other, message);
        }
    }
}
