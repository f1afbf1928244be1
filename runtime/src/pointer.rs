//! Pointers as arguments: made of buffers, slices and addresses.

use crate::place::Place;
use crate::{Buffer, DeviceAddress, Element, Slice, SliceMut};

/// A pointer argument: a part of a buffer, to be read or to be written, or an address. It is made like an [`Arg`](crate::Arg).
///
/// ```
/// use rtc_runtime::{Device, Pointer, TensorDescriptor};
/// let x = Device::emulator().zeros::<f32>(64)?;
/// let upper = Pointer::from(x.slice(32..));
/// let tensor = TensorDescriptor::new(upper, &[4, 8], &[8, 1]);
/// # let _ = tensor;
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct Pointer<'a>(pub(crate) Kind<'a>);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    Read(Place<'a>),
    Write(Place<'a>),
    Address(DeviceAddress),
}

impl<'a> Pointer<'a> {
    /// The memory; `None` of an address.
    pub(crate) fn place(&self) -> Option<Place<'a>> {
        self.access().map(|(place, _)| place)
    }

    /// The memory, and whether a launch may write it; `None` of an address.
    pub(crate) fn access(&self) -> Option<(Place<'a>, bool)> {
        match self.0 {
            Kind::Read(place) => Some((place, false)),
            Kind::Write(place) => Some((place, true)),
            Kind::Address(_) => None,
        }
    }

    pub(crate) fn address(&self) -> u64 {
        match self.0 {
            Kind::Read(place) | Kind::Write(place) => place.address,
            Kind::Address(address) => address.get(),
        }
    }
}

macro_rules! pointers {
    ($($ty:ty => $kind:ident;)*) => {
        $(
            impl<'a, T: Element> From<$ty> for Pointer<'a> {
                fn from(memory: $ty) -> Pointer<'a> {
                    Pointer(Kind::$kind(memory.place()))
                }
            }
        )*
    };
}

pointers! {
    &'a Buffer<T> => Read;
    &'a mut Buffer<T> => Write;
    Slice<'a, T> => Read;
    &Slice<'a, T> => Read;
    &'a SliceMut<'_, T> => Read;
    SliceMut<'a, T> => Write;
    &'a mut SliceMut<'_, T> => Write;
}

impl From<DeviceAddress> for Pointer<'_> {
    fn from(address: DeviceAddress) -> Self {
        Pointer(Kind::Address(address))
    }
}
