//! Tensors of DLPack, the format in which array libraries hand memory to each other (feature `dlpack`, crate `dlpark`).
//!
//! A [`Buffer`] goes out by [`Buffer::into_dlpack`], with its shape; a tensor comes in by [`Device::from_dlpack`]. Between GPUs
//! nothing is copied. The emulator and the interpreter have memory of their own, so that tensors of the CPU are copied there
//! and back.
//!
//! ```
//! use rtc_runtime::dlpack::dlpark; // of the version that this crate takes
//! use rtc_runtime::Device;
//! let device = Device::auto();
//! let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?.reshape(&[2, 3])?;
//! let tensor: dlpark::versioned::Dlpack = x.into_dlpack()?; // for another library
//! // SAFETY: no other code has it.
//! let back = unsafe { device.from_dlpack::<f32, _>(tensor)? };
//! assert_eq!((back.shape(), back.strides()), (&[2, 3][..], &[3, 1][..]));
//! assert_eq!(back.slice().to_vec()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! # Ok::<(), rtc_runtime::Error>(())
//! ```
#![allow(unsafe_code)]

pub use dlpark;

use crate::element::size_of;
use crate::place::Place;
use crate::{Buffer, Device, DeviceKind, Element, Error, Result, Slice, SliceMut};
use dlpark::ffi::{DLDataType, DLDevice, DLDeviceType};
use dlpark::metadata::Dynamic;
use dlpark::{AllocationDeleter, DlpackFlags, Managed, ManagedTensorBase, versioned};
use rtc_abi::DType;
use std::ffi::c_void;
use std::fmt;

/// A tensor of another library on a device, for launches there. It is given back when this value is dropped, after the work of
/// the device.
///
/// ```
/// use rtc_runtime::{Device, dlpack::Imported};
/// let device = Device::auto();
/// let tensor = device.upload(&[1i32, 2, 3])?.into_dlpack()?; // of another library
/// // SAFETY: no other code has it.
/// let mut imported: Imported<i32> = unsafe { device.from_dlpack(tensor)? };
/// imported.slice_mut()?.write(0, &[7])?;
/// assert_eq!(imported.slice().to_vec()?, [7, 2, 3]);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
pub struct Imported<T: Element> {
    memory: Memory<T>,
    device: Device,
    /// Of the first element in memory.
    address: u64,
    /// Elements from the first to the last.
    len: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
    read_only: bool,
}

enum Memory<T: Element> {
    /// Theirs, which is told when it is no longer used.
    Theirs(Option<AllocationDeleter>),
    /// A copy.
    Copy { _buffer: Buffer<T> },
}

fn refused(message: impl Into<String>) -> Error {
    Error::Dlpack(message.into())
}

/// The type of DLPack for elements; `None` for formats that it does not have.
fn data_type(dtype: DType) -> Option<DLDataType> {
    Some(match dtype {
        DType::UInt1 => DLDataType::BOOL,
        DType::Int8 => DLDataType::I8,
        DType::Int16 => DLDataType::I16,
        DType::Int32 => DLDataType::I32,
        DType::Int64 => DLDataType::I64,
        DType::UInt8 => DLDataType::U8,
        DType::UInt16 => DLDataType::U16,
        DType::UInt32 => DLDataType::U32,
        DType::UInt64 => DLDataType::U64,
        DType::Fp16 => DLDataType::scalar(dlpark::ffi::DLDataTypeCode::FLOAT, 16),
        DType::Bf16 => DLDataType::scalar(dlpark::ffi::DLDataTypeCode::BFLOAT, 16),
        DType::Fp32 => DLDataType::F32,
        DType::Fp64 => DLDataType::F64,
        DType::Fp8E4Nv => DLDataType::F8E4M3FN,
        DType::Fp8E5 => DLDataType::F8E5M2,
        _ => return None,
    })
}

