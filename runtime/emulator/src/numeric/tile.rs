//! Sums of products of sixteen rows and eight columns at a time, by the rule of `tensor.rs`.
//!
//! Factors are held as f32: a product of two is exact there, and so it is in units of the sum's last place, before what is
//! smaller is cut off. That needs exponents within bounds, which all of f16 and fp8 are and most of bf16 and tf32; tiles with
//! others, with infinities or with NaNs are added one by one. Eight columns stand side by side, so that the loops over them
//! become vector instructions.

use std::ops::Range;

use wide::{f32x8, i16x8, i32x8};

use super::format::Format;
use super::tensor::{Factors, Rule, Sum};

/// Rows of A and of D.
pub const ROWS: usize = 16;
/// Columns of B and of D.
pub const COLUMNS: usize = 8;

/// The exponent of zero: below that of any number.
const NONE: i16 = -8000;
/// Exponents of factors from this below zero to this above it are within bounds.
const BOUND: i16 = 48;

/// Accumulators, row by row.
pub type Starts = [[f32; COLUMNS]; ROWS];
/// Exact sums, not yet rounded.
pub type Sums = [[Sum; COLUMNS]; ROWS];

/// Rows of at most K factors.
pub struct Left<'b, const K: usize> {
    bits: &'b [[u32; K]; ROWS],
    values: [[f32; K]; ROWS],
    exponents: [[i16; K]; ROWS],
    format: &'static Format,
    /// Whether all factors are finite and their exponents within bounds.
    plain: bool,
}

/// Columns of at most K factors: for each place in them the eight that stand there.
pub struct Right<'b, const K: usize> {
    bits: &'b [[u32; COLUMNS]; K],
    values: [[f32; COLUMNS]; K],
    exponents: [[i16; COLUMNS]; K],
    format: &'static Format,
    plain: bool,
}

impl<const K: usize> Left<'_, K> {
    /// Splits numbers, given by their bits.
    #[inline(always)]
    pub fn new<'b>(bits: &'b [[u32; K]; ROWS], format: &'static Format) -> Left<'b, K> {
        let (values, exponents) = ([[0.0; K]; ROWS], [[NONE; K]; ROWS]);
        let mut left = Left { bits, values, exponents, format, plain: true };
        let split = (left.values.as_flattened_mut(), left.exponents.as_flattened_mut());
        left.plain = take_apart(bits.as_flattened(), format, split);
        left
    }
}

impl<const K: usize> Right<'_, K> {
    /// Splits numbers, given by their bits.
    #[inline(always)]
    pub fn new<'b>(bits: &'b [[u32; COLUMNS]; K], format: &'static Format) -> Right<'b, K> {
        let (values, exponents) = ([[0.0; COLUMNS]; K], [[NONE; COLUMNS]; K]);
        let mut right = Right { bits, values, exponents, format, plain: true };
        let split = (right.values.as_flattened_mut(), right.exponents.as_flattened_mut());
        right.plain = take_apart(bits.as_flattened(), format, split);
        right
    }
}

/// Numbers as f32, and their exponents; that of a subnormal is that of the smallest normal number. False if one is infinite,
/// NaN or out of bounds. There are no branches, so that this becomes vector instructions.
fn take_apart(bits: &[u32], format: &Format, (values, exponents): (&mut [f32], &mut [i16])) -> bool {
    let (places, width) = (format.mantissa, format.mantissa + format.exponent);
    let top = (1i32 << format.exponent) - 1;
    let bias = top / 2;
    // From here on magnitudes are no finite numbers.
    let special = if format.has_infinity { top << places } else { 0x7f };
    // As the bits of an f32 a magnitude is too small by this.
    let scale = power32(127 - bias as i16);
    let mut odd = false;
    for ((bits, value), exponent) in bits.iter().zip(values).zip(exponents) {
        let magnitude = (bits & ((1 << width) - 1)) as i32;
        let power = (magnitude >> places).max(1) - bias;
        let shifted = f32::from_bits((magnitude as u32) << (23 - places)) * scale;
        *value = f32::from_bits(shifted.to_bits() | bits >> width << 31);
        let is_zero = magnitude == 0;
        *exponent = if is_zero { NONE } else { power as i16 };
        let is_beyond = (power < -i32::from(BOUND)) | (power > i32::from(BOUND));
        odd |= (magnitude >= special) | (is_beyond & !is_zero);
    }
    !odd
}

