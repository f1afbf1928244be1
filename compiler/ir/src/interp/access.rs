//! Loads and stores.

use super::machine::{Machine, Stop};
use super::value::Data;
use super::{Access, FaultKind, FindingKind, MemoryError};
use crate::ops::eval::mask;
use crate::{Elem, Op, Scalar, Type};

impl Machine<'_> {
    /// `load`: every slot reads for itself; a slot whose mask is false is not accessed.
    pub(crate) fn load(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let pointer = kernel.operand(op, 0);
        let ty = kernel.value_type(pointer);
        let scalar = ty.elem().and_then(Elem::pointee).unwrap_or(Scalar::I8);
        let (addresses, mask) = (self.get(pointer), kernel.optional(op, 0).map(|v| self.get(v)));
        let other = kernel.optional(op, 1).map(|v| self.get(v));
        let count = self.slots(ty);
        self.tick(count)?;
        let mut slots = Vec::with_capacity(count);
        for i in 0..count {
            if mask.as_ref().is_some_and(|m| m.slot(i) & 1 == 0) {
                slots.push(other.as_ref().map_or(0, |o| o.slot(i)));
            } else {
                slots.push(self.read(op, ty, i, addresses.slot(i), scalar)?);
            }
        }
        let result = if ty.shape().is_some() { Data::many(slots) } else { Data::Scalar(slots[0]) };
        self.set_result(op, result);
        Ok(())
    }

    /// `store`: once per element.
    pub(crate) fn store(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let (pointer, value) = (kernel.operand(op, 0), kernel.operand(op, 1));
        let ty = kernel.value_type(pointer);
        let scalar = ty.elem().and_then(Elem::pointee).unwrap_or(Scalar::I8);
        let (addresses, values) = (self.get(pointer), self.get(value));
        let mask = kernel.optional(op, 0).map(|v| self.get(v));
        let owners = self.owners(ty);
        self.tick(owners.len())?;
        for slot in owners {
            let slot = slot as usize;
            if mask.as_ref().is_none_or(|m| m.slot(slot) & 1 != 0) {
                self.write(ty, slot, addresses.slot(slot), scalar, values.slot(slot))?;
            }
        }
        Ok(())
    }

    /// Reads a scalar for a slot of a tile of type `ty`.
    pub(crate) fn read(&mut self, op: Op, ty: Type, slot: usize, address: u64, scalar: Scalar) -> Result<u64, Stop> {
        self.check_alignment(ty, slot, address, scalar)?;
        let mut bytes = [0; 8];
        let size = scalar.bytes() as usize;
        match self.memory.read(address, &mut bytes[..size]) {
            Ok(Access::Defined) => {}
            Ok(Access::Undefined) => self.find(op, FindingKind::UninitializedRead { address }, ty, slot),
            Err(error) => return Err(self.refused(error, ty, slot, address, scalar)),
        }
        let bits = u64::from_le_bytes(bytes);
        // A truth value is a byte in memory; any that is not 0 is true.
        Ok(if scalar == Scalar::I1 { u64::from(bits != 0) } else { mask(bits, scalar.into()) })
    }

    /// Writes a scalar for a slot of a tile of type `ty`.
    pub(crate) fn write(&mut self, ty: Type, slot: usize, address: u64, scalar: Scalar, bits: u64) -> Result<(), Stop> {
        self.check_alignment(ty, slot, address, scalar)?;
        let bytes = bits.to_le_bytes();
        match self.memory.write(address, &bytes[..scalar.bytes() as usize]) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.refused(error, ty, slot, address, scalar)),
        }
    }

    fn check_alignment(&mut self, ty: Type, slot: usize, address: u64, scalar: Scalar) -> Result<(), Stop> {
        let size = scalar.bytes();
        if address % u64::from(size) == 0 {
            return Ok(());
        }
        Err(Stop { kind: FaultKind::Misaligned { address, size }, element: self.coordinate(ty, slot) })
    }

    fn refused(&mut self, error: MemoryError, ty: Type, slot: usize, address: u64, scalar: Scalar) -> Stop {
        let kind = match error {
            MemoryError::OutOfBounds(nearest) => FaultKind::OutOfBounds { address, size: scalar.bytes(), nearest },
            MemoryError::ReadOnly => FaultKind::ReadOnly { address },
        };
        Stop { kind, element: self.coordinate(ty, slot) }
    }
}
