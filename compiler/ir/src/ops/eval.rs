//! Element-wise semantics on raw bits. Integers and floats narrower than 64 bits are in the low bits, the rest is zero.

use rtc_floats::{Format, Round};

use crate::{Elem, EvalContext, Literal, OpKind, Predicate, Rounding, Scalar};

/// The format of the numbers of a type, where they are narrower than `f32`.
fn format(scalar: Scalar) -> &'static Format {
    match scalar {
        Scalar::F8E5 => &rtc_floats::E5M2,
        Scalar::F8E4 => &rtc_floats::E4M3,
        Scalar::BF16 => &rtc_floats::BF16,
        _ => &rtc_floats::F16,
    }
}

fn round(rounding: Rounding) -> Round {
    match rounding {
        Rounding::NearestEven => Round::Nearest,
        Rounding::TowardZero => Round::Zero,
    }
}

/// The number that `bits` represent in a float format.
pub fn decode(bits: u64, scalar: Scalar) -> f64 {
    match scalar {
        Scalar::F64 => f64::from_bits(bits),
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        // An e4b15 number is its seven low bits put under the exponent of half, one binade of bias apart.
        Scalar::F8E4B15 => decode((bits & 0x80) << 8 | (bits & 0x7f) << 7, Scalar::F16),
        Scalar::F16 | Scalar::BF16 | Scalar::F8E5 | Scalar::F8E4 => match format(scalar).decode(bits as u32) {
            // All NaNs are one.
            x if x.is_nan() => f64::NAN,
            x => x,
        },
        Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => bits as f64,
    }
}

/// The bits of `x` in a float format, rounded once.
pub fn encode(x: f64, scalar: Scalar, rounding: Rounding) -> u64 {
    match (scalar, rounding) {
        (Scalar::F64, _) => x.to_bits(),
        (Scalar::F32, _) if x.is_nan() => 0x7fff_ffff,
        (Scalar::F32, Rounding::NearestEven) => u64::from((x as f32).to_bits()),
        (Scalar::F32, Rounding::TowardZero) => {
            let near = x as f32;
            let low = if f64::from(near).abs() > x.abs() { f32::from_bits(near.to_bits() - 1) } else { near };
            u64::from(low.to_bits())
        }
        (Scalar::F16 | Scalar::BF16, _) => format(scalar).narrow(x, round(rounding)).into(),
        (Scalar::F8E5 | Scalar::F8E4, _) => format(scalar).narrow_finite(x, round(rounding)).into(),
        (Scalar::F8E4B15, _) => {
            // Truncated to half first, magnitude clamped to 1.75, then rounded half up at bit 7.
            let half = encode(x, Scalar::F16, Rounding::TowardZero);
            let magnitude = (half & 0x7fff).min(0x3f00);
            let rounded = ((magnitude << 1) + 0x80) >> 8;
            (half >> 8 & 0x80) | rounded.min(0x7f)
        }
        (Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64, _) => x as i64 as u64,
    }
}

/// The bits of a whole number in a float format, rounded once.
fn encode_int(x: i128, scalar: Scalar) -> u64 {
    let magnitude = x.unsigned_abs();
    // Bits beyond f64 only decide ties of narrower formats: the last bit of the result is a sticky bit.
    let beyond = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let rest = magnitude & ((1 << beyond) - 1);
    let wide = match scalar {
        Scalar::F64 => x as f64,
        _ => ((magnitude >> beyond | u128::from(rest != 0)) << beyond) as f64 * if x < 0 { -1.0 } else { 1.0 },
    };
    encode(wide, scalar, Rounding::NearestEven)
}

/// The low bits of `bits` that belong to `elem`.
pub fn mask(bits: u64, elem: Elem) -> u64 {
    match elem.bits() {
        64 => bits,
        n => bits & ((1 << n) - 1),
    }
}

/// `bits` as a signed integer of the width of `elem`.
pub fn sign_extend(bits: u64, elem: Elem) -> i64 {
    let unused = 64 - elem.bits();
    ((bits << unused) as i64) >> unused
}

