//! Loads and stores.

use super::machine::{Machine, Stop};
use super::value::Data;
use super::{FaultKind, FindingKind, MemoryError, ReadState};
use crate::{Elem, Op, Scalar, Type, view};

impl Machine<'_> {
    /// `load`: every slot reads for itself; a slot whose mask is false is not accessed.
    pub(crate) fn load(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let load = view::Load::at(kernel, op);
        let pointer = load.pointer();
        let ty = kernel.value_type(pointer);
        let scalar = ty.elem().and_then(Elem::pointee).unwrap_or(Scalar::I8);
        let (addresses, mask) = (self.get(pointer), load.mask().map(|v| self.get(v)));
        let other = load.other().map(|v| self.get(v));
        let count = self.slots(ty);
        let is_on = |i: usize| mask.as_ref().is_none_or(|m| m.slot(i) & 1 != 0);
        let place = |i: usize| is_on(i).then(|| addresses.slot(i));
        let slots = self.read_all(op, ty, scalar, count, place, |i| other.as_ref().map_or(0, |o| o.slot(i)))?;
        let result = if ty.shape().is_some() { Data::many(slots) } else { Data::Scalar(slots[0]) };
        self.set_result(op, result);
        Ok(())
    }

    /// Reads what the slots of a tile of type `ty` find at their places; those without place get `other`.
    pub(super) fn read_all(
        &mut self,
        op: Op,
        ty: Type,
        scalar: Scalar,
        count: usize,
        place: impl Fn(usize) -> Option<u64>,
        other: impl Fn(usize) -> u64,
    ) -> Result<Vec<u64>, Stop> {
        self.tick(count)?;
        let mut slots = Vec::with_capacity(count);
        let mut bytes = Vec::new();
        while slots.len() < count {
            let start = slots.len();
            let Some(address) = place(start) else {
                slots.push(other(start));
                continue;
            };
            // Neighbouring addresses are read together; if that fails, one by one, to say which.
            let end = start + run_length(count - start, scalar, address, |i| place(start + i));
            bytes.resize((end - start) * scalar.bytes() as usize, 0);
            let aligned = address.is_multiple_of(u64::from(scalar.bytes()));
            if aligned && matches!(self.memory.read(address, &mut bytes), Ok(ReadState::Defined)) {
                slots.extend(bytes.chunks(scalar.bytes() as usize).map(|chunk| from_bytes(chunk, scalar)));
                continue;
            }
            for i in start..end {
                slots.push(self.read(op, ty, i, place(i).unwrap_or(address), scalar)?);
            }
        }
        Ok(slots)
    }

    /// `store`: once per element.
    pub(crate) fn store(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let (Some(pointer), Some(value)) = (kernel.pointer(op), kernel.value_operand(op)) else { return Ok(()) };
        let ty = kernel.value_type(pointer);
        let scalar = ty.elem().and_then(Elem::pointee).unwrap_or(Scalar::I8);
        let (addresses, values) = (self.get(pointer), self.get(value));
        let mask = kernel.mask(op).map(|v| self.get(v));
        let is_on = |slot: usize| mask.as_ref().is_none_or(|m| m.slot(slot) & 1 != 0);
        self.write_all(ty, scalar, &values, |slot| is_on(slot).then(|| addresses.slot(slot)))
    }

    /// Writes each element of a tile of type `ty` once, to the place of its slot if that has one.
    pub(super) fn write_all(
        &mut self,
        ty: Type,
        scalar: Scalar,
        values: &Data,
        place: impl Fn(usize) -> Option<u64>,
    ) -> Result<(), Stop> {
        let owners = self.owners(ty);
        self.tick(owners.len())?;
        let values = &self.without_nan_bits(values, scalar);
        let place_of = |i: usize| place(owners[i] as usize);
        let mut bytes = Vec::new();
        let mut next = 0;
        while next < owners.len() {
            let start = next;
            let Some(address) = place_of(start) else {
                next += 1;
                continue;
            };
            next += run_length(owners.len() - start, scalar, address, |i| place_of(start + i));
            bytes.clear();
            for slot in &owners[start..next] {
                bytes.extend_from_slice(&values.slot(*slot as usize).to_le_bytes()[..scalar.bytes() as usize]);
            }
            let aligned = address.is_multiple_of(u64::from(scalar.bytes()));
            if aligned && self.memory.write(address, &bytes).is_ok() {
                continue;
            }
            for slot in &owners[start..next] {
                let slot = *slot as usize;
                self.write(ty, slot, place(slot).unwrap_or(address), scalar, values.slot(slot))?;
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
            Ok(ReadState::Defined) => {}
            Ok(ReadState::Undefined) => self.find(op, FindingKind::UninitializedRead { address }, ty, slot),
            Err(error) => return Err(self.refused(error, ty, slot, address, scalar)),
        }
        Ok(from_bytes(&bytes[..size], scalar))
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
        if address.is_multiple_of(u64::from(size)) {
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

/// How many of `count` accesses from the one at `first` on are wanted and lie one after the other in memory; at least 1.
fn run_length(count: usize, scalar: Scalar, first: u64, place: impl Fn(usize) -> Option<u64>) -> usize {
    let follows = |i: &usize| place(*i) == Some(first.wrapping_add(*i as u64 * u64::from(scalar.bytes())));
    (1..count).find(|i| !follows(i)).unwrap_or(count)
}

/// The scalar in these bytes. A truth value is a byte in memory; any that is not 0 is true.
fn from_bytes(bytes: &[u8], scalar: Scalar) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    if scalar == Scalar::I1 { u64::from(bits != 0) } else { bits }
}