impl<T: Element> Buffer<T> {
    /// The buffer as a tensor of its shape, row after row, for another library, which frees it.
    ///
    /// It waits for the work of the device. From a GPU nothing is copied; what the emulator or the interpreter has becomes a
    /// tensor of the CPU, by a copy.
    ///
    /// # Errors
    ///
    /// [`Error::Dlpack`] for elements that DLPack has no type for and sizes of more than 63 bits, [`Error::Cuda`] for a
    /// failure of the work of the device.
    pub fn into_dlpack(self) -> Result<versioned::Dlpack> {
        self.device().synchronize()?;
        self.share();
        let wide = |size: &usize| i64::try_from(*size).map_err(|_| refused("a size of the buffer exceeds 63 bits"));
        let shape = self.shape().iter().map(wide).collect::<Result<Vec<i64>>>()?;
        let mut strides = vec![1i64; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(shape[axis].max(1));
        }
        let dtype = data_type(T::DTYPE).ok_or_else(|| refused(format!("DLPack has no type for {}", T::DTYPE)))?;
        let prepared =
            Dynamic::new(&shape[..], &strides[..]).prepare_as().map_err(|error| refused(error.to_string()))?;
        let mut tensor = match self.device().kind() {
            DeviceKind::Cuda(ordinal) => {
                let device = DLDevice::cuda(ordinal as i32);
                let data = std::ptr::with_exposed_provenance_mut::<c_void>(self.address() as usize);
                let mut tensor = prepared.initialize(Box::new(self));
                tensor.set_device(device).set_data(data);
                tensor
            }
            _ => {
                let mut values = Box::new(self.to_vec()?);
                let data = values.as_mut_ptr().cast::<c_void>();
                let mut tensor = prepared.initialize(values);
                tensor.set_device(DLDevice::CPU).set_data(data);
                tensor
            }
        };
        tensor.set_dtype(dtype);
        // SAFETY: the memory holds the elements of the shape and lives as long as the tensor, which owns it; no other code has
        // it; the strides are written out.
        Ok(unsafe { tensor.finish() })
    }
}

impl Device {
    /// Takes a tensor of another library whose elements are `T`.
    ///
    /// A tensor on this GPU is used where it lies. A tensor of the CPU is copied to the device, and what a kernel writes stays
    /// there.
    ///
    /// # Errors
    ///
    /// [`Error::Dlpack`] for elements of another type, negative strides, other devices, and what is no valid tensor;
    /// [`Error::Cast`] for memory that is not aligned for the elements; errors of [`Device::alloc`] where it is copied.
    ///
    /// # Safety
    ///
    /// The tensor must describe memory that is there, and its content must be ready: work of the other library on it has ended, or
    /// is waited for by the streams that this value is used on. Until the value is dropped, no other code may write what launches
    /// read, or touch what they write.
    pub unsafe fn from_dlpack<T: Element, M: ManagedTensorBase>(&self, tensor: Managed<M>) -> Result<Imported<T>> {
        let view = tensor.validate().map_err(|error| refused(error.to_string()))?;
        if !data_type(T::DTYPE).is_some_and(|own| own.matches(view.dtype())) {
            let DLDataType { code, bits, lanes } = view.dtype();
            let code = code.0;
            return Err(refused(format!(
                "its elements are of type {code} with {bits} bits and {lanes} lanes, not {}",
                T::DTYPE
            )));
        }
        let shape: Vec<usize> = view.shape().iter().map(|size| *size as usize).collect();
        let strides = view.strides_or_compact().map_err(|error| refused(error.to_string()))?;
        let strides = strides.iter().map(|stride| usize::try_from(*stride)).collect::<std::result::Result<Vec<_>, _>>();
        let strides = strides.map_err(|_| refused("a stride is negative; copy the tensor to one without"))?;
        let len = span(&shape, &strides).ok_or_else(|| refused("its sizes and strides exceed 63 bits"))?;
        let read_only = tensor.flags().contains(DlpackFlags::READ_ONLY);
        let start = (view.data_ptr().expose_provenance() as u64).wrapping_add(view.byte_offset());
        if len > 0 && !start.is_multiple_of(size_of::<T>()) {
            return Err(Error::Cast { address: start, bytes: len as u64 * size_of::<T>(), ty: T::DTYPE });
        }
        let (address, memory) = match (view.device(), self.kind()) {
            (DLDevice { device_type: DLDeviceType::CPU, .. }, _) => {
                let buffer = self.alloc::<T>(len)?;
                if len > 0 {
                    // SAFETY: the caller guarantees the memory, all elements of which lie within the span; bytes have any value.
                    let bytes = unsafe {
                        let first = view.data_ptr().cast::<u8>().add(view.byte_offset() as usize);
                        std::slice::from_raw_parts(first, len * size_of::<T>() as usize)
                    };
                    self.backend().write(buffer.address(), bytes)?;
                }
                (buffer.address(), Memory::Copy { _buffer: buffer })
            }
            (DLDevice { device_type: DLDeviceType::CUDA, device_id }, DeviceKind::Cuda(ordinal))
                if usize::try_from(device_id) == Ok(ordinal) =>
            {
                (start, Memory::Theirs(Some(tensor.into_deleter())))
            }
            (DLDevice { device_type, device_id }, _) => {
                return Err(refused(format!(
                    "it lies on device {device_id} of DLPack's kind {}, the device here is {self}; copy it there, or to the CPU",
                    device_type.0
                )));
            }
        };
        Ok(Imported { memory, device: self.clone(), address, len, shape, strides, read_only })
    }
}