pub(crate) fn literal_bits(literal: Literal, scalar: Scalar) -> u64 {
    let x = match literal {
        Literal::Int(i) if scalar.is_int() => return mask(i as u64, scalar.into()),
        Literal::Int(i) => i as f64,
        Literal::Float(bits) => f64::from_bits(bits),
    };
    match scalar {
        Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => mask(x as i64 as u64, scalar.into()),
        // A literal is not cast: it does not saturate, and e4b15 is reached through its decoding only.
        _ => encode(x, scalar, Rounding::NearestEven),
    }
}

pub(super) fn div_signed(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_div(b) }
}

pub(super) fn rem_signed(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

pub(crate) fn min_num(a: f64, b: f64) -> f64 {
    if a.is_nan() || b < a || (a == b && b.is_sign_negative()) { b } else { a }
}

pub(crate) fn max_num(a: f64, b: f64) -> f64 {
    if a.is_nan() || b > a || (a == b && b.is_sign_positive()) { b } else { a }
}

pub(super) fn min_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { min_num(a, b) }
}

pub(super) fn max_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { max_num(a, b) }
}

pub(super) fn compare_ints(c: &EvalContext<'_>, v: &[u64]) -> u64 {
    let OpKind::CmpI { predicate } = c.kind else { return 0 };
    let (a, b) = (c.signed(0, v[0]), c.signed(0, v[1]));
    u64::from(match predicate {
        Predicate::Eq => v[0] == v[1],
        Predicate::Ne => v[0] != v[1],
        Predicate::Lt => a < b,
        Predicate::Le => a <= b,
        Predicate::Gt => a > b,
        Predicate::Ge => a >= b,
        Predicate::Ult => v[0] < v[1],
        Predicate::Ule => v[0] <= v[1],
        Predicate::Ugt => v[0] > v[1],
        Predicate::Uge => v[0] >= v[1],
    })
}

/// Two values as the halves of one.
pub(super) fn pack_pair(c: &EvalContext<'_>, v: &[u64]) -> u64 {
    v[0] | v[1] << (c.result.bits() / 2)
}

/// One half of a value.
pub(super) fn unpack_pair(c: &EvalContext<'_>, v: &[u64]) -> u64 {
    let high = matches!(c.kind, OpKind::UnpackPair { high: true, .. });
    let bits = c.result.bits();
    (v[0] >> if high { bits } else { 0 }) & ((1 << bits) - 1)
}

pub(super) fn compare_floats(c: &EvalContext<'_>, v: &[u64]) -> u64 {
    let OpKind::CmpF { predicate } = c.kind else { return 0 };
    let (a, b) = (c.float(0, v[0]), c.float(1, v[1]));
    u64::from(match predicate {
        Predicate::Eq => a == b,
        Predicate::Ne => a != b,
        Predicate::Lt | Predicate::Ult => a < b,
        Predicate::Le | Predicate::Ule => a <= b,
        Predicate::Gt | Predicate::Ugt => a > b,
        Predicate::Ge | Predicate::Uge => a >= b,
    })
}

pub(super) fn cast_float(c: &EvalContext<'_>, v: &[u64]) -> u64 {
    let OpKind::CastF { rounding, .. } = c.kind else { return 0 };
    encode(c.float(0, v[0]), c.result_scalar(), *rounding)
}

/// The bits of an `f32`, a denormal replaced by a zero of its sign.
fn flush(bits: u64) -> u64 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

