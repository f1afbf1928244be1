//! Narrow floating-point formats: rounding an exact value into them, and their bits. The interpreter, the emulator, the runtime
//! and the comparison of results all take them from here.
//!
//! Everything narrower than f64 is computed as an f64 that is either exact or *rounded to odd* (if the result is
//! inexact, the neighbour with an odd last bit is taken). With at least two bits more than the target has, rounding
//! such a value once more gives what one rounding of the exact value would: so [`Format::round`] rounds once.

/// A rounding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
    /// To nearest, ties away from zero.
    Away,
}

/// A binary format of at most 32 bits.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Explicit mantissa bits.
    pub mantissa: u32,
    /// Exponent bits.
    pub exponent: u32,
    /// Largest finite value.
    pub max: f64,
    /// False for e4m3, whose top exponent holds numbers.
    pub has_infinity: bool,
    /// Bits of the NaN that operations return.
    pub nan: u32,
}

/// IEEE single precision.
pub const F32: Format =
    Format { mantissa: 23, exponent: 8, max: f32::MAX as f64, has_infinity: true, nan: 0x7fff_ffff };
/// IEEE half precision.
pub const F16: Format = Format { mantissa: 10, exponent: 5, max: 65504.0, has_infinity: true, nan: 0x7fff };
/// bfloat16.
pub const BF16: Format =
    Format { mantissa: 7, exponent: 8, max: 3.3895313892515355e38, has_infinity: true, nan: 0x7fff };
/// fp8 with 4 exponent bits.
pub const E4M3: Format = Format { mantissa: 3, exponent: 4, max: 448.0, has_infinity: false, nan: 0x7f };
/// fp8 with 5 exponent bits.
pub const E5M2: Format = Format { mantissa: 2, exponent: 5, max: 57344.0, has_infinity: true, nan: 0x7f };

impl Format {
    /// The bias of the exponent.
    #[inline]
    pub fn bias(&self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// Exponent of the smallest normal number.
    #[inline]
    pub fn smallest(&self) -> i32 {
        1 - self.bias()
    }

    /// Rounds `x` to a value of the format, as an f64; overflow goes where the mode says.
    #[inline]
    pub fn round(&self, x: f64, mode: Round) -> f64 {
        if x == 0.0 || !x.is_finite() {
            return x;
        }
        let exponent = exponent_of(x).max(1 - self.bias());
        let ulp = exponent - self.mantissa as i32;
        let scaled = x.abs() * power_of_two(-ulp);
        let negative = x.is_sign_negative();
        let integer = match mode {
            Round::Nearest => scaled.round_ties_even(),
            Round::Away => scaled.round(),
            Round::Zero => scaled.trunc(),
            Round::Down => {
                if negative {
                    scaled.ceil()
                } else {
                    scaled.floor()
                }
            }
            Round::Up => {
                if negative {
                    scaled.floor()
                } else {
                    scaled.ceil()
                }
            }
        };
        let mut magnitude = integer * power_of_two(ulp);
        if magnitude > self.max {
            let to_infinity = match mode {
                Round::Nearest | Round::Away => true,
                Round::Zero => false,
                Round::Down => negative,
                Round::Up => !negative,
            };
            magnitude = if to_infinity { f64::INFINITY } else { self.max };
        }
        magnitude.copysign(x)
    }

    /// The bits of a value that the format holds exactly (or NaN, or an infinity).
    #[inline]
    pub fn encode(&self, x: f64) -> u32 {
        if x.is_nan() {
            return self.nan;
        }
        let sign = u32::from(x.is_sign_negative()) << (self.mantissa + self.exponent);
        let magnitude = x.abs();
        if magnitude == f64::INFINITY {
            return if self.has_infinity {
                sign | (((1 << self.exponent) - 1) << self.mantissa)
            } else {
                sign | self.nan
            };
        }
        let smallest = 1 - self.bias();
        if magnitude < power_of_two(smallest) {
            return sign | (magnitude * power_of_two(self.mantissa as i32 - smallest)) as u32;
        }
        let exponent = exponent_of(magnitude);
        let mantissa = (magnitude * power_of_two(self.mantissa as i32 - exponent)) as u32;
        sign | ((((exponent + self.bias()) as u32) << self.mantissa) + (mantissa - (1 << self.mantissa)))
    }

    /// The value of `bits`.
    #[inline]
    pub fn decode(&self, bits: u32) -> f64 {
        let mantissa = bits & ((1 << self.mantissa) - 1);
        let exponent = (bits >> self.mantissa) & ((1 << self.exponent) - 1);
        let top = (1 << self.exponent) - 1;
        let negative = bits >> (self.mantissa + self.exponent) & 1 == 1;
        let magnitude = if exponent == top && self.has_infinity {
            if mantissa == 0 { f64::INFINITY } else { f64::NAN }
        } else if !self.has_infinity && bits & 0x7f == 0x7f {
            f64::NAN
        } else if exponent == 0 {
            f64::from(mantissa) * power_of_two(1 - self.bias() - self.mantissa as i32)
        } else {
            f64::from(mantissa | 1 << self.mantissa)
                * power_of_two(exponent as i32 - self.bias() - self.mantissa as i32)
        };
        if negative { -magnitude } else { magnitude }
    }

    /// [`Format::round`] and [`Format::encode`] in one.
    #[inline]
    pub fn narrow(&self, x: f64, mode: Round) -> u32 {
        self.encode(self.round(x, mode))
    }

    /// Like [`Format::narrow`], with overflow (infinities too) clamped to the largest finite value.
    #[inline]
    pub fn narrow_finite(&self, x: f64, mode: Round) -> u32 {
        self.encode(self.round(x, mode).clamp(-self.max, self.max))
    }
}

/// Floor of the binary logarithm of a finite non-zero `x`.
#[inline]
fn exponent_of(x: f64) -> i32 {
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32;
    // A subnormal f64 lies below every format here: any small exponent does.
    if exponent == 0 { -1074 } else { exponent - 1023 }
}

/// 2 to the power `n`, for -1022 <= n <= 1023.
#[inline]
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((n.clamp(-1022, 1023) + 1023) as u64) << 52)
}

