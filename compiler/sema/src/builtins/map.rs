//! `map_elementwise`: a function of scalars, applied to each element of blocks. It may branch and loop on its arguments.

use rtc_ir::{Block, OpKind, Type, Value};
use rtc_source::{Code, Diagnostic, Span};

use super::reduce::scalars_only;
use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::R;
use crate::types::{ElemTy, ir_type, scalar_shape};
use crate::values::{Arg, Tensor, Val};

pub(super) const TABLE: &[Row] = &[row("map_elementwise", map_elementwise)];

fn map_elementwise<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let pack = args.int(cx, "pack")?;
    let mut tensors = Vec::new();
    let mut shape = scalar_shape();
    for arg in args.rest("args") {
        let t = cx.tensor(arg, "an argument of `map_elementwise`")?;
        shape = cx.common((Tensor { shape, ..t }, args.span), (t, arg.span), "for `map_elementwise`")?;
        tensors.push(t);
    }
    if tensors.is_empty() {
        let message = "`map_elementwise` needs at least one block";
        return cx.error(Code::WRONG_ARGUMENTS, args.span, message, "pass the blocks after the function");
    }
    let pack_span = args.given("pack").map_or(args.span, |a| a.span);
    if pack < 1 || pack & (pack - 1) != 0 {
        let message = format!("`pack` of `map_elementwise` must be a power of two, not {pack}");
        return cx.error(Code::BAD_VALUE, pack_span, message, "");
    }
    if pack > i128::from(shape.numel()) {
        let message = format!("`map_elementwise` cannot pack {pack} elements of blocks with {}", shape.numel());
        return cx.error(Code::OUT_OF_RANGE, pack_span, message, "");
    }
    let function = args.arg("scalar_fn");
    if shape.rank() == 0 {
        let call = tensors.into_iter().map(|t| Arg::new(Val::Tensor(t), args.span)).collect();
        return cx.call_positional(&function.val, call, args.span);
    }
    let mut blocks = Vec::new();
    for t in tensors {
        let whole = cx.broadcast_to(t, shape)?;
        blocks.extend(pieces(cx, whole, pack as u32)?);
    }
    let mut block = Mapped { args: &blocks, span: args.span, results: Vec::new(), single: false };
    let nested = block.build(cx, &function)?;
    if !block.results.len().is_multiple_of(pack as usize) {
        let message = format!("the function gives {} values for {pack} packed elements", block.results.len());
        let help = "it returns the values of the first result for all packed elements, then those of the next";
        return cx.error(Code::WRONG_ARGUMENTS, function.span, message, help);
    }
    scalars_only(cx, nested, &OpKind::MapElements {}, (args.name, function.span))?;
    let values: Vec<Value> = blocks.iter().map(|t| t.value).collect();
    let part = blocks[0].shape;
    let mut types = Vec::new();
    for elem in &block.results {
        types.push(ir_type(cx.ir_elem(*elem)?, part));
    }
    let op = cx.build(OpKind::MapElements {}, &[], &[], &values, &[nested], &types)?;
    let mapped: Vec<Tensor> = block
        .results
        .iter()
        .enumerate()
        .map(|(i, elem)| Tensor { value: cx.kernel.result(op, i), elem: *elem, shape: part })
        .collect();
    let mut results = Vec::new();
    for group in mapped.chunks(pack as usize) {
        if let Some(other) = group.iter().find(|t| t.elem != group[0].elem) {
            let message = format!("the values of one result differ in type: {} and {}", group[0].elem, other.elem);
            return cx.error(Code::TYPE_MISMATCH, function.span, message, "cast them with `.to(dtype)`");
        }
        let whole = together(cx, group)?;
        results.push(Val::Tensor(cx.reshape(whole, shape, false)?));
    }
    if block.single && pack == 1 {
        return Ok(results.remove(0));
    }
    Ok(Val::tuple(results))
}

/// The function as a nested block of scalars.
struct Mapped<'b> {
    args: &'b [Tensor],
    span: Span,
    /// The types of its values.
    results: Vec<ElemTy>,
    /// It returned a scalar, not a tuple.
    single: bool,
}

