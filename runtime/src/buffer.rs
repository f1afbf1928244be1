//! Memory of a device.

use crate::element::{check_cast, sealed, size_of};
use crate::place::{Allocation, Owner, Place};
use crate::{Device, Element, Error, Result, Slice, SliceMut};
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

/// Elements on a device, freed on drop after the work that uses them. Lengths and places count elements.
///
/// [`Device::alloc`] and its siblings give memory at once and free it when all work of the device has ended. [`Stream::alloc`]
/// takes and gives back memory in the order of a stream, which the host does not wait for.
///
/// [`Stream::alloc`]: crate::Stream::alloc
///
/// A launch takes `&buffer` where a kernel reads and `&mut buffer` where it writes, or a [`Slice`] and a [`SliceMut`] of it.
/// `Buffer<u8>`, which `Buffer` alone means, also stands for bytes of any type where an untyped launch gets it.
///
/// ```
/// use rtc_runtime::Device;
/// let device = Device::emulator();
/// let mut x = device.upload(&[1.0f32, 2.0, 3.0])?;
/// x.write(1, &[5.0])?;
/// assert_eq!(x.to_vec()?, [1.0, 5.0, 3.0]);
/// assert_eq!(x.len(), 3);
/// x.slice_mut(..2).write(0, &[7.0, 8.0])?;
/// let mut end = [0.0; 2];
/// x.read(1, &mut end)?;
/// assert_eq!(end, [8.0, 3.0]);
/// assert!(x.device().is_same(&device));
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
pub struct Buffer<T: Element = u8> {
    memory: Owner,
    elements: PhantomData<T>,
}

impl Device {
    /// Allocates `len` elements; their values are not defined.
    ///
    /// ```
    /// let out = rtc_runtime::Device::emulator().alloc::<half::f16>(100)?;
    /// assert_eq!(out.len(), 100);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BufferSize`] for more bytes than any device has, [`Error::Cuda`] if the device has too few or the driver
    /// fails.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_named(len, "buffer")
    }

    /// Like [`Device::alloc`], with a name that findings of the emulator and the interpreter use.
    ///
    /// # Errors
    ///
    /// As for [`Device::alloc`].
    pub fn alloc_named<T: Element>(&self, len: usize, name: &str) -> Result<Buffer<T>> {
        let bytes = byte_count::<T>(len)?;
        let address = self.backend().alloc(bytes, name)?;
        Ok(Buffer::of(Allocation { device: self.clone(), address, bytes, uses: Arc::default() }, len))
    }

    /// Allocates `len` elements that are all zero.
    ///
    /// # Errors
    ///
    /// As for [`Device::alloc`].
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let buffer = self.alloc::<T>(len)?;
        self.backend().zero(buffer.address(), buffer.memory.allocation.bytes)?;
        Ok(buffer)
    }

    /// Allocates a buffer with these elements.
    ///
    /// # Errors
    ///
    /// As for [`Device::alloc`].
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        let buffer = self.alloc::<T>(data.len())?;
        self.backend().write(buffer.address(), sealed::Bytes::bytes(data))?;
        Ok(buffer)
    }
}

/// More than any device has.
const MOST_BYTES: usize = 1 << 48;

/// The bytes of so many elements; an error if no device has them.
pub(crate) fn byte_count<T: Element>(len: usize) -> Result<usize> {
    let bytes = len.checked_mul(size_of::<T>() as usize).filter(|bytes| *bytes <= MOST_BYTES);
    bytes.ok_or(Error::BufferSize { len: len as u64, ty: T::DTYPE })
}

impl<T: Element> Buffer<T> {
    /// All of an allocation that holds so many elements.
    pub(crate) fn of(allocation: Allocation, len: usize) -> Buffer<T> {
        let allocation = Arc::new(allocation);
        Buffer { memory: Owner { allocation, shape: [len].into() }, elements: PhantomData }
    }

