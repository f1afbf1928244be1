//! Making blocks, casts, and the names of types.

use rtc_ir::OpKind;
use rtc_source::{Code, Diagnostic};

use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::R;
use crate::spec::DType;
use crate::types::{ElemTy, TyVal, scalar_shape};
use crate::values::{Const, Tensor, Val};

pub(super) const TABLE: &[Row] = &[
    row("arange", arange),
    row("full", full),
    row("cast", cast),
    row("to_tensor", |cx, args| {
        let t = args.tensor(cx, "x")?;
        Ok(Val::Tensor(t))
    }),
    row("constexpr", |_, args| Ok(args.arg("value").val.into_constexpr())),
    row("constexpr_type", |_, args| {
        args.ignore("value");
        Ok(Val::Type(TyVal::Constexpr))
    }),
    row("pointer_type", |cx, args| {
        args.ignore("address_space");
        let elem = args.elem(cx, "element_ty")?;
        let is_const = args.bool(cx, "const")?;
        Ok(Val::Type(TyVal::Elem(elem.pointer_to(is_const))))
    }),
    row("block_type", |cx, args| {
        let elem = args.elem(cx, "element_ty")?;
        let shape = args.shape(cx, "shape")?;
        Ok(Val::Type(TyVal::Block(elem, shape)))
    }),
    row("dtype", |cx, args| {
        let elem = args.elem(cx, "name")?;
        Ok(Val::Type(TyVal::Elem(elem)))
    }),
    row("str_to_ty", |cx, args| {
        args.ignore("c");
        let elem = args.elem(cx, "name")?;
        Ok(Val::Type(TyVal::Elem(elem)))
    }),
    row("get_int_dtype", |cx, args| {
        let bits = args.int(cx, "bitwidth")?;
        let signed = args.bool(cx, "signed")?;
        let dtype = match (bits, signed) {
            (1, _) => DType::UInt1,
            (8, true) => DType::Int8,
            (8, false) => DType::UInt8,
            (16, true) => DType::Int16,
            (16, false) => DType::UInt16,
            (32, true) => DType::Int32,
            (32, false) => DType::UInt32,
            (64, true) => DType::Int64,
            (64, false) => DType::UInt64,
            _ => {
                let message = format!("there is no integer type of {bits} bits");
                return cx.error(Code::BAD_VALUE, args.arg("bitwidth").span, message, "widths are 1, 8, 16, 32 and 64");
            }
        };
        Ok(Val::Type(TyVal::Elem(ElemTy::Num(dtype))))
    }),
    // Published kernels take these from `triton.language.standard`.
    row("_log2", |cx, args| {
        let i = args.int(cx, "i")?;
        Ok(Val::int(if i > 0 { i128::from(i.ilog2()) } else { 0 }))
    }),
    row("_is_power_of_two", |cx, args| {
        let i = args.int(cx, "i")?;
        Ok(Val::Const(Const::Bool(i & i.wrapping_sub(1) == 0 && i != 0)))
    }),
    // As classes in `isinstance`.
    row("tensor", |cx, args| {
        args.ignore("handle");
        args.ignore("type");
        cx.error(
            Code::NOT_CALLABLE,
            args.span,
            "`tl.tensor` names the type of run-time values",
            "write `tl.full` to make a block",
        )
    }),
    row("tensor_descriptor", |cx, args| {
        args.ignore("args");
        cx.error(
            Code::NOT_CALLABLE,
            args.span,
            "`tl.tensor_descriptor` names a type",
            "write `tl.make_tensor_descriptor`",
        )
    }),
    row("tuple", |_, args| Ok(args.given("items").map_or(Val::tuple(Vec::new()), |a| a.val))),
];

fn arange<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (first, last) = (args.arg("start"), args.arg("end"));
    let start = cx.int_of(&first, &args.what("start"))?;
    let end = cx.int_of(&last, &args.what("end"))?;
    let limit = 1i128 << 32;
    if start < 0 || end > limit {
        let arg = if start < 0 { first } else { last };
        return cx.error(
            Code::OUT_OF_RANGE,
            arg.span,
            "the bounds of `arange` lie between 0 and 2**32",
            "add the offset afterwards: `tl.arange(0, n) + offset`",
        );
    }
    if end <= start {
        let d = Diagnostic::error(Code::BAD_VALUE, args.span, format!("`arange({start}, {end})` is empty"))
            .help("`end` must be above `start`");
        return cx.fail(d);
    }
    let shape = cx.shape(&[end - start], args.span)?;
    let value = cx.emit(OpKind::Arange { start: start as i64, end: end as i64 }, &[])?;
    Ok(Val::Tensor(Tensor { value, elem: ElemTy::I32, shape }))
}

fn full<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let shape = args.shape(cx, "shape")?;
    let Some(dtype) = args.given("dtype") else {
        return cx.error(
            Code::WRONG_ARGUMENTS,
            args.span,
            "`full` needs a dtype",
            "write for example `dtype=tl.float32`",
        );
    };
    let elem = cx.type_of(&dtype, &args.what("dtype"))?;
    let value = args.arg("value");
    match &value.val {
        Val::Const(c) => {
            if matches!(c, Const::Float(_)) && elem.is_int() {
                let d = Diagnostic::error(
                    Code::TYPE_MISMATCH,
                    value.span,
                    format!("a float cannot fill a block of {elem}"),
                )
                .primary(format!("this is the constant {c}"))
                .label(dtype.span, "the dtype of the block")
                .help("write a whole number, or choose a float dtype");
                return cx.fail(d);
            }
            if !matches!(c, Const::Int(_) | Const::Float(_) | Const::Bool(_)) {
                cx.tensor(&value, "the value of `full`")?;
            }
            if elem.is_fp8() {
                let wide = cx.const_as(c, ElemTy::F32, scalar_shape())?;
                let narrow = cx.cast(wide, elem)?;
                return Ok(Val::Tensor(cx.broadcast_to(narrow, shape)?));
            }
            if elem.ptr().is_some() {
                let zero = cx.const_as(c, ElemTy::I64, scalar_shape())?;
                let pointer = cx.cast(zero, elem)?;
                return Ok(Val::Tensor(cx.broadcast_to(pointer, shape)?));
            }
            Ok(Val::Tensor(cx.const_as(c, elem, shape)?))
        }
        _ => {
            let t = cx.tensor(&value, "the value of `full`")?;
            if t.shape.numel() != 1 {
                let d = Diagnostic::error(Code::BAD_SHAPE, value.span, "`full` takes one value")
                    .primary(format!("this is {t}"))
                    .help("write `tl.broadcast_to(x, shape)` to spread a block");
                return cx.fail(d);
            }
            let scalar = cx.to_scalar(t)?;
            let scalar = cx.cast(scalar, elem)?;
            Ok(Val::Tensor(cx.broadcast_to(scalar, shape)?))
        }
    }
}

fn cast<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let input = args.arg("input");
    let elem = args.elem(cx, "dtype")?;
    let t = cx.tensor(&input, "the input of a cast")?;
    let bitcast = args.bool(cx, "bitcast")?;
    let rounding = args.text(cx, "fp_downcast_rounding")?;
    let span = args.arg("fp_downcast_rounding").span;
    cx.span = args.span;
    let rounding = rounding.as_ref().map(|s| (&**s, span));
    Ok(Val::Tensor(cx.cast_checked(t, elem, rounding, bitcast)?))
}
