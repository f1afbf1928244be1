//! Operations that work on each element alone.

use rtc_ir::{Elem, Literal, Op, Predicate, RoundingMode, Scalar, view};

use super::Lowering;
use crate::{
    emit::{Cmpf, Cmpi, Value},
    error::Result,
};

impl<'c> Lowering<'_, 'c> {
    /// Applies `compute` to each register of the operands. Registers with the same operands share one result.
    pub(super) fn each<const N: usize>(&self, op: Op, compute: impl Fn([Value<'c>; N]) -> Value<'c>) -> Result<()> {
        let data = self.kernel.op(op);
        let operands: Vec<_> = data.operands[..N].iter().map(|value| self.get(*value)).collect::<Result<_>>()?;
        let count = self.register_count(data.results[0])?;
        let mut last: Option<([Value<'c>; N], Value<'c>)> = None;
        let mut results = Vec::with_capacity(count);
        for register in 0..count {
            let values: [Value<'c>; N] = std::array::from_fn(|i| operands[i][register]);
            let result = match last {
                Some((before, result)) if before == values => result,
                Some(_) | None => compute(values),
            };
            last = Some((values, result));
            results.push(result);
        }
        self.define(op, results);
        Ok(())
    }

    pub(super) fn constant(&self, op: Op, literal: Literal) -> Result<()> {
        let result = self.kernel.result(op, 0);
        let value = self.literal(self.elem(result)?, literal);
        self.define(op, vec![value; self.register_count(result)?]);
        Ok(())
    }

    /// A literal as an element.
    pub(super) fn literal(&self, elem: Elem, literal: Literal) -> Value<'c> {
        let e = self.e;
        let ty = self.element(elem);
        let Elem::Num(scalar) = elem else {
            return match literal {
                Literal::Int(0) => e.zero(ty),
                Literal::Int(address) => e.inttoptr(e.i64(address), ty),
                Literal::Float(_) => e.zero(ty),
            };
        };
        let bits = literal.bits(scalar);
        if scalar.is_int() || scalar.is_fp8() { e.int(ty, bits as i64) } else { e.float_constant(ty, bits) }
    }

    /// A shift's result, or zero where the count reaches the width, where MLIR's shifts are undefined.
    pub(super) fn shift(&self, elem: Elem, count: Value<'c>, shifted: Value<'c>) -> Value<'c> {
        let e = self.e;
        let ty = self.element(elem);
        // A one-bit count cannot name the width; only a count of zero is in range.
        let in_range = if elem == Elem::I1 {
            e.cmpi(Cmpi::Eq, count, e.int(ty, 0))
        } else {
            e.cmpi(Cmpi::Ult, count, e.int(ty, i64::from(elem.bits())))
        };
        e.select(in_range, shifted, e.int(ty, 0))
    }

    pub(super) fn multiply_high(&self, op: Op, elem: Elem, [narrow, wide]: [&str; 2]) -> Result<()> {
        let name = if elem == Elem::I64 { wide } else { narrow };
        self.each(op, |[a, b]| self.e.intrinsic(name, &[a, b], self.element(elem)))
    }

    /// An approximation that the hardware has for `f32` only.
    pub(super) fn approximate(&self, op: Op, intrinsic: &str) -> Result<()> {
        self.each(op, |[a]| self.e.intrinsic(intrinsic, &[a], self.e.ty.f32))
    }

    /// An instruction with a rounding mode.
    pub(super) fn rounded<const N: usize>(
        &self,
        op: Op,
        instruction: &str,
        mode: RoundingMode,
        wide: bool,
    ) -> Result<()> {
        let (letter, ty) = if wide { ("d", self.e.ty.f64) } else { ("f", self.e.ty.f32) };
        let name = format!("llvm.nvvm.{instruction}.{}.{letter}", rounding_suffix(mode));
        self.each(op, |operands: [Value<'c>; N]| self.e.intrinsic(&name, &operands, ty))
    }

    /// Computes in `f32` and rounds to the element's format.
    pub(super) fn in_single<const N: usize>(
        &self,
        elem: Elem,
        operands: [Value<'c>; N],
        compute: impl Fn([Value<'c>; N]) -> Value<'c>,
    ) -> Value<'c> {
        let single = self.e.ty.f32;
        self.e.truncf(compute(operands.map(|value| self.e.extf(value, single))), self.element(elem))
    }

    pub(super) fn copy_sign(&self, elem: Elem, magnitude: Value<'c>, sign: Value<'c>) -> Value<'c> {
        let e = self.e;
        if matches!(elem, Elem::F32 | Elem::F64) {
            return e.value("llvm.intr.copysign", &[magnitude, sign], self.element(elem), &[]);
        }
        let bits = |value| e.bitcast(value, e.ty.i16);
        let kept = e.andi(bits(magnitude), e.int(e.ty.i16, 0x7fff));
        let taken = e.andi(bits(sign), e.int(e.ty.i16, 0x8000));
        e.bitcast(e.ori(kept, taken), self.element(elem))
    }

    pub(super) fn add_pointer(&self, op: Op, elem: Elem) -> Result<()> {
        let e = self.e;
        let offset = self.elem(view::AddPtr::at(self.kernel, op).offset())?;
        let unit = match elem.pointee().map_or(1, Scalar::bytes) {
            1 => e.ty.i8,
            2 => e.ty.i16,
            4 => e.ty.i32,
            _ => e.ty.i64,
        };
        self.each(op, |[pointer, count]| {
            let count = if offset.bits() < 32 { e.extsi(count, e.ty.i32) } else { count };
            e.offset(pointer, count, unit)
        })
    }
}

/// A rounding mode as PTX calls it.
pub(super) fn rounding_suffix(mode: RoundingMode) -> &'static str {
    match mode {
        RoundingMode::Nearest => "rn",
        RoundingMode::Zero => "rz",
        RoundingMode::Down => "rm",
        RoundingMode::Up => "rp",
    }
}

pub(super) fn compare_integers(predicate: Predicate) -> Cmpi {
    match predicate {
        Predicate::Eq => Cmpi::Eq,
        Predicate::Ne => Cmpi::Ne,
        Predicate::Lt => Cmpi::Slt,
        Predicate::Le => Cmpi::Sle,
        Predicate::Gt => Cmpi::Sgt,
        Predicate::Ge => Cmpi::Sge,
        Predicate::Ult => Cmpi::Ult,
        Predicate::Ule => Cmpi::Ule,
        Predicate::Ugt => Cmpi::Ugt,
        Predicate::Uge => Cmpi::Uge,
    }
}

pub(super) fn compare_floats(predicate: Predicate) -> Cmpf {
    match predicate {
        Predicate::Eq => Cmpf::Oeq,
        Predicate::Ne => Cmpf::Une,
        Predicate::Lt | Predicate::Ult => Cmpf::Olt,
        Predicate::Le | Predicate::Ule => Cmpf::Ole,
        Predicate::Gt | Predicate::Ugt => Cmpf::Ogt,
        Predicate::Ge | Predicate::Uge => Cmpf::Oge,
    }
}
