//! A rough estimate of the peak register pressure of a loop's tiles, per thread.
//!
//! Loop-carried values and values from outside are live throughout; others from their definition to their last use. A
//! result reuses the registers of an operand that dies there. Constants and broadcasts take none.

use std::collections::{HashMap, HashSet};

use rtc_ir::{Block, Elem, Kernel, Op, OpKind, Value, constant_bits};

/// The most registers that tiles take at a time in the body of a loop.
pub(crate) fn pressure(kernel: &Kernel, of: Op) -> u32 {
    let body = kernel.op(of).blocks[0];
    let ops: Vec<Op> = kernel.ops(body).collect();
    let mut last: HashMap<Value, usize> = HashMap::new();
    let mut throughout: HashSet<Value> = kernel.block(body).args.iter().copied().collect();
    for (place, op) in ops.iter().enumerate() {
        for value in operands(kernel, *op) {
            let value = source(kernel, value);
            if is_made_in(kernel, value, body) {
                last.insert(value, place);
            } else {
                throughout.insert(value);
            }
        }
    }
    let own = |value: &Value| words(kernel, *value);
    let before: u32 = throughout.iter().map(own).sum();
    let (mut live, mut most) = (before, before);
    // The next value of a loop-carried value can reuse its registers.
    let carried: HashSet<Value> = kernel.block(body).args.iter().copied().collect();
    let mut freed: HashSet<Value> = HashSet::new();
    for (place, op) in ops.iter().enumerate() {
        let used: HashSet<Value> = operands(kernel, *op).into_iter().map(|value| source(kernel, value)).collect();
        for value in &used {
            let dies = last.get(value) == Some(&place);
            let replaced = carried.contains(value) && is_last_use(kernel, *value, &ops[place + 1..]);
            if (dies || replaced) && freed.insert(*value) {
                live -= words(kernel, *value);
            }
        }
        let made = kernel.op(*op).results.iter().filter(|value| source(kernel, **value) == **value);
        live += made.map(own).sum::<u32>();
        most = most.max(live);
    }
    most
}

fn operands(kernel: &Kernel, op: Op) -> Vec<Value> {
    rtc_ir::walk_op(kernel, op).into_iter().flat_map(|op| kernel.op(op).operands.clone()).collect()
}

fn is_last_use(kernel: &Kernel, value: Value, after: &[Op]) -> bool {
    !after.iter().any(|op| operands(kernel, *op).into_iter().any(|used| source(kernel, used) == value))
}

fn is_made_in(kernel: &Kernel, value: Value, body: Block) -> bool {
    kernel.def_op(value).is_some_and(|op| kernel.op(op).parent == Some(body))
}

/// The value whose registers a value lies in.
fn source(kernel: &Kernel, value: Value) -> Value {
    kernel.source_through(value, |kind| {
        matches!(kind, OpKind::ExpandDims { .. } | OpKind::Broadcast {} | OpKind::Splat {} | OpKind::Trans { .. })
    })
}

/// The registers of a thread for a tile of floats. Indices, masks and selects between constants are recomputed at their
/// uses, and pointers belong to copies of the producer.
pub(crate) fn words(kernel: &Kernel, value: Value) -> u32 {
    match kernel.value_type(value).elem().and_then(Elem::num) {
        Some(elem) if elem.is_float() && !is_of_constants(kernel, value) => words_of_tile(kernel, value),
        _ => 0,
    }
}

/// The registers of a thread for a tile, whatever it holds.
pub(crate) fn words_of_tile(kernel: &Kernel, value: Value) -> u32 {
    let bits = kernel.value_type(value).elem().map_or(32, |elem| elem.bits());
    kernel.layout_of(value).map_or(0, |layout| (layout.registers() * bits).div_ceil(32))
}

fn is_of_constants(kernel: &Kernel, value: Value) -> bool {
    let constant = |value: Value| constant_bits(kernel, value).is_some();
    let chosen = kernel.def_op(value).filter(|op| matches!(kernel.kind(*op), OpKind::Select {}));
    constant(value) || chosen.is_some_and(|op| [1, 2].into_iter().all(|place| constant(kernel.operand(op, place))))
}
