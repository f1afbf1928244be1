//! Passes that give tiles layouts and improve on them.

pub(crate) mod accelerate_dot;
pub mod annotate_constancy;
pub mod assign_layouts;
pub(crate) mod coalesce;
mod components;
pub(crate) mod computed_operand;
pub mod conversions;
mod cost;
mod dot_users;
mod fma_accumulator;
mod k_width;
pub(crate) mod rematerialize;
pub mod remove_conversions;
mod search;
pub mod sink;
pub mod strength_reduce_masks;
mod ties;
pub mod vectorize;
mod weight;
