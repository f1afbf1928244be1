//! Operations that work on each element alone.

use rtc_ir::{Elem, HintKind, Literal, Op, OpKind, Predicate, RoundingMode, Scalar};

use super::Lowering;
use crate::{
    emit::{Cmpf, Cmpi, Value},
    error::{CodegenError, Result},
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

    /// Lowers an operation: here what works on each element alone, elsewhere the rest. The match is exhaustive, so that
    /// a new operation is an error until it is answered for.
    pub(super) fn element_wise(&self, op: Op, kind: &OpKind) -> Result<()> {
        let e = self.e;
        let fuse = self.kernel.options.fp_fusion;
        let data = self.kernel.op(op);
        let first = data.operands.first().or(data.results.first());
        let Some(elem) = first.and_then(|value| self.kernel.value_type(*value).elem()) else {
            // Such as a barrier: nothing that has elements.
            return self.operation(op, kind);
        };
        let wide = elem == Elem::F64;
        match kind {
            OpKind::Constant { value } => self.constant(op, *value),
            OpKind::AddI {} => self.each(op, |[a, b]| e.addi(a, b)),
            OpKind::SubI {} => self.each(op, |[a, b]| e.subi(a, b)),
            OpKind::MulI {} => self.each(op, |[a, b]| e.muli(a, b)),
            OpKind::DivSI {} => self.each(op, |[a, b]| e.divsi(a, b)),
            OpKind::DivUI {} => self.each(op, |[a, b]| e.divui(a, b)),
            OpKind::RemSI {} => self.each(op, |[a, b]| e.remsi(a, b)),
            OpKind::RemUI {} => self.each(op, |[a, b]| e.remui(a, b)),
            OpKind::AndI {} => self.each(op, |[a, b]| e.andi(a, b)),
            OpKind::OrI {} => self.each(op, |[a, b]| e.ori(a, b)),
            OpKind::XorI {} => self.each(op, |[a, b]| e.xori(a, b)),
            OpKind::ShlI {} => self.each(op, |[a, b]| self.shift(elem, b, e.shli(a, b))),
            OpKind::ShrUI {} => self.each(op, |[a, b]| self.shift(elem, b, e.shrui(a, b))),
            OpKind::ShrSI {} => self.each(op, |[a, b]| {
                let last = e.int(self.element(elem), i64::from(elem.bits()) - 1);
                e.shrsi(a, e.minui(b, last))
            }),
            OpKind::MinSI {} => self.each(op, |[a, b]| e.minsi(a, b)),
            OpKind::MaxSI {} => self.each(op, |[a, b]| e.maxsi(a, b)),
            OpKind::MinUI {} => self.each(op, |[a, b]| e.minui(a, b)),
            OpKind::MaxUI {} => self.each(op, |[a, b]| e.maxui(a, b)),
            OpKind::MulHiUI {} => self.multiply_high(op, elem, ["llvm.nvvm.mulhi.ui", "llvm.nvvm.mulhi.ull"]),
            OpKind::MulHiSI {} => self.multiply_high(op, elem, ["llvm.nvvm.mulhi.i", "llvm.nvvm.mulhi.ll"]),
            OpKind::AbsI {} => self.each(op, |[a]| e.absi(a)),
            OpKind::Clz {} => self.each(op, |[a]| e.clz(a)),
            OpKind::PopC {} => self.each(op, |[a]| e.unary("llvm.intr.ctpop", a)),
            OpKind::BRev {} => {
                let name = format!("llvm.bitreverse.i{}", elem.bits());
                self.each(op, |[a]| e.intrinsic(&name, &[a], self.element(elem)))
            }
            OpKind::CmpI { predicate } => self.each(op, |[a, b]| {
                let (a, b) = if elem.is_ptr() { (e.ptrtoint(a, e.ty.i64), e.ptrtoint(b, e.ty.i64)) } else { (a, b) };
                e.cmpi(compare_integers(*predicate), a, b)
            }),
            OpKind::AddF {} => self.each(op, |[a, b]| e.addf(a, b, fuse)),
            OpKind::SubF {} => self.each(op, |[a, b]| e.subf(a, b, fuse)),
            OpKind::MulF {} => self.each(op, |[a, b]| e.mulf(a, b, fuse)),
            OpKind::DivF {} if wide => self.each(op, |[a, b]| e.divf(a, b, false)),
            OpKind::DivF {} => self.divide(op, elem),
            OpKind::DivFApprox {} => self.each(op, |[a, b]| e.intrinsic("llvm.nvvm.div.approx.f", &[a, b], e.ty.f32)),
            OpKind::DivFRn {} if wide => self.each(op, |[a, b]| e.divf(a, b, false)),
            OpKind::DivFRn {} => self.each(op, |[a, b]| self.in_single(elem, [a, b], |[a, b]| e.divf(a, b, false))),
            OpKind::Fma {} => self.each(op, |[a, b, c]| e.fma(a, b, c)),
            OpKind::NegF {} => self.each(op, |[a]| e.unary("llvm.fneg", a)),
            OpKind::AbsF {} if elem.num().is_some_and(Scalar::is_fp8) => {
                self.each(op, |[a]| e.andi(a, e.int(e.ty.i8, 0x7f)))
            }
            OpKind::AbsF {} => self.each(op, |[a]| e.unary("llvm.intr.fabs", a)),
            OpKind::CopySign {} => self.each(op, |[a, b]| self.copy_sign(elem, a, b)),
            OpKind::MinNum {} => self.each(op, |[a, b]| e.minnumf(a, b)),
            OpKind::MaxNum {} => self.each(op, |[a, b]| e.maxnumf(a, b)),
            OpKind::Minimum {} => self.each(op, |[a, b]| e.minimumf(a, b)),
            OpKind::Maximum {} => self.each(op, |[a, b]| e.maximumf(a, b)),
            OpKind::Floor {} => self.each(op, |[a]| e.unary("llvm.intr.floor", a)),
            OpKind::Ceil {} => self.each(op, |[a]| e.unary("llvm.intr.ceil", a)),
            OpKind::Truncate {} => self.each(op, |[a]| e.unary("llvm.intr.trunc", a)),
            OpKind::Rint {} => self.each(op, |[a]| e.unary("llvm.intr.roundeven", a)),
            OpKind::Sqrt { .. } if wide => self.each(op, |[a]| e.unary("llvm.intr.sqrt", a)),
            OpKind::Sqrt { ftz: true } => self.approximate(op, "llvm.nvvm.sqrt.approx.ftz.f"),
            OpKind::Sqrt { ftz: false } => self.approximate(op, "llvm.nvvm.sqrt.approx.f"),
            OpKind::SqrtRn {} => self.each(op, |[a]| e.unary("llvm.intr.sqrt", a)),
            OpKind::AddFRounded { mode } => self.rounded::<2>(op, "add", *mode, wide),
            OpKind::MulFRounded { mode } => self.rounded::<2>(op, "mul", *mode, wide),
            OpKind::DivFRounded { mode } => self.rounded::<2>(op, "div", *mode, wide),
            OpKind::FmaRounded { mode } => self.rounded::<3>(op, "fma", *mode, wide),
            OpKind::SqrtRounded { mode } => self.rounded::<1>(op, "sqrt", *mode, wide),
            OpKind::NarrowRounded { mode } => {
                let name = format!("llvm.nvvm.d2f.{}", rounding_suffix(*mode));
                self.each(op, |[a]| e.intrinsic(&name, &[a], e.ty.f32))
            }
            OpKind::Rsqrt { .. } if wide => {
                self.each(op, |[a]| e.intrinsic("llvm.nvvm.rsqrt.approx.d", &[a], e.ty.f64))
            }
            OpKind::Rsqrt { ftz: true } => self.approximate(op, "llvm.nvvm.rsqrt.approx.ftz.f"),
            OpKind::Rsqrt { ftz: false } => self.approximate(op, "llvm.nvvm.rsqrt.approx.f"),
            OpKind::Rcp {} if wide => self.each(op, |[a]| e.intrinsic("llvm.nvvm.rcp.rn.d", &[a], e.ty.f64)),
            OpKind::Rcp {} => self.approximate(op, "llvm.nvvm.rcp.approx.ftz.f"),
            OpKind::Exp2 { ftz: true } => self.approximate(op, "llvm.nvvm.ex2.approx.ftz.f32"),
            OpKind::Exp2 { ftz: false } => self.approximate(op, "llvm.nvvm.ex2.approx.f32"),
            OpKind::Log2 {} => self.approximate(op, "llvm.nvvm.lg2.approx.f"),
            OpKind::SinApprox {} => self.approximate(op, "llvm.nvvm.sin.approx.f"),
            OpKind::CosApprox {} => self.approximate(op, "llvm.nvvm.cos.approx.f"),
            OpKind::TanhApprox {} => {
                self.each(op, |[a]| e.assembly("tanh.approx.f32 $0, $1;", "=f,f", &[a], &[e.ty.f32], false)[0])
            }
            OpKind::CmpF { predicate } => self.each(op, |[a, b]| e.cmpf(compare_floats(*predicate), a, b)),
            OpKind::Select {} => self.each(op, |[condition, a, b]| e.select(condition, a, b)),
            OpKind::Hint { kind: HintKind::MaxConstancy, values } => self.share_runs(op, values),
            OpKind::Hint { kind: HintKind::MultipleOf | HintKind::MaxContiguous, .. } => self.each(op, |[a]| a),
            OpKind::AddPtr {} => self.add_pointer(op, elem),
            OpKind::TruncI { .. }
            | OpKind::ExtSI { .. }
            | OpKind::ExtUI { .. }
            | OpKind::CastF { .. }
            | OpKind::FpToSI { .. }
            | OpKind::FpToUI { .. }
            | OpKind::SIToFp { .. }
            | OpKind::UIToFp { .. }
            | OpKind::Bitcast { .. }
            | OpKind::PtrToInt {}
            | OpKind::IntToPtr { .. }
            | OpKind::ProgramId { .. }
            | OpKind::NumPrograms { .. }
            | OpKind::Arange { .. }
            | OpKind::Splat {}
            | OpKind::ExpandDims { .. }
            | OpKind::Broadcast {}
            | OpKind::Reshape { .. }
            | OpKind::Trans { .. }
            | OpKind::Join {}
            | OpKind::Split {}
            | OpKind::Cat {}
            | OpKind::Unsplat {}
            | OpKind::ConvertLayout {}
            | OpKind::Load { .. }
            | OpKind::Store { .. }
            | OpKind::AtomicRmw { .. }
            | OpKind::AtomicCas { .. }
            | OpKind::Dot { .. }
            | OpKind::Reduce { .. }
            | OpKind::Scan { .. }
            | OpKind::MapElements {}
            | OpKind::Gather { .. }
            | OpKind::Histogram { .. }
            | OpKind::Sort { .. }
            | OpKind::ForRange { .. }
            | OpKind::WhileLoop {}
            | OpKind::IfElse {}
            | OpKind::WarpSpecialize { .. }
            | OpKind::Yields {}
            | OpKind::Condition {}
            | OpKind::Ret {}
            | OpKind::Assume {}
            | OpKind::Barrier {}
            | OpKind::Print { .. }
            | OpKind::Assertion { .. }
            | OpKind::InlineAsm { .. }
            | OpKind::ExternCall { .. }
            | OpKind::SpecialRegister { .. }
            | OpKind::GridDependency { .. }
            | OpKind::AllocShared { .. }
            | OpKind::AllocBarriers { .. }
            | OpKind::Slot {}
            | OpKind::SharedTrans { .. }
            | OpKind::SharedSlice { .. }
            | OpKind::LocalStore {}
            | OpKind::LocalLoad {}
            | OpKind::CopyAsync { .. }
            | OpKind::CopyCommit {}
            | OpKind::CopyWait { .. }
            | OpKind::BarrierExpect { .. }
            | OpKind::BarrierArrive {}
            | OpKind::BarrierWait {}
            | OpKind::CopyDesc {}
            | OpKind::CopyDescStore {}
            | OpKind::CopyDescReduce { .. }
            | OpKind::CopyDescWait { .. }
            | OpKind::Mma {}
            | OpKind::MmaAsync {}
            | OpKind::MmaWait { .. }
            | OpKind::FenceAsync {} => self.operation(op, kind),
            OpKind::MakeDesc {}
            | OpKind::DescSize { .. }
            | OpKind::DescStride { .. }
            | OpKind::DescLoad {}
            | OpKind::DescStore {}
            | OpKind::DescReduce { .. }
            | OpKind::DescGather {}
            | OpKind::DescScatter {}
            | OpKind::MakeBlockPtr { .. }
            | OpKind::Advance {}
            | OpKind::BlockLoad { .. }
            | OpKind::BlockStore { .. } => {
                Err(CodegenError::lowering(format!("`{}`, which a pass lowers", kind.spec().mnemonic)))
            }
        }
    }

    fn constant(&self, op: Op, literal: Literal) -> Result<()> {
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
    fn shift(&self, elem: Elem, count: Value<'c>, shifted: Value<'c>) -> Value<'c> {
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

    fn multiply_high(&self, op: Op, elem: Elem, [narrow, wide]: [&str; 2]) -> Result<()> {
        let name = if elem == Elem::I64 { wide } else { narrow };
        self.each(op, |[a, b]| self.e.intrinsic(name, &[a, b], self.element(elem)))
    }

    /// An approximation that the hardware has for `f32` only.
    fn approximate(&self, op: Op, intrinsic: &str) -> Result<()> {
        self.each(op, |[a]| self.e.intrinsic(intrinsic, &[a], self.e.ty.f32))
    }

    /// An instruction with a rounding mode.
    fn rounded<const N: usize>(&self, op: Op, instruction: &str, mode: RoundingMode, wide: bool) -> Result<()> {
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

    fn copy_sign(&self, elem: Elem, magnitude: Value<'c>, sign: Value<'c>) -> Value<'c> {
        let e = self.e;
        if matches!(elem, Elem::F32 | Elem::F64) {
            return e.value("llvm.intr.copysign", &[magnitude, sign], self.element(elem), &[]);
        }
        let bits = |value| e.bitcast(value, e.ty.i16);
        let kept = e.andi(bits(magnitude), e.int(e.ty.i16, 0x7fff));
        let taken = e.andi(bits(sign), e.int(e.ty.i16, 0x8000));
        e.bitcast(e.ori(kept, taken), self.element(elem))
    }

    fn add_pointer(&self, op: Op, elem: Elem) -> Result<()> {
        let e = self.e;
        let offset = self.elem(self.kernel.operand(op, 1))?;
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
fn rounding_suffix(mode: RoundingMode) -> &'static str {
    match mode {
        RoundingMode::Nearest => "rn",
        RoundingMode::Zero => "rz",
        RoundingMode::Down => "rm",
        RoundingMode::Up => "rp",
    }
}

fn compare_integers(predicate: Predicate) -> Cmpi {
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

fn compare_floats(predicate: Predicate) -> Cmpf {
    match predicate {
        Predicate::Eq => Cmpf::Oeq,
        Predicate::Ne => Cmpf::Une,
        Predicate::Lt | Predicate::Ult => Cmpf::Olt,
        Predicate::Le | Predicate::Ule => Cmpf::Ole,
        Predicate::Gt | Predicate::Ugt => Cmpf::Ogt,
        Predicate::Ge | Predicate::Uge => Cmpf::Oge,
    }
}
