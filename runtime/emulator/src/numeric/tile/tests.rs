//! Tiles against sums that are made one by one.

use super::*;
use crate::exec::random::Random;
use crate::numeric::format::{BF16, E4M3, E5M2, F16};
use crate::numeric::tensor::{TF32, TO_F16, TO_F32};

/// The distribution of a tile's numbers.
#[derive(Clone, Copy, Debug)]
enum Like {
    /// Exponents near the middle, and zeros.
    Ordinary,
    /// All numbers that are finite, mostly.
    Finite,
    /// Any bits.
    Any,
    /// Zero, the smallest and the largest of each kind, infinities, NaNs.
    Edges,
    /// Leading places of products near the least one within bounds, if the format has such.
    Low,
    /// The largest significand, always with the same exponent: sums need all 32 bits.
    Full,
}

const KINDS: [Like; 6] = [Like::Ordinary, Like::Finite, Like::Any, Like::Edges, Like::Low, Like::Full];

/// The bits of a number of a format.
fn number(random: &mut Random, format: &Format, like: Like) -> u32 {
    let (mantissa, top) = (format.mantissa, (1u32 << format.exponent) - 1);
    let any = random.bits() as u32 & (2u32 << (mantissa + format.exponent)).wrapping_sub(1);
    let sign = any & 1 << (mantissa + format.exponent);
    let with = |exponent: u32| any & !(top << mantissa) | exponent.min(top - 1) << mantissa;
    match like {
        Like::Ordinary if random.once_in(8) => sign,
        Like::Ordinary => with((top / 2 + random.below(21) as u32).saturating_sub(10)),
        Like::Finite => with(random.below(top as usize) as u32),
        Like::Any => any,
        Like::Low => with(top / 2 - top * 5 / 24 + random.below(6) as u32),
        Like::Edges => {
            let ones = (1 << mantissa) - 1;
            let list = [0, 1, ones, 1 << mantissa, (top - 1) << mantissa | ones, top << mantissa, top << mantissa | 1];
            sign | [list.as_slice(), &[top << mantissa | ones]].concat()[random.below(8)]
        }
        Like::Full => (top / 2) << mantissa | ((1 << mantissa) - 1),
    }
}

fn start(random: &mut Random, rule: Rule, like: Like) -> f32 {
    let format = if rule.half { &F16 } else { &crate::numeric::format::F32 };
    let bits = match like {
        // 23 places, with the largest leading place that products of this kind have.
        Like::Full => format.encode(1.99999 * [0.0, 1.0, 1.0, 2.0][random.below(4)] * [1.0, -1.0][random.below(2)]),
        Like::Low if !rule.half => random.bits() as u32 & 0x807f_ffff | (20 + random.below(20) as u32) << 23,
        _ => number(random, format, like),
    };
    format.decode(bits) as f32
}

fn words<const N: usize>(random: &mut Random, format: &Format, per: u32, like: Like) -> [[u32; 8]; N] {
    let width = 1 + format.mantissa + format.exponent;
    // Bits below the 19 bits of tf32 are ignored.
    let mut word = || {
        let below = if per == 1 { random.bits() as u32 & 0x1fff } else { 0 };
        (0..per).fold(below, |word, j| word | number(random, format, like) << (32 / per * j + 32 / per - width))
    };
    from_fn(|_| from_fn(|_| word()))
}

/// Compares a tile with its sums one by one; returns how many were within bounds.
fn compare<const PER: usize>(
    random: &mut Random,
    (x, y): (&'static Format, &'static Format),
    rule: Rule,
    seed: u64,
) -> u32 {
    let mut like = || KINDS[random.below(KINDS.len())];
    let (of_a, of_b, of_c) = (like(), like(), like());
    let of_c = if matches!(of_a, Like::Full | Like::Low) { of_a } else { of_c };
    let (a, b) = (words::<ROWS>(random, x, PER as u32, of_a), words::<WORDS>(random, y, PER as u32, of_b));
    let starts: Starts = from_fn(|_| from_fn(|_| start(random, rule, of_c)));
    let smallest = |format: &Format| if rule.places == 25 && PER == 4 { -14 } else { 1 - format.bias() };
    let (rows, columns) = (Rows::<PER>::new(&a, x, smallest(x)), Columns::<PER>::new(&b, y, smallest(y)));
    let part = if rule.places == 25 && PER == 4 { [0..2, 2..4][random.below(2)].clone() } else { 0..PER };
    let results = add(&rows, &columns, &starts, part.clone(), rule);
    let mut within = 0;
    for row in 0..ROWS {
        let quick = add_row((&rows.values[row], &rows.exponents[row]), &columns, starts[row], &part, rule);
        within += COLUMNS as u32 - quick.1.to_bitmask().count_ones();
        for column in 0..COLUMNS {
            let places = (0..WORDS).flat_map(|word| part.clone().map(move |j| (word, j)));
            let pairs = places.map(|(word, j)| {
                let (x_bits, y_bits) = (rows.bits(row, word, j), columns.bits(word, column, j));
                (Placed::new(x, x_bits, smallest(x)), Placed::new(y, y_bits, smallest(y)))
            });
            let exact = tensor::sum(starts[row][column], pairs, rule);
            let result = results[row][column];
            assert_eq!(
                result, exact,
                "seed {seed}: {x:?} {y:?} {rule:?}, {of_a:?} {of_b:?} {of_c:?}, row {row}, column {column}: {result:#x}, not {exact:#x}"
            );
        }
    }
    within
}

