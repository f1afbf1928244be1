//! Atomic operations.
//!
//! GPUs have no atomic maximum of floats: values without a sign bit are ordered like signed integers, those with it in
//! reverse like unsigned integers, so the operation is split into two masked ones on the bits. Bitwise operations and
//! exchanges of floats work on the bits, too. Halves, which only descriptors accept, have operations of their own.

use rtc_ir::{MemScope, MemSemantic, OpKind, Predicate, RmwOp};
use rtc_source::{Code, Diagnostic, Span};

use super::memory::stored_as;
use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::R;
use crate::spec::DType;
use crate::types::ElemTy;
use crate::values::{Const, Tensor, Val};

pub(super) const TABLE: &[Row] = &[
    row("atomic_add", |cx, args| atomic(cx, args, Action::Add)),
    row("atomic_max", |cx, args| atomic(cx, args, Action::Max)),
    row("atomic_min", |cx, args| atomic(cx, args, Action::Min)),
    row("atomic_and", |cx, args| atomic(cx, args, Action::And)),
    row("atomic_or", |cx, args| atomic(cx, args, Action::Or)),
    row("atomic_xor", |cx, args| atomic(cx, args, Action::Xor)),
    row("atomic_xchg", |cx, args| atomic(cx, args, Action::Xchg)),
    row("atomic_cas", compare_and_swap),
    row("atomic_load", load),
    row("atomic_store", store),
    row("atomic_poll", poll),
];

/// The combination of the old and the new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Add,
    Max,
    Min,
    And,
    Or,
    Xor,
    Xchg,
}

/// Memory order and scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub sem: MemSemantic,
    pub scope: MemScope,
}

const SEMANTICS: &[(&str, MemSemantic)] = &[
    ("", MemSemantic::AcqRel),
    ("relaxed", MemSemantic::Relaxed),
    ("acquire", MemSemantic::Acquire),
    ("release", MemSemantic::Release),
    ("acq_rel", MemSemantic::AcqRel),
];

const LOAD_SEMANTICS: &[(&str, MemSemantic)] =
    &[("", MemSemantic::Acquire), ("acquire", MemSemantic::Acquire), ("relaxed", MemSemantic::Relaxed)];

const STORE_SEMANTICS: &[(&str, MemSemantic)] =
    &[("", MemSemantic::Release), ("release", MemSemantic::Release), ("relaxed", MemSemantic::Relaxed)];

const SCOPES: &[(&str, MemScope)] =
    &[("", MemScope::Gpu), ("gpu", MemScope::Gpu), ("cta", MemScope::Cta), ("sys", MemScope::Sys)];

impl Action {
    /// The element types that it works on.
    fn dtypes(self) -> &'static [DType] {
        use DType::{Bf16, Fp16, Fp32, Fp64, Int32, Int64, UInt32, UInt64};
        match self {
            Action::Add => &[Int32, UInt32, Int64, UInt64, Fp16, Bf16, Fp32, Fp64],
            _ => &[Int32, UInt32, Int64, UInt64, Fp32, Fp64],
        }
    }

    pub(super) fn rmw(self, elem: ElemTy) -> RmwOp {
        match self {
            Action::Add if elem.is_float() => RmwOp::FAdd,
            Action::Add => RmwOp::Add,
            Action::Max if elem.is_float() => RmwOp::FMax,
            Action::Min if elem.is_float() => RmwOp::FMin,
            Action::Max if elem.is_signed() => RmwOp::Max,
            Action::Max => RmwOp::UMax,
            Action::Min if elem.is_signed() => RmwOp::Min,
            Action::Min => RmwOp::UMin,
            Action::And => RmwOp::And,
            Action::Or => RmwOp::Or,
            Action::Xor => RmwOp::Xor,
            Action::Xchg => RmwOp::Xchg,
        }
    }
}

