//! Copies in the order of a stream.

use crate::backend::BackendStream;
use crate::element::sealed;
use crate::place::Place;
use crate::{Element, Error, PinnedBuffer, Pod, Result, Slice, SliceMut, Stream};

impl Stream {
    /// Copies within the device, in the order of the stream. Lengths must be equal.
    ///
    /// ```
    /// use rtc_runtime::{Device, Stream};
    /// let device = Device::auto();
    /// let stream: Stream = device.stream()?;
    /// let x = device.upload(&[1.0f32, 2.0, 3.0])?;
    /// let mut y = device.alloc::<f32>(3)?;
    /// stream.copy(&x, &mut y)?;
    /// stream.zero(y.slice_mut(..1))?;
    /// assert_eq!(y.to_vec()?, [0.0, 2.0, 3.0]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::CopyLength`] for different lengths, [`Error::Elsewhere`] for memory of another device, and errors of the driver.
    pub fn copy<'a, T: Element>(&self, from: impl Into<Slice<'a, T>>, to: impl Into<SliceMut<'a, T>>) -> Result<()> {
        let (from, to) = (from.into(), to.into());
        same_length(from.len(), to.len())?;
        let (from, to) = (from.place(), to.place());
        self.transfer(&[(from, false), (to, true)], |raw| raw.copy(to.address, from.address, from.bytes as usize))
    }

    /// Writes zeros, in the order of the stream.
    ///
    /// # Errors
    ///
    /// [`Error::Elsewhere`] for memory of another device, [`Error::Cuda`] if the driver fails.
    pub fn zero<'a, T: Element>(&self, to: impl Into<SliceMut<'a, T>>) -> Result<()> {
        let to = to.into().place();
        self.transfer(&[(to, true)], |raw| raw.zero(to.address, to.bytes as usize))
    }

    /// Copies a slice of the host to the device, in the order of the stream. The slice can be reused when the call returns, which
    /// may be before the copy has ended. Lengths must be equal.
    ///
    /// ```
    /// use rtc_runtime::Device;
    /// let device = Device::auto();
    /// let stream = device.stream()?;
    /// let mut x = device.alloc::<f32>(3)?;
    /// stream.write(&mut x, &[1.0, 2.0, 3.0])?;
    /// let mut values = [0.0; 2];
    /// stream.read(x.slice(1..), &mut values)?;
    /// assert_eq!(values, [2.0, 3.0]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::CopyLength`] for different lengths, [`Error::Elsewhere`] for memory of another device, [`Error::Recording`] where
    /// the stream is recorded, and errors of the driver.
    pub fn write<'a, T: Element>(&self, to: impl Into<SliceMut<'a, T>>, values: &[T]) -> Result<()> {
        self.refuse_recording("a copy from the host")?;
        let to = to.into();
        same_length(values.len(), to.len())?;
        let to = to.place();
        self.transfer(&[(to, true)], |raw| raw.write(to.address, sealed::Bytes::bytes(values)))
    }

    /// Copies from the device to a slice of the host, in the order of the stream, and waits for the copy. Lengths must be equal.
    ///
    /// # Errors
    ///
    /// As for [`Stream::write`], and what went wrong in the work before the copy.
    pub fn read<'a, T: Element>(&self, from: impl Into<Slice<'a, T>>, values: &mut [T]) -> Result<()> {
        self.refuse_recording("a copy to the host")?;
        let from = from.into();
        same_length(from.len(), values.len())?;
        let from = from.place();
        self.transfer(&[(from, false)], |raw| sealed::Bytes::fill(values, |bytes| raw.read(from.address, bytes)))
    }

    /// Copies page-locked memory of the host to the device, in the order of the stream and beside other work. Lengths must
    /// be equal.
    ///
    /// # Errors
    ///
    /// As for [`Stream::write`].
    pub fn upload<'a, T: Pod>(&self, from: &PinnedBuffer<T>, to: impl Into<SliceMut<'a, T>>) -> Result<()> {
        self.refuse_recording("a copy from the host")?;
        let to = to.into();
        same_length(from.len(), to.len())?;
        self.transfer(&[(to.place(), true)], |raw| raw.upload(from.memory(), to.address()))
    }

    /// Copies from the device to page-locked memory of the host, in the order of the stream and beside other work. Lengths
    /// must be equal. Reading the memory waits for the copy.
    ///
    /// ```
    /// let device = rtc_runtime::Device::auto();
    /// let (x, mut host) = (device.upload(&[1i32, 2])?, device.pinned(2)?);
    /// device.default_stream().download(&x, &mut host)?;
    /// assert_eq!(host.as_slice()?, [1, 2]);
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Stream::write`]. Failures of work before the copy are errors of [`PinnedBuffer::as_slice`].
    pub fn download<'a, T: Pod>(&self, from: impl Into<Slice<'a, T>>, to: &mut PinnedBuffer<T>) -> Result<()> {
        self.refuse_recording("a copy to the host")?;
        let from = from.into();
        same_length(from.len(), to.len())?;
        self.transfer(&[(from.place(), false)], |raw| raw.download(from.address(), to.memory_mut()))
    }

    /// Gives work on these places to the stream, unless all are empty; the flag of each is whether the work writes it.
    fn transfer(
        &self,
        places: &[(Place<'_>, bool)],
        work: impl FnOnce(&dyn BackendStream) -> Result<()>,
    ) -> Result<()> {
        places.iter().try_for_each(|(place, _)| self.on_device(place))?;
        self.note(|recording| places.iter().for_each(|(place, writes)| recording.add(place, *writes)));
        if places.iter().all(|(place, _)| place.bytes == 0) {
            return Ok(());
        }
        let uses = places.iter().filter_map(|(place, writes)| Some((place.uses()?, *writes)));
        self.in_order(uses, || work(self.raw_stream()))
    }

    fn on_device(&self, place: &Place<'_>) -> Result<()> {
        match place.device {
            Some(device) if device.id() == self.id() => Ok(()),
            Some(device) => Err(Error::Elsewhere { memory: device.to_string(), stream: self.backend().name() }),
            None => Ok(()),
        }
    }
}

fn same_length(from: usize, to: usize) -> Result<()> {
    if from == to { Ok(()) } else { Err(Error::CopyLength { from: from as u64, to: to as u64 }) }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use crate::Device;
    use std::time::Duration;

    #[test]
    fn copies_and_zeros_in_order() {
        for device in [Device::emulator(), Device::auto()] {
            let stream = device.stream_with_priority(200).unwrap();
            let x = device.upload(&(0..8).collect::<Vec<i32>>()).unwrap();
            let mut y = device.alloc::<i32>(8).unwrap();
            stream.copy(&x, &mut y).unwrap();
            stream.zero(y.slice_mut(2..4)).unwrap();
            let (start, end) = (stream.record().unwrap(), stream.record().unwrap());
            device.default_stream().wait(&end).unwrap();
            end.synchronize().unwrap();
            assert!(end.is_complete().unwrap() && end.elapsed_since(&start).unwrap() < Duration::from_secs(10));
            assert_eq!(y.to_vec().unwrap(), [0, 1, 0, 0, 4, 5, 6, 7]);
            // Nothing to do is no mistake.
            stream.copy(x.slice(8..), y.slice_mut(..0)).unwrap();
        }
    }

    #[test]
    fn slices_of_the_host_go_there_and_back() {
        for device in [Device::emulator(), Device::auto()] {
            let stream = device.stream().unwrap();
            let mut x = device.zeros::<bool>(4).unwrap();
            stream.write(x.slice_mut(1..3), &[true, true]).unwrap();
            let mut values = [true; 4];
            stream.read(&x, &mut values).unwrap();
            assert_eq!(values, [false, true, true, false]);
            stream.write(x.slice_mut(..0), &[]).unwrap();
            assert!(stream.write(&mut x, &[true]).is_err() && stream.read(&x, &mut [false; 5]).is_err());
            assert!(stream.capture(|s| s.write(&mut x, &[true; 4])).is_err());
        }
    }

    #[test]
    fn lengths_and_devices_are_checked() {
        let device = Device::emulator();
        let stream = device.default_stream();
        let x = device.zeros::<f32>(4).unwrap();
        let mut y = device.zeros::<f32>(5).unwrap();
        insta::assert_snapshot!(stream.copy(&x, &mut y).unwrap_err(), @"a copy of 4 elements to 5; the lengths must be equal: copy a slice");
        let mut elsewhere = Device::emulator().zeros::<f32>(4).unwrap();
        insta::assert_snapshot!(stream.copy(&x, &mut elsewhere).unwrap_err(), @"the memory lies on emulator, the stream belongs to emulator; copy through the host");
    }

    #[test]
    fn pinned_memory_goes_there_and_back() {
        for device in [Device::emulator(), Device::auto()] {
            let stream = device.stream().unwrap();
            let mut host = device.pinned::<f32>(1000).unwrap();
            assert_eq!(host.as_slice().unwrap(), [0.0; 1000]);
            for (i, value) in host.as_mut_slice().unwrap().iter_mut().enumerate() {
                *value = i as f32;
            }
            let mut x = device.alloc::<f32>(1000).unwrap();
            stream.upload(&host, &mut x).unwrap();
            host.as_mut_slice().unwrap().fill(-1.0);
            stream.download(&x, &mut host).unwrap();
            assert!(host.as_slice().unwrap().iter().enumerate().all(|(i, value)| *value == i as f32));
            assert!(stream.upload(&host, x.slice_mut(1..)).is_err());
        }
    }
}
