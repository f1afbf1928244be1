//! Exact sums of products of f64: the sign of `a*b + c*d + …`, without rounding.
//!
//! A fixed-point number wide enough for every product of two doubles, in 64-bit limbs. Slow and simple; only for f64
//! operations with directed rounding.

/// Bit 0 of the accumulator is 2 to this power (the product of two smallest subnormals, rounded down).
const LOWEST: i32 = -2176;
const LIMBS: usize = 70;

/// The sign (-1, 0, 1) of the exact sum of products of finite numbers.
pub fn residual_sign(terms: &[(f64, f64)]) -> i32 {
    let mut sum = [0u64; LIMBS];
    for (a, b) in terms {
        let (ma, ea) = parts(*a);
        let (mb, eb) = parts(*b);
        let product = u128::from(ma) * u128::from(mb);
        let negative = a.is_sign_negative() != b.is_sign_negative();
        add_shifted(&mut sum, product, (ea + eb - LOWEST) as u32, negative);
    }
    if sum.iter().all(|limb| *limb == 0) {
        0
    } else if sum[LIMBS - 1] >> 63 == 1 {
        -1
    } else {
        1
    }
}

/// Magnitude as `mantissa * 2^exponent`.
fn parts(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let mantissa = bits & ((1 << 52) - 1);
    if exponent == 0 { (mantissa, -1074) } else { (mantissa | 1 << 52, exponent - 1075) }
}

/// Adds or subtracts `value << shift` in two's complement.
fn add_shifted(sum: &mut [u64; LIMBS], value: u128, shift: u32, negative: bool) {
    let (limb, bit) = ((shift / 64) as usize, shift % 64);
    let low = value << bit;
    let high = if bit == 0 { 0 } else { (value >> (128 - bit)) as u64 };
    let words = [low as u64, (low >> 64) as u64, high];
    let mut carry = false;
    for (i, slot) in sum[limb..].iter_mut().enumerate() {
        let word = words.get(i).copied().unwrap_or(0);
        let (first, c1) = if negative { slot.overflowing_sub(word) } else { slot.overflowing_add(word) };
        let (second, c2) =
            if negative { first.overflowing_sub(carry.into()) } else { first.overflowing_add(carry.into()) };
        *slot = second;
        carry = c1 || c2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_exact() {
        assert_eq!(residual_sign(&[(1.0, 1.0), (-1.0, 1.0)]), 0);
        assert_eq!(residual_sign(&[(1e300, 1e300), (-1e300, 1e300), (5e-324, 5e-324)]), 1);
        assert_eq!(residual_sign(&[(f64::MAX, f64::MAX), (-5e-324, 5e-324)]), 1);
        assert_eq!(residual_sign(&[(5e-324, 5e-324), (-f64::MAX, f64::MAX)]), -1);
        assert_eq!(residual_sign(&[(0.1, 3.0), (-0.3, 1.0)]), 1);
    }
}
