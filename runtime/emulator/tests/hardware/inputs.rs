//! Operands: for each class three columns of numbers. The first pairs of a column are all pairs of edge cases.

use half::{bf16, f16};

/// Name, kind of register (h 16, r 32, d 64 bits, p predicate).
pub const CLASSES: &[(&str, char)] = &[
    ("f32", 'r'),
    ("f64", 'd'),
    ("f16", 'h'),
    ("i16", 'h'),
    ("i32", 'r'),
    ("i64", 'd'),
    ("bf16", 'h'),
    ("f16x2", 'r'),
    ("bf16x2", 'r'),
    ("s8x4", 'r'),
    ("small", 'r'),
    ("shift", 'r'),
    ("ints", 'r'),
    ("halfint", 'r'),
    ("bfint", 'r'),
    ("tfint", 'r'),
    ("dint", 'd'),
    ("f8", 'h'),
    ("pred", 'p'),
    // Finite numbers of a few dozen binades, whose sums round.
    ("fwide", 'r'),
    ("hwide", 'r'),
    ("bwide", 'r'),
    ("dwide", 'd'),
    ("e4m3x4", 'r'),
    ("e5m2x4", 'r'),
    // From -2 pi to 2 pi; numbers whose products lie around the smallest normal one; and that itself.
    ("angle", 'r'),
    ("tiny", 'r'),
    ("tinier", 'r'),
];

/// The kind of a class.
pub fn kind_of(class: &str) -> char {
    CLASSES.iter().find(|c| c.0 == class).unwrap_or_else(|| panic!("class {class}")).1
}

/// The next number of a generator.
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn f32_bits(x: f64) -> u64 {
    u64::from((x as f32).to_bits())
}

/// Zeros, ones, infinities, NaNs with payloads, subnormals, ends of ranges, ties of conversions.
fn edges(class: &str) -> Vec<u64> {
    let signs = |values: &[u64], sign: u64| values.iter().flat_map(|v| [*v, *v | sign]).collect();
    match class {
        "f32" => signs(
            &[
                0,
                0x3f80_0000,
                0x7f80_0000,
                0x7fc0_0001,
                0x7f80_1234,
                1,
                0x007f_ffff,
                0x0080_0000,
                0x7f7f_ffff,
                0x3f00_0000,
                0x3fc0_0000,
                0x4b00_0001,
                0x4f00_0000,
                0x5f00_0000,
                0x4049_0fdb,
                0x3f7f_ffff,
                0x477f_e000,
                0x477f_f000,
                0x3300_0000,
                0x437f_8000,
                0x43e8_0000,
                0x3f80_8000,
                0x3f81_8000,
                0x3f80_1000,
                0x3f80_3000,
            ],
            1 << 31,
        ),
        "f64" => signs(
            &[
                0,
                1.0f64.to_bits(),
                0x7ff << 52,
                0x7ff8 << 48 | 5,
                0x7ff0 << 48 | 77,
                1,
                (1 << 52) - 1,
                1 << 52,
                f64::MAX.to_bits(),
                0.5f64.to_bits(),
                2.5f64.to_bits(),
                2147483648f64.to_bits(),
                0.1f64.to_bits(),
                9.223_372_036_854_776e18f64.to_bits(),
                1e300f64.to_bits(),
                1e-300f64.to_bits(),
                65519.99f64.to_bits(),
                3.402_823_669_209_385e38f64.to_bits(),
                1e-45f64.to_bits(),
                4.5f64.to_bits(),
            ],
            1 << 63,
        ),
        "f16" => signs(
            &[
                0, 0x3c00, 0x7c00, 0x7e01, 0x7c01, 1, 0x3ff, 0x400, 0x7bff, 0x3800, 0x3e00, 0x6400, 0x3c01, 0x1400,
                0x5bf8,
            ],
            0x8000,
        ),
        "bf16" => signs(
            &[0, 0x3f80, 0x7f80, 0x7fc1, 0x7f81, 1, 0x7f, 0x80, 0x7f7f, 0x3f00, 0x3fc0, 0x4b00, 0x3f81, 0x4f00, 0x5f00],
            0x8000,
        ),
        "i16" => vec![0, 1, 0xffff, 0x7fff, 0x8000, 0x8001, 2, 0x100, 0xff, 0x80, 0x7f, 0xff80],
        "i32" => vec![
            0,
            1,
            0xffff_ffff,
            0x7fff_ffff,
            0x8000_0000,
            0x8000_0001,
            2,
            0xffff,
            0x1_0000,
            0x8000,
            0xff,
            0x80,
            0xffff_8000,
            0xffff_ff7f,
            0x0100_0001,
            0x7fff_ff40,
        ],
        "i64" => vec![
            0,
            1,
            u64::MAX,
            i64::MAX as u64,
            1 << 63,
            1 << 63 | 1,
            1 << 32,
            0xffff_ffff,
            0x7fff_ffff,
            0x8000_0000,
            2,
            (1 << 53) + 1,
            (1 << 62) + (1 << 38) + 1,
            0xffff_ffff_8000_0000,
            0x7fff_ffff_ffff_fc00,
        ],
        "shift" => vec![0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 257, 0xffff_ffff],
        _ => Vec::new(),
    }
}

