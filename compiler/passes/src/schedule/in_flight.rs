//! Dots in flight: which can be, which registers they hold, and the waits for them.

use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Value, ValueDef, regions};
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
pub(crate) fn changes_place(kernel: &Kernel, mma: Op) -> bool {
    let Some(body) = loop_body(kernel, mma) else { return false };
    let from = places_before(kernel, mma, body);
    let end = kernel.terminator(body).map_or(&[][..], |end| kernel.variadic(end));
    let sums = sums_after(kernel, mma);
    let mut to = end.iter().enumerate().filter(|(_, value)| sums.contains(value)).map(|(place, _)| place + 1);
    to.any(|to| from.iter().any(|from| *from != to))
}

/// The body of the innermost loop around an operation.
fn loop_body(kernel: &Kernel, op: Op) -> Option<Block> {
    let mut block = kernel.op(op).parent?;
    loop {
        let of = kernel.block(block).parent?;
        if let OpKind::ForRange { .. } = kernel.kind(of) {
            return Some(block);
        }
        block = kernel.op(of).parent?;
    }
}

/// The numbers of the values that a loop hands to its body in whose registers the accumulators of a dot may be before it.
fn places_before(kernel: &Kernel, mma: Op, body: Block) -> Vec<usize> {
    let (mut open, mut seen, mut places) = (vec![kernel.operand(mma, 2)], Vec::new(), Vec::new());
    while let Some(value) = open.pop().map(|value| registers_of(kernel, value)) {
        if seen.contains(&value) {
            continue;
        }
        seen.push(value);
        match kernel.value(value).def {
            ValueDef::Arg(block, number) if block == body => places.push(number as usize),
            ValueDef::Arg(..) => {}
            ValueDef::Result(op, number) => match kernel.kind(op) {
                OpKind::MmaAwait {} => open.extend(kernel.variadic(op).get(number as usize)),
                OpKind::IfElse {} => open.extend(regions::sources(kernel, value)),
                kind if matrix_unit::is_dot(kind) => open.push(kernel.operand(op, 2)),
                _ => {}
            },
        }
    }
    places
}

/// The accumulators of a dot, and what they are behind waits, further dots and branches.
fn sums_after(kernel: &Kernel, mma: Op) -> Vec<Value> {
    let mut sums = vec![kernel.result(mma, 0)];
    let mut next = 0;
    while let Some(sum) = sums.get(next).copied() {
        next += 1;
        for user in kernel.users(sum) {
            let place = || kernel.variadic(user).iter().position(|value| *value == sum);
            let around = kernel.op(user).parent.and_then(|block| kernel.block(block).parent);
            let further = match kernel.kind(user) {
                OpKind::MmaAwait {} => place().map(|place| kernel.result(user, place)),
                OpKind::Yields {} => around
                    .filter(|around| matches!(kernel.kind(*around), OpKind::IfElse {}))
                    .and_then(|around| place().map(|place| kernel.result(around, place))),
                kind if matrix_unit::is_dot(kind) && kernel.operand(user, 2) == sum => Some(kernel.result(user, 0)),
                _ => renamed(kernel, user).map(|_| kernel.result(user, 0)),
            };
            sums.extend(further.filter(|value| !sums.contains(value)));
        }
    }
    sums
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
