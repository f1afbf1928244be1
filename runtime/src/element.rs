//! Element types of buffers: which Rust type stands for which type of the language.

use crate::{Error, Fp8E4M3, Fp8E5M2, Result};
use half::{bf16, f16};
use rtc_abi::DType;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type whose values a [`Buffer`](crate::Buffer) holds. The trait is sealed: these are all.
///
/// ```
/// use rtc_runtime::{Element, abi::DType};
/// assert_eq!(f32::DTYPE, DType::Fp32);
/// assert_eq!(rtc_runtime::Fp8E4M3::DTYPE, DType::Fp8E4Nv);
/// ```
pub trait Element: Copy + Send + Sync + 'static + sealed::Bytes {
    /// The type of the language.
    const DTYPE: DType;
}

/// An element type of which any bits are a value: all but `bool`. Only such values can lie in memory that a device writes
/// while Rust looks at it.
///
/// ```
/// use rtc_runtime::{Pod, Device, PinnedBuffer, Result};
/// fn ones<T: Pod + From<u8>>(device: &Device, len: usize) -> Result<PinnedBuffer<T>> {
///     let mut host = device.pinned(len)?;
///     host.as_mut_slice()?.fill(T::from(1));
///     Ok(host)
/// }
/// let host = ones::<f32>(&Device::auto(), 8)?;
/// assert!(!host.is_empty() && host.as_slice()?[7] == 1.0);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
pub trait Pod: Element + sealed::View {}

pub(crate) mod sealed {
    use super::Result;

    /// Values as bytes.
    pub trait Bytes: Sized {
        /// A value to fill memory with before it is read.
        const ZERO: Self;

        /// The bytes of these values.
        fn bytes(values: &[Self]) -> &[u8];

        /// Has `fill` write bytes and takes them for values.
        fn fill(values: &mut [Self], fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()>;
    }

    /// Bytes as values; an error if they are not a whole number of them, or not aligned.
    pub trait View: Sized {
        /// To be read.
        fn view(bytes: &[u8]) -> Result<&[Self]>;

        /// To be changed.
        fn view_mut(bytes: &mut [u8]) -> Result<&mut [Self]>;
    }
}

/// Bytes of `T` as the memory of a device has them.
pub(crate) const fn size_of<T: Element>() -> u64 {
    std::mem::size_of::<T>() as u64
}

/// The error for bytes that are no elements.
#[cold]
fn miscast<T: Element>(bytes: &[u8]) -> Error {
    Error::Cast { address: bytes.as_ptr().addr() as u64, bytes: bytes.len() as u64, ty: T::DTYPE }
}

/// Whether memory can hold elements of another type.
pub(crate) fn check_cast<U: Element>(address: u64, bytes: u64) -> Result<()> {
    if !bytes.is_multiple_of(size_of::<U>()) || !address.is_multiple_of(size_of::<U>()) {
        return Err(Error::Cast { address, bytes, ty: U::DTYPE });
    }
    Ok(())
}

fn fill_plain<T: FromBytes + IntoBytes>(values: &mut [T], fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
    fill(values.as_mut_bytes())
}

fn bytes_plain<T: IntoBytes + Immutable>(values: &[T]) -> &[u8] {
    values.as_bytes()
}

macro_rules! elements {
    ($($ty:ty = $dtype:ident, $zero:expr;)*) => {
        $(
            impl Element for $ty {
                const DTYPE: DType = DType::$dtype;
            }

            impl sealed::Bytes for $ty {
                const ZERO: Self = $zero;

                fn bytes(values: &[Self]) -> &[u8] {
                    bytes_plain(values)
                }

                fn fill(values: &mut [Self], fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
                    fill_plain(values, fill)
                }
            }
        )*
    };
}

macro_rules! any_bits {
    ($($ty:ty),*) => {
        $(
            impl Pod for $ty {}

            impl sealed::View for $ty {
                fn view(bytes: &[u8]) -> Result<&[Self]> {
                    <[Self]>::ref_from_bytes(bytes).map_err(|_| miscast::<Self>(bytes))
                }

                fn view_mut(bytes: &mut [u8]) -> Result<&mut [Self]> {
                    <[Self]>::mut_from_bytes(bytes).map_err(|error| miscast::<Self>(&error.into_src()))
                }
            }
        )*
    };
}

any_bits!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Fp8E4M3, Fp8E5M2);

elements! {
    i8 = Int8, 0;
    i16 = Int16, 0;
    i32 = Int32, 0;
    i64 = Int64, 0;
    u8 = UInt8, 0;
    u16 = UInt16, 0;
    u32 = UInt32, 0;
    u64 = UInt64, 0;
    f16 = Fp16, f16::ZERO;
    bf16 = Bf16, bf16::ZERO;
    f32 = Fp32, 0.0;
    f64 = Fp64, 0.0;
    Fp8E4M3 = Fp8E4Nv, Fp8E4M3(0);
    Fp8E5M2 = Fp8E5, Fp8E5M2(0);
}

