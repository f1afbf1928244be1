//! Atomic read-modify-writes: lane after lane, so that the result is the same in every run.

use rtc_ptx::Modifier::{self, *};

use super::access::{aligned, from_bytes, resolve};
use super::sanitize::Touched;
use super::step::Step;
use crate::code::{Atomic, AtomicOp, Window};
use crate::fault::{Access, FaultKind};
use crate::numeric::float::{Operation, bits32, directed64, flush, half, half_format, half_value, max32, min32};
use crate::numeric::format::Round;

impl Step<'_, '_> {
    pub(super) fn atomic(&mut self, atomic: &Atomic) -> Result<(), (FaultKind, u32)> {
        let window = atomic.address.window;
        let addresses = self.addresses(atomic.address);
        let operands: Vec<[u64; 32]> = atomic.sources.iter().map(|s| *self.source(*s)).collect();
        let swap = atomic.swap.map(|s| *self.source(s));
        let mut old = vec![[0; 32]; operands.len()];
        let total = atomic.bytes * operands.len() as u32;
        let mut skipped = 0;
        if self.state.sanitizer.is_some() {
            let touched = Touched { access: Access::Atomic, order: atomic.order, bytes: total };
            skipped = self.inspect((window, &addresses), touched, None);
        }
        if self.state.counting.is_some() {
            self.count_access((window, &addresses), total, Access::Atomic);
        }
        for lane in self.lanes().filter(|lane| skipped >> lane & 1 == 0) {
            let i = lane as usize;
            aligned(window, Access::Atomic, addresses[i], total).map_err(|kind| (kind, lane))?;
            self.check((window, addresses[i]), total, lane, Access::Atomic)?;
            let by = if resolve(window, addresses[i]).0 == Window::Global { Unit::Cache } else { Unit::Thread };
            let slot = self.slot(Access::Atomic, (window, addresses[i]), total, lane)?;
            for (n, element) in slot.chunks_exact_mut(atomic.bytes as usize).enumerate() {
                let before = from_bytes(element);
                let after = match swap {
                    Some(new) => {
                        if before == operands[n][i] {
                            new[i]
                        } else {
                            before
                        }
                    }
                    None => combine(atomic.op, atomic.ty, before, operands[n][i], by),
                };
                element.copy_from_slice(&after.to_le_bytes()[..atomic.bytes as usize]);
                old[n][i] = before;
            }
        }
        for (register, values) in atomic.registers.iter().zip(&old) {
            self.write(*register, values);
        }
        Ok(())
    }
}

/// The unit that executes an atomic, which determines subnormals and NaNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The thread, as for shared memory.
    Thread,
    /// The cache in front of global memory.
    Cache,
    /// The same, for a bulk copy. Through a tensor map of f32 with `ftz` it does what it does for a thread.
    Bulk,
}

/// The new value of an atomic.
pub fn combine(op: AtomicOp, ty: Modifier, old: u64, operand: u64, by: Unit) -> u64 {
    match (op, ty) {
        (AtomicOp::Exch, _) => operand,
        // `cas` is decided where memory is.
        (AtomicOp::Cas, _) => old,
        (AtomicOp::And, _) => old & operand,
        (AtomicOp::Or, _) => old | operand,
        (AtomicOp::Xor, _) => old ^ operand,
        (AtomicOp::Inc, _) => {
            if old as u32 >= operand as u32 {
                0
            } else {
                old + 1
            }
        }
        (AtomicOp::Dec, _) => {
            if old == 0 || old as u32 > operand as u32 {
                operand
            } else {
                old - 1
            }
        }
        (_, F16x2 | Bf16x2) => {
            let brain = ty == Bf16x2;
            let low = half_combine(op, brain, old as u16, operand as u16);
            let high = half_combine(op, brain, (old >> 16) as u16, (operand >> 16) as u16);
            u64::from(low) | u64::from(high) << 16
        }
        (_, F16 | Bf16) => half_combine(op, ty == Bf16, old as u16, operand as u16).into(),
        (AtomicOp::Add, F32) => {
            let (a, b) = (f32::from_bits(old as u32), f32::from_bits(operand as u32));
            let sum = if by == Unit::Cache { flush(flush(a) + flush(b)) } else { a + b };
            bits32(sum).into()
        }
        (AtomicOp::Add, F64) => add64(f64::from_bits(old), f64::from_bits(operand), by).to_bits(),
        (AtomicOp::Add, U32 | S32 | B32) => u64::from((old as u32).wrapping_add(operand as u32)),
        (AtomicOp::Add, _) => old.wrapping_add(operand),
        (AtomicOp::Min, S32) => (old as i32).min(operand as i32) as u32 as u64,
        (AtomicOp::Min, S64) => (old as i64).min(operand as i64) as u64,
        (AtomicOp::Min, _) => old.min(operand),
        (AtomicOp::Max, S32) => (old as i32).max(operand as i32) as u32 as u64,
        (AtomicOp::Max, S64) => (old as i64).max(operand as i64) as u64,
        (AtomicOp::Max, _) => old.max(operand),
    }
}

/// An addition of f64. Threads add the memory's value to their operand; the cache keeps a NaN unchanged.
fn add64(old: f64, operand: f64, by: Unit) -> f64 {
    match by {
        Unit::Thread => directed64(Operation::Add, operand, old, 0.0, Round::Nearest),
        _ if operand.is_nan() => operand,
        _ if old.is_nan() => old,
        _ => old + operand,
    }
}

fn half_combine(op: AtomicOp, brain: bool, old: u16, operand: u16) -> u16 {
    let format = half_format(brain);
    let (a, b) = (half_value(format, old), half_value(format, operand));
    match op {
        AtomicOp::Add => half(format, Operation::Add, a, b, 0.0),
        AtomicOp::Min => format.narrow(min32(a, b).into(), Round::Nearest) as u16,
        _ => format.narrow(max32(a, b).into(), Round::Nearest) as u16,
    }
}
