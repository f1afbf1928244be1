//! Dots in flight: which can be, which registers they hold, and the waits for them.

use rtc_ir::{Builder, Kernel, Op, OpKind, Value, ValueDef};
use rtc_layout::Conversion;

use crate::dependence::operands;
use crate::laid::conversions::conversion_of;
use crate::{PassError, matrix_unit};

/// Whether a dot can be waited for later than it is begun: its accumulators have 32 bits, and stay in their registers.
pub(crate) fn can_be(kernel: &Kernel, mma: Op) -> bool {
    let has_words = kernel.value_type(kernel.result(mma, 0)).elem().is_some_and(|elem| elem.bits() == 32);
    has_words && !changes_place(kernel, mma)
}

/// Whether a loop carries the accumulators of a dot from one place to another, as where two accumulators take turns: registers
/// are copied for that, and the copies may lie between the dot and the wait for it.
fn changes_place(kernel: &Kernel, mma: Op) -> bool {
    let ValueDef::Arg(body, number) = kernel.value(registers_of(kernel, kernel.operand(mma, 2))).def else {
        return false;
    };
    let of = kernel.block(body).parent.filter(|of| matches!(kernel.kind(*of), OpKind::ForRange { .. }));
    let Some(end) = of.and_then(|_| kernel.terminator(body)) else { return false };
    let mut sums = vec![kernel.result(mma, 0)];
    let mut next = 0;
    while let Some(sum) = sums.get(next).copied() {
        next += 1;
        for user in kernel.users(sum) {
            match kernel.kind(user) {
                OpKind::MmaAwait {} => {
                    let place = kernel.variadic(user).iter().position(|value| *value == sum);
                    sums.extend(place.map(|place| kernel.result(user, place)));
                }
                kind if matrix_unit::is_dot(kind) && kernel.operand(user, 2) == sum => {
                    sums.push(kernel.result(user, 0));
                }
                _ => {}
            }
        }
    }
    let elsewhere = |(place, value): (usize, &Value)| sums.contains(value) && place + 1 != number as usize;
    kernel.variadic(end).iter().enumerate().any(elsewhere)
}

/// Whether an operation reads the registers of a dot's left operand. Until the dot is complete, only other dots may.
pub(crate) fn shares_operand(kernel: &Kernel, op: Op, mma: Op) -> bool {
    let left = kernel.operand(mma, 0);
    let works = !matrix_unit::is_dot(kernel.kind(op)) && renamed(kernel, op).is_none();
    works && kernel.value_type(left).shape().is_some() && {
        let left = registers_of(kernel, left);
        operands(kernel, op).any(|value| registers_of(kernel, value) == left)
    }
}

/// The value in whose registers another one is.
pub(crate) fn registers_of(kernel: &Kernel, mut value: Value) -> Value {
    while let Some(source) = kernel.def_op(value).and_then(|op| renamed(kernel, op)) {
        value = source;
    }
    value
}

/// The operand of an operation that only renames its registers.
fn renamed(kernel: &Kernel, op: Op) -> Option<Value> {
    let moves = matches!(conversion_of(kernel, op), Some(Conversion::Shared | Conversion::Shuffles(_)));
    kernel.forwarded(op).filter(|_| !moves)
}

/// Whether an operation becomes a call: the assembler lets no dot be in flight there.
pub(crate) fn is_call(kernel: &Kernel, op: Op) -> bool {
    matches!(kernel.kind(op), OpKind::Print { .. } | OpKind::Assertion { .. })
}

/// Waits for dots, and replaces all other uses of their accumulators by what the wait gives.
pub(crate) fn wait(mut at: Builder<'_>, accs: &[Value]) -> Result<Op, PassError> {
    let wait = at.await_dots(accs)?;
    let kernel = at.kernel_mut();
    for (number, acc) in accs.iter().enumerate() {
        kernel.replace_uses_except(*acc, kernel.result(wait, number), Some(wait));
    }
    Ok(wait)
}
