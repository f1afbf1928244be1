//! Making blocks, casts, and the names of types.

use rtc_ir::OpKind;
use rtc_source::{Code, Diagnostic};

use super::{Args, Builtin, row};
use crate::cx::{Cx, R};
use crate::spec::DType;
use crate::types::{ElemTy, TyVal, scalar_shape};
use crate::values::{Const, Tensor, Val};

pub(super) const TABLE: &[Builtin] = &[
    row("arange", &["start", "end"], arange),
    row("full", &["shape", "value", "dtype"], full),
    row("cast", &["input", "dtype", "fp_downcast_rounding?", "bitcast?"], cast),
    row("to_tensor", &["x"], |cx, args| {
        let t = cx.tensor_arg(args, 0)?;
        Ok(Val::Tensor(t))
    }),
    row("constexpr", &["value"], |_, args| Ok(args.arg(0).val.into_constexpr())),
    row("constexpr_type", &["value"], |_, _| Ok(Val::Type(TyVal::Constexpr))),
    row("pointer_type", &["element_ty", "address_space?", "const?"], |cx, args| {
        let elem = cx.type_of(&args.arg(0), &args.what(0))?;
        let is_const = cx.bool_arg(args, 2, false)?;
        Ok(Val::Type(TyVal::Elem(elem.pointer_to(is_const))))
    }),
    row("block_type", &["element_ty", "shape"], |cx, args| {
        let elem = cx.type_of(&args.arg(0), &args.what(0))?;
        let shape = cx.shape_of(&args.arg(1), &args.what(1))?;
        Ok(Val::Type(TyVal::Block(elem, shape)))
    }),
    row("dtype", &["name"], |cx, args| {
        let elem = cx.type_of(&args.arg(0), &args.what(0))?;
        Ok(Val::Type(TyVal::Elem(elem)))
    }),
    row("str_to_ty", &["name", "c?"], |cx, args| {
        let elem = cx.type_of(&args.arg(0), &args.what(0))?;
        Ok(Val::Type(TyVal::Elem(elem)))
    }),
    row("get_int_dtype", &["bitwidth", "signed"], |cx, args| {
        let bits = cx.int_of(&args.arg(0), &args.what(0))?;
        let signed = cx.bool_arg(args, 1, true)?;
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
                return cx.error(Code::BAD_VALUE, args.arg(0).span, message, "widths are 1, 8, 16, 32 and 64");
            }
        };
        Ok(Val::Type(TyVal::Elem(ElemTy::Num(dtype))))
    }),
    // Published kernels take these from `triton.language.standard`.
    row("_log2", &["i"], |cx, args| {
        let i = cx.int_of(&args.arg(0), &args.what(0))?;
        Ok(Val::int(if i > 0 { i128::from(i.ilog2()) } else { 0 }))
    }),
    row("_is_power_of_two", &["i"], |cx, args| {
        let i = cx.int_of(&args.arg(0), &args.what(0))?;
        Ok(Val::Const(Const::Bool(i & i.wrapping_sub(1) == 0 && i != 0)))
    }),
    // As classes in `isinstance`.
    row("tensor", &["handle", "type"], |cx, args| {
        cx.error(
            Code::NOT_CALLABLE,
            args.span,
            "`tl.tensor` names the type of run-time values",
            "write `tl.full` to make a block",
        )
    }),
    row("tensor_descriptor", &["*args"], |cx, args| {
        cx.error(
            Code::NOT_CALLABLE,
            args.span,
            "`tl.tensor_descriptor` names a type",
            "write `tl.make_tensor_descriptor`",
        )
    }),
    row("tuple", &["items?"], |_, args| Ok(args.given(0).map_or(Val::tuple(Vec::new()), |a| a.val))),
];

fn arange<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (first, last) = (args.arg(0), args.arg(1));
    let start = cx.int_of(&first, &args.what(0))?;
    let end = cx.int_of(&last, &args.what(1))?;
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
    let shape = cx.shape_of(&args.arg(0), &args.what(0))?;
    let Some(dtype) = args.given(2) else {
        return cx.error(
            Code::WRONG_ARGUMENTS,
            args.span,
            "`full` needs a dtype",
            "write for example `dtype=tl.float32`",
        );
    };
    let elem = cx.type_of(&dtype, &args.what(2))?;
    let value = args.arg(1);
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
    let input = args.arg(0);
    let elem = cx.type_of(&args.arg(1), &args.what(1))?;
    let t = cx.tensor(&input, "the input of a cast")?;
    let bitcast = cx.bool_arg(args, 3, false)?;
    let rounding = cx.str_arg(args, 2)?;
    let span = args.arg(2).span;
    cx.span = args.span;
    let rounding = rounding.as_ref().map(|s| (&**s, span));
    Ok(Val::Tensor(cx.cast_checked(t, elem, rounding, bitcast)?))
}
