//! Messages, assertions, hints, inline assembly.

use rtc_ir::{HintKind, MAX_PACK, OpKind, Text, Type};
use rtc_source::{Code, Diagnostic};

use super::{Args, Row, row};
use crate::broadcast::common_shape;
use crate::cx::Cx;
use crate::emitter::{Fault, R};
use crate::spec::DType;
use crate::types::{ElemTy, ir_type, scalar_shape};
use crate::values::{Arg, Const, Tensor, Val};

pub(super) const TABLE: &[Row] = &[
    row("static_print", static_print),
    row("static_assert", static_assert),
    row("device_print", device_print),
    row("device_assert", device_assert),
    row("debug_barrier", debug_barrier),
    row("assume", assume),
    row("multiple_of", |cx, args| hint(cx, args, HintKind::MultipleOf)),
    row("max_contiguous", |cx, args| hint(cx, args, HintKind::MaxContiguous)),
    row("max_constancy", |cx, args| hint(cx, args, HintKind::MaxConstancy)),
    row("inline_asm_elementwise", inline_asm_elementwise),
];

/// Each print is one text, without the newline at its end.
fn static_print<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    args.ignore("file");
    args.ignore("flush");
    let separator = args.text(cx, "sep")?.unwrap_or_else(|| " ".into());
    let end = args.text(cx, "end")?.unwrap_or_else(|| "\n".into());
    let parts: Vec<String> = args.rest("values").iter().map(|a| a.val.to_string()).collect();
    let mut text = parts.join(&separator);
    text.push_str(&end);
    if text.ends_with('\n') {
        text.pop();
    }
    cx.prints.push(text);
    Ok(Val::NONE)
}

fn static_assert<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let arg = args.arg("cond");
    match &arg.val {
        Val::Const(Const::Bool(true)) => Ok(Val::NONE),
        Val::Const(Const::Bool(false)) => {
            let message = match args.given("msg") {
                Some(text) => format!("static assertion failed: {}", text.val),
                None => "static assertion failed".to_string(),
            };
            let d = Diagnostic::error(Code::STATIC_ASSERT, args.span, message).label(arg.span, "this is False");
            cx.fail(d)
        }
        Val::Error => Err(Fault),
        Val::Tensor(t) => {
            let d = Diagnostic::error(
                Code::EXPECTED_CONSTEXPR,
                arg.span,
                "`static_assert` needs a condition that is known while compiling",
            )
            .primary(format!("this is {t}, known only at run time"))
            .help("write `tl.device_assert`, or make the operands `tl.constexpr`");
            cx.fail(d)
        }
        other => {
            let text = other.describe();
            let d = Diagnostic::error(Code::TYPE_MISMATCH, arg.span, "the condition of `static_assert` must be a bool")
                .primary(format!("this is {text}"))
                .help("compare it: `x != 0` or `x is not None`");
            cx.fail(d)
        }
    }
}

pub(super) fn device_print<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let prefix_arg = args.arg("prefix");
    let prefix = match &prefix_arg.val {
        Val::Const(Const::Str(s)) => s.clone(),
        Val::Error => return Err(Fault),
        other => {
            let text = other.describe();
            let d = Diagnostic::error(
                Code::TYPE_MISMATCH,
                prefix_arg.span,
                "the first argument of `device_print` must be a string literal",
            )
            .primary(format!("this is {text}"))
            .help("write `tl.device_print(\"x\", x)`");
            return cx.fail(d);
        }
    };
    if let Some(odd) = prefix.chars().find(|c| !(c.is_ascii_graphic() || c.is_ascii_whitespace())) {
        let d =
            Diagnostic::error(Code::BAD_VALUE, prefix_arg.span, "the prefix of `device_print` must be printable ASCII")
                .primary(format!("contains {odd:?}"));
        return cx.fail(d);
    }
    let hex = args.bool(cx, "hex")?;
    let (mut values, mut signed) = (Vec::new(), Vec::new());
    for arg in args.rest("args") {
        let mut t = cx.tensor(arg, "a value of `device_print`")?;
        if t.elem.is_fp8() {
            let to = if hex { ElemTy::Num(DType::UInt8) } else { ElemTy::F32 };
            t = cx.cast_checked(t, to, None, hex)?;
        }
        values.push(t.value);
        signed.push(u32::from(t.elem.is_signed()));
    }
    let kind = OpKind::Print { prefix: Text::from(&*prefix), hex, signed };
    cx.build(kind, &[], &[], &values, &[], &[])?;
    Ok(Val::NONE)
}

