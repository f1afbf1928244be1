//! Counts of a launch: instructions by class, memory traffic by level, bank conflicts, divergence.
//!
//! The numbers are those of the program, not of a device: they are the same in every run, so that tests can compare them.
//!
//! ```
//! use rtc_emulator::counters::{Class, Machine};
//! use rtc_emulator::{LaunchConfig, Memory, Program};
//! let ptx = "
//! .version 8.3
//! .target sm_80
//! .address_size 64
//! .visible .entry square(.param .u64 x) {
//!     .reg .b32 %r<3>; .reg .b64 %rd<4>;
//!     ld.param.b64 %rd1, [x];
//!     mov.u32 %r1, %tid.x;
//!     mul.wide.u32 %rd2, %r1, 4;
//!     add.s64 %rd3, %rd1, %rd2;
//!     mul.lo.s32 %r2, %r1, %r1;
//!     st.global.b32 [%rd3], %r2;
//!     ret;
//! }";
//! let program = Program::load(ptx).expect("legal PTX");
//! let mut memory = Memory::new();
//! let params = memory.alloc(128, 16, "x").to_le_bytes();
//! let config = LaunchConfig { params: &params, counts: true, ..LaunchConfig::new("square") };
//! let counters = program.launch(&mut memory, &config).expect("no fault").counters.expect("they were asked for");
//! assert_eq!(counters.stores.sectors, 4); // 128 bytes
//! assert_eq!(counters.instructions[&Class::Integer].threads, 3 * 32);
//! assert!(counters.roofline(&Machine::H200).is_memory_bound());
//! ```

mod show;

use std::collections::BTreeMap;

use crate::SourceLocation;

/// Bytes that memory moves at once.
pub const SECTOR: u64 = 32;

/// The class of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Arithmetic on 32-bit floats.
    Fp32,
    /// Arithmetic on halves.
    Half,
    /// Arithmetic on 64-bit floats.
    Fp64,
    /// Approximate functions: square roots, reciprocals, exponentials, logarithms, sines.
    Special,
    /// Arithmetic on integers and addresses, logic, shifts.
    Integer,
    /// Conversions between types.
    Convert,
    /// Comparisons and choices.
    Compare,
    /// Moves between registers.
    Move,
    /// Loads from and stores to global memory, prefetches.
    Global,
    /// Loads from and stores to shared memory.
    Shared,
    /// Other loads and stores: parameters, local memory.
    Local,
    /// Atomics.
    Atomic,
    /// Asynchronous copies.
    Copy,
    /// Products of matrices.
    Matrix,
    /// Shuffles, votes, reductions of a warp.
    Warp,
    /// Barriers, fences, waits.
    Sync,
    /// Jumps, calls, ends.
    Control,
    /// Anything else.
    Other,
}

/// How often something was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Once for each warp.
    pub warps: u64,
    /// Once for each active thread.
    pub threads: u64,
}

/// Accesses of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Instructions of a warp that accessed memory.
    pub requests: u64,
    /// Pieces of 32 bytes that they touched.
    pub sectors: u64,
    /// Bytes that threads requested.
    pub bytes: u64,
}

impl Traffic {
    /// Sectors of a request: 4 for 128 bytes side by side.
    pub fn sectors_per_request(&self) -> f64 {
        self.sectors as f64 / self.requests.max(1) as f64
    }

    /// The share of the bytes of the sectors that threads requested, at most 1: threads that request the same bytes count
    /// more than once. `None` without an access.
    pub fn efficiency(&self) -> Option<f64> {
        (self.sectors > 0).then(|| (self.bytes as f64 / (self.sectors * SECTOR) as f64).min(1.0))
    }
}

/// Accesses of shared memory by threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedTraffic {
    /// Instructions of a warp that accessed it.
    pub requests: u64,
    /// Cycles of shared memory: in each, each of the 32 banks delivers one word.
    pub turns: u64,
    /// Turns more than the bytes of the request need.
    pub conflicts: u64,
    /// Bytes that threads requested; an address that several read counts once.
    pub bytes: u64,
}

