//! `cvt`: between integers and floating-point values.

use super::format::Round;

/// An integer as an f64 rounded to odd, so that narrowing it rounds once.
pub fn integer_odd(value: i128) -> f64 {
    let magnitude = value.unsigned_abs();
    let shift = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let kept = magnitude >> shift;
    let lost = magnitude & ((1u128 << shift) - 1) != 0;
    let result = (kept | u128::from(lost)) as f64 * (shift as f64).exp2();
    if value < 0 { -result } else { result }
}

/// An integer as an f64 in a rounding mode.
pub fn integer_to_f64(value: i128, mode: Round) -> f64 {
    let magnitude = value.unsigned_abs();
    let shift = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let (kept, rest) = (magnitude >> shift, magnitude & ((1u128 << shift) - 1));
    let up = match mode {
        Round::Nearest | Round::Away => return value as f64,
        Round::Zero => false,
        Round::Down => value < 0 && rest != 0,
        Round::Up => value > 0 && rest != 0,
    };
    let result = (kept + u128::from(up)) as f64 * (shift as f64).exp2();
    if value < 0 { -result } else { result }
}

/// `x` rounded to an integral value, keeping the sign of zero.
pub fn integral(x: f64, mode: Round) -> f64 {
    let result = match mode {
        Round::Nearest => x.round_ties_even(),
        Round::Zero => x.trunc(),
        Round::Down => x.floor(),
        Round::Up => x.ceil(),
        Round::Away => x.round(),
    };
    result.copysign(x)
}

/// A float rounded and clamped to an integer of `bits` bits; `nan` is what NaN gives.
pub fn to_integer(x: f64, mode: Round, bits: u32, signed: bool, nan: u64) -> u64 {
    if x.is_nan() {
        return nan;
    }
    let x = integral(x, mode);
    let value = x as i128;
    let (low, high) = range(bits, signed);
    value.clamp(low, high) as u64 & mask(bits)
}

/// Smallest and largest integer of a type.
pub fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// The low `bits` bits.
pub fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The value of the low `bits` bits as an integer type.
pub fn integer_value(raw: u64, bits: u32, signed: bool) -> i128 {
    if signed { i128::from((raw << (64 - bits)) as i64 >> (64 - bits)) } else { i128::from(raw & mask(bits)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_round_once() {
        let v = (1i128 << 53) + 1;
        assert_eq!(integer_to_f64(v, Round::Zero), 9007199254740992.0);
        assert_eq!(integer_to_f64(v, Round::Up), 9007199254740994.0);
        assert_eq!(integer_to_f64(-v, Round::Down), -9007199254740994.0);
        assert_eq!(integer_to_f64(u64::MAX.into(), Round::Nearest), 18446744073709551616.0);
        // 2^24 + 1 + 2^-40 scaled: a naive double rounding to f32 goes the wrong way.
        let v = (1i128 << 62) + (1 << 38) + 1;
        assert_eq!(integer_odd(v) as f32, v as f32);
        assert_eq!(integer_odd(i128::from(i64::MIN)), -9223372036854775808.0);
    }

    #[test]
    fn floats_saturate() {
        assert_eq!(to_integer(1e10, Round::Zero, 32, true, 0), i32::MAX as u32 as u64);
        assert_eq!(to_integer(-1.0, Round::Zero, 32, false, 0), 0);
        assert_eq!(to_integer(f64::INFINITY, Round::Zero, 64, false, 0), u64::MAX);
        assert_eq!(to_integer(2.5, Round::Nearest, 16, true, 0), 2);
        assert_eq!(to_integer(-2.5, Round::Down, 16, true, 0), 0xfffd);
        assert_eq!(to_integer(f64::NAN, Round::Zero, 64, true, 1 << 63), 1 << 63);
    }
}
