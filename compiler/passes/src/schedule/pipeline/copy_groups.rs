//! Groups of copies in a loop, and the waits for them.

use rtc_ir::{Kernel, Op, OpKind, Value, view};

/// Removes the groups and the waits for copies from operations: what waited for a buffer reads it directly.
pub(crate) fn remove(kernel: &mut Kernel, ops: impl IntoIterator<Item = Op>) {
    let all: Vec<Op> = ops.into_iter().collect();
    for op in &all {
        let Some(wait) = view::CopyAwait::of(kernel, *op) else { continue };
        match wait.buffer() {
            Some(buffer) => kernel.replace_op(*op, buffer),
            None => kernel.erase(*op),
        }
    }
    for op in all {
        if let OpKind::CopyGroup {} = kernel.kind(op) {
            kernel.erase(op);
        }
    }
}

/// Lets a buffer be read only after a wait for its copies: `ready` replaces it, but for the copies that fill it.
pub(crate) fn read_after(kernel: &mut Kernel, buffer: Value, ready: Value) {
    for user in kernel.users(buffer) {
        if !matches!(kernel.kind(user), OpKind::CopyAsync { .. } | OpKind::CopyAwait {}) {
            kernel.map_operands(user, |value| if value == buffer { ready } else { value });
        }
    }
}
