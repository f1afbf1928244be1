//! Casts between element types, and constants that become run-time values.

use rtc_ir::{Literal, OpKind, Predicate, Rounding};
use rtc_source::{Code, Diagnostic, Span};

use crate::emitter::{Emitter, R};
use crate::promote::{const_dtype, const_kind};
use crate::spec::DType;
use crate::types::{ElemTy, scalar_shape};
use crate::values::{Arg, Const, Tensor, Val};

impl<'a> Emitter<'a> {
    /// A number or run-time value as a run-time value; a constant takes its own type.
    pub(crate) fn tensor(&mut self, arg: &Arg<'a>, what: &str) -> R<Tensor> {
        match &arg.val {
            Val::Tensor(t) => Ok(*t),
            Val::Const(c) if const_kind(c).is_some() => self.const_tensor(c, arg.span),
            other => {
                let help = match other {
                    Val::BlockPtr(_) => "read it with `tl.load` first",
                    Val::Descriptor(_) => "read it with `.load([...])` first",
                    Val::Tuple(_) => "take an element with `[i]`, or unpack it",
                    Val::Function(_) | Val::Builtin(_) | Val::Method(_) => "call it with `(...)`",
                    Val::Module(_) => "define a global constant with its value, or pass it as an argument",
                    Val::Const(Const::Str(_)) => "write a number, such as `0.0`",
                    Val::Type(_) => "cast a value to it: `x.to(dtype)`",
                    _ => "",
                };
                let text = other.describe();
                let mut d = Diagnostic::error(
                    Code::TYPE_MISMATCH,
                    arg.span,
                    format!("{what} must be a number, a scalar or a block, not {text}"),
                )
                .primary(format!("this is {text}"));
                if let Val::Const(Const::None) = other {
                    d = self.explain_none(d, arg.span);
                } else if !help.is_empty() {
                    d = d.help(help);
                }
                self.fail(d)
            }
        }
    }

    /// A number as a run-time scalar of the type that it takes on its own.
    pub(crate) fn const_tensor(&mut self, c: &Const, span: Span) -> R<Tensor> {
        match const_dtype(c) {
            Some(dtype) => self.const_as(c, ElemTy::Num(dtype), scalar_shape()),
            None => self.error(
                Code::OUT_OF_RANGE,
                span,
                format!("the constant {c} does not fit in 64 bits"),
                "integers of the language have at most 64 bits",
            ),
        }
    }