    /// Has work of other libraries on the memory be possible, about which nothing is known here.
    #[cfg(feature = "dlpack")]
    pub(crate) fn share(&self) {
        self.memory.allocation.uses.share();
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.memory.allocation.address
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.memory.allocation.bytes / size_of::<T>() as usize
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.memory.allocation.bytes == 0
    }

    /// The device that it lies on.
    pub fn device(&self) -> &Device {
        &self.memory.allocation.device
    }

    /// Tells the sanitizer that a tensor lies in the buffer, `start` bytes in: sizes, strides in elements, and the bytes of an
    /// element. An access to what lies between its rows is reported then. False where that says nothing: on other devices,
    /// for a tensor that does not lie within the buffer, for negative or overlapping strides.
    ///
    /// ```
    /// use rtc_runtime::{Device, sanitize::Checks};
    /// let device = Device::emulator().with_sanitizer(Checks::ALL)?;
    /// let x = device.zeros::<f32>(64)?;
    /// assert!(x.set_sanitizer_shape(0, &[4, 12], &[16, 1], 4)); // 4 rows of 12 elements, 16 apart
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub fn set_sanitizer_shape(&self, start: u64, sizes: &[u64], strides: &[i64], element: u64) -> bool {
        self.device().backend().set_shape(self.address() + start, sizes, strides, element)
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place {
            device: Some(&self.memory.allocation.device),
            owner: Some(&self.memory),
            address: self.memory.allocation.address,
            bytes: self.memory.allocation.bytes as u64,
            dtype: T::DTYPE,
        }
    }

    /// A part of it, to be read; `..` is all of it.
    ///
    /// # Panics
    ///
    /// If the range does not lie within it, as slices of Rust do; [`Buffer::try_slice`] gives an error instead.
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Slice<'_, T> {
        Slice::at(self.place()).slice(range)
    }

    /// A part of it, to be read.
    ///
    /// ```
    /// let mut x = rtc_runtime::Device::emulator().alloc_named::<f32>(4, "x")?;
    /// assert!(!x.is_empty() && x.try_slice(..5).is_err() && x.try_slice_mut(2..).is_ok());
    /// assert_eq!(x.slice(1..).address(), x.address() + 4);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`] if the range does not lie within it.
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        Slice::at(self.place()).try_slice(range)
    }

    /// A part of it, to be written; `..` is all of it.
    ///
    /// # Panics
    ///
    /// If the range does not lie within it, as slices of Rust do; [`Buffer::try_slice_mut`] gives an error instead.
    #[track_caller]
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> SliceMut<'_, T> {
        SliceMut::at(self.place()).slice_mut(range)
    }

    /// A part of it, to be written.
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`] if the range does not lie within it.
    pub fn try_slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<SliceMut<'_, T>> {
        SliceMut::at(self.place()).try_slice_mut(range)
    }

    /// Copies `values` to place `at` on, after all work on the default stream.
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`] if the buffer ends before the last of them, [`Error::Cuda`] if the driver fails, which may be
    /// for earlier work.
    pub fn write(&mut self, at: usize, values: &[T]) -> Result<()> {
        self.slice_mut(..).write(at, values)
    }

    /// Copies elements from place `at` on to the host, after all work on the default stream.
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`] if the buffer ends before the last of them, [`Error::Cuda`] if the driver fails, which may be
    /// for earlier work.
    pub fn read(&self, at: usize, values: &mut [T]) -> Result<()> {
        self.slice(..).read(at, values)
    }

    /// All elements, copied to the host after all work on the default stream.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] if the driver fails, which may be for earlier work.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.slice(..).to_vec()
    }

    /// The same bytes as elements of another type.
    ///
    /// ```
    /// let bytes = rtc_runtime::Device::emulator().upload(&1.5f32.to_le_bytes())?;
    /// assert_eq!(bytes.cast::<f32>()?.to_vec()?, [1.5]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Cast`] if the bytes are not a whole number of such elements, or not aligned for them.
    pub fn cast<U: Element>(self) -> Result<Buffer<U>> {
        check_cast::<U>(self.memory.allocation.address, self.memory.allocation.bytes as u64)?;
        let len = self.len_of::<U>();
        let allocation = self.memory.allocation;
        Ok(Buffer { memory: Owner { allocation, shape: [len].into() }, elements: PhantomData })
    }

    fn len_of<U: Element>(&self) -> usize {
        self.memory.allocation.bytes / size_of::<U>() as usize
    }

    /// The same elements as a tensor of that shape, row after row.
    ///
    /// Sizes stand outermost first. The shape goes along where a [`TensorDescriptor`](crate::TensorDescriptor) is made of the
    /// buffer or its content is handed to another library; where a kernel has tensor maps made of an argument, the sizes of
    /// the launch must lie within it. `buffer.slice(..)` keeps it.
    ///
    /// ```
    /// let x = rtc_runtime::Device::emulator().zeros::<f32>(6)?.reshape(&[2, 3])?;
    /// assert_eq!(x.shape(), [2, 3]);
    /// assert!(x.reshape(&[4, 2]).unwrap_err().to_string().contains("[4, 2] has 8 elements, the buffer 6"));
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the shape has another number of elements.
    pub fn reshape(mut self, shape: &[usize]) -> Result<Buffer<T>> {
        let wanted = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        if wanted != Some(self.len()) {
            return Err(Error::Shape { shape: shape.into(), len: self.len() });
        }
        self.memory.shape = shape.into();
        Ok(self)
    }

    /// Its shape: what [`Buffer::reshape`] set, else one dimension with all elements.
    pub fn shape(&self) -> &[usize] {
        &self.memory.shape
    }
}

