//! Memory of the driver's pool, allocated and freed in the order of streams.

use crate::buffer::byte_count;
use crate::place::Allocation;
use crate::uses::Uses;
use crate::{Buffer, Element, Result, Stream};
use std::sync::Arc;

impl Stream {
    /// Allocates `len` elements in the order of the stream, of the pool that the driver has for the device; their values are not
    /// defined. The host waits neither here nor where the buffer is dropped: its memory then goes back to the pool on the stream
    /// that used it last, after the work of all other streams on it. The next allocation may get the same memory at once.
    ///
    /// Work on other streams begins after the allocation and ends before the memory goes back, on streams of other libraries
    /// ([`Stream::from_raw`], `interop`), too. Work that other libraries were given by an address alone is not known here: wait
    /// for it before the buffer is dropped.
    ///
    /// The memory is that of [`Device::alloc`] where the driver has no pool for the GPU, on the emulator and the interpreter, and for a
    /// stream of [`Stream::from_raw`], which may be gone when the buffer is dropped. [`Device::set_pool_release_threshold`] has the
    /// pool keep memory when the host waits.
    ///
    /// [`Device::alloc`]: crate::Device::alloc
    /// [`Device::set_pool_release_threshold`]: crate::Device::set_pool_release_threshold
    ///
    /// ```
    /// use rtc_runtime::{Device, Stream};
    /// let device = Device::auto();
    /// let stream: Stream = device.stream()?;
    /// let x = device.upload(&[1.0f32; 64])?;
    /// let mut y = device.alloc::<f32>(64)?;
    /// for _ in 0..3 {
    ///     let mut between = stream.alloc::<f32>(64)?; // the same memory each time
    ///     stream.copy(&x, &mut between)?;
    ///     stream.copy(&between, &mut y)?;
    /// } // goes back after the copies, which may not have run yet
    /// assert_eq!(y.to_vec()?, [1.0; 64]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::BufferSize`] for more bytes than any device has, [`Error::Cuda`] if the device has too few or the driver fails, and
    /// [`Error::Recording`] where the stream is recorded: allocate before, the graph keeps what it uses.
    ///
    /// [`Error::BufferSize`]: crate::Error::BufferSize
    /// [`Error::Cuda`]: crate::Error::Cuda
    /// [`Error::Recording`]: crate::Error::Recording
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.refuse_recording("an allocation")?;
        let bytes = byte_count::<T>(len)?;
        let Some(address) = self.raw_stream().alloc(bytes)? else { return self.device().alloc(len) };
        let device = self.device();
        let uses = Arc::new(Uses::of_stream(self));
        let buffer = Buffer::of(Allocation { device: device.clone(), address, bytes, uses: uses.clone() }, len);
        // Other streams wait for the allocation as for a write.
        self.in_order([(&uses, true)].into_iter(), || Ok(()))?;
        if self.is_foreign() {
            // Copies of the host, and other work on the default stream, are not in order with it by themselves.
            device.default_stream().raw_stream().wait(&*self.raw_stream().mark()?)?;
        }
        Ok(buffer)
    }

    /// Allocates `len` elements that are all zero, in the order of the stream: [`Stream::alloc`] and [`Stream::zero`].
    ///
    /// ```
    /// let stream = rtc_runtime::Device::auto().stream()?;
    /// let sums = stream.alloc_zeros::<f32>(100)?;
    /// let mut values = [1.0; 100];
    /// stream.read(&sums, &mut values)?;
    /// assert_eq!(values, [0.0; 100]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Stream::alloc`].
    pub fn alloc_zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = self.alloc::<T>(len)?;
        self.zero(&mut buffer)?;
        Ok(buffer)
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use crate::{Device, Error};

    #[test]
    fn memory_of_a_stream_is_like_any_other() {
        for device in [Device::emulator(), Device::auto()] {
            let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
            let mut x = stream.alloc_zeros::<i32>(4).unwrap();
            assert!(x.device().is_same(&device));
            other.write(x.slice_mut(1..3), &[5, 6]).unwrap();
            let mut y = other.alloc::<i32>(4).unwrap();
            stream.copy(&x, &mut y).unwrap();
            drop(x);
            assert_eq!(y.to_vec().unwrap(), [0, 5, 6, 0]);
            assert!(matches!(stream.alloc::<u64>(usize::MAX), Err(Error::BufferSize { .. })));
            assert!(stream.alloc::<f32>(0).unwrap().is_empty());
            let error = stream.capture(|s| s.alloc_zeros::<f32>(4).map(|_| ())).unwrap_err();
            assert_eq!(error, Error::Recording { what: "an allocation" });
        }
    }
}
