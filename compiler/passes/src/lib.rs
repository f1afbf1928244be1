//! Passes: tile IR to tile IR. `pipeline.rs` is the page to read first.
//!
//! Policy is decided here: layouts, shared memory, barriers and machine forms are chosen by passes and recorded in the
//! IR; lowering decides nothing. One pass is one file with a `PASS` constant; facts about values come from
//! `rtc_ir::analysis`.

mod pass;
mod pipeline;

mod laid;
mod place;
mod schedule;
mod tile;
pub mod work;

pub use laid::conversions::{Conversions, conversions, conversions_remark};
pub use pass::{Pass, PassContext, PassError};
pub use pipeline::{Observer, PASSES, plain, run_pipeline, run_through};
pub use place::limit_size::{PASS as LIMIT_SIZE, Size, long_kernel};
pub use place::split_conversions::PASS as SPLIT_CONVERSIONS;
pub use schedule::atomics_to_tma::{PASS as ATOMICS_TO_TMA, reductions_remarks};
pub use schedule::decisions::{Attempt, Decision, Grade, Suggestion, decisions, helps};
pub use schedule::expand_loop::PASS as EXPAND_LOOP;
pub use schedule::specialize_warps::PASS as SPECIALIZE_WARPS;
pub use tile::add_warps::{PASS as ADD_WARPS, warps_remark};
