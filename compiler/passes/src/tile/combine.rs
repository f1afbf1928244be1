//! Combines operations by the rules of [`COMBINE`]: a reduction of products becomes a dot, an addition to a dot its
//! accumulator, and two exponentials one.

use rtc_ir::{Kernel, Phase};

use crate::rules::COMBINE;
use crate::{Pass, PassContext, PassError, rewrite};

/// The pass.
pub const PASS: Pass = Pass { name: "combine", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    rewrite::apply(kernel, COMBINE).map(|_| ())
}