fn atomic<'a>(cx: &mut Cx<'a>, args: &Args<'a>, action: Action) -> R<Val<'a>> {
    let (pointer, pointee) = cx.pointer_arg(args, "pointer")?;
    let pointer_span = args.arg("pointer").span;
    cx.writable(args, pointer, pointer_span)?;
    cx.atomic_type(args.name, pointee, action.dtypes(), (pointer, pointer_span))?;
    let value_arg = args.arg("val");
    let value = cx.element(&value_arg, pointee, &args.what("val"))?;
    let value = cx.fit(args, "val", value, pointer)?;
    let mask = match cx.mask_arg(args, "mask", false)? {
        Some((mask, _)) => Some(cx.fit(args, "mask", mask, pointer)?),
        None => None,
    };
    let order = Order { sem: cx.word(args, "sem", SEMANTICS)?, scope: cx.word(args, "scope", SCOPES)? };
    cx.atomic_rmw(action, pointer, value, mask, order).map(Val::Tensor)
}

/// Nothing is converted: the comparison is bitwise.
fn compare_and_swap<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (pointer, pointee) = cx.pointer_arg(args, "pointer")?;
    let pointer_arg = args.arg("pointer");
    cx.writable(args, pointer, pointer_arg.span)?;
    let wide: Vec<DType> = DType::ALL.iter().copied().filter(|d| d.bits() >= 16).collect();
    cx.atomic_type(args.name, pointee, &wide, (pointer, pointer_arg.span))?;
    let compared = cx.like_memory(args, "cmp", (pointer, pointee))?;
    let value = cx.like_memory(args, "val", (pointer, pointee))?;
    let values = [pointer.value, compared.value, value.value];
    let order = Order { sem: cx.word(args, "sem", SEMANTICS)?, scope: cx.word(args, "scope", SCOPES)? };
    let op = cx.build(OpKind::AtomicCas { sem: order.sem, scope: order.scope }, &values, &[], &[], &[], &[])?;
    Ok(Val::Tensor(Tensor { value: cx.kernel.result(op, 0), elem: pointee, shape: pointer.shape }))
}

fn load<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (pointer, pointee) = cx.pointer_arg(args, "pointer")?;
    cx.atomic_type(args.name, pointee, DType::ALL, (pointer, args.arg("pointer").span))?;
    let mut target = pointer;
    let mask = match cx.mask_arg(args, "mask", false)? {
        Some((mask, span)) if pointer.shape.rank() > 0 => {
            let what = format!("as pointer and {}", args.what("mask"));
            let shape = cx.common((pointer, args.arg("pointer").span), (mask, span), &what)?;
            target = cx.broadcast_to(pointer, shape)?;
            Some(cx.broadcast_to(mask, shape)?)
        }
        Some((mask, _)) => Some(cx.fit(args, "mask", mask, pointer)?),
        None => None,
    };
    let order = Order { sem: cx.word(args, "sem", LOAD_SEMANTICS)?, scope: cx.word(args, "scope", SCOPES)? };
    let kind = OpKind::AtomicLoad { sem: order.sem, scope: order.scope };
    let op = cx.build(kind, &[target.value], &[mask.map(|m| m.value)], &[], &[], &[])?;
    let loaded = Tensor { value: cx.kernel.result(op, 0), elem: stored_as(pointee), shape: target.shape };
    cx.after_acquire(order.sem)?;
    cx.cast(loaded, pointee).map(Val::Tensor)
}

fn store<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (pointer, pointee) = cx.pointer_arg(args, "pointer")?;
    let pointer_span = args.arg("pointer").span;
    cx.writable(args, pointer, pointer_span)?;
    cx.atomic_type(args.name, pointee, DType::ALL, (pointer, pointer_span))?;
    let value = cx.stored(&args.arg("val"), pointee, &args.what("val"))?;
    let value = cx.fit(args, "val", value, pointer)?;
    let mask = match cx.mask_arg(args, "mask", false)? {
        Some((mask, _)) => Some(cx.fit(args, "mask", mask, pointer)?),
        None => None,
    };
    let order = Order { sem: cx.word(args, "sem", STORE_SEMANTICS)?, scope: cx.word(args, "scope", SCOPES)? };
    if order.sem == MemSemantic::Release {
        // Earlier accesses of the other threads of the block are ordered, too.
        cx.build(OpKind::Barrier {}, &[], &[], &[], &[], &[])?;
    }
    let kind = OpKind::AtomicStore { sem: order.sem, scope: order.scope };
    cx.build(kind, &[pointer.value, value.value], &[mask.map(|m| m.value)], &[], &[], &[])?;
    Ok(Val::NONE)
}

