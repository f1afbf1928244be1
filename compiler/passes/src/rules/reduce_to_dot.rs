//! Raises a multiply-and-reduce over three dimensions to a dot.
//!
//! ```text
//! %a = expand_dims %x {axis = 2}     : tile<64x32x1xf32>
//! %b = expand_dims %y {axis = 0}     : tile<1x32x64xf32>
//! %p = mulf (broadcast %a), (broadcast %b)               →   %s = dot %x, %y, zeros {precision = ieee}
//! %s = reduce (%p) {axis = 1} .. addf
//! ```
//!
//! All of its products at once do not fit into registers, and each operand would be held by every thread that uses it.
//! Only for fp32, which is multiplied and added exactly so; other types round each product to their own precision.
//! Small ones are left alone, and so are all if multiplications and additions may not be fused.

use rtc_ir::{DotKind, Elem, Kernel, Literal, Op, OpKind, Precision, Value, view};

use crate::PassError;
use crate::rewrite::{Rewriter, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule { name: "reduce-to-dot", starts_from, rewrite };

/// Products of a thread that may be written out.
const FEW: u64 = 32;

fn starts_from(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Reduce { axis: 1 })
}

fn rewrite(rewriter: &mut Rewriter<'_>, op: Op) -> Result<bool, PassError> {
    let Some([lhs, rhs]) = factors(rewriter, op) else { return Ok(false) };
    let ty = rewriter.value_type(rewriter.result(op, 0));
    let mut build = rewriter.before(op);
    let zeros = build.constant_of(Literal::float(0.0), ty)?;
    let kind = OpKind::Dot { precision: Precision::Ieee, kind: DotKind::Unset, max_imprecise: None };
    let dot = build.build(kind, &[lhs, rhs, zeros], &[], &[], &[], &[ty])?;
    let result = rewriter.result(dot, 0);
    rewriter.replace_op(op, result);
    Ok(true)
}

/// The matrices whose product an operation is.
fn factors(kernel: &Kernel, op: Op) -> Option<[Value; 2]> {
    let [products] = kernel.variadic(op) else { return None };
    let ty = kernel.value_type(*products);
    let shape = ty.shape().filter(|shape| shape.rank() == 3)?;
    let many = shape.numel() > FEW * u64::from(kernel.group_of(op).threads());
    if ty.elem() != Some(Elem::F32) || !many || !kernel.options.fp_fusion || !adds(kernel, op) {
        return None;
    }
    let product = view::MulF::defining(kernel, *products)?;
    let (a, b) = (product.lhs(), product.rhs());
    let pair = |a: Value, b: Value| Some([spread(kernel, a, 2)?, spread(kernel, b, 0)?]);
    if kernel.users(*products) == [op] { pair(a, b).or_else(|| pair(b, a)) } else { None }
}

/// Whether a reduction adds up.
fn adds(kernel: &Kernel, op: Op) -> bool {
    let block = kernel.op(op).blocks[0];
    let Some(sum) = kernel.ops(block).next() else { return false };
    let args = &kernel.block(block).args;
    let end = kernel.terminator(block);
    view::AddF::of(kernel, sum).is_some_and(|sides| [sides.lhs(), sides.rhs()][..] == args[..])
        && end.is_some_and(|end| kernel.variadic(end)[..] == [kernel.result(sum, 0)])
}

/// The matrix that `value` repeats along `axis`.
fn spread(kernel: &Kernel, value: Value, axis: u32) -> Option<Value> {
    let broadcast = view::Broadcast::defining(kernel, value)?;
    let expanded = view::ExpandDims::defining(kernel, broadcast.source())?;
    matches!(kernel.kind(expanded.op()), OpKind::ExpandDims { axis: at } if *at == axis).then(|| expanded.source())
}
