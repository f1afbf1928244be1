//! Arithmetic on bits, independent of instructions: soft floating point, conversions, exact sums.

pub mod convert;
pub mod exact;
pub mod float;
pub mod tensor;
pub mod tile;

pub use rtc_floats as format;
