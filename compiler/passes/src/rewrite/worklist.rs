//! The operations that rules have yet to look at: first in, first out, each at most once.

use std::collections::VecDeque;

use cranelift_entity::EntitySet;
use rtc_ir::Op;

/// The list.
#[derive(Default)]
pub(super) struct Worklist {
    queue: VecDeque<Op>,
    queued: EntitySet<Op>,
}

impl Worklist {
    /// Adds an operation, unless it is on the list.
    pub(super) fn push(&mut self, op: Op) {
        if self.queued.insert(op) {
            self.queue.push_back(op);
        }
    }

    /// Takes the operation that has been on the list longest.
    pub(super) fn pop(&mut self) -> Option<Op> {
        let op = self.queue.pop_front()?;
        self.queued.remove(op);
        Some(op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_on_the_list_once() {
        let [a, b] = [0, 1].map(Op::from_u32);
        let mut list = Worklist::default();
        list.push(a);
        list.push(b);
        list.push(a);
        assert_eq!([list.pop(), list.pop(), list.pop()], [Some(a), Some(b), None]);
        list.push(a);
        assert_eq!(list.pop(), Some(a), "it can come back");
    }
}
