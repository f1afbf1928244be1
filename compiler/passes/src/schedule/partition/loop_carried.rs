//! Values that are carried through nested loops and branches, from the end of the innermost block to its next
//! execution.
//!
//! ```text
//! for_range {              for_range (%x = %start) {
//!   if_else %c {             %a = if_else %c {
//!     while_loop {    →        %b = while_loop (%y = %x) { .. yields (%new) }
//!     }                        yields (%b)
//!   }                        } ^() { yields (%x) }
//! }                          yields (%a)
//!                          }
//! ```

use std::collections::HashMap;

use rtc_ir::{Block, Kernel, Op, OpKind, Value};

use crate::PassError;
use crate::pass::missing;

/// A value in a block on the path, and the operand of the block's terminator that is its next value.
#[derive(Clone, Copy)]
pub(crate) struct Level {
    /// The block.
    pub block: Block,
    /// The value in the block.
    pub value: Value,
    /// The end of the block.
    pub end: Op,
    /// Its place among what the block yields.
    pub at: usize,
}

impl Level {
    /// A value that a block yields already.
    pub fn known(kernel: &Kernel, block: Block, at: usize) -> Result<Level, PassError> {
        let end = kernel.terminator(block).ok_or_else(|| missing("an end"))?;
        Ok(Level { block, value: kernel.operand(end, at), end, at })
    }

    /// Hands on another value at the end of the block.
    pub fn set(&self, kernel: &mut Kernel, value: Value) {
        kernel.set_operand(self.end, self.at, value);
    }
}

/// The loops and branches that slot and phase are carried through, with their places among what the blocks yield.
pub(crate) type CarriedThrough = HashMap<Op, [usize; 2]>;

/// Slot and phase in a block that yields them already, as they are at its end so far.
pub(crate) fn known(kernel: &Kernel, block: Block, [slot, phase]: [usize; 2]) -> Result<[Level; 2], PassError> {
    Ok([Level::known(kernel, block, slot)?, Level::known(kernel, block, phase)?])
}

/// An operation on the path, and its block on the path.
pub(crate) type PathStep = (Op, Block);

/// The path through nested operations, from the outside in. `inside` is in the last of them.
pub(crate) fn path_to(kernel: &Kernel, path: &[Op], inside: Op) -> Option<Vec<PathStep>> {
    let next = path.iter().skip(1).chain([&inside]);
    let steps = path.iter().zip(next).map(|(op, next)| {
        let block = kernel.op(*next).parent?;
        let blocks = &kernel.op(*op).blocks;
        // The first block of such a loop computes the condition.
        let goes_round = !matches!(kernel.kind(*op), OpKind::WhileLoop {}) || blocks.last() == Some(&block);
        (blocks.contains(&block) && goes_round).then_some((*op, block))
    });
    steps.collect()
}

/// Carries a value along a path; every next value is still `start`. Returns the levels from the outside in, and the
/// result of the outermost operation.
pub(crate) fn carry(
    kernel: &mut Kernel,
    steps: &[PathStep],
    start: Value,
    name: Option<&str>,
) -> Result<(Vec<Level>, Value), PassError> {
    let (mut levels, mut value, mut after) = (Vec::<Level>::new(), start, None);
    for (op, block) in steps {
        let (within, result) = kernel.carry(*op, value).ok_or_else(|| missing("a loop"))?;
        for value in [within, result] {
            name.iter().for_each(|name| kernel.name_value(value, name));
        }
        match levels.last() {
            Some(outer) => outer.set(kernel, result),
            None => after = Some(result),
        }
        let end = kernel.terminator(*block).ok_or_else(|| missing("an end"))?;
        levels.push(Level { block: *block, value: within, end, at: kernel.op(end).operands.len() - 1 });
        value = within;
    }
    Ok((levels, after.ok_or_else(|| missing("a way"))?))
}
