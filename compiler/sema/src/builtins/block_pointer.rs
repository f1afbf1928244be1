//! Block pointers: `base + sum (offset + index) * stride`, inside where `0 <= offset + index < size`.
//!
//! ```text
//! p = tl.make_block_ptr(x, (m, n), (n, 1), (0, k), (16, 32), (1, 0))
//! a = tl.load(p, boundary_check=(0, 1), padding_option="zero")
//! p = tl.advance(p, (0, 32))
//! ```

use rtc_ir::{BlockPtrType, OpKind, Padding, Scalar, Type, Value};
use rtc_source::{Code, Diagnostic, Span};

use super::memory::{Caching, stored_as};
use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::{Fault, R};
use crate::promote::int_range;
use crate::spec::DType;
use crate::types::{ElemTy, scalar_shape};
use crate::values::{Arg, BlockPtr, Const, Tensor, Val};

pub(super) const TABLE: &[Row] = &[row("make_block_ptr", make_block_ptr), row("advance", advance)];

const PADDINGS: &[(&str, Padding)] = &[("", Padding::Unspecified), ("zero", Padding::Zero), ("nan", Padding::Nan)];

fn make_block_ptr<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (mut base, pointee) = cx.pointer_arg(args, "base")?;
    let base_span = args.arg("base").span;
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
    let shape = cx.numbers(&args.arg("shape"), &args.what("shape"), ElemTy::I64)?;
    let strides = cx.numbers(&args.arg("strides"), &args.what("strides"), ElemTy::I64)?;
    let offsets = cx.numbers(&args.arg("offsets"), &args.what("offsets"), ElemTy::I32)?;
    let block_arg = as_list(args.arg("block_shape"));
    let block = cx.shape_of(&block_arg, &args.what("block_shape"))?;
    let order_arg = as_list(args.arg("order"));
    let order = cx.ints_of(std::slice::from_ref(&order_arg), &args.what("order"))?;
    let rank = block.rank();
    if rank == 0 {
        let message = "a block pointer has one dimension at least";
        return cx.error(Code::BAD_SHAPE, block_arg.span, message, "read and write scalars through the pointer itself");
    }
    let lengths =
        [("shape", shape.len()), ("strides", strides.len()), ("offsets", offsets.len()), ("order", order.len())];
    for (name, length) in lengths {
        if length != rank {
            let arg = args.arg(name);
            let d = Diagnostic::error(
                Code::BAD_SHAPE,
                arg.span,
                format!("{} must have one entry per dimension of the block", args.what(name)),
            )
            .primary(format!("{length} entries"))
            .label(block_arg.span, format!("the block has {}", crate::expect::dimensions(rank)))
            .help("give one entry for each dimension of `block_shape`");
            return cx.fail(d);
        }
    }
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..rank as i128) {
        let d = Diagnostic::error(Code::BAD_VALUE, order_arg.span, "`order` must name each dimension once")
            .primary(format!("not an order of 0 to {}", rank.saturating_sub(1)))
            .help("the fastest dimension stands first: `order=(1, 0)` for row-major matrices");
        return cx.fail(d);
    }
    let order = order.into_iter().map(|axis| axis as u32).collect();
    let numbers: Vec<Value> = [shape, strides, offsets].iter().flatten().map(|t| t.value).collect();
    let elem = cx.ir_elem(base.elem)?.pointee().unwrap_or(Scalar::I8);
    let ty = Type::BlockPtr(BlockPtrType { elem, shape: block });
    let op = cx.build(OpKind::MakeBlockPtr { order }, &[base.value], &[], &numbers, &[], &[ty])?;
    Ok(Val::BlockPtr(BlockPtr { value: cx.kernel.result(op, 0), base: base.elem, block }))
}

fn advance<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let arg = args.arg("base");
    let p = match &arg.val {
        Val::BlockPtr(p) => *p,
        Val::Error => return Err(Fault),
        other => {
            let text = other.describe();
            let d = Diagnostic::error(Code::TYPE_MISMATCH, arg.span, "`advance` moves block pointers")
                .primary(format!("this is {text}"))
                .help("move other pointers by `+`; `tl.make_block_ptr` makes a block pointer");
            return cx.fail(d);
        }
    };
    let moves_arg = args.arg("offsets");
    let moves = cx.numbers(&moves_arg, &args.what("offsets"), ElemTy::I32)?;
    if moves.len() != p.block.rank() {
        let d = Diagnostic::error(
            Code::BAD_SHAPE,
            moves_arg.span,
            "`advance` needs one offset per dimension of the block pointer",
        )
        .primary(format!("{} offsets", moves.len()))
        .label(arg.span, format!("this is {}", arg.val.describe()));
        return cx.fail(d);
    }
    let moves: Vec<Value> = moves.iter().map(|t| t.value).collect();
    let op = cx.build(OpKind::Advance {}, &[p.value], &[], &moves, &[], &[])?;
    Ok(Val::BlockPtr(BlockPtr { value: cx.kernel.result(op, 0), ..p }))
}