fn device_assert<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let message = match args.given("msg") {
        Some(arg) => cx.const_arg(&arg, &args.what("msg"))?.to_string(),
        None => String::new(),
    };
    let mask = args.given("mask");
    cx.assert_on_device(&args.arg("cond"), &message, mask.as_ref())?;
    Ok(Val::NONE)
}

fn debug_barrier<'a>(cx: &mut Cx<'a>, _: &Args<'a>) -> R<Val<'a>> {
    cx.build(OpKind::Barrier {}, &[], &[], &[], &[], &[])?;
    Ok(Val::NONE)
}

fn assume<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let arg = args.arg("cond");
    match &arg.val {
        Val::Tensor(t) if t.elem == ElemTy::I1 && t.shape.rank() == 0 => {
            cx.build(OpKind::Assume {}, &[t.value], &[], &[], &[], &[])?;
            Ok(Val::NONE)
        }
        // Known while compiling: nothing to assume.
        Val::Const(Const::Bool(_)) => Ok(Val::NONE),
        Val::Error => Err(Fault),
        other => {
            let text = other.describe();
            let d =
                Diagnostic::error(Code::TYPE_MISMATCH, arg.span, "the condition of `assume` must be a scalar boolean")
                    .primary(format!("this is {text}"))
                    .help("compare a scalar: `tl.assume(n > 0)`");
            cx.fail(d)
        }
    }
}

/// The value itself with a hint; on constants a hint says nothing new.
fn hint<'a>(cx: &mut Cx<'a>, args: &Args<'a>, kind: HintKind) -> R<Val<'a>> {
    let arg = args.arg("input");
    if matches!(arg.val, Val::Const(_)) {
        return Ok(arg.val);
    }
    let t = cx.tensor(&arg, &args.what("input"))?;
    let values_arg = args.arg("values");
    let numbers = cx.ints_of(std::slice::from_ref(&values_arg), &args.what("values"))?;
    let rank = match kind {
        HintKind::MultipleOf => t.shape.rank().max(1),
        HintKind::MaxContiguous | HintKind::MaxConstancy => t.shape.rank(),
    };
    if numbers.len() != rank {
        let d = Diagnostic::error(
            Code::BAD_SHAPE,
            values_arg.span,
            format!("`{}` needs one value per dimension, {rank} here", args.name),
        )
        .primary(format!("{} values", numbers.len()))
        .label(arg.span, format!("this is {t}"));
        return cx.fail(d);
    }
    let mut values = Vec::with_capacity(rank);
    for number in numbers {
        match u32::try_from(number) {
            Ok(value) if value > 0 => values.push(value),
            _ => {
                let d = Diagnostic::error(
                    Code::OUT_OF_RANGE,
                    values_arg.span,
                    format!("`{}` needs positive values", args.name),
                )
                .primary(format!("{number} is not positive"));
                return cx.fail(d);
            }
        }
    }
    cx.each(OpKind::Hint { kind, values }, &[t.value], t).map(Val::Tensor)
}

