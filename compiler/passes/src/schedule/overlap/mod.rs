//! Overlap of dots in flight with other work.

mod guarded_mma;
pub mod hide_conversions;
pub mod hide_reductions;
pub mod hide_rows;
pub mod issue_async_dots;
pub mod overlap_promotion;
pub mod pipeline_chained_dots;

use std::collections::HashSet;

use rtc_ir::{Kernel, Op};

/// Adds to a set those of some operations, in program order, that only operations of the set use, if each `may` be added.
fn add_makers(kernel: &Kernel, ops: &[Op], set: &mut HashSet<Op>, may: impl Fn(Op) -> bool) {
    for op in ops.iter().rev().filter(|op| may(**op)) {
        let mut users = kernel.op(*op).results.iter().flat_map(|value| kernel.users(*value)).peekable();
        if users.peek().is_some() && users.all(|user| set.contains(&user)) {
            set.insert(*op);
        }
    }
}
