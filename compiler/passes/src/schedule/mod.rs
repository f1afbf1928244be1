//! Passes that stage operands of dots in shared memory, ahead of time where a loop allows it.

pub(crate) mod addresses;
mod alignment;
pub mod atomics_to_tma;
mod box_analysis;
mod buffer_boxes;
mod buffer_dots;
mod candidate;
mod clamped_rows;
mod coordinates;
mod dead_lanes;
pub mod decisions;
mod defer_stores;
mod descriptors;
pub mod expand_loop;
pub mod hide_conversions;
pub mod hide_reductions;
pub(crate) mod host_values;
mod in_place;
pub mod invariant_divisors;
pub mod issue_async_dots;
mod kernel_tensor_maps;
mod loop_carried;
mod mma_operands;
mod operand_layouts;
mod packed_pairs;
mod partitions;
mod persistent;
pub mod pipeline_chained_dots;
mod prefetch;
mod read_back;
mod register_prefetch;
mod register_pressure;
mod resident_operands;
mod rings;
mod row_vectors;
pub mod schedule_loop;
pub mod specialize_warps;
pub mod stage_operands;
mod tensor_maps;
mod tma_reductions;

use rtc_ir::Phase;

use crate::Pass;

/// [`crate::tile::dce`] after the others.
pub mod dce_scheduled {
    use super::*;
    /// The pass.
    pub const PASS: Pass =
        Pass { name: "dce-scheduled", needs: Phase::Laid, leaves: Phase::Laid, run: crate::tile::dce::run };
}