/// A single number in place of a list is a list of one.
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

    pub(super) fn load_block(&mut self, args: &Args<'a>, p: BlockPtr, how: Caching) -> R<Val<'a>> {
        self.not_for_block_pointers(args, &["mask", "other"])?;
        let check = self.boundary_check(args, p)?;
        let padding = self.word(args, "padding_option", PADDINGS)?;
        let pointee = p.pointee();
        if padding == Padding::Nan && !pointee.is_float() {
            let d = Diagnostic::error(
                Code::BAD_VALUE,
                args.arg("padding_option").span,
                format!("{pointee} has no NaN to pad with"),
            )
            .label(args.arg("pointer").span, format!("this is {}", args.arg("pointer").val.describe()))
            .help("write `padding_option=\"zero\"`");
            return self.fail(d);
        }
        let Caching { cache, evict, volatile } = how;
        let kind = OpKind::BlockLoad { check, padding, cache, evict, volatile };
        let value = self.emit(kind, &[p.value])?;
        self.cast(Tensor { value, elem: stored_as(pointee), shape: p.block }, pointee).map(Val::Tensor)
    }

    pub(super) fn store_block(&mut self, args: &Args<'a>, p: BlockPtr, how: Caching) -> R<Val<'a>> {
        self.not_for_block_pointers(args, &["mask"])?;
        self.writable_through(args, p.base, &p.base, args.arg("pointer").span)?;
        let check = self.boundary_check(args, p)?;
        let pointee = p.pointee();
        let arg = args.arg("value");
        let value = self.tensor(&arg, "the value of `store`")?;
        if value.elem != pointee {
            let d = Diagnostic::error(
                Code::TYPE_MISMATCH,
                arg.span,
                "a store through a block pointer does not convert the value",
            )
            .primary(format!("this is {}", arg.val.describe()))
            .label(args.arg("pointer").span, format!("this is {}", args.arg("pointer").val.describe()))
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
            .label(args.arg("pointer").span, format!("this is {}", args.arg("pointer").val.describe()))
            .help("the value must be a scalar or have exactly the shape of the block");
            return self.fail(d);
        }
        let value = match pointee {
            ElemTy::Ptr(_) => self.cast(value, ElemTy::I64)?,
            _ => value,
        };
        let value = self.broadcast_to(value, p.block)?;
        let kind = OpKind::BlockStore { check, cache: how.cache, evict: how.evict };
        self.build(kind, &[p.value, value.value], &[], &[], &[], &[])?;
        Ok(Val::NONE)
    }

    fn not_for_block_pointers(&mut self, args: &Args<'a>, which: &[&'static str]) -> R<()> {
        for name in which {
            if let Some(arg) = args.given(name) {
                let d = Diagnostic::error(
                    Code::WRONG_ARGUMENTS,
                    arg.span,
                    format!("{} does not work with block pointers", args.what(name)),
                )
                .label(args.arg("pointer").span, format!("this is {}", args.arg("pointer").val.describe()))
                .help("write `boundary_check=(0, 1)` with the dimensions to guard");
                return self.fail(d);
            }
        }
        Ok(())
    }

    /// The dimensions that `boundary_check` names, each once.
    fn boundary_check(&mut self, args: &Args<'a>, p: BlockPtr) -> R<Vec<u32>> {
        let Some(arg) = args.given("boundary_check") else { return Ok(Vec::new()) };
        let list = as_list(arg);
        let dims = self.ints_of(std::slice::from_ref(&list), &args.what("boundary_check"))?;
        let rank = p.block.rank();
        let mut checked = Vec::with_capacity(dims.len());
        for dim in dims {
            let (code, message) = match usize::try_from(dim) {
                Ok(axis) if axis < rank && !checked.contains(&(axis as u32)) => {
                    checked.push(axis as u32);
                    continue;
                }
                Ok(axis) if axis < rank => (Code::BAD_VALUE, format!("`boundary_check` names dimension {axis} twice")),
                _ => (Code::OUT_OF_RANGE, format!("dimension {dim} does not exist")),
            };
            let d = Diagnostic::error(code, list.span, message)
                .label(args.arg("pointer").span, format!("this is {}", args.arg("pointer").val.describe()))
                .help(format!("the dimensions are 0 to {}", rank.saturating_sub(1)));
            return self.fail(d);
        }
        checked.sort_unstable();
        Ok(checked)
    }
}
