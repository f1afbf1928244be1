//! Shapes: the order of elements is row-major and stays.

use rtc_ir::OpKind;
use rtc_source::{Code, Diagnostic};

use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::R;
use crate::values::{Arg, Tensor, Val};

pub(super) const TABLE: &[Row] = &[
    row("broadcast", |cx, args| {
        let (a, b) = (args.tensor(cx, "input")?, args.tensor(cx, "other")?);
        let (a, b) = cx.broadcast_pair((a, args.arg("input").span), (b, args.arg("other").span), "for `broadcast`")?;
        Ok(Val::tuple(vec![Val::Tensor(a), Val::Tensor(b)]))
    }),
    row("broadcast_to", broadcast_to),
    row("expand_dims", expand_dims),
    row("reshape", |cx, args| {
        let reorder = args.bool(cx, "can_reorder")?;
        reshape(cx, args, reorder)
    }),
    row("view", |cx, args| {
        cx.warn(Code::DEPRECATED, args.span, "`view` is deprecated", "write `tl.reshape(x, shape, can_reorder=True)`");
        reshape(cx, args, true)
    }),
    row("trans", trans),
    row("permute", permute),
    row("join", join),
    row("split", split),
    row("cat", cat),
    row("item", |cx, args| {
        let t = args.tensor(cx, "input")?;
        if t.shape.numel() != 1 {
            let d = Diagnostic::error(Code::BAD_SHAPE, args.span, "`item` takes a block with one element")
                .label(args.arg("input").span, format!("this is {t}"))
                .help("pick an element with a reduction, such as `tl.sum(tl.where(index == i, x, 0))`");
            return cx.fail(d);
        }
        Ok(Val::Tensor(cx.to_scalar(t)?))
    }),
];

fn block<'a>(cx: &mut Cx<'a>, args: &Args<'a>, name: &'static str) -> R<Tensor> {
    let t = args.tensor(cx, name)?;
    if t.shape.rank() == 0 {
        let d = Diagnostic::error(Code::BAD_SHAPE, args.arg(name).span, format!("{} must be a block", args.what(name)))
            .primary(format!("this is the scalar {t}"))
            .help("make a block of one element with `x[None]`");
        return cx.fail(d);
    }
    Ok(t)
}

fn broadcast_to<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = args.tensor(cx, "input")?;
    let dims = cx.ints_of(args.rest("shape"), "the shape of `broadcast_to`")?;
    let shape = cx.shape(&dims, args.span)?;
    if t.shape.rank() == 0 || t.shape == shape {
        return Ok(Val::Tensor(cx.broadcast_to(t, shape)?));
    }
    if t.shape.rank() != shape.rank() {
        let d = Diagnostic::error(
            Code::SHAPE_MISMATCH,
            args.span,
            format!("`broadcast_to` keeps the number of dimensions: {:?} does not become {shape:?}", t.shape),
        )
        .label(args.arg("input").span, format!("this is {t}"))
        .help("add dimensions first: `x[:, None]` or `x[None, :]`");
        return cx.fail(d);
    }
    if t.shape.iter().zip(shape.iter()).any(|(a, b)| a != b && *a != 1) {
        let d = Diagnostic::error(
            Code::SHAPE_MISMATCH,
            args.span,
            format!("the shape {:?} does not broadcast to {shape:?}", t.shape),
        )
        .label(args.arg("input").span, format!("this is {t}"))
        .help("only dimensions of size 1 are repeated");
        return cx.fail(d);
    }
    Ok(Val::Tensor(cx.broadcast_to(t, shape)?))
}

fn expand_dims<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let mut t = args.tensor(cx, "input")?;
    let axis = args.arg("axis");
    let list: Vec<Arg<'a>> = match &axis.val {
        Val::Tuple(t) => t.items.iter().map(|v| Arg::new(v.clone(), axis.span)).collect(),
        _ => vec![axis.clone()],
    };
    let rank = t.shape.rank() + list.len();
    let mut axes = Vec::new();
    for arg in &list {
        let at = cx.axis_of(arg, rank, &args.what("axis"))?;
        if axes.contains(&at) {
            return cx.error(Code::BAD_VALUE, arg.span, format!("axis {at} is given twice"), "");
        }
        axes.push(at);
    }
    axes.sort_unstable();
    for at in axes {
        t = cx.insert_axis(t, at, args.span)?;
    }
    Ok(Val::Tensor(t))
}

fn reshape<'a>(cx: &mut Cx<'a>, args: &Args<'a>, reorder: bool) -> R<Val<'a>> {
    let t = args.tensor(cx, "input")?;
    let dims = cx.ints_of(args.rest("shape"), &format!("the shape of `{}`", args.name))?;
    if dims.contains(&-1) {
        return cx.error(
            Code::BAD_SHAPE,
            args.span,
            "a size of a block cannot be left open with -1",
            "write the size out",
        );
    }
    let shape = cx.shape(&dims, args.span)?;
    if t.shape.numel() != shape.numel() {
        let d = Diagnostic::error(
            Code::SHAPE_MISMATCH,
            args.span,
            format!("{:?} has {} elements, {shape:?} has {}", t.shape, t.shape.numel(), shape.numel()),
        )
        .label(args.arg("input").span, format!("this is {t}"))
        .help("both shapes must have as many elements");
        return cx.fail(d);
    }
    Ok(Val::Tensor(cx.reshape(t, shape, reorder)?))
}

