//! Primitive operations for the standard library: one tile-IR operation each, on blocks and scalars. Arguments are
//! broadcast; a Python number takes the type of the tensor arguments.
//!
//! They are declared here, as other functions are in their `.rt` files:
//!
//! ```text
//! #: prim
//! def abs(a):
//! def add_rounded(a, b, mode):
//! def brev(a):
//! def ceil(a):
//! def clz(a):
//! def copysign(a, b):
//! def cos_approx(a):
//! def div_approx(a, b):
//! def div_rn(a, b):
//! def div_rounded(a, b, mode):
//! def exp2_approx(a):
//! def exp2_approx_ftz(a):
//! def floor(a):
//! def fma(a, b, c):
//! def fma_rounded(a, b, c, mode):
//! def iota(a, axis):
//! def log2_approx(a):
//! def max_num(a, b):
//! def min_num(a, b):
//! def mul_rn(a, b):
//! def mul_rounded(a, b, mode):
//! def neg(a):
//! def popc(a):
//! def rcp_approx(a):
//! def rint(a):
//! def rsqrt_approx(a):
//! def sin_approx(a):
//! def sqrt_approx(a):
//! def sqrt_rn(a):
//! def sqrt_rounded(a, mode):
//! def tanh_approx(a):
//! def to_fp32_rounded(a, mode):
//! def trunc(a):
//! def umulhi(a, b):
//! ```

use rtc_ir::{Literal, OpKind, RoundingMode};
use rtc_source::{Code, Span};

use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::R;
use crate::types::ElemTy;
use crate::values::{Arg, Tensor, Val};

pub(super) const TABLE: &[Row] = &[
    row("sqrt_rn", |cx, args| each(cx, args, OpKind::SqrtRn {})),
    row("exp2_approx", |cx, args| each(cx, args, OpKind::Exp2 { ftz: false })),
    row("log2_approx", |cx, args| each(cx, args, OpKind::Log2 {})),
    row("sin_approx", |cx, args| each(cx, args, OpKind::SinApprox {})),
    row("cos_approx", |cx, args| each(cx, args, OpKind::CosApprox {})),
    row("tanh_approx", |cx, args| each(cx, args, OpKind::TanhApprox {})),
    row("rcp_approx", |cx, args| each(cx, args, OpKind::Rcp {})),
    row("floor", |cx, args| each(cx, args, OpKind::Floor {})),
    row("ceil", |cx, args| each(cx, args, OpKind::Ceil {})),
    row("trunc", |cx, args| each(cx, args, OpKind::Truncate {})),
    row("rint", |cx, args| each(cx, args, OpKind::Rint {})),
    row("abs", |cx, args| each(cx, args, OpKind::AbsF {})),
    row("neg", |cx, args| each(cx, args, OpKind::NegF {})),
    row("brev", |cx, args| each(cx, args, OpKind::BRev {})),
    row("div_rn", |cx, args| each(cx, args, OpKind::DivFRn {})),
    row("copysign", |cx, args| each(cx, args, OpKind::CopySign {})),
    row("min_num", |cx, args| each(cx, args, OpKind::MinNum {})),
    row("max_num", |cx, args| each(cx, args, OpKind::MaxNum {})),
    row("umulhi", |cx, args| each(cx, args, OpKind::MulHiUI {})),
    row("exp2_approx_ftz", |cx, args| flushing(cx, args, |ftz| OpKind::Exp2 { ftz })),
    row("sqrt_approx", |cx, args| flushing(cx, args, |ftz| OpKind::Sqrt { ftz })),
    row("rsqrt_approx", |cx, args| flushing(cx, args, |ftz| OpKind::Rsqrt { ftz })),
    row("fma", |cx, args| each(cx, args, OpKind::Fma {})),
    row("div_approx", |cx, args| each(cx, args, OpKind::DivFApprox {})),
    row("mul_rn", mul_rn),
    row("add_rounded", |cx, args| rounded(cx, args, |mode| OpKind::AddFRounded { mode })),
    row("mul_rounded", |cx, args| rounded(cx, args, |mode| OpKind::MulFRounded { mode })),
    row("div_rounded", |cx, args| rounded(cx, args, |mode| OpKind::DivFRounded { mode })),
    row("fma_rounded", |cx, args| rounded(cx, args, |mode| OpKind::FmaRounded { mode })),
    row("sqrt_rounded", |cx, args| rounded(cx, args, |mode| OpKind::SqrtRounded { mode })),
    row("to_fp32_rounded", to_fp32_rounded),
    row("clz", |cx, args| counted(cx, args, OpKind::Clz {})),
    row("popc", |cx, args| counted(cx, args, OpKind::PopC {})),
    row("iota", iota),
];

