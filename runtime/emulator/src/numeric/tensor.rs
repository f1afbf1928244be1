//! Sums of products as the tensor cores of Hopper make them.
//!
//! The products of a step and the accumulator are added at once: each is cut off at a bit so many places below the
//! leading place of the largest, then the sum is exact, and it is cut off to f32 or rounded to f16. The leading place of
//! a product is the sum of its factors' exponents, whatever its significand; that of a subnormal is that of the smallest
//! normal number. `tests/hardware.rs` compares with the hardware bit for bit.

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
}

/// The exponent of zero: below that of any number.
const NONE: i16 = -8000;
/// Most places that a term can be shifted to the right and leave something.
const FARTHEST: i16 = 60;

/// tf32: the exponents of f32, 10 places.
pub const TF32: Format = Format { mantissa: 10, ..F32 };

/// Rows of factors, or columns: each of so many numbers side by side.
pub struct Factors {
    length: usize,
    /// Integers with a sign.
    significands: Vec<f32>,
    exponents: Vec<i16>,
    values: Vec<f64>,
    /// Whether a row has infinities or NaNs.
    special: Vec<bool>,
    places: i32,
}

impl Factors {
    /// Splits numbers of a format.
    pub fn new(values: Vec<f64>, length: usize, format: &Format) -> Factors {
        let places = format.mantissa as i32;
        let smallest = 2 - (1 << (format.exponent - 1));
        let split = |x: &f64| {
            if *x == 0.0 || !x.is_finite() {
                return (0.0, NONE);
            }
            let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(smallest);
            ((x * power(places - exponent)) as f32, exponent as i16)
        };
        let (significands, exponents) = values.iter().map(split).unzip();
        let special = values.chunks(length.max(1)).map(|row| row.iter().any(|x| !x.is_finite())).collect();
        Factors { length, significands, exponents, values, special, places }
    }

    /// The same numbers in another order within each row.
    pub fn ordered(values: &[f64], length: usize, format: &Format, order: impl Fn(usize) -> usize) -> Factors {
        let row = |row: &[f64]| (0..length).map(|k| row[order(k)]).collect::<Vec<f64>>();
        Factors::new(values.chunks(length).flat_map(row).collect(), length, format)
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

    /// The value of an f32.
    pub fn of(bits: u32) -> Sum {
        Sum(f32::from_bits(bits).into())
    }

    /// Adds the products of parts of two rows; the result is not rounded yet.
    pub fn add(self, (x, i): (&Factors, usize), (y, j): (&Factors, usize), part: (usize, usize), rule: Rule) -> Sum {
        let ((from, to), places) = (part, rule.places);
        let (x_at, y_at) = (i * x.length, j * y.length);
        if x.special[i] || y.special[j] || !self.0.is_finite() {
            let products = (from..to).map(|k| x.values[x_at + k] * y.values[y_at + k]);
            return Sum(products.fold(self.0, |sum, product| sum + product));
        }
        let (xe, ye) = (&x.exponents[x_at + from..x_at + to], &y.exponents[y_at + from..y_at + to]);
        let (xs, ys) = (&x.significands[x_at + from..x_at + to], &y.significands[y_at + from..y_at + to]);
        let own = match self.0 {
            0.0 => NONE,
            sum => ((sum.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(rule.smallest.into()) as i16,
        };
        let highest = xe.iter().zip(ye).map(|(a, b)| a + b).fold(own, i16::max);
        if highest <= NONE / 2 {
            return Sum(0.0);
        }
        // At most 8 terms at once stay within 32 bits.
        let top = 127 + places - x.places - y.places;
        let eight = |((xs, ys), (xe, ye)): ((&[f32], &[f32]), (&[i16], &[i16]))| {
            let mut sum = 0;
            for (((a, b), c), d) in xs.iter().zip(ys).zip(xe).zip(ye) {
                let below = (highest - (c + d)).min(FARTHEST);
                let weight = f32::from_bits(((top - i32::from(below)) as u32) << 23);
                sum += (a * b * weight) as i32;
            }
            i64::from(sum)
        };
        let significands = xs.chunks(8).zip(ys.chunks(8));
        let exponents = xe.chunks(8).zip(ye.chunks(8));
        let products: i64 = significands.zip(exponents).map(eight).sum();
        let last = i32::from(highest) - places;
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

    /// As f16, rounded.
    pub fn to_f16(self) -> u32 {
        F16.narrow(self.0, Round::Nearest)
    }
}