fn trans<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    if !args.rest("dims").is_empty() {
        return permute(cx, args);
    }
    let t = block(cx, args, "input")?;
    let rank = t.shape.rank();
    if rank < 2 {
        let d = Diagnostic::error(Code::BAD_SHAPE, args.span, "`trans` needs a block with at least two dimensions")
            .label(args.arg("input").span, format!("this is {t}"));
        return cx.fail(d);
    }
    let mut order: Vec<u32> = (0..rank as u32).collect();
    order.swap(rank - 1, rank - 2);
    Ok(Val::Tensor(cx.permute(t, &order)?))
}

fn permute<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = block(cx, args, "input")?;
    let dims = cx.ints_of(args.rest("dims"), &format!("the dims of `{}`", args.name))?;
    let rank = t.shape.rank();
    let mut sorted = dims.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..rank as i128) {
        let d = Diagnostic::error(
            Code::BAD_VALUE,
            args.span,
            format!("{dims:?} is not a permutation of the dimensions 0 to {}", rank - 1),
        )
        .label(args.arg("input").span, format!("this is {t}"))
        .help("name each dimension once");
        return cx.fail(d);
    }
    let order: Vec<u32> = dims.iter().map(|d| *d as u32).collect();
    Ok(Val::Tensor(cx.permute(t, &order)?))
}

fn join<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (a, b) = (args.tensor(cx, "a")?, args.tensor(cx, "b")?);
    if a.elem != b.elem {
        let d = Diagnostic::error(Code::TYPE_MISMATCH, args.span, "`join` takes two blocks of one element type")
            .label(args.arg("a").span, format!("this is {a}"))
            .label(args.arg("b").span, format!("this is {b}"))
            .help("cast one of them with `.to(dtype)`");
        return cx.fail(d);
    }
    let (a, b) = cx.broadcast_pair((a, args.arg("a").span), (b, args.arg("b").span), "for `join`")?;
    let scalars = a.shape.rank() == 0;
    let one = cx.shape(&[1], args.span)?;
    let (a, b) = if scalars { (cx.broadcast_to(a, one)?, cx.broadcast_to(b, one)?) } else { (a, b) };
    let mut dims: Vec<i128> = a.shape.iter().map(|d| i128::from(*d)).collect();
    dims.push(2);
    let shape = cx.shape(&dims, args.span)?;
    let value = cx.emit(OpKind::Join {}, &[a.value, b.value])?;
    let joined = Tensor { value, shape, ..a };
    if !scalars {
        return Ok(Val::Tensor(joined));
    }
    let two = cx.shape(&[2], args.span)?;
    Ok(Val::Tensor(cx.reshape(joined, two, false)?))
}

fn split<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = block(cx, args, "a")?;
    if t.shape.last() != Some(&2) {
        let d = Diagnostic::error(Code::BAD_SHAPE, args.span, "`split` needs a last dimension of size 2")
            .label(args.arg("a").span, format!("this is {t}"))
            .help("reshape it first, for example `x.reshape(n, 2)`");
        return cx.fail(d);
    }
    let flat = t.shape.rank() == 1;
    let t = if flat { cx.insert_axis(t, 0, args.span)? } else { t };
    let op = cx.build(OpKind::Split {}, &[t.value], &[], &[], &[], &[])?;
    let shape = t.shape.without(t.shape.rank() - 1);
    let mut halves = Vec::new();
    for i in 0..2 {
        let half = Tensor { value: cx.kernel.result(op, i), shape, ..t };
        halves.push(Val::Tensor(if flat { cx.to_scalar(half)? } else { half }));
    }
    Ok(Val::tuple(halves))
}

fn cat<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (a, b) = (block(cx, args, "input")?, block(cx, args, "other")?);
    let any_order = args.bool(cx, "can_reorder")?;
    if a.elem != b.elem || a.shape != b.shape || (any_order && a.shape.rank() != 1) {
        let message = match any_order {
            true => "`cat` with `can_reorder` takes two blocks with one dimension, of one type and size",
            false => "`cat` takes two blocks of one type and shape",
        };
        let d = Diagnostic::error(Code::SHAPE_MISMATCH, args.span, message)
            .label(args.arg("input").span, format!("this is {a}"))
            .label(args.arg("other").span, format!("this is {b}"));
        return cx.fail(d);
    }
    if !any_order {
        return one_behind_the_other(cx, args, a, b).map(Val::Tensor);
    }
    let shape = cx.shape(&[i128::from(a.shape[0]) * 2], args.span)?;
    let value = cx.emit(OpKind::Cat {}, &[a.value, b.value])?;
    Ok(Val::Tensor(Tensor { value, shape, ..a }))
}

/// Two blocks of one type and shape joined along the dimension `dim`, in order.
fn one_behind_the_other<'a>(cx: &mut Cx<'a>, args: &Args<'a>, a: Tensor, b: Tensor) -> R<Tensor> {
    let rank = a.shape.rank();
    let at = match args.given("dim") {
        Some(dim) => cx.axis_of(&dim, rank, &args.what("dim"))?,
        None => 0,
    };
    let mut dims: Vec<i128> = a.shape.iter().map(|d| i128::from(*d)).collect();
    dims.push(2);
    let joined =
        Tensor { value: cx.emit(OpKind::Join {}, &[a.value, b.value])?, shape: cx.shape(&dims, args.span)?, ..a };
    // The new dimension goes before the one along which the blocks lie.
    let mut order: Vec<u32> = (0..rank as u32).collect();
    order.insert(at, rank as u32);
    let moved: Vec<i128> = order.iter().map(|from| dims[*from as usize]).collect();
    let value = cx.emit(OpKind::Trans { order }, &[joined.value])?;
    let turned = Tensor { value, shape: cx.shape(&moved, args.span)?, ..joined };
    dims.pop();
    dims[at] *= 2;
    let shape = cx.shape(&dims, args.span)?;
    cx.reshape(turned, shape, false)
}