/// The value of half-precision bits.
#[inline]
pub fn f16_value(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff);
    let value = if magnitude >= 0x7c00 {
        f32::from_bits(0x7f80_0000 | magnitude << 13)
    } else {
        f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000)
    };
    f32::from_bits(value.to_bits() | u32::from(bits >> 15) << 31)
}

/// The value of bfloat16 bits.
#[inline]
pub fn bf16_value(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn halves_agree_with_an_independent_implementation() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits).to_f32();
            assert!(f16_value(bits).to_bits() == value.to_bits() || value.is_nan(), "{bits:#x}");
            assert!(F16.decode(bits.into()).to_bits() == f64::from(value).to_bits() || value.is_nan(), "{bits:#x}");
            let value = bf16::from_bits(bits).to_f32();
            assert!(BF16.decode(bits.into()).to_bits() == f64::from(value).to_bits() || value.is_nan(), "{bits:#x}");
        }
        let mut state = 0x1234_5678_9abc_def1u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for i in 0..2_000_000u32 {
            // All exponents that matter for f16, then all bits.
            let bits = random() as u32;
            let x = f32::from_bits(if i % 2 == 0 { bits & 0x8fff_ffff | 0x3000_0000 } else { bits });
            let (h, b) = (f16::from_f32(x), bf16::from_f32(x));
            if x.is_nan() {
                assert_eq!(F16.narrow(x.into(), Round::Nearest), 0x7fff);
                continue;
            }
            assert_eq!(F16.narrow(x.into(), Round::Nearest), u32::from(h.to_bits()), "{x:e}");
            assert_eq!(BF16.narrow(x.into(), Round::Nearest), u32::from(b.to_bits()), "{x:e}");
            let d = f64::from_bits(random());
            if !d.is_nan() {
                assert_eq!(F32.narrow(d, Round::Nearest), (d as f32).to_bits(), "{d:e}");
            }
        }
    }

    #[test]
    fn every_value_survives_decode_and_encode() {
        for (format, bits) in [(E4M3, 8), (E5M2, 8), (F16, 16), (BF16, 16)] {
            for b in 0..1u32 << bits {
                let value = format.decode(b);
                if !value.is_nan() {
                    assert_eq!(format.encode(value), b);
                    for mode in [Round::Nearest, Round::Zero, Round::Down, Round::Up, Round::Away] {
                        assert_eq!(format.narrow(value, mode), b);
                    }
                }
            }
        }
    }

    /// Each f32 at which the rounding changes and its neighbours, and what lies far beyond both ends.
    #[test]
    fn byte_floats_agree_with_an_independent_implementation() {
        let mut tried = 0;
        let mut check = |x: f32| {
            let (e4m3, e5m2) = (float8::F8E4M3::from_f32(x), float8::F8E5M2::from_f32(x));
            let ours = (E4M3.narrow_finite(x.into(), Round::Nearest), E5M2.narrow_finite(x.into(), Round::Nearest));
            assert_eq!(ours, (e4m3.to_bits().into(), e5m2.to_bits().into()), "{x:e}");
            tried += 1;
        };
        for half in 0..=u16::MAX {
            let x = f16::from_bits(half).to_f32();
            if !x.is_nan() {
                [x, x.next_up(), x.next_down()].into_iter().for_each(&mut check);
            }
        }
        [1e-45, 1e-30, 1e30, f32::MAX, f32::INFINITY].into_iter().flat_map(|x| [x, -x]).for_each(check);
        assert!(tried > 180_000);
        for byte in 0..=u8::MAX {
            let same = |ours: f64, other: f32| ours == f64::from(other) || (ours.is_nan() && other.is_nan());
            assert!(same(E4M3.decode(byte.into()), float8::F8E4M3::from_bits(byte).to_f32()), "{byte:#x}");
            assert!(same(E5M2.decode(byte.into()), float8::F8E5M2::from_bits(byte).to_f32()), "{byte:#x}");
        }
        // The one NaN that kernels store, whatever its sign was.
        assert_eq!((E4M3.encode(-f64::NAN), E5M2.encode(-f64::NAN)), (0x7f, 0x7f));
    }

    #[test]
    fn rounding_modes_and_overflow() {
        let between = 1.0 + 2f64.powi(-11);
        assert_eq!(F16.narrow(between, Round::Nearest), 0x3c00);
        assert_eq!(F16.narrow(between, Round::Away), 0x3c01);
        assert_eq!(F16.narrow(between, Round::Up), 0x3c01);
        assert_eq!(F16.narrow(-between, Round::Up), 0xbc00);
        assert_eq!(F16.narrow(-between, Round::Down), 0xbc01);
        assert_eq!(F16.narrow(65520.0, Round::Nearest), 0x7c00);
        assert_eq!(F16.narrow(65519.9, Round::Nearest), 0x7bff);
        assert_eq!(F16.narrow(1e9, Round::Zero), 0x7bff);
        assert_eq!(F16.narrow(-1e9, Round::Up), 0xfbff);
        assert_eq!(F16.narrow(2f64.powi(-25), Round::Nearest), 0);
        assert_eq!(F16.narrow(1.5 * 2f64.powi(-25), Round::Nearest), 1);
        assert_eq!(F16.narrow(-1e-300, Round::Down), 0x8001);
        assert_eq!(F16.narrow(-1e-320, Round::Nearest), 0x8000);
        assert_eq!(E4M3.narrow_finite(464.0, Round::Nearest), 0x7e);
        assert_eq!(E4M3.narrow_finite(f64::NEG_INFINITY, Round::Nearest), 0xfe);
        assert_eq!(E4M3.narrow_finite(f64::NAN, Round::Nearest), 0x7f);
        assert_eq!(E5M2.narrow_finite(f64::INFINITY, Round::Nearest), 0x7b);
    }
}
