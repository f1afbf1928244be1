//! Passes: tile IR to tile IR. `pipeline.rs` is the page to read first.
//!
//! Policy is decided here: layouts, shared memory, barriers and machine forms are chosen by passes and recorded in the
//! IR; lowering decides nothing. One pass is one file with a `PASS` constant; facts about values come from
//! `rtc_ir::analysis`.
//!
//! A folder uses those above it in this list, which `tests/tidy.rs` checks:
//!
//! | folder | contents |
//! | --- | --- |
//! | `rewrite` | the driver of rewrite rules |
//! | `rules` | rewrite rules |
//! | `access` | analyses of the addresses that loads and stores access: aliases, boxes of tensors, widths |
//! | `work` | estimates of a kernel's instructions, registers and work |
//! | `place` | passes on a scheduled kernel: shared memory, barriers, limits |
//! | `laid` | layouts |
//! | `tile` | passes before layouts |
//! | `schedule/pipeline` | software pipelines: stages, copies ahead, the loop rewritten |
//! | `schedule/operands` | operands of dots in shared memory |
//! | `schedule/tma` | tensor maps and copies by TMA |
//! | `schedule/overlap` | dots in flight while other work runs |
//! | `schedule/partition` | warp specialization |
//! | `report` | what was decided for each loop, and what would change it |

mod dependence;
mod matrix_unit;
mod pass;
mod pipeline;

mod access;
mod laid;
mod place;
mod report;
mod rewrite;
mod rules;
mod schedule;
mod tile;
pub mod work;

pub use access::print::print_accesses;
pub use access::refusal::Refusal;
pub use laid::conversions::{Conversions, conversions, conversions_remark};
pub use pass::{Pass, PassContext, PassError};
pub use pipeline::{Observer, PASSES, plain, run_pipeline, run_through};
pub use place::limit_size::{PASS as LIMIT_SIZE, Size, long_kernel};
pub use place::split_conversions::PASS as SPLIT_CONVERSIONS;
pub use report::outline::outline;
pub use report::{Attempt, Decision, Grade, Reductions, Suggestion, decisions, helps};
pub use rewrite::{Rewriter, Rule};
pub use rules::{RULES, apply_rule};
pub use schedule::partition::specialize_warps::PASS as SPECIALIZE_WARPS;
pub use schedule::pipeline::expand_loop::PASS as EXPAND_LOOP;
pub use schedule::tma::atomics_to_tma::PASS as ATOMICS_TO_TMA;
pub use tile::add_warps::{PASS as ADD_WARPS, warps_remark};
