//! The 8-bit floats: E4M3 (finite, one NaN) and E5M2 (as IEEE has it).

use std::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// How a byte is divided.
struct Format {
    mantissa: u32,
    bias: i32,
    /// The largest finite value, as a byte without its sign.
    largest: u8,
    /// What stands for NaN.
    nan: u8,
    /// What stands for infinity; the format may have none.
    infinity: Option<u8>,
}

const E4M3: Format = Format { mantissa: 3, bias: 7, largest: 0x7e, nan: 0x7f, infinity: None };
const E5M2: Format = Format { mantissa: 2, bias: 15, largest: 0x7b, nan: 0x7f, infinity: Some(0x7c) };

impl Format {
    fn decode(&self, byte: u8) -> f32 {
        let (sign, magnitude) = (if byte & 0x80 == 0 { 1.0 } else { -1.0 }, byte & 0x7f);
        if magnitude > self.largest {
            return if Some(magnitude) == self.infinity { sign * f32::INFINITY } else { f32::NAN };
        }
        let fraction = f32::from(magnitude & ((1 << self.mantissa) - 1)) / (1 << self.mantissa) as f32;
        match i32::from(magnitude >> self.mantissa) {
            0 => sign * fraction * 2f32.powi(1 - self.bias),
            exponent => sign * (1.0 + fraction) * 2f32.powi(exponent - self.bias),
        }
    }

    /// The nearest value, ties to even; what is too large, infinities too, becomes the largest finite value.
    fn encode(&self, value: f32) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        if value.is_nan() {
            return sign | self.nan;
        }
        let magnitude = value.abs();
        // A subnormal step, or that of the value's power of two; both are exact.
        let power = if magnitude == 0.0 { 1 - self.bias } else { exponent(magnitude).max(1 - self.bias) };
        let step = 2f64.powi(power - self.mantissa as i32);
        let steps = (f64::from(magnitude) / step).round_ties_even();
        // Steps beyond the mantissa carry into the exponent by themselves.
        let code = (f64::from(power - 1 + self.bias) * f64::from(1 << self.mantissa)) + steps;
        sign | code.min(f64::from(self.largest)) as u8
    }
}

/// The power of two at or below a positive value.
fn exponent(value: f32) -> i32 {
    let bits = (value.to_bits() >> 23) as i32;
    if bits == 0 { -127 } else { bits - 127 }
}

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
                $name($format.encode(value))
            }

            /// The value.
            pub fn to_f32(self) -> f32 {
                $format.decode(self.0)
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
    fn every_value_reads_back() {
        for format in [E4M3, E5M2] {
            for byte in 0..=255u8 {
                let value = format.decode(byte);
                if value.is_finite() {
                    assert_eq!(format.encode(value), byte, "{value}");
                }
            }
        }
        // The values of the format's definition.
        assert_eq!([0x7e, 0x01, 0xb8].map(|b| E4M3.decode(b)), [448.0, 2f32.powi(-9), -1.0]);
        assert_eq!([0x7b, 0x01, 0x3c].map(|b| E5M2.decode(b)), [57344.0, 2f32.powi(-16), 1.0]);
        assert!(E4M3.decode(0x7f).is_nan() && E5M2.decode(0xfd).is_nan());
    }

    #[test]
    fn between_two_values_the_nearest_is_taken_and_of_two_the_even_one() {
        for format in [E4M3, E5M2] {
            for byte in 0..format.largest {
                let (low, high) = (format.decode(byte), format.decode(byte + 1));
                let middle = f32::midpoint(low, high);
                assert_eq!(format.encode(middle), byte + (byte & 1), "{middle}");
                assert_eq!(format.encode(middle.next_up()), byte + 1);
                assert_eq!(format.encode(middle.next_down()), byte);
            }
        }
        assert_eq!(E4M3.encode(f32::MIN), 0xfe);
        assert_eq!(E4M3.encode(f32::NAN) & 0x7f, 0x7f);
        assert_eq!(E5M2.encode(f32::INFINITY), 0x7b);
        assert_eq!(E5M2.encode(-1e-30), 0x80);
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
