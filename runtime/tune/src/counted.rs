//! The emulator's counters as a clock: the cost model with what a launch did in the place of what was expected of it.
//!
//! The same launch gives the same time, on every machine.

use crate::candidate::Candidate;
use crate::machine::Machine;
use crate::model;
use rtc_compiler::work::{Unit, Work};
use rtc_runtime::counters::{Class, Counters};

/// Bytes of a sector of global memory.
const SECTOR: f64 = 32.0;
/// Bytes that shared memory gives in a turn.
const TURN: f64 = 128.0;

/// Turns counters into times.
#[derive(Clone, Debug)]
pub(crate) struct CounterClock {
    /// The GPU that the launch is thought to run on.
    pub(crate) machine: Machine,
    /// Bytes of all tensors.
    pub(crate) tensors: Option<f64>,
}

impl CounterClock {
    /// Milliseconds of a launch of a configuration; nothing where the cost model knows nothing of it.
    pub(crate) fn milliseconds(&self, candidate: &Candidate, counters: &Counters) -> Option<f64> {
        let (work, resources) = (candidate.work.as_ref()?, candidate.resources.as_ref()?);
        let blocks = candidate.grid.iter().map(|n| u64::from(*n)).product::<u64>().max(1);
        let counted = counted(work, counters, blocks as f64);
        Some(model::predict(&counted, resources, blocks, self.tensors, &self.machine).milliseconds)
    }
}

/// The work of one program by the counters of a launch of so many.
pub(crate) fn counted(work: &Work, counters: &Counters, blocks: f64) -> Work {
    let of_warps = counters.instructions.iter().filter(|(class, _)| **class != Class::Matrix);
    let instructions = of_warps.map(|(_, count)| count.warps).sum::<u64>() as f64 / blocks;
    let bytes = |sectors: u64| sectors as f64 * SECTOR / blocks;
    let (read, written) = (
        bytes(counters.loads.sectors + counters.copies_in.sectors + counters.atomics.sectors),
        bytes(counters.stores.sectors + counters.copies_out.sectors + counters.atomics.sectors),
    );
    // Which unit computes a dot is known of the kernel; how often it did, of the launch.
    let expected = work.dot_operations();
    let done = counters.matrix_flops as f64 / blocks;
    let dots = if expected > 0.0 && done > 0.0 { done / expected } else { 1.0 };
    // Without trip counts the length of a program is as little known as its instructions.
    let longer = if work.is_certain || work.instructions <= 0.0 { 1.0 } else { instructions / work.instructions };
    // What `wgmma` reads of shared memory is not counted.
    let is_read_by_dots = work.dots.iter().any(|(unit, _)| matches!(unit, Unit::WarpGroup(_)));
    let least_shared = if is_read_by_dots { work.shared } else { 0.0 };
    Work {
        dots: work.dots.iter().map(|(unit, count)| (*unit, count * dots)).collect(),
        instructions,
        read,
        reread: work.reread.min(read),
        common: work.common.min(read - work.reread.min(read)),
        written,
        shared: (counters.shared.turns as f64 * TURN / blocks).max(least_shared),
        cycles: work.cycles * longer,
        ..work.clone()
    }
}
