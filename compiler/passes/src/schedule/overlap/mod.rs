//! Overlap of dots in flight with other work.

mod guarded_mma;
pub mod hide_conversions;
pub mod hide_reductions;
pub mod issue_async_dots;
pub mod overlap_promotion;
pub mod pipeline_chained_dots;