    /// The value that an assignment stores: numbers become run-time scalars, tuples element by element. The fields of
    /// an aggregate keep their declared types.
    pub(crate) fn decay(&mut self, val: Val<'a>, span: Span) -> R<Val<'a>> {
        Ok(match val {
            Val::Const(c) if const_kind(&c).is_some() => Val::Tensor(self.const_tensor(&c, span)?),
            Val::Tuple(t) if t.is_aggregate() => Val::Tuple(t),
            Val::Tuple(t) if t.items.iter().any(|v| matches!(v, Val::Const(_) | Val::Tuple(_))) => {
                let mut tuple = (*t).clone();
                for item in &mut tuple.items {
                    *item = self.decay(item.clone(), span)?;
                }
                Val::Tuple(std::rc::Rc::new(tuple))
            }
            other => other,
        })
    }

    /// `t` as elements of type `to`.
    pub(crate) fn cast(&mut self, t: Tensor, to: ElemTy) -> R<Tensor> {
        self.cast_rounding(t, to, Rounding::NearestEven)
    }

    pub(crate) fn cast_rounding(&mut self, t: Tensor, to: ElemTy, rounding: Rounding) -> R<Tensor> {
        if t.elem == to {
            return Ok(t);
        }
        match (t.elem, to) {
            (ElemTy::Ptr(_), ElemTy::Ptr(_)) => self.retag(t, to),
            (ElemTy::Ptr(_), ElemTy::Num(d)) => self.cast_from_pointer(t, d),
            (ElemTy::Num(d), ElemTy::Ptr(_)) if d.is_integer() => {
                let wide = self.cast(t, ElemTy::I64)?;
                let elem = self.ir_elem(to)?;
                let value = self.emit(OpKind::IntToPtr { to: elem }, &[wide.value])?;
                Ok(Tensor { value, elem: to, ..t })
            }
            (ElemTy::Num(from), ElemTy::Num(to)) => self.cast_number(t, from, to, rounding),
            (ElemTy::Num(_), ElemTy::Ptr(_)) => self.no_cast(
                t,
                to,
                "of a pointer `x`, `x.dtype.element_ty` is the type of its elements, and `x.dtype` that of `x` itself",
            ),
        }
    }

    fn no_cast(&mut self, t: Tensor, to: ElemTy, help: &str) -> R<Tensor> {
        let d = Diagnostic::error(Code::TYPE_MISMATCH, self.span, format!("{t} cannot be cast to {to}"))
            .primary(format!("casts {t}"))
            .help(help);
        self.fail(d)
    }

    /// The same bits under another type; the IR elements differ at most in name.
    fn retag(&mut self, t: Tensor, to: ElemTy) -> R<Tensor> {
        let (from, elem) = (self.ir_elem(t.elem)?, self.ir_elem(to)?);
        let value = if from == elem { t.value } else { self.emit(OpKind::Bitcast { to: elem }, &[t.value])? };
        Ok(Tensor { value, elem: to, ..t })
    }

    fn cast_from_pointer(&mut self, t: Tensor, to: DType) -> R<Tensor> {
        match to {
            DType::Int64 | DType::UInt64 => {
                let value = self.emit(OpKind::PtrToInt {}, &[t.value])?;
                Ok(Tensor { value, elem: ElemTy::Num(to), ..t })
            }
            DType::UInt1 => {
                let wide = self.cast_from_pointer(t, DType::Int64)?;
                self.cast(wide, ElemTy::I1)
            }
            _ => self.no_cast(t, ElemTy::Num(to), "an address has 64 bits: cast to `tl.int64` first"),
        }
    }

    fn cast_number(&mut self, t: Tensor, from: DType, to: DType, rounding: Rounding) -> R<Tensor> {
        let target = ElemTy::Num(to);
        let elem = self.ir_elem(target)?;
        self.ir_elem(t.elem)?;
        let done = |value| Ok(Tensor { value, elem: target, ..t });
        if to == DType::UInt1 {
            return self.is_not_zero(t);
        }
        match (from.is_integer(), to.is_integer()) {
            (true, true) => {
                if from.bits() == to.bits() {
                    return done(t.value);
                }
                let kind = if from.bits() > to.bits() {
                    OpKind::TruncI { to: elem }
                } else if from.is_signed() {
                    OpKind::ExtSI { to: elem }
                } else {
                    OpKind::ExtUI { to: elem }
                };
                done(self.emit(kind, &[t.value])?)
            }
            (true, false) if target.is_fp8() => self.no_cast(t, target, "cast to `tl.float32` first"),
            (true, false) => {
                let kind = if from.is_signed() { OpKind::SIToFp { to: elem } } else { OpKind::UIToFp { to: elem } };
                done(self.emit(kind, &[t.value])?)
            }
            (false, true) if t.elem.is_fp8() => self.no_cast(t, target, "cast to `tl.float32` first"),
            (false, true) => {
                let kind = if to.is_signed() { OpKind::FpToSI { to: elem } } else { OpKind::FpToUI { to: elem } };
                done(self.emit(kind, &[t.value])?)
            }
            (false, false) => self.cast_float(t, from, to, rounding),
        }
    }

    /// Conversions that no hardware has go through an intermediate format.
    fn cast_float(&mut self, t: Tensor, from: DType, to: DType, rounding: Rounding) -> R<Tensor> {
        use DType::{Bf16, Fp8E4B15, Fp16, Fp32, Fp64};
        let fp8 = crate::types::is_fp8;
        let through = match (from, to) {
            (Fp8E4B15, Fp16) | (Fp16, Fp8E4B15) => None,
            (Fp8E4B15, _) => Some((Fp16, Rounding::NearestEven)),
            // The software format first drops what fp16 does not hold.
            (_, Fp8E4B15) if from == Fp32 => Some((Fp16, Rounding::TowardZero)),
            (_, Fp8E4B15) => Some((Fp32, Rounding::NearestEven)),
            (Fp16, Bf16) | (Bf16, Fp16) => Some((Fp32, Rounding::NearestEven)),
            (a, b) if fp8(a) && fp8(b) => Some((Fp16, Rounding::NearestEven)),
            (a, Fp64) if fp8(a) => Some((Fp32, Rounding::NearestEven)),
            (Bf16 | Fp64, b) if fp8(b) => Some((Fp32, Rounding::NearestEven)),
            _ => None,
        };
        if let Some((middle, rounding)) = through {
            let t = self.cast_rounding(t, ElemTy::Num(middle), rounding)?;
            return self.cast_rounding(t, ElemTy::Num(to), Rounding::NearestEven);
        }
        let narrows = to.bits() < from.bits();
        let rounding = if narrows { rounding } else { Rounding::NearestEven };
        let elem = self.ir_elem(ElemTy::Num(to))?;
        let value = self.emit(OpKind::CastF { to: elem, rounding }, &[t.value])?;
        Ok(Tensor { value, elem: ElemTy::Num(to), ..t })
    }

    /// `t != 0`, true on NaN.
    pub(crate) fn is_not_zero(&mut self, t: Tensor) -> R<Tensor> {
        let t = match t.elem {
            ElemTy::Num(DType::UInt1) => return Ok(t),
            ElemTy::Ptr(_) => self.cast_from_pointer(t, DType::Int64)?,
            e if e.is_fp8() => self.cast(t, ElemTy::F32)?,
            ElemTy::Num(_) => t,
        };
        let (literal, kind) = if t.elem.is_float() {
            (Literal::float(0.0), OpKind::CmpF { predicate: Predicate::Ne })
        } else {
            (Literal::Int(0), OpKind::CmpI { predicate: Predicate::Ne })
        };
        let zero = self.literal(literal, t.elem, t.shape)?;
        let value = self.emit(kind, &[t.value, zero.value])?;
        Ok(Tensor { value, elem: ElemTy::I1, ..t })
    }

    /// `x.to(dtype, ...)` with its options.
    pub(crate) fn cast_checked(
        &mut self,
        t: Tensor,
        to: ElemTy,
        rounding: Option<(&str, Span)>,
        bitcast: bool,
    ) -> R<Tensor> {
        if bitcast {
            return self.bitcast(t, to);
        }
        // Between equal types nothing is rounded, so that the mode does not matter.
        let Some((name, span)) = rounding.filter(|_| t.elem != to) else { return self.cast(t, to) };
        let rounding = match name {
            "rtne" => Rounding::NearestEven,
            "rtz" => Rounding::TowardZero,
            other => {
                return self.error(
                    Code::BAD_VALUE,
                    span,
                    format!("there is no rounding mode {other:?}"),
                    "write \"rtne\" (to nearest even) or \"rtz\" (toward zero)",
                );
            }
        };
        let narrows = t.elem.is_float() && to.is_float() && to.bits() < t.elem.bits();
        if !narrows {
            return self.error(
                Code::BAD_VALUE,
                span,
                format!("`fp_downcast_rounding` is for casts to a narrower float, not from {} to {to}", t.elem),
                "leave it out",
            );
        }
        let possible =
            matches!((t.elem.num(), to.num()), (Some(DType::Fp32), Some(DType::Fp16 | DType::Bf16 | DType::Fp8E5)));
        if rounding == Rounding::TowardZero && !possible {
            return self.error(
                Code::BAD_VALUE,
                span,
                format!("rounding toward zero is not possible from {} to {to}", t.elem),
                "\"rtz\" works from fp32 to fp16, bf16 and fp8e5",
            );
        }
        self.cast_rounding(t, to, rounding)
    }

    pub(crate) fn bitcast(&mut self, t: Tensor, to: ElemTy) -> R<Tensor> {
        if matches!((t.elem, to), (ElemTy::Ptr(_), _) | (_, ElemTy::Ptr(_))) {
            return self.cast(t, to);
        }
        if t.elem.bits() != to.bits() {
            let (from, bits, wanted) = (t.elem, t.elem.bits(), to.bits());
            let message = format!("a bitcast keeps the width, but {from} has {bits} bits and {to} has {wanted}");
            let d = Diagnostic::error(Code::TYPE_MISMATCH, self.span, message)
                .primary(format!("casts {t}"))
                .help("leave out `bitcast=True` to convert the value");
            return self.fail(d);
        }
        self.retag(t, to)
    }
}
