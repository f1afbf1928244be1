//! Sums of products of sixteen rows and eight columns at a time, by the rule of `tensor.rs`.
//!
//! Factors come in words of 32 bits, as registers hold them. They are kept as f32: a product of two is exact there, and so
//! it is in units of the sum's last place, before what is smaller is cut off. That needs sums whose leading place is within
//! bounds; others, and those with an infinity or a NaN, are made again one by one. Eight columns stand side by side in
//! vectors.

use std::array::from_fn;
use std::ops::Range;

use wide::bytemuck::cast;
use wide::{f32x8, i16x8, i32x8};

use super::format::Format;
use super::tensor::{self, Placed, Rule};

/// Rows of A and of D.
pub const ROWS: usize = 16;
/// Columns of B and of D.
pub const COLUMNS: usize = 8;
/// Words along K.
pub const WORDS: usize = 8;

/// The exponent of zero: below that of any number, and so is its sum with that of any number.
const NONE: i16 = -8000;
/// The exponent of an infinity or a NaN: above that of any number, and so is its sum with that of any, also of zero.
const SPECIAL: i16 = 16000;
/// Sums with a leading place from this on are within bounds: the loss of products below the smallest normal f32 would
/// be truncated anyway.
const LOWEST: i16 = -96;
/// Sums with a leading place up to this are within bounds.
const HIGHEST: i16 = 100;

/// Accumulators, row by row.
pub type Starts = [[f32; COLUMNS]; ROWS];
/// Bits of sums, row by row.
pub type Results = [[u32; COLUMNS]; ROWS];

/// Vectors of eight words with so many factors each: for each row of A its words, for each word of B the columns.
pub struct Factors<'w, const PER: usize, const N: usize> {
    words: &'w [[u32; 8]; N],
    values: [[f32x8; PER]; N],
    exponents: [[i16x8; PER]; N],
    format: &'static Format,
    smallest: i32,
}

/// The rows of A.
pub type Rows<'w, const PER: usize> = Factors<'w, PER, ROWS>;
/// The columns of B.
pub type Columns<'w, const PER: usize> = Factors<'w, PER, WORDS>;

impl<'w, const PER: usize, const N: usize> Factors<'w, PER, N> {
    /// Splits numbers, given by their bits. `smallest` is the exponent of the smallest normal number.
    #[inline(always)]
    pub fn new(words: &'w [[u32; 8]; N], format: &'static Format, smallest: i32) -> Self {
        let magnitude = (1 << (format.mantissa + format.exponent)) - 1;
        // From here on magnitudes are no finite numbers.
        let special = if format.has_infinity { magnitude & !((1 << format.mantissa) - 1) } else { 0x7f };
        // With a number's sign in bit 31 and its exponent after that, it becomes an f32 by this shift and this factor.
        let (shift, scale) = (8 - format.exponent, power(127 - format.bias()));
        let place = 23 - format.mantissa;
        let (magnitude, special) = (i32x8::splat(magnitude << place), i32x8::splat((special << place) - 1));
        let split = |words: i32x8| {
            let bits = words >> shift & magnitude;
            let value: i32x8 = cast(cast::<_, f32x8>(bits) * f32x8::splat(scale));
            let exponent = i16x8::from_i32x8_saturate(value >> 23) + i16x8::splat(-127);
            let exponent = exponent.max(i16x8::splat(smallest as i16));
            let is_zero = i16x8::from_i32x8_saturate(bits.simd_eq(i32x8::ZERO));
            let is_special = i16x8::from_i32x8_saturate(bits.simd_gt(special));
            let exponent = exponent + (is_zero & i16x8::splat(NONE)) + (is_special & i16x8::splat(SPECIAL));
            let value: f32x8 = cast(value | words & i32x8::splat(i32::MIN));
            (value, exponent)
        };
        let (mut values, mut exponents) = ([[f32x8::ZERO; PER]; N], [[i16x8::ZERO; PER]; N]);
        for at in 0..N {
            let words: i32x8 = cast(words[at]);
            for j in 0..PER {
                (values[at][j], exponents[at][j]) = split(words << (32 / PER * (PER - 1 - j)) as u32);
            }
        }
        Factors { words, values, exponents, format, smallest }
    }

