//! The cost model: how long a launch takes, from what one program does and what the GPU has.
//!
//! As many blocks as fit share an SM. They take at least the cycles of one block alone, and at least what
//! the tensor cores, the schedulers, shared memory and the L2 cache need for all of them. The grid is as many such
//! rounds; the last one may be smaller. Device memory is shared by all SMs. The model puts configurations
//! of one kernel in order; its times are no predictions.

use crate::machine::Machine;
use rtc_abi::SmLimits;
use rtc_compiler::work::Work;

/// What a kernel takes of an SM.
///
/// ```
/// use rtc_tune::Machine;
/// use rtc_tune::model::{Resources, limited_by, occupancy};
/// let machine = Machine::of_arch("sm_80");
/// let resources = Resources { threads: 128, shared_bytes: 40 << 10, registers: 64, local_bytes: 0 };
/// assert_eq!(occupancy(&resources, &machine), 4); // of their shared memory more do not fit
/// assert_eq!(limited_by(&resources, &machine), ["shared memory"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resources {
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Registers of a thread; an estimate if the kernel was not assembled.
    pub registers: u32,
    /// Bytes of local memory of a thread, which means spilled registers; 0 where it is not known.
    pub local_bytes: u32,
}

/// What the model says of a configuration.
///
/// ```
/// use rtc_tune::{Candidate, model::Prediction};
/// let mut candidates = [Candidate::default(), Candidate::default()];
/// for (candidate, milliseconds) in candidates.iter_mut().zip([2.0, 0.5]) {
///     candidate.prediction = Some(Prediction { milliseconds, ..Prediction::default() });
/// }
/// let fastest = candidates.iter().filter_map(|c| c.prediction).map(|p| p.milliseconds).fold(f64::MAX, f64::min);
/// assert_eq!(fastest, 0.5);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// The time of the launch.
    pub milliseconds: f64,
    /// Blocks that share an SM.
    pub occupancy: u32,
    /// How many times the SMs are filled; the last time may be in part.
    pub waves: f64,
    /// The share of its time, 0 to 1, that an SM would need for dots alone.
    pub mma_share: f64,
    /// The same for device memory.
    pub memory_share: f64,
}

/// Seconds that any launch takes.
pub(crate) const LAUNCH: f64 = 2e-6;
/// How sharply the largest of several demands counts: demands that are equal hinder each other.
const SHARPNESS: f64 = 6.0;

/// Threads of an SM whose loads would wait for device memory as long as for the bytes themselves: the fewer threads
/// share it, the less often one has a load in flight while others compute.
const LATENCY: f64 = 40.0;

/// How much of shared memory's size the cache beside it holds, as kernels reach it.
const CACHED: f64 = 0.875;

/// How many times the bytes that kernels usually reach of the L2 cache an SM can get at most: 64 in a cycle.
const CACHE_PEAK: f64 = 2.0;

/// Why a kernel cannot run, if it cannot.
pub(crate) fn misfit(resources: &Resources, machine: &Machine) -> Option<String> {
    let limit = machine.sm.shared_for(1);
    if resources.shared_bytes > limit {
        return Some(format!("{} bytes of shared memory, {limit} are available", resources.shared_bytes));
    }
    if resources.threads > 1024 {
        return Some(format!("{} threads, 1024 are available", resources.threads));
    }
    None
}

/// How many blocks share an SM.
pub fn occupancy(resources: &Resources, machine: &Machine) -> u32 {
    let threads = resources.threads.max(32);
    // A thread has 16 registers at least.
    let registers = resources.registers.clamp(16, SmLimits::most_registers(threads));
    machine.sm.occupancy(threads, registers, resources.shared_bytes).max(1)
}

/// The resources of an SM that alone limit how many blocks share it.
pub fn limited_by(resources: &Resources, machine: &Machine) -> Vec<&'static str> {
    let blocks = occupancy(resources, machine);
    let only =
        |registers, shared_bytes| occupancy(&Resources { registers, shared_bytes, ..*resources }, machine) == blocks;
    if only(0, 0) {
        return vec!["threads"];
    }
    [("registers", only(resources.registers, 0)), ("shared memory", only(0, resources.shared_bytes))]
        .into_iter()
        .filter_map(|(name, limits)| limits.then_some(name))
        .collect()
}

/// The seconds that each part of the GPU needs for a launch, if it never waits for another and all SMs have the same work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Demands {
    /// Dots.
    pub(crate) mma: f64,
    /// The issue of instructions, each scheduler one per cycle.
    pub(crate) issue: f64,
    /// The bytes of shared memory.
    pub(crate) shared: f64,
    /// The bytes from the L2 cache, at the most that an SM can get of it: a kernel with few misses exceeds what the model expects.
    pub(crate) cache: f64,
    /// The bytes of device memory.
    pub(crate) memory: f64,
    /// The longest warp of a block that has an SM to itself, as often as the SMs are filled.
    pub(crate) latency: f64,
}

