//! Atomic operations: once per element, in row-major order; what they give is the old value, 0 where the mask is false.

use super::FaultKind;
use super::machine::{Machine, Stop};
use super::value::Data;
use crate::ops::eval::{decode, mask, max_num, min_num, sign_extend};
use crate::{Elem, Op, RmwOp, Rounding, Scalar, Type, encode_float, view};

impl Machine<'_> {
    /// `atomic_rmw`.
    pub(crate) fn atomic_rmw(&mut self, op: Op, rmw: RmwOp) -> Result<(), Stop> {
        let value = self.get(view::AtomicRmw::at(self.kernel, op).value());
        self.update(op, |scalar, slot, old| Some(modify_global(rmw, scalar, old, value.slot(slot))))
    }

    /// `atomic_cas`: compares bits.
    pub(crate) fn atomic_cas(&mut self, op: Op) -> Result<(), Stop> {
        let swap = view::AtomicCas::at(self.kernel, op);
        let (compare, value) = (self.get(swap.compare()), self.get(swap.value()));
        self.update(op, |_, slot, old| (old == compare.slot(slot)).then(|| value.slot(slot)))
    }

    /// `atomic_load`.
    pub(crate) fn atomic_load(&mut self, op: Op) -> Result<(), Stop> {
        self.update(op, |_, _, _| None)
    }

    /// `atomic_poll`. Blocks run one after the other, so a value that is not there does not come any more.
    pub(crate) fn atomic_poll(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let poll = view::AtomicPoll::at(kernel, op);
        let ty = kernel.value_type(poll.pointer());
        let scalar = ty.elem().and_then(Elem::pointee).unwrap_or(Scalar::I32);
        let (addresses, expected) = (self.get(poll.pointer()), self.get(poll.expected()));
        let owners = self.owners(ty);
        self.tick(owners.len())?;
        let mut found = Vec::with_capacity(owners.len());
        for slot in owners {
            let slot = slot as usize;
            let holds = self.read(op, ty, slot, addresses.slot(slot), scalar)? == expected.slot(slot);
            if !holds && poll.timeout().is_none() {
                return Err(self.stop(FaultKind::StepLimit(self.max_steps)));
            }
            found.push(u64::from(holds));
        }
        let result = match ty {
            Type::Tile(_) => self.place(self.result_type(op), found),
            _ => Data::Scalar(found[0]),
        };
        self.set_result(op, result);
        Ok(())
    }

    /// Reads each element and writes what `new` makes of it.
    fn update(&mut self, op: Op, new: impl Fn(Scalar, usize, u64) -> Option<u64>) -> Result<(), Stop> {
        let kernel = self.kernel;
        let Some(pointer) = kernel.pointer(op) else { return Ok(()) };
        let ty = kernel.value_type(pointer);
        let scalar = ty.elem().and_then(Elem::pointee).unwrap_or(Scalar::I32);
        let addresses = self.get(pointer);
        let mask = kernel.mask(op).map(|v| self.get(v));
        let owners = self.owners(ty);
        self.tick(owners.len())?;
        let mut olds = Vec::with_capacity(owners.len());
        for slot in owners {
            let slot = slot as usize;
            if mask.as_ref().is_some_and(|m| m.slot(slot) & 1 == 0) {
                olds.push(0);
                continue;
            }
            let address = addresses.slot(slot);
            let old = self.read(op, ty, slot, address, scalar)?;
            if let Some(bits) = new(scalar, slot, old) {
                self.write(ty, slot, address, scalar, bits)?;
            }
            olds.push(old);
        }
        let result = match ty {
            Type::Tile(_) => self.place(self.result_type(op), olds),
            _ => Data::Scalar(olds[0]),
        };
        self.set_result(op, result);
        Ok(())
    }
}

/// The same as the machine's atomics do it in global memory: in sums of f32, subnormal numbers are taken for 0, and so is
/// such a sum.
pub(crate) fn modify_global(rmw: RmwOp, scalar: Scalar, old: u64, value: u64) -> u64 {
    match (rmw, scalar) {
        (RmwOp::FAdd, Scalar::F32) => flushed(modify(rmw, scalar, flushed(old), flushed(value))),
        _ => modify(rmw, scalar, old, value),
    }
}

/// The bits of an f32, of 0 with its sign if it is subnormal.
fn flushed(bits: u64) -> u64 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

/// The result of an atomic operation on an old element and an operand.
pub(crate) fn modify(rmw: RmwOp, scalar: Scalar, old: u64, value: u64) -> u64 {
    let elem = Elem::Num(scalar);
    let signed = |x| sign_extend(x, elem);
    let float = |f: fn(f64, f64) -> f64| {
        encode_float(f(decode(old, scalar), decode(value, scalar)), scalar, Rounding::NearestEven)
    };
    match rmw {
        RmwOp::Add => mask(old.wrapping_add(value), elem),
        RmwOp::FAdd => float(|a, b| a + b),
        RmwOp::FMax => float(max_num),
        RmwOp::FMin => float(min_num),
        RmwOp::Max => {
            if signed(value) > signed(old) {
                value
            } else {
                old
            }
        }
        RmwOp::Min => {
            if signed(value) < signed(old) {
                value
            } else {
                old
            }
        }
        RmwOp::UMax => old.max(value),
        RmwOp::UMin => old.min(value),
        RmwOp::And => old & value,
        RmwOp::Or => old | value,
        RmwOp::Xor => old ^ value,
        RmwOp::Xchg => value,
    }
}
