//! `half-accumulator`: a loop that sums products of blocks in fp16 or bf16.

use std::collections::HashSet;

use rtc_ir::{Elem, Kernel, Loc, Op, OpKind, Scalar, Value, regions, view, walk};
use rtc_source::{Code, Diagnostic};

use super::{About, REACH};

pub(super) fn check(about: &About<'_>) -> Vec<(Diagnostic, Loc)> {
    let kernel = about.kernel;
    let mut found = Vec::new();
    for op in walk(kernel) {
        if !regions::is_loop(kernel.kind(op)) {
            continue;
        }
        for slot in regions::slots(kernel, op) {
            let mut values = slot.values(kernel);
            let (Some(_), Some(back)) = (values.next(), values.next()) else { continue };
            let arg = slot.targets[0];
            let name = match kernel.value_type(arg).elem() {
                Some(Elem::Num(Scalar::F16)) => "fp16",
                Some(Elem::Num(Scalar::BF16)) => "bf16",
                _ => continue,
            };
            let Some(dot) = dot_in_sum(kernel, arg, back) else { continue };
            let place = |op: Op| kernel.loc(kernel.op(op).loc).span;
            let (Some(span), loc) = (place(dot), kernel.op(dot).loc) else { continue };
            let shape = kernel.value_type(arg).shape().map_or(String::new(), |s| format!("{s:?}"));
            let variable = kernel.value(arg).name.clone().or_else(|| kernel.value(back).name.clone());
            let sum = variable.map_or("the sum".into(), |n| format!("`{n}`"));
            let mut d = Diagnostic::warning(
                Code::HALF_ACCUMULATOR,
                span,
                format!("{sum} adds products in {name} and is rounded in every round of the loop"),
            )
            .primary(format!("summed in {name}{shape}"));
            if let Some(at) = kernel.def_op(back).and_then(place).filter(|at| *at != span) {
                d = d.label(at, "added here");
            }
            let long = if name == "fp16" { "float16" } else { "bfloat16" };
            found.push((
                d.help(format!(
                    "start with `tl.zeros(..., dtype=tl.float32)`, and cast once after the loop: `.to(tl.{long})`"
                )),
                loc,
            ));
        }
    }
    found
}

/// The product that a carried value grows by, if it is a sum of itself and a product.
fn dot_in_sum(kernel: &Kernel, arg: Value, back: Value) -> Option<Op> {
    let (mut seen, mut work) = (HashSet::new(), vec![back]);
    let (mut dot, mut itself) = (None, false);
    while let Some(value) = work.pop() {
        // A loop of two blocks hands what it carries from the first to the second.
        itself |= value == arg || regions::sources(kernel, value)[..] == [arg];
        if seen.len() > REACH || !seen.insert(value) {
            continue;
        }
        let Some(op) = kernel.def_op(value) else { continue };
        let data = kernel.op(op);
        match &data.kind {
            OpKind::Dot { .. } => {
                dot = Some(op);
                work.push(view::Dot::at(kernel, op).acc());
            }
            OpKind::AddF {} | OpKind::SubF {} | OpKind::MulF {} | OpKind::Fma {} | OpKind::CastF { .. } => {
                work.extend(&data.operands);
            }
            OpKind::Select {} => {
                let select = view::Select::at(kernel, op);
                work.extend([select.lhs(), select.rhs()]);
            }
            _ => {}
        }
    }
    dot.filter(|_| itself)
}
