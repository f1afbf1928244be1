//! Passes that give tiles layouts and improve on them.

pub(crate) mod accelerate_dot;
pub mod assign_layouts;
pub(crate) mod coalesce;
pub mod compare_differences;
mod components;
pub mod conversions;
mod cost;
mod fma_accumulator;
mod k_width;
mod rematerialize;
pub mod remove_conversions;
mod search;
pub mod share_runs;
pub mod sink;
pub mod vectorize;
