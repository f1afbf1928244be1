//! How the layouts of an operation's operands and results hang together: what an operand must have for a wanted result
//! (`operand_for_result`), and what the result gets from an operand (`result_from_operand`).

use rtc_ir::{Kernel, Op, OpKind, Traits};
use rtc_layout::Layout;

/// The layout that operand `index` must have so that the result has `layout` with no data movement. `None` if the
/// operation does not tie the two.
pub fn operand_for_result(kernel: &Kernel, op: Op, index: usize, layout: &Layout) -> Option<Layout> {
    let data = kernel.op(op);
    let shape = kernel.value_type(data.operands[index]).shape()?;
    match &data.kind {
        OpKind::ExpandDims { axis } => Some(layout.remove_dim(*axis as usize)),
        OpKind::Broadcast {} => Some(layout.broadcast_operand(&shape)),
        OpKind::Reshape { .. } => Some(layout.reshape(&shape)),
        OpKind::Trans { order } => Some(layout.transpose(&inverse(order))),
        OpKind::Join {} => layout.split(),
        OpKind::Split {} => Some(layout.join()),
        OpKind::Scan { .. } | OpKind::Sort { .. } => Some(layout.clone()),
        OpKind::Gather { .. } if index == 1 => Some(layout.clone()),
        kind if kind.spec().traits.has(Traits::ELEMENTWISE) => Some(layout.clone()),
        _ => None,
    }
}

/// The layout that the results get when operand `index` has `layout`. `None` if the operation does not tie the two, or
/// if another choice is better (a broadcast is laid out by its users).
pub fn result_from_operand(kernel: &Kernel, op: Op, index: usize, layout: &Layout) -> Option<Layout> {
    let data = kernel.op(op);
    let result = data.results.first().and_then(|v| kernel.value_type(*v).shape());
    match &data.kind {
        OpKind::ExpandDims { axis } => Some(layout.insert_dim(*axis as usize)),
        OpKind::Reshape { .. } => Some(layout.reshape(&result?)),
        OpKind::Trans { order } => Some(layout.transpose(order)),
        OpKind::Join {} => Some(layout.join()),
        OpKind::Split {} => layout.split(),
        OpKind::Reduce { axis } => result.map(|_| layout.remove_dim(*axis as usize)),
        OpKind::Scan { .. } | OpKind::Sort { .. } => Some(layout.clone()),
        OpKind::Gather { .. } if index == 1 => Some(layout.clone()),
        OpKind::Cat {} => Some(layout.concat(0)),
        kind if kind.spec().traits.has(Traits::ELEMENTWISE) => Some(layout.clone()),
        _ => None,
    }
}

fn inverse(order: &[u32]) -> Vec<u32> {
    let mut inverse = vec![0; order.len()];
    for (i, o) in order.iter().enumerate() {
        inverse[*o as usize] = i as u32;
    }
    inverse
}