impl SharedTraffic {
    /// The share of the turns that are conflicts. `None` without an access.
    pub fn conflict_share(&self) -> Option<f64> {
        (self.turns > 0).then(|| self.conflicts as f64 / self.turns as f64)
    }
}

/// The counts of one instruction of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionCount {
    /// Its line in the PTX, from 1.
    pub ptx_line: u32,
    /// Its place in the source, by `.loc`.
    pub location: Option<SourceLocation>,
    /// Its class.
    pub class: Class,
    /// How often it was executed.
    pub executed: Count,
    /// Its accesses of global memory, asynchronous copies included.
    pub global: Traffic,
    /// Whether those write.
    pub writes: bool,
    /// Its accesses of shared memory.
    pub shared: SharedTraffic,
    /// How often it split the lanes of a warp, if it is a jump.
    pub divergent: u64,
}

/// The counts of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Instructions by class.
    pub instructions: BTreeMap<Class, Count>,
    /// Loads from global memory.
    pub loads: Traffic,
    /// Stores to global memory.
    pub stores: Traffic,
    /// Atomics on global memory.
    pub atomics: Traffic,
    /// Asynchronous copies from global memory: `cp.async`, bulk and tensor copies.
    pub copies_in: Traffic,
    /// Asynchronous copies to global memory.
    pub copies_out: Traffic,
    /// Bytes of the sectors of global memory that were read at all: what memory must give at least.
    pub distinct_read: u64,
    /// The same for writes.
    pub distinct_written: u64,
    /// Accesses of shared memory by threads.
    pub shared: SharedTraffic,
    /// Jumps with a condition, once for each warp.
    pub branches: u64,
    /// Those of them that parted the lanes of a warp.
    pub divergent_branches: u64,
    /// Operations of matrix products: a multiplication and an addition are two.
    pub matrix_flops: u64,
    /// Operations on floats by threads; a FMA is two.
    pub thread_flops: u64,
    /// The executed instructions one by one, in the order of the program.
    pub by_instruction: Vec<InstructionCount>,
}

/// The peaks of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: &'static str,
    /// Bytes of its memory in a second.
    pub bytes: f64,
    /// Operations of matrix products in a second, 16-bit types.
    pub matrix_flops: f64,
    /// Operations of threads in a second, 32-bit floats.
    pub thread_flops: f64,
}

impl Machine {
    /// NVIDIA H200, by its data sheet.
    pub const H200: Machine = Machine { name: "H200", bytes: 4.8e12, matrix_flops: 989e12, thread_flops: 67e12 };
    /// NVIDIA A100 with 80 GB, by its data sheet.
    pub const A100: Machine = Machine { name: "A100", bytes: 2.0e12, matrix_flops: 312e12, thread_flops: 19.5e12 };
}

/// The least time of a launch on a device, from its memory traffic and its arithmetic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roofline {
    /// Seconds to move the distinct sectors.
    pub memory: f64,
    /// Seconds for the products of matrices.
    pub matrix: f64,
    /// Seconds for the arithmetic of threads.
    pub threads: f64,
    /// Operations for each byte.
    pub intensity: f64,
}

impl Roofline {
    /// The least time in seconds.
    pub fn seconds(&self) -> f64 {
        self.memory.max(self.matrix).max(self.threads)
    }

    /// Whether memory takes longest.
    pub fn is_memory_bound(&self) -> bool {
        self.memory >= self.matrix.max(self.threads)
    }
}

impl Counters {
    /// The average number of active lanes of an instruction.
    pub fn active_lanes(&self) -> f64 {
        let sum = |of: fn(&Count) -> u64| self.instructions.values().map(of).sum::<u64>() as f64;
        sum(|count| count.threads) / sum(|count| count.warps).max(1.0)
    }

    /// The least time on a device: bytes that must move and operations, each at its peak.
    pub fn roofline(&self, machine: &Machine) -> Roofline {
        let bytes = (self.distinct_read + self.distinct_written) as f64;
        let flops = (self.matrix_flops + self.thread_flops) as f64;
        Roofline {
            memory: bytes / machine.bytes,
            matrix: self.matrix_flops as f64 / machine.matrix_flops,
            threads: self.thread_flops as f64 / machine.thread_flops,
            intensity: flops / bytes.max(1.0),
        }
    }
}
