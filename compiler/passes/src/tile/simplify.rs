//! Simplifies a kernel by the rules of [`SIMPLIFY`]: constants, identities, remainders, branches with a known condition, loops
//! with one iteration, loop-carried values that never change.

use rtc_ir::{Kernel, Phase};

use crate::rules::SIMPLIFY;
use crate::{Pass, PassContext, PassError, rewrite};

/// The pass.
pub const PASS: Pass = Pass { name: "simplify", needs: Phase::Tile, leaves: Phase::Tile, run };

pub(super) fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    rewrite::apply(kernel, SIMPLIFY).map(|_| ())
}