impl Mapped<'_> {
    fn build<'a>(&mut self, cx: &mut Cx<'a>, function: &Arg<'a>) -> R<Block> {
        let block = cx.kernel.new_block();
        let mut call = Vec::new();
        for t in self.args {
            let elem = cx.ir_elem(t.elem)?;
            let value = cx.kernel.add_arg(block, Type::Scalar(elem), None);
            call.push(Arg::new(Val::Tensor(Tensor { value, elem: t.elem, shape: scalar_shape() }), self.span));
        }
        let outer = std::mem::replace(&mut cx.block, block);
        let result = self.body(cx, function, call);
        cx.block = outer;
        result?;
        Ok(block)
    }

    fn body<'a>(&mut self, cx: &mut Cx<'a>, function: &Arg<'a>, call: Vec<Arg<'a>>) -> R<()> {
        let result = cx.call_positional(&function.val, call, self.span)?;
        let items = match &result {
            Val::Tuple(t) => t.items.clone(),
            Val::Const(crate::values::Const::None) => Vec::new(),
            other => {
                self.single = true;
                vec![other.clone()]
            }
        };
        if items.is_empty() {
            let message = "the function for `map_elementwise` returns nothing";
            return cx.error(
                Code::WRONG_ARGUMENTS,
                function.span,
                message,
                "let it return a scalar or a tuple of scalars",
            );
        }
        let mut values = Vec::new();
        for item in items {
            let t = cx.tensor(&Arg::new(item, function.span), "a result of the function for `map_elementwise`")?;
            if t.shape.rank() != 0 {
                let message = "the function for `map_elementwise` returns a block";
                let d = Diagnostic::error(Code::BAD_SHAPE, function.span, message)
                    .primary(format!("it gives {t}"))
                    .help("it gets one element of each block at a time, and returns scalars");
                return cx.fail(d);
            }
            self.results.push(t.elem);
            values.push(t.value);
        }
        cx.build(OpKind::Yields {}, &[], &[], &values, &[], &[])?;
        Ok(())
    }
}

/// The block as `pack` blocks: neighbours along the last dimension go into different ones.
fn pieces<'a>(cx: &mut Cx<'a>, t: Tensor, pack: u32) -> R<Vec<Tensor>> {
    if pack == 1 {
        return Ok(vec![t]);
    }
    let span = cx.span;
    let mut dims: Vec<i128> = t.shape.iter().map(|d| i128::from(*d)).collect();
    // The last dimension is too short, or the rank is at its maximum: the block is flattened.
    if dims.last().is_some_and(|n| *n < i128::from(pack)) || dims.len() == rtc_ir::MAX_RANK {
        dims = vec![i128::from(t.shape.numel())];
    }
    if let Some(last) = dims.last_mut() {
        *last /= 2;
    }
    let half = cx.shape(&dims, span)?;
    dims.push(2);
    let pairs = cx.shape(&dims, span)?;
    let pairs = cx.reshape(t, pairs, false)?;
    let op = cx.build(OpKind::Split {}, &[pairs.value], &[], &[], &[], &[])?;
    let halves = [0, 1].map(|i| Tensor { value: cx.kernel.result(op, i), shape: half, ..t });
    let (even, odd) = (pieces(cx, halves[0], pack / 2)?, pieces(cx, halves[1], pack / 2)?);
    Ok(even.into_iter().zip(odd).flat_map(|(a, b)| [a, b]).collect())
}

/// The reverse of [`pieces`], up to the shape.
fn together<'a>(cx: &mut Cx<'a>, parts: &[Tensor]) -> R<Tensor> {
    let [first, rest @ ..] = parts else { return Err(crate::emitter::Fault) };
    if rest.is_empty() {
        return Ok(*first);
    }
    let evens: Vec<Tensor> = parts.iter().step_by(2).copied().collect();
    let odds: Vec<Tensor> = parts.iter().skip(1).step_by(2).copied().collect();
    let (even, odd) = (together(cx, &evens)?, together(cx, &odds)?);
    let value = cx.emit(OpKind::Join {}, &[even.value, odd.value])?;
    let span = cx.span;
    let mut dims: Vec<i128> = even.shape.iter().map(|d| i128::from(*d)).collect();
    dims.push(2);
    let pairs = cx.shape(&dims, span)?;
    dims.pop();
    if let Some(last) = dims.last_mut() {
        *last *= 2;
    }
    let line = cx.shape(&dims, span)?;
    cx.reshape(Tensor { value, shape: pairs, ..even }, line, false)
}
