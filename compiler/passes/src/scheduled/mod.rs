//! Passes that place shared memory and order accesses to it.

pub mod allocate_shared;
pub mod insert_barriers;
pub mod limit_size;
pub mod place_scratch;