impl Element for bool {
    const DTYPE: DType = DType::UInt1;
}

impl sealed::Bytes for bool {
    const ZERO: bool = false;

    fn bytes(values: &[bool]) -> &[u8] {
        bytes_plain(values)
    }

    /// What a device holds may be any byte; all but 0 are true.
    fn fill(values: &mut [bool], fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        let mut bytes = vec![0; values.len()];
        fill(&mut bytes)?;
        for (value, byte) in values.iter_mut().zip(bytes) {
            *value = byte != 0;
        }
        Ok(())
    }
}

/// The bytes of values, as the memory of a device has them.
///
/// ```
/// assert_eq!(rtc_runtime::to_bytes(&[1i16, -1]), [1, 0, 255, 255]);
/// ```
pub fn to_bytes<T: Element>(values: &[T]) -> &[u8] {
    sealed::Bytes::bytes(values)
}

/// The values of bytes. They need no alignment.
///
/// ```
/// assert_eq!(rtc_runtime::from_bytes::<i16>(&[1, 0, 255, 255])?, [1, -1]);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Cast`] if the bytes are not a whole number of elements.
pub fn from_bytes<T: Element>(bytes: &[u8]) -> Result<Vec<T>> {
    check_cast::<T>(0, bytes.len() as u64)?;
    let mut values = vec![T::ZERO; bytes.len() / std::mem::size_of::<T>()];
    sealed::Bytes::fill(&mut values, |to| {
        to.copy_from_slice(bytes);
        Ok(())
    })?;
    Ok(values)
}

/// Whether a pointer to `given` may be passed where the kernel has one to `wanted`: the sign of integers does not matter,
/// and `u8` stands for bytes of any type.
pub(crate) fn fits(wanted: DType, given: DType) -> bool {
    use DType::*;
    match (wanted, given) {
        (_, UInt8) => true,
        (UInt1, Int8) | (Int8 | UInt8, UInt1) => true,
        (Fp8E5 | Fp8E4Nv | Fp8E4B15 | Fp8E4B8 | Fp8E5B16, Int8) => true,
        (wanted, given) if wanted.is_integer() && given.is_integer() => wanted.bits() == given.bits(),
        (wanted, given) => wanted == given,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn every_type_comes_back() {
        fn round_trip<T: Element + PartialEq + std::fmt::Debug>(values: &[T]) {
            assert_eq!(u64::from(T::DTYPE.bytes()), size_of::<T>(), "{}", T::DTYPE);
            let buffer = Device::emulator().upload(values).unwrap();
            assert_eq!(buffer.to_vec().unwrap(), values, "{}", T::DTYPE);
        }
        round_trip(&[-1i8, 127]);
        round_trip(&[-2i16, 3]);
        round_trip(&[i32::MIN, 5]);
        round_trip(&[i64::MIN, 5]);
        round_trip(&[255u8, 1]);
        round_trip(&[u16::MAX, 1]);
        round_trip(&[u32::MAX, 1]);
        round_trip(&[u64::MAX, 1]);
        round_trip(&[f16::from_f32(1.5), f16::NEG_INFINITY]);
        round_trip(&[bf16::from_f32(-3.0), bf16::MAX]);
        round_trip(&[1.5f32, f32::MIN_POSITIVE]);
        round_trip(&[1.5f64, f64::MAX]);
        round_trip(&[true, false]);
        round_trip(&[Fp8E4M3(0x7e), Fp8E4M3(1)]);
        round_trip(&[Fp8E5M2(0x7b), Fp8E5M2(0x80)]);
    }

    #[test]
    fn any_byte_but_zero_is_true() {
        let bytes = Device::emulator().upload(&[0u8, 1, 2, 255]).unwrap();
        assert_eq!(bytes.cast::<bool>().unwrap().to_vec().unwrap(), [false, true, true, true]);
    }

    #[test]
    fn which_types_fit_each_other() {
        use DType::*;
        for (wanted, given) in [(Int32, UInt32), (UInt1, Int8), (Fp8E5, Int8), (Fp32, UInt8), (Fp16, Fp16)] {
            assert!(fits(wanted, given), "{wanted} {given}");
        }
        for (wanted, given) in [(Int32, Fp32), (Int32, Int64), (Fp16, Bf16), (Fp8E5, Fp8E4Nv), (Int16, UInt1)] {
            assert!(!fits(wanted, given), "{wanted} {given}");
        }
    }
}
