//! Annotates runs of equal elements within a thread, so that each run is computed once.
//!
//! A comparison of consecutive indices with a bound that is divisible by 16 is constant on runs of 16, and so is an
//! unsigned quotient by 16. Lowering has no analysis; it relies on `hint max_constancy`, uses the first register of
//! each run for all, and the operations of the others are dead. A signed quotient rounds towards zero, so that a run is
//! interrupted where the dividend is negative: it is annotated only if the dividend is not negative in launches of expected
//! size ([`Ranges::expected`]), as the analysis itself assumes.
//!
//! ```text
//! %m = cmpi %i, %n {predicate = lt} : tile<1024xi1, #l0>   →   %c = cmpi %i, %n {predicate = lt} : tile<1024xi1, #l0>
//!                                                              %m = hint %c {kind = max_constancy, values = [16]} : ..
//! ```

use std::cell::LazyCell;

use rtc_ir::{Builder, HintKind, Kernel, Op, OpKind, Phase, Value, view};

use crate::{Pass, PassContext, PassError};
use rtc_ir::analysis::{AxisInfos, Ranges, axis_info};

/// The pass.
pub const PASS: Pass = Pass { name: "annotate-constancy", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let infos = axis_info(kernel);
    let ops = rtc_ir::walk(kernel);
    let found: Vec<_> = {
        // Computed on demand: few kernels have a signed quotient.
        let ranges = LazyCell::new(|| Ranges::new(kernel));
        let is_natural = |value| ranges.expected(value).low >= 0;
        ops.into_iter().filter_map(|op| Some((op, runs(kernel, &infos, &is_natural, op)?))).collect()
    };
    for (op, values) in found {
        let old = kernel.result(op, 0);
        let kind = OpKind::Hint { kind: HintKind::MaxConstancy, values };
        let hint = Builder::after(kernel, op).build(kind, &[old], &[], &[], &[], &[])?;
        let new = kernel.result(hint, 0);
        kernel.replace_uses_except(old, new, Some(hint));
    }
    Ok(())
}

/// The runs of equal elements per axis, if registers of a thread fall into one and the operands do not say so already.
/// `is_natural` says whether an integer is not negative.
fn runs(kernel: &Kernel, infos: &AxisInfos, is_natural: &impl Fn(Value) -> bool, op: Op) -> Option<Vec<u32>> {
    let data = kernel.op(op);
    match data.kind {
        OpKind::CmpI { .. } | OpKind::DivUI {} | OpKind::ShrUI {} | OpKind::ShrSI {} => {}
        OpKind::DivSI {} if is_natural(view::DivSI::at(kernel, op).lhs()) => {}
        _ => return None,
    }
    let result = *data.results.first()?;
    let layout = kernel.layout_of(result)?;
    let constancy = |value, axis| infos.axis(value, axis).constancy.min(u64::from(layout.shape()[axis])) as u32;
    let runs: Vec<u32> = (0..layout.rank()).map(|axis| constancy(result, axis)).collect();
    let begin_here = (0..layout.rank()).any(|axis| {
        let known = data.operands.iter().map(|operand| constancy(*operand, axis)).min().unwrap_or(1);
        known < runs[axis] && layout.contiguity(axis) > known
    });
    begin_here.then_some(runs)
}
