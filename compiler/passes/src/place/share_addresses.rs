//! Annotates runs of equal addresses within a thread, so that each address is loaded once.
//!
//! The channel of an image's pixel is `i / n % channels`. With `n` divisible by 16 a thread's eight consecutive pixels
//! have the same channel, and what is loaded by channel is loaded once and not eight times. Lowering has no analysis: as
//! for equal numbers it relies on `hint max_constancy`, here on the operands of the load. This comes last, so that no other
//! pass meets hints between addresses and loads.
//!
//! ```text
//! %p = addptr %ws, %channel : tile<1024xptr<f32>, #l0>   →   %p = addptr %ws, %channel : tile<1024xptr<f32>, #l0>
//! %w = load %p, mask = %m                                    %q = hint %p {kind = max_constancy, values = [8]} : ..
//!                                                            %w = load %q, mask = %m
//! ```

use rtc_ir::analysis::{AxisInfos, axis_info};
use rtc_ir::{Builder, HintKind, Kernel, Op, OpKind, Phase, Traits, Value};
use rtc_layout::Layout;

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "share-addresses", needs: Phase::Laid, leaves: Phase::Laid, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let infos = axis_info(kernel);
    let found: Vec<(Op, Vec<u32>)> =
        rtc_ir::walk(kernel).into_iter().filter_map(|op| Some((op, runs(kernel, &infos, op)?))).collect();
    for (load, values) in found {
        for index in 0..kernel.op(load).operands.len() {
            let operand = kernel.operand(load, index);
            if !is_computed(kernel, operand) {
                continue;
            }
            let kind = OpKind::Hint { kind: HintKind::MaxConstancy, values: values.clone() };
            let hint = Builder::before(kernel, load).build(kind, &[operand], &[], &[], &[], &[])?;
            let shared = kernel.result(hint, 0);
            kernel.set_operand(load, index, shared);
        }
    }
    Ok(())
}

/// The runs along each axis in which all operands of a load are equal, if registers of a thread fall into one.
fn runs(kernel: &Kernel, infos: &AxisInfos, op: Op) -> Option<Vec<u32>> {
    let OpKind::Load { volatile: false, .. } = kernel.kind(op) else { return None };
    let pointer = kernel.pointer(op).filter(|pointer| is_computed(kernel, *pointer))?;
    let layout = kernel.layout_of(pointer)?;
    let operands = &kernel.op(op).operands;
    let along = |axis: usize| {
        let equal = operands.iter().map(|value| infos.axis(*value, axis).constancy).min().unwrap_or(1);
        equal.min(u64::from(layout.shape()[axis])) as u32
    };
    let runs: Vec<u32> = (0..layout.rank()).map(along).collect();
    holds_registers(layout, &runs).then_some(runs)
}

/// Whether the registers of a thread are different where the value is: those of a scalar or a constant are one.
fn is_computed(kernel: &Kernel, value: Value) -> bool {
    kernel.def_op(value).is_some_and(|op| {
        let kind = kernel.kind(op);
        kind.spec().traits.has(Traits::ELEMENTWISE) && !matches!(kind, OpKind::Constant { .. } | OpKind::Splat {})
    })
}

/// Whether a thread has several registers in a run.
fn holds_registers(layout: &Layout, runs: &[u32]) -> bool {
    let mut bits = (0..layout.registers().ilog2()).map(|bit| layout.coords(1 << bit, 0, 0));
    bits.any(|coords| coords.0.iter().zip(runs).all(|(coord, run)| coord < run))
}
