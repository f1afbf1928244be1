//! Splits conversions through shared memory into a store and a load, so that the buffer, its layout and the barrier
//! between the two are explicit.
//!
//! ```text
//! %y = convert_layout %x : tile<.., #l1>   →   %b = alloc_shared {align = 16} : shared<.., #s0>
//!                                              local_store %x, %b
//!                                              %y = local_load %b : tile<.., #l1>
//! ```
//!
//! A small value from before a loop is stored there, and only loaded in the loop.
//!
//! A later conversion of the same value loads from the same buffer if that is no more expensive than a store and a load
//! of its own, and if nothing between the two uses shared memory, so that the longer live range of the buffer costs no
//! space.

use std::collections::HashMap;

use rtc_abi::Feature;
use rtc_ir::effects::Space;
use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Phase, SCRATCH_ALIGN, Value, ValueDef, scratch_bytes, view};
use rtc_layout::{
    Conversion, Layout, MatrixInstructions, SharedAccess, SharedLayout, SharedPlan, conversion, shared_plan,
};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "split-conversions", needs: Phase::Laid, leaves: Phase::Laid, run };

/// Bytes that a value may take of shared memory throughout a loop.
const FEW_BYTES: u64 = 4096;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let matrix = MatrixInstructions { load: true, store: cx.target.has(Feature::Stmatrix) };
    let mut plans: HashMap<(Layout, Layout, u32), SharedPlan> = HashMap::new();
    // Buffers of the current block whose content is there: they end with the next use of shared memory by others.
    let mut stored: HashMap<Value, (Value, SharedLayout)> = HashMap::new();
    let mut within: Option<Block> = None;
    for op in rtc_ir::walk(kernel) {
        let block = kernel.op(op).parent;
        if block != within {
            stored.clear();
            within = block;
        }
        if !is_split(kernel, op) {
            if !stored.is_empty() && touches_shared(kernel, op) {
                stored.clear();
            }
            continue;
        }
        let (source, result) = (view::ConvertLayout::at(kernel, op).source(), kernel.result(op, 0));
        let ty = kernel.value_type(result);
        let (Some(from), Some(to), Some(elem)) = (kernel.layout_of(source), kernel.layout_of(result), ty.elem()) else {
            continue;
        };
        let (from, to, bits) = (from.clone(), to.clone(), elem.bytes() * 8);
        let plan =
            plans.entry((from.clone(), to.clone(), bits)).or_insert_with(|| shared_plan(&from, &to, bits, matrix));
        let shared = stored.get(&source).filter(|(_, layout)| {
            let load = SharedAccess::least_cost(layout, &to, bits, matrix.load, false);
            load <= plan.store.cost(true) + plan.load.cost(false)
        });
        let buffer = match shared {
            Some((buffer, _)) => *buffer,
            None => {
                let Some(place) = kernel.shared_type(elem, &plan.shared, 1) else { continue };
                let outside = before_loops(kernel, op, source).filter(|_| place.slot_bytes() <= FEW_BYTES);
                let mut builder = Builder::before(kernel, outside.unwrap_or(op));
                let buffer = builder.buffer(place, SCRATCH_ALIGN)?;
                builder.local_store(source, buffer)?;
                stored.clear();
                stored.insert(source, (buffer, plan.shared.clone()));
                buffer
            }
        };
        let loaded = Builder::before(kernel, op).local_load_to(buffer, ty)?;
        kernel.replace_op(op, loaded);
    }
    Ok(())
}

/// The outermost of the loops around a conversion in which its source does not change.
fn before_loops(kernel: &Kernel, conversion: Op, source: Value) -> Option<Op> {
    let around = |op: Op| kernel.block(kernel.op(op).parent?).parent;
    let (mut inner, mut found) = (conversion, None);
    while let Some(of) = around(inner).filter(|of| matches!(kernel.kind(*of), OpKind::ForRange { .. })) {
        let inside = match kernel.value(source).def {
            ValueDef::Result(made, _) => rtc_ir::walk_op(kernel, of).contains(&made),
            ValueDef::Arg(block, _) => kernel.block(block).parent == Some(of),
        };
        if inside {
            break;
        }
        (inner, found) = (of, Some(of));
    }
    found
}

/// Whether an operation is a conversion through shared memory.
pub(crate) fn is_split(kernel: &Kernel, op: Op) -> bool {
    let Some(converted) = view::ConvertLayout::of(kernel, op) else { return false };
    match (kernel.layout_of(converted.source()), kernel.layout_of(kernel.result(op, 0))) {
        (Some(from), Some(to)) => conversion(from, to) == Conversion::Shared,
        _ => false,
    }
}

/// Whether an operation uses shared memory, or will: scratch buffers come later.
fn touches_shared(kernel: &Kernel, op: Op) -> bool {
    let data = kernel.op(op);
    !data.blocks.is_empty()
        || scratch_bytes(kernel, op).is_some()
        || kernel.effects(op).any(|(effect, _)| matches!(effect.space, Space::Shared | Space::Barrier))
}