impl<T: Element> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer<{}>({} elements at {:#x} of {})", T::DTYPE, self.len(), self.address(), self.device())
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for Slice<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Slice<'a, T> {
        buffer.slice(..)
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for Slice<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Slice<'a, T> {
        buffer.slice(..)
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for SliceMut<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> SliceMut<'a, T> {
        buffer.slice_mut(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_survives_and_ranges_are_checked() {
        let device = Device::emulator();
        let mut buffer = device.upload(&[1.0f32, -2.0]).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [1.0, -2.0]);
        buffer.write(1, &[7.0]).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [1.0, 7.0]);
        insta::assert_snapshot!(buffer.write(1, &[0.0; 2]).unwrap_err(), @"range 1..3 of a slice of 2 elements (fp32)");
        assert!(buffer.read(usize::MAX, &mut [0.0; 4]).is_err());
        assert!(device.upload::<u8>(&[]).unwrap().to_vec().unwrap().is_empty());
        assert_eq!(device.zeros::<i64>(3).unwrap().to_vec().unwrap(), [0; 3]);
        insta::assert_snapshot!(device.alloc::<u64>(usize::MAX).unwrap_err(), @"a buffer of 18446744073709551615 elements (u64) is larger than any memory");
        let address = buffer.address();
        insta::assert_snapshot!(format!("{buffer:?}").replace(&format!("{address:#x}"), "0x.."), @"Buffer<fp32>(2 elements at 0x.. of emulator)");
    }

    #[test]
    fn casts_keep_the_bytes() {
        let buffer = Device::emulator().upload(&[0x3f80_0000u32, 0x4000_0000]).unwrap();
        let floats = buffer.cast::<f32>().unwrap();
        assert_eq!(floats.to_vec().unwrap(), [1.0, 2.0]);
        assert_eq!(floats.slice(1..).cast::<u16>().unwrap().to_vec().unwrap(), [0, 0x4000]);
        let odd = Device::emulator().zeros::<u8>(7).unwrap();
        insta::assert_snapshot!(odd.cast::<u16>().unwrap_err(), @"7 bytes are not a whole number of u16 elements (2 bytes each)");
    }
}
