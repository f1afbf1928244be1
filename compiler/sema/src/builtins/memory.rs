//! Loads, stores, block pointers.
//!
//! A pointer is a scalar, a block of pointers, or a block pointer; a block pointer becomes a block of pointers and a mask
//! right here, by 64-bit arithmetic: `base + sum (offset + arange) * stride`, inside where `0 <= index < size`.
//!
//! Invariants: booleans lie in memory as bytes and are read as `byte != 0`; pointers lie there as 64-bit integers; pointer,
//! mask, value of an access have one shape.

use std::rc::Rc;

use rtc_ir::{CacheModifier, Eviction, Literal, OpKind, Predicate, Shape};
use rtc_source::{Code, Diagnostic, Span};

use super::{Args, Builtin, row};
use crate::cx::{Arg, Cx, Fault, R};
use crate::promote::{const_dtype, int_range};
use crate::spec::DType;
use crate::types::{ElemTy, scalar_shape};
use crate::values::{BlockPtr, Const, Tensor, Tuple, Val};

pub(super) const TABLE: &[Builtin] = &[
    row(
        "load",
        &[
            "pointer",
            "mask?",
            "other?",
            "boundary_check?",
            "padding_option?",
            "cache_modifier?",
            "eviction_policy?",
            "volatile?",
        ],
        load,
    ),
    row("store", &["pointer", "value", "mask?", "boundary_check?", "cache_modifier?", "eviction_policy?"], store),
    row("make_block_ptr", &["base", "shape", "strides", "offsets", "block_shape", "order"], make_block_ptr),
    row("advance", &["base", "offsets"], advance),
];

/// Wishes about the caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caching {
    pub cache: CacheModifier,
    pub evict: Eviction,
    pub volatile: bool,
}

impl Caching {
    pub(super) const NONE: Caching = Caching { cache: CacheModifier::None, evict: Eviction::Normal, volatile: false };
}

const LOAD_CACHES: &[(&str, CacheModifier)] =
    &[("", CacheModifier::None), (".ca", CacheModifier::Ca), (".cg", CacheModifier::Cg), (".cv", CacheModifier::Cv)];

const STORE_CACHES: &[(&str, CacheModifier)] = &[
    ("", CacheModifier::None),
    (".wb", CacheModifier::Wb),
    (".cg", CacheModifier::Cg),
    (".cs", CacheModifier::Cs),
    (".wt", CacheModifier::Wt),
];

const EVICTIONS: &[(&str, Eviction)] =
    &[("", Eviction::Normal), ("evict_first", Eviction::First), ("evict_last", Eviction::Last)];

/// What fills the elements of a block pointer that lie outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Unspecified,
    Zero,
    Nan,
}

const FILLS: &[(&str, Fill)] = &[("", Fill::Unspecified), ("zero", Fill::Zero), ("nan", Fill::Nan)];

fn load<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let how = Caching {
        cache: cx.word(args, 5, LOAD_CACHES)?,
        evict: cx.word(args, 6, EVICTIONS)?,
        volatile: cx.bool_arg(args, 7, false)?,
    };
    if let Val::BlockPtr(p) = &args.arg(0).val {
        let p = p.clone();
        return cx.load_block(args, &p, how);
    }
    let (pointer, pointee) = cx.pointer_arg(args, 0)?;
    cx.only_for_block_pointers(args, &[3, 4])?;
    let mut mask = cx.mask_arg(args, 1, true)?;
    let other_arg = args.given(2);
    if let (None, Some(other)) = (&mask, &other_arg) {
        let d = Diagnostic::error(Code::WRONG_ARGUMENTS, other.span, "`other` of `load` needs a `mask`")
            .primary("used nowhere, as every element is loaded")
            .help("pass `mask=...`, or leave out `other`");
        return cx.fail(d);
    }
    let mut other = match &other_arg {
        Some(arg) => Some((cx.stored(arg, pointee, "`other` of `load`")?, arg.span)),
        None => None,
    };
    if other.is_none() && matches!(args.given(1), Some(Arg { val: Val::Const(Const::Bool(true)), .. })) {
        mask = None;
    }
    let mut target = pointer;
    for (name, part) in [("mask", &mask), ("other", &other)] {
        let Some((t, span)) = part else { continue };
        if pointer.shape.rank() == 0 {
            cx.need_scalar(args, name, *t, *span)?;
        } else {
            let what = format!("as pointer and `{name}` of `load`");
            let shape = cx.common((target, args.arg(0).span), (*t, *span), &what)?;
            target = cx.broadcast_to(target, shape)?;
        }
    }
    for (t, _) in mask.iter_mut().chain(&mut other) {
        *t = cx.broadcast_to(*t, target.shape)?;
    }
    cx.read(target, mask.map(|m| m.0), other.map(|o| o.0), how).map(Val::Tensor)
}

