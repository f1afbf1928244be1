//! `f32` and `f64` arithmetic with a directed rounding, on exact integers.
//!
//! A finite number is a whole significand of up to 128 bits times a power of two. Sums, products, quotients and roots
//! are exact in that form, or keep in their last bit whether something was cut off; one function rounds at the end.

use crate::{EvalContext, OpKind, RoundingMode, Scalar};

/// `significand * 2^exponent`; an odd last bit may be a sticky bit.
#[derive(Clone, Copy)]
struct Exact {
    negative: bool,
    significand: u128,
    exponent: i32,
}

impl Exact {
    /// The parts of a finite number.
    fn new(x: f64) -> Exact {
        let bits = x.to_bits();
        let field = (bits >> 52 & 0x7ff) as i32;
        let fraction = u128::from(bits & ((1 << 52) - 1));
        let significand = if field == 0 { fraction } else { fraction | 1 << 52 };
        Exact { negative: x.is_sign_negative(), significand, exponent: field.max(1) - 1075 }
    }

    /// The same number with its highest bit at `bit`, which is at or above the highest bit now.
    fn raised(self, bit: u32) -> Exact {
        if self.significand == 0 {
            return self;
        }
        let shift = self.significand.leading_zeros().saturating_sub(127 - bit);
        Exact { significand: self.significand << shift, exponent: self.exponent - shift as i32, ..self }
    }

    fn times(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative != other.negative,
            significand: self.significand * other.significand,
            exponent: self.exponent + other.exponent,
        }
    }

    fn plus(self, other: Exact, mode: RoundingMode) -> Exact {
        if self.significand == 0 && other.significand == 0 {
            let negative = match mode {
                RoundingMode::Down => self.negative || other.negative,
                _ => self.negative && other.negative,
            };
            return Exact { negative, ..self };
        }
        if self.significand == 0 || other.significand == 0 {
            return if self.significand == 0 { other } else { self };
        }
        // One bit is left free for the carry. A product has 106 bits, so that the bits cut off from the smaller number
        // are far below the last place of a sum that cancels by one bit at most.
        let (a, b) = (self.raised(126), other.raised(126));
        let (large, small) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
        let distance = (large.exponent - small.exponent) as u32;
        let kept = small.significand.checked_shr(distance).unwrap_or(0);
        let cut = distance > 127 || kept << distance != small.significand;
        let moved = kept | u128::from(cut);
        if large.negative == small.negative {
            return Exact { significand: large.significand + moved, ..large };
        }
        let difference = large.significand.abs_diff(moved);
        let negative = match large.significand.cmp(&moved) {
            std::cmp::Ordering::Greater => large.negative,
            std::cmp::Ordering::Less => small.negative,
            std::cmp::Ordering::Equal => mode == RoundingMode::Down,
        };
        Exact { negative, significand: difference, ..large }
    }

    /// The divisor is not zero.
    fn over(self, divisor: Exact) -> Exact {
        let (a, b) = (self.raised(127), divisor);
        let rest = u128::from(a.significand % b.significand != 0);
        Exact {
            negative: a.negative != b.negative,
            significand: (a.significand / b.significand) | rest,
            exponent: a.exponent - b.exponent,
        }
    }

    fn root(self) -> Exact {
        let mut a = self.raised(126);
        if a.exponent % 2 != 0 {
            a.significand >>= 1;
            a.exponent += 1;
        }
        // A root has 63 bits; the bit behind them says whether it is exact.
        let root = a.significand.isqrt();
        let rest = u128::from(root * root != a.significand);
        Exact { significand: root << 1 | rest, exponent: a.exponent / 2 - 1, ..a }
    }

    /// The bits in `f32` or `f64`, rounded once.
    fn round(self, scalar: Scalar, mode: RoundingMode) -> u64 {
        let (precision, least, highest_field): (i32, i32, u64) =
            if scalar == Scalar::F32 { (24, -149, 0xff) } else { (53, -1074, 0x7ff) };
        let sign = u64::from(self.negative) << (scalar.bits() - 1);
        if self.significand == 0 {
            return sign;
        }
        let highest = 127 - self.significand.leading_zeros() as i32 + self.exponent;
        // The power of two of the last place.
        let unit = (highest - precision + 1).max(least);
        let dropped = unit - self.exponent;
        let (units, rest, half) = match dropped {
            ..=0 => (self.significand << -dropped, 0, 1),
            1..=127 => (self.significand >> dropped, self.significand & ((1 << dropped) - 1), 1u128 << (dropped - 1)),
            _ => (0, 1, 2),
        };
        let up = match mode {
            RoundingMode::Nearest => rest > half || (rest == half && units & 1 == 1),
            RoundingMode::Zero => false,
            RoundingMode::Down => self.negative && rest != 0,
            RoundingMode::Up => !self.negative && rest != 0,
        };
        // The hidden bit adds one to the exponent's field; so does a carry out of the significand.
        let bits = ((unit - least) as u64) * (1 << (precision - 1)) + (units as u64 + u64::from(up));
        let infinity = highest_field << (precision - 1);
        let to_infinity = match mode {
            RoundingMode::Nearest => true,
            RoundingMode::Zero => false,
            RoundingMode::Down => self.negative,
            RoundingMode::Up => !self.negative,
        };
        match bits >= infinity {
            true if to_infinity => sign | infinity,
            true => sign | (infinity - 1),
            false => sign | bits,
        }
    }
}

