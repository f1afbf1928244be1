//! Parts of buffers, to be read or to be written.

use crate::element::size_of;
use crate::place::Place;
use crate::{Device, Element, Result};
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// Elements of a buffer that a kernel reads; lengths and places count elements.
///
/// ```
/// use rtc_runtime::{Device, Slice};
/// let x = Device::emulator().upload(&[1.0f32, 2.0, 3.0])?;
/// let part: Slice<'_, f32> = x.slice(1..);
/// assert_eq!(part.to_vec()?, [2.0, 3.0]);
/// let mut last = [0.0];
/// part.read(1, &mut last)?;
/// assert_eq!(last, [3.0]);
/// assert!(part.try_slice(..3).is_err() && part.slice(2..).is_empty());
/// assert_eq!((part.address(), Slice::<f32>::null().address()), (x.address() + 4, 0));
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Slice<'a, T: Element = u8> {
    place: Place<'a>,
    elements: PhantomData<&'a [T]>,
}

/// Elements of a buffer that a kernel writes, and may read. While it lives no other code has a part of them.
///
/// ```
/// use rtc_runtime::Device;
/// let mut x = Device::emulator().zeros::<i32>(4)?;
/// x.slice_mut(1..3).write(0, &[5, 6])?;
/// assert_eq!(x.to_vec()?, [0, 5, 6, 0]);
/// let (mut low, mut high) = x.slice_mut(..).split_at_mut(2);
/// low.reborrow().write(0, &[7])?;
/// high.write(1, &[8])?;
/// assert_eq!(high.as_slice().to_vec()?, [6, 8]);
/// assert!(low.try_slice_mut(..3).is_err());
/// assert_eq!(x.to_vec()?, [7, 5, 6, 8]);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
pub struct SliceMut<'a, T: Element = u8> {
    place: Place<'a>,
    elements: PhantomData<&'a mut [T]>,
}

/// The range or a panic, as slicing has it.
fn expect<T>(part: Result<T>) -> T {
    match part {
        Ok(part) => part,
        Err(error) => panic!("{error}"),
    }
}

/// What slices to be read and to be written have in common.
macro_rules! place_of {
    ($($slice:ident must not $verb:literal;)*) => {
        $(
            impl<'a, T: Element> $slice<'a, T> {
                pub(crate) fn at(place: Place<'a>) -> $slice<'a, T> {
                    $slice { place, elements: PhantomData }
                }

                pub(crate) fn place(&self) -> Place<'a> {
                    self.place
                }

                #[doc = concat!("The null pointer, which kernels may compare and must not ", $verb, ".")]
                pub fn null() -> $slice<'a, T> {
                    $slice::at(Place::null(T::DTYPE))
                }

                /// Number of elements.
                pub fn len(&self) -> usize {
                    (self.place.bytes / size_of::<T>()) as usize
                }

                /// Whether it has no elements.
                pub fn is_empty(&self) -> bool {
                    self.place.bytes == 0
                }

                /// Its address on the device.
                pub fn address(&self) -> u64 {
                    self.place.address
                }

                /// The device that it lies on; none for the null pointer.
                pub fn device(&self) -> Option<&'a Device> {
                    self.place.device
                }

                /// The same bytes as elements of another type.
                ///
                /// # Errors
                ///
                /// [`Error::Cast`](crate::Error::Cast) if the bytes are not a whole number of such elements, or not aligned
                /// for them.
                pub fn cast<U: Element>(self) -> Result<$slice<'a, U>> {
                    self.place.cast::<U>().map($slice::at)
                }
            }

            impl<T: Element> fmt::Debug for $slice<'_, T> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    let name = stringify!($slice);
                    write!(f, "{name}<{}>({} elements at {:#x})", T::DTYPE, self.len(), self.address())
                }
            }
        )*
    };
}

place_of! {
    Slice must not "read";
    SliceMut must not "write";
}

impl<'a, T: Element> Slice<'a, T> {
    /// A part of it.
    ///
    /// # Panics
    ///
    /// If the range does not lie within it, as slices of Rust do; [`Slice::try_slice`] gives an error instead.
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Slice<'a, T> {
        expect(self.try_slice(range))
    }

    /// A part of it.
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`](crate::Error::SliceRange) if the range does not lie within it.
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'a, T>> {
        self.place.part::<T>(range).map(Slice::at)
    }

    /// Copies elements from place `at` on to the host, after all work on the default stream.
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`](crate::Error::SliceRange) if the slice ends before the last of them,
    /// [`Error::NoDevice`](crate::Error::NoDevice) for the null pointer, [`Error::Cuda`](crate::Error::Cuda) if the driver
    /// fails, which may be for earlier work.
    pub fn read(&self, at: usize, values: &mut [T]) -> Result<()> {
        self.place.read(at, values)
    }

    /// All elements, copied to the host after all work on the default stream.
    ///
    /// # Errors
    ///
    /// As for [`Slice::read`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.place.to_vec()
    }
}

