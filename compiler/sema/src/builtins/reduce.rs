//! Reductions and scans with a combine function, sorting, histograms.

use std::collections::HashSet;

use rtc_ir::{Block, Kernel, OpKind, Traits, Type, Value};
use rtc_source::{Code, Diagnostic, Span};

use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::R;
use crate::types::{ElemTy, scalar_shape};
use crate::values::{Arg, Tensor, Val};

pub(super) const TABLE: &[Row] = &[
    row("reduce", reduce),
    row("associative_scan", scan),
    row("histogram", histogram),
    row("sort", sort),
    row("topk", super::topk::topk),
    row("bitonic_merge", sort),
];

/// One block, or a tuple of blocks of one shape.
fn inputs<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<(Vec<Tensor>, bool)> {
    let input = args.arg("input");
    let (list, many) = match &input.val {
        Val::Tuple(t) => (t.items.iter().map(|v| Arg::new(v.clone(), input.span)).collect(), true),
        _ => (vec![input.clone()], false),
    };
    let mut tensors = Vec::new();
    for arg in &list {
        tensors.push(cx.tensor(arg, &args.what("input"))?);
    }
    let Some(first) = tensors.first().copied() else {
        return cx.error(Code::WRONG_ARGUMENTS, input.span, format!("`{}` needs at least one block", args.name), "");
    };
    if let Some(other) = tensors.iter().find(|t| t.shape != first.shape) {
        let message = format!("the blocks of `{}` differ in shape: {first} and {other}", args.name);
        return cx.error(Code::SHAPE_MISMATCH, input.span, message, "broadcast them first");
    }
    Ok((tensors, many))
}

/// A block for the combine function: it takes all left values, then all right ones, as scalars.
fn combine<'a>(cx: &mut Cx<'a>, args: &Args<'a>, tensors: &[Tensor]) -> R<Block> {
    let (f, span) = (&args.arg("combine_fn"), args.span);
    let block = cx.kernel.new_block();
    let mut call = Vec::new();
    for _ in 0..2 {
        for t in tensors {
            let elem = cx.ir_elem(t.elem)?;
            let value = cx.kernel.add_arg(block, Type::Scalar(elem), None);
            call.push(Arg::new(Val::Tensor(Tensor { value, elem: t.elem, shape: scalar_shape() }), span));
        }
    }
    let outer = std::mem::replace(&mut cx.block, block);
    let result = combined(cx, f, call, tensors, span);
    cx.block = outer;
    result?;
    scalars_only(cx, block, &OpKind::Reduce { axis: 0 }, (args.name, f.span))?;
    Ok(block)
}

/// Reports operations that the nested block of `around` must not have; `of` is the function of the language and the place
/// of the function that was passed to it.
pub(super) fn scalars_only<'a>(cx: &mut Cx<'a>, block: Block, around: &OpKind, of: (&str, Span)) -> R<()> {
    let (name, span) = of;
    remove_unused(&mut cx.kernel, block);
    for op in rtc_ir::walk_block(&cx.kernel, block) {
        let data = cx.kernel.op(op);
        let at = cx.kernel.loc(data.loc).span;
        let is_scalar = |v: &Value| matches!(cx.kernel.value_type(*v), Type::Scalar(_));
        let tile = !data.operands.iter().chain(&data.results).all(is_scalar);
        let (what, help) = if tile {
            ("makes a block", "it gets one element of each block at a time: work on scalars only")
        } else if !rtc_ir::may_stand_in(&data.kind, around) {
            ("does more than compute a result", "read and write memory, and print, outside of the function")
        } else {
            continue;
        };
        let mut d = Diagnostic::error(Code::UNSUPPORTED, span, format!("the function for `{name}` {what}"))
            .primary(format!("called by `{name}` any number of times"))
            .help(help);
        if let Some(at) = at.filter(|at| *at != span) {
            d = d.label(at, "here");
        }
        return cx.fail(d);
    }
    Ok(())
}

/// Removes operations that nothing uses. TorchInductor's helpers make blocks for the sake of their types alone.
fn remove_unused(kernel: &mut Kernel, block: Block) {
    let mut used = HashSet::new();
    let mut unused = Vec::new();
    for op in rtc_ir::walk_block(kernel, block).into_iter().rev() {
        let data = kernel.op(op);
        let pure = data.kind.spec().traits.has(Traits::PURE) && data.blocks.is_empty();
        if pure && data.results.iter().all(|v| !used.contains(v)) {
            unused.push(op);
        } else {
            used.extend(data.operands.iter().copied());
        }
    }
    unused.into_iter().for_each(|op| kernel.erase(op));
}

fn combined<'a>(cx: &mut Cx<'a>, f: &Arg<'a>, call: Vec<Arg<'a>>, tensors: &[Tensor], span: Span) -> R<()> {
    let result = cx.call_positional(&f.val, call, span)?;
    let items = match &result {
        Val::Tuple(t) => t.items.clone(),
        other => vec![other.clone()],
    };
    let mut values: Vec<Value> = Vec::new();
    for (item, wanted) in items.iter().zip(tensors) {
        let t = cx.tensor(&Arg::new(item.clone(), f.span), "the result of the combine function")?;
        if t.elem != wanted.elem || t.shape.rank() != 0 {
            let d = Diagnostic::error(
                Code::TYPE_MISMATCH,
                f.span,
                format!("the combine function gives {t} where it takes {}", wanted.elem),
            )
            .help("it must return what it takes: cast with `.to(dtype)`");
            return cx.fail(d);
        }
        values.push(t.value);
    }
    if items.len() != tensors.len() {
        let message = format!("the combine function gives {} values for {}", items.len(), tensors.len());
        return cx.error(
            Code::WRONG_ARGUMENTS,
            f.span,
            message,
            "it takes all left values, then all right ones, and returns as many as one side",
        );
    }
    cx.build(OpKind::Yields {}, &[], &[], &values, &[], &[])?;
    Ok(())
}