/// Elements from the first to the last.
fn span(shape: &[usize], strides: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let mut steps = shape.iter().zip(strides).map(|(size, stride)| (size - 1).checked_mul(*stride));
    let last = steps.try_fold(0usize, |sum, step| sum.checked_add(step?))?;
    last.checked_add(1).filter(|len| *len <= isize::MAX as usize / 8)
}

impl<T: Element> Imported<T> {
    fn place(&self) -> Place<'_> {
        let bytes = self.len as u64 * size_of::<T>();
        Place { device: Some(&self.device), owner: None, address: self.address, bytes, dtype: T::DTYPE }
    }

    /// Its sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How many elements lie between neighbours along each dimension.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// The memory from its first element to its last, to be read.
    pub fn slice(&self) -> Slice<'_, T> {
        Slice::at(self.place())
    }

    /// The same to be written.
    ///
    /// # Errors
    ///
    /// [`Error::Dlpack`] if the tensor may be read only.
    pub fn slice_mut(&mut self) -> Result<SliceMut<'_, T>> {
        match self.read_only {
            true => Err(refused("it may be read only; pass `slice()`, or write to a copy")),
            false => Ok(SliceMut::at(self.place())),
        }
    }
}

impl<T: Element> Drop for Imported<T> {
    fn drop(&mut self) {
        if let Memory::Theirs(deleter) = &mut self.memory {
            // An error here was caused by earlier work and is reported by the next call that can report it.
            let _ = self.device.synchronize();
            drop(deleter.take());
        }
    }
}

