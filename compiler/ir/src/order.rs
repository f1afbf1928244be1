//! The order of operations in a block: a linked list with numbers, so that inserting, removing and comparing two places
//! take constant time.

use crate::{Block, Kernel, Op, Traits};

/// The position of an operation in its block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    previous: Option<Op>,
    next: Option<Op>,
    /// Grows along the block, with gaps to insert into.
    number: u32,
}

/// The distance of the numbers of neighbours after a renumbering.
const STRIDE: u32 = 64;

/// A place between operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Before an operation.
    Before(Op),
    /// After an operation.
    After(Op),
    /// Before the first operation of a block.
    Start(Block),
    /// After the last operation of a block.
    End(Block),
}

/// The operations of a block in order; see [`Kernel::ops`].
#[derive(Clone)]
pub struct Ops<'k> {
    kernel: &'k Kernel,
    first: Option<Op>,
    last: Option<Op>,
}

impl Iterator for Ops<'_> {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        let op = self.first?;
        let is_last = self.last == Some(op);
        self.first = if is_last { None } else { self.kernel.order[op].next };
        if is_last {
            self.last = None;
        }
        Some(op)
    }
}

impl DoubleEndedIterator for Ops<'_> {
    fn next_back(&mut self) -> Option<Op> {
        let op = self.last?;
        let is_first = self.first == Some(op);
        self.last = if is_first { None } else { self.kernel.order[op].previous };
        if is_first {
            self.first = None;
        }
        Some(op)
    }
}

impl Kernel {
    /// The operations of a block in order; the last one ends the block.
    pub fn ops(&self, block: Block) -> Ops<'_> {
        let data = &self.blocks[block];
        Ops { kernel: self, first: data.first, last: data.last }
    }

    /// The first operation of a block.
    pub fn first_op(&self, block: Block) -> Option<Op> {
        self.blocks[block].first
    }

    /// The last operation of a block.
    pub fn last_op(&self, block: Block) -> Option<Op> {
        self.blocks[block].last
    }

    /// The operation after this one in its block.
    pub fn next_op(&self, op: Op) -> Option<Op> {
        self.order[op].next
    }

    /// The operation before this one in its block.
    pub fn previous_op(&self, op: Op) -> Option<Op> {
        self.order[op].previous
    }

    /// The operation that ends a block, if it has one.
    pub fn terminator(&self, block: Block) -> Option<Op> {
        let op = self.blocks[block].last?;
        self.ops[op].kind.spec().traits.has(Traits::TERMINATOR).then_some(op)
    }

    /// Whether `op` comes before `other` in the block of both.
    pub fn is_before(&self, op: Op, other: Op) -> bool {
        debug_assert_eq!(self.ops[op].parent, self.ops[other].parent);
        self.order[op].number < self.order[other].number
    }

    /// Inserts a detached operation.
    pub fn insert_op(&mut self, op: Op, at: Position) {
        debug_assert_eq!(self.ops[op].parent, None, "the operation stands in a block already");
        let (block, previous, next) = match at {
            Position::Before(other) => (self.ops[other].parent, self.order[other].previous, Some(other)),
            Position::After(other) => (self.ops[other].parent, Some(other), self.order[other].next),
            Position::Start(block) => (Some(block), None, self.blocks[block].first),
            Position::End(block) => (Some(block), self.blocks[block].last, None),
        };
        let block = block.unwrap_or(self.body());
        self.ops[op].parent = Some(block);
        self.order[op] = Link { previous, next, number: 0 };
        match previous {
            Some(previous) => self.order[previous].next = Some(op),
            None => self.blocks[block].first = Some(op),
        }
        match next {
            Some(next) => self.order[next].previous = Some(op),
            None => self.blocks[block].last = Some(op),
        }
        self.number(block, op);
    }

    /// Takes an operation out of its block; it can be inserted elsewhere.
    pub fn detach_op(&mut self, op: Op) {
        let Some(block) = self.ops[op].parent.take() else { return };
        let Link { previous, next, .. } = std::mem::take(&mut self.order[op]);
        match previous {
            Some(previous) => self.order[previous].next = next,
            None => self.blocks[block].first = next,
        }
        match next {
            Some(next) => self.order[next].previous = previous,
            None => self.blocks[block].last = previous,
        }
    }

    fn number(&mut self, block: Block, op: Op) {
        let Link { previous, next, .. } = self.order[op];
        let low = previous.map_or(0, |p| self.order[p].number);
        let number = match next {
            Some(next) => low + (self.order[next].number - low) / 2,
            None => low.saturating_add(STRIDE),
        };
        let is_free = number > low && next.is_none_or(|n| number < self.order[n].number) && number < u32::MAX;
        if is_free {
            self.order[op].number = number;
            return;
        }
        let mut at = self.blocks[block].first;
        let mut number = 0;
        while let Some(op) = at {
            number += STRIDE;
            self.order[op].number = number;
            at = self.order[op].next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Elem, KernelOptions, Literal};

    #[test]
    fn numbers_follow_the_order_whatever_is_inserted_where() {
        let mut kernel = Kernel::new("k", KernelOptions::default());
        let body = kernel.body();
        let constant = |kernel: &mut Kernel, n: i64| {
            let mut b = Builder::at_end(kernel, body);
            let value = b.constant_of(Literal::Int(n), Elem::I32.into()).expect("a number");
            kernel.def_op(value).expect("an operation")
        };
        let ops: Vec<Op> = (0..300).map(|n| constant(&mut kernel, n)).collect();
        // Each goes to the middle of the gap, so that gaps are used up repeatedly.
        let mut wanted = vec![ops[0]];
        for op in &ops[1..] {
            kernel.detach_op(*op);
        }
        for (i, op) in ops[1..].iter().enumerate() {
            let at = wanted.len() / 2;
            if i % 2 == 0 {
                kernel.insert_op(*op, Position::After(wanted[at]));
                wanted.insert(at + 1, *op);
            } else {
                kernel.insert_op(*op, Position::Before(wanted[at]));
                wanted.insert(at, *op);
            }
        }
        assert_eq!(kernel.ops(body).collect::<Vec<_>>(), wanted);
        assert_eq!(kernel.ops(body).rev().collect::<Vec<_>>(), wanted.iter().rev().copied().collect::<Vec<_>>());
        for pair in wanted.windows(2) {
            assert!(kernel.is_before(pair[0], pair[1]) && !kernel.is_before(pair[1], pair[0]));
            assert_eq!(kernel.next_op(pair[0]), Some(pair[1]));
            assert_eq!(kernel.previous_op(pair[1]), Some(pair[0]));
        }
        let middle = wanted.remove(100);
        kernel.detach_op(middle);
        kernel.insert_op(middle, Position::Start(body));
        wanted.insert(0, middle);
        assert_eq!(kernel.ops(body).collect::<Vec<_>>(), wanted);
        assert_eq!(kernel.last_op(body), wanted.last().copied());
    }
}
