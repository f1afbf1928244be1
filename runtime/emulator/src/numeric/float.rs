//! Arithmetic of f32, f64 and the half formats, rounded once, with NaNs and signed zeros as PTX has them.
//!
//! f32 with `.rn` is the host's. Every other f32, f16 and bf16 operation is computed in f64, rounded to odd, and
//! narrowed (see `format`). f64 with a directed rounding takes the host's result and corrects it by the sign of the
//! exact residual (see `exact`).

use super::exact::residual_sign;
use super::format::{BF16, F16, F32, Format, Round, bf16_value, f16_value};

/// NaN that f32 operations return.
pub const NAN32: u32 = 0x7fff_ffff;

/// The same as an f64. Not a cast: which NaN Rust's cast yields is unspecified, and depends on inlining.
pub const NAN32_AS_F64: u64 = 0x7fff_ffff_e000_0000;

/// The bit that makes an f64 NaN quiet.
pub const QUIET64: u64 = 1 << 51;

/// The same bits, a NaN quiet.
pub fn quiet64(bits: u64) -> u64 {
    if f64::from_bits(bits).is_nan() { bits | QUIET64 } else { bits }
}

/// Flushes an f32 subnormal to a zero of its sign.
pub fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

/// The bits of an f32 result: any NaN becomes the canonical one.
pub fn bits32(x: f32) -> u32 {
    if x.is_nan() { NAN32 } else { x.to_bits() }
}

/// `.sat`: clamped to [0, 1], NaN to +0.
pub fn saturate(x: f32) -> f32 {
    if x > 0.0 { x.min(1.0) } else { 0.0 }
}

/// `a + b` rounded to odd.
pub fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    to_odd(sum, error)
}

/// Moves a nearest result to the odd neighbour on the side where the exact value lies.
fn to_odd(nearest: f64, error: f64) -> f64 {
    if error == 0.0 || !nearest.is_finite() || error.is_nan() || nearest.to_bits() & 1 == 1 {
        nearest
    } else if error > 0.0 {
        nearest.next_up()
    } else {
        nearest.next_down()
    }
}

/// The zero that an exact cancellation gives: -0 when rounding down.
fn zero_sum(sum: f64, a: f64, b: f64, mode: Round) -> f64 {
    let opposite = a.is_sign_negative() != b.is_sign_negative();
    if sum == 0.0 && opposite && mode == Round::Down { -0.0 } else { sum }
}

/// `a / b` rounded to odd, exact operands of at most 24 bits.
fn div_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || quotient == 0.0 || b.is_infinite() {
        return quotient;
    }
    let rest = (-quotient).mul_add(b, a);
    to_odd(quotient, if b > 0.0 { rest } else { -rest })
}

/// The square root rounded to odd, exact operand of at most 24 bits.
fn sqrt_odd(a: f64) -> f64 {
    let root = a.sqrt();
    if !root.is_finite() || root == 0.0 {
        return root;
    }
    to_odd(root, (-root).mul_add(root, a))
}

/// An operation of up to three operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a * b + c
    Fma,
    /// a / b
    Div,
    /// Square root of a
    Sqrt,
}

/// An operation on exact narrow values, rounded to odd (exact where zero: signed as `mode` says).
fn wide(operation: Operation, a: f64, b: f64, c: f64, mode: Round) -> f64 {
    match operation {
        Operation::Add => zero_sum(add_odd(a, b), a, b, mode),
        Operation::Sub => zero_sum(add_odd(a, -b), a, -b, mode),
        Operation::Mul => a * b,
        Operation::Fma => zero_sum(add_odd(a * b, c), a * b, c, mode),
        Operation::Div => div_odd(a, b),
        Operation::Sqrt => sqrt_odd(a),
    }
}

/// An f32 operation with a directed rounding.
pub fn directed32(operation: Operation, a: f32, b: f32, c: f32, mode: Round) -> f32 {
    F32.round(wide(operation, a.into(), b.into(), c.into(), mode), mode) as f32
}

/// An f16 or bf16 operation, to nearest.
pub fn half(format: &Format, operation: Operation, a: f32, b: f32, c: f32) -> u16 {
    format.narrow(wide(operation, a.into(), b.into(), c.into(), Round::Nearest), Round::Nearest) as u16
}