impl<'a, T: Element> SliceMut<'a, T> {
    /// The same for reading, while this one is not used.
    pub fn as_slice(&self) -> Slice<'_, T> {
        Slice::at(self.place)
    }

    /// The same for a while, after which this one can be used again.
    pub fn reborrow(&mut self) -> SliceMut<'_, T> {
        SliceMut::at(self.place)
    }

    /// A part of it.
    ///
    /// # Panics
    ///
    /// If the range does not lie within it, as slices of Rust do; [`SliceMut::try_slice_mut`] gives an error instead.
    #[track_caller]
    pub fn slice_mut(self, range: impl RangeBounds<usize>) -> SliceMut<'a, T> {
        expect(self.try_slice_mut(range))
    }

    /// A part of it.
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`](crate::Error::SliceRange) if the range does not lie within it.
    pub fn try_slice_mut(self, range: impl RangeBounds<usize>) -> Result<SliceMut<'a, T>> {
        self.place.part::<T>(range).map(SliceMut::at)
    }

    /// Two parts that meet at `middle`, so that a kernel can write both.
    ///
    /// # Panics
    ///
    /// If `middle` lies past the end.
    #[track_caller]
    pub fn split_at_mut(self, middle: usize) -> (SliceMut<'a, T>, SliceMut<'a, T>) {
        let part = |place: Result<Place<'a>>| SliceMut::at(expect(place));
        (part(self.place.part::<T>(..middle)), part(self.place.part::<T>(middle..)))
    }

    /// Copies `values` to place `at` on, after all work on the default stream.
    ///
    /// # Errors
    ///
    /// [`Error::SliceRange`](crate::Error::SliceRange) if the slice ends before the last of them,
    /// [`Error::NoDevice`](crate::Error::NoDevice) for the null pointer, [`Error::Cuda`](crate::Error::Cuda) if the driver
    /// fails, which may be for earlier work.
    pub fn write(&mut self, at: usize, values: &[T]) -> Result<()> {
        self.place.write(at, values)
    }
}

impl<'a, T: Element> From<&Slice<'a, T>> for Slice<'a, T> {
    fn from(slice: &Slice<'a, T>) -> Slice<'a, T> {
        *slice
    }
}

impl<'a, T: Element> From<&'a SliceMut<'_, T>> for Slice<'a, T> {
    fn from(slice: &'a SliceMut<'_, T>) -> Slice<'a, T> {
        Slice::at(slice.place)
    }
}

impl<'a, T: Element> From<&'a mut SliceMut<'_, T>> for Slice<'a, T> {
    fn from(slice: &'a mut SliceMut<'_, T>) -> Slice<'a, T> {
        Slice::at(slice.place)
    }
}

impl<'a, T: Element> From<&'a mut SliceMut<'_, T>> for SliceMut<'a, T> {
    fn from(slice: &'a mut SliceMut<'_, T>) -> SliceMut<'a, T> {
        slice.reborrow()
    }
}

impl<'a, T: Element> From<SliceMut<'a, T>> for Slice<'a, T> {
    fn from(slice: SliceMut<'a, T>) -> Slice<'a, T> {
        Slice::at(slice.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Bound;

    #[test]
    fn parts_of_parts() {
        let device = Device::emulator();
        let mut x = device.upload(&(0..10).collect::<Vec<i32>>()).unwrap();
        let part = x.slice(2..8);
        assert_eq!((part.len(), part.address()), (6, x.address() + 8));
        assert_eq!(part.slice(..=1).to_vec().unwrap(), [2, 3]);
        assert_eq!(part.slice(5..).slice(1..).len(), 0);
        let mut one = [0];
        part.read(3, &mut one).unwrap();
        assert_eq!(one, [5]);
        assert!(part.read(6, &mut one).is_err());
        let (mut low, mut high) = x.slice_mut(..).split_at_mut(5);
        low.write(4, &[-1]).unwrap();
        high.reborrow().write(0, &[-2]).unwrap();
        assert!(high.write(4, &[1, 2]).is_err());
        assert_eq!(high.as_slice().to_vec().unwrap(), [-2, 6, 7, 8, 9]);
        assert_eq!(x.slice(4..6).to_vec().unwrap(), [-1, -2]);
    }

    #[test]
    fn ranges_and_casts_are_checked() {
        let device = Device::emulator();
        let x = device.zeros::<u16>(5).unwrap();
        let said = |result: Result<Slice<'_, u16>>| result.unwrap_err().to_string();
        insta::assert_snapshot!(said(x.try_slice(2..6)), @"range 2..6 of a slice of 5 elements (u16)");
        insta::assert_snapshot!(said(x.try_slice((Bound::Included(3), Bound::Excluded(2)))), @"range 3..2 of a slice of 5 elements (u16)");
        assert!(x.try_slice(..=usize::MAX).is_err());
        insta::assert_snapshot!(x.slice(..).cast::<f32>().unwrap_err(), @"10 bytes are not a whole number of fp32 elements (4 bytes each)");
        let error = x.slice(1..).cast::<f32>().unwrap_err().to_string();
        assert!(error.ends_with("is not a multiple of 4, as fp32 elements need"), "{error}");
        assert_eq!(x.slice(2..4).cast::<f32>().unwrap().len(), 1);
        assert_eq!(x.slice(1..).cast::<u8>().unwrap().len(), 8);
        assert!(Slice::<f32>::null().read(0, &mut [0.0]).is_err());
        assert!(Slice::<f32>::null().to_vec().unwrap().is_empty());
    }

    #[test]
    #[should_panic(expected = "range 2..3 of a slice of 2 elements (fp32)")]
    fn slicing_panics_as_slices_do() {
        let _ = Device::emulator().zeros::<f32>(2).unwrap().slice(2..3);
    }
}
