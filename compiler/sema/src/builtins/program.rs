//! The programming model: program ids, ranges.

use rtc_ir::{LoopHints, OpKind};
use rtc_source::Code;

use super::{Args, Builtin, row};
use crate::cx::{Cx, R};
use crate::types::{ElemTy, scalar_shape};
use crate::values::{Const, Range, Tensor, Val};

pub(super) const TABLE: &[Builtin] = &[
    row("program_id", &["axis"], |cx, args| grid(cx, args, |axis| OpKind::ProgramId { axis })),
    row("num_programs", &["axis"], |cx, args| grid(cx, args, |axis| OpKind::NumPrograms { axis })),
    RANGE,
    row("static_range", &["arg1", "arg2?", "step?"], |_, args| range(args, true, LoopHints::default())),
    row("condition", &["arg1", "disable_licm?"], |_, args| Ok(args.arg(0).val)),
];

/// `range` of Python and of the language: the hints are the same.
pub(super) const RANGE: Builtin = row(
    "range",
    &[
        "arg1",
        "arg2?",
        "step?",
        "num_stages?",
        "loop_unroll_factor?",
        "disallow_acc_multi_buffer?",
        "flatten?",
        "warp_specialize?",
        "disable_licm?",
    ],
    |cx, args| {
        let hints = LoopHints {
            num_stages: stages(cx, args, 3)?,
            unroll: stages(cx, args, 4)?,
            flatten: cx.bool_arg(args, 6, false)?,
            warp_specialize: cx.bool_arg(args, 7, false)?,
            disable_licm: cx.bool_arg(args, 8, false)?,
        };
        range(args, false, hints)
    },
);

fn grid<'a>(cx: &mut Cx<'a>, args: &Args<'a>, kind: fn(u32) -> OpKind) -> R<Val<'a>> {
    let arg = args.arg(0);
    let axis = cx.int_of(&arg, &args.what(0))?;
    if !(0..3).contains(&axis) {
        return cx.error(
            Code::OUT_OF_RANGE,
            arg.span,
            format!("the grid has no axis {axis}"),
            "grid axes are 0, 1 and 2",
        );
    }
    let value = cx.emit(kind(axis as u32), &[])?;
    Ok(Val::Tensor(Tensor { value, elem: ElemTy::I32, shape: scalar_shape() }))
}

fn stages<'a>(cx: &mut Cx<'a>, args: &Args<'a>, index: usize) -> R<Option<u32>> {
    let Some(arg) = args.given(index) else { return Ok(None) };
    let n = cx.int_of(&arg, &args.what(index))?;
    Ok(u32::try_from(n).ok())
}

/// A range from `(stop)`, `(start, stop)` or `(start, stop, step)`.
pub(super) fn range<'a>(args: &Args<'a>, is_static: bool, hints: LoopHints) -> R<Val<'a>> {
    let constant = |x: i128| Val::Const(Const::Int(x));
    let (start, stop) = match args.given(1) {
        Some(stop) => (args.arg(0), stop),
        None => (crate::cx::Arg::new(constant(0), args.span), args.arg(0)),
    };
    let step = args.given(2).unwrap_or_else(|| crate::cx::Arg::new(constant(1), args.span));
    let spans = [start.span, stop.span, step.span];
    Ok(Val::Range(std::rc::Rc::new(Range {
        start: start.val,
        stop: stop.val,
        step: step.val,
        spans,
        is_static,
        hints,
    })))
}
