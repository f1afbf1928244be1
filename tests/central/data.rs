//! Contents of tensors: the text after the type in `// arg x = f32 bits 64`.

use rtc_ir::{Literal, Rounding, Scalar, decode_float, encode_float};

/// SplitMix64: small, seeded, the same everywhere.
pub struct Random(u64);

impl Random {
    /// Starts at a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// One of the items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// One of the items, rather a late one.
    pub fn late<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let count = items.len();
        let back = self.below(count).min(self.below(count));
        &items[count - 1 - back]
    }

    /// One of the items that are wanted, if there are any.
    pub fn pick_where<'a, T>(&mut self, items: &'a [T], wanted: impl Fn(&T) -> bool) -> Option<&'a T> {
        let found: Vec<&T> = items.iter().filter(|item| wanted(item)).collect();
        if found.is_empty() { None } else { Some(*self.pick::<&T>(&found)) }
    }

    /// Dimensions in another order, each some places further, and their sizes in it.
    pub fn rotated(&mut self, shape: &[u32]) -> (Vec<usize>, Vec<u32>) {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        let by = 1 + self.below(order.len() - 1);
        order.rotate_left(by);
        let sizes = order.iter().map(|i| shape[*i]).collect();
        (order, sizes)
    }
}

/// The bytes of a tensor.
///
/// | form | content |
/// | --- | --- |
/// | `[1, 2.5, nan, 0x7fc0]` | these; hexadecimal digits are the bits of an element |
/// | `[1, 2] * 8` | these, again and again |
/// | `iota 64` | 0, 1, 2, ... |
/// | `fill 64 1.5` | one number |
/// | `range 64 -4 4 [seed]` | whole numbers from the first to the second |
/// | `bits 64 [seed]` | random bits; every float is as likely as its encoding |
/// | `near 64 [seed]` | floats of magnitude 2^-8 to 2^8 |
/// | `special 64 [seed [by]]` | zeros, infinities, NaN, denormals, extremes, some ordinary numbers; rotated by so many |
pub fn content(scalar: Scalar, text: &str, name: &str) -> Result<Vec<u8>, String> {
    let mut words = text.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let bits: Vec<u64> = if text.starts_with('[') {
        let (list, times) = match text.trim().rsplit_once("] * ") {
            Some((list, times)) => (list.strip_prefix('['), number(Some(times))?),
            None => (text.trim().strip_prefix('[').and_then(|t| t.strip_suffix(']')), 1),
        };
        let words = list.ok_or("the list has no end")?.split(',').filter(|word| !word.trim().is_empty());
        words.map(|word| element(word, scalar)).collect::<Result<Vec<u64>, String>>()?.repeat(times)
    } else {
        let count: usize = number(words.next())?;
        match kind {
            "iota" => (0..count as i64).map(|i| Literal::Int(i).bits(scalar)).collect(),
            "fill" => vec![literal(words.next().unwrap_or("0"))?.bits(scalar); count],
            "range" => {
                let (low, high): (i64, i64) = (number(words.next())?, number(words.next())?);
                let mut random = seeded(words.next(), name)?;
                let span = (high - low + 1) as u64;
                (0..count).map(|_| Literal::Int(low + (random.next() % span) as i64).bits(scalar)).collect()
            }
            "bits" => {
                let mut random = seeded(words.next(), name)?;
                (0..count).map(|_| random.next() & low_bits(scalar)).collect()
            }
            "near" => {
                let mut random = seeded(words.next(), name)?;
                (0..count).map(|_| near(&mut random, scalar)).collect()
            }
            "special" => {
                let mut random = seeded(words.next(), name)?;
                let special = specials(scalar);
                let one = |random: &mut Random| match random.below(8) {
                    0 => near(random, scalar),
                    1 => random.next() & low_bits(scalar),
                    _ => *random.pick(&special),
                };
                // All of them, each at least once where there is room.
                let mut all: Vec<u64> =
                    (0..count).map(|i| special.get(i).copied().unwrap_or_else(|| one(&mut random))).collect();
                let by: usize = words.next().map_or(Ok(0), |by| number(Some(by)))?;
                all.rotate_left(by % count.max(1));
                all
            }
            other => return Err(format!("there is no content `{other}`")),
        }
    };
    let size = scalar.bytes() as usize;
    Ok(bits.iter().flat_map(|b| b.to_le_bytes()[..size].to_vec()).collect())
}