fn results<'a>(tensors: Vec<Tensor>, many: bool) -> Val<'a> {
    let mut items: Vec<Val<'a>> = tensors.into_iter().map(Val::Tensor).collect();
    if many || items.len() != 1 { Val::tuple(items) } else { items.remove(0) }
}

fn reduce<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (mut tensors, many) = inputs(cx, args)?;
    let keep_dims = args.bool(cx, "keep_dims")?;
    let original = tensors[0].shape;
    if original.rank() == 0 {
        let d = Diagnostic::error(Code::BAD_SHAPE, args.arg("input").span, "a scalar cannot be reduced")
            .primary(format!("this is {}", tensors[0]))
            .help("leave the reduction out; a loop adds up scalars: `total += x`");
        return cx.fail(d);
    }
    let axis = match args.given("axis") {
        Some(arg) => cx.axis_of(&arg, original.rank(), &args.what("axis"))?,
        None => {
            let flat = cx.shape(&[i128::from(original.numel())], args.span)?;
            for t in &mut tensors {
                *t = cx.reshape(*t, flat, true)?;
            }
            0
        }
    };
    let block = combine(cx, args, &tensors)?;
    let values: Vec<Value> = tensors.iter().map(|t| t.value).collect();
    let op = cx.build(OpKind::Reduce { axis: axis as u32 }, &[], &[], &values, &[block], &[])?;
    let rest = tensors[0].shape.without(axis);
    let mut out = Vec::new();
    for (i, t) in tensors.iter().enumerate() {
        let mut result = Tensor { value: cx.kernel.result(op, i), shape: rest, ..*t };
        if keep_dims {
            result = match args.given("axis") {
                Some(_) => cx.insert_axis(result, axis, args.span)?,
                None => {
                    let ones = vec![1; original.rank()];
                    let shape = cx.shape(&ones, args.span)?;
                    cx.broadcast_to(result, shape)?
                }
            };
        }
        out.push(result);
    }
    Ok(results(out, many))
}

fn scan<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (tensors, many) = inputs(cx, args)?;
    let axis = args.axis(cx, "axis", tensors[0].shape.rank())?;
    let reverse = args.bool(cx, "reverse")?;
    let block = combine(cx, args, &tensors)?;
    let values: Vec<Value> = tensors.iter().map(|t| t.value).collect();
    let op = cx.build(OpKind::Scan { axis: axis as u32, reverse }, &[], &[], &values, &[block], &[])?;
    let out = tensors.iter().enumerate().map(|(i, t)| Tensor { value: cx.kernel.result(op, i), ..*t }).collect();
    Ok(results(out, many))
}

fn histogram<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = args.tensor(cx, "input")?;
    if t.shape.rank() != 1 || !t.elem.is_int() {
        let d = Diagnostic::error(
            Code::TYPE_MISMATCH,
            args.arg("input").span,
            "`histogram` takes a block of integers with one dimension",
        )
        .primary(format!("this is {t}"));
        return cx.fail(d);
    }
    let bins = args.int(cx, "num_bins")?;
    let shape = cx.shape(&[bins], args.arg("num_bins").span)?;
    let mask = match args.optional_tensor(cx, "mask")? {
        Some(mask) => {
            let mask = cx.is_not_zero(mask)?;
            Some(cx.broadcast_to(mask, t.shape)?.value)
        }
        None => None,
    };
    let op = cx.build(OpKind::Histogram { bins: shape[0] }, &[t.value], &[mask], &[], &[], &[])?;
    Ok(Val::Tensor(Tensor { value: cx.kernel.result(op, 0), elem: ElemTy::I32, shape }))
}

/// The block to sort; only the last axis can be sorted.
pub(super) fn sorted<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Tensor> {
    let t = args.tensor(cx, "x")?;
    let rank = t.shape.rank();
    if rank == 0 {
        let d = Diagnostic::error(Code::BAD_SHAPE, args.arg("x").span, format!("`{}` takes a block", args.name))
            .primary(format!("this is {t}"));
        return cx.fail(d);
    }
    if let Some(dim) = args.given("dim") {
        let axis = cx.axis_of(&dim, rank, "the dim")?;
        if axis != rank - 1 {
            let message = format!("`{}` works along the last dimension only", args.name);
            return cx.error(Code::UNSUPPORTED, dim.span, message, "bring the dimension to the end with `tl.permute`");
        }
    }
    Ok(t)
}

fn sort<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = sorted(cx, args)?;
    let descending = args.bool(cx, "descending")?;
    let signed = t.elem.is_signed();
    Ok(Val::Tensor(cx.each(OpKind::Sort { descending, signed, bitonic: false }, &[t.value], t)?))
}