impl EvalContext<'_> {
    pub(super) fn result_scalar(&self) -> Scalar {
        self.result.num().unwrap_or(Scalar::I64)
    }

    pub(super) fn float(&self, operand: usize, bits: u64) -> f64 {
        decode(bits, self.operands[operand].num().unwrap_or(Scalar::I64))
    }

    pub(super) fn signed(&self, operand: usize, bits: u64) -> i64 {
        sign_extend(bits, self.operands[operand])
    }

    pub(super) fn int(&self, bits: u64) -> u64 {
        mask(bits, self.result)
    }

    pub(super) fn signed1(&self, v: &[u64], f: fn(i64) -> i64) -> u64 {
        self.int(f(self.signed(0, v[0])) as u64)
    }

    pub(super) fn signed2(&self, v: &[u64], f: fn(i64, i64) -> i64) -> u64 {
        self.int(f(self.signed(0, v[0]), self.signed(1, v[1])) as u64)
    }

    /// In `f64`, then rounded to the result: the same as rounding once for one operation on narrower formats.
    pub(super) fn float1(&self, v: &[u64], f: fn(f64) -> f64) -> u64 {
        encode(f(self.float(0, v[0])), self.result_scalar(), Rounding::NearestEven)
    }

    pub(super) fn float2(&self, v: &[u64], f: fn(f64, f64) -> f64) -> u64 {
        encode(f(self.float(0, v[0]), self.float(1, v[1])), self.result_scalar(), Rounding::NearestEven)
    }

    pub(super) fn fused_multiply_add(&self, v: &[u64]) -> u64 {
        let scalar = self.result_scalar();
        if scalar == Scalar::F32 {
            let [a, b, c] = [v[0], v[1], v[2]].map(|x| f32::from_bits(x as u32));
            let x = a.mul_add(b, c);
            return if x.is_nan() { 0x7fff_ffff } else { u64::from(x.to_bits()) };
        }
        let [a, b, c] = [0, 1, 2].map(|i| self.float(i, v[i]));
        if scalar == Scalar::F64 {
            return a.mul_add(b, c).to_bits();
        }
        // The product is exact. The sum is rounded to odd, so that rounding it again is the same as rounding once.
        let product = a * b;
        let sum = product + c;
        let shadow = sum - product;
        let error = (product - (sum - shadow)) + (c - shadow);
        let odd = match sum.to_bits() {
            bits if !sum.is_finite() || error == 0.0 || bits & 1 == 1 => bits,
            bits if (error > 0.0) == (sum > 0.0) => bits + 1,
            bits => bits - 1,
        };
        encode(f64::from_bits(odd), scalar, Rounding::NearestEven)
    }

    /// An approximate function whose instruction takes and gives zeros for denormals in `f32`.
    pub(super) fn flushed(&self, v: &[u64], f: fn(f64) -> f64) -> u64 {
        if self.result_scalar() != Scalar::F32 {
            return self.float1(v, f);
        }
        flush(self.float1(&[flush(v[0])], f))
    }

    /// An approximate instruction, which flushes denormals where it says so.
    pub(super) fn approximate(&self, v: &[u64], f: fn(f64) -> f64) -> u64 {
        match self.kind {
            OpKind::Exp2 { ftz: true } | OpKind::Sqrt { ftz: true } | OpKind::Rsqrt { ftz: true } => self.flushed(v, f),
            _ => self.float1(v, f),
        }
    }

    fn sign_bit(&self) -> u64 {
        1 << (self.result.bits() - 1)
    }

    pub(super) fn flip_sign(&self, v: &[u64]) -> u64 {
        v[0] ^ self.sign_bit()
    }

    pub(super) fn clear_sign(&self, v: &[u64]) -> u64 {
        v[0] & !self.sign_bit()
    }

    pub(super) fn copy_sign(&self, v: &[u64]) -> u64 {
        (v[0] & !self.sign_bit()) | (v[1] & self.sign_bit())
    }

    pub(super) fn shift_left(&self, v: &[u64]) -> u64 {
        if v[1] >= u64::from(self.result.bits()) { 0 } else { self.int(v[0] << v[1]) }
    }

    pub(super) fn shift_right_signed(&self, v: &[u64]) -> u64 {
        let count = v[1].min(u64::from(self.result.bits()) - 1);
        self.int((self.signed(0, v[0]) >> count) as u64)
    }

    pub(super) fn shift_right_unsigned(&self, v: &[u64]) -> u64 {
        if v[1] >= u64::from(self.result.bits()) { 0 } else { v[0] >> v[1] }
    }

    pub(super) fn mul_high_unsigned(&self, v: &[u64]) -> u64 {
        self.int(((u128::from(v[0]) * u128::from(v[1])) >> self.result.bits()) as u64)
    }

    pub(super) fn mul_high_signed(&self, v: &[u64]) -> u64 {
        self.int(((i128::from(self.signed(0, v[0])) * i128::from(self.signed(1, v[1]))) >> self.result.bits()) as u64)
    }

    pub(super) fn count_leading_zeros(&self, v: &[u64]) -> u64 {
        u64::from(v[0].leading_zeros()) - u64::from(64 - self.result.bits())
    }

    pub(super) fn reverse_bits(&self, v: &[u64]) -> u64 {
        v[0].reverse_bits() >> (64 - self.result.bits())
    }

    pub(super) fn float_to_signed(&self, v: &[u64]) -> u64 {
        let x = self.float(0, v[0]);
        // Saturates where a machine convert does; narrower results wrap a 16- or 32-bit one.
        let wide = match self.result.bits() {
            64 => x as i64,
            32 => i64::from(x as i32),
            _ => i64::from(x as i16),
        };
        self.int(wide as u64)
    }

    pub(super) fn float_to_unsigned(&self, v: &[u64]) -> u64 {
        let x = self.float(0, v[0]);
        let wide = match self.result.bits() {
            64 => x as u64,
            32 => u64::from(x as u32),
            _ => u64::from(x as u16),
        };
        self.int(wide)
    }

    pub(super) fn signed_to_float(&self, v: &[u64]) -> u64 {
        let x = self.signed(0, v[0]);
        match self.result_scalar() {
            Scalar::F32 => u64::from((x as f32).to_bits()),
            scalar => encode_int(x.into(), scalar),
        }
    }

    pub(super) fn unsigned_to_float(&self, v: &[u64]) -> u64 {
        match self.result_scalar() {
            Scalar::F32 => u64::from((v[0] as f32).to_bits()),
            scalar => encode_int(v[0].into(), scalar),
        }
    }

    pub(super) fn add_pointer(&self, v: &[u64]) -> u64 {
        let size = self.operands[0].pointee().map_or(1, Scalar::bytes);
        v[0].wrapping_add((self.signed(1, v[1])).wrapping_mul(i64::from(size)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_and_byte_float_reads_back() {
        for scalar in [Scalar::F16, Scalar::BF16, Scalar::F8E5, Scalar::F8E4] {
            for bits in 0..1u64 << scalar.bits() {
                let x = decode(bits, scalar);
                if x.is_nan() || (x.is_infinite() && scalar == Scalar::F8E5) {
                    continue;
                }
                assert_eq!(encode(x, scalar, Rounding::NearestEven), bits, "{scalar} {bits:#x} {x}");
            }
        }
    }

    #[test]
    fn narrowing_agrees_with_the_half_crate() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let x = f32::from_bits((state >> 32) as u32);
            if x.is_nan() {
                continue;
            }
            assert_eq!(
                encode(x.into(), Scalar::F16, Rounding::NearestEven),
                u64::from(half::f16::from_f32(x).to_bits()),
                "{x}"
            );
            assert_eq!(
                encode(x.into(), Scalar::BF16, Rounding::NearestEven),
                u64::from(half::bf16::from_f32(x).to_bits()),
                "{x}"
            );
        }
    }

    #[test]
    fn narrowing_rounds_once_from_double() {
        let one_and_half_ulp = 1.0 + 2f64.powi(-11);
        let even = encode(one_and_half_ulp, Scalar::F16, Rounding::NearestEven);
        assert_eq!(even, 0x3c00);
        // A sticky bit that an f32 does not hold.
        assert_eq!(encode(one_and_half_ulp + 2f64.powi(-40), Scalar::F16, Rounding::NearestEven), 0x3c01);
        assert_eq!(encode(one_and_half_ulp + 2f64.powi(-40), Scalar::F16, Rounding::TowardZero), 0x3c00);
        let least = 2f64.powi(-24);
        assert_eq!(encode(least, Scalar::F16, Rounding::NearestEven), 1);
        assert_eq!(encode(least / 2.0, Scalar::F16, Rounding::NearestEven), 0);
        assert_eq!(encode(least * 0.500001, Scalar::F16, Rounding::NearestEven), 1);
        assert_eq!(encode(-5e-324, Scalar::BF16, Rounding::NearestEven), 0x8000);
        assert_eq!(encode(65520.0, Scalar::F16, Rounding::NearestEven), 0x7c00);
        assert_eq!(encode(65519.9, Scalar::F16, Rounding::NearestEven), 0x7bff);
        assert_eq!(encode(1e300, Scalar::F16, Rounding::TowardZero), 0x7bff);
    }

    #[test]
    fn byte_floats_saturate() {
        assert_eq!(encode(1e9, Scalar::F8E5, Rounding::NearestEven), 0x7b);
        assert_eq!(encode(f64::NEG_INFINITY, Scalar::F8E4, Rounding::NearestEven), 0xfe);
        assert_eq!(decode(0x7e, Scalar::F8E4), 448.0);
    }
}
