//! Reads of buffers in place of values that are in them.

use rtc_ir::{Builder, Kernel, Op, OpKind, Position, Type, Value};
use rtc_layout::Layout;

use crate::PassError;

/// Replaces the remaining uses of a value by reads of the buffer that holds it.
pub(crate) fn read_back(kernel: &mut Kernel, value: Value, buffer: Value) -> Result<(), PassError> {
    let mut others: Vec<Op> = Vec::new();
    for user in kernel.users(value) {
        match kernel.kind(user).clone() {
            OpKind::ConvertLayout {} => {
                let result = kernel.result(user, 0);
                if kernel.is_used(result) {
                    let ty = kernel.value_type(result);
                    let loaded = Builder::before(kernel, user).local_load_to(buffer, ty)?;
                    kernel.replace_value(result, loaded);
                }
                kernel.erase(user);
            }
            OpKind::Trans { order } => {
                let result = kernel.result(user, 0);
                if kernel.is_used(result) {
                    let view = Builder::before(kernel, user).shared_trans_of(buffer, &order)?;
                    read_back(kernel, result, view)?;
                }
                kernel.erase(user);
            }
            kind if kind.is_unary() || matches!(kind, OpKind::ExpandDims { .. }) => {
                // The conversion moves before the operation.
                let result = kernel.result(user, 0);
                let Some((to, from)) =
                    converted_to(kernel, result).and_then(|to| Some((to, before(kernel, user, to)?)))
                else {
                    others.push(user);
                    continue;
                };
                let ty = kernel.value_type(value).with_layout(Some(kernel.intern_layout(from)));
                let loaded = Builder::before(kernel, user).local_load_to(buffer, ty)?;
                let made = kernel.clone_op(user, &[loaded], &[to]);
                kernel.insert_op(made, Position::Before(user));
                for conversion in kernel.users(result) {
                    kernel.replace_value(kernel.result(conversion, 0), kernel.result(made, 0));
                    kernel.erase(conversion);
                }
                kernel.erase(user);
            }
            _ => others.push(user),
        }
    }
    let Some(first) = others.into_iter().reduce(|first, other| earlier(kernel, first, other)) else { return Ok(()) };
    let ty = kernel.value_type(value);
    let loaded = Builder::before(kernel, first).local_load_to(buffer, ty)?;
    kernel.replace_value(value, loaded);
    Ok(())
}

/// The layout of the operand of an operation whose result is to have this type.
fn before(kernel: &Kernel, op: Op, result: Type) -> Option<Layout> {
    rtc_ir::required_operand_layout(kernel, op, 0, kernel.layout(result.layout()?))
}

/// The one type that all users of a value convert it to.
fn converted_to(kernel: &Kernel, value: Value) -> Option<Type> {
    let users = kernel.users(value);
    let to = |op: &Op| match kernel.kind(*op) {
        OpKind::ConvertLayout {} => Some(kernel.value_type(kernel.result(*op, 0))),
        _ => None,
    };
    let first = to(users.first()?)?;
    users.iter().all(|op| to(op) == Some(first)).then_some(first)
}

/// The earlier of two operations under one loop body, or the operation of that body around it.
fn earlier(kernel: &Kernel, a: Op, b: Op) -> Op {
    let chain = |op: Op| {
        let mut all = vec![op];
        while let Some(around) = kernel.op(all[all.len() - 1]).parent.and_then(|block| kernel.block(block).parent) {
            all.push(around);
        }
        all
    };
    let (from_a, from_b) = (chain(a), chain(b));
    for a in &from_a {
        if let Some(b) = from_b.iter().find(|b| kernel.op(**b).parent == kernel.op(*a).parent) {
            return if a == b || kernel.is_before(*a, *b) { *a } else { *b };
        }
    }
    a
}
