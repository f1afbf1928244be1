//! Passes over tiles without layouts: descriptors and block pointers, constants, common subexpressions, loop invariants,
//! dead code.

pub mod add_warps;
pub mod alignment_versioning;
pub mod carry_offsets;
pub mod combine;
pub mod cse;
pub mod dce;
pub mod hoist_loads;
pub mod licm;
pub mod lower_block_pointers;
pub mod lower_descriptors;
pub mod narrow_casts;
pub mod narrow_loads;
pub mod simplify;
pub mod split_loops;
pub mod store_versioning;
pub mod transpose_dots;
pub mod unflatten_loops;
pub mod unify_induction_variables;
pub mod unit_stride_versioning;
mod views;
mod window;

use rtc_ir::Phase;

use crate::Pass;

/// [`cse`] in phase `Laid`.
pub mod cse_laid {
    use super::*;
    /// The pass.
    pub const PASS: Pass = Pass { name: "cse-laid", needs: Phase::Laid, leaves: Phase::Laid, run: super::cse::run };
}

/// [`dce`] in phase `Laid`.
pub mod dce_laid {
    use super::*;
    /// The pass.
    pub const PASS: Pass = Pass { name: "dce-laid", needs: Phase::Laid, leaves: Phase::Laid, run: super::dce::run };
}
