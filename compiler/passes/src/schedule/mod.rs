//! Passes that stage operands of dots in shared memory, ahead of time where a loop allows it.

mod in_flight;
pub mod insert_waits;
pub mod invariant_divisors;
pub mod operands;
pub mod overlap;
pub mod partition;
pub mod pipeline;
mod resources;
pub mod tma;

use rtc_ir::Phase;

use crate::Pass;

/// [`crate::tile::dce`] after the others.
pub mod dce_scheduled {
    use super::*;
    /// The pass.
    pub const PASS: Pass =
        Pass { name: "dce-scheduled", needs: Phase::Laid, leaves: Phase::Laid, run: crate::tile::dce::run };
}