impl<T: Element> fmt::Debug for Imported<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Imported<{}>({:?} at {:#x} of {})", T::DTYPE, self.shape, self.address, self.device)
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use dlpark::allocation::dynamic;
    use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Memory of another library that counts how often it is freed.
    struct Theirs(Vec<f32>, Arc<AtomicUsize>);

    impl Drop for Theirs {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn tensor<M: ManagedTensorBase>(
        shape: &[i64],
        strides: &[i64],
        freed: &Arc<AtomicUsize>,
    ) -> dynamic::Initialized<M> {
        let theirs = Box::new(Theirs((0..64).map(|i| i as f32).collect(), freed.clone()));
        let data = theirs.0.as_ptr().cast_mut().cast();
        let mut tensor = Dynamic::new(shape, strides).prepare_as::<M>().expect("sizes fit").initialize(theirs);
        tensor.set_device(DLDevice::CPU).set_data(data).set_dtype(DLDataType::F32);
        tensor
    }

    #[test]
    fn tensors_of_the_cpu_come_in() {
        let freed = Arc::new(AtomicUsize::new(0));
        let device = Device::emulator();
        let mut columns = tensor::<DLManagedTensor>(&[3, 4], &[1, 10], &freed);
        columns.set_byte_offset(8);
        // SAFETY: the memory holds the elements, and no other code has it.
        let mut x = unsafe { device.from_dlpack::<f32, _>(columns.finish()) }.unwrap();
        assert_eq!(freed.load(Ordering::Relaxed), 1, "a copy needs the original no longer");
        assert_eq!((x.shape(), x.strides(), x.slice().len()), (&[3, 4][..], &[1, 10][..], 33));
        assert_eq!(x.slice().to_vec().unwrap(), (2..35).map(|i| i as f32).collect::<Vec<_>>());
        x.slice_mut().unwrap().write(0, &[-1.0]).unwrap();
        assert_eq!(x.slice().slice(..2).to_vec().unwrap(), [-1.0, 3.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_given_back() {
        let freed = Arc::new(AtomicUsize::new(0));
        let device = Device::emulator();
        // SAFETY: the memory holds the elements; nothing is launched.
        let said = |tensor: Managed<DLManagedTensorVersioned>| {
            unsafe { device.from_dlpack::<f32, _>(tensor) }.unwrap_err().to_string()
        };
        let of = |change: &dyn Fn(&mut dynamic::Initialized<DLManagedTensorVersioned>)| {
            let mut tensor = tensor(&[4], &[1], &freed);
            change(&mut tensor);
            // SAFETY: as above.
            unsafe { tensor.finish() }
        };
        insta::assert_snapshot!(said(of(&|t| { t.set_dtype(DLDataType::I32); })), @"tensor of DLPack: its elements are of type 0 with 32 bits and 1 lanes, not fp32");
        insta::assert_snapshot!(said(of(&|t| { t.set_device(DLDevice::cuda(3)); })), @"tensor of DLPack: it lies on device 3 of DLPack's kind 2, the device here is emulator; copy it there, or to the CPU");
        assert!(
            said(of(&|t| {
                t.set_byte_offset(2);
            }))
            .ends_with("is not a multiple of 4, as fp32 elements need")
        );
        // SAFETY: as above; the strides go backward from the last element.
        let backward = unsafe {
            let mut tensor = tensor::<DLManagedTensorVersioned>(&[4], &[-1], &freed);
            tensor.set_byte_offset(12);
            tensor.finish()
        };
        insta::assert_snapshot!(said(backward), @"tensor of DLPack: a stride is negative; copy the tensor to one without");
        let read_only = of(&|t| {
            t.set_flags(DlpackFlags::READ_ONLY).unwrap();
        });
        // SAFETY: as above.
        let mut read_only = unsafe { device.from_dlpack::<f32, _>(read_only) }.unwrap();
        insta::assert_snapshot!(read_only.slice_mut().unwrap_err(), @"tensor of DLPack: it may be read only; pass `slice()`, or write to a copy");
        assert_eq!(freed.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn buffers_go_out_with_their_shape() {
        fn round_trip<T: Element + PartialEq + fmt::Debug>(values: &[T]) {
            let device = Device::emulator();
            let tensor =
                device.upload(values).unwrap().reshape(&[2, 1, values.len() / 2]).unwrap().into_dlpack().unwrap();
            let view = tensor.validate_export().unwrap();
            assert_eq!((view.shape(), view.is_compact().unwrap()), (&[2, 1, values.len() as i64 / 2][..], true));
            assert_eq!(view.device(), DLDevice::CPU);
            // SAFETY: no other code has it.
            let back = unsafe { Device::emulator().from_dlpack::<T, _>(tensor) }.unwrap();
            assert_eq!(back.slice().to_vec().unwrap(), values);
        }
        round_trip(&[1.5f32, -2.0, 3.0, 4.0]);
        round_trip(&[half::f16::ONE, half::f16::NEG_INFINITY]);
        round_trip(&[half::bf16::ONE, half::bf16::MAX]);
        round_trip(&[true, false, false, true]);
        round_trip(&[i64::MIN, 7]);
        round_trip(&[255u8, 0]);
        round_trip(&[crate::Fp8E4M3(0x7e), crate::Fp8E4M3(1)]);
        let empty = Device::emulator().zeros::<f32>(0).unwrap().into_dlpack().unwrap();
        assert_eq!(empty.validate().unwrap().num_elements(), 0);
    }

    /// On a GPU nothing is copied, and the memory goes back when the last has let go of it.
    #[test]
    #[cfg(feature = "cuda")]
    fn tensors_of_a_gpu_stay_where_they_are() {
        let Ok(device) = Device::cuda(0) else { return };
        let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let address = x.address();
        let tensor = x.into_dlpack().unwrap();
        // SAFETY: no other code has it.
        let mut x = unsafe { device.from_dlpack::<f32, _>(tensor) }.unwrap();
        assert_eq!(x.slice().address(), address);
        x.slice_mut().unwrap().write(0, &[5.0]).unwrap();
        assert_eq!(x.slice().to_vec().unwrap(), [5.0, 2.0, 3.0, 4.0]);
        // SAFETY: nothing is launched.
        let error =
            unsafe { Device::emulator().from_dlpack::<f32, _>(device.zeros::<f32>(1).unwrap().into_dlpack().unwrap()) };
        assert!(error.is_err());
    }
}
