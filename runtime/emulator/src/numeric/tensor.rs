//! Sums of products as the tensor cores of Hopper make them.
//!
//! The products of a step and the accumulator are added at once: each is cut off at a bit so many places below the
//! leading place of the largest, then the sum is exact, and it is cut off to f32 or rounded to f16. The leading place of
//! a product is the sum of its factors' exponents, whatever its significand; that of a subnormal is that of the smallest
//! normal number. `tests/hardware.rs` compares with the hardware bit for bit.

use std::ops::Range;

use super::float::NAN32;
use super::format::{F16, F32, Format, Round};

/// How a sum is made.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Places below the leading one that count.
    places: i32,
    /// Exponent of the accumulator's smallest normal number.
    smallest: i16,
}

/// Sums of f32, of all products but those of fp8.
pub const TO_F32: Rule = Rule { places: 25, smallest: -126 };
/// Sums of f16.
pub const TO_F16: Rule = Rule { places: 25, smallest: -14 };

impl Rule {
    /// The rule of products of fp8 by `wgmma`.
    pub fn of_fp8(self) -> Rule {
        Rule { places: 13, ..self }
    }

    /// Places below the leading one that count.
    pub(super) fn places(self) -> i16 {
        self.places as i16
    }

    /// The leading place of a finite accumulator; none of zero.
    #[inline(always)]
    pub(super) fn place_of(self, start: f32) -> Option<i16> {
        let exponent = (start.to_bits() >> 23 & 0xff) as i16 - 127;
        (start != 0.0).then(|| exponent.max(self.smallest))
    }
}

/// The exponent of zero: below that of any number.
const NONE: i16 = -8000;
/// Most places that a term can be shifted to the right and leave something.
const FARTHEST: i16 = 60;

/// tf32: the exponents of f32, 10 places.
pub const TF32: Format = Format { mantissa: 10, ..F32 };

/// Numbers that are taken together.
const CHUNK: usize = 8;

/// Rows of factors, or columns: each of so many numbers side by side, in chunks.
pub struct Factors {
    /// Chunks of a row.
    chunks: usize,
    /// Integers with a sign.
    significands: Vec<[f32; CHUNK]>,
    exponents: Vec<[i16; CHUNK]>,
    /// Whether a row has infinities or NaNs.
    special: Vec<bool>,
    bits: Vec<u32>,
    format: Format,
}

impl Factors {
    /// Splits numbers of a format, given by their bits.
    pub fn new(bits: Vec<u32>, length: usize, format: &Format) -> Factors {
        let (chunks, rows) = (length.div_ceil(CHUNK), bits.len() / length.max(1));
        let mut factors = Factors {
            chunks,
            significands: vec![[0.0; CHUNK]; rows * chunks],
            exponents: vec![[NONE; CHUNK]; rows * chunks],
            special: vec![false; rows],
            bits: vec![0; rows * chunks * CHUNK],
            format: *format,
        };
        let (places, top) = (format.mantissa, (1 << format.exponent) - 1);
        let bias = top / 2;
        for (row, numbers) in bits.chunks_exact(length.max(1)).enumerate() {
            for (k, bits) in numbers.iter().enumerate() {
                let mantissa = bits & ((1 << places) - 1);
                let exponent = (bits >> places & top as u32) as i32;
                let (chunk, at) = (row * chunks + k / CHUNK, k % CHUNK);
                factors.bits[chunk * CHUNK + at] = *bits;
                factors.special[row] |= if format.has_infinity { exponent == top } else { bits & 0x7f == 0x7f };
                if bits & ((1 << (places + format.exponent)) - 1) == 0 {
                    continue;
                }
                let significand = (mantissa | u32::from(exponent > 0) << places) as f32;
                let negative = bits >> (places + format.exponent) & 1 == 1;
                factors.significands[chunk][at] = if negative { -significand } else { significand };
                factors.exponents[chunk][at] = (exponent.max(1) - bias) as i16;
            }
        }
        factors
    }