fn inline_asm_elementwise<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let text = cx.needed_text(args, "asm")?;
    let constraints = cx.needed_text(args, "constraints")?;
    let operands = super::memory::one_or_more(args.arg("args"));
    let types_arg = args.arg("dtype");
    let (elems, is_tuple) = match &types_arg.val {
        Val::Tuple(t) => {
            let items = super::memory::entries(t, types_arg.span);
            let elems = items.iter().map(|item| cx.type_of(item, &args.what("dtype"))).collect::<R<Vec<ElemTy>>>()?;
            (elems, true)
        }
        _ => (vec![cx.type_of(&types_arg, &args.what("dtype"))?], false),
    };
    if elems.is_empty() {
        return cx.error(Code::BAD_VALUE, types_arg.span, "inline assembly needs at least one result", "name its type");
    }
    let pure = args.bool(cx, "is_pure")?;
    let pack = args.int(cx, "pack")?;
    if !(1..=i128::from(MAX_PACK)).contains(&pack) || !pack.cast_unsigned().is_power_of_two() {
        let d = Diagnostic::error(Code::OUT_OF_RANGE, args.arg("pack").span, "`pack` must be a power of two")
            .primary(format!("{pack} is not one of 1 to {MAX_PACK}"));
        return cx.fail(d);
    }
    let mut tensors: Vec<(Tensor, &Arg<'a>)> = Vec::new();
    let mut shape = scalar_shape();
    for arg in &operands {
        let t = cx.tensor(arg, "an argument of inline assembly")?;
        shape = match common_shape(shape, t.shape) {
            Ok(shape) => shape,
            Err(_) => {
                let clash = tensors.iter().find(|(o, _)| common_shape(o.shape, t.shape).is_err()).copied();
                let (before, before_arg) = clash.unwrap_or((t, arg));
                return cx
                    .common((before, before_arg.span), (t, arg.span), "as arguments of inline assembly")
                    .map(|_| Val::Error);
            }
        };
        tensors.push((t, arg));
    }
    let inputs: Vec<ElemTy> = tensors.iter().map(|(t, _)| t.elem).collect();
    cx.check_constraints(args, &constraints, &elems, &inputs, pack as u32)?;
    let mut values = Vec::with_capacity(tensors.len());
    for (t, _) in tensors {
        values.push(cx.broadcast_to(t, shape)?.value);
    }
    let types = elems.iter().map(|e| Ok(ir_type(cx.ir_elem(*e)?, shape))).collect::<R<Vec<Type>>>()?;
    let kind =
        OpKind::InlineAsm { text: Text::from(&*text), constraints: Text::from(&*constraints), pure, pack: pack as u32 };
    let op = cx.build(kind, &[], &[], &values, &[], &types)?;
    let mut results: Vec<Val<'a>> = Vec::with_capacity(elems.len());
    for (i, elem) in elems.iter().enumerate() {
        results.push(Val::Tensor(Tensor { value: cx.kernel.result(op, i), elem: *elem, shape }));
    }
    match results.pop() {
        Some(only) if !is_tuple => Ok(only),
        Some(last) => {
            results.push(last);
            Ok(Val::tuple(results))
        }
        None => Ok(Val::NONE),
    }
}

/// How many registers `pack` elements take: narrow ones share registers of 32 bits.
fn registers(elem: ElemTy, pack: u32) -> u32 {
    rtc_ir::assembly_registers(elem.bits().next_multiple_of(8), pack)
}

impl<'a> Cx<'a> {
    fn needed_text(&mut self, args: &Args<'a>, name: &'static str) -> R<rtc_syntax::ast::Symbol> {
        match args.text(self, name)? {
            Some(text) => Ok(text),
            None => {
                let span = args.arg(name).span;
                self.error(Code::TYPE_MISMATCH, span, format!("{} must be a string", args.what(name)), "")
            }
        }
    }

    /// The constraints must name as many registers as the values take.
    fn check_constraints(
        &mut self,
        args: &Args<'a>,
        constraints: &str,
        results: &[ElemTy],
        inputs: &[ElemTy],
        pack: u32,
    ) -> R<()> {
        let [outputs, rest] = rtc_ir::constraint_counts(constraints);
        let count = |elems: &[ElemTy]| elems.iter().map(|e| registers(*e, pack)).sum::<u32>() as usize;
        for (what, named, needed) in [("output", outputs, count(results)), ("input", rest, count(inputs))] {
            if named != needed {
                let d = Diagnostic::error(
                    Code::BAD_VALUE,
                    args.arg("constraints").span,
                    format!("the constraints name {named} {what} registers, but the {what}s take {needed}"),
                )
                .note("each execution takes `pack` elements; elements below 32 bits share registers of 32 bits")
                .help("outputs stand first: `\"=r,r,r\"` is one output and two inputs");
                return self.fail(d);
            }
        }
        Ok(())
    }
}
