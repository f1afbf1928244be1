//! Selection and gathering.

use rtc_ir::OpKind;
use rtc_source::{Code, Diagnostic};

use super::{Args, Row, row};
use crate::broadcast::common_shape;
use crate::cx::Cx;
use crate::emitter::R;
use crate::types::ElemTy;
use crate::values::{Tensor, Val};

pub(super) const TABLE: &[Row] = &[row("where", choose), row("gather", gather)];

fn choose<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (condition_arg, x, y) = (args.arg("condition"), args.arg("x"), args.arg("y"));
    let condition = cx.tensor(&condition_arg, "the condition of `where`")?;
    if condition.elem != ElemTy::I1 {
        cx.warn(
            Code::DEPRECATED,
            condition_arg.span,
            format!("the condition of `where` is {condition}, not int1"),
            "compare it: `x != 0`",
        );
    }
    let condition = cx.is_not_zero(condition)?;
    let (a, b) = match (&x.val, &y.val) {
        (Val::Tensor(a), Val::Tensor(b)) if a.elem == b.elem => (*a, *b),
        (Val::Tensor(a), Val::Const(_)) | (Val::Const(_), Val::Tensor(a)) if a.elem.ptr().is_some() => {
            let elem = a.elem;
            let (a, b) = (cx.tensor(&x, "`x` of `where`")?, cx.tensor(&y, "`y` of `where`")?);
            (cx.cast(a, elem)?, cx.cast(b, elem)?)
        }
        _ => {
            let dtype = cx.common_dtype("where", &x, &y, false)?;
            (cx.operand_as(&x, &y, dtype)?, cx.operand_as(&y, &x, dtype)?)
        }
    };
    let shape = cx.common((a, x.span), (b, y.span), "for `where`")?;
    let both = Tensor { shape, ..a };
    let shape = match common_shape(shape, condition.shape) {
        Ok(shape) => shape,
        Err(_) => cx.common((both, x.span), (condition, condition_arg.span), "for `where`")?,
    };
    let condition = cx.broadcast_to(condition, shape)?;
    let (a, b) = (cx.broadcast_to(a, shape)?, cx.broadcast_to(b, shape)?);
    Ok(Val::Tensor(cx.each(OpKind::Select {}, &[condition.value, a.value, b.value], a)?))
}

fn gather<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (src, index) = (args.tensor(cx, "src")?, args.tensor(cx, "index")?);
    if !index.elem.is_int() {
        let d =
            Diagnostic::error(Code::TYPE_MISMATCH, args.arg("index").span, "the index of `gather` must be integers")
                .primary(format!("this is {index}"));
        return cx.fail(d);
    }
    let axis = args.axis(cx, "axis", src.shape.rank())?;
    let fits = src.shape.rank() == index.shape.rank()
        && (0..src.shape.rank()).all(|i| i == axis || src.shape[i] == index.shape[i]);
    if !fits {
        let d = Diagnostic::error(
            Code::SHAPE_MISMATCH,
            args.span,
            format!("the index {:?} of `gather` does not fit {:?} along axis {axis}", index.shape, src.shape),
        )
        .label(args.arg("src").span, format!("this is {src}"))
        .label(args.arg("index").span, format!("this is {index}"))
        .help("all sizes but the one along the axis must be equal");
        return cx.fail(d);
    }
    let value = cx.emit(OpKind::Gather { axis: axis as u32 }, &[src.value, index.value])?;
    Ok(Val::Tensor(Tensor { value, shape: index.shape, ..src }))
}