/// Evaluates one of the operations with a rounding mode.
pub(super) fn rounded(c: &EvalContext<'_>, v: &[u64]) -> u64 {
    let scalar = c.result_scalar();
    let numbers: Vec<f64> = v.iter().enumerate().map(|(i, bits)| c.float(i, *bits)).collect();
    // Where an operand is not finite, or the result is infinite or invalid for another reason, nothing is rounded.
    let special = |x: f64| match scalar {
        Scalar::F32 if x.is_nan() => 0x7fff_ffff,
        Scalar::F32 => u64::from((x as f32).to_bits()),
        _ => x.to_bits(),
    };
    let finite = numbers.iter().all(|x| x.is_finite());
    let exact = |i: usize| Exact::new(numbers[i]);
    let (result, mode) = match (c.kind, &numbers[..]) {
        (OpKind::AddFRounded { .. }, [a, b]) if !finite => return special(a + b),
        (OpKind::AddFRounded { mode }, [..]) => (exact(0).plus(exact(1), *mode), *mode),
        (OpKind::MulFRounded { .. }, [a, b]) if !finite => return special(a * b),
        (OpKind::MulFRounded { mode }, [..]) => (exact(0).times(exact(1)), *mode),
        (OpKind::DivFRounded { .. }, [a, b]) if !finite || *b == 0.0 => return special(a / b),
        (OpKind::DivFRounded { mode }, [..]) => (exact(0).over(exact(1)), *mode),
        (OpKind::FmaRounded { .. }, [a, b, c]) if !finite => {
            // A finite product must not overflow into an infinity that an infinite addend would cancel.
            return special(if a.is_finite() && b.is_finite() { *c } else { a * b + c });
        }
        (OpKind::FmaRounded { mode }, [..]) => (exact(0).times(exact(1)).plus(exact(2), *mode), *mode),
        (OpKind::SqrtRounded { .. }, [a]) if !finite || *a <= 0.0 => return special(a.sqrt()),
        (OpKind::SqrtRounded { mode }, [..]) => (exact(0).root(), *mode),
        (OpKind::NarrowRounded { .. }, [a]) if !finite => return special(*a),
        (OpKind::NarrowRounded { mode }, [..]) => (exact(0), *mode),
        _ => return 0,
    };
    result.round(scalar, mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Elem;

    fn evaluate(kind: OpKind, elem: Elem, operands: &[f64]) -> f64 {
        let wide = elem == Elem::F64;
        let bits: Vec<u64> =
            operands.iter().map(|x| if wide { x.to_bits() } else { u64::from((*x as f32).to_bits()) }).collect();
        let elems = vec![elem; operands.len()];
        let result = rounded(&EvalContext { kind: &kind, operands: &elems, result: elem }, &bits);
        if wide { f64::from_bits(result) } else { f64::from(f32::from_bits(result as u32)) }
    }

    fn kinds(mode: RoundingMode) -> [(OpKind, usize); 5] {
        [
            (OpKind::AddFRounded { mode }, 2),
            (OpKind::MulFRounded { mode }, 2),
            (OpKind::DivFRounded { mode }, 2),
            (OpKind::FmaRounded { mode }, 3),
            (OpKind::SqrtRounded { mode }, 1),
        ]
    }

    fn host(kind: &OpKind, x: &[f64]) -> f64 {
        match kind {
            OpKind::AddFRounded { .. } => x[0] + x[1],
            OpKind::MulFRounded { .. } => x[0] * x[1],
            OpKind::DivFRounded { .. } => x[0] / x[1],
            OpKind::FmaRounded { .. } => x[0].mul_add(x[1], x[2]),
            _ => x[0].sqrt(),
        }
    }

    #[test]
    fn nearest_is_the_hosts_and_the_directed_ones_enclose_it() {
        let mut state = 0x2545_f491_4f6c_dd1du64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for round in 0..60_000 {
            // Bit patterns from everywhere, and numbers near each other and near the denormals.
            let mut number = || match round % 3 {
                0 => f64::from_bits(next()),
                1 => f64::from_bits(next() >> 12 | (1020 + next() % 6) << 52),
                _ => f64::from_bits(next() & 0x800f_ffff_ffff_ffff | (next() % 60) << 52),
            };
            let x = [number(), number(), number()];
            for ((kind, count), [down, up, zero]) in
                kinds(RoundingMode::Nearest).iter().zip(std::array::from_fn::<_, 5, _>(|i| {
                    [RoundingMode::Down, RoundingMode::Up, RoundingMode::Zero].map(|mode| kinds(mode)[i].0.clone())
                }))
            {
                let x = &x[..*count];
                let near = evaluate(kind.clone(), Elem::F64, x);
                let want = host(kind, x);
                assert!(near.to_bits() == want.to_bits() || (near.is_nan() && want.is_nan()), "{kind:?} {x:?} {near}");
                if want.is_nan() {
                    continue;
                }
                let (low, high) = (evaluate(down, Elem::F64, x), evaluate(up, Elem::F64, x));
                let cut = evaluate(zero, Elem::F64, x);
                assert!(low <= want && want <= high, "{kind:?} {x:?} {low} {want} {high}");
                assert!(low == high || low.next_up() == high, "{kind:?} {x:?} {low} {high}");
                assert_eq!(cut, if want > 0.0 || low >= 0.0 { low } else { high }, "{kind:?} {x:?}");
            }
        }
    }

    #[test]
    fn zeros_divide_and_have_roots() {
        for mode in [RoundingMode::Down, RoundingMode::Up, RoundingMode::Zero, RoundingMode::Nearest] {
            for elem in [Elem::F32, Elem::F64] {
                assert_eq!(evaluate(OpKind::DivFRounded { mode }, elem, &[-0.0, 3.0]).to_bits(), (-0.0f64).to_bits());
                assert_eq!(evaluate(OpKind::SqrtRounded { mode }, elem, &[-0.0]).to_bits(), (-0.0f64).to_bits());
                assert_eq!(evaluate(OpKind::MulFRounded { mode }, elem, &[0.0, -3.0]).to_bits(), (-0.0f64).to_bits());
                assert_eq!(evaluate(OpKind::FmaRounded { mode }, elem, &[0.0, 3.0, 0.5]), 0.5);
                assert_eq!(evaluate(OpKind::DivFRounded { mode }, elem, &[1.0, 0.0]), f64::INFINITY);
                assert!(evaluate(OpKind::SqrtRounded { mode }, elem, &[-1.0]).is_nan());
            }
        }
    }

    #[test]
    fn single_results_are_rounded_once() {
        let up = RoundingMode::Up;
        let down = RoundingMode::Down;
        let f32s = |kind, x: &[f64]| evaluate(kind, Elem::F32, x);
        let tiny = f64::from(f32::from_bits(1));
        assert_eq!(f32s(OpKind::AddFRounded { mode: up }, &[1.0, tiny]), 1.0 + f64::from(f32::EPSILON));
        assert_eq!(f32s(OpKind::AddFRounded { mode: down }, &[1.0, tiny]), 1.0);
        assert_eq!(f32s(OpKind::MulFRounded { mode: up }, &[tiny, tiny]), tiny);
        assert_eq!(f32s(OpKind::MulFRounded { mode: down }, &[-tiny, tiny]), -tiny);
        assert_eq!(f32s(OpKind::MulFRounded { mode: down }, &[1e38, 1e38]), f64::from(f32::MAX));
        assert_eq!(f32s(OpKind::MulFRounded { mode: up }, &[1e38, 1e38]), f64::INFINITY);
        assert_eq!(f32s(OpKind::MulFRounded { mode: up }, &[-1e38, 1e38]), -f64::from(f32::MAX));
        assert!(f32s(OpKind::AddFRounded { mode: down }, &[1.5, -1.5]).is_sign_negative());
        assert!(f32s(OpKind::AddFRounded { mode: up }, &[1.5, -1.5]).is_sign_positive());
        assert_eq!(f32s(OpKind::FmaRounded { mode: up }, &[1e38, 1e38, f64::NEG_INFINITY]), f64::NEG_INFINITY);
    }

    #[test]
    fn a_double_is_narrowed_in_the_direction() {
        let narrow = |mode, x: f64| {
            let kind = OpKind::NarrowRounded { mode };
            let bits = rounded(&EvalContext { kind: &kind, operands: &[Elem::F64], result: Elem::F32 }, &[x.to_bits()]);
            f32::from_bits(bits as u32)
        };
        assert_eq!(narrow(RoundingMode::Up, 0.1), 0.1f32);
        assert_eq!(narrow(RoundingMode::Down, 0.1), 0.1f32.next_down());
        assert_eq!(narrow(RoundingMode::Zero, -0.1), -(0.1f32.next_down()));
        assert_eq!(narrow(RoundingMode::Up, 5e-324), f32::from_bits(1));
        assert_eq!(narrow(RoundingMode::Down, 1e300), f32::MAX);
        assert!(narrow(RoundingMode::Up, f64::NAN).is_nan());
    }
}
