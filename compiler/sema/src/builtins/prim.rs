//! Primitive operations for the standard library: one tile-IR operation each, on blocks and scalars. Arguments are
//! broadcast; a Python number takes the type of the tensor arguments.

use rtc_ir::{Literal, OpKind, RoundingMode};
use rtc_source::Code;

use super::{Args, Builtin, row};
use crate::cx::{Cx, R};
use crate::types::ElemTy;
use crate::values::{Tensor, Val};

macro_rules! one {
    ($($name:literal => $kind:expr),* $(,)?) => { [$(row($name, &["a"], |cx, args| each(cx, args, $kind))),*] };
}
macro_rules! two {
    ($($name:literal => $kind:expr),* $(,)?) => { [$(row($name, &["a", "b"], |cx, args| each(cx, args, $kind))),*] };
}

const ONE: [Builtin; 14] = one!(
    "sqrt_rn" => OpKind::SqrtRn {},
    "exp2_approx" => OpKind::Exp2 { ftz: false },
    "log2_approx" => OpKind::Log2 {},
    "sin_approx" => OpKind::SinApprox {},
    "cos_approx" => OpKind::CosApprox {},
    "tanh_approx" => OpKind::TanhApprox {},
    "rcp_approx" => OpKind::Rcp {},
    "floor" => OpKind::Floor {},
    "ceil" => OpKind::Ceil {},
    "trunc" => OpKind::Truncate {},
    "rint" => OpKind::Rint {},
    "abs" => OpKind::AbsF {},
    "neg" => OpKind::NegF {},
    "brev" => OpKind::BRev {},
);

const TWO: [Builtin; 5] = two!(
    "div_rn" => OpKind::DivFRn {},
    "copysign" => OpKind::CopySign {},
    "min_num" => OpKind::MinNum {},
    "max_num" => OpKind::MaxNum {},
    "umulhi" => OpKind::MulHiUI {},
);

pub(super) const TABLE: &[Builtin] = &{
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = ONE;
    let [o, p, q, r, s] = TWO;
    [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        k,
        l,
        m,
        n,
        o,
        p,
        q,
        r,
        s,
        // They flush denormals unless the launch option `enable_reflect_ftz` is off.
        row("exp2_approx_ftz", &["a"], |cx, args| each(cx, args, OpKind::Exp2 { ftz: cx.options.enable_reflect_ftz })),
        row("sqrt_approx", &["a"], |cx, args| each(cx, args, OpKind::Sqrt { ftz: cx.options.enable_reflect_ftz })),
        row("rsqrt_approx", &["a"], |cx, args| each(cx, args, OpKind::Rsqrt { ftz: cx.options.enable_reflect_ftz })),
        row("fma", &["a", "b", "c"], |cx, args| each(cx, args, OpKind::Fma {})),
        row("div_approx", &["a", "b"], |cx, args| each(cx, args, OpKind::DivFApprox {})),
        row("mul_rn", &["a", "b"], mul_rn),
        row("add_rounded", &["a", "b", "mode"], |cx, args| rounded(cx, args, |mode| OpKind::AddFRounded { mode })),
        row("mul_rounded", &["a", "b", "mode"], |cx, args| rounded(cx, args, |mode| OpKind::MulFRounded { mode })),
        row("div_rounded", &["a", "b", "mode"], |cx, args| rounded(cx, args, |mode| OpKind::DivFRounded { mode })),
        row("fma_rounded", &["a", "b", "c", "mode"], |cx, args| rounded(cx, args, |mode| OpKind::FmaRounded { mode })),
        row("sqrt_rounded", &["a", "mode"], |cx, args| rounded(cx, args, |mode| OpKind::SqrtRounded { mode })),
        row("to_fp32_rounded", &["a", "mode"], to_fp32_rounded),
        row("clz", &["a"], |cx, args| counted(cx, args, OpKind::Clz {})),
        row("popc", &["a"], |cx, args| counted(cx, args, OpKind::PopC {})),
        row("iota", &["a", "axis"], iota),
    ]
};

/// What `libdevice` has beyond the text of the library.
pub(super) const LIBDEVICE: &[Builtin] = &[];

/// The arguments in one type and shape: that of the tensors among them.
fn operands<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Vec<Tensor>> {
    first_operands(cx, args, args.vals.len())
}

/// The first `count` arguments in one type and shape.
fn first_operands<'a>(cx: &mut Cx<'a>, args: &Args<'a>, count: usize) -> R<Vec<Tensor>> {
    let list: Vec<_> = (0..count).map(|i| args.arg(i)).collect();
    let elem = list.iter().find_map(|a| match &a.val {
        Val::Tensor(t) => Some(t.elem),
        _ => None,
    });
    let mut tensors = Vec::new();
    let mut shape = crate::types::scalar_shape();
    for arg in &list {
        let t = match (&arg.val, elem) {
            (Val::Const(c), Some(elem)) => cx.const_as(c, elem, crate::types::scalar_shape())?,
            _ => cx.tensor(arg, "an argument of a primitive")?,
        };
        shape = cx.common((Tensor { shape, ..t }, args.span), (t, arg.span), "in the standard library")?;
        tensors.push(t);
    }
    tensors.into_iter().map(|t| cx.broadcast_to(t, shape)).collect()
}

fn each<'a>(cx: &mut Cx<'a>, args: &Args<'a>, kind: OpKind) -> R<Val<'a>> {
    let tensors = operands(cx, args)?;
    let values: Vec<_> = tensors.iter().map(|t| t.value).collect();
    Ok(Val::Tensor(cx.each(kind, &values, tensors[0])?))
}

/// A product that is rounded for itself: as a fused multiply-add of negative zero it cannot be contracted further.
fn mul_rn<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = operands(cx, args)?;
    let zero = cx.literal(Literal::float(-0.0), t[0].elem, t[0].shape)?;
    Ok(Val::Tensor(cx.each(OpKind::Fma {}, &[t[0].value, t[1].value, zero.value], t[0])?))
}

/// The rounding mode that stands as the last argument.
fn rounding_mode<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<RoundingMode> {
    let last = args.vals.len() - 1;
    let word = cx.str_arg(args, last)?;
    match RoundingMode::WORDS.iter().find(|(_, w)| word.as_deref() == Some(w)) {
        Some((mode, _)) => Ok(*mode),
        None => cx.error(Code::INTERNAL, args.span, "a rounding mode is rn, rz, rd or ru", ""),
    }
}

/// An operation with a rounding mode.
fn rounded<'a>(cx: &mut Cx<'a>, args: &Args<'a>, kind: impl Fn(RoundingMode) -> OpKind) -> R<Val<'a>> {
    let mode = rounding_mode(cx, args)?;
    let tensors = first_operands(cx, args, args.vals.len() - 1)?;
    let values: Vec<_> = tensors.iter().map(|t| t.value).collect();
    Ok(Val::Tensor(cx.each(kind(mode), &values, tensors[0])?))
}

/// An fp64 as fp32.
fn to_fp32_rounded<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let mode = rounding_mode(cx, args)?;
    let t = cx.tensor_arg(args, 0)?;
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
    let t = cx.tensor_arg(args, 0)?;
    let axis = cx.axis_of(&args.arg(1), t.shape.rank(), &args.what(1))?;
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
