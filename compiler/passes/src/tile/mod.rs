//! Passes over tiles without layouts: descriptors and block pointers, constants, common subexpressions, loop invariants,
//! dead code.

pub mod add_warps;
pub mod aligned_stores;
pub mod counters;
pub mod cse;
pub mod dce;
pub mod fold_sums;
pub mod forward_carried;
pub mod hoist_loads;
pub mod licm;
pub mod lower_block_pointers;
pub mod lower_descriptors;
pub mod narrow_casts;
pub mod narrow_loads;
pub mod one_exponential;
pub mod remainders;
pub mod simplify;
pub mod split_loops;
pub mod sums_of_products;
pub mod turn_products;
pub mod unflatten;
pub mod unit_strides;
pub mod versions;
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
