//! How many instructions of a thread an operation becomes, as estimated from its layouts.

use rtc_ir::{DotKind, Elem, Kernel, Op, OpKind, Scalar, Traits, Value, regions, sort_is_rolled, view};
use rtc_layout::{Conversion, MmaShape, conversion, unrolled_in_buffers, unrolled_steps};

/// A loop takes as long to compile as this many instructions: LLVM's analyses look at each loop from all others. 300 loops
/// take a second.
pub(crate) const LOOP: u64 = 160;

/// And a branch.
pub(crate) const BRANCH: u64 = 20;

/// How many values a thread holds of a tile or scalar.
pub(crate) fn width(kernel: &Kernel, value: Value) -> u64 {
    kernel.layout_of(value).map_or(1, |layout| u64::from(layout.registers()))
}

fn scalar(kernel: &Kernel, value: Value) -> Option<Scalar> {
    kernel.value_type(value).elem().and_then(Elem::num)
}

/// About how many instructions of a thread an operation is lowered to; those nested in it count for themselves.
pub(crate) fn instructions(kernel: &Kernel, op: Op) -> u64 {
    let data = kernel.op(op);
    let results: u64 = data.results.iter().map(|v| width(kernel, *v)).sum();
    let operands: u64 = data.operands.iter().map(|v| width(kernel, *v)).sum();
    // Rows of the combine block, less its end.
    let combine = || data.blocks.first().map_or(1, |b| kernel.ops(*b).count().saturating_sub(1).max(1)) as u64;
    match &data.kind {
        // Registers get other names; constants are shared.
        OpKind::Constant { .. } | OpKind::Join {} | OpKind::Split {} | OpKind::Cat {} | OpKind::AllocShared { .. } => 0,
        OpKind::ConvertLayout {} => converted(kernel, op, results),
        kind if kind.forwards().is_some() => 0,
        OpKind::SharedTrans { .. } | OpKind::SharedSlice { .. } | OpKind::SharedView {} => 0,
        OpKind::LocalStore {} => width(kernel, view::LocalStore::at(kernel, op).value()),
        kind if regions::is_loop(kind) => results + LOOP,
        kind if !regions::flow(kind).is_empty() => results + BRANCH,
        OpKind::Load { vector, .. } => {
            let accesses = results / u64::from(vector.unwrap_or(1));
            4 * accesses + results
        }
        OpKind::Store { vector, .. } => {
            let stored = width(kernel, view::Store::at(kernel, op).value());
            4 * (stored / u64::from(vector.unwrap_or(1))) + stored
        }
        OpKind::AtomicRmw { .. }
        | OpKind::AtomicCas { .. }
        | OpKind::AtomicLoad { .. }
        | OpKind::AtomicStore { .. }
        | OpKind::AtomicPoll { .. } => 8 * kernel.pointer(op).map_or(0, |pointer| width(kernel, pointer)),
        OpKind::Dot { kind, .. } => dot(kernel, op, *kind),
        OpKind::DotBuffers { kind } => dot_buffers(kernel, op, *kind),
        OpKind::Reduce { .. } => operands * combine() + results * (combine() + 1) * 5,
        OpKind::Scan { .. } => 2 * operands * (combine() + 1) + results,
        OpKind::Sort { bitonic, .. } => {
            let shape = kernel.value_type(view::Sort::at(kernel, op).source()).shape();
            let length = shape.map_or(0, |s| u64::from(s[s.rank() - 1].trailing_zeros()));
            let steps = match bitonic {
                true => length,
                false if sort_is_rolled(results, length) => 2 * length,
                false => length * (length + 1) / 2,
            };
            5 * results * steps
        }
        OpKind::Gather { .. } => operands + 4 * results,
        OpKind::Histogram { bins } => {
            7 * operands + results + 3 * u64::from(*bins) / (32 * u64::from(kernel.group_of(op).warps))
        }
        OpKind::Print { .. } => 20 * operands,
        OpKind::Assertion { .. } => 2 * operands,
        OpKind::InlineAsm { .. } => 2 * (operands + results),
        OpKind::CastF { .. } => {
            let narrow = |v: &Value| scalar(kernel, *v).is_some_and(Scalar::is_fp8);
            let steps = if data.operands.iter().chain(&data.results).any(narrow) { 4 } else { 1 };
            steps * results
        }
        kind if kind.spec().traits.has(Traits::TERMINATOR) => 0,
        _ => results.max(1),
    }
}

/// A conversion to another layout.
fn converted(kernel: &Kernel, op: Op, results: u64) -> u64 {
    let source = view::ConvertLayout::at(kernel, op).source();
    match (kernel.layout_of(source), kernel.layout_of(kernel.result(op, 0))) {
        (Some(from), Some(to)) => match conversion(from, to) {
            Conversion::Identity | Conversion::Registers(_) => 0,
            Conversion::Shuffles(_) => 3 * results,
            // Split into a store and a load before.
            Conversion::Shared => width(kernel, source) + results,
        },
        _ => results,
    }
}

/// A dot of operands in buffers: the steps in the body of its loop, and their loads.
fn dot_buffers(kernel: &Kernel, op: Op, kind: DotKind) -> u64 {
    let lhs = view::DotBuffers::at(kernel, op).lhs();
    let depth = kernel.value_type(lhs).as_shared().map_or(1, |ty| ty.shape[1]);
    let sums = width(kernel, kernel.result(op, 0));
    let steps = u64::from(unrolled_in_buffers(sums as u32, depth));
    let at_once = rtc_ir::multiplier(kind).map_or(1, |multiplier| u64::from(multiplier.steps()));
    (sums * steps + sums * steps / 2) / at_once + LOOP
}

/// Dots in fragments of the tensor cores, or FMAs of single elements.
fn dot(kernel: &Kernel, op: Op, kind: DotKind) -> u64 {
    let dot = view::Dot::at(kernel, op);
    let (Some(lhs), Some(scalar)) = (kernel.value_type(dot.lhs()).shape(), scalar(kernel, dot.lhs())) else {
        return 0;
    };
    let depth = u64::from(lhs[lhs.rank() - 1]);
    let sums = width(kernel, kernel.result(op, 0));
    if let Some(multiplier) = rtc_ir::multiplier(kind) {
        let steps = u64::from(unrolled_steps(sums as u32, depth as u32));
        let stored = width(kernel, dot.lhs()) + width(kernel, dot.rhs());
        // The loads fill at most as many registers as there are FMAs, mostly far fewer.
        return 2 * stored + (sums * steps + sums * steps / 2) / u64::from(multiplier.steps()) + LOOP;
    }
    if kind != DotKind::MmaV2 {
        return sums * depth;
    }
    let shape = MmaShape::for_bits(scalar.bits());
    let per_instruction = u64::from(shape.result_registers());
    // The accumulators are returned in a structure, whose fields are extracted.
    (sums / per_instruction) * (depth / u64::from(shape.k)) * (per_instruction + 1)
}
