//! Which loops load the operands of their products an iteration ahead into registers: those whose products store them to
//! shared memory themselves, with few sums.

use std::collections::HashSet;

use rtc_ir::{Block, Kernel, Op, OpKind, Value};

use super::addresses::{addresses, is_unchanged, loads_of_products};

/// Registers of a thread that tiles loaded ahead may take.
const MOST_AHEAD: u32 = 64;

/// With more sums than this in a thread, copies to shared memory were faster on an H200 than loads ahead.
const FEW_SUMS: u32 = 32;

/// Whether a loop does better without copies to shared memory, since its products store their operands themselves; and if so,
/// whether these are to be loaded an iteration ahead.
pub(super) fn without_copies(kernel: &Kernel, of: Op, direct: &HashSet<Op>) -> Option<bool> {
    let few = stored_operands(kernel, kernel.op(of).blocks[0], direct)? <= FEW_SUMS;
    let ahead = few && registers_ahead(kernel, of).is_some_and(|ahead| ahead <= MOST_AHEAD);
    (few || loaded_words(kernel, of) > MOST_AHEAD).then_some(ahead)
}

/// If all products of a loop store their operands to shared memory themselves, unless all can read buffers: the most sums
/// of a thread.
fn stored_operands(kernel: &Kernel, body: Block, direct: &HashSet<Op>) -> Option<u32> {
    let products = rtc_ir::walk_block(kernel, body).into_iter().filter_map(|op| match kernel.kind(op) {
        OpKind::Dot { kind, .. } => Some((op, *kind, kernel.layout_of(kernel.result(op, 0))?.registers())),
        _ => None,
    });
    let (mut most, mut all_direct) = (None, true);
    for (op, kind, sums) in products {
        rtc_ir::multiplier(kind)?;
        most = most.max(Some(sums));
        all_direct &= direct.contains(&op);
    }
    most.filter(|_| !all_direct)
}

/// The registers of a thread that hold what the products of a loop load, if it can be loaded an iteration ahead.
fn registers_ahead(kernel: &Kernel, of: Op) -> Option<u32> {
    let tiles: Vec<Value> = loads_of_products(kernel, of).into_iter().map(|load| kernel.result(load, 0)).collect();
    let part = addresses(kernel, of, &tiles)?;
    let mut read = part.ops.iter().filter(|op| matches!(kernel.kind(**op), OpKind::Load { .. }));
    let free = !tiles.is_empty() && read.all(|op| is_unchanged(kernel, of, kernel.operand(*op, 0)));
    free.then(|| loaded_words(kernel, of))
}

/// The words of 32 bits in a thread of what the products of a loop load.
fn loaded_words(kernel: &Kernel, of: Op) -> u32 {
    let words = |load: Op| {
        let value = kernel.result(load, 0);
        let bytes = kernel.value_type(value).elem().map_or(0, |elem| elem.bytes());
        kernel.layout_of(value).map_or(0, |layout| (layout.registers() * bytes).div_ceil(4))
    };
    loads_of_products(kernel, of).into_iter().map(words).sum()
}
