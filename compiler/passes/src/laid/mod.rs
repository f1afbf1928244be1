//! Passes that give tiles layouts and improve on them.

mod accelerate_dot;
pub mod assign_layouts;
mod coalesce;
pub mod conversions;
mod fma_accumulator;
pub mod remove_conversions;
pub mod share_runs;
pub mod vectorize;
