//! Matrix products.

use rtc_ir::{DotKind, OpKind, Precision};
use rtc_source::{Code, Diagnostic};

use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::R;
use crate::spec::DType;
use crate::types::{ElemTy, is_fp8};
use crate::values::{Tensor, Val};

pub(super) const TABLE: &[Row] = &[row("dot", dot)];

/// How fp32 operands are multiplied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Tf32,
    Tf32x3,
    Ieee,
    Bf16x3,
    Bf16x6,
}

fn dot<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (a, b) = (args.tensor(cx, "input")?, args.tensor(cx, "other")?);
    check_shapes(cx, args, a, b)?;
    let out = match args.given("out_dtype") {
        Some(arg) => cx.type_of(&arg, &args.what("out_dtype"))?,
        None => ElemTy::F32,
    };
    let result = check_types(cx, args, a, b, out)?;
    let scheme = scheme(cx, args)?;
    let imprecise = match args.given("max_num_imprecise_acc") {
        Some(arg) => {
            let n = cx.int_of(&arg, &args.what("max_num_imprecise_acc"))?;
            let k = i128::from(a.shape[a.shape.rank() - 1]);
            if n > k {
                let message = format!("`max_num_imprecise_acc` is {n}, more than the {k} elements that are summed");
                return cx.error(Code::OUT_OF_RANGE, arg.span, message, "");
            }
            u32::try_from(n).ok()
        }
        None => None,
    };
    // e4b15 is a software format: its products are those of halves.
    let half = |cx: &mut Cx<'a>, t: Tensor| match t.elem.num() {
        Some(DType::Fp8E4B15) => cx.cast(t, ElemTy::Num(DType::Fp16)),
        _ => Ok(t),
    };
    let (mut a, mut b) = (half(cx, a)?, half(cx, b)?);
    if a.elem != b.elem {
        a = cx.cast(a, ElemTy::Num(DType::Fp16))?;
        b = cx.cast(b, ElemTy::Num(DType::Fp16))?;
    }
    let rank = a.shape.rank();
    let mut dims: Vec<i128> = a.shape[..rank - 1].iter().map(|d| i128::from(*d)).collect();
    dims.push(i128::from(b.shape[rank - 1]));
    let shape = cx.shape(&dims, args.span)?;
    let acc = match args.optional_tensor(cx, "acc")? {
        Some(acc) => {
            // The accumulator must have `out_dtype`, even where the product would have another type.
            if acc.shape != shape
                || acc.elem != result
                || (args.given("out_dtype").is_none() && acc.elem != ElemTy::F32)
            {
                let wanted = if args.given("out_dtype").is_some() { out } else { ElemTy::F32 };
                let d = Diagnostic::error(
                    Code::TYPE_MISMATCH,
                    args.arg("acc").span,
                    format!("the accumulator must be {wanted}{shape:?}, the `out_dtype` and shape of the product"),
                )
                .primary(format!("this is {acc}"))
                .help(format!(
                    "start with a block of that type: `tl.zeros({:?}, dtype=tl.{})`",
                    &shape[..],
                    long_name(wanted)
                ));
                return cx.fail(d);
            }
            acc
        }
        None => cx.const_as(&crate::values::Const::Int(0), result, shape)?,
    };
    if rank <= 3 {
        return product(cx, a, b, acc, scheme, imprecise).map(Val::Tensor);
    }
    // Several batch dimensions are one to the operation.
    let merged = |cx: &mut Cx<'a>, t: Tensor| {
        let batch: u64 = t.shape[..rank - 2].iter().map(|d| u64::from(*d)).product();
        let dims = [i128::from(batch), i128::from(t.shape[rank - 2]), i128::from(t.shape[rank - 1])];
        let shape = cx.shape(&dims, args.span)?;
        cx.reshape(t, shape, false)
    };
    let (a, b, acc) = (merged(cx, a)?, merged(cx, b)?, merged(cx, acc)?);
    let result = product(cx, a, b, acc, scheme, imprecise)?;
    Ok(Val::Tensor(cx.reshape(result, shape, false)?))
}

fn long_name(elem: ElemTy) -> String {
    elem.to_string().replace("fp", "float").replace("bf16", "bfloat16")
}