/// An f64 operation with a directed rounding.
pub fn directed64(operation: Operation, a: f64, b: f64, c: f64, mode: Round) -> f64 {
    // Which of several NaNs goes on.
    if operation != Operation::Div
        && let Some(nan) = [b, c, a].into_iter().find(|x| x.is_nan())
    {
        return f64::from_bits(quiet64(nan.to_bits()));
    }
    let nearest = match operation {
        Operation::Add => zero_sum(a + b, a, b, mode),
        Operation::Sub => zero_sum(a - b, a, -b, mode),
        Operation::Mul => a * b,
        Operation::Fma => zero_sum(a.mul_add(b, c), a * b, c, mode),
        Operation::Div => a / b,
        Operation::Sqrt => a.sqrt(),
    };
    let operands_finite = a.is_finite() && b.is_finite() && c.is_finite();
    let divides_by_zero = operation == Operation::Div && b == 0.0;
    if nearest.is_nan() || !operands_finite || mode == Round::Nearest || divides_by_zero {
        return nearest;
    }
    // Where the result overflowed, the exact value lies between the largest finite number and infinity.
    let finite = if nearest.is_infinite() { f64::MAX.copysign(nearest) } else { nearest };
    let sign = match operation {
        Operation::Add => residual_sign(&[(a, 1.0), (b, 1.0), (-finite, 1.0)]),
        Operation::Sub => residual_sign(&[(a, 1.0), (-b, 1.0), (-finite, 1.0)]),
        Operation::Mul => residual_sign(&[(a, b), (-finite, 1.0)]),
        Operation::Fma => residual_sign(&[(a, b), (c, 1.0), (-finite, 1.0)]),
        Operation::Div => residual_sign(&[(a, 1.0), (-finite, b)]) * if b < 0.0 { -1 } else { 1 },
        Operation::Sqrt => residual_sign(&[(a, 1.0), (-finite, finite)]),
    };
    let negative = finite < 0.0 || (finite == 0.0 && (sign < 0 || (sign == 0 && finite.is_sign_negative())));
    match (mode, sign) {
        (_, 0) => finite,
        (Round::Down, -1) => finite.next_down(),
        (Round::Up, 1) => finite.next_up(),
        (Round::Zero, -1) if !negative => finite.next_down(),
        (Round::Zero, 1) if negative => finite.next_up(),
        _ => finite,
    }
}

/// Smaller of two f32: a NaN loses, -0 is less than +0.
pub fn min32(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a < b || (a == b && a.is_sign_negative()) {
        a
    } else {
        b
    }
}

/// Larger of two f32: a NaN loses, +0 is more than -0.
pub fn max32(a: f32, b: f32) -> f32 {
    -min32(-a, -b)
}

/// Smaller of two f64: a NaN loses, -0 is less than +0.
pub fn min64(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a < b || (a == b && a.is_sign_negative()) {
        a
    } else {
        b
    }
}

/// Larger of two f64: a NaN loses, +0 is more than -0.
pub fn max64(a: f64, b: f64) -> f64 {
    -min64(-a, -b)
}

/// The value of 16 bits as f16 or bf16.
pub fn half_value(format: &Format, bits: u16) -> f32 {
    if format.mantissa == F16.mantissa { f16_value(bits) } else { bf16_value(bits) }
}

/// The two half formats by a flag.
pub fn half_format(brain: bool) -> &'static Format {
    if brain { &BF16 } else { &F16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directed_results_enclose_the_exact_one() {
        let (a, b) = (1.0f32, 2f32.powi(-40));
        assert_eq!(directed32(Operation::Add, a, b, 0.0, Round::Up), 1.0 + f32::EPSILON);
        assert_eq!(directed32(Operation::Add, a, b, 0.0, Round::Zero), 1.0);
        assert_eq!(directed32(Operation::Sub, a, b, 0.0, Round::Zero), 1.0 - f32::EPSILON / 2.0);
        assert_eq!(directed32(Operation::Sub, a, a, 0.0, Round::Down).to_bits(), 0x8000_0000);
        assert_eq!(directed32(Operation::Sub, a, a, 0.0, Round::Up).to_bits(), 0);
        assert_eq!(directed32(Operation::Mul, f32::MAX, 2.0, 0.0, Round::Zero), f32::MAX);
        assert_eq!(directed32(Operation::Div, 1.0, 3.0, 0.0, Round::Up), (1f32 / 3.0).max(0.33333334));
        assert_eq!(directed32(Operation::Sqrt, 2.0, 0.0, 0.0, Round::Up), std::f32::consts::SQRT_2.next_up());
        assert_eq!(directed64(Operation::Mul, f64::MAX, 2.0, 0.0, Round::Down), f64::MAX);
        assert_eq!(directed64(Operation::Mul, f64::MAX, 2.0, 0.0, Round::Up), f64::INFINITY);
        assert_eq!(directed64(Operation::Mul, 5e-324, 0.25, 0.0, Round::Up), 5e-324);
        assert_eq!(directed64(Operation::Mul, 5e-324, 0.25, 0.0, Round::Zero), 0.0);
        assert_eq!(directed64(Operation::Fma, 1.0, 1.0, 1e-300, Round::Up), 1.0 + f64::EPSILON);
        assert_eq!(directed64(Operation::Div, 1.0, 3.0, 0.0, Round::Down), 1.0 / 3.0);
        assert_eq!(directed64(Operation::Div, 1.0, -3.0, 0.0, Round::Zero), -1.0 / 3.0);
        assert_eq!(directed64(Operation::Sqrt, 2.0, 0.0, 0.0, Round::Up), std::f64::consts::SQRT_2);
    }

    #[test]
    fn a_half_fma_rounds_once() {
        // 1.0009765625^2 = 1.00195407867431640625: with c just below half an ulp, two roundings would differ.
        let (a, c) = (f16_value(0x3c01), f16_value(0x0001));
        assert_eq!(half(&F16, Operation::Fma, a, a, c), 0x3c02);
        assert_eq!(half(&F16, Operation::Fma, f16_value(0x3c00), f16_value(0x3c00), f16_value(0x1000)), 0x3c00);
        assert_eq!(half(&F16, Operation::Fma, f16_value(0x3c00), f16_value(0x3c00), f16_value(0x1001)), 0x3c01);
    }
}
