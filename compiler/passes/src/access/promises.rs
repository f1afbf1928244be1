//! Where a scalar is known, and what is promised of it there: for tensor maps that the kernel makes.

use rtc_ir::{Block, Elem, HintKind, Kernel, Op, OpKind, Type, Value, ValueDef, regions};

use super::host_values::divisor;

/// Whether a scalar is known before the innermost loop around its use: it is not computed in a loop that has none in it.
pub(crate) fn is_settled(kernel: &Kernel, value: Value) -> bool {
    let mut block = Some(block_of(kernel, value));
    while let Some(op) = block.and_then(|block| kernel.block(block).parent) {
        match kernel.kind(op) {
            OpKind::IfElse {} => block = kernel.op(op).parent,
            // Values of the first block of such a loop are not visible in the second.
            OpKind::WhileLoop {} if block == kernel.op(op).blocks.first().copied() => return false,
            kind if regions::is_loop(kind) => {
                return regions::has_loops(kernel, op);
            }
            _ => return false,
        }
    }
    true
}

/// The largest known divisor of a scalar at `at`: by the signature, or by assumptions in the kernel.
pub(crate) fn promised(kernel: &Kernel, value: Value, at: Op) -> i128 {
    let mut best = divisor(kernel, value).unwrap_or(1);
    let mut work = vec![value];
    while let Some(value) = work.pop() {
        for user in kernel.users(value) {
            match kernel.kind(user) {
                OpKind::Hint { kind: HintKind::MultipleOf, values } if is_seen(kernel, user, at) => {
                    best = best.max(values.first().copied().unwrap_or(1).into());
                }
                OpKind::ExtSI { .. } | OpKind::ExtUI { .. } => work.push(kernel.result(user, 0)),
                _ => {}
            }
        }
    }
    best
}

/// The pointers that are known to be multiples of so many bytes at `at`.
pub(crate) fn promised_pointers(kernel: &Kernel, at: Op, multiple: i128) -> Vec<Value> {
    let is_promise = |op: &Op| match kernel.kind(*op) {
        OpKind::Hint { kind: HintKind::MultipleOf, values } => {
            i128::from(values.first().copied().unwrap_or(1)) % multiple == 0
        }
        _ => false,
    };
    let is_pointer = |value: &Value| matches!(kernel.value_type(*value), Type::Scalar(Elem::Ptr(_)));
    let promises = rtc_ir::walk(kernel).into_iter().filter(|op| is_promise(op) && is_seen(kernel, *op, at));
    promises.map(|op| kernel.operand(op, 0)).filter(is_pointer).collect()
}

/// Whether the addresses of an access are promised to be multiples of so many bytes where its rows begin, along `axis`.
pub(crate) fn promises_rows(kernel: &Kernel, access: Op, axis: usize, multiple: i128) -> bool {
    let mut pointer = kernel.operand(access, 0);
    while let Some(op) = kernel.def_op(pointer) {
        match kernel.kind(op) {
            OpKind::Hint { kind: HintKind::MultipleOf, values }
                if values.get(axis).is_some_and(|value| i128::from(*value) % multiple == 0) =>
            {
                return true;
            }
            OpKind::Hint { .. } | OpKind::ConvertLayout {} => pointer = kernel.operand(op, 0),
            _ => return false,
        }
    }
    false
}

/// Whether an operation has been executed wherever another one is.
fn is_seen(kernel: &Kernel, op: Op, mut at: Op) -> bool {
    loop {
        if kernel.op(op).parent == kernel.op(at).parent {
            return op == at || kernel.is_before(op, at);
        }
        match kernel.op(at).parent.and_then(|block| kernel.block(block).parent) {
            Some(around) => at = around,
            None => return false,
        }
    }
}

pub(crate) fn block_of(kernel: &Kernel, value: Value) -> Block {
    match kernel.value(value).def {
        ValueDef::Arg(block, _) => block,
        ValueDef::Result(op, _) => kernel.op(op).parent.unwrap_or_else(|| kernel.body()),
    }
}
