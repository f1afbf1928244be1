//! Makes one operation of several by the rules of [`COMBINE`].

use rtc_ir::{Kernel, Phase};

use crate::rules::COMBINE;
use crate::{Pass, PassContext, PassError, rewrite};

/// The pass.
pub const PASS: Pass = Pass { name: "combine", needs: Phase::Tile, leaves: Phase::Tile, run };

fn run(kernel: &mut Kernel, _: &PassContext) -> Result<(), PassError> {
    rewrite::apply(kernel, COMBINE).map(|_| ())
}
