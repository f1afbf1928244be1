//! Dots by FMAs, and by `mma.sync` on `f64`, that read their operands from the buffers which copies fill,
//! instead of storing them once more to a buffer of their own.

use std::collections::{HashMap, HashSet};

use rtc_ir::effects::Space;
use rtc_ir::{Block, Builder, Elem, Kernel, Op, OpKind, Precision, Scalar, Value};
use rtc_layout::Layout;

use super::staged::copied_width;
use crate::PassError;

/// The dots in a block that can do so if the loads become copies.
pub(crate) fn find(kernel: &Kernel, body: Block, loads: &HashSet<Op>) -> HashSet<Op> {
    let is_read = |value: Value| {
        let load = kernel.def_op(source(kernel, value).0);
        kernel.value_type(value).shape().is_some_and(|shape| shape.rank() == 2)
            && load.is_some_and(|op| loads.contains(&op))
    };
    let suits = |op: &Op| {
        let OpKind::Dot { kind, precision, .. } = kernel.kind(*op) else { return false };
        let [lhs, rhs, acc] = [0, 1, 2].map(|index| kernel.operand(*op, index));
        let elems = [lhs, rhs, acc].map(|value| kernel.value_type(value).elem().and_then(Elem::num));
        let exact = match elems[2] {
            Some(Scalar::F32) => *precision == Precision::Ieee,
            elem => elem == Some(Scalar::F64),
        };
        let alike = elems.iter().all(|elem| *elem == elems[2]);
        rtc_ir::multiplier(*kind).is_some() && exact && alike && is_read(lhs) && is_read(rhs)
    };
    rtc_ir::walk_block(kernel, body).into_iter().filter(suits).collect()
}

/// The dots on `f64` outside of loops that can do so (FMAs gain nothing by it), and the loads that become copies for them, each with how many elements
/// it copies at a time.
pub(crate) fn outside_of_loops(kernel: &Kernel) -> (HashSet<Op>, Vec<(Op, u32)>) {
    let body = kernel.body();
    let is_dot = |op: &Op| matches!(kernel.kind(*op), OpKind::Dot { .. });
    let Some(first) = kernel.ops(body).find(is_dot) else { return Default::default() };
    // The source of a copy must not change until the wait.
    let writes = |op: &Op| kernel.effects(*op).any(|(effect, _)| effect.space == Space::Global && effect.lasts());
    let before: Vec<Op> = kernel.ops(body).take_while(|op| *op != first).collect();
    let changed = before.iter().rposition(|op| {
        writes(op) || kernel.op(*op).blocks.iter().any(|block| rtc_ir::walk_block(kernel, *block).iter().any(writes))
    });
    let unchanged = &before[changed.map_or(0, |last| last + 1)..];
    let widths: HashMap<Op, u32> = unchanged.iter().filter_map(|op| Some((*op, copied_width(kernel, *op)?))).collect();
    let mut dots = find(kernel, body, &widths.keys().copied().collect());
    dots.retain(|op| {
        let sum = kernel.value_type(kernel.result(*op, 0)).elem().and_then(Elem::num);
        kernel.op(*op).parent == Some(body) && sum == Some(Scalar::F64)
    });
    let read = |load: &Op| {
        let of = kernel.result(*load, 0);
        dots.iter().any(|op| [0, 1].iter().any(|i| source(kernel, kernel.operand(*op, *i)).0 == of))
    };
    let loads = unchanged.iter().filter_map(|op| Some((*op, *widths.get(op)?))).filter(|(op, _)| read(op)).collect();
    (dots, loads)
}

/// How the threads of a dot read its operand `index`, if it is such a dot.
pub(crate) fn reader(kernel: &Kernel, dot: Op, index: u32) -> Option<Layout> {
    let OpKind::Dot { kind, .. } = kernel.kind(dot) else { return None };
    let operand = kernel.value_type(kernel.operand(dot, index as usize)).shape()?;
    let acc = kernel.layout_of(kernel.operand(dot, 2))?;
    Some(rtc_ir::multiplier(*kind)?.fragment(acc, index, operand[if index == 0 { 1 } else { 0 }]))
}

/// Makes a dot read the buffers that hold its operands.
pub(crate) fn stage(kernel: &mut Kernel, op: Op, buffers: &HashMap<Value, Value>) -> Result<(), PassError> {
    let OpKind::Dot { kind, .. } = *kernel.kind(op) else { return Ok(()) };
    let mut operands = Vec::new();
    for index in 0..2 {
        let (value, transposed) = source(kernel, kernel.operand(op, index));
        let Some(&buffer) = buffers.get(&value) else { return Ok(()) };
        operands.push((buffer, transposed));
    }
    let mut views = Vec::new();
    for (buffer, transposed) in operands {
        let view = if transposed { Builder::before(kernel, op).shared_trans_of(buffer, &[1, 0])? } else { buffer };
        views.push(view);
    }
    let (acc, result) = (kernel.operand(op, 2), kernel.result(op, 0));
    let ty = kernel.value_type(result);
    let loc = kernel.op(op).loc;
    let mut builder = Builder::before(kernel, op);
    builder.set_loc(loc);
    let made = builder.build(OpKind::DotBuffers { kind }, &[views[0], views[1], acc], &[], &[], &[], &[ty])?;
    kernel.replace_op(op, kernel.result(made, 0));
    Ok(())
}

/// The operand before changes of layout, and whether it is transposed.
pub(crate) fn source(kernel: &Kernel, operand: Value) -> (Value, bool) {
    let (mut value, mut transposed) = (operand, false);
    while let Some(made) = kernel.def_op(value) {
        match kernel.kind(made) {
            OpKind::ConvertLayout {} => {}
            OpKind::Trans { order } => transposed ^= order[..] == [1, 0],
            _ => break,
        }
        value = kernel.operand(made, 0);
    }
    (value, transposed)
}
