//! The one estimate of the registers of a thread: the most that are live at a time, in a kernel or one of its loops.
//!
//! `live.rs` has from where to where each value is live, `words.rs` how many registers it takes. `scripts/register_estimates`
//! compares the result with the assembler.

use rtc_abi::REGISTERS_PER_THREAD;
use rtc_ir::{Kernel, Op, Value, walk};

use super::live::LiveRanges;
use super::words::words_of_tile;
use crate::matrix_unit;

/// Registers that the code takes beside the values of the kernel.
const BASE: f64 = 8.0;
/// The same of addresses in shared memory, descriptors and what is moved ahead, in kernels with dots.
const OF_DOTS: f64 = 12.0;

/// What an estimate is of.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// The whole kernel.
    Kernel,
    /// A loop, through which these values are held in addition to what it computes.
    Loop(Op, &'a [Value]),
    /// The same without what only its copies need: other warps issue them.
    Consumer(Op, &'a [Value]),
}

/// The estimated registers of a thread; more than a thread can have means that some are spilled.
pub fn estimate(kernel: &Kernel, scope: Scope<'_>) -> u32 {
    let live = LiveRanges::of(kernel, !matches!(scope, Scope::Consumer(..)));
    let (most, held): (f64, &[Value]) = match scope {
        Scope::Kernel => (live.most(), &[]),
        Scope::Loop(of, held) | Scope::Consumer(of, held) => (live.most_in(of), held),
    };
    let dots = if has_dot(kernel) { OF_DOTS } else { 0.0 };
    (BASE + dots + most).round() as u32 + held.iter().map(|value| words_of_tile(kernel, *value)).sum::<u32>()
}

/// The registers of a thread: those that its partitions set, else the estimate up to what a thread can have.
pub fn registers_or_set(kernel: &Kernel) -> u32 {
    let most = kernel.options.maxnreg.unwrap_or(REGISTERS_PER_THREAD);
    kernel.registers_at_start().unwrap_or_else(|| estimate(kernel, Scope::Kernel).min(most))
}

/// Whether dots hold sums in registers.
pub fn has_dot(kernel: &Kernel) -> bool {
    walk(kernel).into_iter().any(|op| matrix_unit::is_dot(kernel.kind(op)))
}
