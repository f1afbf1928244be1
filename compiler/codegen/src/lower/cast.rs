//! Conversions between element types.

use rtc_ir::{Elem, Op, OpKind, Rounding, Scalar};

use super::Lowering;
use crate::{
    emit::{Cmpi, Type, Value},
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    pub(super) fn cast(&self, op: Op, kind: &OpKind) -> Result<()> {
        let e = self.e;
        let from = self.elem(self.kernel.operand(op, 0))?;
        let target = self.elem(self.kernel.result(op, 0))?;
        let to = self.element(target);
        match kind {
            OpKind::TruncI { .. } => self.each(op, |[a]| e.trunci(a, to)),
            OpKind::ExtSI { .. } => self.each(op, |[a]| e.extsi(a, to)),
            OpKind::ExtUI { .. } if self.bytes_to_halfwords(op)? => Ok(()),
            OpKind::ExtUI { .. } => self.each(op, |[a]| e.extui(a, to)),
            OpKind::CastF { rounding, .. } => {
                let (Elem::Num(from), Elem::Num(target)) = (from, target) else {
                    return Err(CodegenError::lowering("a float cast of pointers"));
                };
                let values = self.operand(op, 0)?;
                let in_pairs = *rounding == Rounding::NearestEven && from == Scalar::F32 && self.is_multiplied(op);
                let cast = match target {
                    Scalar::F16 | Scalar::BF16 if in_pairs => self.cast_pairs(&values, to),
                    _ => self.cast_floats(&values, from, target, *rounding),
                };
                self.define(op, cast);
                Ok(())
            }
            OpKind::FpToSI { .. } => self.each(op, |[a]| self.float_to_integer(a, from, target, true)),
            OpKind::FpToUI { .. } => self.each(op, |[a]| self.float_to_integer(a, from, target, false)),
            OpKind::SIToFp { .. } => self.integers_to_floats(op, true),
            OpKind::UIToFp { .. } => self.integers_to_floats(op, false),
            OpKind::Bitcast { .. } => self.each(op, |[a]| e.bitcast(a, to)),
            OpKind::PtrToInt {} => self.each(op, |[a]| e.ptrtoint(a, to)),
            OpKind::IntToPtr { .. } => self.each(op, |[a]| e.inttoptr(a, to)),
            other => Err(CodegenError::lowering(format!("`{}` as a cast", other.spec().mnemonic))),
        }
    }

    /// Whether a dot takes the result of an operation from registers.
    fn is_multiplied(&self, op: Op) -> bool {
        let users = self.kernel.users(self.kernel.result(op, 0));
        users.iter().any(|user| matches!(self.kernel.kind(*user), OpKind::Mma {} | OpKind::MmaAsync {}))
    }

    /// Converts floats of 32 bits in pairs. LLVM would put single conversions together where the dot packs its operand, which
    /// is behind dots that were issued in between: an attention kernel held its probabilities in 32 bits while the next scores
    /// came in, and spilled.
    fn cast_pairs(&self, values: &[Value<'c>], to: Type<'c>) -> Vec<Value<'c>> {
        let e = self.e;
        let pair = e.vector_type(2, to);
        let cast = |values: &[Value<'c>]| match values.len() {
            2 => e.unpack(e.truncf(e.pack(values), pair), 2, to),
            _ => values.iter().map(|value| e.truncf(*value, to)).collect(),
        };
        values.chunks(2).flat_map(cast).collect()
    }

    /// Converts a list of floats; 8-bit formats are converted in pairs where the hardware does.
    pub(super) fn cast_floats(
        &self,
        values: &[Value<'c>],
        from: Scalar,
        to: Scalar,
        rounding: Rounding,
    ) -> Vec<Value<'c>> {
        if from == to {
            return values.to_vec();
        }
        if from.is_fp8() {
            let halves = self.from_byte_floats(values, from);
            return self.cast_floats(&halves, Scalar::F16, to, Rounding::NearestEven);
        }
        if to.is_fp8() {
            return self.to_byte_floats(values, from, to, rounding);
        }
        values.iter().map(|value| self.cast_float(*value, from, to, rounding)).collect()
    }

    /// Converts between formats of at least 16 bits.
    pub(super) fn cast_float(&self, value: Value<'c>, from: Scalar, to: Scalar, rounding: Rounding) -> Value<'c> {
        let e = self.e;
        let ty = self.element(to.into());
        if from.bits() < to.bits() {
            return e.extf(value, ty);
        }
        if from.bits() == to.bits() {
            // fp16 and bf16 have no common format but the next wider one.
            let single = e.extf(value, e.ty.f32);
            return self.cast_float(single, Scalar::F32, to, rounding);
        }
        match (rounding, from, to) {
            (Rounding::TowardZero, Scalar::F32, Scalar::F16) => e.intrinsic("llvm.nvvm.f2f16.rz", &[value], ty),
            (Rounding::TowardZero, Scalar::F32, Scalar::BF16) => e.intrinsic("llvm.nvvm.f2bf16.rz", &[value], ty),
            (Rounding::TowardZero, Scalar::F64, Scalar::F32) => e.intrinsic("llvm.nvvm.d2f.rz", &[value], ty),
            (Rounding::TowardZero, Scalar::F64, _) => {
                let single = e.intrinsic("llvm.nvvm.d2f.rz", &[value], e.ty.f32);
                self.cast_float(single, Scalar::F32, to, rounding)
            }
            _ => e.truncf(value, ty),
        }
    }

    /// Converts toward zero as the hardware does: saturating at 16, 32 and 64 bits, then wrapping to 8.
    fn float_to_integer(&self, value: Value<'c>, from: Elem, to: Elem, signed: bool) -> Value<'c> {
        let e = self.e;
        let wide = from == Elem::F64;
        let value = if wide { value } else { e.extf(value, e.ty.f32) };
        let ty = self.element(to);
        let sign = if signed { "" } else { "u" };
        let letter = if wide { "d" } else { "f" };
        match to.bits() {
            64 => e.intrinsic(&format!("llvm.nvvm.{letter}2{sign}ll.rz"), &[value], ty),
            32 => e.intrinsic(&format!("llvm.nvvm.{letter}2{sign}i.rz"), &[value], ty),
            _ => {
                let kind = if signed { "s16" } else { "u16" };
                let format = if wide { "f64" } else { "f32" };
                let text = format!("cvt.rzi.{kind}.{format} $0, $1;");
                let constraints = if wide { "=h,d" } else { "=h,f" };
                let narrow = e.assembly(&text, constraints, &[value], &[e.ty.i16], false)[0];
                e.trunci(narrow, ty)
            }
        }
    }

    /// A byte of memory as a truth value.
    pub(super) fn byte_to_truth(&self, byte: Value<'c>) -> Value<'c> {
        self.e.cmpi(Cmpi::Ne, byte, self.e.int(self.e.ty.i8, 0))
    }
}
