//! Memory of a device without its element type: allocations, and ranges of them.

use crate::element::{check_cast, sealed, size_of};
use crate::uses::Uses;
use crate::{Device, Element, Error, Result};
use rtc_abi::DType;
use std::any::Any;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// An allocation and what it is taken for.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) allocation: Arc<Allocation>,
    /// Sizes, outermost first; their product is the number of elements.
    pub(crate) shape: Box<[usize]>,
}

impl Owner {
    /// The shape of the place if it is all of the buffer.
    pub(crate) fn shape_of(&self, place: &Place<'_>) -> Option<&[usize]> {
        let whole = (self.allocation.address, self.allocation.bytes as u64) == (place.address, place.bytes);
        let elements = self.shape.iter().product::<usize>() as u64;
        (whole && elements * u64::from(place.dtype.bytes()) == place.bytes).then_some(&self.shape)
    }
}

/// One allocation; freed on drop, in the order of a stream if one allocated it.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) device: Device,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    pub(crate) uses: Arc<Uses>,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        match self.uses.allocated_on() {
            Some(stream) => self.uses.free(&self.device, stream, self.address),
            None => self.device.backend().free(self.address),
        }
    }
}

/// A range of a device's memory, whatever it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// `None` for the null pointer.
    pub(crate) device: Option<&'a Device>,
    /// The owner of the memory; `None` if it is not known.
    pub(crate) owner: Option<&'a Owner>,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) dtype: DType,
}

impl<'a> Place<'a> {
    pub(crate) fn part<T: Element>(self, range: impl RangeBounds<usize>) -> Result<Place<'a>> {
        let len = (self.bytes / size_of::<T>()) as usize;
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => end.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => len,
        };
        if start > end || end > len {
            return Err(Error::SliceRange { start: start as u64, end: end as u64, len: len as u64, ty: T::DTYPE });
        }
        let (start, count) = (start as u64 * size_of::<T>(), (end - start) as u64);
        Ok(Place { address: self.address + start, bytes: count * size_of::<T>(), ..self })
    }

    pub(crate) fn cast<U: Element>(self) -> Result<Place<'a>> {
        check_cast::<U>(self.address, self.bytes)?;
        Ok(Place { dtype: U::DTYPE, ..self })
    }

    fn device(&self) -> Result<&'a Device> {
        self.device.ok_or_else(|| Error::NoDevice("the null pointer has no memory to read or write".into()))
    }

    pub(crate) fn read<T: Element>(self, at: usize, values: &mut [T]) -> Result<()> {
        if values.is_empty() && at == 0 {
            return Ok(());
        }
        let part = self.part::<T>(at..at.saturating_add(values.len()))?;
        let device = part.device()?;
        sealed::Bytes::fill(values, |bytes| device.backend().read(part.address, bytes))
    }

    pub(crate) fn write<T: Element>(self, at: usize, values: &[T]) -> Result<()> {
        if values.is_empty() && at == 0 {
            return Ok(());
        }
        let part = self.part::<T>(at..at.saturating_add(values.len()))?;
        part.device()?.backend().write(part.address, sealed::Bytes::bytes(values))
    }

    pub(crate) fn to_vec<T: Element>(self) -> Result<Vec<T>> {
        let mut values = vec![T::ZERO; (self.bytes / size_of::<T>()) as usize];
        self.read(0, &mut values)?;
        Ok(values)
    }

    /// The allocation, for a recording to keep.
    pub(crate) fn kept(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self.owner?.allocation.clone())
    }

    /// The latest work on the allocation.
    pub(crate) fn uses(&self) -> Option<&'a Arc<Uses>> {
        Some(&self.owner?.allocation.uses)
    }

    /// The shape, where it is a whole buffer.
    pub(crate) fn shape(&self) -> Option<&'a [usize]> {
        self.owner?.shape_of(self)
    }

    pub(crate) fn null(dtype: DType) -> Place<'a> {
        Place { device: None, owner: None, address: 0, bytes: 0, dtype }
    }
}