fn poll<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (pointer, pointee) = cx.pointer_arg(args, "pointer")?;
    let polled: Vec<DType> = DType::ALL.iter().copied().filter(|d| d.is_integer() && d.bits() >= 16).collect();
    cx.atomic_type(args.name, pointee, &polled, (pointer, args.arg("pointer").span))?;
    let expected = cx.element(&args.arg("expected_value"), pointee, &args.what("expected_value"))?;
    let expected = cx.fit(args, "expected_value", expected, pointer)?;
    let timeout = match args.optional_tensor(cx, "timeout_ns")? {
        Some(timeout) => Some(cx.timeout(args, timeout)?),
        None => None,
    };
    let order = Order { sem: cx.word(args, "sem", LOAD_SEMANTICS)?, scope: cx.word(args, "scope", SCOPES)? };
    let kind = OpKind::AtomicPoll { sem: order.sem, scope: order.scope };
    let optional = [None, timeout.map(|t| t.value)];
    let op = cx.build(kind, &[pointer.value, expected.value], &optional, &[], &[], &[])?;
    let found = Tensor { value: cx.kernel.result(op, 0), elem: ElemTy::I32, shape: pointer.shape };
    cx.after_acquire(order.sem)?;
    cx.cast(found, ElemTy::I1).map(Val::Tensor)
}

impl<'a> Cx<'a> {
    /// An acquire by one thread applies to all threads of the block.
    fn after_acquire(&mut self, sem: MemSemantic) -> R<()> {
        if sem == MemSemantic::Acquire {
            self.build(OpKind::Barrier {}, &[], &[], &[], &[], &[])?;
        }
        Ok(())
    }

    /// A number of nanoseconds as an unsigned integer of 64 bits.
    fn timeout(&mut self, args: &Args<'a>, timeout: Tensor) -> R<Tensor> {
        let arg = args.arg("timeout_ns");
        let negative = matches!(&arg.val, Val::Const(Const::Int(i)) if *i < 0);
        if negative || !timeout.elem.is_int() || timeout.shape.rank() != 0 {
            let message = format!("{} must be an integer scalar that is not negative", args.what("timeout_ns"));
            let d = Diagnostic::error(Code::BAD_VALUE, arg.span, message)
                .primary(format!("this is {}", arg.val.describe()))
                .help("write a number of nanoseconds, or leave it out to wait without end");
            return self.fail(d);
        }
        self.cast(timeout, ElemTy::Num(DType::UInt64))
    }

    /// Refuses element types that the machine has no such operation for.
    fn atomic_type(&mut self, name: &str, pointee: ElemTy, allowed: &[DType], pointer: (Tensor, Span)) -> R<()> {
        if pointee.num().is_some_and(|d| allowed.contains(&d)) {
            return Ok(());
        }
        let names: Vec<&str> = allowed.iter().map(|d| crate::types::dtype_name(*d)).collect();
        let d = Diagnostic::error(Code::TYPE_MISMATCH, self.span, format!("`{name}` does not work on {pointee}"))
            .label(pointer.1, format!("this is {}", pointer.0))
            .help(format!("use memory of one of these types: {}", names.join(", ")));
        self.fail(d)
    }

