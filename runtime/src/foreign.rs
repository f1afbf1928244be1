//! Memory and streams of other libraries, and memory that is written although it is shared.
#![allow(unsafe_code)]

use crate::place::Place;
use crate::pointer::{Kind, Pointer};
use crate::{Device, Element, Result, Slice, SliceMut, Stream};
use rtc_abi::DType;

impl<'a> Pointer<'a> {
    /// Memory of another library whose type is known when the program runs: `bytes` bytes of `dtype` at `address`. The
    /// kernel may read and write it.
    ///
    /// # Safety
    ///
    /// As for [`SliceMut::from_raw`]; where other arguments of the launch overlap with it, as for [`SliceMut::aliasing`].
    ///
    /// ```
    /// use rtc_runtime::{Device, Pointer, abi::DType};
    /// let device = Device::auto();
    /// let x = device.zeros::<f32>(64)?;
    /// // SAFETY: the memory lives, and nothing else uses it.
    /// let part = unsafe { Pointer::from_raw(&device, x.address(), 128, DType::Fp32) };
    /// # let _ = part;
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub unsafe fn from_raw(device: &'a Device, address: u64, bytes: u64, dtype: DType) -> Pointer<'a> {
        Pointer(Kind::Write(Place { device: Some(device), owner: None, address, bytes, dtype }))
    }
}

/// What is said of memory of another library.
fn foreign<'a, T: Element>(device: &'a Device, address: u64, len: usize) -> Place<'a> {
    let bytes = (len as u64).saturating_mul(crate::element::size_of::<T>());
    Place { device: Some(device), owner: None, address, bytes, dtype: T::DTYPE }
}

impl Stream {
    /// A stream of another library, by its handle (`CUstream`); 0 is the default stream.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`](crate::Error::NoDevice) on devices on the CPU, which have no streams of a driver.
    ///
    /// # Safety
    ///
    /// The handle must be a stream of `device`'s primary context for as long as the value lives, and not be captured by
    /// others meanwhile. Nothing of this can be checked here. The stream is not destroyed with the value.
    ///
    /// ```
    /// use rtc_runtime::{Device, Stream};
    /// let device = Device::auto();
    /// if let Some(handle) = device.default_stream().as_raw() {
    ///     // SAFETY: it is the device's own default stream.
    ///     unsafe { Stream::from_raw(&device, handle)? }.synchronize()?;
    /// }
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub unsafe fn from_raw(device: &Device, handle: u64) -> Result<Stream> {
        Ok(Stream::of(device.backend(), device.backend().clone().adopt_stream(handle)?))
    }
}

impl<'a, T: Element> Slice<'a, T> {
    /// Memory of another library, to be read.
    ///
    /// # Safety
    ///
    /// For as long as the slice lives and until every launch that gets it has ended, `len` elements at `address` must be
    /// memory of `device`, aligned for `T`, and no other code may write them meanwhile. Nothing of this can be checked here.
    ///
    /// ```
    /// use rtc_runtime::{Device, Slice};
    /// let device = Device::auto();
    /// let x = device.upload(&[1.0f32, 2.0])?;
    /// // SAFETY: `x` lives longer and is not written.
    /// let same = unsafe { Slice::<f32>::from_raw(&device, x.address(), 2) };
    /// assert_eq!(same.to_vec()?, [1.0, 2.0]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub unsafe fn from_raw(device: &'a Device, address: u64, len: usize) -> Slice<'a, T> {
        Slice::at(foreign::<T>(device, address, len))
    }
}

impl<'a, T: Element> SliceMut<'a, T> {
    /// Memory of another library, to be written.
    ///
    /// # Safety
    ///
    /// For as long as the slice lives and until every launch that gets it has ended, `len` elements at `address` must be
    /// memory of `device`, aligned for `T`, and no other code may read or write them meanwhile. Nothing of this can be checked
    /// here.
    ///
    /// ```
    /// use rtc_runtime::{Device, SliceMut};
    /// let device = Device::auto();
    /// let x = device.zeros::<f32>(2)?;
    /// // SAFETY: `x` lives longer, and nothing else uses it meanwhile.
    /// unsafe { SliceMut::<f32>::from_raw(&device, x.address(), 2) }.write(1, &[5.0])?;
    /// assert_eq!(x.to_vec()?, [0.0, 5.0]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub unsafe fn from_raw(device: &'a Device, address: u64, len: usize) -> SliceMut<'a, T> {
        SliceMut::at(foreign::<T>(device, address, len))
    }

    /// Leave to write what others may read: for a kernel that works in place, or whose arguments overlap.
    ///
    /// ```
    /// use rtc_runtime::{Device, SliceMut, args};
    /// let x = Device::emulator().upload(&[1.0f32; 64])?;
    /// // SAFETY: each thread reads its element before it writes it.
    /// let out = unsafe { SliceMut::aliasing(x.slice(..)) };
    /// let arguments = args![&x, out];
    /// # drop(arguments);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// The compiler may have loads of one argument move across stores to another, and so may the hardware. The kernel that
    /// gets both must be right all the same, as one is that reads each element in the thread that writes it, before.
    pub unsafe fn aliasing(slice: Slice<'a, T>) -> SliceMut<'a, T> {
        SliceMut::at(slice.place())
    }
}
