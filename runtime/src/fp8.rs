//! The 8-bit floats: E4M3 (finite, one NaN) and E5M2 (as IEEE has it).

use rtc_floats::{E4M3, E5M2, Round};
use std::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! fp8 {
    ($(#[doc = $doc:literal])+ $name:ident = $format:ident) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(transparent)]
        pub struct $name(
            /// The bits.
            pub u8,
        );

        impl $name {
            /// The nearest value, ties to even; what is too large becomes the largest finite value, as a store in a
            /// kernel has it.
            pub fn from_f32(value: f32) -> $name {
                $name($format.narrow_finite(value.into(), Round::Nearest) as u8)
            }

            /// The value.
            pub fn to_f32(self) -> f32 {
                $format.decode(self.0.into()) as f32
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.to_f32())
            }
        }
    };
}

fp8! {
    /// A float of 8 bits: 4 of exponent, 3 of mantissa; up to 448, no infinities. `fp8e4nv` in signatures.
    ///
    /// ```
    /// use rtc_runtime::Fp8E4M3;
    /// assert_eq!(Fp8E4M3::from_f32(0.3).to_f32(), 0.3125);
    /// assert_eq!(Fp8E4M3::from_f32(1e6).to_f32(), 448.0);
    /// ```
    Fp8E4M3 = E4M3
}

fp8! {
    /// A float of 8 bits: 5 of exponent, 2 of mantissa; up to 57344, with infinities. `fp8e5` in signatures.
    ///
    /// ```
    /// use rtc_runtime::Fp8E5M2;
    /// assert_eq!(Fp8E5M2::from_f32(0.3).to_f32(), 0.3125);
    /// assert!(Fp8E5M2(0x7c).to_f32().is_infinite());
    /// ```
    Fp8E5M2 = E5M2
}

/// Both crates keep the bits of the same two formats.
#[cfg(feature = "float8")]
macro_rules! of_float8 {
    ($($own:ident = $theirs:ident;)*) => {
        $(
            /// The same bits.
            impl From<float8::$theirs> for $own {
                fn from(value: float8::$theirs) -> $own {
                    $own(value.to_bits())
                }
            }

            /// The same bits.
            impl From<$own> for float8::$theirs {
                fn from(value: $own) -> float8::$theirs {
                    float8::$theirs::from_bits(value.0)
                }
            }
        )*
    };
}

#[cfg(feature = "float8")]
of_float8! {
    Fp8E4M3 = F8E4M3;
    Fp8E5M2 = F8E5M2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_becomes_the_largest_value() {
        assert_eq!([f32::MAX, f32::NEG_INFINITY, 464.0].map(|x| Fp8E4M3::from_f32(x).0), [0x7e, 0xfe, 0x7e]);
        assert_eq!([f32::INFINITY, f32::MIN, -1e-30].map(|x| Fp8E5M2::from_f32(x).0), [0x7b, 0xfb, 0x80]);
        assert_eq!((Fp8E4M3::from_f32(f32::NAN).0, Fp8E5M2::from_f32(f32::NAN).0), (0x7f, 0x7f));
        assert!(Fp8E4M3(0xff).to_f32().is_nan() && Fp8E5M2(0xfd).to_f32().is_nan());
    }

    #[cfg(feature = "float8")]
    #[test]
    fn float8_means_the_same_by_every_byte() {
        for byte in 0..=255u8 {
            let (own, theirs) = (Fp8E4M3(byte), float8::F8E4M3::from(Fp8E4M3(byte)));
            assert!(own.to_f32() == theirs.to_f32() || own.to_f32().is_nan() && theirs.to_f32().is_nan(), "{byte}");
            assert_eq!(Fp8E4M3::from(theirs), own);
            let (own, theirs) = (Fp8E5M2(byte), float8::F8E5M2::from(Fp8E5M2(byte)));
            assert!(own.to_f32() == theirs.to_f32() || own.to_f32().is_nan() && theirs.to_f32().is_nan(), "{byte}");
            assert_eq!(Fp8E5M2::from(theirs), own);
        }
    }
}