    /// A factor, for a sum that is made alone.
    fn placed(&self, at: usize, lane: usize, j: usize) -> Placed {
        match self.exponents[at][j].as_array()[lane] {
            exponent if exponent < SPECIAL / 2 => {
                Placed { value: self.values[at][j].as_array()[lane].into(), place: exponent.into() }
            }
            _ => Placed::new(self.format, self.bits(at, lane, j), self.smallest),
        }
    }

    /// The bits of a factor.
    fn bits(&self, at: usize, lane: usize, j: usize) -> u32 {
        let width = 1 + self.format.exponent + self.format.mantissa;
        self.words[at][lane] << (32 / PER * (PER - 1 - j)) >> (32 - width)
    }
}

/// Adds the products of some factors of each word.
#[inline(always)]
pub fn add<const PER: usize>(
    rows: &Rows<'_, PER>,
    columns: &Columns<'_, PER>,
    starts: &Starts,
    part: Range<usize>,
    rule: Rule,
) -> Results {
    let mut results = [[0; COLUMNS]; ROWS];
    let mut odd = [0u32; ROWS];
    for row in 0..ROWS {
        let is_odd;
        (results[row], is_odd) = add_row((&rows.values[row], &rows.exponents[row]), columns, starts[row], &part, rule);
        odd[row] = is_odd.to_bitmask();
    }
    if odd != [0; ROWS] {
        for row in 0..ROWS {
            for column in (0..COLUMNS).filter(|column| odd[row] >> column & 1 == 1) {
                results[row][column] = add_one((rows, row), (columns, column), starts[row][column], &part, rule);
            }
        }
    }
    results
}

/// The sums of a row, and which of them are not within bounds.
#[inline(always)]
fn add_row<const PER: usize>(
    (values, exponents): (&[f32x8; PER], &[i16x8; PER]),
    columns: &Columns<'_, PER>,
    starts: [f32; COLUMNS],
    part: &Range<usize>,
    rule: Rule,
) -> ([u32; COLUMNS], i16x8) {
    let starts = f32x8::new(starts);
    let mut highest = place_of(starts, rule.smallest);
    for word in 0..WORDS {
        for j in part.clone() {
            let x = exponents[j].as_array()[word];
            highest = highest.max(i16x8::splat(x) + columns.exponents[word][j]);
        }
    }
    // Where everything is zero the sum is, too.
    let is_small = highest.simd_lt(i16x8::splat(LOWEST)) & highest.simd_gt(i16x8::splat(NONE / 2));
    let is_odd = highest.simd_gt(i16x8::splat(HIGHEST)) | is_small;
    let highest = i32x8::from(highest.max(i16x8::splat(LOWEST)).min(i16x8::splat(HIGHEST)));
    let units = (i32x8::splat(127 + rule.places) - highest) << 23;
    let unit: f32x8 = cast(units);
    let mut products = i32x8::ZERO;
    for word in 0..WORDS {
        for j in part.clone() {
            // The sum of the terms of 16 factors stays within 32 bits, and so it does of 32 of fp8.
            let x = values[j].as_array()[word];
            products += (f32x8::splat(x) * columns.values[word][j] * unit).fast_trunc_int();
        }
    }
    let own = (starts * unit).fast_trunc_int();
    let whole = products + own;
    let overflows = (whole ^ products) & (whole ^ own);
    let sign: i32x8 = whole >> 31;
    let magnitude = (whole ^ sign) - sign;
    // Where the conversion to f32 and back overflows, too.
    let overflows = overflows >> 31 | magnitude.simd_gt(i32x8::splat(i32::MAX - 0x80));
    let rounded = magnitude.round_float();
    let back = rounded.fast_trunc_int();
    let mut cut = cast::<_, i32x8>(rounded) + back.simd_gt(magnitude);
    if rule.half {
        // Rounded to odd, so that it can be rounded once more.
        cut |= !back.simd_eq(magnitude) & i32x8::splat(1);
    }
    let last: f32x8 = cast(i32x8::splat(254 << 23) - units);
    let sums: i32x8 = cast(cast::<_, f32x8>(cut) * last);
    let sums = sums | sign & i32x8::splat(i32::MIN);
    let bits: [u32; COLUMNS] = cast(sums);
    let results = if rule.half { bits.map(to_f16) } else { bits.map(|bits| bits & rule.kept) };
    (results, is_odd | i16x8::from_i32x8_saturate(overflows))
}

