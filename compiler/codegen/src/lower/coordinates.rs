//! Where a thread's registers lie in a tile, and which threads hold copies.
//!
//! A linear map from places to numbers (coordinates, addresses) is a sum, by XOR, of a part that depends on the
//! thread and a constant per register. The thread's part is computed once, in the prologue of its warps, from the bits
//! of the thread's number; runs of bits that keep their order become one shift and mask.

use std::{cell::RefCell, collections::HashMap};

use rtc_layout::Layout;

use super::{Lowering, Registers};
use crate::{
    emit::{Cmpi, Value},
    error::Result,
};

/// The thread's parts of the linear maps seen so far.
pub(super) struct ThreadParts<'c> {
    /// Bits of the numbers that the threads have.
    thread_bits: u32,
    parts: RefCell<HashMap<Vec<u32>, Option<Value<'c>>>>,
    masks: RefCell<HashMap<u32, Value<'c>>>,
}

impl ThreadParts<'_> {
    pub fn new(threads: u32) -> Self {
        ThreadParts {
            thread_bits: threads.next_power_of_two().trailing_zeros(),
            parts: RefCell::default(),
            masks: RefCell::default(),
        }
    }
}

/// A linear map's value in this thread: `part ^ constant`, the constant depending on the register.
#[derive(Clone, Copy)]
pub(super) struct Spot<'c> {
    /// The thread's part; absent if no thread bit has any influence.
    part: Option<Value<'c>>,
    /// All bits that the part may have.
    bits: u32,
}

impl Spot<'_> {
    /// Whether no thread bit has any influence.
    pub fn is_constant(&self) -> bool {
        self.part.is_none()
    }

    /// Whether no thread bit has any influence on bits of `mask`.
    pub fn is_free_of(&self, mask: u32) -> bool {
        self.bits & mask == 0
    }

    /// Splits a register's constant into what must be XORed and what can be added afterwards.
    pub fn split(&self, constant: u32) -> (u32, u32) {
        (constant & self.bits, constant & !self.bits)
    }
}

