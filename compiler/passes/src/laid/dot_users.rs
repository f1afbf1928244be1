//! Which values become operands of dots, and which are computed from the results of dots.

use std::collections::HashSet;

use rtc_ir::{Kernel, Op, OpKind, Traits, Value};

use super::ties::is_shape;

/// Whether an operand of a dot is made of the elements of a value, each once or more, and of no dot's result.
pub fn makes_operand(kernel: &Kernel, value: Value) -> bool {
    let mut seen = HashSet::new();
    let mut work = vec![value];
    while let Some(value) = work.pop() {
        for user in kernel.users(value).into_iter().take(MOST_USERS).filter(|user| seen.insert(*user)) {
            let (kind, data) = (kernel.kind(user), kernel.op(user));
            match kind {
                OpKind::Dot { .. } if multiplies(kernel, user, value) => return true,
                OpKind::ConvertLayout {} => work.extend(&data.results),
                kind if is_shape(kind) => work.extend(&data.results),
                kind if kind.spec().traits.has(Traits::ELEMENTWISE) && !computed_from_dot(kernel, data.results[0]) => {
                    work.extend(&data.results);
                }
                _ => {}
            }
        }
    }
    false
}

/// Whether a value is an operand of a dot other than the accumulator.
pub fn multiplies(kernel: &Kernel, dot: Op, value: Value) -> bool {
    kernel.dot_operands(dot).is_some_and(|[lhs, rhs, _]| lhs == value || rhs == value)
}

/// Users of a value that are followed to a dot.
const MOST_USERS: usize = 8;

/// Whether a value is made element by element of the result of a dot.
pub fn computed_from_dot(kernel: &Kernel, value: Value) -> bool {
    let mut seen = HashSet::new();
    let mut work = vec![value];
    while let Some(value) = work.pop() {
        let Some(op) = kernel.def_op(value).filter(|op| seen.insert(*op)) else { continue };
        match kernel.kind(op) {
            OpKind::Dot { .. } => return true,
            kind if kind.spec().traits.has(Traits::ELEMENTWISE) => work.extend(&kernel.op(op).operands),
            _ => {}
        }
    }
    false
}
