//! The programming model: program ids, ranges.

use rtc_ir::{LoopHints, OpKind};
use rtc_source::Code;

use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::R;
use crate::types::{ElemTy, scalar_shape};
use crate::values::{Range, Tensor, Val};

pub(super) const TABLE: &[Row] = &[
    row("program_id", |cx, args| grid(cx, args, |axis| OpKind::ProgramId { axis })),
    row("num_programs", |cx, args| grid(cx, args, |axis| OpKind::NumPrograms { axis })),
    RANGE,
    row("static_range", |_, args| range(args, true, LoopHints::default())),
    row("condition", |_, args| {
        args.ignore("disable_licm");
        Ok(args.arg("arg1").val)
    }),
];

/// `range` of Python and of the language: the hints are the same.
pub(super) const RANGE: Row = row("range", |cx, args| {
    args.ignore("disallow_acc_multi_buffer");
    // Loop nests are flattened and warps specialized where that is profitable, whatever the source asks for.
    args.bool(cx, "flatten")?;
    args.bool(cx, "warp_specialize")?;
    let hints = LoopHints {
        num_stages: stages(cx, args, "num_stages")?,
        unroll: stages(cx, args, "loop_unroll_factor")?,
        disable_licm: args.bool(cx, "disable_licm")?,
        ..LoopHints::default()
    };
    range(args, false, hints)
});

fn grid<'a>(cx: &mut Cx<'a>, args: &Args<'a>, kind: fn(u32) -> OpKind) -> R<Val<'a>> {
    let arg = args.arg("axis");
    let axis = args.int(cx, "axis")?;
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

fn stages<'a>(cx: &mut Cx<'a>, args: &Args<'a>, name: &'static str) -> R<Option<u32>> {
    let Some(arg) = args.given(name) else { return Ok(None) };
    let n = cx.int_of(&arg, &args.what(name))?;
    Ok(u32::try_from(n).ok())
}

/// A range from `(stop)`, `(start, stop)` or `(start, stop, step)`.
pub(super) fn range<'a>(args: &Args<'a>, is_static: bool, hints: LoopHints) -> R<Val<'a>> {
    let constant = |x: i128| crate::values::Arg::new(Val::int(x), args.span);
    let (start, stop) = match args.given("arg2") {
        Some(stop) => (args.arg("arg1"), stop),
        None => (constant(0), args.arg("arg1")),
    };
    let step = args.given("step").unwrap_or_else(|| constant(1));
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