impl<'c> Lowering<'_, 'c> {
    /// The lane's number in the warp.
    pub(super) fn lane(&self) -> Value<'c> {
        let bases: Vec<u32> = (0..5).map(|bit| 1 << bit).collect();
        self.spot(&bases).part.unwrap_or_else(|| self.e.i32(0))
    }

    /// The map in which bit `i` of the thread's number contributes `bases[i]`. Lanes are bits 0 to 4, warps follow.
    pub(super) fn spot(&self, bases: &[u32]) -> Spot<'c> {
        let mut key = bases.to_vec();
        let threads = self.threads();
        key.truncate(threads.places.thread_bits as usize);
        while key.last() == Some(&0) {
            key.pop();
        }
        let bits = key.iter().fold(0, |all, basis| all | basis);
        if let Some(part) = threads.places.parts.borrow().get(&key) {
            return Spot { part: *part, bits };
        }
        let part = self.e.in_prologue(|| self.thread_part(&key));
        threads.places.parts.borrow_mut().insert(key, part);
        Spot { part, bits }
    }

    /// The map from a layout's places to `map` of the element's row-major index; linear over GF(2).
    pub(super) fn layout_spot(&self, layout: &Layout, map: impl Fn(u32) -> u32) -> Spot<'c> {
        let lanes = (0..5).map(|bit| layout.index(0, 1 << bit, 0));
        let warps = (0..layout.warps().trailing_zeros()).map(|bit| layout.index(0, 0, 1 << bit));
        let bases: Vec<u32> = lanes.chain(warps).map(map).collect();
        self.spot(&bases)
    }

    /// The value of a map in the register whose constant is `constant`.
    pub(super) fn at(&self, spot: Spot<'c>, constant: u32) -> Value<'c> {
        let Some(part) = spot.part else { return self.e.i32(constant as i32) };
        if constant == 0 {
            return part;
        }
        let constant_value = self.e.i32(constant as i32);
        if spot.bits & constant == 0 {
            self.e.add_disjoint(part, constant_value)
        } else {
            self.e.xori(part, constant_value)
        }
    }

    /// The thread's part of a map, by the bits of the thread's number.
    fn thread_part(&self, bases: &[u32]) -> Option<Value<'c>> {
        let e = self.e;
        let thread = self.thread();
        let mut sum: Option<(Value<'c>, u32)> = None;
        let mut add = |value: Value<'c>, bits: u32| {
            sum = Some(match sum {
                None => (value, bits),
                Some((before, seen)) if seen & bits == 0 => (e.add_disjoint(before, value), seen | bits),
                Some((before, seen)) => (e.xori(before, value), seen | bits),
            });
        };
        let mut from = 0;
        while from < bases.len() {
            let basis = bases[from];
            let mut to = from + 1;
            if basis == 0 {
                from = to;
                continue;
            }
            if basis.is_power_of_two() {
                while to < bases.len() && bases[to] == basis << (to - from) {
                    to += 1;
                }
                let shift = basis.trailing_zeros() as i32 - from as i32;
                let mask = ((1u32 << (to - from)) - 1) << from;
                let run = if to as u32 == self.threads().places.thread_bits && from == 0 {
                    thread
                } else {
                    e.andi(thread, e.i32(mask as i32))
                };
                let moved = match shift {
                    0 => run,
                    1.. => e.shli(run, e.i32(shift)),
                    _ => e.shrui(run, e.i32(-shift)),
                };
                add(moved, basis * ((1 << (to - from)) - 1));
            } else {
                // All ones if the bit is set, then the bits of the basis.
                let up = e.shli(thread, e.i32(31 - from as i32));
                add(e.andi(e.shrsi(up, e.i32(31)), e.i32(basis as i32)), basis);
            }
            from = to;
        }
        sum.map(|(value, _)| value)
    }

    /// Whether the bits of `mask` of the thread's number are all zero; nothing if the mask is empty.
    pub(super) fn thread_bits_clear(&self, mask: u32) -> Option<Value<'c>> {
        let threads = self.threads();
        let mask = mask & ((1 << threads.places.thread_bits) - 1);
        if mask == 0 {
            return None;
        }
        let known = threads.places.masks.borrow().get(&mask).copied();
        Some(known.unwrap_or_else(|| {
            let e = self.e;
            let value = e.in_prologue(|| e.cmpi(Cmpi::Eq, e.andi(self.thread(), e.i32(mask as i32)), e.i32(0)));
            threads.places.masks.borrow_mut().insert(mask, value);
            value
        }))
    }

    /// Who must act once per element: a condition on the thread, and a mask of register bits; registers with any of
    /// them set hold copies. A scalar belongs to thread 0.
    pub(super) fn holders(&self, value: rtc_ir::Value) -> Result<Holders<'c>> {
        let Some(layout) = self.kernel.layout_of(value) else {
            return Ok(Holders { thread: self.thread_bits_clear(u32::MAX), copied_registers: 0 });
        };
        let copies = layout.copies();
        Ok(Holders {
            thread: self.thread_bits_clear(copies.lanes | copies.warps << 5),
            copied_registers: copies.registers,
        })
    }

    /// `condition` and `mask`, where either may be absent.
    pub(super) fn both(&self, condition: Option<Value<'c>>, mask: Option<Value<'c>>) -> Option<Value<'c>> {
        match (condition, mask) {
            (Some(a), Some(b)) => Some(self.e.andi(a, b)),
            (a, b) => a.or(b),
        }
    }
}

/// See [`Lowering::holders`].
#[derive(Clone, Copy)]
pub(super) struct Holders<'c> {
    /// The thread's condition; absent if every thread acts.
    pub thread: Option<Value<'c>>,
    /// Register bits along which there are only copies.
    pub copied_registers: u32,
}

/// Entry `index` of a register list; a list with one entry applies to all.
pub(super) fn register<'c>(registers: &Registers<'c>, index: usize) -> Value<'c> {
    registers[index.min(registers.len() - 1)]
}
