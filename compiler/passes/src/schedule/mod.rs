//! Passes that bring operands of products into shared memory, ahead of time where a loop allows it.

pub(crate) mod addresses;
mod alignment;
mod before_loops;
pub mod begin_products;
mod boxes;
mod buffer_products;
mod carried;
mod clamps;
pub mod convert_under_mma;
mod coordinates;
pub mod decisions;
mod defer_stores;
mod descriptors;
pub mod expand_loop;
mod found;
pub(crate) mod host_values;
mod in_place;
pub mod invariant_divisors;
mod made_maps;
mod mma_operands;
mod operand_layouts;
pub mod overlap_products;
mod pairs;
mod parts;
mod prefetch;
mod pressure;
mod programs;
mod read_back;
pub mod reduce_boxes;
mod reductions;
mod registers_ahead;
mod rings;
mod roles;
mod rows;
pub mod schedule_loop;
pub mod split_roles;
pub mod stage_operands;
mod tensor_maps;
pub mod under_products;
mod unseen;

use rtc_ir::Phase;

use crate::Pass;

/// [`crate::tile::dce`] after the others.
pub mod dce_scheduled {
    use super::*;
    /// The pass.
    pub const PASS: Pass =
        Pass { name: "dce-scheduled", needs: Phase::Laid, leaves: Phase::Laid, run: crate::tile::dce::run };
}