fn check_shapes<'a>(cx: &mut Cx<'a>, args: &Args<'a>, a: Tensor, b: Tensor) -> R<()> {
    let rank = a.shape.rank();
    let problem = if rank < 2 || b.shape.rank() < 2 {
        Some((
            "`dot` multiplies blocks with at least two dimensions".to_string(),
            "add a dimension: `x[:, None]` or `x[None, :]`",
        ))
    } else if b.shape.rank() != rank {
        Some((
            "the operands of `dot` have different numbers of dimensions".to_string(),
            "give both the same batch dimensions",
        ))
    } else if a.shape[..rank - 2] != b.shape[..rank - 2] {
        Some(("the batch dimensions of `dot` differ".to_string(), "broadcast one of the operands"))
    } else if a.shape[rank - 1] != b.shape[rank - 2] {
        let (k, l) = (a.shape[rank - 1], b.shape[rank - 2]);
        Some((
            format!("the inner dimensions of `dot` differ: {k} columns on the left, {l} rows on the right"),
            "the left operand is [M, K], the right one [K, N]; transpose one with `tl.trans(x)`",
        ))
    } else {
        let least = if a.elem.bits() == 8 { 32 } else { 16 };
        (a.shape[rank - 1] < least).then(|| {
            (
                format!("the inner dimension of `dot` is {}, less than {least}", a.shape[rank - 1]),
                "use a larger block along K and mask the rest with zeros",
            )
        })
    };
    let Some((message, help)) = problem else { return Ok(()) };
    let d = Diagnostic::error(Code::SHAPE_MISMATCH, args.span, message)
        .label(args.arg("input").span, format!("this is {a}"))
        .label(args.arg("other").span, format!("this is {b}"))
        .help(help);
    cx.fail(d)
}

/// The element type of the product.
fn check_types<'a>(cx: &mut Cx<'a>, args: &Args<'a>, a: Tensor, b: Tensor, out: ElemTy) -> R<ElemTy> {
    let (x, y) = (a.elem.num(), b.elem.num());
    let both_fp8 = x.is_some_and(is_fp8) && y.is_some_and(is_fp8);
    let known = matches!(
        x,
        Some(
            DType::Int8
                | DType::Fp16
                | DType::Bf16
                | DType::Fp32
                | DType::Fp64
                | DType::Fp8E5
                | DType::Fp8E4Nv
                | DType::Fp8E4B15
        )
    );
    if !known || (x != y && !both_fp8) {
        let message = if x == y {
            format!("`dot` does not multiply {}", a.elem)
        } else {
            format!("`dot` does not multiply {} by {}", a.elem, b.elem)
        };
        let d = Diagnostic::error(Code::TYPE_MISMATCH, args.span, message)
            .label(args.arg("input").span, format!("this is {a}"))
            .label(args.arg("other").span, format!("this is {b}"))
            .help("both operands must be of one type: int8, fp16, bf16, fp32 or fp64 (8-bit floats may mix); cast with `.to(dtype)`");
        return cx.fail(d);
    }
    if out == ElemTy::Num(DType::Bf16) {
        let span = args.arg("out_dtype").span;
        return cx.error(
            Code::TYPE_MISMATCH,
            span,
            "`dot` does not sum in bf16",
            "leave `out_dtype` at fp32 and cast the result",
        );
    }
    Ok(match x {
        Some(DType::Int8) => ElemTy::I32,
        Some(DType::Fp64) => ElemTy::Num(DType::Fp64),
        Some(DType::Bf16 | DType::Fp32) => ElemTy::F32,
        _ => match out {
            ElemTy::Num(DType::Fp16 | DType::Fp32) => out,
            other => {
                let span = args.arg("out_dtype").span;
                return cx.error(
                    Code::TYPE_MISMATCH,
                    span,
                    format!("`dot` of {} cannot give {other}", a.elem),
                    "`out_dtype` is tl.float32 or tl.float16",
                );
            }
        },
    })
}

fn scheme<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Scheme> {
    let allow = args.given("allow_tf32");
    if let (Some(_), Some(arg)) = (args.given("input_precision"), &allow) {
        return cx.error(
            Code::WRONG_ARGUMENTS,
            arg.span,
            "`input_precision` and `allow_tf32` are mutually exclusive",
            "leave out `allow_tf32`",
        );
    }
    if allow.is_some() {
        return Ok(if args.bool(cx, "allow_tf32")? { Scheme::Tf32 } else { Scheme::Ieee });
    }
    let (name, span) = match args.text(cx, "input_precision")? {
        Some(name) => (name.to_ascii_lowercase(), args.arg("input_precision").span),
        None => (cx.options.default_dot_input_precision.to_ascii_lowercase(), args.span),
    };
    Ok(match name.as_str() {
        "tf32" => Scheme::Tf32,
        "tf32x3" => Scheme::Tf32x3,
        "ieee" => Scheme::Ieee,
        "bf16x3" => Scheme::Bf16x3,
        "bf16x6" => Scheme::Bf16x6,
        other => {
            return cx.error(
                Code::BAD_VALUE,
                span,
                format!("there is no input precision {other:?}"),
                "precisions are \"tf32\", \"tf32x3\", \"ieee\", \"bf16x3\" and \"bf16x6\"",
            );
        }
    })
}