/// A number in a header.
pub fn literal(word: &str) -> Result<Literal, String> {
    let word = word.trim();
    match word.parse::<i64>().or_else(|e| word.parse::<u64>().map(|u| u as i64).map_err(|_| e)) {
        Ok(i) => Ok(Literal::Int(i)),
        Err(_) => word.parse().map(Literal::float).map_err(|_| format!("`{word}` is no number")),
    }
}

/// The bits of an element in a list.
fn element(word: &str, scalar: Scalar) -> Result<u64, String> {
    match word.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).map_err(|_| format!("`{word}` is no number")),
        None => literal(word).map(|l| l.bits(scalar)),
    }
}

/// The elements of a tensor as bits.
pub fn elements(scalar: Scalar, bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(scalar.bytes() as usize).map(|c| c.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
}

fn number<T: std::str::FromStr>(word: Option<&str>) -> Result<T, String> {
    word.and_then(|w| w.parse().ok()).ok_or_else(|| format!("{word:?} is no number"))
}

/// From a seed, or from the tensor's name.
fn seeded(word: Option<&str>, name: &str) -> Result<Random, String> {
    match word {
        Some(_) => Ok(Random::new(number(word)?)),
        None => Ok(Random::new(name.bytes().fold(7, |h: u64, b| h.wrapping_mul(0x100_0000_01b3) ^ u64::from(b)))),
    }
}

fn low_bits(scalar: Scalar) -> u64 {
    u64::MAX >> (64 - scalar.bits())
}

fn near(random: &mut Random, scalar: Scalar) -> u64 {
    if scalar.is_int() {
        return random.next() & low_bits(scalar);
    }
    let mantissa = 1.0 + (random.next() >> 12) as f64 / (1u64 << 52) as f64;
    let x = mantissa * 2f64.powi(random.below(16) as i32 - 8);
    encode_float(if random.next() & 1 == 0 { x } else { -x }, scalar, Rounding::NearestEven)
}

fn specials(scalar: Scalar) -> Vec<u64> {
    let width = scalar.bits();
    let all = low_bits(scalar);
    let top = 1u64 << (width - 1);
    if scalar.is_int() {
        let mut out = vec![0, 1, all, top, top.wrapping_sub(1) & all, top | 1, 2, 3, all - 1, 7, 0x55 & all];
        out.dedup();
        return out.into_iter().map(|b| b & all).collect();
    }
    // The exponent's highest bits and the last mantissa bits reach all boundaries of the format.
    let one = encode_float(1.0, scalar, Rounding::NearestEven);
    let infinity = match scalar {
        Scalar::F8E4 | Scalar::F8E4B15 => 0x7f,
        _ => encode_float(1.0, scalar, Rounding::NearestEven) | (top - 1) & !(top >> 1) | top >> 1,
    };
    let mantissa = match scalar {
        Scalar::F8E5 => 2,
        Scalar::F8E4 | Scalar::F8E4B15 => 3,
        Scalar::F16 => 10,
        Scalar::BF16 => 7,
        Scalar::F32 => 23,
        _ => 52,
    };
    let infinity = infinity & !((1u64 << mantissa) - 1);
    let least_normal = 1u64 << mantissa;
    let mut out =
        vec![0, 1, least_normal - 1, least_normal, one, one + 1, one - 1, infinity - 1, infinity, infinity + 1];
    for x in [0.5, 1.5, 2.5, 3.5, -0.75, 2.0, 3.0, 10.0, 0.1] {
        out.push(encode_float(x, scalar, Rounding::NearestEven) & (top - 1));
    }
    let negative: Vec<u64> = out.iter().map(|b| b | top).collect();
    out.extend(negative);
    if scalar == Scalar::F8E4B15 {
        // Its highest encodings are numbers that no cast yields.
        out.retain(|b| decode_float(*b, scalar).abs() <= 1.75);
    }
    out
}
