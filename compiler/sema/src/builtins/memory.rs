//! Loads and stores.
//!
//! A pointer is a scalar, a block of pointers, or a block pointer, which is for `block_pointer.rs`.
//!
//! Invariants: booleans lie in memory as bytes and are read as `byte != 0`; pointers lie there as 64-bit integers; pointer,
//! mask, value of an access have one shape.

use std::fmt;

use rtc_ir::{AccessSite, CacheModifier, Eviction, OpKind};
use rtc_source::{Code, Diagnostic, Span};

use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::{Fault, R};
use crate::promote::int_range;
use crate::spec::DType;
use crate::types::{ElemTy, scalar_shape};
use crate::values::{Arg, Const, Tensor, Tuple, Val};

pub(super) const TABLE: &[Row] = &[row("load", load), row("store", store)];

/// Cache hints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caching {
    pub cache: CacheModifier,
    pub evict: Eviction,
    pub volatile: bool,
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

fn load<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let how = Caching {
        cache: cx.word(args, "cache_modifier", LOAD_CACHES)?,
        evict: cx.word(args, "eviction_policy", EVICTIONS)?,
        volatile: args.bool(cx, "volatile")?,
    };
    if let Val::BlockPtr(p) = &args.arg("pointer").val {
        let p = *p;
        return cx.load_block(args, p, how);
    }
    let (pointer, pointee) = cx.pointer_arg(args, "pointer")?;
    cx.only_for_block_pointers(args, &["boundary_check", "padding_option"])?;
    let mut mask = cx.mask_arg(args, "mask", true)?;
    let other_arg = args.given("other");
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
    if other.is_none() && matches!(args.given("mask"), Some(Arg { val: Val::Const(Const::Bool(true)), .. })) {
        mask = None;
    }
    let mut target = pointer;
    for (name, part) in [("mask", &mask), ("other", &other)] {
        let Some((t, span)) = part else { continue };
        if pointer.shape.rank() == 0 {
            cx.need_scalar(args, name, *t)?;
        } else {
            let what = format!("as pointer and {}", args.what(name));
            let shape = cx.common((target, args.arg("pointer").span), (*t, *span), &what)?;
            target = cx.broadcast_to(target, shape)?;
        }
    }
    for (t, _) in mask.iter_mut().chain(&mut other) {
        *t = cx.broadcast_to(*t, target.shape)?;
    }
    let place = mask.map(|m| m.1);
    let loaded = cx.read(target, mask.map(|m| m.0), other.map(|o| o.0), how)?;
    cx.note_access(args, place, false);
    Ok(Val::Tensor(loaded))
}

fn store<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let how = Caching {
        cache: cx.word(args, "cache_modifier", STORE_CACHES)?,
        evict: cx.word(args, "eviction_policy", EVICTIONS)?,
        volatile: false,
    };
    if let Val::BlockPtr(p) = &args.arg("pointer").val {
        let p = *p;
        return cx.store_block(args, p, how);
    }
    let (pointer, pointee) = cx.pointer_arg(args, "pointer")?;
    cx.writable(args, pointer, args.arg("pointer").span)?;
    cx.only_for_block_pointers(args, &["boundary_check"])?;
    let value_arg = args.arg("value");
    warn_of_narrowing(cx, args, pointee);
    let value = cx.stored(&value_arg, pointee, "the value of `store`")?;
    let value = cx.fit(args, "value", value, pointer)?;
    let mask = match cx.mask_arg(args, "mask", true)? {
        Some(_) if matches!(args.given("mask"), Some(Arg { val: Val::Const(Const::Bool(true)), .. })) => None,
        Some((mask, _)) => Some(cx.fit(args, "mask", mask, pointer)?),
        None => None,
    };
    cx.write(pointer, value, mask, how)?;
    let place = args.given("mask").filter(|_| mask.is_some()).map(|a| a.span);
    cx.note_access(args, place, true);
    Ok(Val::NONE)
}

fn is_scalar_pointer(val: &Val<'_>) -> bool {
    matches!(val, Val::Tensor(t) if t.shape.rank() == 0 && matches!(t.elem, ElemTy::Ptr(_)))
}

