//! Page-locked memory of the host.

use crate::backend::PinnedMemory;
use crate::{Device, Error, Pod, Result};
use std::marker::PhantomData;

/// Memory of the host that a device copies by itself, beside other work: see [`Stream::upload`](crate::Stream::upload) and
/// [`Stream::download`](crate::Stream::download). A read of it waits for the copies that use it.
///
/// ```
/// use rtc_runtime::Device;
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let mut host = device.pinned::<f32>(256)?;
/// assert_eq!(host.len(), 256);
/// host.as_mut_slice()?.fill(2.0);
/// let mut x = device.alloc::<f32>(256)?;
/// stream.upload(&host, &mut x)?; // returns at once
/// stream.download(&x, &mut host)?;
/// assert_eq!(host.as_slice()?[255], 2.0); // waits
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct PinnedBuffer<T: Pod> {
    memory: Box<dyn PinnedMemory>,
    len: usize,
    elements: PhantomData<T>,
}

impl Device {
    /// Allocates page-locked memory of the host for `len` elements, all zero.
    ///
    /// # Errors
    ///
    /// [`Error::BufferSize`] for more bytes than a process can have, [`Error::Cuda`] if the driver cannot lock as many.
    pub fn pinned<T: Pod>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| isize::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or(Error::BufferSize { len: len as u64, ty: T::DTYPE })?;
        Ok(PinnedBuffer { memory: self.backend().clone().pinned(bytes)?, len, elements: PhantomData })
    }
}

impl<T: Pod> PinnedBuffer<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements; waits for copies to or from them.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] for a failure of the copies.
    pub fn as_slice(&self) -> Result<&[T]> {
        T::view(self.memory.bytes()?)
    }

    /// The elements, to be changed; waits for copies to or from them.
    ///
    /// # Errors
    ///
    /// [`Error::Cuda`] for a failure of the copies.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        T::view_mut(self.memory.bytes_mut()?)
    }

    pub(crate) fn memory(&self) -> &dyn PinnedMemory {
        &*self.memory
    }

    pub(crate) fn memory_mut(&mut self) -> &mut dyn PinnedMemory {
        &mut *self.memory
    }
}
