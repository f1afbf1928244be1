//! What an index is linear in: the way back from an address to the numbers that it grows with.

use crate::{Block, Kernel, OpKind, Value, ValueDef};

/// The values that a value is computed from by sums, products, choices and widening.
///
/// Not followed are remainders, quotients, masks, shifts to the right and whatever else makes a new number of bounded size:
/// `(a * b) % n` is computed from nothing in this sense.
pub fn linear_sources(kernel: &Kernel, value: Value) -> Vec<Value> {
    match kernel.value(value).def {
        ValueDef::Result(op, index) => {
            let (data, index) = (kernel.op(op), index as usize);
            let yields = |blocks: &[Block]| -> Vec<Value> {
                blocks.iter().filter_map(|b| yielded(kernel, *b).get(index)).copied().collect()
            };
            match &data.kind {
                OpKind::ForRange { .. } => {
                    yields(&data.blocks).into_iter().chain(kernel.variadic(op).get(index).copied()).collect()
                }
                OpKind::IfElse {} => yields(&data.blocks),
                OpKind::WhileLoop {} => yields(&data.blocks[..1]),
                OpKind::Select {} => data.operands[1..].to_vec(),
                OpKind::ShlI {} => vec![data.operands[0]],
                OpKind::AddI {}
                | OpKind::SubI {}
                | OpKind::MulI {}
                | OpKind::MinSI {}
                | OpKind::MaxSI {}
                | OpKind::ExtSI { .. }
                | OpKind::ExtUI { .. }
                | OpKind::Splat {}
                | OpKind::Unsplat {}
                | OpKind::ExpandDims { .. }
                | OpKind::Broadcast {}
                | OpKind::Reshape { .. }
                | OpKind::Trans { .. }
                | OpKind::Join {}
                | OpKind::Split {}
                | OpKind::Cat {}
                | OpKind::ConvertLayout {}
                | OpKind::Hint { .. } => data.operands.to_vec(),
                _ => Vec::new(),
            }
        }
        ValueDef::Arg(block, index) => {
            let Some(op) = kernel.block(block).parent else { return Vec::new() };
            let data = kernel.op(op);
            let (index, last) = match &data.kind {
                OpKind::ForRange { .. } => match (index as usize).checked_sub(1) {
                    Some(index) => (index, data.blocks[0]),
                    None => return data.operands[..2].to_vec(),
                },
                OpKind::WhileLoop {} if data.blocks[0] == block => (index as usize, data.blocks[1]),
                // The second block sees what the condition hands on.
                OpKind::WhileLoop {} => {
                    return yielded(kernel, data.blocks[0]).get(index as usize).copied().into_iter().collect();
                }
                _ => return Vec::new(),
            };
            let carried = [kernel.variadic(op).get(index), yielded(kernel, last).get(index)];
            carried.into_iter().flatten().copied().collect()
        }
    }
}

/// What a block hands to the operation around it.
fn yielded(kernel: &Kernel, block: Block) -> &[Value] {
    kernel.terminator(block).map(|end| kernel.variadic(end)).unwrap_or_default()
}