/// What a launch needs: cycles of one block on each part of an SM, and bytes of device memory.
struct Parts {
    dots: f64,
    instructions: f64,
    shared: f64,
    cache: f64,
    /// Cycles of a block that has an SM to itself.
    alone: f64,
    /// By how much spilled registers lengthen the others.
    spilled: f64,
    /// Blocks of an SM at a time.
    resident: f64,
    /// Bytes of device memory.
    bytes: f64,
}

impl Parts {
    fn of(work: &Work, resources: &Resources, blocks: f64, tensors: Option<f64>, machine: &Machine) -> Parts {
        // Values that do not fit go through local memory.
        let limit = f64::from(SmLimits::most_registers(resources.threads));
        let excess =
            ((f64::from(resources.registers) - limit) / limit).max(0.0) + f64::from(resources.local_bytes) / 512.0;
        // What a program reads again is still in the cache of the SM, if that holds what all its blocks read again.
        let occupancy = f64::from(occupancy(resources, machine));
        let resident = occupancy.min((blocks / f64::from(machine.sm_count)).ceil());
        let cache = f64::from(machine.sm.shared_bytes) * CACHED - resident * f64::from(resources.shared_bytes);
        let found = (2.0 - resident * work.kept / cache.max(1.0)).clamp(0.0, 1.0);
        // What all programs read stays there, too, as long as it leaves room for the rest.
        let common = work.common * (2.0 - 2.0 * work.common / cache.max(1.0)).clamp(0.0, 1.0);
        let moved = work.read - work.reread * found - common + work.written;
        // Of all tensors those that are written need not be read; those that are changed in place must be.
        let written = work.written * blocks;
        let least = |bytes: f64| (bytes - written).max(bytes / 2.0).min(work.read * blocks);
        Parts {
            dots: work.dots.iter().map(|(unit, count)| count / unit.per_cycle(machine.capability)).sum(),
            instructions: work.instructions / 4.0,
            shared: work.shared / 128.0,
            cache: moved / machine.l2_bytes_per_cycle,
            alone: work.cycles,
            spilled: 1.0 + 4.0 * excess,
            resident,
            bytes: tensors.map_or(work.read * blocks, least) + written,
        }
    }
}

/// What each part of the GPU needs. `tensors` as for [`predict`].
pub(crate) fn demands(
    work: &Work,
    resources: &Resources,
    blocks: u64,
    tensors: Option<f64>,
    machine: &Machine,
) -> Demands {
    let blocks = blocks.max(1) as f64;
    let parts = Parts::of(work, resources, blocks, tensors, machine);
    let sms = f64::from(machine.sm_count);
    let seconds = |cycles: f64| cycles * blocks / sms / machine.clock_hz;
    let waves = (blocks / (sms * parts.resident)).max(1.0);
    Demands {
        mma: seconds(parts.dots),
        issue: seconds(parts.instructions),
        shared: seconds(parts.shared),
        cache: seconds(parts.cache) / CACHE_PEAK,
        memory: parts.bytes / machine.memory_bytes_per_second,
        latency: parts.alone * waves / machine.clock_hz,
    }
}

