//! Which values end up in an address.

use cranelift_entity::SecondaryMap;

use crate::{Kernel, OpKind, Traits, Value, ValueDef, walk};

/// All values from which the offset of an `addptr` is computed, through element-wise and shape operations and loops.
pub(crate) fn address_values(kernel: &Kernel) -> SecondaryMap<Value, bool> {
    let mut marked: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut work: Vec<Value> = Vec::new();
    for op in walk(kernel) {
        if let OpKind::AddPtr {} = kernel.kind(op) {
            work.push(kernel.operand(op, 1));
        }
    }
    while let Some(value) = work.pop() {
        if std::mem::replace(&mut marked[value], true) {
            continue;
        }
        match kernel.value(value).def {
            ValueDef::Result(op, index) => {
                let data = kernel.op(op);
                match &data.kind {
                    OpKind::ForRange { .. } => carried(kernel, op, index as usize, &mut work),
                    OpKind::Splat {}
                    | OpKind::ExpandDims { .. }
                    | OpKind::Broadcast {}
                    | OpKind::Reshape { .. }
                    | OpKind::Trans { .. }
                    | OpKind::ConvertLayout {} => work.push(data.operands[0]),
                    kind if kind.spec().traits.has(Traits::ELEMENTWISE) => work.extend(&data.operands),
                    _ => {}
                }
            }
            ValueDef::Arg(block, index) => {
                if let Some(op) = kernel.block(block).parent
                    && let (OpKind::ForRange { .. }, Some(index)) = (kernel.kind(op), (index as usize).checked_sub(1))
                {
                    carried(kernel, op, index, &mut work);
                }
            }
        }
    }
    marked
}

/// What comes into carried value `index` of a loop.
fn carried(kernel: &Kernel, op: crate::Op, index: usize, work: &mut Vec<Value>) {
    work.extend(kernel.variadic(op).get(index));
    let end = kernel.op(op).blocks.first().and_then(|block| kernel.terminator(*block));
    work.extend(end.and_then(|end| kernel.variadic(end).get(index)));
}
