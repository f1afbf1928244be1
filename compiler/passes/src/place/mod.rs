//! Passes that place shared memory and order accesses to it.

pub mod allocate_shared;
pub mod elect_redundant_loads;
pub mod insert_barriers;
pub mod insert_pdl_waits;
pub mod instrument;
pub mod limit_size;
mod pending;
pub mod place_scratch;
pub mod recompute_widened;
pub mod scale_maxima;
pub mod set_maxnreg;
pub mod share_addresses;
pub mod split_conversions;
