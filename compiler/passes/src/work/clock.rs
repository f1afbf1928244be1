//! The clock of one warp: operations begin in order, each when its operands are there; loads, asynchronous copies and
//! dots run on while later operations begin.

use cranelift_entity::SecondaryMap;
use rtc_ir::Value;
use std::collections::VecDeque;

/// Cycles from a load of global memory to its value.
pub(super) const GLOBAL: f64 = 700.0;
/// Cycles from a load of shared memory to its value, and of a shuffle through it.
pub(super) const SHARED: f64 = 30.0;
/// Cycles of a barrier of the block.
pub(super) const BARRIER: f64 = 30.0;
/// Cycles that it takes to see that copies are done.
pub(super) const COPIED: f64 = 50.0;
/// Cycles from the last dot of a group to its sums.
pub(super) const PRODUCT: f64 = 60.0;
/// Cycles of an arithmetic instruction.
pub(super) const ARITHMETIC: f64 = 6.0;

/// The state of the warp.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// When the next operation can begin.
    pub now: f64,
    /// When each value is there.
    ready: SecondaryMap<Value, f64>,
    /// When the tensor cores have done all dots begun so far.
    dots: f64,
    /// Ends of the dots in flight, the oldest first.
    under_way: VecDeque<f64>,
    /// When the copies since the last commit are done.
    copies: f64,
    /// Ends of the groups of copies, the oldest first.
    groups: VecDeque<f64>,
}

impl Clock {
    /// Begins an operation: waits for its operands, and takes the time to issue it.
    pub fn begin(&mut self, operands: &[Value], issue: f64) {
        let latest = operands.iter().map(|v| self.ready[*v]).fold(self.now, f64::max);
        self.now = latest + issue;
    }

    /// Values are there so many cycles from now.
    pub fn give(&mut self, results: &[Value], cycles: f64) {
        results.iter().for_each(|v| self.ready[*v] = self.now + cycles);
    }

    /// A value is there when another is.
    pub fn hand(&mut self, from: Value, to: Value) {
        self.ready[to] = self.ready[from];
    }

    /// Dots that take the tensor cores so many cycles; gives when they are done, counted from now.
    pub fn dot(&mut self, cycles: f64) -> f64 {
        self.dots = self.dots.max(self.now) + cycles;
        self.under_way.push_back(self.dots + PRODUCT);
        self.dots + PRODUCT - self.now
    }

    /// Waits until all but the latest `pending` dots are done.
    pub fn wait_dots(&mut self, pending: usize) {
        while self.under_way.len() > pending {
            self.now = self.under_way.pop_front().map_or(self.now, |end| end.max(self.now));
        }
    }

    /// Begins a copy to shared memory.
    pub fn copy(&mut self) {
        self.copies = self.now + GLOBAL;
    }

    /// Makes a group of the copies so far.
    pub fn commit(&mut self) {
        self.groups.push_back(self.copies);
    }

    /// Waits until all but the latest `pending` groups of copies are done.
    pub fn wait_copies(&mut self, pending: usize) {
        while self.groups.len() > pending {
            self.now = self.groups.pop_front().map_or(self.now, |end| end.max(self.now));
        }
        self.now += COPIED;
    }

    /// Shifts all times back: as after a loop of which only some iterations were simulated.
    pub fn skip(&mut self, cycles: f64) {
        self.now += cycles;
        self.dots += cycles;
        self.copies += cycles;
        self.under_way.iter_mut().chain(&mut self.groups).for_each(|end| *end += cycles);
    }
}
