//! Passes that place shared memory and order accesses to it.

pub mod allocate_shared;
pub mod await_launch;
pub mod bound_registers;
pub mod insert_barriers;
pub mod limit_size;
mod pending;
pub mod place_scratch;
pub mod read_once;
pub mod split_conversions;