/// What the model says. `tensors`: bytes of all tensors together, which device memory gives at least once, and of
/// which a kernel reads the same ones again from the L2 cache.
pub(crate) fn predict(
    work: &Work,
    resources: &Resources,
    blocks: u64,
    tensors: Option<f64>,
    machine: &Machine,
) -> Prediction {
    let blocks = blocks.max(1) as f64;
    let parts = Parts::of(work, resources, blocks, tensors, machine);
    let Parts { dots, resident, spilled, .. } = parts;
    let sms = f64::from(machine.sm_count);
    // Cycles of one block on each part of the SM.
    let demands = [dots, parts.instructions * 1.2 * spilled, parts.shared, parts.cache];
    let round = |resident: f64| {
        let all = demands.iter().map(|d| d * resident).chain([parts.alone * spilled]);
        all.map(|d| d.powf(SHARPNESS)).sum::<f64>().powf(1.0 / SHARPNESS)
    };
    let at_once = sms * resident;
    let waves = blocks / at_once;
    let full = waves.floor();
    let rest = ((blocks - full * at_once) / sms).ceil();
    let cycles = full * round(resident) + if rest > 0.0 { round(rest) } else { 0.0 };
    let computing = cycles / machine.clock_hz;

    let memory =
        parts.bytes / machine.memory_bytes_per_second * (1.0 + LATENCY / (resident * f64::from(resources.threads)));
    let seconds = (computing.powf(SHARPNESS) + memory.powf(SHARPNESS)).powf(1.0 / SHARPNESS) + LAUNCH;
    Prediction {
        milliseconds: seconds * 1e3,
        occupancy: occupancy(resources, machine),
        waves,
        mma_share: dots * blocks / sms / machine.clock_hz / seconds,
        memory_share: memory / seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtc_compiler::work::Unit;

    const SMALL: Resources = Resources { threads: 128, shared_bytes: 0, registers: 32, local_bytes: 0 };

    #[test]
    fn occupancy_is_the_scarcest_resource() {
        let h100 = Machine::of_arch("sm_90a");
        let of = |change: fn(&mut Resources)| {
            let mut resources = SMALL;
            change(&mut resources);
            occupancy(&resources, &h100)
        };
        assert_eq!(of(|_| {}), 16);
        assert_eq!(of(|r| r.registers = 168), 3);
        assert_eq!(of(|r| r.shared_bytes = 100 << 10), 2);
        assert_eq!(of(|r| r.threads = 1024), 2);
        assert_eq!(of(|r| (r.threads, r.registers) = (1024, 255)), 1);
        assert_eq!(misfit(&SMALL, &h100), None);
        assert!(
            misfit(&Resources { shared_bytes: 230 << 10, ..SMALL }, &h100).is_some_and(|why| why.contains("235520"))
        );
    }

    #[test]
    fn a_kernel_that_streams_takes_the_time_of_memory() {
        let machine = Machine::of_arch("sm_90a");
        let work = Work { read: 4096.0, written: 4096.0, instructions: 100.0, cycles: 900.0, ..Work::default() };
        let blocks = 1 << 18;
        let prediction = predict(&work, &SMALL, blocks, None, &machine);
        let least = (1u64 << 31) as f64 / machine.memory_bytes_per_second * 1e3;
        assert!((least..1.2 * least).contains(&prediction.milliseconds), "{prediction:?} {least}");
        assert!(prediction.memory_share > 0.8);
    }

    #[test]
    fn what_is_read_again_is_cheap_as_long_as_the_cache_holds_it() {
        let machine = Machine::of_arch("sm_90a");
        let row = 65_536.0;
        let work = Work { read: 3.0 * row, reread: 2.0 * row, kept: row, written: row, cycles: 9e3, ..Work::default() };
        let time = |threads| {
            let resources = Resources { threads, ..SMALL };
            predict(&work, &resources, 1024, Some(1024.0 * 2.0 * row), &machine).milliseconds
        };
        // Two rows at a time fit, sixteen do not.
        assert!(time(128) > 1.3 * time(1024), "{} {}", time(128), time(1024));
        let once = Work { reread: 0.0, kept: 0.0, ..work.clone() };
        let all = predict(&once, &Resources { threads: 1024, ..SMALL }, 1024, None, &machine).milliseconds;
        assert!(all > 1.3 * time(1024));
    }

    #[test]
    fn what_all_programs_read_is_cheap_and_few_threads_reach_less_of_memory() {
        let machine = Machine::of_arch("sm_90a");
        let row = 16_384.0;
        let work = Work { read: 3.0 * row, written: row, cycles: 2e3, ..Work::default() };
        let tensors = Some(4096.0 * 2.0 * row);
        let time = |work: &Work, resources: &Resources| predict(work, resources, 4096, tensors, &machine).milliseconds;
        let weights = Work { common: 2.0 * row, ..work.clone() };
        let wide = Resources { threads: 256, ..SMALL };
        assert!(time(&weights, &wide) < 0.8 * time(&work, &wide));
        let narrow = Resources { threads: 32, registers: 255, ..SMALL };
        assert!(time(&weights, &wide) < 0.95 * time(&weights, &narrow));
    }

    #[test]
    fn tails_spills_and_lazy_tensor_cores_cost_time() {
        let machine = Machine::of_arch("sm_90a");
        let work = Work { dots: vec![(Unit::WarpGroup(16), 5e8)], cycles: 3e5, ..Work::default() };
        let big = Resources { threads: 256, shared_bytes: 150 << 10, registers: 200, local_bytes: 0 };
        let time = |resources: &Resources, blocks| predict(&work, resources, blocks, None, &machine).milliseconds;
        assert!(time(&big, 133) > 1.5 * time(&big, 132));
        assert!(time(&Resources { local_bytes: 256, ..big }, 132) > 1.5 * time(&big, 132));
        assert!(time(&Resources { registers: 500, ..big }, 132) > 1.5 * time(&big, 132));
        // Two blocks hide each other's waits.
        assert!(time(&Resources { shared_bytes: 90 << 10, registers: 120, ..big }, 264) < 0.7 * time(&big, 264));
    }
}
