//! Block pointers, and windows into memory in general.
//!
//! A window becomes a block of pointers and a mask by 64-bit arithmetic: `base + sum (offset + arange) * stride`, inside
//! where `0 <= index < size`.
//!
//! ```text
//! p = tl.make_block_ptr(x, (m, n), (n, 1), (0, k), (16, 32), (1, 0))
//! a = tl.load(p, boundary_check=(0, 1), padding_option="zero")
//! p = tl.advance(p, (0, 32))
//! ```

use std::rc::Rc;

use rtc_ir::{Literal, OpKind, Predicate, Shape};
use rtc_source::{Code, Diagnostic, Span};

use super::memory::Caching;
use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::{Fault, R};
use crate::promote::int_range;
use crate::spec::DType;
use crate::types::{ElemTy, scalar_shape};
use crate::values::{Arg, BlockPtr, Const, Tensor, Val};

pub(super) const TABLE: &[Row] = &[row("make_block_ptr", make_block_ptr), row("advance", advance)];

/// What fills the elements of a block pointer that lie outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Unspecified,
    Zero,
    Nan,
}

const FILLS: &[(&str, Fill)] = &[("", Fill::Unspecified), ("zero", Fill::Zero), ("nan", Fill::Nan)];

fn make_block_ptr<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (mut base, pointee) = cx.pointer_arg(args, 0)?;
    let base_span = args.arg(0).span;
    if base.shape.rank() > 0 {
        let d = Diagnostic::error(Code::BAD_SHAPE, base_span, "the base of a block pointer must be a scalar pointer")
            .primary(format!("this is {base}"))
            .help("pass the pointer argument itself; `offsets` says where the block starts");
        return cx.fail(d);
    }
    if pointee == ElemTy::I1 {
        let is_const = base.elem.ptr().is_some_and(|p| p.is_const);
        base = cx.cast(base, ElemTy::Num(DType::Int8).pointer_to(is_const))?;
    }
    let shape = cx.numbers(&args.arg(1), &args.what(1), ElemTy::I64)?;
    let strides = cx.numbers(&args.arg(2), &args.what(2), ElemTy::I64)?;
    let offsets = cx.numbers(&args.arg(3), &args.what(3), ElemTy::I32)?;
    let block_arg = as_list(args.arg(4));
    let block = cx.shape_of(&block_arg, &args.what(4))?;
    let order_arg = as_list(args.arg(5));
    let order = cx.ints_of(std::slice::from_ref(&order_arg), &args.what(5))?;
    let rank = block.rank();
    let lengths = [(1, shape.len()), (2, strides.len()), (3, offsets.len()), (5, order.len())];
    for (index, length) in lengths {
        if length != rank {
            let arg = args.arg(index);
            let d = Diagnostic::error(
                Code::BAD_SHAPE,
                arg.span,
                format!("{} must have one entry per dimension of the block", args.what(index)),
            )
            .primary(format!("{length} entries"))
            .label(block_arg.span, format!("the block has {}", crate::expect::dimensions(rank)))
            .help("give one entry for each dimension of `block_shape`");
            return cx.fail(d);
        }
    }
    let mut sorted = order;
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..rank as i128) {
        let d = Diagnostic::error(Code::BAD_VALUE, order_arg.span, "`order` must name each dimension once")
            .primary(format!("not an order of 0 to {}", rank.saturating_sub(1)))
            .help("the fastest dimension stands first: `order=(1, 0)` for row-major matrices");
        return cx.fail(d);
    }
    Ok(Val::BlockPtr(Rc::new(BlockPtr { base, shape, strides, offsets, block })))
}

