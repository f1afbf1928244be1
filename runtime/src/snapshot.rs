//! The content of memory that a launch is given, kept and put back.

use crate::place::Place;
use crate::pointer::Kind;
use crate::{Arg, Buffer, Device, Element, Error, Fp8E4M3, Fp8E5M2, Result};
use half::{bf16, f16};
use rtc_abi::DType;

/// The content of the memory behind the arguments of a launch. While it lives the arguments do, so that it can be put back.
///
/// ```
/// use rtc_runtime::{Device, args, internal::Snapshot};
/// let device = Device::emulator();
/// let mut x = device.upload(&[1.0f32, 2.0])?;
/// let arguments = args![&mut x, 2];
/// let before = Snapshot::take(&device, &arguments)?;
/// before.zero(0)?;
/// before.restore()?;
/// drop(before);
/// drop(arguments);
/// assert_eq!(x.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct Snapshot<'a> {
    device: Device,
    parts: Vec<Part<'a>>,
}

#[derive(Debug)]
struct Part<'a> {
    /// Which argument.
    index: usize,
    place: Place<'a>,
    kept: Kept,
}

/// Where a content is kept.
#[derive(Debug)]
enum Kept {
    Host(Vec<u8>),
    /// In other memory of the same device, from and to which copies are fast.
    Device(Buffer<u8>),
}

impl Part<'_> {
    fn len(&self) -> usize {
        self.place.bytes as usize
    }

    fn restore(&self, device: &Device) -> Result<()> {
        match &self.kept {
            Kept::Host(bytes) => device.backend().write(self.place.address, bytes),
            Kept::Device(memory) => device.backend().copy(self.place.address, memory.address(), self.len()),
        }
    }
}

impl<'a> Snapshot<'a> {
    /// Copies the memory behind all pointers: on a GPU to other memory of its own where that has room, else to the host.
    ///
    /// # Errors
    ///
    /// [`Error::BufferAccess`] for an address without a buffer, [`Error::Cuda`] if the driver fails, which may be for earlier
    /// work.
    pub fn take(device: &Device, args: &'a [Arg<'_>]) -> Result<Snapshot<'a>> {
        Snapshot::take_some(device, args, |_| true)
    }

    /// The same of the arguments with these numbers alone; what the others point to is not known to it.
    ///
    /// ```
    /// use rtc_runtime::{Device, args, internal::Snapshot};
    /// let device = Device::emulator();
    /// let (x, mut y) = (device.upload(&[1.0f32; 8])?, device.upload(&[2.0f32])?);
    /// let arguments = args![&x, &mut y];
    /// let before = Snapshot::take_some(&device, &arguments, |number| number == 1)?;
    /// assert_eq!(before.contents()?, [2.0f32.to_le_bytes()]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Snapshot::take`].
    pub fn take_some(device: &Device, args: &'a [Arg<'_>], wanted: impl Fn(usize) -> bool) -> Result<Snapshot<'a>> {
        let keep = |(index, place): (usize, Place<'a>)| {
            let room = device.is_cuda().then(|| device.alloc::<u8>(place.bytes as usize).ok()).flatten();
            let kept = match room {
                Some(memory) => {
                    device.backend().copy(memory.address(), place.address, place.bytes as usize)?;
                    Kept::Device(memory)
                }
                None => {
                    let mut bytes = vec![0; place.bytes as usize];
                    device.backend().read(place.address, &mut bytes)?;
                    Kept::Host(bytes)
                }
            };
            Ok(Part { index, place, kept })
        };
        let parts = places(args, wanted)?.into_iter().map(keep).collect::<Result<_>>()?;
        Ok(Snapshot { device: device.clone(), parts })
    }

    /// Puts everything back, after all work on the default stream.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver fails, which may be for earlier work.
    pub fn restore(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.restore(&self.device))
    }

    /// Puts back what one argument points to.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver fails, which may be for earlier work.
    pub fn restore_one(&self, index: usize) -> Result<()> {
        match self.part(index) {
            Some(part) => part.restore(&self.device),
            None => Ok(()),
        }
    }

    /// Sets what one argument points to to zero.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver fails, which may be for earlier work.
    pub fn zero(&self, index: usize) -> Result<()> {
        match self.part(index) {
            Some(part) => self.device.backend().zero(part.place.address, part.len()),
            None => Ok(()),
        }
    }

    /// What the arguments point to now.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver fails, which may be for earlier work.
    pub fn contents(&self) -> Result<Vec<Vec<u8>>> {
        let read = |part: &Part<'_>| {
            let mut bytes = vec![0; part.len()];
            self.device.backend().read(part.place.address, &mut bytes)?;
            Ok(bytes)
        };
        self.parts.iter().map(read).collect()
    }

    /// Where two contents differ by more than rounding: the argument and the element; nothing where they do not. `dtype`
    /// says what an argument points to.
    ///
    /// ```
    /// use rtc_runtime::{Device, abi::DType, args, internal::Snapshot};
    /// let device = Device::emulator();
    /// let mut x = device.upload(&[1.0f32, 2.0])?;
    /// let arguments = args![&mut x];
    /// let before = Snapshot::take(&device, &arguments)?;
    /// let expected = before.contents()?;
    /// before.zero(0)?;
    /// assert_eq!(before.difference(&expected, &before.contents()?, |_| DType::Fp32), Some((0, 0)));
    /// before.restore_one(0)?;
    /// assert_eq!(before.difference(&expected, &before.contents()?, |_| DType::Fp32), None);
    /// drop(before);
    /// drop(arguments);
    /// x.clear()?;
    /// assert_eq!(x.to_vec()?, [0.0, 0.0]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub fn difference(
        &self,
        expected: &[Vec<u8>],
        found: &[Vec<u8>],
        dtype: impl Fn(usize) -> DType,
    ) -> Option<(usize, usize)> {
        let parts = self.parts.iter().zip(expected.iter().zip(found));
        parts
            .filter(|(_, (a, b))| a != b)
            .find_map(|(part, (expected, found))| Some((part.index, differs(dtype(part.index), expected, found)?)))
    }

    fn part(&self, index: usize) -> Option<&Part<'a>> {
        self.parts.iter().find(|part| part.index == index)
    }
}

