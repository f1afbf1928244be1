//! The arguments of a launch once more, on another device.

use crate::place::Place;
use crate::pointer::{Kind, Pointer};
use crate::snapshot::places;
use crate::{Arg, Buffer, Device, Error, Result, TensorDescriptor};

/// Where copies begin: as far apart from this as their originals, so that promises about addresses hold for both.
const ALIGNMENT: u64 = 1024;

/// The memory behind the arguments of a launch, copied to another device of the same kind. What overlaps there overlaps
/// here.
///
/// ```
/// use rtc_runtime::{Arg, Device, args, internal::{ArgumentCopies, Snapshot}};
/// let (device, other) = (Device::emulator(), Device::emulator());
/// let mut x = device.upload(&[1.0f32, 2.0])?;
/// let arguments = args![&mut x, 2];
/// let replica = ArgumentCopies::new(&device, &arguments, &other)?;
/// replica.with_args(|copies| {
///     assert!(matches!(copies, [Arg::Pointer(_), Arg::Int(2)]));
///     Snapshot::take(&other, copies)?.zero(0)
/// })?;
/// assert_eq!(x.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct ArgumentCopies {
    device: Device,
    regions: Vec<Region>,
    args: Vec<Copy>,
}

/// Memory that belongs together because some arguments overlap in it.
#[derive(Debug)]
struct Region {
    /// Of the original.
    start: u64,
    end: u64,
    /// The byte of `memory` where it begins.
    at: u64,
    memory: Buffer<u8>,
}

/// An argument without its memory.
#[derive(Debug)]
enum Copy {
    Pointer(Memory),
    Descriptor(Memory, Box<crate::descriptor::Extents>),
    Int(i128),
    Float(f64),
    Bool(bool),
}

/// A pointer of the original.
#[derive(Clone, core::marker::Copy, Debug)]
struct Memory {
    address: u64,
    bytes: u64,
    dtype: rtc_abi::DType,
    writes: bool,
}

