//! Warp specialization: producer and consumer partitions, and the loop over programs.

pub(crate) mod branch;
pub(crate) mod candidate;
pub(crate) mod config;
pub(crate) mod defer_stores;
pub(crate) mod loop_carried;
pub(crate) mod maps;
mod operand_sources;
pub(crate) mod packed_pairs;
pub(crate) mod partitions;
pub(crate) mod persistent;
pub(crate) mod producer_loop;
pub(crate) mod resident_operands;
pub(crate) mod rings;
pub(crate) mod short_operands;
pub mod specialize_warps;
pub(crate) mod split_stores;
pub(crate) mod transfers;
