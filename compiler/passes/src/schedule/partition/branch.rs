//! A branch around operations to come.

use rtc_ir::{Builder, Kernel, Op, OpKind, Value};

use crate::PassError;

/// A branch without values; gives the end of its first block.
pub(crate) fn branch(kernel: &mut Kernel, before: Op, condition: Value) -> Result<Op, PassError> {
    Ok(branches(kernel, before, condition)?[0])
}

/// A branch without values; gives the ends of its blocks.
pub(crate) fn branches(kernel: &mut Kernel, before: Op, condition: Value) -> Result<[Op; 2], PassError> {
    let blocks = [kernel.new_block(), kernel.new_block()];
    let ends = blocks.map(|block| Builder::at_end(kernel, block).yield_values(&[]));
    Builder::before(kernel, before).build(OpKind::IfElse {}, &[condition], &[], &[], &blocks, &[])?;
    let [first, second] = ends;
    Ok([first?, second?])
}
