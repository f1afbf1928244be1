//! Execution: blocks, warps, memory accesses, warp-collective instructions.
//!
//! A launch runs block by block, or several at the same time (`grid.rs`). A block that does not finish within its share
//! of instructions (it may wait for another one) goes to the end of a queue and the next block starts, so blocks that
//! wait for each other make progress. The blocks of a cluster run together. Within it warps run in turn: a warp runs
//! until it waits at a barrier, ends, or has used up its share; or, by an adversarial schedule, in random order for a
//! few operations.
//!
//! A warp executes arithmetic itself (`warp.rs`); any other operation is a method of [`step::Step`], which has its
//! context: the warp, the launch and its state, the cluster's shared memory, the group and its active lanes.

mod access;
mod atomics;
mod bulk;
mod bulk_copy;
mod call;
mod cluster;
mod copy;
mod counting;
mod fragment;
mod grid;
mod hazard;
mod matrix;
mod matrix_descriptor;
mod mbarrier;
mod meet;
mod print;
mod product;
pub(crate) mod random;
mod recording;
mod register_use;
mod sanitize;
mod shared;
mod special;
mod step;
mod sync;
mod tensor_copy;
mod tensormap;
mod together;
mod warp;
mod whole;
mod wrap;

pub use cluster::Cluster;
pub use counting::Counting;
pub use grid::run_grid;
pub use random::Random;
pub use recording::Recorder;
pub use sanitize::{Actor, Raw, Sanitizer};

use crate::alu::Lanes;
use crate::code::Code;
use crate::fault::{FaultKind, Site};
use crate::memory::Memory;
use crate::sanitize::Checks;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a lane cannot go on: what, where.
#[derive(Debug)]
pub struct Stop {
    /// The fault.
    pub kind: FaultKind,
    /// Operation.
    pub pc: u32,
    /// Warp in the block.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u32,
}

/// The part of a launch that all blocks share.
pub struct Launch<'a> {
    /// The program.
    pub code: &'a Code,
    /// Its constants, addresses of variables filled in.
    pub constants: &'a [Lanes],
    /// Index of the kernel.
    pub kernel: usize,
    /// The parameter buffer.
    pub params: &'a [u8],
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Blocks per cluster.
    pub cluster: [u32; 3],
    /// Dynamic shared memory.
    pub dynamic_shared: u32,
    /// Most warp instructions.
    pub budget: u64,
    /// Most warp instructions of a block.
    pub block_budget: u64,
    /// Ends the launch when it is true.
    pub interrupt: Option<&'a AtomicBool>,
    /// The enabled checks.
    pub checks: Checks,
}

impl Launch<'_> {
    /// Whether the launch is to end now.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed))
    }
}

/// The state of a running launch.
pub struct State<'a> {
    /// Global memory.
    pub memory: &'a mut Memory,
    /// The output.
    pub printed: String,
    /// Instructions by warps.
    pub warp_instructions: u64,
    /// Instructions by threads.
    pub thread_instructions: u64,
    /// Accesses through addresses that wrapped around, one for each operation that wrapped.
    pub findings: Vec<RawFinding>,
    /// The state and the findings of the enabled checks.
    pub sanitizer: Option<Box<Sanitizer>>,
    /// The counts, if counting is enabled.
    pub counting: Option<Box<Counting>>,
    /// The events of the first cluster, if recording is enabled.
    pub recorder: Option<Box<Recorder>>,
}

/// An access through an address that wrapped around.
#[derive(Clone, Copy, Debug)]
pub struct RawFinding {
    /// The operation that left 32 bits.
    pub origin: u32,
    /// Its exact value.
    pub value: i64,
    /// The operation that accessed memory.
    pub access: u32,
    /// The block.
    pub block: [u32; 3],
    /// Warp in the block.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u32,
}

/// An operation as messages name it.
pub fn place(code: &Code, pc: u32) -> Box<Site> {
    let origin = code.origins[pc as usize];
    Box::new(Site {
        instruction: code.instruction(origin),
        ptx_line: origin.line,
        location: code.location(origin.location),
    })
}
