//! Quotients of `f32`, within 2 ulp for all divisors.
//!
//! `div.full` scales both operands where the divisor or its reciprocal would be denormal, and multiplies by the
//! reciprocal. Written out, the scale and the reciprocal of a divisor that several elements share are computed once, and
//! each element takes two multiplications instead of three; where the dividend is a constant of moderate size, one
//! comparison of the divisor is enough instead of two, and none where the divisor is known to be at least one, as in
//! `1 / (1 + exp(-x))`. The results are those of `div.full`.

use rtc_ir::{Elem, Literal, Op, OpKind, constant_int, view};

use super::Lowering;
use crate::{
    emit::{Cmpf, Value},
    error::{CodegenError, Result},
};

/// Divisors above this have a denormal reciprocal.
const LARGE: f32 = 8.507_059e37; // 2^126
/// Divisors below this are denormal.
const SMALL: f32 = f32::MIN_POSITIVE;
/// The factor that scales them into range.
const SHRINK: f32 = 0.25;
const GROW: f32 = 16_777_216.0; // 2^24
/// A constant dividend between these two stays in range with either factor.
const MODERATE: std::ops::Range<f32> = 1e-24..1e24;

impl<'c> Lowering<'_, 'c> {
    /// `divf` of formats up to `f32`, which it is computed in.
    pub(super) fn divide(&self, op: Op, elem: Elem) -> Result<()> {
        let e = self.e;
        let missing = || CodegenError::lowering("a quotient without sides");
        let [dividend, divisor] = self.kernel.sides(op).ok_or_else(missing)?;
        // `ptxas` fuses the last multiplication of `div.full` with a sum as well.
        let fuse = self.kernel.options.fp_fusion;
        let divisors = self.get(divisor)?;
        if let Some(constant) = self.moderate_constant(dividend).filter(|_| elem == Elem::F32) {
            let shrink = self.lower_bound(divisor) >= 1.0;
            return self.each(op, |[_, b]| self.divide_constant(constant, b, shrink));
        }
        let mut shared: Vec<(Value<'c>, Option<[Value<'c>; 2]>)> = Vec::new();
        let mut results = Vec::with_capacity(divisors.len());
        for (a, b) in self.get(dividend)?.iter().zip(divisors.iter()) {
            let known = shared.iter().rposition(|(value, _)| value == b).unwrap_or_else(|| {
                let several = divisors.iter().filter(|value| *value == b).nth(1).is_some();
                shared.push((*b, several.then(|| self.scaled_reciprocal(e.extf(*b, e.ty.f32)))));
                shared.len() - 1
            });
            results.push(match shared[known].1 {
                Some([scale, reciprocal]) => {
                    self.in_single(elem, [*a], |[a]| e.mulf(e.mulf(a, scale, false), reciprocal, fuse))
                }
                None => self.in_single(elem, [*a, *b], |[a, b]| e.intrinsic("llvm.nvvm.div.full", &[a, b], e.ty.f32)),
            });
        }
        self.define(op, results);
        Ok(())
    }

    /// A scale and a reciprocal whose product is the divisor's reciprocal.
    fn scaled_reciprocal(&self, divisor: Value<'c>) -> [Value<'c>; 2] {
        let e = self.e;
        let size = e.unary("llvm.intr.fabs", divisor);
        let large = e.cmpf(Cmpf::Ogt, size, self.single(LARGE));
        let small = e.cmpf(Cmpf::Olt, size, self.single(SMALL));
        let scale = e.select(small, self.single(GROW), self.single(1.0));
        let scale = e.select(large, self.single(SHRINK), scale);
        [scale, self.reciprocal(e.mulf(divisor, scale, false))]
    }

    /// `shrink` says that the divisor is at least one.
    fn divide_constant(&self, dividend: f32, divisor: Value<'c>, shrink: bool) -> Value<'c> {
        let e = self.e;
        let choose = |shrunk: f32, grown: f32| {
            if shrink {
                return self.single(shrunk);
            }
            let large = e.cmpf(Cmpf::Oge, e.unary("llvm.intr.fabs", divisor), self.single(1.0));
            e.select(large, self.single(shrunk), self.single(grown))
        };
        let reciprocal = self.reciprocal(e.mulf(divisor, choose(SHRINK, GROW), false));
        e.mulf(choose(dividend * SHRINK, dividend * GROW), reciprocal, self.kernel.options.fp_fusion)
    }

    fn reciprocal(&self, value: Value<'c>) -> Value<'c> {
        self.e.intrinsic("llvm.nvvm.rcp.approx.ftz.f", &[value], self.e.ty.f32)
    }

    fn single(&self, value: f32) -> Value<'c> {
        self.e.float_constant(self.e.ty.f32, u64::from(value.to_bits()))
    }

    /// The constant of moderate size that a value is, or that a tile is filled with.
    fn moderate_constant(&self, value: rtc_ir::Value) -> Option<f32> {
        let (low, high) = self.range(value, 0);
        (low == high && MODERATE.contains(&low.abs())).then_some(low)
    }

    fn lower_bound(&self, value: rtc_ir::Value) -> f32 {
        self.range(value, 0).0
    }

    /// Two numbers that the elements of an `f32` value lie between, those that are NaN apart.
    fn range(&self, value: rtc_ir::Value, depth: u32) -> (f32, f32) {
        const UNKNOWN: (f32, f32) = (f32::NEG_INFINITY, f32::INFINITY);
        const POSITIVE: (f32, f32) = (0.0, f32::INFINITY);
        /// Enough for `1 + exp(x)`.
        const DEPTH: u32 = 12;
        let Some(op) = self.kernel.def_op(value).filter(|_| depth < DEPTH) else { return UNKNOWN };
        let of = |index| self.range(self.kernel.operand(op, index), depth + 1);
        let (low, high) = match self.kernel.kind(op) {
            OpKind::Constant { value: Literal::Float(bits) } => {
                let number = f64::from_bits(*bits) as f32;
                (number, number)
            }
            OpKind::Splat {} | OpKind::Broadcast {} | OpKind::ExpandDims { .. } => of(0),
            OpKind::Exp2 { .. } | OpKind::AbsF {} | OpKind::Sqrt { .. } => POSITIVE,
            // Where one operand is NaN the result is the other one, here the constant.
            OpKind::MaxNum {} => match (of(0), of(1)) {
                ((_, high), (low, end)) | ((low, end), (_, high)) if low == end => (low, high.max(low)),
                _ => UNKNOWN,
            },
            OpKind::MinNum {} => match (of(0), of(1)) {
                ((low, _), (start, high)) | ((start, high), (low, _)) if start == high => (low.min(high), high),
                _ => UNKNOWN,
            },
            OpKind::Fma {} => match (of(0), of(1), of(2)) {
                ((low, high), (factor, end), (first, last)) if factor == end && factor > 0.0 => {
                    (low.mul_add(factor, first), high.mul_add(factor, last))
                }
                _ => UNKNOWN,
            },
            OpKind::MulF {} if of(0).0 >= 0.0 && of(1).0 >= 0.0 => POSITIVE,
            OpKind::AddF {} => {
                let (a, b) = (of(0), of(1));
                (a.0 + b.0, a.1 + b.1)
            }
            OpKind::Bitcast { .. } if self.shifted_sign_is_clear(view::Bitcast::at(self.kernel, op).value(), depth) => {
                POSITIVE
            }
            _ => UNKNOWN,
        };
        if low.is_nan() || high.is_nan() { UNKNOWN } else { (low, high) }
    }

    /// Whether an integer is the bits of a float, shifted to the left, whose new sign bit is clear for all floats of
    /// the range: `exp` makes powers of two like this.
    fn shifted_sign_is_clear(&self, value: rtc_ir::Value, depth: u32) -> bool {
        let clear = || {
            let shift = view::ShlI::defining(self.kernel, value)?;
            let distance = constant_int(self.kernel, shift.rhs()).filter(|distance| (1..=31).contains(distance))?;
            let cast = view::Bitcast::defining(self.kernel, shift.lhs())?;
            let (low, high) = self.range(cast.value(), depth + 1);
            let sign = 31 - distance;
            let same = low > 0.0 && low.to_bits() >> sign == high.to_bits() >> sign;
            Some(same && low.to_bits() >> sign & 1 == 0)
        };
        self.elem(value) == Ok(Elem::I32) && clear() == Some(true)
    }
}
