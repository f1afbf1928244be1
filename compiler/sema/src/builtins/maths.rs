//! Arithmetic and elementary functions with the type rules of the language.

use rtc_ir::OpKind;
use rtc_source::{Code, Diagnostic};
use rtc_syntax::ast::Operator;

use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::R;
use crate::spec::DType;
use crate::types::ElemTy;
use crate::values::{Arg, Tensor, Val};

pub(super) const TABLE: &[Row] = &[
    row("exp", through_library),
    row("exp2", through_library),
    row("log", through_library),
    row("log2", through_library),
    row("sin", through_library),
    row("cos", through_library),
    row("sqrt", through_library),
    row("rsqrt", through_library),
    row("erf", through_library),
    row("floor", |cx, args| direct(cx, args, OpKind::Floor {})),
    row("ceil", |cx, args| direct(cx, args, OpKind::Ceil {})),
    row("sqrt_rn", |cx, args| single(cx, args, &["x"], |cx, t| cx.each(OpKind::SqrtRn {}, &[t[0].value], t[0]))),
    row("div_rn", |cx, args| {
        single(cx, args, &["x", "y"], |cx, t| cx.each(OpKind::DivFRn {}, &[t[0].value, t[1].value], t[0]))
    }),
    row("fdiv", fdiv),
    row("abs", abs),
    row("fma", fma),
    row("umulhi", umulhi),
    row("maximum", |cx, args| extremum(cx, args, true).map(Val::Tensor)),
    row("minimum", |cx, args| extremum(cx, args, false).map(Val::Tensor)),
    row("clamp", clamp),
    row("add", |cx, args| operator(cx, args, Operator::Add)),
    row("sub", |cx, args| operator(cx, args, Operator::Sub)),
    row("mul", |cx, args| operator(cx, args, Operator::Mult)),
    row("logical_and", |cx, args| logical(cx, args, OpKind::AndI {})),
    row("logical_or", |cx, args| logical(cx, args, OpKind::OrI {})),
];

const FP64: ElemTy = ElemTy::Num(DType::Fp64);

/// The argument of an elementary function: fp32 or fp64. A method call on a half goes by way of fp32 and back.
fn wide_argument<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<(Tensor, Option<ElemTy>)> {
    let arg = args.arg("x");
    let t = cx.tensor(&arg, &args.what("x"))?;
    if t.elem == ElemTy::F32 || t.elem == FP64 {
        return Ok((t, None));
    }
    let half = matches!(t.elem.num(), Some(DType::Fp16 | DType::Bf16));
    if half && args.method {
        return Ok((cx.cast(t, ElemTy::F32)?, Some(t.elem)));
    }
    let help = if half {
        format!("compute in fp32 and cast back: `tl.{}(x.to(tl.float32)).to(x.dtype)`", args.name)
    } else {
        "cast it first: `x.to(tl.float32)`".into()
    };
    let d = Diagnostic::error(
        Code::TYPE_MISMATCH,
        args.span,
        format!("`{}` takes fp32 or fp64, not {}", args.name, t.elem),
    )
    .label(arg.span, format!("this is {t}"))
    .help(help);
    cx.fail(d)
}

fn through_library<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (t, back) = wide_argument(cx, args)?;
    let Some(f) = cx.library_function(args.name) else {
        return cx.error(Code::INTERNAL, args.span, format!("the standard library has no `{}`", args.name), "");
    };
    let result =
        cx.call_positional(&Val::Function(f), vec![Arg::new(Val::Tensor(t), args.arg("x").span)], args.span)?;
    match (back, result) {
        (Some(elem), Val::Tensor(t)) => Ok(Val::Tensor(cx.cast(t, elem)?)),
        (_, result) => Ok(result),
    }
}

fn direct<'a>(cx: &mut Cx<'a>, args: &Args<'a>, kind: OpKind) -> R<Val<'a>> {
    let (t, back) = wide_argument(cx, args)?;
    let result = cx.each(kind, &[t.value], t)?;
    Ok(Val::Tensor(match back {
        Some(elem) => cx.cast(result, elem)?,
        None => result,
    }))
}

