//! Arithmetic on bits, independent of instructions: soft floating point, conversions, exact sums.

pub mod convert;
pub mod exact;
pub mod float;
pub mod format;
pub mod tensor;
pub mod tile;