#[test]
fn together_and_one_by_one_are_the_same() {
    let seed = std::env::var("RTC_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(88);
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut within = [0; 10];
    let rounds = 300;
    for _ in 0..rounds {
        let random = &mut random;
        let counts = [
            compare::<2>(random, (&F16, &F16), TO_F32, seed),
            compare::<2>(random, (&F16, &F16), TO_F16, seed),
            compare::<2>(random, (&BF16, &BF16), TO_F32, seed),
            compare::<1>(random, (&TF32, &TF32), TO_F32, seed),
            compare::<4>(random, (&E4M3, &E5M2), TO_F32, seed),
            compare::<4>(random, (&E5M2, &E4M3), TO_F32, seed),
            compare::<4>(random, (&E4M3, &E4M3), TO_F32.of_fp8(), seed),
            compare::<4>(random, (&E5M2, &E5M2), TO_F32.of_fp8(), seed),
            compare::<4>(random, (&E4M3, &E5M2), TO_F16.of_fp8(), seed),
            compare::<4>(random, (&E5M2, &E4M3), TO_F16.of_fp8(), seed),
        ];
        within.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    // At least a sixth of all sums of each type are within bounds.
    assert!(within.iter().all(|count| *count > rounds * (ROWS * COLUMNS) as u32 / 6), "{within:?}");
}

#[test]
fn sums_at_the_edge_of_what_vectors_hold() {
    // So many products of the same two numbers.
    let same = |count: usize, x: u32, y: u32, start: f32, rule: Rule| {
        let a = [from_fn(|word| if 2 * word < count { x | x << 16 } else { 0 }); ROWS];
        let b = [[y | y << 16; COLUMNS]; WORDS];
        let (rows, columns) = (Rows::<2>::new(&a, &F16, -14), Columns::<2>::new(&b, &F16, -14));
        let results = add(&rows, &columns, &[[start; COLUMNS]; ROWS], 0..2, rule);
        assert_eq!(results, [[add_one((&rows, 0), (&columns, 0), start, &(0..2), rule); COLUMNS]; ROWS]);
        results[0][0]
    };
    // The products alone are 2^31 - 2^21 + 2^9 units of 2^-25.
    for rest in [-129, -128, -127, -64, -1, 0, 1, 64, 1 << 20] {
        let start = ((1 << 21) - (1 << 9) + rest) as f32 * 2f32.powi(-25);
        same(16, 0x3fff, 0x3fff, start, TO_F32);
        same(16, 0x3fff, 0xbfff, -start, TO_F32);
        same(16, 0x3fff, 0xbfff, start, TO_F32);
    }
    // 1 + 2^-11 lies in the middle of two numbers of f16; a product of 2^-25 counts, one of 2^-26 does not.
    let middle = 1.0 + 2f32.powi(-11);
    assert_eq!(same(0, 0, 0, middle, TO_F16), 0x3c00);
    assert_eq!(same(2, 0x0c00, 0x0800, middle, TO_F16), 0x3c01);
    assert_eq!(same(16, 0x0800, 0x0800, middle, TO_F16), 0x3c00);
}

#[test]
fn sums_of_bytes() {
    let mut random = Random::new(5);
    for (a_signed, b_signed) in [(true, true), (true, false), (false, true), (false, false)] {
        let a: [[u32; WORDS]; ROWS] = from_fn(|_| from_fn(|_| random.bits() as u32 | 0x8000_0080));
        let b: [[u32; COLUMNS]; WORDS] = from_fn(|_| from_fn(|_| random.bits() as u32));
        let byte = |word: u32, j: usize, signed: bool| {
            let byte = word.to_le_bytes()[j];
            if signed { i32::from(byte as i8) } else { i32::from(byte) }
        };
        let sums = whole_products(&a, &b, (a_signed, b_signed));
        for (row, column) in (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column))) {
            let places = (0..WORDS).flat_map(|word| (0..4).map(move |j| (word, j)));
            let sum: i32 = places.map(|(w, j)| byte(a[row][w], j, a_signed) * byte(b[w][column], j, b_signed)).sum();
            assert_eq!(sums[row][column], sum);
        }
    }
}
