//! What a launch is given: pointers and numbers, made from buffers, slices and values of Rust.

use crate::pointer::Pointer;
use crate::{Buffer, DeviceAddress, Element, Slice, SliceMut, TensorDescriptor};
#[cfg(feature = "jit")]
use rtc_abi::spec::ConstValue;
#[cfg(feature = "jit")]
use std::sync::atomic::{AtomicU64, Ordering};

/// One argument of an untyped launch. [`args!`](crate::args) makes a list of them.
///
/// It is made of numbers, of `&buffer` or a [`Slice`] for what the kernel reads, of `&mut buffer` or a [`SliceMut`] for what it
/// writes, of a [`DeviceAddress`] and of a [`TensorDescriptor`]; for kernels that are compiled at their launches also of a
/// tuple, `&args![..]`.
///
/// ```
/// use rtc_runtime::{Arg, Device};
/// let x = Device::emulator().zeros::<f32>(8)?;
/// let arguments = [Arg::from(&x), Arg::from(x.slice(4..)), Arg::from(2.5f32), Arg::from(8)];
/// assert!(matches!(arguments[3], Arg::Int(8)));
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Arg<'a> {
    /// Memory.
    Pointer(Pointer<'a>),
    /// An integer of any width.
    Int(i128),
    /// A float of any width.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A tensor, for a parameter that is a tensor descriptor.
    Descriptor(&'a TensorDescriptor<'a>),
    /// A tuple, for a kernel that is compiled at its launch; others take its elements one by one.
    Tuple(&'a [Arg<'a>]),
    /// A tuple whose elements have names, given as a tuple of texts.
    #[cfg(feature = "jit")]
    NamedTuple(&'a Constant, &'a [Arg<'a>]),
    /// A value that becomes part of a kernel that is compiled at its launch.
    #[cfg(feature = "jit")]
    Constant(&'a Constant),
}

/// A value of the Python level as an argument of kernels that are compiled at their launches: `None`, a text, a dtype, a
/// function by its name, or a tuple of such.
///
/// Make one for each value and keep it: a launch tells them apart by a number.
///
/// ```
/// use rtc_runtime::{Arg, Constant, abi::spec::ConstValue};
/// let none = Constant::new(ConstValue::None);
/// let argument = Arg::Constant(&none);
/// # drop(argument);
/// ```
#[cfg(feature = "jit")]
#[derive(Debug)]
pub struct Constant {
    id: u64,
    value: ConstValue,
}

#[cfg(feature = "jit")]
impl Constant {
    /// An argument of this value.
    pub fn new(value: ConstValue) -> Constant {
        static LATEST: AtomicU64 = AtomicU64::new(0);
        Constant { id: LATEST.fetch_add(1, Ordering::Relaxed), value }
    }

    /// The value.
    ///
    /// ```
    /// use rtc_runtime::{Constant, abi::spec::ConstValue};
    /// assert_eq!(Constant::new(ConstValue::Int(3)).value(), &ConstValue::Int(3));
    /// ```
    pub fn value(&self) -> &ConstValue {
        &self.value
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl<'a> Arg<'a> {
    /// The memory that it names.
    pub(crate) fn pointer(&self) -> Option<&Pointer<'a>> {
        match self {
            Arg::Pointer(pointer) => Some(pointer),
            Arg::Descriptor(descriptor) => Some(descriptor.base()),
            _ => None,
        }
    }

    /// The same argument once more, for a launch that leaves others out. The holder of the original lends it meanwhile, so
    /// memory that is written is still written by one.
    #[cfg(feature = "jit")]
    pub(crate) fn again(&self) -> Arg<'a> {
        match self {
            Arg::Pointer(pointer) => Arg::Pointer(Pointer(pointer.0)),
            Arg::Int(value) => Arg::Int(*value),
            Arg::Float(value) => Arg::Float(*value),
            Arg::Bool(value) => Arg::Bool(*value),
            Arg::Descriptor(descriptor) => Arg::Descriptor(descriptor),
            Arg::Tuple(items) => Arg::Tuple(items),
            Arg::NamedTuple(names, items) => Arg::NamedTuple(names, items),
            Arg::Constant(constant) => Arg::Constant(constant),
        }
    }
}

/// Makes the arguments of an untyped launch: each becomes an [`Arg`].
///
/// ```
/// use rtc_runtime::{Device, args};
/// let device = Device::emulator();
/// let (x, mut y) = (device.upload(&[1.0f32; 64])?, device.zeros::<f32>(64)?);
/// let arguments = args![&x, &mut y, 3.0f32, 64];
/// assert_eq!(arguments.len(), 4);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => {
        [$($crate::Arg::from($arg)),*]
    };
}

macro_rules! pointers {
    ($($ty:ty;)*) => {
        $(
            impl<'a, T: Element> From<$ty> for Arg<'a> {
                fn from(memory: $ty) -> Arg<'a> {
                    Arg::Pointer(memory.into())
                }
            }
        )*
    };
}

pointers! {
    &'a Buffer<T>;
    &'a mut Buffer<T>;
    Slice<'a, T>;
    &Slice<'a, T>;
    &'a SliceMut<'_, T>;
    SliceMut<'a, T>;
    &'a mut SliceMut<'_, T>;
}

impl From<DeviceAddress> for Arg<'_> {
    fn from(address: DeviceAddress) -> Self {
        Arg::Pointer(address.into())
    }
}

impl<'a> From<Pointer<'a>> for Arg<'a> {
    fn from(pointer: Pointer<'a>) -> Arg<'a> {
        Arg::Pointer(pointer)
    }
}

impl<'a> From<&'a TensorDescriptor<'a>> for Arg<'a> {
    fn from(descriptor: &'a TensorDescriptor<'a>) -> Arg<'a> {
        Arg::Descriptor(descriptor)
    }
}

impl<'a> From<&'a [Arg<'a>]> for Arg<'a> {
    fn from(items: &'a [Arg<'a>]) -> Arg<'a> {
        Arg::Tuple(items)
    }
}

impl<'a, const N: usize> From<&'a [Arg<'a>; N]> for Arg<'a> {
    fn from(items: &'a [Arg<'a>; N]) -> Arg<'a> {
        Arg::Tuple(items)
    }
}

impl From<bool> for Arg<'_> {
    fn from(value: bool) -> Self {
        Arg::Bool(value)
    }
}

macro_rules! from_numbers {
    ($variant:ident as $wide:ty: $($ty:ty),*) => {
        $(impl From<$ty> for Arg<'_> {
            fn from(value: $ty) -> Self {
                Arg::$variant(value as $wide)
            }
        })*
    };
}

from_numbers!(Int as i128: i8, i16, i32, i64, u8, u16, u32, u64, isize, usize);
from_numbers!(Float as f64: f32, f64);

impl From<half::f16> for Arg<'_> {
    fn from(value: half::f16) -> Self {
        Arg::Float(value.into())
    }
}

impl From<half::bf16> for Arg<'_> {
    fn from(value: half::bf16) -> Self {
        Arg::Float(value.into())
    }
}