/// A function of fp32 only.
fn single<'a>(
    cx: &mut Cx<'a>,
    args: &Args<'a>,
    names: &[&'static str],
    f: impl Fn(&mut Cx<'a>, &[Tensor]) -> R<Tensor>,
) -> R<Val<'a>> {
    let mut tensors = Vec::new();
    for name in names {
        let t = args.tensor(cx, name)?;
        if t.elem != ElemTy::F32 {
            let d = Diagnostic::error(
                Code::TYPE_MISMATCH,
                args.span,
                format!("`{}` takes fp32, not {}", args.name, t.elem),
            )
            .label(args.arg(name).span, format!("this is {t}"))
            .help("cast it first: `x.to(tl.float32)`");
            return cx.fail(d);
        }
        tensors.push(t);
    }
    if let ([a, b], [x, y]) = (&tensors[..], names) {
        let (x, y) = (args.arg(x).span, args.arg(y).span);
        let (a, b) = cx.broadcast_pair((*a, x), (*b, y), &format!("for `{}`", args.name))?;
        tensors = vec![a, b];
    }
    Ok(Val::Tensor(f(cx, &tensors)?))
}

/// Arguments as values of one type; constants get their own type first.
fn together<'a>(cx: &mut Cx<'a>, args: &Args<'a>, names: &[&'static str]) -> R<Vec<Tensor>> {
    let mut list: Vec<Arg<'a>> = Vec::new();
    for name in names {
        let t = args.tensor(cx, name)?;
        list.push(Arg::new(Val::Tensor(t), args.arg(name).span));
    }
    let mut common = list[0].clone();
    for arg in &list[1..] {
        let dtype = cx.common_dtype(args.name, &common, arg, false)?;
        let t = cx.operand_as(&common, arg, dtype)?;
        common = Arg::new(Val::Tensor(t), common.span);
    }
    let Val::Tensor(Tensor { elem, .. }) = common.val else { return Err(crate::emitter::Fault) };
    let mut shape = crate::types::scalar_shape();
    let mut tensors = Vec::new();
    for arg in &list {
        let t = cx.tensor(arg, "an operand")?;
        let t = cx.cast(t, elem)?;
        shape = cx.common((Tensor { shape, ..t }, args.span), (t, arg.span), &format!("for `{}`", args.name))?;
        tensors.push(t);
    }
    tensors.into_iter().map(|t| cx.broadcast_to(t, shape)).collect()
}

fn fdiv<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (exact, approximate) = (args.bool(cx, "ieee_rounding")?, args.bool(cx, "approx")?);
    if exact && approximate {
        let message = "`fdiv` rounds either as IEEE 754 says or approximately";
        return cx.error(Code::BAD_VALUE, args.arg("approx").span, message, "leave out `approx` or `ieee_rounding`");
    }
    for name in ["x", "y"] {
        let t = args.tensor(cx, name)?;
        if !t.elem.is_float() {
            let d = Diagnostic::error(Code::TYPE_MISMATCH, args.span, "`fdiv` divides floats only")
                .label(args.arg(name).span, format!("this is {t}"))
                .help("write `x / y`, or cast with `.to(tl.float32)`");
            return cx.fail(d);
        }
    }
    let tensors = together(cx, args, &["x", "y"])?;
    if approximate {
        if tensors[0].elem != ElemTy::F32 {
            let d = Diagnostic::error(Code::TYPE_MISMATCH, args.span, "`fdiv` with `approx` divides fp32 only")
                .label(args.arg("x").span, format!("this is {}", tensors[0]))
                .help("cast both operands with `.to(tl.float32)`, or leave out `approx`");
            return cx.fail(d);
        }
        let quotient = cx.each(OpKind::DivFApprox {}, &[tensors[0].value, tensors[1].value], tensors[0])?;
        return Ok(Val::Tensor(quotient));
    }
    let (l, r) =
        (Arg::new(Val::Tensor(tensors[0]), args.arg("x").span), Arg::new(Val::Tensor(tensors[1]), args.arg("y").span));
    cx.binary(Operator::Div, &l, &r)
}

fn abs<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = args.tensor(cx, "x")?;
    let kind = match t.elem {
        ElemTy::Ptr(_) => {
            let d = Diagnostic::error(Code::TYPE_MISMATCH, args.span, "a pointer has no absolute value")
                .label(args.arg("x").span, format!("this is {t}"));
            return cx.fail(d);
        }
        e if e.is_float() => OpKind::AbsF {},
        e if e.is_signed() => OpKind::AbsI {},
        _ => return Ok(Val::Tensor(t)),
    };
    Ok(Val::Tensor(cx.each(kind, &[t.value], t)?))
}

