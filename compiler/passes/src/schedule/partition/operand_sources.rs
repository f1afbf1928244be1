//! What operands of dots are made of: loads before they are staged, buffers after that.

use std::collections::HashSet;

use rtc_ir::{Kernel, OpKind, Value};

use super::config;
use crate::laid::computed_operand::is_on_elements;
use crate::matrix_unit;
use crate::schedule::operands::mma_operands;

/// Whether a loaded tile, perhaps after a change of layout, a transposition or casts, is an operand of a dot, or one in
/// registers is computed from it.
pub(super) fn is_operand(kernel: &Kernel, value: Value) -> bool {
    let (mut seen, mut open) = (HashSet::new(), vec![(value, false)]);
    while let Some((value, computed)) = open.pop() {
        for user in kernel.users(value) {
            let kind = kernel.kind(user);
            if let OpKind::Dot { .. } = kind {
                let takes = |place: usize| kernel.operand(user, place) == value;
                let in_registers = || matrix_unit::is_async_dot(kind) && mma_operands::in_registers(kernel, user);
                if takes(0) && (!computed || in_registers()) || takes(1) && !computed {
                    return true;
                }
            } else if hands_on(kind) {
                let next = (kernel.result(user, 0), computed || is_on_elements(kind) && !kind.is_unary());
                open.extend(seen.insert(next).then_some(next));
            }
        }
    }
    false
}

/// The buffers that an operand of a dot is, or is computed from.
pub(super) fn sources_of(kernel: &Kernel, operand: Value) -> HashSet<Value> {
    let (mut seen, mut open, mut found) = (HashSet::new(), vec![operand], HashSet::new());
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        match kernel.def_op(value).map(|op| (op, kernel.kind(op))) {
            Some((op, kind)) if hands_on(kind) => open.extend(&kernel.op(op).operands),
            Some((op, OpKind::LocalLoad {})) => open.push(kernel.operand(op, 0)),
            _ => found.extend(config::buffer_of(kernel, value)),
        }
    }
    found
}

/// Whether the elements of an operation's result follow from one element each of its operands.
fn hands_on(kind: &OpKind) -> bool {
    is_on_elements(kind) || matches!(kind, OpKind::ConvertLayout {} | OpKind::Trans { .. })
}