    fn value(&self, row: usize, chunk: usize, at: usize) -> f64 {
        self.format.decode(self.bits[(row * self.chunks + chunk) * CHUNK + at])
    }
}

/// 2 to the power `n`, for -1022 <= n <= 1023.
fn power(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// An accumulator or a sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum(pub f64);

impl Sum {
    /// Nothing.
    pub const ZERO: Sum = Sum(0.0);

    /// Adds the products of chunks of two rows; the result is not rounded yet.
    pub fn add(self, (x, i): (&Factors, usize), (y, j): (&Factors, usize), part: Range<usize>, rule: Rule) -> Sum {
        if x.special[i] || y.special[j] || !self.0.is_finite() {
            let places = part.flat_map(|chunk| (0..CHUNK).map(move |at| (chunk, at)));
            return Sum(places.fold(self.0, |sum, (chunk, at)| sum + x.value(i, chunk, at) * y.value(j, chunk, at)));
        }
        let (xr, yr) =
            (part.start + i * x.chunks..part.end + i * x.chunks, part.start + j * y.chunks..part.end + j * y.chunks);
        let (xe, ye) = (&x.exponents[xr.clone()], &y.exponents[yr.clone()]);
        let (xs, ys) = (&x.significands[xr], &y.significands[yr]);
        let own = match self.0 {
            0.0 => NONE,
            sum => ((sum.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(rule.smallest.into()) as i16,
        };
        let mut highs = [own; CHUNK];
        for (xe, ye) in xe.iter().zip(ye) {
            for at in 0..CHUNK {
                highs[at] = highs[at].max(xe[at].wrapping_add(ye[at]));
            }
        }
        let highest = highs.into_iter().fold(own, i16::max);
        if highest <= NONE / 2 {
            return Sum(0.0);
        }
        let top = 127 + rule.places - (x.format.mantissa + y.format.mantissa) as i32;
        let mut products = 0;
        for ((xs, ys), (xe, ye)) in xs.iter().zip(ys).zip(xe.iter().zip(ye)) {
            // Nothing here overflows; with checks the loops would not become vector instructions.
            let mut weights = [0f32; CHUNK];
            for at in 0..CHUNK {
                let below = highest.wrapping_sub(xe[at].wrapping_add(ye[at])).min(FARTHEST);
                weights[at] = f32::from_bits((top.wrapping_sub(i32::from(below)) as u32) << 23);
            }
            let mut terms = [0i32; CHUNK];
            for at in 0..CHUNK {
                terms[at] = (xs[at] * ys[at] * weights[at]) as i32;
            }
            // The terms of a chunk stay within 32 bits.
            products += i64::from(terms.into_iter().fold(0, i32::wrapping_add));
        }
        let last = i32::from(highest) - rule.places;
        let own = (self.0 * power(-last)) as i64;
        Sum((products + own) as f64 * power(last))
    }

    /// As f32, cut off; what is too large is infinite.
    pub fn to_f32(self) -> u32 {
        let bits = self.0.to_bits();
        let sign = (bits >> 32) as u32 & 0x8000_0000;
        match (bits >> 52 & 0x7ff) as i32 - 1023 {
            exponent @ -126..=127 => sign | ((exponent + 127) as u32) << 23 | (bits >> 29) as u32 & 0x7f_ffff,
            1024 if self.0.is_nan() => NAN32,
            128.. => sign | 0x7f80_0000,
            _ => F32.narrow(self.0, Round::Zero),
        }
    }

    /// As f32 with as many places as sums of fp8 have.
    pub fn to_short_f32(self) -> u32 {
        if self.0.is_nan() { NAN32 } else { self.to_f32() & !0x3ff }
    }

    /// As f16, rounded.
    pub fn to_f16(self) -> u32 {
        F16.narrow(self.0, Round::Nearest)
    }
}
