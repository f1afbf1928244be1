//! The linear terms of an index: from an address back to the numbers that it grows with.

use crate::{BlockPtrType, DescType, Kernel, Op, OpKind, Type, Value, ValueDef, regions, view};

/// The values from which a value is computed by sums, products, selects and widening.
///
/// Remainders, quotients, masks, shifts to the right and other operations that make a new number of bounded size are
/// not followed: `(a * b) % n` has no linear terms.
pub fn linear_sources(kernel: &Kernel, value: Value) -> Vec<Value> {
    match kernel.value(value).def {
        ValueDef::Result(op, _) => {
            let data = kernel.op(op);
            match &data.kind {
                OpKind::Select {} => {
                    let select = view::Select::at(kernel, op);
                    vec![select.lhs(), select.rhs()]
                }
                OpKind::ShlI {} => vec![view::ShlI::at(kernel, op).lhs()],
                OpKind::AddI {}
                | OpKind::SubI {}
                | OpKind::MulI {}
                | OpKind::MinSI {}
                | OpKind::MaxSI {}
                | OpKind::ExtSI { .. }
                | OpKind::ExtUI { .. }
                | OpKind::Join {}
                | OpKind::Split {}
                | OpKind::Cat {} => data.operands.to_vec(),
                kind if kind.forwards().is_some() => data.operands.to_vec(),
                _ => regions::sources(kernel, value).to_vec(),
            }
        }
        ValueDef::Arg(block, _) => {
            let handed = regions::sources(kernel, value);
            let around = kernel.block(block).parent;
            match around.map(|op| (op, kernel.kind(op))) {
                // The index of a loop grows from its bounds.
                Some((op, OpKind::ForRange { .. })) if handed.is_empty() => {
                    let range = view::ForRange::at(kernel, op);
                    vec![range.lower(), range.upper()]
                }
                _ => handed.to_vec(),
            }
        }
    }
}

/// The operands from which an operation computes an address, in addition to the base pointer.
pub fn address_operands(kernel: &Kernel, op: Op) -> &[Value] {
    let data = kernel.op(op);
    match &data.kind {
        OpKind::AddPtr {} | OpKind::DescGather {} => &data.operands[1..],
        OpKind::DescScatter {} => &data.operands[1..3],
        OpKind::DescLoad {} | OpKind::DescStore {} | OpKind::DescReduce { .. } | OpKind::Advance {} => {
            kernel.variadic(op)
        }
        // The sizes come before; they are not multiplied.
        OpKind::MakeDesc {} | OpKind::MakeBlockPtr { .. } => match kernel.value_type(data.results[0]) {
            Type::Desc(DescType { shape, .. }) | Type::BlockPtr(BlockPtrType { shape, .. }) => {
                &kernel.variadic(op)[shape.rank()..]
            }
            _ => &[],
        },
        _ => &[],
    }
}