/// The warning that a store rounds a float to a narrower type.
fn warn_of_narrowing<'a>(cx: &mut Cx<'a>, args: &Args<'a>, pointee: ElemTy) {
    let value = args.arg("value");
    let Val::Tensor(t) = &value.val else { return };
    if cx.in_library() || !t.elem.is_float() || !pointee.is_float() || t.elem.bits() <= pointee.bits() {
        return;
    }
    let message = format!("{} is rounded to {pointee} by this `store`", t.elem);
    let d = Diagnostic::warning(Code::NARROWING_STORE, value.span, message)
        .primary(format!("this is {t}"))
        .label(args.arg("pointer").span, format!("this is {}", args.arg("pointer").val.describe()))
        .help("cast it to show that this is meant: `value.to(ptr.dtype.element_ty)`");
    cx.report(d);
}

/// The type of the memory behind a pointer: bytes for booleans, integers for pointers.
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
        Const::Int(i) if dtype.is_integer() => {
            let (low, high) = int_range(dtype);
            (low..=high).contains(i)
        }
        Const::Int(i) => i.unsigned_abs() <= 1 << 24,
        Const::Float(x) => !dtype.is_integer() && (x.is_nan() || f64::from(*x as f32) == *x),
        _ => false,
    }
}

impl<'a> Cx<'a> {
    /// One of several words, the first of which is the default.
    pub(super) fn word<T: Copy>(&mut self, args: &Args<'a>, name: &str, words: &[(&str, T)]) -> R<T> {
        let Some(text) = args.text(self, name)? else { return Ok(words[0].1) };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == &*text) {
            return Ok(*value);
        }
        let known: Vec<String> = words.iter().filter(|(w, _)| !w.is_empty()).map(|(w, _)| format!("{w:?}")).collect();
        let d = Diagnostic::error(
            Code::BAD_VALUE,
            args.arg(name).span,
            format!("{} cannot be {:?}", args.what(name), &*text),
        )
        .help(format!("write one of {}", known.join(", ")));
        self.fail(d)
    }

    /// An argument that must be a pointer or a block of pointers, with what it points to.
    pub(super) fn pointer_arg(&mut self, args: &Args<'a>, name: &str) -> R<(Tensor, ElemTy)> {
        let arg = args.arg(name);
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
            format!("{} must be a pointer or a block of pointers", args.what(name)),
        )
        .primary(format!("this is {text}"))
        .help(help);
        self.fail(d)
    }

    /// Refuses writing through a pointer to constant memory.
    pub(super) fn writable(&mut self, args: &Args<'a>, pointer: Tensor, span: Span) -> R<()> {
        self.writable_through(args, pointer.elem, &pointer, span)
    }

    /// Refuses writing through something made of a pointer to constant memory, `elem`.
    pub(super) fn writable_through(
        &mut self,
        args: &Args<'a>,
        elem: ElemTy,
        shown: &dyn fmt::Display,
        span: Span,
    ) -> R<()> {
        if !elem.ptr().is_some_and(|p| p.is_const) {
            return Ok(());
        }
        let d = Diagnostic::error(
            Code::TYPE_MISMATCH,
            span,
            format!("Cannot store to a constant pointer, as `{}` would", args.name),
        )
        .primary(format!("this is {shown}"))
        .help("leave out `tl.const` in the annotation, or the `k` in the signature, of the pointer");
        self.fail(d)
    }

    /// Refuses arguments that mean something for block pointers only.
    fn only_for_block_pointers(&mut self, args: &Args<'a>, which: &[&'static str]) -> R<()> {
        for name in which {
            let Some(arg) = args.given(name) else { continue };
            let empty = match &arg.val {
                Val::Tuple(t) => t.items.is_empty(),
                Val::Const(Const::Str(s)) => s.is_empty(),
                _ => false,
            };
            if !empty {
                let pointer = args.arg("pointer");
                let d = Diagnostic::error(
                    Code::WRONG_ARGUMENTS,
                    arg.span,
                    format!("{} works with block pointers only", args.what(name)),
                )
                .label(pointer.span, format!("this is {}", pointer.val.describe()))
                .help("pass a `mask` instead, or make the pointer by `tl.make_block_ptr`");
                return self.fail(d);
            }
        }
        Ok(())
    }

    /// A mask: run-time booleans, or a constant where `constants` allows it.
    pub(super) fn mask_arg(&mut self, args: &Args<'a>, name: &str, constants: bool) -> R<Option<(Tensor, Span)>> {
        let Some(arg) = args.given(name) else { return Ok(None) };
        let help = match &arg.val {
            Val::Tensor(t) if t.elem == ElemTy::I1 => return Ok(Some((*t, arg.span))),
            Val::Const(Const::Bool(b)) if constants => return Ok(Some((self.bool_literal(*b)?, arg.span))),
            Val::Error => return Err(Fault),
            Val::Const(Const::Bool(_)) => "leave it out, or compare run-time values",
            Val::Tensor(t) if matches!(t.elem, ElemTy::Ptr(_)) => {
                "each pointer needs a call of its own; a block of pointers is one argument"
            }
            // `tl.load(x, offsets)`, as of an array.
            Val::Tensor(t) if t.elem.is_int() && args.name == "load" && is_scalar_pointer(&args.arg("pointer").val) => {
                "add offsets to the pointer: `tl.load(pointer + offsets, mask=mask)`"
            }
            _ => "compare it: `mask != 0`, or cast it: `mask.to(tl.int1)`",
        };
        let text = arg.val.describe();
        let d = Diagnostic::error(
            Code::TYPE_MISMATCH,
            arg.span,
            format!("{} must be a boolean or a block of booleans", args.what(name)),
        )
        .primary(format!("this is {text}"))
        .help(help);
        self.fail(d)
    }

    /// A scalar pointer takes scalar operands only.
    fn need_scalar(&mut self, args: &Args<'a>, name: &str, t: Tensor) -> R<()> {
        if t.shape.rank() == 0 {
            return Ok(());
        }
        let (pointer, arg) = (args.arg("pointer"), args.arg(name));
        let d = Diagnostic::error(
            Code::SHAPE_MISMATCH,
            arg.span,
            format!("{} is a block, but the pointer is a scalar", args.what(name)),
        )
        .primary(format!("this is {}", arg.val.describe()))
        .label(pointer.span, format!("this is {}", pointer.val.describe()))
        .help("add offsets to the pointer: `ptr + tl.arange(0, n)`");
        self.fail(d)
    }

    /// An operand, broadcast to the shape of the pointer; the pointer itself is not broadcast.
    pub(super) fn fit(&mut self, args: &Args<'a>, name: &str, t: Tensor, pointer: Tensor) -> R<Tensor> {
        if pointer.shape.rank() == 0 {
            self.need_scalar(args, name, t)?;
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
        let arg = args.arg(name);
        let d = Diagnostic::error(
            Code::SHAPE_MISMATCH,
            arg.span,
            format!("{} has the shape {from:?}, the pointer {to:?}", args.what(name)),
        )
        .primary(format!("this is {}", arg.val.describe()))
        .label(args.arg("pointer").span, format!("this is {pointer}"))
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

    /// Records the access that was built last, for the lints.
    fn note_access(&mut self, args: &Args<'a>, mask: Option<Span>, store: bool) {
        let wanted = |kind: &OpKind| matches!(kind, OpKind::Load { .. } | OpKind::Store { .. });
        // A load may be followed by a cast of what it gave.
        let last = self.kernel.ops(self.block).rev().take(8).find(|op| wanted(self.kernel.kind(*op)));
        if let Some(op) = last.filter(|_| !self.in_library()) {
            self.lint_sites.accesses.insert(op, AccessSite { pointer: args.arg("pointer").site(), mask, store });
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
        let kind =
            OpKind::Load { cache: how.cache, evict: how.evict, volatile: how.volatile, once: false, vector: None };
        let optional = [mask.map(|m| m.value), other.map(|o| o.value)];
        let op = self.build(kind, &[pointer.value], &optional, &[], &[], &[])?;
        let loaded = Tensor { value: self.kernel.result(op, 0), elem: stored_as(pointee), shape: pointer.shape };
        self.cast(loaded, pointee)
    }

    /// Stores; value and mask have the shape of the pointer, the value the type that memory holds.
    pub(super) fn write(&mut self, pointer: Tensor, value: Tensor, mask: Option<Tensor>, how: Caching) -> R<()> {
        let kind = OpKind::Store { cache: how.cache, evict: how.evict, descriptor: false, vector: None };
        self.build(kind, &[pointer.value, value.value], &[mask.map(|m| m.value)], &[], &[], &[])?;
        Ok(())
    }
}

/// The elements of a tuple, as arguments at the tuple's place.
pub(super) fn entries<'a>(t: &Tuple<'a>, span: Span) -> Vec<Arg<'a>> {
    t.items.iter().map(|v| Arg::new(v.clone(), span)).collect()
}

/// The elements of a tuple, or the single value itself.
pub(super) fn one_or_more<'a>(arg: Arg<'a>) -> Vec<Arg<'a>> {
    match &arg.val {
        Val::Tuple(t) => entries(t, arg.span),
        _ => vec![arg],
    }
}
