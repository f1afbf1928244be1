//! Pointers as arguments: made of buffers, slices and addresses.

use crate::place::Place;
use crate::uses::Uses;
use crate::{Buffer, DeviceAddress, Element, Slice, SliceMut};
use std::sync::Arc;

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
        match self.0 {
            Kind::Read(place) | Kind::Write(place) => Some(place),
            Kind::Address(_) => None,
        }
    }

    /// The latest work on its memory, and whether a launch may write it.
    pub(crate) fn uses(&self) -> Option<(&'a Arc<Uses>, bool)> {
        Some((self.place()?.uses()?, matches!(self.0, Kind::Write(_))))
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