/// Adds the products at some places of the rows and columns. Places are taken in eights.
#[inline(always)]
pub fn add<const K: usize>(
    left: &Left<'_, K>,
    right: &Right<'_, K>,
    starts: &Starts,
    part: Range<usize>,
    rule: Rule,
) -> Sums {
    // All of them are looked at: that is quicker than to stop at one.
    let finite = starts.as_flattened().iter().fold(true, |all, start| all & start.is_finite());
    if left.plain && right.plain && finite {
        add_together(left, right, starts, part, rule)
    } else {
        add_each(left, right, starts, part, rule)
    }
}

#[inline(always)]
fn add_together<const K: usize>(
    left: &Left<'_, K>,
    right: &Right<'_, K>,
    starts: &Starts,
    part: Range<usize>,
    rule: Rule,
) -> Sums {
    let mut sums = [[Sum::ZERO; COLUMNS]; ROWS];
    let (ys, ye) = (&right.values[part.clone()], &right.exponents[part.clone()]);
    for (row, (sums, starts)) in sums.iter_mut().zip(starts).enumerate() {
        let (xs, xe) = (&left.values[row][part.clone()], &left.exponents[row][part.clone()]);
        let mut highest = [NONE; COLUMNS];
        for (highest, start) in highest.iter_mut().zip(starts) {
            *highest = rule.place_of(*start).unwrap_or(NONE);
        }
        let mut highest = i16x8::new(highest);
        for (x, ys) in xe.iter().zip(ye) {
            highest = highest.max(i16x8::splat(*x) + i16x8::new(*ys));
        }
        let highest = highest.to_array();
        // Where nothing but the accumulator is above the bound, all products are zero.
        let mut units = [0.0; COLUMNS];
        for (unit, highest) in units.iter_mut().zip(highest) {
            *unit = power32(rule.places() - highest.max(-2 * BOUND));
        }
        let units = f32x8::new(units);
        let mut products = i32x8::ZERO;
        for (x, ys) in xs.iter().zip(ys) {
            // The sum of the terms of 16 factors stays within 32 bits, and so it does of 32 of fp8.
            products += (f32x8::splat(*x) * f32x8::new(*ys) * units).fast_trunc_int();
        }
        let products = products.to_array();
        let own = (f32x8::new(*starts) * units).fast_trunc_int().to_array();
        for at in 0..COLUMNS {
            let last = i32::from(highest[at].max(-2 * BOUND) - rule.places());
            sums[at] = Sum((f64::from(products[at]) + f64::from(own[at])) * power(last));
        }
        for at in 0..COLUMNS {
            // The smallest accumulators alone: in their own places.
            if highest[at] < -2 * BOUND && highest[at] != NONE {
                let last = i32::from(highest[at] - rule.places());
                sums[at] = Sum(f64::from((f64::from(starts[at]) * power(-last)) as i32) * power(last));
            }
        }
    }
    sums
}

/// All sums as f32, cut off.
#[inline(always)]
pub fn to_f32(sums: &Sums) -> [[u32; COLUMNS]; ROWS] {
    let mut all = [[0; COLUMNS]; ROWS];
    let mut is_odd = false;
    for (bits, sum) in all.as_flattened_mut().iter_mut().zip(sums.as_flattened()) {
        // Without the places that f32 lacks the conversion is exact, but for subnormals.
        *bits = (f64::from_bits(sum.0.to_bits() & !0x1fff_ffff) as f32).to_bits();
        is_odd |= (sum.0.abs() < f64::from(f32::MIN_POSITIVE)) & (sum.0 != 0.0) | sum.0.is_nan();
    }
    if is_odd {
        for (bits, sum) in all.as_flattened_mut().iter_mut().zip(sums.as_flattened()) {
            *bits = sum.to_f32();
        }
    }
    all
}

