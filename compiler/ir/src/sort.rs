//! How a sort is lowered, which decides how long its code is.

/// The longest sort that is lowered to straight code, in comparisons of one thread.
const MAX_STRAIGHT: u64 = 2048;

/// Whether a sort of 2^`bits` elements along the axis, with `registers` elements in each thread, becomes a loop over the
/// sizes of its runs. A bitonic sort takes one comparison of each register for each of `bits * (bits + 1) / 2` steps; the
/// loop's body has `bits` of them.
pub fn sort_is_rolled(registers: u64, bits: u64) -> bool {
    registers * bits * (bits + 1) / 2 > MAX_STRAIGHT
}
