//! Passes that bring operands of products into shared memory, ahead of time where a loop allows it.

mod addresses;
mod buffer_products;
pub mod expand_loop;
pub mod schedule_loop;
pub mod stage_operands;

use rtc_ir::Phase;

use crate::Pass;

/// [`crate::tile::dce`] after the others.
pub mod dce_scheduled {
    use super::*;
    /// The pass.
    pub const PASS: Pass =
        Pass { name: "dce-scheduled", needs: Phase::Laid, leaves: Phase::Laid, run: crate::tile::dce::run };
}
