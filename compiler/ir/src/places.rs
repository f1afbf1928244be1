//! Which memory a buffer or barrier is.

use crate::{Kernel, Op, OpKind, Value};

impl Kernel {
    /// The operation that allocates what a value of type `Shared` or `Barrier` stands for: slots and views are followed
    /// back to it. `None` for other values.
    pub fn allocation(&self, value: Value) -> Option<Op> {
        let mut value = value;
        loop {
            let op = self.def_op(value)?;
            match self.kind(op) {
                OpKind::AllocShared { .. } | OpKind::AllocBarriers { .. } => return Some(op),
                // A view is made of its first operand.
                _ if self.value_type(value).is_place() => value = *self.op(op).operands.first()?,
                _ => return None,
            }
        }
    }
}