fn advance<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let arg = args.arg(0);
    let p = match &arg.val {
        Val::BlockPtr(p) => p.clone(),
        Val::Error => return Err(Fault),
        other => {
            let text = other.describe();
            let d = Diagnostic::error(Code::TYPE_MISMATCH, arg.span, "`advance` moves block pointers")
                .primary(format!("this is {text}"))
                .help("move other pointers by `+`; `tl.make_block_ptr` makes a block pointer");
            return cx.fail(d);
        }
    };
    let moves_arg = args.arg(1);
    let moves = cx.numbers(&moves_arg, &args.what(1), ElemTy::I32)?;
    if moves.len() != p.offsets.len() {
        let d = Diagnostic::error(
            Code::BAD_SHAPE,
            moves_arg.span,
            "`advance` needs one offset per dimension of the block pointer",
        )
        .primary(format!("{} offsets", moves.len()))
        .label(arg.span, format!("this is {}", arg.val.describe()));
        return cx.fail(d);
    }
    let mut moved = (*p).clone();
    for (offset, by) in moved.offsets.iter_mut().zip(moves) {
        *offset = cx.each(OpKind::AddI {}, &[offset.value, by.value], *offset)?;
    }
    Ok(Val::BlockPtr(Rc::new(moved)))
}

/// One number where a list may stand is a list of one.
fn as_list(arg: Arg<'_>) -> Arg<'_> {
    match arg.val {
        Val::Const(Const::Int(_)) | Val::Tensor(_) => Arg::new(Val::tuple(vec![arg.val]), arg.span),
        _ => arg,
    }
}

impl<'a> Cx<'a> {
    /// Scalar integers of type `elem` (32 or 64 bits, signed), from a list or a single number.
    pub(super) fn numbers(&mut self, arg: &Arg<'a>, what: &str, elem: ElemTy) -> R<Vec<Tensor>> {
        let arg = as_list(arg.clone());
        let items = match &arg.val {
            Val::Tuple(t) => t.items.clone(),
            Val::Error => return Err(Fault),
            other => {
                let text = other.describe();
                let d = Diagnostic::error(Code::TYPE_MISMATCH, arg.span, format!("{what} must be a tuple or list"))
                    .primary(format!("this is {text}"))
                    .help("write one entry per dimension: `[m, n]`");
                return self.fail(d);
            }
        };
        items.iter().map(|item| self.number(item, arg.span, what, elem)).collect()
    }

    /// A scalar integer of type `elem`, 32 or 64 bits wide and signed.
    pub(super) fn number(&mut self, item: &Val<'a>, span: Span, what: &str, elem: ElemTy) -> R<Tensor> {
        match item {
            Val::Const(c @ (Const::Int(_) | Const::Bool(_))) => {
                let (low, high) = elem.num().map_or((0, 0), int_range);
                let value = crate::const_eval::as_int(c).unwrap_or(0);
                if (low..=high).contains(&value) {
                    return self.const_as(c, elem, scalar_shape());
                }
                let d =
                    Diagnostic::error(Code::OUT_OF_RANGE, span, format!("an entry of {what} does not fit in {elem}"))
                        .primary(format!("{value} is outside of {low} to {high}"));
                self.fail(d)
            }
            Val::Tensor(t) if t.shape.rank() == 0 && t.elem.is_int() => {
                if t.elem.bits() <= elem.bits() {
                    return self.cast(*t, elem);
                }
                let d = Diagnostic::error(Code::TYPE_MISMATCH, span, format!("an entry of {what} must have 32 bits"))
                    .primary(format!("this has the type {t}"))
                    .help("cast it: `.to(tl.int32)`, or move the base pointer instead");
                self.fail(d)
            }
            Val::Error => Err(Fault),
            other => {
                let text = other.describe();
                let d = Diagnostic::error(
                    Code::TYPE_MISMATCH,
                    span,
                    format!("an entry of {what} must be a scalar integer"),
                )
                .primary(format!("an entry is {text}"));
                self.fail(d)
            }
        }
    }

    // Windows into memory.

    /// The indices `offset + (0..size)` along one of `rank` dimensions, 64 bits wide.
    pub(super) fn axis_index(&mut self, offset: Tensor, size: u32, axis: usize, rank: usize) -> R<Tensor> {
        let line = Shape::new(&[size]).unwrap_or(scalar_shape());
        let value = self.emit(OpKind::Arange { start: 0, end: i64::from(size) }, &[])?;
        let steps = self.cast(Tensor { value, elem: ElemTy::I32, shape: line }, ElemTy::I64)?;
        let offset = self.cast(offset, ElemTy::I64)?;
        let offset = self.broadcast_to(offset, line)?;
        let index = self.each(OpKind::AddI {}, &[offset.value, steps.value], steps)?;
        self.along(index, axis, rank)
    }

    /// `base + sum index * stride` in the shape of the block.
    pub(super) fn addresses(
        &mut self,
        base: Tensor,
        indices: &[Tensor],
        strides: &[Tensor],
        block: Shape,
    ) -> R<Tensor> {
        let mut pointer = self.broadcast_to(base, block)?;
        for (index, stride) in indices.iter().zip(strides) {
            let mut offset = *index;
            if !self.is_literal(*stride, 1) {
                let factor = self.cast(*stride, ElemTy::I64)?;
                let factor = self.broadcast_to(factor, index.shape)?;
                offset = self.each(OpKind::MulI {}, &[offset.value, factor.value], offset)?;
            }
            let offset = self.broadcast_to(offset, block)?;
            pointer = self.each(OpKind::AddPtr {}, &[pointer.value, offset.value], pointer)?;
        }
        Ok(pointer)
    }

    /// Where all given indices lie in `0..size`; `None` if none is given.
    pub(super) fn inside(&mut self, checked: &[(Tensor, Tensor)], block: Shape) -> R<Option<Tensor>> {
        let mut all: Option<Tensor> = None;
        for (index, size) in checked {
            let zero = self.int_literal(0, ElemTy::I64, index.shape)?;
            let size = self.cast(*size, ElemTy::I64)?;
            let size = self.broadcast_to(size, index.shape)?;
            let boolean = Tensor { elem: ElemTy::I1, ..*index };
            let low = self.each(OpKind::CmpI { predicate: Predicate::Ge }, &[index.value, zero.value], boolean)?;
            let high = self.each(OpKind::CmpI { predicate: Predicate::Lt }, &[index.value, size.value], boolean)?;
            let here = self.each(OpKind::AndI {}, &[low.value, high.value], boolean)?;
            let here = self.broadcast_to(here, block)?;
            all = Some(match all {
                Some(before) => self.each(OpKind::AndI {}, &[before.value, here.value], here)?,
                None => here,
            });
        }
        Ok(all)
    }

    fn is_literal(&self, t: Tensor, wanted: i64) -> bool {
        let op = self.kernel.def_op(t.value);
        op.is_some_and(|op| matches!(self.kernel.kind(op), OpKind::Constant { value: Literal::Int(i) } if *i == wanted))
    }

    // Block pointers.

    pub(super) fn load_block(&mut self, args: &Args<'a>, p: &BlockPtr, how: Caching) -> R<Val<'a>> {
        self.not_for_block_pointers(args, &[1, 2])?;
        let checked = self.boundary_check(args, p)?;
        let fill = self.word(args, 4, FILLS)?;
        let pointee = p.base.elem.pointee().unwrap_or(p.base.elem);
        if fill == Fill::Nan && !pointee.is_float() {
            let d = Diagnostic::error(Code::BAD_VALUE, args.arg(4).span, format!("{pointee} has no NaN to pad with"))
                .label(args.arg(0).span, format!("this is {}", args.arg(0).val.describe()))
                .help("write `padding_option=\"zero\"`");
            return self.fail(d);
        }
        let (pointer, mask) = self.block_window(p, &checked)?;
        let other = match (mask, fill) {
            (None, _) | (_, Fill::Unspecified) => None,
            (_, Fill::Zero) => Some(self.fill(pointee, p.block, false)?),
            (_, Fill::Nan) => Some(self.fill(pointee, p.block, true)?),
        };
        self.read(pointer, mask, other, how).map(Val::Tensor)
    }

    pub(super) fn store_block(&mut self, args: &Args<'a>, p: &BlockPtr, how: Caching) -> R<Val<'a>> {
        self.not_for_block_pointers(args, &[2])?;
        self.writable(args, p.base, args.arg(0).span)?;
        let checked = self.boundary_check(args, p)?;
        let pointee = p.base.elem.pointee().unwrap_or(p.base.elem);
        let arg = args.arg(1);
        let value = self.tensor(&arg, "the value of `store`")?;
        if value.elem != pointee {
            let d = Diagnostic::error(
                Code::TYPE_MISMATCH,
                arg.span,
                "a store through a block pointer does not convert the value",
            )
            .primary(format!("this is {}", arg.val.describe()))
            .label(args.arg(0).span, format!("this is {}", args.arg(0).val.describe()))
            .help(format!("cast the value to {pointee}: `value.to(ptr.dtype.element_ty)`"));
            return self.fail(d);
        }
        if value.shape.rank() > 0 && value.shape != p.block {
            let d = Diagnostic::error(
                Code::SHAPE_MISMATCH,
                arg.span,
                format!("the value has the shape {:?}, the block pointer {:?}", value.shape, p.block),
            )
            .primary(format!("this is {value}"))
            .label(args.arg(0).span, format!("this is {}", args.arg(0).val.describe()))
            .help("the value must be a scalar or have exactly the shape of the block");
            return self.fail(d);
        }
        let value = match pointee {
            ElemTy::Ptr(_) => self.cast(value, ElemTy::I64)?,
            _ => value,
        };
        let value = self.broadcast_to(value, p.block)?;
        let (pointer, mask) = self.block_window(p, &checked)?;
        self.write(pointer, value, mask, how)?;
        Ok(Val::NONE)
    }

    fn block_window(&mut self, p: &BlockPtr, checked: &[usize]) -> R<(Tensor, Option<Tensor>)> {
        let rank = p.block.rank();
        let mut indices = Vec::with_capacity(rank);
        for (axis, offset) in p.offsets.iter().enumerate() {
            indices.push(self.axis_index(*offset, p.block[axis], axis, rank)?);
        }
        let pointer = self.addresses(p.base, &indices, &p.strides, p.block)?;
        let bounds: Vec<_> = checked.iter().map(|axis| (indices[*axis], p.shape[*axis])).collect();
        let mask = self.inside(&bounds, p.block)?;
        Ok((pointer, mask))
    }

    fn not_for_block_pointers(&mut self, args: &Args<'a>, which: &[usize]) -> R<()> {
        for index in which {
            if let Some(arg) = args.given(*index) {
                let d = Diagnostic::error(
                    Code::WRONG_ARGUMENTS,
                    arg.span,
                    format!("{} does not work with block pointers", args.what(*index)),
                )
                .label(args.arg(0).span, format!("this is {}", args.arg(0).val.describe()))
                .help("write `boundary_check=(0, 1)` with the dimensions to guard");
                return self.fail(d);
            }
        }
        Ok(())
    }

    /// The dimensions that `boundary_check` names, each once.
    fn boundary_check(&mut self, args: &Args<'a>, p: &BlockPtr) -> R<Vec<usize>> {
        let Some(arg) = args.given(3) else { return Ok(Vec::new()) };
        let list = as_list(arg);
        let dims = self.ints_of(std::slice::from_ref(&list), &args.what(3))?;
        let rank = p.block.rank();
        let mut checked = Vec::with_capacity(dims.len());
        for dim in dims {
            let (code, message) = match usize::try_from(dim) {
                Ok(axis) if axis < rank && !checked.contains(&axis) => {
                    checked.push(axis);
                    continue;
                }
                Ok(axis) if axis < rank => (Code::BAD_VALUE, format!("`boundary_check` names dimension {axis} twice")),
                _ => (Code::OUT_OF_RANGE, format!("dimension {dim} does not exist")),
            };
            let d = Diagnostic::error(code, list.span, message)
                .label(args.arg(0).span, format!("this is {}", args.arg(0).val.describe()))
                .help(format!("the dimensions are 0 to {}", rank.saturating_sub(1)));
            return self.fail(d);
        }
        checked.sort_unstable();
        Ok(checked)
    }
}
