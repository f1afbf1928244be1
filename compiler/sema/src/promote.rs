//! Type promotion: the rules of the language as pure functions.
//!
//! ```text
//! fp16 + bf16 -> fp16     bf16 + int32 -> fp32     int64 / int64 -> fp32     uint8 + int32 -> int32
//! ```

use crate::spec::DType;
use crate::types::is_fp8;
use crate::values::Const;

/// Why two types have no common type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clash {
    /// An 8-bit float with an integer.
    Fp8WithInteger,
    /// Division or remainder of a signed and an unsigned integer.
    Signedness,
}

/// Order of the kinds of numbers: booleans, integers, floats.
pub(crate) fn kind(d: DType) -> u8 {
    match d {
        DType::UInt1 => 0,
        d if d.is_integer() => 1,
        _ => 2,
    }
}

/// The kind of a constant; `None` if it is no number.
pub(crate) fn const_kind(c: &Const) -> Option<u8> {
    match c {
        Const::Bool(_) => Some(0),
        Const::Int(_) => Some(1),
        Const::Float(_) => Some(2),
        _ => None,
    }
}

/// The type that a constant takes on its own; `None` if it is no number or does not fit in 64 bits.
pub(crate) fn const_dtype(c: &Const) -> Option<DType> {
    match c {
        Const::Bool(_) => Some(DType::UInt1),
        Const::Int(i) if i32::try_from(*i).is_ok() => Some(DType::Int32),
        Const::Int(i) if u32::try_from(*i).is_ok() => Some(DType::UInt32),
        Const::Int(i) if i64::try_from(*i).is_ok() => Some(DType::Int64),
        Const::Int(i) if u64::try_from(*i).is_ok() => Some(DType::UInt64),
        Const::Float(x) => {
            let magnitude = x.abs();
            let single = magnitude == 0.0
                || !magnitude.is_finite()
                || (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&magnitude);
            Some(if single { DType::Fp32 } else { DType::Fp64 })
        }
        _ => None,
    }
}

/// The smallest and largest number of an integer type.
pub(crate) fn int_range(d: DType) -> (i128, i128) {
    if d.is_signed() {
        (-(1i128 << (d.bits() - 1)), (1i128 << (d.bits() - 1)) - 1)
    } else {
        (0, (1i128 << d.bits()) - 1)
    }
}

/// The common type of two run-time operands; `div_mod` for `/`, `//` and `%`.
pub(crate) fn tensors(a: DType, b: DType, div_mod: bool) -> Result<DType, Clash> {
    let either = |d: DType| a == d || b == d;
    if either(DType::Fp64) {
        return Ok(DType::Fp64);
    }
    if either(DType::Fp32) {
        return Ok(DType::Fp32);
    }
    if either(DType::Fp16) {
        return Ok(if div_mod { DType::Fp32 } else { DType::Fp16 });
    }
    if either(DType::Bf16) {
        return Ok(if a == b && !div_mod { DType::Bf16 } else { DType::Fp32 });
    }
    match (is_fp8(a), is_fp8(b)) {
        (true, true) => Ok(if a == b { a } else { DType::Fp16 }),
        (false, false) if div_mod && a.is_signed() != b.is_signed() => Err(Clash::Signedness),
        (false, false) => Ok(integers(a, b)),
        _ => Err(Clash::Fp8WithInteger),
    }
}

/// The common type of two integers, as in C.
pub(crate) fn integers(a: DType, b: DType) -> DType {
    if a.is_signed() == b.is_signed() {
        return if a.bits() >= b.bits() { a } else { b };
    }
    let (signed, unsigned) = if a.is_signed() { (a, b) } else { (b, a) };
    if unsigned.bits() >= signed.bits() { unsigned } else { signed }
}

/// The common type of a run-time operand and a constant; `None` if the constant is no number.
pub(crate) fn with_constant(tensor: DType, c: &Const, div_mod: bool) -> Option<Result<DType, Clash>> {
    if const_kind(c)? <= kind(tensor) {
        let half = matches!(tensor, DType::Fp16 | DType::Bf16);
        return Some(Ok(if half && div_mod { DType::Fp32 } else { tensor }));
    }
    Some(tensors(tensor, const_dtype(c)?, div_mod))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_symmetric() {
        for a in DType::ALL {
            for b in DType::ALL {
                for div_mod in [false, true] {
                    assert_eq!(tensors(*a, *b, div_mod), tensors(*b, *a, div_mod), "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn constants_fit_the_first_type() {
        for (value, dtype) in [
            (1i128 << 31, DType::UInt32),
            ((1 << 31) - 1, DType::Int32),
            (-(1 << 31), DType::Int32),
            (-(1 << 31) - 1, DType::Int64),
            (5_000_000_000, DType::Int64),
            (1 << 63, DType::UInt64),
        ] {
            assert_eq!(const_dtype(&Const::Int(value)), Some(dtype), "{value}");
        }
        assert_eq!(const_dtype(&Const::Int(1 << 64)), None);
        for (value, dtype) in [
            (1e39, DType::Fp64),
            (1e-39, DType::Fp64),
            (1e30, DType::Fp32),
            (0.0, DType::Fp32),
            (f64::NAN, DType::Fp32),
        ] {
            assert_eq!(const_dtype(&Const::Float(value)), Some(dtype), "{value}");
        }
    }
}
