//! Folds what is known: exact operations on constants, neutral elements, branches on constants, shape operations that
//! change nothing.
//!
//! ```text
//! %c = addi %two, %three : i32   →   %c = constant {value = 5} : i32
//! %d = muli %x, %one : i32       →   uses of %d become %x
//! ```

use std::collections::HashMap;

use rtc_ir::{Elem, Kernel, Op, OpKind, Phase, Value, constant_bits, fold};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "simplify", needs: Phase::Tile, leaves: Phase::Tile, run };

/// What took the place of a value. Uses come after definitions in the walk.
type Replaced = HashMap<Value, Value>;

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    let mut replaced = Replaced::new();
    let mut dead = Vec::new();
    for op in rtc_ir::walk(kernel) {
        // An operation inside a branch that went away stands nowhere.
        if !is_placed(kernel, op) {
            continue;
        }
        for operand in &mut kernel.op_mut(op).operands {
            *operand = resolve(&replaced, *operand);
        }
        if let Some(literal) = fold(kernel, op) {
            kernel.make_constant(op, literal);
        } else if let Some(same) = neutral(kernel, op) {
            replaced.insert(kernel.result(op, 0), same);
            dead.push(op);
        } else if matches!(kernel.kind(op), OpKind::IfElse {}) {
            take_known_branch(kernel, op, &mut replaced);
        }
    }
    kernel.detach_ops(&dead);
    Ok(())
}

/// Follows replacements of replacements.
fn resolve(replaced: &Replaced, mut value: Value) -> Value {
    while let Some(new) = replaced.get(&value) {
        value = *new;
    }
    value
}

fn is_placed(kernel: &Kernel, op: Op) -> bool {
    let mut block = kernel.op(op).parent;
    while let Some(b) = block {
        match kernel.block(b).parent {
            Some(around) => block = kernel.op(around).parent,
            None => return b == kernel.body(),
        }
    }
    false
}

/// The operand that an operation only repeats.
fn neutral(kernel: &Kernel, op: Op) -> Option<Value> {
    let data = kernel.op(op);
    let [first, ..] = data.operands[..] else { return None };
    let result_type = |index: usize| kernel.value_type(data.results[index]);
    let constant = |i: usize| constant_bits(kernel, data.operands[i]);
    match &data.kind {
        OpKind::AddI {} | OpKind::OrI {} | OpKind::XorI {} if constant(1) == Some(0) => Some(first),
        OpKind::AddI {} | OpKind::OrI {} | OpKind::XorI {} if constant(0) == Some(0) => Some(data.operands[1]),
        OpKind::SubI {} | OpKind::ShlI {} | OpKind::ShrSI {} | OpKind::ShrUI {} | OpKind::AddPtr {}
            if constant(1) == Some(0) =>
        {
            Some(first)
        }
        OpKind::MulI {} | OpKind::DivSI {} | OpKind::DivUI {}
            if constant(1) == Some(1) && elem_bits(kernel, first) > 1 =>
        {
            Some(first)
        }
        OpKind::MulI {} if constant(0) == Some(1) && elem_bits(kernel, first) > 1 => Some(data.operands[1]),
        OpKind::AndI {} if constant(1) == Some(all_ones(kernel, first)) => Some(first),
        OpKind::AndI {} if constant(0) == Some(all_ones(kernel, first)) => Some(data.operands[1]),
        OpKind::Select {} => match constant(0) {
            Some(0) => Some(data.operands[2]),
            Some(_) => Some(data.operands[1]),
            None => (data.operands[1] == data.operands[2]).then_some(data.operands[1]),
        },
        OpKind::Broadcast {} | OpKind::Reshape { .. } if kernel.value_type(first) == result_type(0) => Some(first),
        OpKind::Unsplat {} => {
            let def = kernel.def_op(first)?;
            matches!(kernel.kind(def), OpKind::Splat {}).then(|| kernel.operand(def, 0))
        }
        OpKind::Trans { order } if order.iter().enumerate().all(|(i, o)| i == *o as usize) => Some(first),
        _ => None,
    }
}

fn elem_bits(kernel: &Kernel, value: Value) -> u32 {
    kernel.value_type(value).elem().map_or(0, Elem::bits)
}

fn all_ones(kernel: &Kernel, value: Value) -> u64 {
    match elem_bits(kernel, value) {
        64 => u64::MAX,
        bits => (1 << bits) - 1,
    }
}

/// Puts the operations of the branch that is taken in the place of the whole;
/// they are walked later.
fn take_known_branch(kernel: &mut Kernel, op: Op, replaced: &mut Replaced) {
    let Some(bits) = constant_bits(kernel, kernel.operand(op, 0)) else { return };
    let taken = kernel.op(op).blocks[usize::from(bits == 0)];
    let Some((block, at)) = kernel.position(op) else { return };
    let ops = kernel.block(taken).ops.clone();
    let values: Vec<Value> = kernel.terminator(taken).map(|t| kernel.variadic(t).to_vec()).unwrap_or_default();
    for (i, inner) in ops.iter().take(ops.len().saturating_sub(1)).enumerate() {
        kernel.detach_op(*inner);
        kernel.insert_op(block, at + i, *inner);
    }
    for (result, value) in kernel.op(op).results.clone().into_iter().zip(values) {
        replaced.insert(result, value);
    }
    kernel.detach_op(op);
}