fn store<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let how = Caching { cache: cx.word(args, 4, STORE_CACHES)?, evict: cx.word(args, 5, EVICTIONS)?, volatile: false };
    if let Val::BlockPtr(p) = &args.arg(0).val {
        let p = p.clone();
        return cx.store_block(args, &p, how);
    }
    let (pointer, pointee) = cx.pointer_arg(args, 0)?;
    cx.writable(args, pointer, args.arg(0).span)?;
    cx.only_for_block_pointers(args, &[3])?;
    let value_arg = args.arg(1);
    let value = cx.stored(&value_arg, pointee, "the value of `store`")?;
    let value = cx.fit(args, "value", value, value_arg.span, pointer)?;
    let mask = match cx.mask_arg(args, 2, true)? {
        Some(_) if matches!(args.given(2), Some(Arg { val: Val::Const(Const::Bool(true)), .. })) => None,
        Some((mask, span)) => Some(cx.fit(args, "mask", mask, span, pointer)?),
        None => None,
    };
    cx.write(pointer, value, mask, how)?;
    Ok(Val::NONE)
}

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
            .label(block_arg.span, format!("the block has {rank} dimensions"));
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

/// What the memory behind a pointer holds: bytes for booleans, integers for pointers.
pub(super) fn stored_as(pointee: ElemTy) -> ElemTy {
    match pointee {
        ElemTy::I1 => ElemTy::Num(DType::Int8),
        ElemTy::Ptr(_) => ElemTy::I64,
        other => other,
    }
}

/// Whether the constant, as an element of type `elem`, is the same as its own type cast to `elem`.
fn casts_exactly(c: &Const, elem: ElemTy) -> bool {
    let Some(dtype) = elem.num().filter(|_| !elem.is_fp8()) else { return false };
    match c {
        Const::Bool(_) => true,
        Const::Int(i) if dtype.is_integer() => const_dtype(c).is_some() && i.unsigned_abs() < 1 << 64,
        Const::Int(i) => i.unsigned_abs() <= 1 << 24,
        Const::Float(x) => !dtype.is_integer() && (x.is_nan() || f64::from(*x as f32) == *x),
        _ => false,
    }
}

