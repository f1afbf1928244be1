//! Edits of a kernel that keep the worklist up to date. A rule edits through these alone.

use std::ops::Deref;

use rtc_ir::analysis::{AxisInfos, axis_info};
use rtc_ir::{Block, Builder, Kernel, Literal, Op, Position, Value};

use super::dead;
use super::worklist::Worklist;

/// A kernel under rewrite rules.
pub struct Rewriter<'k> {
    kernel: &'k mut Kernel,
    worklist: Worklist,
    /// Operations below this number have been on the worklist.
    known: usize,
    infos: Option<AxisInfos>,
}

impl Deref for Rewriter<'_> {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        self.kernel
    }
}

impl<'k> Rewriter<'k> {
    pub(super) fn new(kernel: &'k mut Kernel) -> Rewriter<'k> {
        let known = kernel.op_count();
        Rewriter { kernel, worklist: Worklist::default(), known, infos: None }
    }

    pub(super) fn push(&mut self, op: Op) {
        self.worklist.push(op);
    }

    /// The next operation to look at; new ones come after all others.
    pub(super) fn pop(&mut self) -> Option<Op> {
        for new in self.known..self.kernel.op_count() {
            self.worklist.push(Op::from_u32(new as u32));
        }
        self.known = self.kernel.op_count();
        self.worklist.pop()
    }

    /// Puts a changed operation and the users of its results on the worklist. What a block yields, rules look at from the
    /// operation around it.
    pub(super) fn push_changed(&mut self, op: Op) {
        self.worklist.push(op);
        if dead::is_terminator(self.kernel, op)
            && let Some(around) = self.kernel.op(op).parent.and_then(|block| self.kernel.block(block).parent)
        {
            self.worklist.push(around);
        }
        for result in &self.kernel.op(op).results {
            self.kernel.users(*result).into_iter().for_each(|user| self.worklist.push(user));
        }
    }

    /// Puts the operation that computes a value on the worklist, and the value's only user: a rule may ask for that.
    fn push_source(&mut self, value: Value) {
        if let Some(op) = self.kernel.def_op(value) {
            self.worklist.push(op);
        }
        if let [user] = self.kernel.users(value)[..] {
            self.push_changed(user);
        }
    }

    /// Uses `new` wherever `old` was used.
    pub fn replace_uses(&mut self, old: Value, new: Value) {
        let users = self.kernel.users(old);
        if users.is_empty() || old == new {
            return;
        }
        self.kernel.replace_uses(old, new);
        users.into_iter().for_each(|user| self.push_changed(user));
        self.push_source(old);
    }

    /// Erases an operation and uses `value` in place of its one result, whose name it takes.
    pub fn replace_op(&mut self, op: Op, value: Value) {
        let result = self.kernel.result(op, 0);
        let users = self.kernel.users(result);
        self.kernel.replace_value(result, value);
        users.into_iter().for_each(|user| self.push_changed(user));
        self.erase(op);
    }

    /// Sets operand `index`, counted over all operands.
    pub fn set_operand(&mut self, op: Op, index: usize, value: Value) {
        let old = self.kernel.op(op).operands[index];
        self.kernel.set_operand(op, index, value);
        self.push_changed(op);
        self.push_source(old);
    }

    /// Removes optional operand `index`, if it is there.
    pub fn clear_optional(&mut self, op: Op, index: usize) {
        let Some(old) = self.kernel.optional(op, index) else { return };
        self.kernel.clear_optional(op, index);
        self.push_changed(op);
        self.push_source(old);
    }

    /// Turns an operation with one result into a constant: `value` in every place of its type.
    pub fn make_constant(&mut self, op: Op, value: Literal) {
        let operands = self.kernel.op(op).operands.clone();
        self.kernel.make_constant(op, value);
        self.push_changed(op);
        operands.into_iter().for_each(|operand| self.push_source(operand));
    }

    /// Erases an operation whose results have no users, and its nested operations.
    pub fn erase(&mut self, op: Op) {
        let erased = rtc_ir::walk_op(self.kernel, op).into_iter();
        let lost: Vec<Value> = erased.flat_map(|op| self.kernel.op(op).operands.clone()).collect();
        self.kernel.erase(op);
        lost.into_iter().for_each(|operand| self.push_source(operand));
    }

    /// Moves an operation.
    pub fn move_op(&mut self, op: Op, at: Position) {
        self.kernel.move_op(op, at);
        self.push_changed(op);
    }

    /// Puts the operations of a nested block in the place of the operation around it, whose results are what the block yields.
    /// Gives false, and does nothing, for a block without an end.
    pub fn replace_by_block(&mut self, op: Op, block: Block) -> bool {
        let Some(end) = self.terminator(block) else { return false };
        let values: Vec<Value> = self.variadic(end).to_vec();
        for inner in self.ops(block).filter(|inner| *inner != end).collect::<Vec<_>>() {
            self.move_op(inner, Position::Before(op));
        }
        for (result, value) in self.op(op).results.clone().into_iter().zip(values) {
            self.replace_uses(result, value);
        }
        self.erase(op);
        true
    }

    /// Builds before an operation, at its location.
    pub fn before(&mut self, op: Op) -> Builder<'_> {
        Builder::before(self.kernel, op)
    }

    /// Builds after an operation, at its location.
    pub fn after(&mut self, op: Op) -> Builder<'_> {
        Builder::after(self.kernel, op)
    }

    /// The axis information of the kernel as it was when a rule first asked for it. No rule changes what a value is, so that
    /// it stays true; nothing is known about values that are new since then.
    pub fn axis_infos(&mut self) -> &AxisInfos {
        self.infos.get_or_insert_with(|| axis_info(self.kernel))
    }
}
