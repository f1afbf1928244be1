//! Dot products as computed by the tensor cores of Hopper.
//!
//! The products of a step and the accumulator are added at once: each is cut off at a bit so many places below the
//! leading place of the largest, then the sum is exact, and it is cut off to f32 or rounded to f16. The leading place of
//! a product is the sum of its factors' exponents, whatever its significand; that of a subnormal is that of the smallest
//! normal number. `tests/hardware.rs` compares with the hardware bit for bit. This file is the rule, one sum at a time;
//! `tile.rs` makes many at once.

use super::float::NAN32;
use super::format::{F16, F32, Format, Round};

/// How a sum is made.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Places below the leading one that count.
    pub(super) places: i32,
    /// Exponent of the accumulator's smallest normal number.
    pub(super) smallest: i32,
    /// Bits of an f32 that a result can have.
    pub(super) kept: u32,
    /// Whether the result is an f16.
    pub(super) half: bool,
}

/// Sums of f32, of all products but those of fp8.
pub const TO_F32: Rule = Rule { places: 25, smallest: -126, kept: u32::MAX, half: false };
/// Sums of f16.
pub const TO_F16: Rule = Rule { places: 25, smallest: -14, kept: u32::MAX, half: true };

impl Rule {
    /// The rule of products of fp8 by `wgmma`.
    pub fn of_fp8(self) -> Rule {
        Rule { places: 13, kept: !0x3ff, ..self }
    }
}

/// tf32: the exponents of f32, 10 places.
pub const TF32: Format = Format { mantissa: 10, ..F32 };

/// A number and the place at which it counts: its exponent, but at least that of the smallest normal number.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The number.
    pub value: f64,
    /// Its place; any of zero.
    pub place: i32,
}

impl Placed {
    /// The number of some bits, `smallest` being the exponent of the smallest normal number.
    pub fn new(format: &Format, bits: u32, smallest: i32) -> Placed {
        Placed::at_least(format.decode(bits), smallest)
    }

    fn at_least(value: f64, smallest: i32) -> Placed {
        Placed { value, place: ((value.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(smallest) }
    }

    fn times(self, other: Placed) -> Placed {
        Placed { value: self.value * other.value, place: self.place + other.place }
    }
}

/// 2 to the power `n`, for -1022 <= n <= 1023.
fn power(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// The bits of an accumulator and the products of pairs.
pub fn sum(start: f32, pairs: impl Iterator<Item = (Placed, Placed)> + Clone, rule: Rule) -> u32 {
    let products = pairs.map(|(x, y)| x.times(y));
    let terms = products.chain([Placed::at_least(start.into(), rule.smallest)]);
    if terms.clone().any(|term| !term.value.is_finite()) {
        return rule.finish(terms.fold(0.0, |sum, term| sum + term.value));
    }
    let Some(highest) = terms.clone().filter(|term| term.value != 0.0).map(|term| term.place).max() else {
        return 0;
    };
    let last = highest - rule.places;
    let whole: i64 = terms.map(|term| (term.value * power(-last)) as i64).sum();
    rule.finish(whole as f64 * power(last))
}

impl Rule {
    /// The bits of an exact sum.
    fn finish(self, sum: f64) -> u32 {
        match () {
            () if self.half => F16.narrow(sum, Round::Nearest),
            () if sum.is_nan() => NAN32,
            () => cut(sum) & self.kept,
        }
    }
}

/// The bits as f32, truncated; too large values are infinite.
fn cut(sum: f64) -> u32 {
    let bits = sum.to_bits();
    let sign = (bits >> 32) as u32 & 0x8000_0000;
    match (bits >> 52 & 0x7ff) as i32 - 1023 {
        128.. => sign | 0x7f80_0000,
        _ => F32.narrow(sum, Round::Zero),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_cut_off_below_the_largest() {
        let placed = |value: f32| Placed::new(&F32, value.to_bits(), -126);
        let sum = |start: f32, products: &[f32]| {
            f32::from_bits(sum(start, products.iter().map(|x| (placed(*x), placed(1.0))), TO_F32))
        };
        let unit = 2f32.powi(-25);
        assert_eq!(sum(1.0, &[]), 1.0);
        // Two units of the last kept place make one of f32's; smaller parts are truncated before the addition.
        assert_eq!(sum(0.0, &[1.0, unit, unit, unit, unit]), 1.0 + 4.0 * unit);
        assert_eq!(sum(0.0, &[1.0, unit * 0.75, unit * 0.75, unit * 0.75, unit * 0.75, unit * 0.75]), 1.0);
        assert_eq!(sum(-1.0, &[unit]), -(1.0f32.next_down()));
        assert_eq!(sum(-1.0, &[unit / 2.0]), -1.0);
        // The place of a product is the sum of the exponents: that of 1.5 * 1.5 is 0.
        let pairs = [(placed(1.5), placed(1.5)), (placed(unit), placed(1.0)), (placed(-2.25), placed(1.0))];
        assert_eq!(f32::from_bits(super::sum(0.0, pairs[..2].iter().copied(), TO_F32)), 2.25);
        assert_eq!(f32::from_bits(super::sum(0.0, pairs.iter().copied(), TO_F32)), 0.0);
        assert_eq!(sum(0.0, &[-0.0]).to_bits(), 0);
        assert!(sum(f32::INFINITY, &[f32::NEG_INFINITY]).is_nan());
        assert_eq!(sum(f32::MAX, &[f32::MAX]), f32::INFINITY);
    }
}
