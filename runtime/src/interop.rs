//! Memory and streams of `cudarc`, without copies.
//!
//! A slice of cudarc becomes a [`Slice`] or a [`SliceMut`] by [`read`] or [`write()`], which take part in cudarc's order of work
//! on it: the stream first waits for what cudarc knows of the memory, and when the borrow ends cudarc learns what the stream
//! has to do with it. A stream of cudarc becomes a [`Stream`] by [`stream`].
//!
//! ```no_run
//! use rtc_runtime::interop::cudarc::driver::CudaContext; // of the version that this crate takes
//! use rtc_runtime::{Device, args, interop};
//! # const PTX: &str = include_str!("../tests/kernels/scale.ptx");
//! # const METADATA: &str = include_str!("../tests/kernels/scale.json");
//! # fn main() -> rtc_runtime::Result<()> {
//! let theirs = CudaContext::new(0).unwrap().default_stream();
//! let (x, mut y) = (theirs.clone_htod(&[1.0f32; 64]).unwrap(), theirs.alloc_zeros::<f32>(64).unwrap());
//! let device = Device::cuda(0)?;
//! let stream = interop::stream(&device, &theirs)?;
//! // SAFETY: the files were made together.
//! let kernel = unsafe { device.load_json(PTX, METADATA)? };
//! let x: interop::CudarcSlice<'_, f32> = interop::read(&device, &x, &theirs)?;
//! let mut y: interop::CudarcSliceMut<'_, f32> = interop::write(&device, &mut y, &theirs)?;
//! kernel.launch(&stream, 1, &args![x.slice(), y.slice_mut(), 2.0f32, 64])?;
//! # Ok(())
//! # }
//! ```
#![allow(unsafe_code)]

pub use cudarc;

use crate::backend::cuda;
use crate::{Device, Element, Error, Result, Slice, SliceMut, Stream};
use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, SyncOnDrop};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Memory of cudarc, borrowed to be read.
pub struct CudarcSlice<'a, T: Element> {
    slice: Slice<'a, T>,
    /// Tells cudarc, when it is dropped.
    _order: SyncOnDrop<'a>,
}

/// Memory of cudarc, borrowed to be written.
pub struct CudarcSliceMut<'a, T: Element> {
    slice: SliceMut<'a, T>,
    /// Tells cudarc, when it is dropped.
    _order: SyncOnDrop<'a>,
}

impl<T: Element> fmt::Debug for CudarcSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.slice.fmt(f)
    }
}

impl<T: Element> fmt::Debug for CudarcSliceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.slice.fmt(f)
    }
}

impl<T: Element> CudarcSlice<'_, T> {
    /// The memory, for launches on the stream that it was borrowed for.
    pub fn slice(&self) -> Slice<'_, T> {
        self.slice
    }
}

impl<T: Element> CudarcSliceMut<'_, T> {
    /// The memory, for launches on the stream that it was borrowed for.
    pub fn slice_mut(&mut self) -> SliceMut<'_, T> {
        self.slice.reborrow()
    }
}

/// Borrows memory of cudarc for work on `stream` that reads it. Launch that work before the borrow ends.
///
/// # Errors
///
/// [`Error::Elsewhere`] if the stream does not belong to the primary context of the device.
pub fn read<'a, T: Element>(
    device: &'a Device,
    memory: &'a impl DevicePtr<T>,
    stream: &'a CudaStream,
) -> Result<CudarcSlice<'a, T>> {
    same_device(device, stream)?;
    let (address, order) = memory.device_ptr(stream);
    // SAFETY: cudarc guarantees so many elements at the address, for as long as it is borrowed; the type is the same.
    let slice = unsafe { Slice::from_raw(device, address, memory.len()) };
    Ok(CudarcSlice { slice, _order: order })
}

/// Borrows memory of cudarc for work on `stream` that writes it. Launch that work before the borrow ends.
///
/// # Errors
///
/// [`Error::Elsewhere`] if the stream does not belong to the primary context of the device.
pub fn write<'a, T: Element>(
    device: &'a Device,
    memory: &'a mut impl DevicePtrMut<T>,
    stream: &'a CudaStream,
) -> Result<CudarcSliceMut<'a, T>> {
    same_device(device, stream)?;
    let len = memory.len();
    let (address, order) = memory.device_ptr_mut(stream);
    // SAFETY: as above, and the borrow is the only one.
    let slice = unsafe { SliceMut::from_raw(device, address, len) };
    Ok(CudarcSliceMut { slice, _order: order })
}

/// A stream of cudarc, which lives as long as the value.
///
/// # Errors
///
/// [`Error::Elsewhere`] if the stream does not belong to the primary context of the device.
pub fn stream(device: &Device, stream: &Arc<CudaStream>) -> Result<Stream> {
    let context = same_device(device, stream)?;
    Ok(Stream::of(device.backend(), Box::new(cuda::Stream::of_cudarc(&context, stream.clone()))))
}

/// The context of the device, if the stream belongs to it.
fn same_device(device: &Device, stream: &CudaStream) -> Result<Arc<cuda::Context>> {
    let backend: Arc<dyn Any + Send + Sync> = device.backend().clone();
    let context = backend.downcast::<cuda::Context>().ok();
    let is_same = |context: &Arc<cuda::Context>| context.is_context(stream.context().cu_ctx());
    context.filter(is_same).ok_or_else(|| elsewhere(device, stream))
}

fn elsewhere(device: &Device, stream: &CudaStream) -> Error {
    Error::Elsewhere { memory: device.to_string(), stream: format!("cuda:{}", stream.context().ordinal()) }
}
