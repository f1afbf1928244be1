//! The work of one program of a finished kernel, for given arguments: dots, instructions, bytes, cycles of its longest
//! warp, registers. Cost models of configurations start from it.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`Work`], the counts |
//! | `count.rs` | the traversal of the kernel, with trip counts |
//! | `clock.rs` | when the operations of one warp start and end |
//! | `programs.rs` | which values differ between programs |
//! | `registers.rs` | [`estimate`], the registers of a thread, in a kernel or one of its loops |
//! | `live.rs` | from where to where values are live |
//! | `words.rs` | how many registers a value takes |
//!
//! All are estimates; they are made for comparing kernels of one source with each other.

mod clock;
mod count;
pub(crate) mod instructions;
mod live;
mod programs;
mod registers;
#[cfg(test)]
mod tests;
pub(crate) mod words;

pub use count::work;
pub(crate) use registers::has_dot;
pub use registers::{Scope, estimate, registers_or_set};
pub(crate) use words::words_of_tile;

/// Who computes dots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// `wgmma` on operands of so many bits.
    WarpGroup(u32),
    /// `mma.sync` on operands of so many bits.
    Warp(u32),
    /// FMAs of each thread, on numbers of so many bits.
    Thread(u32),
}

/// The known properties of a launch.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// How many programs.
    pub grid: [u32; 3],
    /// Values of integer arguments by the name of the parameter.
    pub integers: Vec<(String, i64)>,
}

/// The work of one program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Floating-point or integer operations in dots, by who computes them; a FMA counts two.
    pub dots: Vec<(Unit, f64)>,
    /// Instructions of all warps together, those of dots on tensor cores left out.
    pub instructions: f64,
    /// Bytes read of global memory.
    pub read: f64,
    /// Bytes of those that the program has read before, in an earlier loop over the same memory: they come from the cache of
    /// the SM if that holds what all its programs read again.
    pub reread: f64,
    /// Bytes that it reads again, each counted once.
    pub kept: f64,
    /// Bytes of those that every program of the launch reads at the same addresses, such as the weights of a norm; they are not
    /// in `reread`. They come from the cache of the SM if that holds them.
    pub common: f64,
    /// Bytes written to global memory.
    pub written: f64,
    /// Bytes through shared memory.
    pub shared: f64,
    /// Cycles from the beginning to the end of a program that has an SM to itself.
    pub cycles: f64,
    /// Registers of a thread.
    pub registers: u32,
    /// Whether the number of times that each loop runs is known.
    pub is_certain: bool,
}

impl Work {
    /// All operations in dots.
    pub fn dot_operations(&self) -> f64 {
        self.dots.iter().map(|(_, count)| count).sum()
    }
}

impl Unit {
    /// Operations in a cycle that one SM of a target does at most.
    pub fn per_cycle(self, capability: u32) -> f64 {
        // Hopper, the first generation with `wgmma`, has twice the rate of Ampere; `mma.sync` reaches some 60 % of it.
        let half = if capability >= 90 {
            4096.0
        } else if capability == 80 {
            2048.0
        } else {
            1024.0
        };
        match self {
            Unit::WarpGroup(bits) => half * 16.0 / f64::from(bits.max(8)),
            Unit::Warp(64) => 256.0,
            Unit::Warp(bits) => half * if capability >= 90 { 0.6 } else { 0.9 } * 16.0 / f64::from(bits.max(8)),
            Unit::Thread(64) => 128.0,
            Unit::Thread(_) => 256.0,
        }
    }
}