/// The arguments in one type and shape: that of the tensors among them.
fn operands<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Vec<Tensor>> {
    in_one_shape(cx, &args.all(), args.span)
}

fn in_one_shape<'a>(cx: &mut Cx<'a>, list: &[Arg<'a>], span: Span) -> R<Vec<Tensor>> {
    let elem = list.iter().find_map(|a| match &a.val {
        Val::Tensor(t) => Some(t.elem),
        _ => None,
    });
    let mut tensors = Vec::new();
    let mut shape = crate::types::scalar_shape();
    for arg in list {
        let t = match (&arg.val, elem) {
            (Val::Const(c), Some(elem)) => cx.const_as(c, elem, crate::types::scalar_shape())?,
            _ => cx.tensor(arg, "an argument of a primitive")?,
        };
        shape = cx.common((Tensor { shape, ..t }, span), (t, arg.span), "in the standard library")?;
        tensors.push(t);
    }
    tensors.into_iter().map(|t| cx.broadcast_to(t, shape)).collect()
}

fn each<'a>(cx: &mut Cx<'a>, args: &Args<'a>, kind: OpKind) -> R<Val<'a>> {
    let tensors = operands(cx, args)?;
    let values: Vec<_> = tensors.iter().map(|t| t.value).collect();
    Ok(Val::Tensor(cx.each(kind, &values, tensors[0])?))
}

/// An operation that flushes denormals unless the launch option `enable_reflect_ftz` is off.
fn flushing<'a>(cx: &mut Cx<'a>, args: &Args<'a>, kind: fn(bool) -> OpKind) -> R<Val<'a>> {
    let kind = kind(cx.options.enable_reflect_ftz);
    each(cx, args, kind)
}

/// A product that is rounded on its own: as a FMA with negative zero it cannot be contracted further.
fn mul_rn<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = operands(cx, args)?;
    let zero = cx.literal(Literal::float(-0.0), t[0].elem, t[0].shape)?;
    Ok(Val::Tensor(cx.each(OpKind::Fma {}, &[t[0].value, t[1].value, zero.value], t[0])?))
}

/// The rounding mode.
fn rounding_mode<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<RoundingMode> {
    let word = args.text(cx, "mode")?;
    match RoundingMode::WORDS.iter().find(|(_, w)| word.as_deref() == Some(w)) {
        Some((mode, _)) => Ok(*mode),
        None => cx.error(Code::INTERNAL, args.span, "a rounding mode is rn, rz, rd or ru", ""),
    }
}

/// An operation with a rounding mode.
fn rounded<'a>(cx: &mut Cx<'a>, args: &Args<'a>, kind: impl Fn(RoundingMode) -> OpKind) -> R<Val<'a>> {
    let mode = rounding_mode(cx, args)?;
    let tensors = in_one_shape(cx, &args.all_but("mode"), args.span)?;
    let values: Vec<_> = tensors.iter().map(|t| t.value).collect();
    Ok(Val::Tensor(cx.each(kind(mode), &values, tensors[0])?))
}

/// An fp64 as fp32.
fn to_fp32_rounded<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let mode = rounding_mode(cx, args)?;
    let t = args.tensor(cx, "a")?;
    let value = cx.emit(OpKind::NarrowRounded { mode }, &[t.value])?;
    Ok(Val::Tensor(Tensor { value, elem: ElemTy::F32, shape: t.shape }))
}

/// A count of bits as `int32`.
fn counted<'a>(cx: &mut Cx<'a>, args: &Args<'a>, kind: OpKind) -> R<Val<'a>> {
    let t = operands(cx, args)?;
    let count = cx.each(kind, &[t[0].value], t[0])?;
    Ok(Val::Tensor(cx.cast(count, ElemTy::I32)?))
}

/// The position along an axis.
fn iota<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = args.tensor(cx, "a")?;
    let axis = args.axis(cx, "axis", t.shape.rank())?;
    let size = t.shape[axis];
    let Some(line) = rtc_ir::Shape::new(&[size]) else {
        return cx.error(Code::INTERNAL, args.span, "a block without dimensions has no positions", "");
    };
    let value = cx.emit(OpKind::Arange { start: 0, end: i64::from(size) }, &[])?;
    let mut positions = Tensor { value, elem: ElemTy::I32, shape: line };
    for _ in 0..axis {
        positions = cx.insert_axis(positions, 0, args.span)?;
    }
    while positions.shape.rank() < t.shape.rank() {
        let end = positions.shape.rank();
        positions = cx.insert_axis(positions, end, args.span)?;
    }
    Ok(Val::Tensor(cx.broadcast_to(positions, t.shape)?))
}