fn product<'a>(
    cx: &mut Cx<'a>,
    a: Tensor,
    b: Tensor,
    acc: Tensor,
    scheme: Scheme,
    imprecise: Option<u32>,
) -> R<Tensor> {
    let fp32 = a.elem == ElemTy::F32;
    match scheme {
        Scheme::Tf32x3 if fp32 => split_product(cx, a, b, acc, 2, rounded_tf32),
        Scheme::Bf16x3 if fp32 => split_product(cx, a, b, acc, 2, |cx, t| cx.cast(t, ElemTy::Num(DType::Bf16))),
        Scheme::Bf16x6 if fp32 => split_product(cx, a, b, acc, 3, |cx, t| cx.cast(t, ElemTy::Num(DType::Bf16))),
        Scheme::Ieee => one(cx, a, b, acc, Precision::Ieee, imprecise),
        _ => one(cx, a, b, acc, Precision::Tf32, imprecise),
    }
}

fn one<'a>(
    cx: &mut Cx<'a>,
    a: Tensor,
    b: Tensor,
    acc: Tensor,
    precision: Precision,
    imprecise: Option<u32>,
) -> R<Tensor> {
    let kind = OpKind::Dot { precision, kind: DotKind::Unset, max_imprecise: imprecise };
    cx.each(kind, &[a.value, b.value, acc.value], acc)
}

/// `t` rounded to the 19 bits of tf32, to nearest with ties away from zero.
fn rounded_tf32<'a>(cx: &mut Cx<'a>, t: Tensor) -> R<Tensor> {
    let bits = cx.emit(OpKind::Bitcast { to: rtc_ir::Elem::I32 }, &[t.value])?;
    let bits = Tensor { value: bits, elem: ElemTy::I32, ..t };
    let half = cx.int_literal(0x1000, ElemTy::I32, t.shape)?;
    let sum = cx.each(OpKind::AddI {}, &[bits.value, half.value], bits)?;
    let mask = cx.int_literal(i64::from(0xffff_e000u32 as i32), ElemTy::I32, t.shape)?;
    let kept = cx.each(OpKind::AndI {}, &[sum.value, mask.value], bits)?;
    let value = cx.emit(OpKind::Bitcast { to: rtc_ir::Elem::F32 }, &[kept.value])?;
    // Infinities and NaN have no bits to round.
    let zero = cx.each(OpKind::SubF {}, &[t.value, t.value], t)?;
    let finite = cx.emit(OpKind::CmpF { predicate: rtc_ir::Predicate::Eq }, &[zero.value, zero.value])?;
    cx.each(OpKind::Select {}, &[finite, value, t.value], t)
}

/// The product of operands split into parts of fewer bits: small cross terms first, NaN there dropped, the main term
/// last, then the accumulator.
fn split_product<'a>(
    cx: &mut Cx<'a>,
    a: Tensor,
    b: Tensor,
    acc: Tensor,
    parts: usize,
    narrow: impl Fn(&mut Cx<'a>, Tensor) -> R<Tensor>,
) -> R<Tensor> {
    let mut pieces = [Vec::new(), Vec::new()];
    for (list, operand) in pieces.iter_mut().zip([a, b]) {
        let mut rest = operand;
        for i in 0..parts {
            let part = narrow(cx, rest)?;
            if i + 1 < parts {
                let wide = cx.cast(part, ElemTy::F32)?;
                rest = cx.each(OpKind::SubF {}, &[rest.value, wide.value], rest)?;
            }
            list.push(part);
        }
    }
    let [left, right] = pieces;
    let terms: &[(usize, usize)] =
        if parts == 2 { &[(1, 0), (0, 1)] } else { &[(1, 1), (2, 0), (0, 2), (1, 0), (0, 1)] };
    let mut sum = cx.literal(rtc_ir::Literal::float(0.0), ElemTy::F32, acc.shape)?;
    for (i, j) in terms {
        sum = one(cx, left[*i], right[*j], sum, Precision::Tf32, None)?;
    }
    let number = cx.emit(OpKind::CmpF { predicate: rtc_ir::Predicate::Eq }, &[sum.value, sum.value])?;
    let zero = cx.literal(rtc_ir::Literal::float(0.0), ElemTy::F32, acc.shape)?;
    let sum = cx.each(OpKind::Select {}, &[number, sum.value, zero.value], sum)?;
    let sum = one(cx, left[0], right[0], sum, Precision::Tf32, None)?;
    cx.each(OpKind::AddF {}, &[sum.value, acc.value], acc)
}