/// The leading places of accumulators.
#[inline(always)]
fn place_of(starts: f32x8, smallest: i32) -> i16x8 {
    let bits = cast::<_, i32x8>(starts) & i32x8::splat(i32::MAX);
    let place = i16x8::from_i32x8_saturate(bits >> 23) + i16x8::splat(-127);
    let is_zero = i16x8::from_i32x8_saturate(bits.simd_eq(i32x8::ZERO));
    place.max(i16x8::splat(smallest as i16)) + (is_zero & i16x8::splat(NONE))
}

/// The bits as f16 of an f32 that was rounded to odd.
#[inline(always)]
fn to_f16(bits: u32) -> u32 {
    let magnitude = bits & 0x7fff_ffff;
    // Numbers below the smallest normal one are whole multiples of the last place of 0.5.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let rounded = magnitude.wrapping_add(0xfff + (magnitude >> 13 & 1)).wrapping_sub(112 << 23);
    let normal = (rounded >> 13).min(0x7c00);
    let is_small = magnitude < 113 << 23;
    (if is_small { small } else { normal }) | bits >> 16 & 0x8000
}

/// One sum.
#[inline(never)]
fn add_one<const PER: usize>(
    (rows, row): (&Rows<'_, PER>, usize),
    (columns, column): (&Columns<'_, PER>, usize),
    start: f32,
    part: &Range<usize>,
    rule: Rule,
) -> u32 {
    let places = (0..WORDS).flat_map(|word| part.clone().map(move |j| (word, j)));
    let pairs = places.map(|(word, j)| (rows.placed(row, word, j), columns.placed(word, column, j)));
    tensor::sum(start, pairs, rule)
}

/// Dot products of bytes, with four per word; whether those of A and of B are signed.
#[inline(always)]
pub fn whole_products(
    rows: &[[u32; WORDS]; ROWS],
    columns: &[[u32; COLUMNS]; WORDS],
    signed: (bool, bool),
) -> [[i32; COLUMNS]; ROWS] {
    // The even and the odd bytes of a word, each as 16 bits.
    let halves = |words: &[u32; 8], signed: bool| {
        let words: wide::i16x16 = cast(*words);
        match signed {
            true => [(words << 8) >> 8, words >> 8],
            false => [words & wide::i16x16::splat(0xff), (words >> 8) & wide::i16x16::splat(0xff)],
        }
    };
    let columns: [[wide::i16x16; 2]; WORDS] = from_fn(|word| halves(&columns[word], signed.1));
    from_fn(|row| {
        let mut sum = i32x8::ZERO;
        for (half, pairs) in halves(&rows[row], signed.0).into_iter().enumerate() {
            let pairs: [i32; WORDS] = cast(pairs);
            for (word, pair) in pairs.iter().enumerate() {
                sum += cast::<_, wide::i16x16>(i32x8::splat(*pair)).dot(columns[word][half]);
            }
        }
        cast(sum)
    })
}

/// 2 to the power `n`, for -126 <= n <= 127.
#[inline(always)]
fn power(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

#[cfg(test)]
mod tests;
