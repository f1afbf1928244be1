//! The least time of each part of the GPU, and which of them bounds a launch.

use super::Estimate;
use crate::Machine;
use crate::model::{self, LAUNCH};
use rtc_abi::SmLimits;
use rtc_compiler::work::Unit;

/// What bounds a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Tensor cores.
    Mma,
    /// Dots that FMAs of threads compute.
    Fma,
    /// The bytes of device memory.
    Memory,
    /// The bytes from the L2 cache, each sector as often as it is requested.
    Cache,
    /// The bytes of shared memory.
    Shared,
    /// The issue of instructions.
    Issue,
    /// Spilled registers.
    Registers,
    /// Too few blocks share an SM to hide each other's latencies.
    Occupancy,
    /// The longest chain of operations of a block: there are no blocks to overlap it with.
    Latency,
    /// The launch itself.
    Launch,
}

/// The least time of a part of the GPU for the launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Which part: [`Bound::Mma`] to [`Bound::Issue`], or [`Bound::Latency`].
    pub part: Bound,
    /// Milliseconds.
    pub milliseconds: f64,
}

impl Bound {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Mma => "mma",
            Bound::Fma => "fma",
            Bound::Memory => "memory",
            Bound::Cache => "l2",
            Bound::Shared => "shared",
            Bound::Issue => "issue",
            Bound::Registers => "registers",
            Bound::Occupancy => "occupancy",
            Bound::Latency => "latency",
            Bound::Launch => "launch",
        }
    }

    /// The name in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Bound::Mma => "MMA (tensor cores)",
            Bound::Fma => "dots by FMAs of threads",
            Bound::Memory => "device memory",
            Bound::Cache => "L2 cache",
            Bound::Shared => "shared memory",
            Bound::Issue => "issue slots",
            Bound::Registers => "spilled registers",
            Bound::Occupancy => "occupancy",
            Bound::Latency => "latency",
            Bound::Launch => "the launch itself",
        }
    }
}

/// By how much the longest chain of operations has to exceed the time of the busiest part to be what bounds a launch.
const WAITING: f64 = 4.0 / 3.0;

/// The least times, the longest first.
pub(super) fn limits(now: &Estimate, tensors: Option<f64>, machine: &Machine) -> Vec<Limit> {
    let demands = model::demands(&now.work, &now.resources, now.blocks(), tensors, machine);
    let by_threads = now.work.dots.iter().all(|(unit, _)| matches!(unit, Unit::Thread(_)));
    let dots = if by_threads && demands.mma > 0.0 { Bound::Fma } else { Bound::Mma };
    let all = [
        (dots, demands.mma),
        (Bound::Memory, demands.memory),
        (Bound::Cache, demands.cache),
        (Bound::Shared, demands.shared),
        (Bound::Issue, demands.issue),
        (Bound::Latency, demands.latency),
    ];
    let mut limits: Vec<Limit> =
        all.into_iter().map(|(part, seconds)| Limit { part, milliseconds: seconds * 1e3 }).collect();
    limits.sort_by(|a, b| b.milliseconds.total_cmp(&a.milliseconds));
    limits
}

/// What bounds the launch: what has to be free for the model to predict a shorter time.
pub(super) fn of(now: &Estimate, limits: &[Limit], tensors: Option<f64>, machine: &Machine) -> Bound {
    let time = now.predict(tensors, machine).milliseconds;
    if LAUNCH * 1e3 > time / 2.0 {
        return Bound::Launch;
    }
    let mut kept = now.clone();
    kept.resources.local_bytes = 0;
    kept.resources.registers = kept.resources.registers.min(SmLimits::most_registers(kept.resources.threads));
    if time > 1.1 * kept.predict(tensors, machine).milliseconds {
        return Bound::Registers;
    }
    let of = |limit: Option<&Limit>| limit.map_or((Bound::Launch, 0.0), |limit| (limit.part, limit.milliseconds));
    let (largest, busy) = of(limits.iter().find(|limit| limit.part != Bound::Latency));
    let (_, chain) = of(limits.iter().find(|limit| limit.part == Bound::Latency));
    // The chain of a block contains its own time on the other parts: it has to be longer than that.
    if chain < busy * WAITING {
        return largest;
    }
    // With a block of no registers and no shared memory as many share an SM as threads allow.
    let mut light = kept;
    (light.resources.registers, light.resources.shared_bytes) = (0, 0);
    match time > 1.1 * light.predict(tensors, machine).milliseconds {
        true => Bound::Occupancy,
        false => Bound::Latency,
    }
}
