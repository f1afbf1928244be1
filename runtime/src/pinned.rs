//! Page-locked memory of the host.

use crate::device::Backend;
use crate::{AnyBits, Device, Result, Slice, SliceMut, cuda};

/// Memory of the host that a device copies by itself, beside other work: see [`Stream::upload`](crate::Stream::upload) and
/// [`Stream::download`](crate::Stream::download). Whoever looks at it waits for the copies that use it.
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
pub struct PinnedBuffer<T: AnyBits> {
    memory: Memory<T>,
    len: usize,
}

#[derive(Debug)]
enum Memory<T: AnyBits> {
    Cuda(cuda::Pinned<T>),
    /// For devices on the CPU, whose copies are over when they return.
    Host(Vec<T>),
}

impl Device {
    /// Allocates page-locked memory of the host for `len` elements, all zero.
    pub fn pinned<T: AnyBits>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        let memory = match self.backend() {
            Backend::Cuda(context) => Memory::Cuda(cuda::Pinned::alloc(context, len)?),
            Backend::Emulator(_) | Backend::Interpreter(_) => Memory::Host(vec![T::ZERO; len]),
        };
        Ok(PinnedBuffer { memory, len })
    }
}

impl<T: AnyBits> PinnedBuffer<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements; waits for copies to or from them.
    pub fn as_slice(&self) -> Result<&[T]> {
        match &self.memory {
            Memory::Cuda(memory) => memory.as_slice(),
            Memory::Host(memory) => Ok(memory),
        }
    }

    /// The elements, to be changed; waits for copies to or from them.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        match &mut self.memory {
            Memory::Cuda(memory) => memory.as_mut_slice(),
            Memory::Host(memory) => Ok(memory),
        }
    }

    /// Both are as long, and on the device of the stream.
    pub(crate) fn upload(&self, stream: Option<&cuda::Stream>, mut to: SliceMut<'_, T>) -> Result<()> {
        match (&self.memory, stream) {
            (Memory::Cuda(memory), Some(stream)) if self.len > 0 => memory.upload(stream, to.address()),
            _ => to.write(0, self.as_slice()?),
        }
    }

    /// Both are as long, and on the device of the stream.
    pub(crate) fn download(&mut self, stream: Option<&cuda::Stream>, from: Slice<'_, T>) -> Result<()> {
        match (&mut self.memory, stream) {
            (Memory::Cuda(memory), Some(stream)) if self.len > 0 => memory.download(stream, from.address()),
            _ => from.read(0, self.as_mut_slice()?),
        }
    }
}
