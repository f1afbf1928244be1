//! Loads of a loop begun an iteration earlier, into registers that the loop carries.
//!
//! ```text
//! for_range .. ^(%i) {              %x0 = load .. of the first iteration, if there is one
//!   %x = load %p                    for_range .., (%x0) ^(%i, %x) {
//!   .. %x ..                  →       %x1 = load .. of the next iteration, if there is one
//! }                                   .. %x ..
//!                                     yields (%x1)
//!                                   }
//! ```

use std::collections::HashSet;

use rtc_ir::{Kernel, Op, Value};

use super::expander::{Ends, StagedLoop, expand};
use crate::PassError;
use crate::access::addresses::addresses;
use crate::pass::missing;

/// Issues loads so many iterations earlier; returns the new loop.
pub(crate) fn prefetch(kernel: &mut Kernel, of: Op, loads: &[Op], ahead: u32) -> Result<Op, PassError> {
    if loads.is_empty() {
        return Ok(of);
    }
    let tiles: Vec<Value> = loads.iter().map(|load| kernel.result(*load, 0)).collect();
    let part = addresses(kernel, of, &tiles).ok_or_else(|| missing("loads that are repeatable"))?;
    let body = kernel.op(of).blocks[0];
    let (end, early) = (kernel.terminator(body), loads.iter().copied().collect::<HashSet<Op>>());
    let rest = kernel.ops(body).filter(|op| Some(*op) != end && !early.contains(op));
    let order = part.ops.iter().map(|op| (*op, 0)).chain(rest.map(|op| (op, ahead))).collect();
    let staged = StagedLoop::new(kernel, of, order, Ends::Masked).ok_or_else(|| missing("a loop"))?;
    Ok(expand(kernel, staged)?.of)
}
