//! The steps of a conversion from one layout to another.

use crate::linear::Layout;
use crate::shuffle::{ShufflePlan, shuffle_plan};

/// The way from one layout to another, cheapest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The layouts are equal.
    Identity,
    /// Free: register `i` of the result is register `list[i]` of the source.
    Registers(Vec<u32>),
    /// A few shuffles within each warp.
    Shuffles(ShufflePlan),
    /// Through shared memory: see [`shared_plan`](crate::shared_plan).
    Shared,
}

/// Shuffles and selects up to which a conversion through registers beats one through shared memory with its barriers.
const SHUFFLE_LIMIT: u32 = 24;

/// The cheapest way from `src` to `dst`, layouts of the same tile and number of warps.
pub fn conversion(src: &Layout, dst: &Layout) -> Conversion {
    assert_eq!(src.shape(), dst.shape(), "a conversion keeps the shape of the tile");
    assert_eq!(src.warps(), dst.warps(), "a conversion keeps the number of warps");
    if src == dst {
        return Conversion::Identity;
    }
    if let Some(registers) = dst.register_map(src, |coord| coord) {
        return Conversion::Registers(registers);
    }
    match shuffle_plan(src, dst) {
        Some(plan) if plan.instructions(src.registers()) <= SHUFFLE_LIMIT => Conversion::Shuffles(plan),
        _ => Conversion::Shared,
    }
}
