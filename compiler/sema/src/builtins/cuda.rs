//! `tl.extra.cuda` and `tl.target_info`.

use rtc_abi::Feature;
use rtc_ir::{OpKind, Text, Type};
use rtc_source::Code;

use super::{Args, Row, row};
use crate::cx::Cx;
use crate::emitter::R;
use crate::types::{ElemTy, scalar_shape};
use crate::values::{Tensor, Val};

/// `tl.extra.cuda.*`.
pub(super) const TABLE: &[Row] = &[
    row("globaltimer", |cx, _| special_register(cx, "globaltimer", ElemTy::I64)),
    row("smid", |cx, _| special_register(cx, "smid", ElemTy::I32)),
    row("num_threads", |cx, _| Ok(Val::int(i128::from(cx.options.num_warps) * 32))),
    row("num_warps", |cx, _| Ok(Val::int(cx.options.num_warps))),
    row("gdc_wait", |cx, args| grid_dependency(cx, args, true)),
    row("gdc_launch_dependents", |cx, args| grid_dependency(cx, args, false)),
    row("convert_custom_float8_sm70", convert_custom_float8),
    row("convert_custom_float8_sm80", convert_custom_float8),
];

/// `tl.target_info.*`.
pub(super) const TARGET_INFO: &[Row] = &[
    row("is_cuda", |_, _| Ok(Val::bool(true))),
    row("cuda_capability_geq", cuda_capability_geq),
    row("is_hip", |_, _| Ok(Val::bool(false))),
    row("is_hip_cdna3", |_, _| Ok(Val::bool(false))),
    row("is_hip_cdna4", |_, _| Ok(Val::bool(false))),
    row("is_hip_gfx1250", |_, _| Ok(Val::bool(false))),
];

fn special_register<'a>(cx: &mut Cx<'a>, name: &str, elem: ElemTy) -> R<Val<'a>> {
    let ty = Type::Scalar(cx.ir_elem(elem)?);
    let value = cx.emit_typed(OpKind::SpecialRegister { name: Text::from(name) }, &[], ty)?;
    Ok(Val::Tensor(Tensor { value, elem, shape: scalar_shape() }))
}

fn grid_dependency<'a>(cx: &mut Cx<'a>, args: &Args<'a>, wait: bool) -> R<Val<'a>> {
    if !cx.target.target.has(Feature::DependentLaunch) {
        return cx.error(
            Code::UNSUPPORTED_TARGET,
            args.span,
            format!("`{}` needs sm_90 or newer", args.name),
            "guard it: `if tl.target_info.cuda_capability_geq(9):`",
        );
    }
    cx.build(OpKind::GridDependency { wait }, &[], &[], &[], &[], &[])?;
    Ok(Val::NONE)
}

/// Casts from and to fp8e4b15, whose conversions are code of the library on every target.
fn convert_custom_float8<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let t = args.tensor(cx, "arg")?;
    let to = args.elem(cx, "dst_ty")?;
    let rounding = args.text(cx, "fp_downcast_rounding")?;
    let rounding = rounding.as_ref().map(|name| (&**name, args.arg("fp_downcast_rounding").span));
    cx.cast_checked(t, to, rounding, false).map(Val::Tensor)
}

fn cuda_capability_geq<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let major = args.int(cx, "major")?;
    let minor = args.int(cx, "minor")?;
    let capability = i128::from(cx.target.target.capability);
    Ok(Val::bool((capability / 10, capability % 10) >= (major, minor)))
}
