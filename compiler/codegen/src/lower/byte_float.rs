//! Conversions of the 8-bit float formats, by instructions if the target has them, otherwise on the bits.
//!
//! All paths give the same results: round to nearest even, saturate at the largest finite number, keep NaN.

use rtc_abi::Feature;
use rtc_ir::{Rounding, Scalar};

use super::Lowering;
use crate::emit::{Cmpf, Cmpi, Value};

/// The parameters of the conversion from `f32` to a format.
struct Narrow {
    /// Mantissa bits of `f32` that are dropped.
    dropped: i64,
    /// Difference of the exponent biases, in units of the result's exponent.
    bias: i64,
    /// The largest finite number.
    largest: f64,
    /// The least normal number.
    least_normal: f64,
    /// A power of two whose unit in the last place is the format's least subnormal.
    subnormal_base: f64,
}

const E4M3: Narrow =
    Narrow { dropped: 20, bias: (127 - 7) << 3, largest: 448.0, least_normal: 0.015625, subnormal_base: 16384.0 };
const E5M2: Narrow = Narrow {
    dropped: 21,
    bias: (127 - 15) << 2,
    largest: 57344.0,
    least_normal: 6.103515625e-5,
    subnormal_base: 128.0,
};

impl<'c> Lowering<'_, 'c> {
    /// 8-bit floats to halves, exactly.
    pub(super) fn from_byte_floats(&self, values: &[Value<'c>], from: Scalar) -> Vec<Value<'c>> {
        let e = self.e;
        if from == Scalar::F8E4 && self.target.has(Feature::Fp8Conversions) {
            return self.in_pairs(values, |low, high| {
                let pair = e.bitcast(e.pack(&[low, high]), e.ty.i16);
                let halves = e.intrinsic("llvm.nvvm.e4m3x2.to.f16x2.rn", &[pair], e.vector_type(2, e.ty.f16));
                let halves = e.unpack(halves, 2, e.ty.f16);
                [halves[0], halves[1]]
            });
        }
        values.iter().map(|value| self.from_byte_float(*value, from)).collect()
    }

    fn from_byte_float(&self, value: Value<'c>, from: Scalar) -> Value<'c> {
        let e = self.e;
        let short = |bits: i64| e.int(e.ty.i16, bits);
        let wide = e.extui(value, e.ty.i16);
        if from == Scalar::F8E5 {
            // The upper half of a half.
            return e.bitcast(e.shli(wide, short(8)), e.ty.f16);
        }
        let sign = e.shli(e.andi(wide, short(0x80)), short(8));
        let magnitude = e.andi(wide, short(0x7f));
        let shifted = e.shli(magnitude, short(7));
        if from == Scalar::F8E4B15 {
            return e.bitcast(e.ori(sign, shifted), e.ty.f16);
        }
        // The bits read as a half are too small by the difference of the biases, 2^8.
        let scaled = e.mulf(e.bitcast(shifted, e.ty.f16), e.float(e.ty.f16, 256.0), false);
        let is_nan = e.cmpi(Cmpi::Eq, magnitude, short(0x7f));
        let bits = e.select(is_nan, short(0x7fff), e.bitcast(scaled, e.ty.i16));
        e.bitcast(e.ori(bits, sign), e.ty.f16)
    }

    /// Floats of at least 16 bits to 8-bit floats.
    pub(super) fn to_byte_floats(
        &self,
        values: &[Value<'c>],
        from: Scalar,
        to: Scalar,
        rounding: Rounding,
    ) -> Vec<Value<'c>> {
        let e = self.e;
        if to == Scalar::F8E4B15 {
            let half = |value| match from {
                Scalar::F16 => value,
                _ => {
                    let single = self.cast_float_to_single(value, from);
                    self.cast_float(single, Scalar::F32, Scalar::F16, Rounding::TowardZero)
                }
            };
            return values.iter().map(|value| self.to_e4m3_bias_15(half(*value))).collect();
        }
        let singles: Vec<_> = values.iter().map(|value| self.cast_float_to_single(*value, from)).collect();
        if rounding == Rounding::NearestEven && self.target.has(Feature::Fp8Conversions) {
            let name = if to == Scalar::F8E4 { "llvm.nvvm.ff.to.e4m3x2.rn" } else { "llvm.nvvm.ff.to.e5m2x2.rn" };
            return self.in_pairs(&singles, |low, high| {
                // The first operand goes to the upper byte.
                let pair = e.intrinsic(name, &[high, low], e.ty.i16);
                let bytes = e.unpack(e.bitcast(pair, e.vector_type(2, e.ty.i8)), 2, e.ty.i8);
                [bytes[0], bytes[1]]
            });
        }
        let format = if to == Scalar::F8E4 { E4M3 } else { E5M2 };
        singles.iter().map(|single| self.narrow(*single, &format, rounding)).collect()
    }

    fn cast_float_to_single(&self, value: Value<'c>, from: Scalar) -> Value<'c> {
        // fp64 is rounded twice this way; the language has no such cast.
        if from == Scalar::F32 { value } else { self.cast_float(value, from, Scalar::F32, Rounding::NearestEven) }
    }

    /// Converts on the bits.
    fn narrow(&self, value: Value<'c>, format: &Narrow, rounding: Rounding) -> Value<'c> {
        let e = self.e;
        let word = |x: i64| e.int(e.ty.i32, x);
        let single = |x: f64| e.float(e.ty.f32, x);
        let sign = e.andi(e.shrui(e.bitcast(value, e.ty.i32), word(24)), word(0x80));
        let magnitude = e.unary("llvm.intr.fabs", value);
        let is_nan = e.cmpf(Cmpf::Uno, value, value);
        let clamped = e.minnumf(magnitude, single(format.largest));
        let bits = e.bitcast(clamped, e.ty.i32);
        let (normal, subnormal) = match rounding {
            Rounding::NearestEven => {
                let odd = e.andi(e.shrui(bits, word(format.dropped)), word(1));
                let up = e.addi(bits, e.addi(odd, word((1 << (format.dropped - 1)) - 1)));
                // Adding a number whose last place is the subnormal unit makes the addition round.
                let base = single(format.subnormal_base);
                let rounded = e.bitcast(e.addf(clamped, base, false), e.ty.i32);
                (e.shrui(up, word(format.dropped)), e.subi(rounded, e.bitcast(base, e.ty.i32)))
            }
            Rounding::TowardZero => {
                let units = e.mulf(clamped, single(8_388_608.0 / format.subnormal_base), false);
                (e.shrui(bits, word(format.dropped)), e.fptosi(units, e.ty.i32))
            }
        };
        let is_small = e.cmpf(Cmpf::Olt, clamped, single(format.least_normal));
        let number = e.select(is_small, subnormal, e.subi(normal, word(format.bias)));
        let number = e.select(is_nan, word(0x7f), e.ori(number, sign));
        e.trunci(number, e.ty.i8)
    }

    /// A half to the format with bias 15: clamped to 1.75, rounded half up.
    fn to_e4m3_bias_15(&self, half: Value<'c>) -> Value<'c> {
        let e = self.e;
        let short = |x: i64| e.int(e.ty.i16, x);
        let bits = e.bitcast(half, e.ty.i16);
        let sign = e.andi(e.shrui(bits, short(8)), short(0x80));
        let magnitude = e.minui(e.andi(bits, short(0x7fff)), short(0x3f00));
        let rounded = e.shrui(e.addi(e.shli(magnitude, short(1)), short(0x80)), short(8));
        e.trunci(e.ori(sign, e.minui(rounded, short(0x7f))), e.ty.i8)
    }

    /// Applies a conversion that takes two values at a time; the last value of an odd list is paired with itself.
    fn in_pairs(
        &self,
        values: &[Value<'c>],
        convert: impl Fn(Value<'c>, Value<'c>) -> [Value<'c>; 2],
    ) -> Vec<Value<'c>> {
        let mut results = Vec::with_capacity(values.len());
        for pair in values.chunks(2) {
            let [low, high] = convert(pair[0], pair[pair.len() - 1]);
            results.push(low);
            if pair.len() == 2 {
                results.push(high);
            }
        }
        results
    }
}