/// The memory behind the wanted arguments, each place once, with the number of the first argument that points to it.
pub(crate) fn places<'a>(args: &'a [Arg<'_>], wanted: impl Fn(usize) -> bool) -> Result<Vec<(usize, Place<'a>)>> {
    let mut places: Vec<(usize, Place<'a>)> = Vec::new();
    for (index, arg) in args.iter().enumerate().filter(|(index, _)| wanted(*index)) {
        let pointer = match arg {
            Arg::Pointer(pointer) => pointer,
            Arg::Descriptor(descriptor) => descriptor.base(),
            _ => continue,
        };
        let place = match pointer.0 {
            Kind::Read(place) | Kind::Write(place) => place,
            Kind::Address(address) if address.get() == 0 => continue,
            Kind::Address(_) => {
                return Err(Error::BufferAccess(format!(
                    "argument {index} is an address without a buffer: its content cannot be kept"
                )));
            }
        };
        let is_known = |(_, known): &(usize, Place<'_>)| (known.address, known.bytes) == (place.address, place.bytes);
        if place.device.is_some() && !places.iter().any(is_known) {
            places.push((index, place));
        }
    }
    Ok(places)
}

/// The first element that differs by more than rounding.
fn differs(dtype: DType, expected: &[u8], found: &[u8]) -> Option<usize> {
    let tolerance = match dtype {
        DType::Fp16 => 5e-3,
        DType::Bf16 => 3e-2,
        DType::Fp32 => 2e-3,
        DType::Fp64 => 1e-9,
        DType::Fp8E4Nv | DType::Fp8E5 => 0.3,
        _ => return expected.iter().zip(found).position(|(a, b)| a != b).map(|at| at / dtype.bytes() as usize),
    };
    let size = dtype.bytes() as usize;
    let (a, b) = (expected.chunks_exact(size), found.chunks_exact(size));
    let scale = a.clone().map(|x| number(dtype, x).abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
    a.zip(b).position(|(a, b)| {
        let (a, b) = (number(dtype, a), number(dtype, b));
        let same = a == b || a.is_nan() && b.is_nan();
        // Sums of numbers of both signs are off by a part of their terms.
        let close = (a - b).abs() <= tolerance * a.abs().max(0.1 * scale);
        !same && !close
    })
}

fn number(dtype: DType, bytes: &[u8]) -> f64 {
    match (dtype, bytes) {
        (DType::Fp16, [a, b]) => f16::from_le_bytes([*a, *b]).to_f64(),
        (DType::Bf16, [a, b]) => bf16::from_le_bytes([*a, *b]).to_f64(),
        (DType::Fp32, [a, b, c, d]) => f32::from_le_bytes([*a, *b, *c, *d]).into(),
        (DType::Fp8E4Nv, [a]) => Fp8E4M3(*a).to_f32().into(),
        (DType::Fp8E5, [a]) => Fp8E5M2(*a).to_f32().into(),
        _ => bytes.try_into().map_or(f64::NAN, f64::from_le_bytes),
    }
}

impl<T: Element> crate::Buffer<T> {
    /// Sets all elements to zero, after all work on the default stream; on a GPU the call may return before.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver fails, which may be for earlier work.
    pub fn clear(&mut self) -> Result<()> {
        self.device().backend().zero(self.address(), self.len() * std::mem::size_of::<T>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    #[test]
    fn memory_comes_back_once_for_each_place() {
        let device = Device::emulator();
        let (x, mut y) = (device.upload(&[1i32, 2]).unwrap(), device.upload(&[3i32, 4]).unwrap());
        {
            let arguments = args![&x, &mut y, 7, &x];
            let before = Snapshot::take(&device, &arguments).unwrap();
            assert_eq!(before.parts.len(), 2);
            before.zero(1).unwrap();
            assert_eq!(before.contents().unwrap()[1], [0; 8]);
            before.restore_one(0).unwrap();
            assert_eq!(before.contents().unwrap()[1], [0; 8]);
            before.restore_one(1).unwrap();
            assert_eq!(before.contents().unwrap()[1][0], 3);
            before.zero(0).unwrap();
            before.restore().unwrap();
        }
        y.clear().unwrap();
        assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![1, 2], vec![0, 0]));
    }

    #[test]
    fn rounding_is_no_difference() {
        let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let expected = bytes(&[1.0, 1000.0, f32::NAN, -0.01]);
        assert_eq!(differs(DType::Fp32, &expected, &bytes(&[1.0001, 1000.5, f32::NAN, 0.02])), None);
        assert_eq!(differs(DType::Fp32, &expected, &bytes(&[1.0, 1010.0, f32::NAN, 0.0])), Some(1));
        assert_eq!(differs(DType::Fp32, &expected, &bytes(&[1.0, 1000.0, 0.0, 0.0])), Some(2));
        assert_eq!(differs(DType::Int32, &[1, 0, 0, 0, 2, 0, 0, 0], &[1, 0, 0, 0, 3, 0, 0, 0]), Some(1));
    }
}