fn fma<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = together(cx, args, &["x", "y", "z"])?;
    if t[0].elem.is_float() {
        cx.no_fp8("fma", t[0], args.arg("x").span)?;
        return Ok(Val::Tensor(cx.each(OpKind::Fma {}, &[t[0].value, t[1].value, t[2].value], t[0])?));
    }
    let product = cx.each(OpKind::MulI {}, &[t[0].value, t[1].value], t[0])?;
    Ok(Val::Tensor(cx.each(OpKind::AddI {}, &[product.value, t[2].value], t[0])?))
}

/// A function that does what an operator does.
fn operator<'a>(cx: &mut Cx<'a>, args: &Args<'a>, op: Operator) -> R<Val<'a>> {
    args.ignore("sanitize_overflow");
    cx.binary(op, &args.arg("x"), &args.arg("y"))
}

/// `and` and `or` of booleans as methods.
fn logical<'a>(cx: &mut Cx<'a>, args: &Args<'a>, kind: OpKind) -> R<Val<'a>> {
    let (a, b) = (args.tensor(cx, "input")?, args.tensor(cx, "other")?);
    if let Some((name, t)) = [("input", a), ("other", b)].into_iter().find(|(_, t)| t.elem != ElemTy::I1) {
        let message = format!("`{}` works on truth values only, not on {t}", args.name);
        let d = Diagnostic::error(Code::TYPE_MISMATCH, args.span, message)
            .label(args.arg(name).span, format!("this is {t}"))
            .help("compare with zero first: `x != 0`");
        return cx.fail(d);
    }
    let what = format!("for `{}`", args.name);
    let (a, b) = cx.broadcast_pair((a, args.arg("input").span), (b, args.arg("other").span), &what)?;
    Ok(Val::Tensor(cx.each(kind, &[a.value, b.value], a)?))
}

fn umulhi<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = together(cx, args, &["x", "y"])?;
    if !t[0].elem.is_int() || t[0].elem.bits() < 32 {
        let d = Diagnostic::error(Code::TYPE_MISMATCH, args.span, "`umulhi` takes integers of 32 or 64 bits")
            .label(args.arg("x").span, format!("this is {}", t[0]));
        return cx.fail(d);
    }
    Ok(Val::Tensor(cx.each(OpKind::MulHiUI {}, &[t[0].value, t[1].value], t[0])?))
}

/// Whether NaN propagates (`ALL`) or a number takes precedence over it (`NONE`).
fn nan_wins<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<bool> {
    Ok(args.text(cx, "propagate_nan")?.is_some_and(|s| &*s == "all"))
}

fn extremum<'a>(cx: &mut Cx<'a>, args: &Args<'a>, largest: bool) -> R<Tensor> {
    let nan = nan_wins(cx, args)?;
    let t = together(cx, args, &["x", "y"])?;
    extremum_of(cx, args, t[0], t[1], largest, nan)
}

fn extremum_of<'a>(
    cx: &mut Cx<'a>,
    args: &Args<'a>,
    mut a: Tensor,
    mut b: Tensor,
    largest: bool,
    nan: bool,
) -> R<Tensor> {
    if a.elem.num() == Some(DType::Bf16) {
        a = cx.cast(a, ElemTy::F32)?;
        b = cx.cast(b, ElemTy::F32)?;
    }
    cx.no_fp8(args.name, a, args.arg("x").span)?;
    let kind = match (a.elem.is_float(), a.elem.is_signed(), largest) {
        (true, _, true) if nan => OpKind::Maximum {},
        (true, _, false) if nan => OpKind::Minimum {},
        (true, _, true) => OpKind::MaxNum {},
        (true, _, false) => OpKind::MinNum {},
        (false, true, true) => OpKind::MaxSI {},
        (false, true, false) => OpKind::MinSI {},
        (false, false, true) => OpKind::MaxUI {},
        (false, false, false) => OpKind::MinUI {},
    };
    cx.each(kind, &[a.value, b.value], a)
}

fn clamp<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let nan = nan_wins(cx, args)?;
    let t = together(cx, args, &["x", "min", "max"])?;
    if !t[0].elem.is_float() {
        let d = Diagnostic::error(Code::TYPE_MISMATCH, args.span, "`clamp` takes floats")
            .label(args.arg("x").span, format!("this is {}", t[0]))
            .help("write `tl.minimum(tl.maximum(x, low), high)` for integers");
        return cx.fail(d);
    }
    let low = extremum_of(cx, args, t[0], t[1], true, nan)?;
    let high = cx.cast(t[2], low.elem)?;
    Ok(Val::Tensor(extremum_of(cx, args, low, high, false, nan)?))
}