fn add_each<const K: usize>(
    left: &Left<'_, K>,
    right: &Right<'_, K>,
    starts: &Starts,
    part: Range<usize>,
    rule: Rule,
) -> Sums {
    let length = part.len();
    let rows = left.bits.iter().flat_map(|row| row[part.clone()].iter().copied()).collect();
    let columns = (0..COLUMNS).flat_map(|at| right.bits[part.clone()].iter().map(move |bits| bits[at])).collect();
    let (x, y) = (Factors::new(rows, length, left.format), Factors::new(columns, length, right.format));
    let chunks = 0..length.div_ceil(8);
    let sum =
        |row: usize, column: usize| Sum(starts[row][column].into()).add((&x, row), (&y, column), chunks.clone(), rule);
    std::array::from_fn(|row| std::array::from_fn(|column| sum(row, column)))
}

/// 2 to the power `n`, for -126 <= n <= 127.
#[inline(always)]
fn power32(n: i16) -> f32 {
    f32::from_bits(((i32::from(n) + 127) as u32) << 23)
}

/// 2 to the power `n`, for -1022 <= n <= 1023.
#[inline(always)]
fn power(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::random::Random;
    use crate::numeric::format::{BF16, E4M3, E5M2, F16};
    use crate::numeric::tensor::{TF32, TO_F16, TO_F32};

    /// A number whose exponent is near the middle, zero, or any bits.
    fn factor(random: &mut Random, format: &Format) -> u32 {
        let width = format.mantissa + format.exponent;
        let any = random.bits() as u32 & ((2 << width) - 1);
        match random.below(8) {
            0 => any & 1 << width,
            1 if width < 16 => any,
            _ => {
                let bias = (1u32 << (format.exponent - 1)) - 1;
                let near = (bias + random.below(21) as u32).saturating_sub(10);
                let near = near.min((1 << format.exponent) - 2);
                any & !(((1 << format.exponent) - 1) << format.mantissa) | near << format.mantissa
            }
        }
    }

    fn start(random: &mut Random) -> f32 {
        let bits = random.bits() as u32;
        match random.below(8) {
            0 => 0.0,
            1 => f32::from_bits(bits & 0x81ff_ffff),
            2 => f32::from_bits(bits & !0x4000_0000),
            _ => f32::from_bits(bits & 0x83ff_ffff | 0x3c00_0000),
        }
    }

    #[test]
    fn together_and_one_by_one_are_the_same() {
        let mut random = Random::new(88);
        let mut together = 0;
        for round in 0..4000 {
            let (format, rule) = [
                (&F16, TO_F32),
                (&F16, TO_F16),
                (&BF16, TO_F32),
                (&TF32, TO_F32),
                (&E4M3, TO_F32.of_fp8()),
                (&E5M2, TO_F16.of_fp8()),
            ][round % 6];
            let a: [[u32; 16]; ROWS] = std::array::from_fn(|_| std::array::from_fn(|_| factor(&mut random, format)));
            let b: [[u32; COLUMNS]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| factor(&mut random, format)));
            let starts: Starts = std::array::from_fn(|_| std::array::from_fn(|_| start(&mut random)));
            let (left, right) = (Left::new(&a, format), Right::new(&b, format));
            together += u32::from(left.plain && right.plain);
            let (quick, slow) =
                (add(&left, &right, &starts, 0..16, rule), add_each(&left, &right, &starts, 0..16, rule));
            for (quick, slow) in quick.as_flattened().iter().zip(slow.as_flattened()) {
                let same = quick.0 == slow.0 || quick.0.is_nan() && slow.0.is_nan();
                assert!(same, "{format:?} {rule:?}: {quick:?} instead of {slow:?}");
            }
            let bits = slow.map(|row| row.map(Sum::to_f32));
            assert_eq!(to_f32(&slow), bits);
        }
        assert!(together > 1000, "only {together} tiles were added together");
    }
}