impl<'a> Cx<'a> {
    /// One of several words, the first of which is the default.
    pub(super) fn word<T: Copy>(&mut self, args: &Args<'a>, index: usize, words: &[(&str, T)]) -> R<T> {
        let Some(text) = self.str_arg(args, index)? else { return Ok(words[0].1) };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == &*text) {
            return Ok(*value);
        }
        let known: Vec<String> = words.iter().filter(|(w, _)| !w.is_empty()).map(|(w, _)| format!("{w:?}")).collect();
        let d = Diagnostic::error(
            Code::BAD_VALUE,
            args.arg(index).span,
            format!("{} cannot be {:?}", args.what(index), &*text),
        )
        .help(format!("write one of {}", known.join(", ")));
        self.fail(d)
    }

    /// An argument that must be a pointer or a block of pointers, with what it points to.
    pub(super) fn pointer_arg(&mut self, args: &Args<'a>, index: usize) -> R<(Tensor, ElemTy)> {
        let arg = args.arg(index);
        let help = match &arg.val {
            Val::Tensor(t) => match t.elem.pointee() {
                Some(pointee) => return Ok((*t, pointee)),
                None => "add it to a pointer argument: `ptr + offsets`",
            },
            Val::Error => return Err(Fault),
            Val::Descriptor(_) => "read and write through a descriptor by its methods `.load` and `.store`",
            Val::BlockPtr(_) => "this works on ordinary pointers only: `ptr + offsets`",
            Val::Const(Const::None) => "test for it with `is not None` before",
            _ => "pass a pointer argument of the kernel, or `ptr + offsets`",
        };
        let text = arg.val.describe();
        let d = Diagnostic::error(
            Code::TYPE_MISMATCH,
            arg.span,
            format!("{} must be a pointer or a block of pointers", args.what(index)),
        )
        .primary(format!("this is {text}"))
        .help(help);
        self.fail(d)
    }

    /// Refuses writing through a pointer to constant memory.
    pub(super) fn writable(&mut self, args: &Args<'a>, pointer: Tensor, span: Span) -> R<()> {
        if !pointer.elem.ptr().is_some_and(|p| p.is_const) {
            return Ok(());
        }
        let d = Diagnostic::error(
            Code::TYPE_MISMATCH,
            span,
            format!("`{}` cannot write through a pointer to constants", args.name),
        )
        .primary(format!("this is {pointer}"))
        .help("leave out `tl.const` in the annotation, or the `k` in the signature, of the pointer");
        self.fail(d)
    }

    /// Refuses arguments that mean something for block pointers only.
    fn only_for_block_pointers(&mut self, args: &Args<'a>, which: &[usize]) -> R<()> {
        for index in which {
            let Some(arg) = args.given(*index) else { continue };
            let empty = match &arg.val {
                Val::Tuple(t) => t.items.is_empty(),
                Val::Const(Const::Str(s)) => s.is_empty(),
                _ => false,
            };
            if !empty {
                let pointer = args.arg(0);
                let d = Diagnostic::error(
                    Code::WRONG_ARGUMENTS,
                    arg.span,
                    format!("{} works with block pointers only", args.what(*index)),
                )
                .label(pointer.span, format!("this is {}", pointer.val.describe()))
                .help("pass a `mask` instead, or make the pointer by `tl.make_block_ptr`");
                return self.fail(d);
            }
        }
        Ok(())
    }

    /// A mask: run-time booleans, or a constant where `constants` allows it.
    pub(super) fn mask_arg(&mut self, args: &Args<'a>, index: usize, constants: bool) -> R<Option<(Tensor, Span)>> {
        let Some(arg) = args.given(index) else { return Ok(None) };
        let help = match &arg.val {
            Val::Tensor(t) if t.elem == ElemTy::I1 => return Ok(Some((*t, arg.span))),
            Val::Const(Const::Bool(b)) if constants => return Ok(Some((self.bool_literal(*b)?, arg.span))),
            Val::Error => return Err(Fault),
            Val::Const(Const::Bool(_)) => "leave it out, or compare run-time values",
            _ => "compare it: `mask != 0`, or cast it: `mask.to(tl.int1)`",
        };
        let text = arg.val.describe();
        let d = Diagnostic::error(
            Code::TYPE_MISMATCH,
            arg.span,
            format!("{} must be a boolean or a block of booleans", args.what(index)),
        )
        .primary(format!("this is {text}"))
        .help(help);
        self.fail(d)
    }

    /// Beside a scalar pointer only scalars can stand.
    fn need_scalar(&mut self, args: &Args<'a>, name: &str, t: Tensor, span: Span) -> R<()> {
        if t.shape.rank() == 0 {
            return Ok(());
        }
        let pointer = args.arg(0);
        let d = Diagnostic::error(
            Code::SHAPE_MISMATCH,
            span,
            format!("`{name}` of `{}` is a block, but the pointer is a scalar", args.name),
        )
        .primary(format!("this is {t}"))
        .label(pointer.span, format!("this is {}", pointer.val.describe()))
        .help("add offsets to the pointer: `ptr + tl.arange(0, n)`");
        self.fail(d)
    }

    /// An operand in the shape of the pointer, which does not grow.
    pub(super) fn fit(&mut self, args: &Args<'a>, name: &str, t: Tensor, span: Span, pointer: Tensor) -> R<Tensor> {
        if pointer.shape.rank() == 0 {
            self.need_scalar(args, name, t, span)?;
            return Ok(t);
        }
        let (from, to) = (t.shape, pointer.shape);
        let fits =
            from.rank() == 0 || from.rank() == to.rank() && from.iter().zip(to.iter()).all(|(a, b)| a == b || *a == 1);
        if fits {
            return self.broadcast_to(t, to);
        }
        let help = if from.rank() < to.rank() {
            "add the missing dimensions with `[:, None]` or `[None, :]`"
        } else {
            "each size must be that of the pointer, or 1"
        };
        let d = Diagnostic::error(
            Code::SHAPE_MISMATCH,
            span,
            format!("`{name}` of `{}` has the shape {from:?}, the pointer {to:?}", args.name),
        )
        .primary(format!("this is {t}"))
        .label(args.arg(0).span, format!("this is {pointer}"))
        .help(help);
        self.fail(d)
    }

    /// An argument as an element of type `elem`, as a cast makes it.
    pub(super) fn element(&mut self, arg: &Arg<'a>, elem: ElemTy, what: &str) -> R<Tensor> {
        if let Val::Const(c) = &arg.val
            && casts_exactly(c, elem)
        {
            return self.const_as(c, elem, scalar_shape());
        }
        let t = self.tensor(arg, what)?;
        self.cast(t, elem)
    }

    /// An argument as memory behind a pointer to `pointee` holds it.
    pub(super) fn stored(&mut self, arg: &Arg<'a>, pointee: ElemTy, what: &str) -> R<Tensor> {
        match pointee {
            ElemTy::Ptr(_) => {
                let pointer = self.element(arg, pointee, what)?;
                self.cast(pointer, ElemTy::I64)
            }
            _ => self.element(arg, stored_as(pointee), what),
        }
    }

    /// Loads; mask and `other` have the shape of the pointer, `other` the type that memory holds.
    pub(super) fn read(
        &mut self,
        pointer: Tensor,
        mask: Option<Tensor>,
        other: Option<Tensor>,
        how: Caching,
    ) -> R<Tensor> {
        let pointee = pointer.elem.pointee().unwrap_or(pointer.elem);
        let kind = OpKind::Load { cache: how.cache, evict: how.evict, volatile: how.volatile, vector: None };
        let optional = [mask.map(|m| m.value), other.map(|o| o.value)];
        let op = self.build(kind, &[pointer.value], &optional, &[], &[], &[])?;
        let loaded = Tensor { value: self.kernel.result(op, 0), elem: stored_as(pointee), shape: pointer.shape };
        self.cast(loaded, pointee)
    }

    /// Stores; value and mask have the shape of the pointer, the value the type that memory holds.
    pub(super) fn write(&mut self, pointer: Tensor, value: Tensor, mask: Option<Tensor>, how: Caching) -> R<()> {
        let kind = OpKind::Store { cache: how.cache, evict: how.evict, vector: None };
        self.build(kind, &[pointer.value, value.value], &[mask.map(|m| m.value)], &[], &[], &[])?;
        Ok(())
    }

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

    /// A line as one of `rank` dimensions, the others of size 1.
    pub(super) fn along(&mut self, mut line: Tensor, axis: usize, rank: usize) -> R<Tensor> {
        let span = self.span;
        for at in 0..rank {
            if at != axis {
                line = self.insert_axis(line, at, span)?;
            }
        }
        Ok(line)
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

    fn load_block(&mut self, args: &Args<'a>, p: &BlockPtr, how: Caching) -> R<Val<'a>> {
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

    fn store_block(&mut self, args: &Args<'a>, p: &BlockPtr, how: Caching) -> R<Val<'a>> {
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

    /// A block of zeros or NaNs, as memory behind a pointer to `pointee` holds them.
    pub(super) fn fill(&mut self, pointee: ElemTy, shape: Shape, nan: bool) -> R<Tensor> {
        let elem = stored_as(pointee);
        let literal = match (elem.is_float(), nan) {
            (true, true) => Literal::float(f64::NAN),
            (true, false) => Literal::float(0.0),
            (false, _) => Literal::Int(0),
        };
        self.literal(literal, elem, shape)
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

/// The elements of a tuple, as arguments at the tuple's place.
pub(super) fn entries<'a>(t: &Tuple<'a>, span: Span) -> Vec<Arg<'a>> {
    t.items.iter().map(|v| Arg::new(v.clone(), span)).collect()
}
