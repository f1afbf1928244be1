//! Analyses of accesses to memory: what a pass may ask about the addresses of a tile.

pub(crate) mod addresses;
pub(crate) mod alignment;
pub(crate) mod box_access;
pub(crate) mod box_analysis;
pub(crate) mod clamped_rows;
pub(crate) mod dead_lanes;
pub(crate) mod descriptors;
pub(crate) mod host_values;
pub(crate) mod in_place;
pub(crate) mod negative_indices;
pub mod print;
pub(crate) mod promises;
pub mod refusal;
pub(crate) mod specializable;
pub(crate) mod vector_width;
