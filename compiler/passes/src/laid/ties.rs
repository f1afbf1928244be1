//! Tiles that are best in one layout, because element-wise operations, loops or branches connect them.

use std::collections::HashMap;

use rtc_ir::regions::Slot;
use rtc_ir::{Kernel, Op, OpKind, Traits, Value};

/// Whether an operation is element-wise, so that its operands and results are best in one layout.
pub fn is_tie(kernel: &Kernel, op: Op) -> bool {
    kernel.kind(op).spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE))
}

/// Whether an operation sees its operand as a tile of another shape.
pub fn is_shape(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::ExpandDims { .. } | OpKind::Broadcast {} | OpKind::Trans { .. } | OpKind::Reshape { reorder: false }
    )
}

/// The members that operations and slots connect with each other.
pub fn tied(kernel: &Kernel, ops: &[Op], slots: &[Slot], is_member: impl Fn(Value) -> bool) -> UnionFind {
    let mut sets = UnionFind::default();
    let mut join = |values: &mut dyn Iterator<Item = Value>| {
        let mut members = values.filter(|value| is_member(*value));
        if let Some(first) = members.next() {
            members.for_each(|value| sets.join(first, value));
        }
    };
    for op in ops.iter().filter(|op| is_tie(kernel, **op)) {
        let of = kernel.op(*op);
        join(&mut of.results.iter().chain(&of.operands).copied());
    }
    for slot in slots {
        join(&mut slot.targets.iter().copied().chain(slot.values(kernel)));
    }
    sets
}

/// Disjoint sets of values.
#[derive(Default)]
pub struct UnionFind {
    parents: HashMap<Value, Value>,
}

impl UnionFind {
    /// The least value of the set that a value is in.
    pub fn of(&mut self, value: Value) -> Value {
        let mut root = value;
        while let Some(parent) = self.parents.get(&root).filter(|p| **p != root) {
            root = *parent;
        }
        // Shorter ways for the next ones.
        let mut at = value;
        while at != root {
            at = self.parents.insert(at, root).unwrap_or(root);
        }
        root
    }

    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.of(a), self.of(b));
        if a != b {
            self.parents.insert(a.max(b), a.min(b));
        }
    }
}
