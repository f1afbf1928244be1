//! The arguments and the result of a launch.

use crate::counters::Counters;
use crate::finding::Finding;
use crate::sanitize::{Checks, Report};
use crate::timeline::Trace;
use std::sync::atomic::AtomicBool;

/// In which order warps run, and when asynchronous copies arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Warp after warp, each until it has to wait; copies complete only when no warp can run without them. The same in
    /// every run.
    #[default]
    InOrder,
    /// Adversarial: warps in random order with short random turns, copies at random moments that PTX allows, waits that
    /// time out early. The same for the same seed.
    Random(u64),
}

/// A kernel launch.
#[derive(Clone, Debug)]
pub struct LaunchConfig<'a> {
    /// Name of the entry in the PTX.
    pub kernel: &'a str,
    /// Number of blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Blocks per cluster.
    pub cluster: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// The parameter buffer: each parameter at its offset, as the kernel's `.param` list lays them out.
    pub params: &'a [u8],
    /// Most warp instructions that the launch may execute; `None` is no limit.
    pub budget: Option<u64>,
    /// Most warp instructions that a block may execute; in a cluster, its blocks on average. `None` is no limit.
    pub block_budget: Option<u64>,
    /// Ends the launch with [`FaultKind::Interrupted`](crate::FaultKind::Interrupted) as soon as it is true.
    pub interrupt: Option<&'a AtomicBool>,
    /// The order of execution. Misuse of asynchronous instructions is reported by either; a program that depends on the
    /// order in other ways is found by trying seeds.
    pub schedule: Schedule,
    /// Optional checks.
    pub sanitize: Checks,
    /// Whether instructions and memory traffic are counted.
    pub counts: bool,
    /// Whether the events of the first cluster are recorded, for a timeline.
    pub records: bool,
    /// The number of host threads for blocks, where that changes nothing. The result and the reports of a launch do not
    /// depend on it.
    pub threads: usize,
}

impl<'a> LaunchConfig<'a> {
    /// A launch of one block of 32 threads, without parameters; set the fields that differ.
    pub fn new(kernel: &'a str) -> LaunchConfig<'a> {
        LaunchConfig {
            kernel,
            grid: [1; 3],
            block: [32, 1, 1],
            cluster: [1; 3],
            shared_bytes: 0,
            params: &[],
            budget: None,
            block_budget: None,
            interrupt: None,
            schedule: Schedule::InOrder,
            sanitize: Checks::NONE,
            counts: false,
            records: false,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// The outcome of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchReport {
    /// The output, in the order of execution.
    pub printed: String,
    /// Instructions executed, counted once per warp.
    pub warp_instructions: u64,
    /// Instructions executed, counted once per active thread.
    pub thread_instructions: u64,
    /// Findings that did not end the launch.
    pub findings: Vec<Finding>,
    /// Reports of the sanitizer.
    pub reports: Vec<Report>,
    /// The counts, if counting is enabled.
    pub counters: Option<Counters>,
    /// The events of the first cluster, if recording is enabled.
    pub trace: Option<Trace>,
}
