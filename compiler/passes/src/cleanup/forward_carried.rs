//! Lets a value that a loop carries unchanged be the value that went in, and a branch that yields the same value on both
//! sides be that value. Bases, shapes and strides of block pointers are carried so; constants among them stay visible.
//!
//! ```text
//! %r = for_range .., (%x) ^(%i: i32, %a: i32) { .. yields (%a) }   →   uses of %a and %r become %x
//! ```

use std::collections::HashMap;

use rtc_ir::{Kernel, Op, OpKind, Phase, Value};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "forward-carried", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let mut replaced: HashMap<Value, Value> = HashMap::new();
    // Inner loops first: what they carry unchanged may be carried unchanged by the outer ones too.
    for op in rtc_ir::walk(kernel).into_iter().rev() {
        match kernel.kind(op) {
            OpKind::ForRange { .. } => forward_loop(kernel, op, &mut replaced),
            OpKind::IfElse {} => forward_branch(kernel, op, &mut replaced),
            _ => {}
        }
    }
    if replaced.is_empty() {
        return Ok(());
    }
    for op in rtc_ir::walk(kernel) {
        for operand in &mut kernel.op_mut(op).operands {
            *operand = resolve(&replaced, *operand);
        }
    }
    Ok(())
}

fn resolve(replaced: &HashMap<Value, Value>, mut value: Value) -> Value {
    while let Some(new) = replaced.get(&value) {
        value = *new;
    }
    value
}

/// The slots themselves go with the dead code.
fn forward_loop(kernel: &Kernel, op: Op, replaced: &mut HashMap<Value, Value>) {
    let body = kernel.op(op).blocks[0];
    let Some(end) = kernel.terminator(body) else { return };
    let args = &kernel.block(body).args[1..];
    for (slot, (arg, init)) in args.iter().zip(kernel.variadic(op)).enumerate() {
        let back = resolve(replaced, kernel.variadic(end)[slot]);
        if back == *arg || back == *init {
            replaced.insert(*arg, *init);
            replaced.insert(kernel.result(op, slot), *init);
        }
    }
}

fn forward_branch(kernel: &Kernel, op: Op, replaced: &mut HashMap<Value, Value>) {
    let blocks = &kernel.op(op).blocks;
    let [Some(then), Some(orelse)] = [0, 1].map(|i| kernel.terminator(blocks[i])) else { return };
    for (slot, result) in kernel.op(op).results.iter().enumerate() {
        let (a, b) = (resolve(replaced, kernel.variadic(then)[slot]), resolve(replaced, kernel.variadic(orelse)[slot]));
        // Equal on both sides means defined outside of both.
        if a == b {
            replaced.insert(*result, a);
        }
    }
}
