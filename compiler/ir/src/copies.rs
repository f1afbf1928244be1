//! Whether copies of a tile's elements count.

use std::collections::HashSet;

use crate::{Kernel, Op, OpKind, Traits};

impl Kernel {
    /// Whether nothing but stores follows from a load, by operations that keep each element in its thread. Where several
    /// threads hold copies of one element, the first alone stores it, so the others' are not needed.
    pub fn is_for_stores_alone(&self, load: Op) -> bool {
        let (mut seen, mut work) = (HashSet::new(), vec![load]);
        while let Some(op) = work.pop() {
            for user in self.op(op).results.iter().flat_map(|result| self.users(*result)) {
                let traits = self.kind(user).spec().traits;
                match self.kind(user) {
                    OpKind::Store { .. } => {}
                    _ if traits.has(Traits::ELEMENTWISE.and(Traits::PURE)) && self.op(user).blocks.is_empty() => {
                        if seen.insert(user) {
                            work.push(user);
                        }
                    }
                    _ => return false,
                }
            }
        }
        true
    }
}
