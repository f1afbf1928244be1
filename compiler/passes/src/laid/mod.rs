//! Passes that give tiles layouts and improve on them.

mod accelerate_dot;
pub mod assign_layouts;
mod coalesce;
pub mod remove_conversions;
pub mod vectorize;
