//! Which numbers are not less than which others, as the loops and branches around an operation say.
//!
//! ```text
//! while_loop (%x) ^(%i) { %go = cmpi %i, %first {predicate = ge} .. condition %go, (%i) } ^(%j) {
//!   %in = subi %j, %first      (%j is not less than %first, so %in is not negative)
//! ```

use crate::{Kernel, Op, OpKind, Predicate, Value, view};

/// Pairs in which the first is not less than the second at the current operation.
#[derive(Default)]
pub(super) struct Ordered(Vec<(Value, Value)>);

impl Ordered {
    /// Records the facts of a nested block; returns the argument of [`Ordered::leave`].
    pub fn enter(&mut self, kernel: &Kernel, op: Op, number: usize) -> usize {
        let before = self.0.len();
        let data = kernel.op(op);
        match (&data.kind, number) {
            (OpKind::ForRange { unsigned: false, .. }, 0) => {
                self.0.push((kernel.block(data.blocks[0]).args[0], view::ForRange::at(kernel, op).lower()));
            }
            (OpKind::WhileLoop {}, 1) => {
                if let Some(asked) = kernel.terminator(data.blocks[0]) {
                    let handed = kernel.variadic(asked).iter().copied();
                    let names: Vec<_> = handed.zip(kernel.block(data.blocks[1]).args.iter().copied()).collect();
                    self.note(kernel, view::Condition::at(kernel, asked).go_on(), &names);
                }
            }
            (OpKind::IfElse {}, 0) => self.note(kernel, view::IfElse::at(kernel, op).condition(), &[]),
            _ => {}
        }
        before
    }

    /// Drops the facts of a block.
    pub fn leave(&mut self, before: usize) {
        self.0.truncate(before);
    }

    /// Whether the first is not less than the second.
    pub fn holds(&self, first: Value, second: Value) -> bool {
        self.0.contains(&(first, second))
    }

    /// Records a condition that is true; `names` maps its values to those of the block.
    fn note(&mut self, kernel: &Kernel, condition: Value, names: &[(Value, Value)]) {
        let mut work = vec![condition];
        while let Some(op) = work.pop().and_then(|condition| kernel.def_op(condition)) {
            let called = |place: usize| {
                let value = kernel.operand(op, place);
                names.iter().find(|(name, _)| *name == value).map_or(value, |(_, called)| *called)
            };
            match kernel.kind(op) {
                OpKind::AndI {} => work.extend(&kernel.op(op).operands),
                OpKind::CmpI { predicate: Predicate::Ge | Predicate::Gt } => self.0.push((called(0), called(1))),
                OpKind::CmpI { predicate: Predicate::Le | Predicate::Lt } => self.0.push((called(1), called(0))),
                _ => {}
            }
        }
    }
}
