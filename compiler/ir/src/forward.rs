//! Operations that hand their operand on: the same elements in another shape or layout, repeated, or with a promise.

use crate::{Kernel, Op, OpKind, Value};

impl Kernel {
    /// The operand whose elements the result of `op` consists of, if `op` only hands them on ([`OpKind::forwards`]).
    pub fn forwarded(&self, op: Op) -> Option<Value> {
        let index = self.kind(op).forwards()?;
        Some(self.operand(op, index as usize))
    }

    /// The value from which `value` comes through operations that hand their operand on.
    pub fn source(&self, value: Value) -> Value {
        self.source_through(value, |_| true)
    }

    /// The same as [`source`](Kernel::source), but only through those of these operations for which `passes` holds:
    /// `|kind| matches!(kind, OpKind::Hint { .. })` keeps shape and layout.
    pub fn source_through(&self, mut value: Value, passes: impl Fn(&OpKind) -> bool) -> Value {
        while let Some(op) = self.def_op(value).filter(|op| passes(self.kind(*op)))
            && let Some(operand) = self.forwarded(op)
        {
            value = operand;
        }
        value
    }
}