/// A number of a class that is no edge case.
fn other(class: &str, state: &mut u64) -> u64 {
    let bits = next(state);
    // Uniform in -1..1.
    let unit = (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    let more = next(state);
    let scaled = |low: i32, high: i32| unit * 2f64.powi(low + (more % (high - low) as u64) as i32);
    let whole = |most: i64| ((bits % (2 * most as u64 + 1)) as i64 - most) as f64;
    let half = |x: f64| u64::from(f16::from_f64(x).to_bits());
    let brain = |x: f64| u64::from(bf16::from_f64(x).to_bits());
    let mut two = |low: i32, high: i32, encode: &dyn Fn(f64) -> u64| {
        let again = next(state);
        let other = (again >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        let second = other * 2f64.powi(low + ((again & 0x7ff) % (high - low) as u64) as i32);
        encode(scaled(low, high)) | encode(second) << 16
    };
    match class {
        "f32" if more % 10 < 4 => bits & 0xffff_ffff,
        "f32" => f32_bits(scaled(-20, 70)),
        "f64" if more % 10 < 4 => bits,
        "f64" => scaled(-40, 70).to_bits(),
        "f16" | "bf16" | "i16" | "f8" => bits & 0xffff,
        "small" => (bits % 9).wrapping_sub(4) & 0xffff_ffff,
        "shift" => bits % 70,
        "ints" => f32_bits(whole(64)),
        "tfint" => f32_bits(whole(32)),
        "dint" => whole(32).to_bits(),
        "halfint" => half(whole(8)) | half((more % 17) as f64 - 8.0) << 16,
        "bfint" => brain(whole(8)) | brain((more % 17) as f64 - 8.0) << 16,
        "pred" => bits & 1,
        "angle" => f32_bits(scaled(-20, 1) * std::f64::consts::TAU),
        // Mantissas near 1 and 2 among them, where rounding changes the binade.
        "tiny" | "tinier" => {
            let exponent = if class == "tiny" { 64 - more % 2 } else { 1 + more % 3 } as u32;
            let mantissa = match more >> 8 & 3 {
                0 => bits as u32 & 0xf,
                1 => !(bits as u32 & 0xf),
                _ => bits as u32,
            };
            u64::from((bits >> 63) as u32) << 31 | u64::from(exponent << 23 | mantissa & 0x7f_ffff)
        }
        "fwide" => f32_bits(scaled(-12, 13)),
        "dwide" => scaled(-30, 31).to_bits(),
        "hwide" => two(-6, 6, &half),
        "bwide" => two(-8, 9, &brain),
        // Bytes that are neither NaN nor infinite.
        "e4m3x4" => bytes(bits, |b| if b & 0x7f == 0x7f { b ^ 1 } else { b }),
        "e5m2x4" => bytes(bits, |b| if b & 0x7c == 0x7c { b ^ 4 } else { b }),
        "i64" => bits,
        _ => bits & 0xffff_ffff,
    }
}

fn bytes(bits: u64, each: fn(u8) -> u8) -> u64 {
    u64::from(u32::from_le_bytes((bits as u32).to_le_bytes().map(each)))
}

/// Column `which` of a class: `n` numbers.
pub fn column(class: &str, which: usize, n: usize) -> Vec<u64> {
    let seed = class.bytes().fold(which as u64, |sum, b| sum.wrapping_mul(131).wrapping_add(b.into()));
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
    if let Some(one) = class.strip_suffix("x2") {
        let (low, high) = (column(one, which, n), column(one, which, n));
        // The other half is another operand.
        return (0..n).map(|i| low[i] | high[(i * 7 + 13) % n] << 16).collect();
    }
    let edges = edges(class);
    let pairs = edges.len() * edges.len();
    let pick = |i: usize, state: &mut u64| {
        if kind_of(class) == 'h' && n == 1 << 16 && which == 0 {
            return i as u64;
        }
        let chance = next(state);
        match which {
            0 if i < pairs => edges[i % edges.len()],
            1 if i < pairs => edges[i / edges.len()],
            _ if !edges.is_empty() && chance % 10 < 4 => edges[(chance >> 32) as usize % edges.len()],
            _ => other(class, state),
        }
    };
    (0..n).map(|i| pick(i, &mut state)).collect()
}