impl ArgumentCopies {
    /// Copies what `args` point to on `from` to another device of the same kind.
    ///
    /// # Errors
    ///
    /// [`Error::BufferAccess`] for addresses without a buffer, constants and tuples; errors of [`Device::alloc`], and of the
    /// driver.
    pub fn new(from: &Device, args: &[Arg<'_>], device: &Device) -> Result<ArgumentCopies> {
        let places = places(args, |_| true)?;
        let mut spans: Vec<(u64, u64)> =
            places.iter().map(|(_, place)| (place.address, place.address + place.bytes)).collect();
        spans.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (start, end) in spans {
            match merged.last_mut() {
                Some(last) if start < last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        let mut regions = Vec::new();
        for (start, end) in merged {
            let memory = device.alloc::<u8>((end - start + ALIGNMENT) as usize)?;
            let at = (start % ALIGNMENT + ALIGNMENT - memory.address() % ALIGNMENT) % ALIGNMENT;
            regions.push(Region { start, end, at, memory });
        }
        let replica = ArgumentCopies { device: device.clone(), regions, args: Vec::new() };
        for region in &replica.regions {
            let (to, bytes) = (region.memory.address() + region.at, (region.end - region.start) as usize);
            device.backend().copy_from(to, &**from.backend(), region.start, bytes)?;
        }
        let copy = |arg: &Arg<'_>| match arg {
            Arg::Pointer(pointer) => memory(pointer).map(Copy::Pointer),
            Arg::Descriptor(descriptor) => {
                Ok(Copy::Descriptor(memory(descriptor.base())?, Box::new(descriptor.extents())))
            }
            Arg::Int(value) => Ok(Copy::Int(*value)),
            Arg::Float(value) => Ok(Copy::Float(*value)),
            Arg::Bool(value) => Ok(Copy::Bool(*value)),
            #[cfg(feature = "jit")]
            Arg::NamedTuple(..) | Arg::Constant(_) => {
                Err(Error::BufferAccess("constants are passed to kernels that are compiled at their launches".into()))
            }
            Arg::Tuple(_) => Err(Error::BufferAccess("tuples are passed element by element here".into())),
        };
        Ok(ArgumentCopies { args: args.iter().map(copy).collect::<Result<_>>()?, ..replica })
    }

    /// Gives the arguments with their memory on the other device to `f`.
    pub fn with_args<R>(&self, f: impl FnOnce(&[Arg<'_>]) -> R) -> R {
        let descriptor = |arg: &Copy| match arg {
            Copy::Descriptor(memory, extents) => Some(TensorDescriptor::of_extents(self.pointer(memory), **extents)),
            _ => None,
        };
        let descriptors: Vec<Option<TensorDescriptor<'_>>> = self.args.iter().map(descriptor).collect();
        let args: Vec<Arg<'_>> = self
            .args
            .iter()
            .zip(&descriptors)
            .map(|(arg, descriptor)| match (arg, descriptor) {
                (_, Some(descriptor)) => Arg::Descriptor(descriptor),
                (Copy::Pointer(memory) | Copy::Descriptor(memory, _), None) => Arg::Pointer(self.pointer(memory)),
                (Copy::Int(value), None) => Arg::Int(*value),
                (Copy::Float(value), None) => Arg::Float(*value),
                (Copy::Bool(value), None) => Arg::Bool(*value),
            })
            .collect();
        f(&args)
    }

    /// Where the copy of an address of the original lies.
    fn address(&self, address: u64) -> Option<u64> {
        let region =
            self.regions.iter().find(|region| (region.start..region.end.max(region.start + 1)).contains(&address));
        region.map(|region| region.memory.address() + region.at + (address - region.start))
    }

    fn pointer(&self, memory: &Memory) -> Pointer<'_> {
        let Memory { address, bytes, dtype, writes } = *memory;
        let place = match self.address(address) {
            Some(address) => Place { device: Some(&self.device), owner: None, address, bytes, dtype },
            None => Place { device: None, owner: None, address: 0, bytes: 0, dtype },
        };
        Pointer(if writes { Kind::Write(place) } else { Kind::Read(place) })
    }
}

fn memory(pointer: &Pointer<'_>) -> Result<Memory> {
    match pointer.0 {
        Kind::Read(Place { address, bytes, dtype, .. }) => Ok(Memory { address, bytes, dtype, writes: false }),
        Kind::Write(Place { address, bytes, dtype, .. }) => Ok(Memory { address, bytes, dtype, writes: true }),
        Kind::Address(address) if address.get() == 0 => {
            Ok(Memory { address: 0, bytes: 0, dtype: rtc_abi::DType::UInt8, writes: true })
        }
        Kind::Address(_) => Err(Error::BufferAccess("an address without a buffer has no content to copy".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;
    use crate::snapshot::Snapshot;

    #[test]
    fn what_overlaps_stays_together_and_promises_hold() {
        let (device, other) = (Device::emulator(), Device::emulator());
        let x = device.upload(&(0..64).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
        let mut y = device.upload(&[7i32; 5]).unwrap();
        let descriptor = TensorDescriptor::new(x.slice(8..), &[2, 4], &[8, 1]);
        let arguments =
            args![x.slice(..40), x.slice(12..), &mut y, 3, 2.5, true, crate::DeviceAddress::NULL, &descriptor];
        let snapshot = Snapshot::take(&device, &arguments).unwrap();
        let replica = ArgumentCopies::new(&device, &arguments, &other).unwrap();
        assert_eq!(replica.regions.len(), 2);
        replica.with_args(|copies| {
            let address = |arg: &Arg<'_>| arg.pointer().map_or(0, Pointer::address);
            assert_eq!(address(&copies[1]) - address(&copies[0]), 48);
            assert_eq!(address(&copies[7]) - address(&copies[0]), 32);
            assert_eq!(address(&copies[6]), 0);
            for (copy, original) in copies.iter().zip(&arguments) {
                assert_eq!(address(copy) % 1024, address(original) % 1024);
            }
            let again = Snapshot::take(&other, copies).unwrap();
            assert_eq!(again.contents().unwrap(), snapshot.contents().unwrap());
            again.zero(2).unwrap();
        });
        drop(snapshot);
        assert_eq!(y.to_vec().unwrap(), [7; 5]);
    }
}
