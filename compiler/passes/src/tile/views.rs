//! Decomposes descriptors and block pointers into scalars, which loops and branches carry instead.
//!
//! ```text
//! %r = for_range .., (%p) : block_ptr<4xf32> ^(%i: i32, %q: block_ptr<4xf32>) { .. }
//!     →   %b, %n, %s, %o = for_range .., (%base, %size, %stride, %offset) : ptr<f32>, i64, i64, i32 ^(..) { .. }
//! ```

use std::collections::HashMap;

use rtc_ir::{Kernel, Op, Type, Value, regions};

use crate::PassError;

/// The parts of views.
#[derive(Debug, Default)]
pub(super) struct Views {
    parts: HashMap<Value, Vec<Value>>,
    /// Operands of loops, branches and terminators that become a part of a view: the operation, the number of its
    /// operand, and the number of the view's part.
    open: Vec<(Op, usize, usize)>,
    /// Operations that make views.
    makers: Vec<Op>,
}

impl Views {
    /// Adds slots for the parts to loops and branches that carry views; `types` gives the types of the parts. The
    /// operands in these slots are set in [`Views::finish`].
    pub(super) fn handed_on(kernel: &mut Kernel, types: &dyn Fn(Type) -> Option<Vec<Type>>) -> Views {
        let mut views = Views::default();
        for op in rtc_ir::walk(kernel) {
            for slot in regions::slots(kernel, op) {
                let Some(parts) = types(kernel.value_type(slot.targets[0])) else { continue };
                let sources: Vec<Value> = slot.values(kernel).collect();
                for (part, ty) in parts.into_iter().enumerate() {
                    let places = slot.sources.iter().map(|(op, _)| (*op, kernel.op(*op).operands.len(), part));
                    views.open.extend(places);
                    // The view itself is a placeholder for its part.
                    let targets = kernel.add_slot(&slot, ty, &sources);
                    for (view, target) in slot.targets.iter().zip(targets) {
                        views.parts.entry(*view).or_default().push(target);
                    }
                }
            }
        }
        views
    }

    /// Records the parts of an operation's result.
    pub(super) fn make(&mut self, kernel: &Kernel, op: Op, parts: Vec<Value>) {
        self.parts.insert(kernel.result(op, 0), parts);
        self.makers.push(op);
    }

    /// The parts of a view.
    pub(super) fn parts(&self, view: Value) -> Result<&[Value], PassError> {
        let parts = self.parts.get(&view).map(Vec::as_slice);
        parts.ok_or_else(|| PassError::Internal("a view of a tensor that no operation makes has no pointers".into()))
    }

    /// Hands on the parts, and removes the views.
    pub(super) fn finish(
        self,
        kernel: &mut Kernel,
        types: &dyn Fn(Type) -> Option<Vec<Type>>,
    ) -> Result<(), PassError> {
        for (op, index, part) in &self.open {
            let value = self.parts(kernel.op(*op).operands[*index])?[*part];
            kernel.set_operand(*op, *index, value);
        }
        for op in rtc_ir::walk(kernel).into_iter().rev() {
            // From the last to the first, since those after a removed slot move up.
            for slot in regions::slots(kernel, op).into_iter().rev() {
                if types(kernel.value_type(slot.targets[0])).is_some() {
                    kernel.remove_slot(&slot);
                }
            }
        }
        for op in self.makers.into_iter().rev() {
            kernel.erase(op);
        }
        Ok(())
    }
}