    /// An operand of a compare-and-swap: it must have the type and the shape of the memory.
    fn like_memory(&mut self, args: &Args<'a>, name: &'static str, memory: (Tensor, ElemTy)) -> R<Tensor> {
        let (pointer, pointee) = memory;
        let t = args.tensor(self, name)?;
        let what = args.what(name);
        let (code, message, help) = if t.elem.num().is_none() || t.elem.ir() != pointee.ir() {
            (
                Code::TYPE_MISMATCH,
                format!("{what} has the type {}, the memory {pointee}; nothing is converted", t.elem),
                format!("cast it: `x.to(tl.{})`, or make a constant by `tl.full`", long_name(pointee)),
            )
        } else if t.shape != pointer.shape {
            (
                Code::SHAPE_MISMATCH,
                format!("{what} has the shape {:?}, the pointer {:?}", t.shape, pointer.shape),
                "make it a block of that shape by `tl.full` or `tl.broadcast_to`".to_string(),
            )
        } else {
            return Ok(t);
        };
        let d = Diagnostic::error(code, args.arg(name).span, message)
            .primary(format!("this is {t}"))
            .label(args.arg("pointer").span, format!("this is {pointer}"))
            .help(help);
        self.fail(d)
    }

    /// Any atomic read-modify-write; the value has type and shape of the memory, the mask its shape. Gives the old value.
    pub(super) fn atomic_rmw(
        &mut self,
        action: Action,
        pointer: Tensor,
        value: Tensor,
        mask: Option<Tensor>,
        order: Order,
    ) -> R<Tensor> {
        let half = value.elem.bits() == 16 && matches!(action, Action::Max | Action::Min);
        if !value.elem.is_float() || action == Action::Add || half {
            return self.rmw(action.rmw(value.elem), pointer, value, mask, order);
        }
        let (signed, unsigned) = match value.elem.bits() {
            64 => (DType::Int64, DType::UInt64),
            _ => (DType::Int32, DType::UInt32),
        };
        let bits = self.cast_checked(value, ElemTy::Num(signed), None, true)?;
        let words = self.cast(pointer, ElemTy::Num(signed).pointer_to(false))?;
        let (plain, negative) = match action {
            Action::Max => (RmwOp::Max, RmwOp::UMin),
            Action::Min => (RmwOp::Min, RmwOp::UMax),
            _ => {
                let old = self.rmw(action.rmw(ElemTy::Num(unsigned)), words, bits, mask, order)?;
                return self.cast_checked(old, value.elem, None, true);
            }
        };
        let zero = self.int_literal(0, bits.elem, bits.shape)?;
        let boolean = Tensor { elem: ElemTy::I1, ..bits };
        let compare = |cx: &mut Cx<'a>, predicate| -> R<(Tensor, Tensor)> {
            let side = cx.each(OpKind::CmpI { predicate }, &[bits.value, zero.value], boolean)?;
            match mask {
                Some(mask) => Ok((side, cx.each(OpKind::AndI {}, &[side.value, mask.value], side)?)),
                None => Ok((side, side)),
            }
        };
        let (is_plain, plain_mask) = compare(self, Predicate::Ge)?;
        let (_, negative_mask) = compare(self, Predicate::Lt)?;
        let old_plain = self.rmw(plain, words, bits, Some(plain_mask), order)?;
        let old_negative = self.rmw(negative, words, bits, Some(negative_mask), order)?;
        let old = self.each(OpKind::Select {}, &[is_plain.value, old_plain.value, old_negative.value], old_plain)?;
        self.cast_checked(old, value.elem, None, true)
    }

    fn rmw(&mut self, op: RmwOp, pointer: Tensor, value: Tensor, mask: Option<Tensor>, order: Order) -> R<Tensor> {
        let kind = OpKind::AtomicRmw { op, sem: order.sem, scope: order.scope, vector: None };
        let op = self.build(kind, &[pointer.value, value.value], &[mask.map(|m| m.value)], &[], &[], &[])?;
        Ok(Tensor { value: self.kernel.result(op, 0), ..value })
    }
}

/// The name of an element type as a member of the language: `float16` for fp16.
pub(super) fn long_name(elem: ElemTy) -> String {
    match elem.num() {
        Some(DType::Fp16) => "float16".into(),
        Some(DType::Bf16) => "bfloat16".into(),
        Some(DType::Fp32) => "float32".into(),
        Some(DType::Fp64) => "float64".into(),
        Some(d) if crate::types::is_fp8(d) => d.name().replace("fp8", "float8"),
        _ => elem.to_string(),
    }
}
